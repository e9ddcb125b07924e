"""The lines that `kafka-dump-log` prints for a log segment, release by release (2.2 to 4.3), as data.

A batch line is all numbers and enums: what matches one is read, what does not is no batch line. A record line is matched up to its header
keys (magic 2) or its last number (magic 0 and 1): the text behind is somebody's data and delimited elsewhere.
"""

import re
from typing import NamedTuple

UNSUPPORTED = "0.11-2.1"
LONGEST_LINE = 1024  # bytes: no batch line, preamble line or beginning of a record line is longer

# Digits beyond a field's width are no line of the tool's: they cannot stand in a table either.
LONG_BOUND, INT_BOUND, SHORT_BOUND, _U32 = 1 << 63, 1 << 31, 1 << 15, 1 << 32


def as_printed(pattern: bytes) -> re.Pattern[bytes]:
    """The pattern compiled, with each `\\d{1,n}` in it as Java prints a number: without zeros before it, and no `-0`."""
    return re.compile(
        re.sub(rb"(-\?)?\\d\{1,(\d+)\}", lambda found: rb"(?:0|%s[1-9]\d{0,%d})" % (found[1] or b"", int(found[2]) - 1), pattern)
    )


CODEC = rb"(NONE|GZIP|SNAPPY|LZ4|ZSTD|none|gzip|snappy|lz4|zstd)"
TIMESTAMP = rb"(CreateTime|LogAppendTime|NoTimestampType): (-?\d{1,19})"
# DumpLogSegments.printBatchLevel, magic 2, from 2.2 on; `deleteHorizonMs` since 3.2 (KIP-534, printed as a Java OptionalLong).
_BATCH = as_printed(
    rb"baseOffset: (-?\d{1,19}) lastOffset: (-?\d{1,19}) count: (-?\d{1,10}) baseSequence: (-?\d{1,10}) lastSequence: (-?\d{1,10})"
    rb" producerId: (-?\d{1,19}) producerEpoch: (-?\d{1,5}) partitionLeaderEpoch: (-?\d{1,10}) isTransactional: (true|false)"
    rb" isControl: (true|false)(?: (deleteHorizonMs): OptionalLong(?:\.empty|\[(-?\d{1,19})\]))? position: (\d{1,19}) "
    + TIMESTAMP
    + rb" size: (\d{1,10}) magic: ([2-9]) compresscodec: "
    + CODEC
    + rb" crc: (\d{1,10}) isvalid: (true|false)(\r?)(?=\n|\Z)"
)
# Magic 0 and 1: what was converted, or written before 0.11, and still lies on a disk.
_LEGACY_BATCH = as_printed(
    rb"offset: (-?\d{1,19}) position: (\d{1,19}) "
    + TIMESTAMP
    + rb" size: (\d{1,10}) magic: ([01]) compresscodec: "
    + CODEC
    + rb" crc: (\d{1,10}) isvalid: (true|false)(\r?)(?=\n|\Z)"
)
# Three spellings: `keysize` up to 2.7, the superset line of 2.8 (which 3.0 took back), `keySize` since 3.0. In 3.0 to 4.2 a stray `}`
# stands behind the crc of a legacy record.
_RECORD = as_printed(
    rb"\| offset: (-?\d{1,19}) (?:isValid: (?:true|false) crc: (?:null|\d{1,10}) keySize: (-?\d{1,10}) valueSize: (-?\d{1,10}) )?"
    + TIMESTAMP
    + rb"(?: baseOffset: -?\d{1,19} lastOffset: -?\d{1,19} baseSequence: -?\d{1,10} lastSequence: -?\d{1,10} producerEpoch: -?\d{1,5}"
    rb" partitionLeaderEpoch: -?\d{1,10} batchSize: \d{1,10} magic: \d compressType: \w{1,8} position: \d{1,19})?"
    rb"(?: (key)[sS]ize: (-?\d{1,10}) value[sS]ize: (-?\d{1,10}))?"
    rb"(?: sequence: (-?\d{1,10}) headerKeys: (?=\[)| crc: \d{1,10} isvalid: (?:true|false)| isValid: (?:true|false) crc: \d{1,10}\}?)"
)
# Named to the user, and not read: a tool of 2.2 or later prints the same segments.
OLD_LINE = re.compile(
    rb"baseOffset: -?\d+ lastOffset: -?\d+ (?:count: -?\d+ )?baseSequence: [^\n]{1,400} isvalid: (?:true|false) size: "
    rb"|offset: -?\d+ position: \d+ (?:CreateTime|LogAppendTime|NoTimestampType): -?\d+ isvalid: (?:true|false) (?:key)?size: "
)
"""A batch or record line of a dump tool before 2.2: `isvalid` stands before the sizes."""

