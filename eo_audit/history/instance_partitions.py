"""Did every partition of a transaction get its marker? Transaction instance x registered partition x replica log.

A missing marker says something only where the dump shows the place at which it should stand: past the completion of the transaction,
above the log's start, not in a hole, and not where the cleaner may have removed it (which it does only after the transaction's data).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from eo_audit.history.clock_offsets import farthest
from eo_audit.history.marker_match import DUMPED_AFTER
from eo_audit.history.reach import STOPPED_TOGETHER, coordinator_logs
from eo_audit.store.schemas import schema

_ADDRESS = "section_id, byte_offset, length"
_MARKER = f"""struct(base_offset, marker_type, producer_epoch, marker_coordinator_epoch, max_timestamp_ms, {_ADDRESS})"""
_OWN_DATA = "row_kind = 'data' AND late = 'no'"
_SEEN = {
    "data_first_offset": f"min(IF({_OWN_DATA}, base_offset, NULL))",
    "data_last_offset": f"max(IF({_OWN_DATA}, last_offset, NULL))",
    "begins": f"min_by(struct(base_sequence AS sequence, producer_epoch AS epoch), IF({_OWN_DATA}, base_offset, NULL))",
    "data_records": f"sum(IF({_OWN_DATA}, count, NULL))",
    "data_closed": f"coalesce(bool_or({_OWN_DATA} AND span_outcome <> 'open'), false)",
    "data": f"min_by(struct({_ADDRESS}), IF({_OWN_DATA}, base_offset, NULL))",
    "closing": f"min_by({_MARKER}, IF(marker_role IN ('closing', 'empty'), base_offset, NULL))",
    "contradictory": f"min_by({_MARKER}, IF(marker_role = 'contradictory', base_offset, NULL))",
    "manual": f"min_by({_MARKER}, IF(marker_role = 'manual', base_offset, NULL))",
    "duplicate_markers": "CAST(count_if(marker_role = 'duplicate') AS INT)",
}
# The first data of an epoch has sequence 0 (`ProducerAppendInfo.checkSequence`), so no older data of that epoch was here.
_BEGUN = "min_by(struct(span.first_sequence AS sequence, span.first_epoch AS epoch), span.span_id)"
_BEGUN_BY_INSTANCES = "min_by(begins, data_first_offset) OVER (PARTITION BY replica_log_id, producer_id)"
# Where nothing can be said of the log at all, and offsets of which nothing is known.
_BROKEN = "state IN ('disorder', 'crc_invalid', 'not_judged', 'not_supported', 'shallow')"
_HOLE = "state IN ('hole', 'unexplained', 'segment_missing', 'not_observed', 'unordered', 'truncated')"


def instance_partitions(
    instances: DataFrame,
    rows: DataFrame,
    *,
    events: DataFrame,
    matched: DataFrame,
    reach: DataFrame,
    coverage: DataFrame,
    replica_logs: DataFrame,
    clock_offsets: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """One row per instance, partition in its list, and dumped replica log of that partition (one without a log where none was dumped).

    Args:
        instances: the table transaction_instances.
        rows: what `assign_instances` returns (the table producer_history will do).
        events: what `judged_events` returns, for the producers whose markers can be told in more than one way.
        matched: what `match_markers` returns, for the transactions of which one lacks its marker.
        reach: what `reach.reach` returns.
        coverage: the table.
        replica_logs: the table.
        clock_offsets: the table.
        clusters: the table, for skew_ms.

    Returns:
        Rows of the table `instance_partitions`.
    """
    seen = rows.where("instance_id IS NOT NULL").groupBy("instance_id", "replica_log_id").agg(*_named(_SEEN))
    logs = F.broadcast(_logs(replica_logs, coverage, rows))
    of_coordinator = ("coordinator_log_id", "coordinator_broker", "coordinator_dumped_at_ms", "coordinator_noted_at", "stopped_with")
    coordinators = F.broadcast(coordinator_logs(replica_logs, clusters).select(*of_coordinator))
    latest = F.broadcast(reach.groupBy("coordinator_log_id").agg(F.max("coordinator_latest_ms").alias("coordinator_latest_ms")))
    expected = (
        _expected(instances, clusters)
        # Left: a partition that a transaction lists and nobody dumped has a row too. Its marker is not missing, nobody has looked.
        .join(logs, ["cluster", "topic", "partition"], "left")
        .join(coordinators, "coordinator_log_id", "left")
        .join(latest, "coordinator_log_id", "left")
        .join(F.broadcast(_clocks(clock_offsets)), ["replica_log_id", "coordinator_log_id"], "left")
        .join(F.broadcast(farthest(clock_offsets)), "cluster", "left")
        .selectExpr("*", "coalesce(of_pair, 0L) AS ahead_ms", "skew_ms + coalesce(pair_spread, farthest_ms, 0L) AS margin_ms")
    )
    found = _with_doubts(expected, events, matched).join(seen, ["instance_id", "replica_log_id"], "left")
    renamed = {name: f"{of}.{name.removeprefix(of + '_')}" for of in ("data", "marker") for name in _addresses(of)}
    marker = {"marker_offset": "base_offset", "marker_epoch": "producer_epoch", "marker_timestamp_ms": "max_timestamp_ms"}
    renamed |= {name: f"marker.{field}" for name, field in marker.items()}
    renamed |= {name: f"marker.{name}" for name in ("marker_type", "marker_coordinator_epoch")}
    renamed |= {"duplicate_markers": "coalesce(duplicate_markers, 0)"}
    return (
        found.withColumn("first", F.expr(f"coalesce(first, {_BEGUN_BY_INSTANCES})"))
        .withColumn("head_seen", F.expr(_head_seen()))
        # One of them lacks its marker, but only where the log told of all of them.
        .withColumn(
            "lost_among", F.expr("IF(min(head_seen) OVER (PARTITION BY replica_log_id, producer_id, lost_among), lost_among, NULL)")
        )
        .withColumn("marker", F.coalesce("contradictory", "manual", "closing"))
        .withColumn("coverage", F.expr(_covered()))
        .withColumn("marker_match", F.expr(_match()))
        .selectExpr(*(f"{renamed.get(name, name)} AS {name}" for name in schema("instance_partitions").columns))
    )


def _with_doubts(expected: DataFrame, events: DataFrame, matched: DataFrame) -> DataFrame:
    """Adds is_doubtful and first, where the producer's markers can be told in more than one way, and lost_among."""
    # Markers that cannot be matched: one of them may be the one that seems to be missing. Few producers have some, so the others are left
    # out before anything is shuffled.
    unsure = (
        events.where("of_doubtful")
        .groupBy("replica_log_id", "producer_id")
        .agg(F.expr("bool_or(marker IS NOT NULL AND is_ambiguous) AS is_doubtful"), F.expr(f"{_BEGUN} AS first"))
        .where("is_doubtful")
    )
    lost = matched.where("lost_among IS NOT NULL").selectExpr("own.instance_id", "replica_log_id", "lost_among")
    return expected.join(unsure, ["replica_log_id", "producer_id"], "left").join(
        F.broadcast(lost), ["instance_id", "replica_log_id"], "left"
    )


