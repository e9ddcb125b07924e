"""What a batch line says of the record lines that must stand behind it."""

from eo_audit.dump.lines.dialects import BatchLine, RecordLine


def owed_records(line: BatchLine) -> int | None:
    """Records the batch must print; None where its line does not say (a compressed wrapper of magic 0 or 1, see `is_last`)."""
    if line.magic < 2:
        # DumpLogSegments prints the wrapper as one batch line, and then each message inside it.
        return 1 if line.codec == "none" else None
    return max(line.record_count or 0, 0)


def is_last(batch: BatchLine, line: RecordLine) -> bool:
    """Is it the last message of a compressed wrapper of magic 0 or 1? It has one at least."""
    # Kafka AbstractLegacyRecordBatch.DeepRecordsIterator throws where a wrapper has no message; its own offset is that of the last one.
    return line.offset == batch.last_offset


def is_next(batch: BatchLine, before: RecordLine | None, line: RecordLine) -> bool:
    """Is a record line, by its form and offset, one of the batch, behind the one before? With as many records as offsets each is then the
    next."""
    if (line.sequence is None) is not (batch.magic < 2):
        return False
    if before is not None:
        return before.offset < line.offset <= batch.last_offset
    # A wrapper's line does not print where its messages begin.
    return (0 if owed_records(batch) is None else batch.base_offset) <= line.offset <= batch.last_offset


def owes_base_offset(line: BatchLine) -> bool:
    """Must the first record line behind a batch line print its base offset, or else was lost?"""
    if line.magic < 2:
        return False
    # A batch with a record for each of its offsets was not thinned out by the cleaner.
    return (line.record_count or 0) > line.last_offset - line.base_offset