# Told apart from facts, but not kept: the one word that matters is `Log`, which 3.3 put in front (`dialect`).
PREAMBLE = as_printed(
    rb"(?:(?P<log>Log )?[sS]tarting offset: -?\d{1,19}|KRaft bootstrap snapshot|Snapshot end offset: -?\d{1,19}, epoch: -?\d{1,10}"
    rb"|kafka\.serializer\.\w{1,16}Decoder is deprecated\. [^\n]{1,200})\r?(?=\n|\Z)"
)
# 4096 is PATH_MAX of Linux: what is longer was never opened, so it was never dumped. A path with the tool's own word in it is what is left
# of a line that was cut, with another dump right behind it: a broker's folders are called by partitions, which have no spaces.
DUMPING = re.compile(rb"Dumping (?![^\r\n\0]*Dumping )([^\r\n\0]{1,4096})\r?(?=\n|\Z)")

CONTROL = as_printed(
    # A coordinator's epoch is its leader epoch; only an operator may give another one (`kafka-transactions.sh abort --coordinator-epoch`).
    rb" (?:endTxnMarker: (?P<marker>COMMIT(?! coordinatorEpoch: -)|ABORT) coordinatorEpoch: (?P<epoch>-?\d{1,10})"
    rb"|(?P<name>SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters|LeaderChange):? \{[^\n]*\}"
    rb"|controlType: (?P<type>\w{1,40})\(-?\d{1,10}\))\r?(?=\n|\Z)"
)
# The names of `ControlRecordType`; the tool prints those of its own Java classes.
CONTROL_TYPES = {
    b"SnapshotHeader": "SNAPSHOT_HEADER",
    b"SnapshotFooter": "SNAPSHOT_FOOTER",
    b"KRaftVersion": "KRAFT_VERSION",
    b"KRaftVoters": "KRAFT_VOTERS",
    b"LeaderChange": "LEADER_CHANGE",
}


class BatchLine(NamedTuple):
    """The fields of a batch line, named as the columns of `batches`, with None where its magic has none; `end` is where its text ends.

    `horizon_printed`: the line has a `deleteHorizonMs` field (3.2 and later). `upper`: the codec is in upper case (up to 2.8).
    """

    base_offset: int
    last_offset: int
    record_count: int | None
    base_sequence: int | None
    last_sequence: int | None
    producer_id: int | None
    producer_epoch: int | None
    partition_leader_epoch: int | None
    is_transactional: bool | None
    is_control: bool | None
    delete_horizon_ms: int | None
    position: int
    timestamp_type: str
    max_timestamp_ms: int
    size_bytes: int
    magic: int
    codec: str
    crc: int
    crc_valid: bool
    horizon_printed: bool
    upper: bool
    end: int


class RecordLine(NamedTuple):
    """The fields of a record line up to its text; `sequence` is None for magic 0 and 1, `end` is where header keys or key would start.

    `style` is 2.2 (`keysize`), 2.8 (the superset line) or 3.0 (`keySize`).
    """

    offset: int
    timestamp_type: str
    timestamp_ms: int
    key_size: int
    value_size: int
    sequence: int | None
    style: str
    end: int


def _in_range(line: BatchLine) -> bool:
    """Do all numbers fit the fields of Kafka's batch header?"""
    # The regular expressions bound digits, not values: 19 digits may be more than a long. One chain, without a tuple or a call: this is
    # asked twice of each line that only the careful reader reads, and took 5 % of its time.
    return (
        -LONG_BOUND <= line.base_offset < LONG_BOUND
        and -LONG_BOUND <= line.last_offset < LONG_BOUND
        and -LONG_BOUND <= (line.producer_id or 0) < LONG_BOUND
        and -LONG_BOUND <= (line.delete_horizon_ms or 0) < LONG_BOUND
        and -LONG_BOUND <= line.position < LONG_BOUND
        and -LONG_BOUND <= line.max_timestamp_ms < LONG_BOUND
        and -INT_BOUND <= (line.record_count or 0) < INT_BOUND
        and -INT_BOUND <= (line.base_sequence or 0) < INT_BOUND
        and -INT_BOUND <= (line.last_sequence or 0) < INT_BOUND
        and -INT_BOUND <= (line.partition_leader_epoch or 0) < INT_BOUND
        and -INT_BOUND <= line.size_bytes < INT_BOUND
        and -SHORT_BOUND <= (line.producer_epoch or 0) < SHORT_BOUND
        and line.crc < _U32
    )


