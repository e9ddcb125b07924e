"""overwritten_offsets: what an older dump of a log shows below its high watermark, and the newest one shows otherwise (R01)."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def contested_sections(checkpoints: DataFrame, *, section_status: DataFrame) -> DataFrame:
    """Sections of older dumps that a later leader epoch may contradict, with those that are read of the same logs; mostly none.

    Args:
        checkpoints: the table; those of older dumps as well.
        section_status: the table, for which dump is newer.

    Returns:
        section_id, replica_log_id, dump_set, dumped_at_ms, is_read, hw (the older dump's high watermark; null of what is read).
    """
    return run("contested_sections", checkpoints=checkpoints, section_status=section_status)


def overwritten_offsets(batches: DataFrame, checkpoints: DataFrame, *, contested: DataFrame, section_status: DataFrame) -> DataFrame:
    """The table overwritten_offsets.

    Args:
        batches: the table; those of the contested sections count.
        checkpoints: the table, for the beginnings of leader epochs.
        contested: what `contested_sections` returns.
        section_status: the table, for times and places.
    """
    return run("overwritten_offsets", batches=batches, checkpoints=checkpoints, contested=contested, section_status=section_status)