def _named(columns: dict[str, str]) -> list[Column]:
    return [F.expr(f"{sql} AS {name}") for name, sql in columns.items()]


def _addresses(of: str) -> list[str]:
    return [f"{of}_{name}" for name in _ADDRESS.split(", ")]


def _expected(instances: DataFrame, clusters: DataFrame) -> DataFrame:
    known = clusters.select("cluster", "skew_ms")
    listed = instances.selectExpr(
        *(
            "instance_id",
            "replica_log_id AS coordinator_log_id",
            "cluster",
            "transactional_id",
            "producer_id",
            "protocol",
            "data_epoch",
            "decision",
            "is_last",
            "last_status",
            "decided_at_ms",
            "coalesce(complete_leader_epoch, prepare_leader_epoch) AS end_leader_epoch",
        ),
        *(
            "coalesce(completed_at_ms, next_at_ms, decided_at_ms) AS ended_ms",
            "complete_offset AS ended_at_offset",
            "coalesce(prepare_offset, complete_offset) AS decided_at_offset",
        ),
        "explode(partitions) AS listed",
    )
    return listed.selectExpr("*", "listed.topic", "listed.partition").join(F.broadcast(known), "cluster", "left")


def _clocks(clock_offsets: DataFrame) -> DataFrame:
    return clock_offsets.selectExpr(
        "replica_log_id",
        "coordinator_log_id",
        "newest_offset_ms AS of_pair",
        "spread_ms AS pair_spread",
        *("newest_decision_offset", "newest_decision_ms"),
        "oldest_completion_offset",
        *("newest_leader_epoch AS pair_leader_epoch", "newest_coordinator_epoch AS pair_coordinator_epoch", "told_up_to_offset"),
    )


