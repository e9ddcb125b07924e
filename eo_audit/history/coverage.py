"""coverage: which offsets of each replica log the dumps show, and what breaks them."""

from pyspark.sql import DataFrame

from eo_audit.history.text import no_rows, run


def coverage(ordered: DataFrame, section_status: DataFrame, replica_logs: DataFrame, *, unread_spans: DataFrame | None = None) -> DataFrame:
    """Runs of offsets of each replica log with their state, each with the line where it was seen.

    Args:
        ordered: what `in_log_order` returns.
        section_status: the table.
        replica_logs: the table.
        unread_spans: the table; without it, all text was understood.
    """
    unread = no_rows(ordered.sparkSession, "unread_spans") if unread_spans is None else unread_spans
    return run("coverage", ordered=ordered, section_status=section_status, replica_logs=replica_logs, unread_spans=unread)
