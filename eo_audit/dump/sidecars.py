"""Lines of `.snapshot`, `.txnindex`, `.index` and `.timeindex` dumps: what one line says.

The section a line belongs to is that of the `Dumping` line before it, which the reader of the dump text knows.
"""

import re

from eo_audit.dump.printed import INT, LONG, SHORT, number

Row = dict[str, str | int | None]

# Scala's `Some(n)` and `None` up to 3.4, Java's `OptionalLong` since 3.5.
_OPTIONAL_OFFSET = rb"(?:None|OptionalLong\.empty|Some\((?P<open>-?\d+)\)|OptionalLong\[(?P<open_java>-?\d+)\])"
# The newest form first: nearly all dumps are of it. The second is that of 0.11, the third that of 1.0.0 (`ProducerStateEntry`).
_SNAPSHOT_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        rb"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) coordinatorEpoch: (?P<coordinator_epoch>-?\d+) "
        rb"currentTxnFirstOffset: " + _OPTIONAL_OFFSET + rb"(?: lastTimestamp: (?P<last_timestamp_ms>-?\d+))? ?"
        rb"(?:(?<= )firstSequence: (?P<first_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) lastOffset: (?P<last_offset>-?\d+) "
        rb"offsetDelta: (?P<offset_delta>-?\d+) timestamp: (?P<timestamp_ms>-?\d+))?",
        rb"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
        rb"lastOffset: (?P<last_offset>-?\d+) offsetDelta: (?P<offset_delta>-?\d+) lastTimestamp: (?P<last_timestamp_ms>-?\d+) "
        rb"coordinatorEpoch: (?P<coordinator_epoch>-?\d+) currentTxnFirstOffset: " + _OPTIONAL_OFFSET,
        rb"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) coordinatorEpoch: (?P<coordinator_epoch>-?\d+) "
        rb"currentTxnFirstOffset: " + _OPTIONAL_OFFSET + rb" cachedMetadata: Queue\((?:BatchMetadata\(firstSeq=-?\d+, lastSeq=-?\d+, "
        rb"firstOffset=-?\d+, lastOffset=-?\d+, timestamp=-?\d+\), )*(?:BatchMetadata\(firstSeq=(?P<first_sequence>-?\d+), "
        rb"lastSeq=(?P<last_sequence>-?\d+), firstOffset=(?P<first_offset>-?\d+), lastOffset=(?P<last_offset>-?\d+), "
        rb"timestamp=(?P<timestamp_ms>-?\d+)\))?\)",
    )
)
_SNAPSHOT_BITS = {"producer_epoch": SHORT, "coordinator_epoch": INT, "first_sequence": INT, "last_sequence": INT, "offset_delta": INT}
_SNAPSHOT_COLUMNS = (
    "producer_id", "producer_epoch", "coordinator_epoch", "last_timestamp_ms", "first_sequence", "last_sequence", "last_offset",
    "offset_delta", "timestamp_ms",
)  # fmt: skip
_TXNINDEX_LINE = re.compile(
    rb"version: (?P<version>-?\d+) producerId: (?P<producer_id>-?\d+) firstOffset: (?P<first_offset>-?\d+) "
    rb"lastOffset: (?P<last_offset>-?\d+) lastStableOffset: (?P<last_stable_offset>-?\d+)"
)
# Offset and time indexes are rebuilt from the log whenever a broker misses one: nothing of them is judged.
_INDEX_LINES = {"index": re.compile(rb"offset: -?\d+ position: -?\d+"), "timeindex": re.compile(rb"timestamp: -?\d+ offset: -?\d+")}


def snapshot_row(line: bytes) -> Row | None:
    """Columns of `producer_snapshots` that one line of a `.snapshot` dump prints, in any form since 0.11; None when it is no such line.

    Of a producer with several batches (1.0.0) the newest is kept, as in every other form.
    """
    found = next((match for form in _SNAPSHOT_LINES if (match := form.fullmatch(line))), None)
    if found is None:
        return None
    printed = found.groupdict()
    opened = printed["open"] or printed["open_java"]
    try:
        row: Row = {name: _optional(printed.get(name), _SNAPSHOT_BITS.get(name, LONG)) for name in _SNAPSHOT_COLUMNS}
        # The form of 1.0.0 prints first and last offset where the others print the difference.
        if printed.get("first_offset"):
            row["offset_delta"] = number(str(number(printed["last_offset"]) - number(printed["first_offset"])), INT)
        return row | {"current_txn_first_offset": _optional(opened, LONG)}
    except ValueError:
        return None


def _optional(digits: bytes | None, bits: int) -> int | None:
    return None if digits is None else number(digits, bits)


def txnindex_row(line: bytes) -> Row | None:
    """Columns of `aborted_transactions` that one line of a `.txnindex` dump prints; None when it is no such line."""
    found = _TXNINDEX_LINE.fullmatch(line)
    try:
        return {name: number(digits, INT if name == "version" else LONG) for name, digits in found.groupdict().items()} if found else None
    except ValueError:
        return None


def is_index_line(kind: str, line: bytes) -> bool:
    """Is this an entry of an `.index` or `.timeindex` dump (`kind`)? Such lines hold no fact and count as preamble."""
    form = _INDEX_LINES.get(kind)
    return form is not None and form.fullmatch(line) is not None
