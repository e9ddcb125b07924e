"""Lines of `.snapshot`, `.txnindex`, `.index` and `.timeindex` dumps: what one line says.

The section a line belongs to is that of the `Dumping` line before it, which the reader of the dump text knows. What the lines consist of is
data, as those of a log are (`grammar`); docs/dialects.md has it from here.
"""

import re

from eo_audit.dump.lines.fields import Columns, Field, Kind, Line, Part
from eo_audit.dump.lines.grammar import INT, LONG, SHORT

_BATCH = rb"BatchMetadata\(firstSeq=(%s), lastSeq=(%s), firstOffset=(%s), lastOffset=(%s), timestamp=(%s)\)"
_NUMBERS = tuple(kind.pattern for kind in (INT, INT, LONG, LONG, LONG))
_CACHED, _ANY_CACHED = re.compile(_BATCH % _NUMBERS), _BATCH.replace(b"(%s)", b"%s") % _NUMBERS
QUEUE = Kind(
    "`Queue(BatchMetadata(..), ..)`: of the last one the columns of the other forms are kept",
    rb"Queue\((?:%s(?:, %s)*)?\)" % (_ANY_CACHED, _ANY_CACHED),
    1_000,
)
OPTIONAL_OFFSET = Kind(
    "long: `Some(12)` or `None` up to 3.4, then `OptionalLong[12]` or `OptionalLong.empty`",
    rb"(?:None|OptionalLong\.empty|Some\(%s\)|OptionalLong\[%s\])" % (LONG.pattern, LONG.pattern),
    len("OptionalLong[]") + LONG.longest,
    lambda printed: LONG.read(printed[printed.index(digits[0]) : -1]) if (digits := re.findall(rb"-?\d+", printed)) else None,
)
_CURRENT = Field("currentTxnFirstOffset", OPTIONAL_OFFSET, "current_txn_first_offset")
_COORDINATOR = Field("coordinatorEpoch", INT, "coordinator_epoch")
_WHOSE = Field("producerId", LONG, "producer_id"), Field("producerEpoch", SHORT, "producer_epoch")
_SEQUENCE, _OFFSET = Field("lastSequence", INT, "last_sequence"), Field("lastOffset", LONG, "last_offset")
_DELTA, _SEEN = Field("offsetDelta", INT, "offset_delta"), Field("lastTimestamp", LONG, "last_timestamp_ms")

# DumpLogSegments.dumpProducerIdSnapshot; a blank stands behind each field, so behind the last one as well where there is no batch.
SNAPSHOT = Line(
    *_WHOSE,
    _COORDINATOR,
    _CURRENT,
    Part("3.1 and later", (_SEEN,)),
    Part(
        "of a producer with a batch",
        (Field("firstSequence", INT, "first_sequence"), _SEQUENCE, _OFFSET, _DELTA, Field("timestamp", LONG, "timestamp_ms")),
    ),
    behind=rb" ?",
)
SNAPSHOT_0_11 = Line(*_WHOSE, _SEQUENCE, _OFFSET, _DELTA, _SEEN, _COORDINATOR, _CURRENT)
SNAPSHOT_1_0 = Line(*_WHOSE, _COORDINATOR, _CURRENT, Field("cachedMetadata", QUEUE))
TXNINDEX = Line(
    Field("version", INT, "version"),
    Field("producerId", LONG, "producer_id"),
    Field("firstOffset", LONG, "first_offset"),
    Field("lastOffset", LONG, "last_offset"),
    Field("lastStableOffset", LONG, "last_stable_offset"),
)
# Offset and time indexes are rebuilt from the log whenever a broker misses one: nothing of them is judged.
INDEX = Line(Field("offset", LONG), Field("position", LONG))
TIMEINDEX = Line(Field("timestamp", LONG), Field("offset", LONG))

Row = Columns
_OF_A_BATCH = ("first_sequence", "last_sequence", "last_offset", "timestamp_ms")


def snapshot_row(line: bytes) -> Row | None:
    """Columns of `producer_snapshots` that one line of a `.snapshot` dump prints, in any form since 0.11; None when it is no such line.

    Of a producer with several batches (1.0.0) the newest is kept, as in every other form.
    """
    for form in (SNAPSHOT, SNAPSHOT_1_0, SNAPSHOT_0_11):  # nearly all dumps are of the newest
        if found := form.pattern.fullmatch(line):
            row = form.read(found)
            return row and _with_newest(dict.fromkeys(SNAPSHOT.columns) | row, line)
    return None


def _with_newest(row: Row, line: bytes) -> Row | None:
    """The row with the columns of the newest batch of a queue, which has first and last offset where the others print the difference."""
    batches = _CACHED.findall(line)
    if not batches:
        return row
    first_sequence, last_sequence, first_offset, last_offset, timestamp_ms = batches[-1]
    printed = (INT, first_sequence), (INT, last_sequence), (LONG, last_offset), (LONG, timestamp_ms)
    try:
        columns = {column: kind.read(digits) for column, (kind, digits) in zip(_OF_A_BATCH, printed, strict=True)}
        return row | columns | {"offset_delta": INT.read(b"%d" % (int(last_offset) - int(first_offset)))}
    except ValueError:
        return None


def txnindex_row(line: bytes) -> Row | None:
    """Columns of `aborted_transactions` that one line of a `.txnindex` dump prints; None when it is no such line."""
    found = TXNINDEX.pattern.fullmatch(line)
    return TXNINDEX.read(found) if found else None


def is_index_line(kind: str, line: bytes) -> bool:
    """Is this an entry of an `.index` or `.timeindex` dump (`kind`)? Such lines hold no fact and count as preamble."""
    form = {"index": INDEX, "timeindex": TIMEINDEX}.get(kind)
    return form is not None and form.pattern.fullmatch(line) is not None
