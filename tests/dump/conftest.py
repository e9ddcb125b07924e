"""What the tests of the fast path share."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.fast.kernel import Stretch
from eo_audit.dump.parse import Section


@pytest.fixture(params=[1 << 22, 3000], ids=["one stretch", "small stretches"])
def stretches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The fast path on texts of any length, in one go and in pieces that end anywhere."""
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)
    monkeypatch.setattr(kernel_reader, "STRETCH_BYTES", request.param)
    if request.param < 1 << 20:
        monkeypatch.setattr(kernel_reader, "AHEAD_BYTES", 700)
    yield


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches the fast path took of each stretch."""
    counts, tables_of = list[int](), kernel_reader.tables_of

    def counted(stretch: Stretch, section: Section, *, base: int, salt: bytes) -> dict[str, pa.Table]:
        counts.append(len(stretch.taken_batches()))
        return tables_of(stretch, section, base=base, salt=salt)

    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)
    monkeypatch.setattr(kernel_reader, "tables_of", counted)
    return counts
