"""The lines that `kafka-dump-log` of 0.11.0 to 2.1 prints: flat, one for each record with `--deep-iteration`, else one for each batch.

Records that print one position are one batch. Its numbers are those of its records: its bounds are its first and last record that the
cleaner left, its size is the distance to the next position. Leader epoch and checksum are not printed at all, nor is the epoch of the
producer by 0.11.0.0 and 0.11.0.1 (`DumpLogSegments.dumpLog`), and a batch that the cleaner emptied leaves no trace.
"""

from typing import NamedTuple

from eo_audit.dump.lines.dialects import BATCH_OVERHEAD, BatchLine, RecordLine, batch_with, record_with
from eo_audit.dump.lines.fields import Columns, Value
from eo_audit.dump.lines.grammar import FLAT_BATCH, FLAT_RECORD

FLAT = "0.11"
LEAST_BATCH = 26  # bytes: a record of magic 0 without key and value (`LegacyRecord`), the smallest of all
_MARKER_SIZES = (4, 6)  # of key and value of an end-transaction marker (`ControlRecordType`, `EndTransactionMarker`), version 0
# Of a batch; the others are of the record, and so is `crc_valid`, which of magic 2 is always true (`DefaultRecord.isValid`).
_OF_BATCH = ("position", "magic", "codec", "producer_id", "producer_epoch", "is_transactional", "timestamp_type")


class FlatLine(NamedTuple):
    """A record line, with what it says of its batch: `is_transactional` is None for magic 0 and 1."""

    record: RecordLine
    position: int
    magic: int
    codec: str
    is_transactional: bool | None

    @property
    def of_batch(self) -> tuple[Value, ...]:
        """What all records of a batch have in common."""
        return tuple(map(self.record.columns.get, _OF_BATCH))

    @property
    def shows_epoch(self) -> bool:
        """Is the epoch of its producer printed? 0.11.0.0 and 0.11.0.1 do not, and neither do records of magic 0 and 1."""
        return "producer_epoch" in self.record.columns

    @property
    def is_control(self) -> bool:
        """Is it a marker? Data of a transaction has a sequence."""
        sizes = self.record.key_size, self.record.value_size
        return bool(self.is_transactional) and self.record.sequence == -1 and sizes == _MARKER_SIZES

    @property
    def may_be_first(self) -> bool:
        """May it be the first line of its segment: behind nothing but batches that the cleaner emptied?"""
        return self.position % BATCH_OVERHEAD == 0

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
        """May it be the first record of a batch behind? One release printed all lines: they show the epochs of producers, or none does."""
        is_alike = min(self.magic, before.magic) < 2 or self.shows_epoch == before.shows_epoch
        return is_alike and self.position >= before.position + LEAST_BATCH and self._is_behind(before)

    def _is_behind(self, before: "FlatLine") -> bool:
        return self.record.offset > before.record.offset


def flat_line(text: bytes, at: int) -> FlatLine | None:
    """The flat record line that starts at `at`, up to its header keys; None where there is none."""
    match = FLAT_RECORD.pattern.match(text, at)
    columns = FLAT_RECORD.read(match) if match else None
    if match is None or columns is None or ("producer_id" in columns) != (columns["magic"] == 2):
        return None
    return FlatLine._make((record_with(columns, style=FLAT, end=match.end()), *map(columns.get, FlatLine._fields[1:])))


def flat_batch_line(text: bytes, at: int) -> BatchLine | None:
    """The batch line of a flat dump without records that starts at `at`; its count is None where the release prints none."""
    match = FLAT_BATCH.pattern.match(text, at)
    columns = FLAT_BATCH.read(match) if match else None
    if match is None or columns is None:
        return None
    # What the release does not print, the law says: data of a transaction has a sequence.
    columns.setdefault("is_control", columns["is_transactional"] is True and columns["base_sequence"] == -1)
    line = batch_with(columns, upper=True, end=match.end())
    return line if line.is_sound else None


def batch_of(lines: list[FlatLine], next_position: int | None) -> BatchLine:
    """The batch that some record lines tell of; what no line prints is no column, and its size is 0 where no next position tells it."""
    first, last = lines[0], lines[-1]
    columns: Columns = {name: first.record.columns[name] for name in _OF_BATCH if name in first.record.columns}
    columns |= {
        "base_offset": first.record.offset,
        "last_offset": last.record.offset,
        "base_sequence": first.record.sequence,
        "last_sequence": last.record.sequence,
        "max_timestamp_ms": max(line.record.timestamp_ms for line in lines),
    }
    if first.magic >= 2:
        columns |= {"count": len(lines), "is_control": first.is_control}
    else:
        columns["crc_valid"] = all(line.record.columns["crc_valid"] for line in lines)
    if next_position is not None:
        columns["size_bytes"] = next_position - first.position
    line = batch_with(columns, upper=True, end=first.record.end)
    return line._replace(size_bytes=line.size_bytes or 0)
