"""Up to where each replica log may be read, what holds it back there, and what a read_committed consumer gets of it.

The law is `eo_audit.model.lso`. What is open at the log's end comes from
1. the `.snapshot` at LEO where there is one: up to 2.3 a broker forgets producers whose data is gone, which no replay can know;
2. else the spans without a marker, and open transactions of the newest snapshot that began below the first dumped offset, unless a
   marker of their producer follows.
A closed transaction holds the LSO too while its marker is not below the high watermark. Where the coordinator holds a transaction open
whose data may lie below the dump, nobody knows the LSO, of a log that was not read neither, nor of one whose dumps nothing puts in order:
it is null. Where an older dump shows that data, and the coordinator was dumped no earlier than the log, the LSO is the log start. Where the
marker of what seems open may stand in what is missing behind it the LSO is null, too, and `lso_at_least` says what it cannot be below.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def visibility(
    rows: DataFrame,
    spans: DataFrame,
    producer_snapshots: DataFrame,
    *,
    section_status: DataFrame,
    replica_logs: DataFrame,
    coverage: DataFrame,
    clusters: DataFrame,
    instances: DataFrame,
) -> DataFrame:
    """The table visibility, one row per replica log: log start, high watermark, LEO, LSO, and what is held back.

    Args:
        rows: producer_history up to marker_role.
        spans: transaction_spans.
        producer_snapshots: the table.
        section_status: the table, for the times of dumps.
        replica_logs: the table.
        coverage: the table.
        clusters: the table, for the audit's now.
        instances: transaction_instances; without rows nothing is known of transactions that no batch shows.
    """
    return run(
        "visibility",
        rows=rows,
        spans=spans,
        producer_snapshots=producer_snapshots,
        section_status=section_status,
        replica_logs=replica_logs,
        coverage=coverage,
        clusters=clusters,
        instances=instances,
    )


def mark_visibility(rows: DataFrame, visibility: DataFrame, aborted_transactions: DataFrame, *, section_status: DataFrame) -> DataFrame:
    """The table producer_history: rows with truth, returned, returned_from_segment and below_lso.

    Args:
        rows: producer_history up to marker_role.
        visibility: the table.
        aborted_transactions: the table.
        section_status: the table, for the index sections that are read.
    """
    return run(
        "producer_history", rows=rows, visibility=visibility, aborted_transactions=aborted_transactions, section_status=section_status
    )
