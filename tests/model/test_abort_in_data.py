"""Causes of aborts from the epochs of a data partition alone."""

import pytest

from eo_audit.model.abort_in_data import cause_from_epochs


@pytest.mark.parametrize(
    ("data", "marker", "following", "cause"),
    [
        (5, 5, 5, ("client_abort", "likely")),  # transaction version 0: the client aborts and goes on
        (5, 5, None, ("client_abort", "likely")),
        (5, 6, 7, ("fenced_by_init", "open")),  # fence_same_id_k39: take-over of an open transaction
        (3, 4, 5, ("fenced_by_init", "open")),  # dialects_tv2: restart with an open transaction, version 2
        (3, 4, 4, ("client_abort", "open")),  # version 2: the client aborts and goes on
        (1, 3, 4, ("timeout_or_fence", "open")),  # 4.0.0 bumps twice
        (1, 2, None, ("unknown", "open")),
        (1, 5, 6, ("unknown", "open")),
    ],
)
def test_cause_from_epochs(data: int, marker: int, following: int | None, cause: tuple[str, str]) -> None:
    assert cause_from_epochs(data, marker, following) == cause
