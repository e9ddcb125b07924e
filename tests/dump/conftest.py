"""What the tests of the fast path share."""

from collections.abc import Iterator

import pytest

from eo_audit.dump.fast import reader as kernel_reader


@pytest.fixture(params=[1 << 22, 3000], ids=["one stretch", "small stretches"])
def stretches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The fast path on texts of any length, in one go and in pieces that end anywhere."""
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)
    monkeypatch.setattr(kernel_reader, "STRETCH_BYTES", request.param)
    if request.param < 1 << 20:
        monkeypatch.setattr(kernel_reader, "AHEAD_BYTES", 700)
    yield
