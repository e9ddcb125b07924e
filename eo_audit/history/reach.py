"""How far the coordinator's logs tell: of which producers, from when and until when.

A dump is a set of moments: each log was read at its own. Nothing is concluded from the absence of an entry that may be younger than the
dump of the log where it should stand. So a coordinator's log tells of the time up to its newest entry, and up to the moment at which its
own dump began where the collection wrote that down; one time for a whole collection tells nothing of its parts.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def coordinator_logs(replica_logs: DataFrame, clusters: DataFrame) -> DataFrame:
    """The logs of `__transaction_state`, each with the time up to which it tells all.

    Args:
        replica_logs: the table.
        clusters: the table, for skew_ms.

    Returns:
        cluster, partition, coordinator_log_id, coordinator_broker, coordinator_dumped_at_ms, stopped_with (brokers that stopped when this
        log had ended as it was dumped; none while they run), tail_intact, is_empty, coordinator_noted_at (its line in dumped-at.txt),
        told_until_ms (on the coordinator's clock; null for a log without an entry, of unknown dump time), dumped_ms (the dump surely began
        behind it), end_offset.
    """
    return run("coordinator_logs", replica_logs=replica_logs, clusters=clusters)


def reach(coordinator_history: DataFrame, replica_logs: DataFrame, clusters: DataFrame, cut_logs: DataFrame) -> DataFrame:
    """Per producer id: how far its story in the coordinator's log is known.

    The end of the log may be missing though the text ends as it should: a snapshot tells how far the log went.

    Args:
        coordinator_history: the table.
        replica_logs: the table.
        clusters: the table.
        cut_logs: what `cut_logs.cut_logs` returns.

    Returns:
        cluster, producer_id, has_story (true), known_from_ms (null: from its beginning), known_until_ms, the epochs of the leaders whose
        clocks these are (known_from_epoch, known_until_epoch), known_from_offset (in the coordinator's log), the producer's own epoch
        there (known_from_producer_epoch), the smallest epoch of a marker whose decision is not told (untold_epoch), lost_behind (lines
        behind its last entry were lost), what `coordinator_logs` says of the log it stands in, and coordinator_latest_ms, the latest time
        that its newest leader wrote.
    """
    logs = coordinator_logs(replica_logs, clusters)
    return run("reach", coordinator_history=coordinator_history, coordinator_logs=logs, cut_logs=cut_logs)


def whole_logs(coordinator_history: DataFrame, replica_logs: DataFrame, clusters: DataFrame, cut_logs: DataFrame) -> DataFrame:
    """Per cluster: whether its coordinator logs were dumped from the first entry to the last, so that a producer without entries has no
    transaction, and until when that is so.

    The partitions of one broker are dumped one right after the other; the newest entry of any of them tells of all.

    Returns:
        cluster, whole, whole_until_ms, whole_stopped_with (brokers that stopped when all coordinator logs had ended as they were dumped),
        only_cleaned (nothing is missing but what the cleaner took: it leaves the newest entry of each id), as_listed (all segments that
        listings show were dumped), copies (of each broker with a copy of every one of these logs that is as long as any, when the first of
        them was dumped).
    """
    logs = coordinator_logs(replica_logs, clusters)
    return run("whole_logs", coordinator_history=coordinator_history, coordinator_logs=logs, clusters=clusters, cut_logs=cut_logs)
