"""Transactions that the coordinator holds open for a partition, and whose data may lie below the first offset that was dumped.

Such a transaction pins the last stable offset to the log start (`UnifiedLog.fetchLastStableOffsetMetadata`: the first unstable offset, not
below the log start), and no batch that is left shows it. A snapshot would: it names what is open below its offset. One that began after
the oldest marker of the dump would have its data in the dump, too.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Until CompleteX is written its markers may still be on their way, so PrepareX counts as open.
_OPEN = "is_last AND last_status IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')"
_SAME = "producer_id = open_producer_id"
# Seen: the coordinator's instance owns a row here, or its producer id has something open, or a marker that is younger than its start.
_IS_SEEN = f"""base_offset >= log_first_offset AND (instance_id <=> open_instance_id
    OR ({_SAME} AND (span_outcome <=> 'open' OR (row_kind = 'marker' AND max_timestamp_ms + skew_ms >= start_ms))))"""
_OF_LOG = {
    "seen": f"bool_or({_IS_SEEN})",
    "seen_below": "bool_or(base_offset < log_first_offset AND instance_id <=> open_instance_id)",
    "oldest_ms": "min(IF(row_kind = 'marker' AND base_offset >= log_first_offset, max_timestamp_ms, NULL))",
}


def unseen_transactions(instances: DataFrame, rows: DataFrame, replica_logs: DataFrame, clusters: DataFrame) -> DataFrame:
    """The replica logs of which a transaction may be open that began below their first dumped offset.

    Args:
        instances: transaction_instances.
        rows: producer_history up to marker_role.
        replica_logs: the table; a log from offset 0 on, or with a snapshot of its dumped part, hides nothing.
        clusters: the table, for skew_ms.

    Returns:
        replica_log_id, pinned (its data were seen, below: the last stable offset is the log start).
    """
    listed = instances.where(_OPEN).selectExpr(
        "cluster", "instance_id AS open_instance_id", "producer_id AS open_producer_id", "start_ms", "explode(partitions) AS listed"
    )
    # A log from offset 0 on hides nothing, and a snapshot in the dumped part lists all that was open there.
    headless = replica_logs.where("first_offset > 0 AND NOT coalesce(snapshot_offset >= first_offset, false)").selectExpr(
        "replica_log_id", "first_offset AS log_first_offset", "cluster", "topic", "partition"
    )
    placed = listed.selectExpr("*", "listed.topic", "listed.partition").drop("listed")
    skews = clusters.select("cluster", "skew_ms")
    candidates = placed.join(headless, ["cluster", "topic", "partition"]).join(skews, "cluster").drop("cluster", "topic", "partition")
    # Few: one for each partition that a running transaction lists, and only of logs that lack their head.
    compared = rows.join(F.broadcast(candidates), "replica_log_id")
    keys = ["replica_log_id", "open_instance_id", "start_ms", "skew_ms"]
    told = compared.groupBy(*keys).agg(*[F.expr(f"{sql} AS {name}") for name, sql in _OF_LOG.items()])
    # Without a marker in the dump, or a start in the entry, nothing says that it began later.
    unseen = told.where("NOT seen AND (seen_below OR coalesce(start_ms < oldest_ms + skew_ms, true))")
    return unseen.groupBy("replica_log_id").agg(F.expr("bool_or(seen_below) AS pinned"))
