"""The lines that `kafka-dump-log` of 0.11.0 to 2.1 prints: flat, one for each record with `--deep-iteration`, else one for each batch.

Records that print one position are one batch. Its numbers are those of its records: its bounds are its first and last record that the
cleaner left, its size is the distance to the next position. Leader epoch and checksum are not printed at all, and a batch that the
cleaner emptied leaves no trace.
"""

from typing import NamedTuple

from eo_audit.dump.dialects import CODEC, INT_BOUND, LONG_BOUND, SHORT_BOUND, TIMESTAMP, BatchLine, RecordLine, as_printed, is_sound

FLAT = "0.11"
# Columns of a batch that no line tells, whatever its `BatchLine` holds. `isvalid` is the record's own, and of magic 2 always true
# (`DefaultRecord.isValid`).
UNPRINTED = ("partition_leader_epoch", "crc", "crc_valid")
UNPRINTED_OF_LEGACY = ("crc",)
LEAST_BATCH = 26  # bytes: a record of magic 0 without key and value (`LegacyRecord`), the smallest of all
_MARKER_SIZES = (4, 6)  # of key and value of an end-transaction marker (`ControlRecordType`, `EndTransactionMarker`), version 0

# DumpLogSegments.dumpLog, up to 2.1; magic 0 and 1 print their own checksum instead of a producer.
_LINE = as_printed(
    rb"offset: (-?\d{1,19}) position: (\d{1,19}) "
    + TIMESTAMP
    + rb" isvalid: (true|false) keysize: (-?\d{1,10}) valuesize: (-?\d{1,10}) magic: ([0-2]) compresscodec: "
    + CODEC
    + rb"(?: producerId: (-?\d{1,19}) producerEpoch: (-?\d{1,5}) sequence: (-?\d{1,10}) isTransactional: (true|false) headerKeys: (?=\[)"
    rb"| crc: \d{1,10})"
)


# Without --deep-iteration; `count` and `isControl` since 2.0.
_BATCH = as_printed(
    rb"baseOffset: (-?\d{1,19}) lastOffset: (-?\d{1,19}) (?:count: (-?\d{1,10}) )?baseSequence: (-?\d{1,10}) lastSequence: (-?\d{1,10})"
    rb" producerId: (-?\d{1,19}) producerEpoch: (-?\d{1,5}) partitionLeaderEpoch: (-?\d{1,10}) isTransactional: (true|false)"
    rb"(?: isControl: (true|false))? position: (\d{1,19}) "
    + TIMESTAMP
    + rb" isvalid: (true|false) size: (\d{1,10}) magic: (2) compresscodec: "
    + CODEC
    + rb" crc: (\d{1,10})\r?(?=\n|\Z)"
)


class FlatLine(NamedTuple):
    """A record line, with what it says of its batch; the producer's columns are None for magic 0 and 1."""

    record: RecordLine
    position: int
    magic: int
    codec: str
    producer_id: int | None
    producer_epoch: int | None
    is_transactional: bool | None
    is_valid: bool

    @property
    def of_batch(self) -> tuple[object, ...]:
        """What all records of a batch have in common."""
        return (*self[1:7], self.record.timestamp_type)

    @property
    def is_control(self) -> bool:
        """Is it a marker? Data of a transaction has a sequence."""
        sizes = self.record.key_size, self.record.value_size
        return bool(self.is_transactional) and self.record.sequence == -1 and sizes == _MARKER_SIZES

    def continues(self, before: "FlatLine") -> bool:
        """May it be the next record of a batch?"""
        if self.of_batch != before.of_batch or before.is_control or not self._is_behind(before):
            return False
        here, there = self.record.sequence, before.record.sequence
        if here is None or there is None or there < 0:
            return here == there
        # As `DefaultRecordBatch.incrementSequence` counts: records keep their distance when the cleaner takes those between.
        return here == (there + self.record.offset - before.record.offset) % 2**31

    def begins_behind(self, before: "FlatLine") -> bool:
        """May it be the first record of a batch behind?"""
        return self.position >= before.position + LEAST_BATCH and self._is_behind(before)

    def _is_behind(self, before: "FlatLine") -> bool:
        return self.record.offset > before.record.offset


