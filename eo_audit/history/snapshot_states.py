"""What each producer snapshot says beside what a replay of the log below it gives: what S01 judges."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def snapshot_states(
    rows: DataFrame,
    producer_snapshots: DataFrame,
    *,
    section_status: DataFrame,
    replica_logs: DataFrame,
    visibility: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """The table snapshot_states: one row per producer of a log's newest snapshot, or of the log below it; of older ones what is wrong.

    Args:
        rows: producer_history.
        producer_snapshots: the table.
        section_status: the table, for the snapshots that are read.
        replica_logs: the table, for the newest snapshot of each log.
        visibility: the table, for what is not covered.
        clusters: the table, for how long a broker remembers a producer.
    """
    return run(
        "snapshot_states",
        rows=rows,
        producer_snapshots=producer_snapshots,
        section_status=section_status,
        replica_logs=replica_logs,
        visibility=visibility,
        clusters=clusters,
    )
