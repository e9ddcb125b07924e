"""Coordinator's logs whose text ends before the log did, though every line of it is whole and no other file says so.

Only the data logs can tell: a coordinator decides before it writes a marker, and nobody but a coordinator writes a COMMIT (an operator's
`kafka-transactions.sh abort` writes ABORTs). So where a producer's data was ended more often than the coordinator decided, and committed
more often than it decided to commit, decisions are missing behind the end of its log. So they are where it was ended with a greater epoch
than any entry of that producer has. Where the coordinator's broker had been stopped, what is missing was lost, and nothing of the text is.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def cut_logs(rows: DataFrame, instances: DataFrame, *, coordinator_history: DataFrame, replica_logs: DataFrame) -> DataFrame:
    """The logs of `__transaction_state` that lack decisions behind their end.

    Args:
        rows: what `sequences.producer_rows` returns.
        instances: the table transaction_instances.
        coordinator_history: the table.
        replica_logs: the table.

    Returns:
        coordinator_log_id, is_cut (true).
    """
    logs = replica_logs.select("replica_log_id", "cluster", "topic", "partition", "clean_end", "hw_source", "listed")
    return run("cut_logs", rows=rows, instances=instances, coordinator_history=coordinator_history, logs=logs)