def _logs(replica_logs: DataFrame, coverage: DataFrame, rows: DataFrame) -> DataFrame:
    """Per replica log: what bounds the offsets that can be judged."""
    gaps = coverage.groupBy("replica_log_id").agg(
        F.expr(f"bool_or({_BROKEN}) AS broken"),
        F.expr(f"max(IF({_HOLE}, last_offset, NULL)) AS last_gap"),
        F.expr(f"bool_or({_HOLE} OR state IN ('compacted', 'count_short')) AS has_gaps"),
    )
    # As in `sections`: CreateTime is the client's word.
    broker_clock = "IF(row_kind = 'marker' OR timestamp_type = 'LogAppendTime', max_timestamp_ms, NULL)"
    ends = {
        "leader_epoch": "max(partition_leader_epoch)",
        "oldest_leader_epoch": "min(partition_leader_epoch)",
        "oldest_ms": f"min({broker_clock})",
        "newest_clock_at": f"max_by(base_offset, {broker_clock})",
    }
    ages = rows.groupBy("replica_log_id").agg(*_named(ends))
    kept = ("replica_log_id", "cluster", "broker", "topic", "partition", "first_offset", "tail_intact", "is_empty", "uncleaned_from")
    told = ("newest_broker_clock_ms", "dumped_at_ms", "noted_at", "clean_end", "first_leader_epoch")
    return (
        replica_logs.select(*kept, *told)
        .join(F.broadcast(gaps), "replica_log_id", "left")
        .join(F.broadcast(ages), "replica_log_id", "left")
    )


def _head_seen() -> str:
    """Whether the log goes back to the decision: it may have been made anew since."""
    # A log from offset 0 on that is younger than the decision: its topic was deleted and created again (leader epoch 0), or all was lost.
    # The clock of an older leader is not the one that the newest pairs tell of.
    older = "oldest_ms - ahead_ms + margin_ms < decided_at_ms AND coalesce(pair_leader_epoch = oldest_leader_epoch, true)"
    since_birth = f"first_offset = 0 AND (({older}) OR first_leader_epoch > 0)"
    by_data = "data_first_offset IS NOT NULL OR (first_offset = 0 AND first.sequence = 0 AND first.epoch = data_epoch)"
    return f"coalesce(({since_birth}) OR {by_data} OR oldest_completion_offset < decided_at_offset, false)"


def _covered() -> str:
    """Whether the place of the marker was dumped.

    Order proves it: a marker of a transaction that the same coordinator decided after the completion stands in the log. So does one stop of
    both logs, or one broker's clock when it dumped both; clocks of two brokers only by more than they may have moved, and only what stands
    behind the newest marker of a known transaction: what is before it is older than all that was decided later. What ended later and by an
    earlier time was ended by a clock that had been set back. An empty log has no clock but that of its own dump. One time for a whole
    collection proves nothing: its files were read over minutes.
    """
    # Another marker has ended its data: its own can no longer do so.
    past_end = f"""coalesce(data_closed, false) OR coalesce(newest_decision_offset > ended_at_offset, false)
        OR {STOPPED_TOGETHER}
        OR {DUMPED_AFTER} OR coalesce(is_empty AND dumped_at_ms >= ended_ms + margin_ms, false)
        OR coalesce(pair_leader_epoch = leader_epoch AND pair_coordinator_epoch <=> end_leader_epoch
            AND newest_clock_at > told_up_to_offset AND newest_broker_clock_ms - ahead_ms >= ended_ms + margin_ms
            AND (ended_ms >= newest_decision_ms OR newest_decision_ms IS NULL), false)"""
    return f"""CASE
        WHEN replica_log_id IS NULL THEN 'not_dumped'
        WHEN marker IS NOT NULL THEN 'covered'
        WHEN coalesce(broken, false) OR (lost_among IS NOT NULL AND last_gap IS NOT NULL) THEN 'not_judged'
        WHEN lost_among IS NOT NULL THEN 'covered'
        WHEN coalesce(is_doubtful AND protocol <> 'tv2', false) THEN 'not_judged'
        WHEN NOT (tail_intact AND ({past_end})) THEN 'tail'
        WHEN last_gap >= coalesce(data_first_offset, 0) THEN 'not_judged'
        WHEN NOT head_seen THEN 'below_start'
        WHEN NOT (is_empty OR coalesce(uncleaned_from = 0, NOT has_gaps, false)) AND data_first_offset IS NULL THEN 'compacted'
        ELSE 'covered' END"""


def _match() -> str:
    # In this order: beside a marker that contradicts the decision, one that fits is no comfort.
    return """CASE
        WHEN contradictory IS NOT NULL THEN 'contradictory'
        WHEN manual IS NOT NULL THEN 'manual'
        WHEN closing IS NOT NULL THEN 'closing'
        WHEN is_last AND last_status NOT IN ('CompleteCommit', 'CompleteAbort') THEN 'pending'
        WHEN lost_among IS NOT NULL AND coverage = 'covered' THEN 'missing_among'
        WHEN decision IS NOT NULL AND coverage = 'covered' THEN 'missing'
        ELSE 'unknown' END"""
