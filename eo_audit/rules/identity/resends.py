"""Which records two producers both wrote, compared record by record on the driver."""

from collections.abc import Sequence
from dataclasses import dataclass

from eo_audit.rules.row import Row

# As many as `producer_edges` keeps (`history.edges.EDGE_RECORDS`).
MOST = 64  # records known at each end of a producer
FAR_APART = 3  # records that a repeat which does not follow at once must have


@dataclass(frozen=True)
class Written:
    """One record at the edge of a producer: where, what (hashes of key and value), and whether readers get it.

    `keyed` tells a record without a key from one whose key has no hash: it is no text, or was not printed.
    """

    offset: int
    what: tuple[int | None, int | None]
    timestamp_ms: int | None
    visible: bool
    keyed: bool = True

    @property
    def comparable(self) -> bool:
        """All parts of it are known, so it may equal another; a record without a value says nothing."""
        return self.what[1] is not None and (self.what[0] is not None or not self.keyed)


@dataclass(frozen=True)
class Run:
    """A run of records that stands in the log twice: offsets of the first and the second copy, in order; `same_times`: with equal times."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    distinct: int
    common_elsewhere: bool
    same_times: bool = False

    @property
    def length(self) -> int:
        """Records in the run."""
        return len(self.first)


def head(rows: Sequence[Row]) -> list[Written]:
    """The first records of a producer, from its edge rows in offset order, as far as they follow each other without a gap."""
    found: list[Written] = []
    for row in rows:
        found += _records(row, "head")
        # An epoch longer than that was not kept whole: what follows it does not follow the records kept.
        if row.number("records") > MOST:
            break
    return found[:MOST]


def tail(rows: Sequence[Row]) -> list[Written]:
    """The last records of a producer, in offset order."""
    found: list[Written] = []
    for row in reversed(rows):
        found = _records(row, "tail") + found
        if row.number("records") > MOST or len(found) >= MOST:
            break
    return found[-MOST:]


def _records(row: Row, name: str) -> list[Written]:
    # Of a transaction that was aborted the second writing is what exactly-once promises, and no resend.
    plain = not row.flag("is_transactional")
    return [
        Written(
            item.number("offset"),
            (item.maybe("key_hash"), item.maybe("value_hash")),
            item.maybe("timestamp_ms"),
            plain or item.flag("returned"),
            item.flag("keyed"),
        )
        for item in row.rows(name)
    ]


def suffix_as_prefix(earlier: Sequence[Written], later: Sequence[Written]) -> Run | None:
    """The longest end of what one producer wrote that is the beginning of what the other wrote, aborted records left out."""
    ends, starts = [r for r in earlier if r.visible], [r for r in later if r.visible]
    # From the longest on: the first that fits is the one.
    for length in range(min(len(ends), len(starts)), 0, -1):
        if _same(ends[-length:], starts[:length]):
            return _run(ends[-length:], starts[:length], others=[*ends[:-length], *starts[length:]])
    return None


def repeated(records: Sequence[Written]) -> Run | None:
    """The longest run of records that is written a second time, at once or later; a later copy must be long enough to be no accident."""
    best: tuple[int, int, int] | None = None
    for first in range(len(records)):
        for second in range(first + 1, len(records)):
            length = _common(records, first, second)
            # A retry that was written twice stands side by side; two equal records far apart are every counter's and every heartbeat's.
            enough = length >= FAR_APART if first + length < second else length > 0
            if enough and (best is None or length > best[2]):
                best = (first, second, length)
    if best is None:
        return None
    first, second, length = best
    others = [*records[:first], *records[first + length : second], *records[second + length :]]
    return _run(records[first : first + length], records[second : second + length], others=others)


def _common(records: Sequence[Written], first: int, second: int) -> int:
    """How many records from `first` on stand again from `second` on, without running into each other."""
    most = min(second - first, len(records) - second)
    return next((n for n in range(most) if not _same(records[first + n : first + n + 1], records[second + n : second + n + 1])), most)


def _same(first: Sequence[Written], second: Sequence[Written]) -> bool:
    return all(a.what == b.what and a.comparable and b.comparable for a, b in zip(first, second, strict=True))


def _run(first: Sequence[Written], second: Sequence[Written], *, others: Sequence[Written]) -> Run:
    run = {record.what for record in first}
    return Run(
        tuple(record.offset for record in first),
        tuple(record.offset for record in second),
        distinct=len(run),
        common_elsewhere=any(record.comparable and record.what in run for record in others),
        same_times=all(a.timestamp_ms is not None and a.timestamp_ms == b.timestamp_ms for a, b in zip(first, second, strict=True)),
    )
