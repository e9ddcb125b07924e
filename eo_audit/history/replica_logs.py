"""replica_logs: what is known of each replica log beside its batches."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def replica_logs(section_status: DataFrame, checkpoints: DataFrame, listed_files: DataFrame, manifest_entries: DataFrame) -> DataFrame:
    """One row per replica log with at least one log section, read or of an unsupported dialect.

    Args:
        section_status: the table.
        checkpoints: the table; only rows of sections that are read count.
        listed_files: the table; the same.
        manifest_entries: the table; the same.
    """
    return run(
        "replica_logs",
        section_status=section_status,
        checkpoints=checkpoints,
        listed_files=listed_files,
        manifest_entries=manifest_entries,
    )