def flat_line(text: bytes, at: int) -> FlatLine | None:
    """The flat record line that starts at `at`, up to its header keys; None where there is none."""
    match = _LINE.match(text, at)
    if match is None:
        return None
    offset, position, kind, timestamp, valid, key, value, magic, codec, producer, epoch, sequence, transactional = match.groups()
    has_producer = producer is not None
    if has_producer != (magic == b"2"):
        return None
    number = int(sequence) if has_producer else None
    record = RecordLine(int(offset), kind.decode(), int(timestamp), int(key), int(value), number, FLAT, match.end() + has_producer)
    line = FlatLine(
        record,
        int(position),
        int(magic),
        codec.lower().decode(),
        int(producer) if has_producer else None,
        int(epoch) if has_producer else None,
        transactional == b"true" if has_producer else None,
        valid == b"true",
    )
    return line if _in_range(line) else None


def _in_range(line: FlatLine) -> bool:
    """Do all numbers fit the fields of Kafka's batches and records?"""
    record = line.record
    longs = (record.offset, record.timestamp_ms, line.position, line.producer_id or 0)
    ints = (record.key_size, record.value_size, record.sequence or 0)
    return (
        all(-LONG_BOUND <= number < LONG_BOUND for number in longs)
        and all(-INT_BOUND <= number < INT_BOUND for number in ints)
        and -SHORT_BOUND <= (line.producer_epoch or 0) < SHORT_BOUND
    )


def flat_batch_line(text: bytes, at: int) -> BatchLine | None:
    """The batch line of a flat dump without records that starts at `at`; its count is None where the release prints none."""
    match = _BATCH.match(text, at)
    if match is None:
        return None
    g = match.groups()
    transactional, sequence = g[8] == b"true", int(g[3])
    line = BatchLine(
        base_offset=int(g[0]),
        last_offset=int(g[1]),
        record_count=None if g[2] is None else int(g[2]),
        base_sequence=sequence,
        last_sequence=int(g[4]),
        producer_id=int(g[5]),
        producer_epoch=int(g[6]),
        partition_leader_epoch=int(g[7]),
        is_transactional=transactional,
        # What the release does not print, the law says: data of a transaction has a sequence.
        is_control=transactional and sequence == -1 if g[9] is None else g[9] == b"true",
        delete_horizon_ms=None,
        position=int(g[10]),
        timestamp_type=g[11].decode(),
        max_timestamp_ms=int(g[12]),
        crc_valid=g[13] == b"true",
        size_bytes=int(g[14]),
        magic=int(g[15]),
        codec=g[16].lower().decode(),
        crc=int(g[17]),
        horizon_printed=False,
        upper=True,
        end=match.end(),
    )
    return line if is_sound(line) else None


def batch_of(lines: list[FlatLine], next_position: int | None) -> BatchLine:
    """The batch that some record lines tell of; what no line prints is 0, None or true (`UNPRINTED`, and the size without a next one)."""
    first, last = lines[0], lines[-1]
    has_producer = first.magic >= 2
    return BatchLine(
        base_offset=first.record.offset,
        last_offset=last.record.offset,
        record_count=len(lines) if has_producer else None,
        base_sequence=first.record.sequence,
        last_sequence=last.record.sequence,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        partition_leader_epoch=None,
        is_transactional=first.is_transactional,
        is_control=first.is_control if has_producer else None,
        delete_horizon_ms=None,
        position=first.position,
        timestamp_type=first.record.timestamp_type,
        max_timestamp_ms=max(line.record.timestamp_ms for line in lines),
        size_bytes=0 if next_position is None else next_position - first.position,
        magic=first.magic,
        codec=first.codec,
        crc=0,
        crc_valid=all(line.is_valid for line in lines),
        horizon_printed=False,
        upper=True,
        end=first.record.end,
    )
