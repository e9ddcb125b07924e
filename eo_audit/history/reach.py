"""How far the coordinator's logs tell: of which producers, from when and until when.

A dump is a set of moments: each log was read at its own. Nothing is concluded from the absence of an entry that may be younger than the
dump of the log where it should stand. So a coordinator's log tells of the time up to its newest entry, and up to the moment at which its
own dump began where the collection wrote that down; one time for a whole collection tells nothing of its parts.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.clusters import COORDINATOR_TOPIC

# The dumping machine's clock and that of the coordinator's leader are one clock or nearly so: a replica may lie on another broker.
_DUMPED = "dumped_at_ms - skew_ms"
_WHEN_DUMPED = ("coordinator_dumped_at_ms", "coordinator_noted_at")
_OF_LOG = ("coordinator_log_id", "coordinator_broker", *_WHEN_DUMPED)
# Brokers are stopped one after another, and a copy that stopped first lacks what was written later (KIP-101). That two logs ended at one
# moment is told by their broker, or by a broker's own copy of the coordinator's log that ends where the copy which tells of it does. What
# has no broker's name is one broker's.
_BROKER = "coalesce(broker, -1)"
_COPIES = "PARTITION BY cluster, partition, leo"
_TOGETHER = f"coalesce(clean_end AND array_contains({{brokers}}, {_BROKER}), false)"
STOPPED_TOGETHER = _TOGETHER.format(brokers="stopped_with")  # a log, and the coordinator's log that tells of the producer
STOPPED_WITH_ALL = _TOGETHER.format(brokers="whole_stopped_with")  # a log, and all of the coordinator's


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
    tolerance = F.broadcast(clusters.select("cluster", "skew_ms"))
    logs = replica_logs.where(f"topic = '{COORDINATOR_TOPIC}'").join(tolerance, "cluster")
    return logs.selectExpr(
        *("cluster", "replica_log_id AS coordinator_log_id", "broker AS coordinator_broker", "dumped_at_ms AS coordinator_dumped_at_ms"),
        "noted_at AS coordinator_noted_at",
        f"IF(clean_end, collect_set(IF(clean_end, {_BROKER}, NULL)) OVER ({_COPIES}), NULL) AS stopped_with",
        *("coalesce(tail_intact, true) AS tail_intact", "newest_broker_clock_ms IS NULL AS is_empty", "partition", "leo AS end_offset"),
        *(f"greatest(newest_broker_clock_ms, {_DUMPED}) AS told_until_ms", f"{_DUMPED} AS dumped_ms"),
    )


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
        clocks these are (known_from_epoch, known_until_epoch), known_from_offset (in the coordinator's log), what `coordinator_logs` says
        of the log it stands in, and coordinator_latest_ms, the latest time that its newest leader wrote.
    """
    # A row for each replica of a partition of `__transaction_state`, 50 by default (transaction.state.log.num.partitions).
    logs = F.broadcast(coordinator_logs(replica_logs, clusters).drop("cluster", "partition"))
    # Where the head of the log was deleted or never dumped, what a producer did before its first entry left there is unknown.
    entry = "struct(batch_timestamp_ms AS at_ms, partition_leader_epoch AS epoch, entry_offset)"
    bound = f"IF(previous_offset IS NULL AND NOT head_known, {entry}, NULL)"
    to_the_end = "bool_and(tail_known AND coalesce(tail_intact, true) AND NOT is_cut)"
    of_log = f"max(struct({', '.join(_OF_LOG)}, stopped_with))"
    entries = _with_cuts(coordinator_history, cut_logs)
    # The clock of an older leader, or of one that was set back, may show a later time than the log's last entry.
    newest = entries.groupBy("coordinator_log_id").agg(
        F.expr("max(partition_leader_epoch) AS newest_epoch"),
        F.expr("max_by(batch_timestamp_ms, entry_offset) AS newest_at_ms"),
        F.expr("max(struct(partition_leader_epoch AS epoch, batch_timestamp_ms AS at_ms)).at_ms AS latest_ms"),
    )
    told = (
        entries.where("producer_id IS NOT NULL")
        .join(logs, "coordinator_log_id", "left")
        .join(F.broadcast(newest), "coordinator_log_id", "left")
        .groupBy("cluster", "producer_id")
        .agg(
            F.expr(f"max({bound}) AS known_from"),
            F.expr("max(newest_epoch) AS known_until_epoch"),
            F.expr(f"{to_the_end} AS to_the_end"),
            F.expr("max_by(batch_timestamp_ms, entry_offset) AS newest_ms"),
            F.expr("min(greatest(newest_at_ms, dumped_ms)) AS told_until_ms"),
            F.expr("max(latest_ms) AS coordinator_latest_ms"),
            F.expr(f"{of_log} AS log"),
        )
    )
    return told.selectExpr(
        *("cluster", "producer_id", "true AS has_story", "known_from.at_ms AS known_from_ms", "known_from.epoch AS known_from_epoch"),
        *("known_from.entry_offset AS known_from_offset", "known_until_epoch", "coordinator_latest_ms"),
        "IF(to_the_end, greatest(newest_ms, told_until_ms), newest_ms) AS known_until_ms",
        *(
            "log.coordinator_log_id",
            "log.coordinator_broker",
            *(f"IF(to_the_end, log.{name}, NULL) AS {name}" for name in _WHEN_DUMPED),
        ),
        "IF(to_the_end, log.stopped_with, NULL) AS stopped_with",
    )


