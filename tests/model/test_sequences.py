"""Sequence arithmetic: round the circle, and unwrapped."""

import pytest

from eo_audit.model.sequences import CIRCLE, dec, distance, inc, unwrap

LAST = CIRCLE - 1


@pytest.mark.parametrize(
    ("sequence", "by", "later"),
    [(0, 1, 1), (LAST, 1, 0), (LAST - 1, 3, 1), (LAST, 0, LAST), (-1, 5, -1)],
)
def test_inc_goes_round_and_dec_comes_back(sequence: int, by: int, later: int) -> None:
    assert inc(sequence, by) == later
    assert dec(later, by) == sequence


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [(5, 9, 4), (9, 5, -4), (LAST, 0, 1), (0, LAST, -1), (0, 2**30 - 1, 2**30 - 1), (0, 2**30, -(2**30)), (7, 7, 0)],
)
def test_distance_is_a_step_back_from_half_a_circle_on(first: int, second: int, steps: int) -> None:
    assert distance(first, second) == steps


def test_unwrapped_sequences_count_on_over_the_wrap() -> None:
    assert unwrap(LAST - 1, 1, previous_last=None) == (LAST - 1, CIRCLE + 1)
    assert unwrap(2, 4, previous_last=CIRCLE + 1) == (CIRCLE + 2, CIRCLE + 4)
    assert unwrap(LAST, LAST, previous_last=CIRCLE + 4) == (LAST, LAST)


def test_a_whole_circle_in_three_jumps_is_not_a_repeat() -> None:
    reached = 0
    for base in (CIRCLE // 3, 2 * (CIRCLE // 3), 0):
        first, reached = unwrap(base, base, previous_last=reached)
    assert first == CIRCLE
