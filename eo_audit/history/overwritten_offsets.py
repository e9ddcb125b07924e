"""overwritten_offsets: what an older dump of a log shows below its high watermark, and the newest one shows otherwise (R01)."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def overwritten_offsets(batches: DataFrame, checkpoints: DataFrame, *, section_status: DataFrame) -> DataFrame:
    """The table overwritten_offsets; no rows where no older dump of a log has a high watermark.

    Args:
        batches: the table; of the sections that are read, and of those that a newer dump replaced.
        checkpoints: the table; those of older dumps as well.
        section_status: the table, for which dump is newer.
    """
    return run("overwritten_offsets", batches=batches, checkpoints=checkpoints, section_status=section_status)