def _with_cuts(coordinator_history: DataFrame, cut_logs: DataFrame) -> DataFrame:
    entries = coordinator_history.withColumnRenamed("replica_log_id", "coordinator_log_id")
    return entries.join(F.broadcast(cut_logs), "coordinator_log_id", "left").fillna(False, ["is_cut"])


def whole_logs(coordinator_history: DataFrame, replica_logs: DataFrame, clusters: DataFrame, cut_logs: DataFrame) -> DataFrame:
    """Per cluster: whether its coordinator logs were dumped from the first entry to the last, so that a producer without entries has no
    transaction, and until when that is so.

    The partitions of one broker are dumped one right after the other; the newest entry of any of them tells of all.

    Returns:
        cluster, whole, whole_until_ms, whole_stopped_with (brokers that stopped when all coordinator logs had ended as they were dumped),
        only_cleaned (nothing is missing but what the cleaner took: it leaves the newest entry of each id).
    """
    contiguous = (
        _with_cuts(coordinator_history, cut_logs)
        .groupBy("cluster")
        .agg(
            F.expr("bool_and(log_contiguous AND tail_known AND NOT is_cut) AS contiguous"),
            F.expr("bool_and(tail_known AND NOT is_cut) AS to_the_end"),
        )
    )
    logs = coordinator_logs(replica_logs, clusters)
    of_broker = logs.groupBy("cluster", "coordinator_broker").agg(F.max("told_until_ms").alias("until_ms"))
    until = of_broker.groupBy("cluster").agg(F.min("until_ms").alias("whole_until_ms"))
    longest = logs.groupBy("cluster", "partition").agg(F.expr("max_by(struct(stopped_with AS brokers, is_empty), end_offset) AS longest"))
    stopped = longest.groupBy("cluster").agg(
        F.expr("collect_list(IF(longest.is_empty AND longest.brokers IS NULL, NULL, coalesce(longest.brokers, array()))) AS stopped"),
    )
    known = clusters.join(contiguous, "cluster", "left").join(until, "cluster", "left").join(stopped, "cluster", "left")
    return known.selectExpr(
        *("cluster", "coordinator_complete AND coalesce(contiguous, true) AS whole", "whole_until_ms"),
        "aggregate(stopped, get(stopped, 0), (one, other) -> array_intersect(one, other)) AS whole_stopped_with",
        "coordinator_complete AND NOT coalesce(contiguous, true) AND to_the_end AS only_cleaned",
    )