def batch_line(text: bytes, at: int) -> BatchLine | None:
    """The batch line that starts at `at`, or None."""
    if match := _BATCH.match(text, at):
        line = _batch(match)
    elif match := _LEGACY_BATCH.match(text, at):
        line = _legacy_batch(match)
    else:
        return None
    return line if is_sound(line) else None


def is_sound(line: BatchLine) -> bool:
    """Do the numbers of a batch line fit Kafka's fields, and each other?"""
    return _in_range(line) and _agrees_with_itself(line)


def _agrees_with_itself(line: BatchLine) -> bool:
    """Is the last sequence the one that follows? Kafka DefaultRecordBatch.lastSequence computes it, as `incrementSequence` does."""
    if line.base_sequence is None or line.last_sequence is None:
        return True
    last = line.last_offset - line.base_offset
    return line.last_sequence == (-1 if line.base_sequence < 0 else (line.base_sequence + last) % 2**31)


def _batch(match: re.Match[bytes]) -> BatchLine:
    g = match.groups()
    return BatchLine(
        base_offset=int(g[0]),
        last_offset=int(g[1]),
        record_count=int(g[2]),
        base_sequence=int(g[3]),
        last_sequence=int(g[4]),
        producer_id=int(g[5]),
        producer_epoch=int(g[6]),
        partition_leader_epoch=int(g[7]),
        is_transactional=g[8] == b"true",
        is_control=g[9] == b"true",
        delete_horizon_ms=None if g[11] is None else int(g[11]),
        position=int(g[12]),
        timestamp_type=g[13].decode(),
        max_timestamp_ms=int(g[14]),
        size_bytes=int(g[15]),
        magic=int(g[16]),
        codec=g[17].lower().decode(),
        crc=int(g[18]),
        crc_valid=g[19] == b"true",
        horizon_printed=g[10] is not None,
        upper=g[17].isupper(),
        end=match.end(),
    )


def _legacy_batch(match: re.Match[bytes]) -> BatchLine:
    """A magic 0 or 1 line: its one offset is the last (of a compressed wrapper: `Group.base_offset`), and producers were unknown then."""
    g = match.groups()
    return BatchLine(
        base_offset=int(g[0]),
        last_offset=int(g[0]),
        record_count=None,
        base_sequence=None,
        last_sequence=None,
        producer_id=None,
        producer_epoch=None,
        partition_leader_epoch=None,
        is_transactional=None,
        is_control=None,
        delete_horizon_ms=None,
        position=int(g[1]),
        timestamp_type=g[2].decode(),
        max_timestamp_ms=int(g[3]),
        size_bytes=int(g[4]),
        magic=int(g[5]),
        codec=g[6].lower().decode(),
        crc=int(g[7]),
        crc_valid=g[8] == b"true",
        horizon_printed=False,
        upper=g[6].isupper(),
        end=match.end(),
    )


def record_line(text: bytes, at: int) -> RecordLine | None:
    """The beginning of the record line that starts at `at`, or None."""
    match = _RECORD.match(text, at)
    if match is None:
        return None
    offset, super_key, super_value, kind, timestamp, plain, key, value, sequence = match.groups()
    # Sizes stand in one of two places, by dialect: in both or in neither is no line of any release.
    if (super_key is None) == (plain is None):
        return None
    sizes = int(key or super_key), int(value or super_value)
    number = None if sequence is None else int(sequence)
    fits = (
        -LONG_BOUND <= int(offset) < LONG_BOUND and -LONG_BOUND <= int(timestamp) < LONG_BOUND and -INT_BOUND <= (number or 0) < INT_BOUND
    )
    if not (fits and -INT_BOUND <= sizes[0] < INT_BOUND and -INT_BOUND <= sizes[1] < INT_BOUND):
        return None
    # The spelling of `keysize` is the one thing in which the record lines of 2.2 and 3.0 differ.
    style = "2.8" if super_key is not None else "2.2" if match.group(0).find(b" keysize: ") > 0 else "3.0"
    return RecordLine(int(offset), kind.decode(), int(timestamp), sizes[0], sizes[1], number, style, match.end() + (sequence is not None))


def dialect(line: BatchLine, *, style: str | None, log_starting: bool | None) -> str:
    """Release family of the tool that printed a batch line, by the fingerprints of its line, of its records and of the preamble.

    Args:
        line: a batch line.
        style: `RecordLine.style` where a record line was seen.
        log_starting: the preamble says `Log starting offset` (3.3 and later), `Starting offset` (False), or was not seen (None).
    """
    # Codec names are printed in upper case up to 2.8 and in lower case since 3.0.
    if line.upper:
        return "2.8" if style == "2.8" else "2.2"
    if log_starting:
        return "3.3"
    return "3.2" if line.horizon_printed else "3.0"
