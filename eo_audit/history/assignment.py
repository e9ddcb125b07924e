"""Whose transaction each batch belongs to, and what each marker did (KIP-98, KIP-890).

The instance is assigned per batch: one span can hold late data of an earlier instance beside genuine data. Data between two markers of a
producer belongs to the instance that the second one ends, or, where a marker is missing, to one that lists the partition and ended
between them: the first in whose time it was made, up to the decision, because a client begins anew only after its last one. Data that no
listed instance can own was written late (behind the marker of its own instance) or on a partition that was never registered.
Where the coordinator log was not dumped, or its head compacted away, the answer is unknown, never a guess.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.clusters import COORDINATOR_TOPIC
from eo_audit.history.marker_match import OPEN_END, matched

_OWN_COLUMNS = ("instance_id", "instance_source", "instance_decision", "registration", "late", "marker_role")
_ENDS_CANDIDATE = "coalesce(match IN ('closing', 'contradictory'), false)"


def assign_instances(
    rows: DataFrame,
    spans: DataFrame,
    instances: DataFrame,
    *,
    coordinator_history: DataFrame,
    replica_logs: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """The rows with instance_id, instance_source, instance_decision, registration, late and marker_role.

    Args:
        rows: what `sequences.producer_rows` returns; read twice.
        spans: the table transaction_spans.
        instances: the table transaction_instances.
        coordinator_history: the table, for how far back each producer's story is known.
        replica_logs: the table.
        clusters: the table, for skew_ms, coordinator_complete and dumped_at_ms.
    """
    reach = _reach(coordinator_history, replica_logs, clusters)
    events = matched(rows, spans, instances, reach=reach, replica_logs=replica_logs, clusters=clusters)
    judged = _judged(events, _whole(coordinator_history, replica_logs, clusters))
    owners = _with_unlisted(judged, instances).transform(_for_rows)
    at = F.expr("IF(row_kind = 'data' AND span_id IS NOT NULL, span_id, base_offset) AS at_offset")
    joined = rows.select("*", at).join(owners, ["replica_log_id", "at_offset"], "left")
    return joined.selectExpr("*", *_answers()).select(*rows.columns, *_OWN_COLUMNS)


def _coordinator_logs(replica_logs: DataFrame, clusters: DataFrame) -> DataFrame:
    """The coordinator's logs, each with the time up to which it tells all (`told_until`).

    Dumps of a running cluster are made one after the other: what stands in a partition may be younger than the dump of the coordinator's
    log. That one lacks nothing from before the time of the manifest, and before its own newest entry. Without a manifest nothing tells of
    another time, and dumps are taken as made at once.
    """
    times = F.broadcast(clusters.select("cluster", "dumped_at_ms"))
    logs = replica_logs.drop("dumped_at_ms").where(f"topic = '{COORDINATOR_TOPIC}'").join(times, "cluster")
    until = "IF(dumped_at_ms IS NULL, NULL, greatest(dumped_at_ms, newest_broker_clock_ms)) AS told_until"
    return logs.selectExpr("cluster", "replica_log_id", "tail_intact", until)


def _reach(history: DataFrame, replica_logs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Per producer: from when and until when its story in the coordinator log is known; null where there is no bound.

    The end of the log may be missing though the text ends as it should: a snapshot tells how far the log went.
    """
    ends = F.broadcast(_coordinator_logs(replica_logs, clusters).drop("cluster"))
    bound = "IF(previous_offset IS NULL AND NOT head_known, batch_timestamp_ms, NULL)"
    to_the_end = "bool_and(tail_known AND coalesce(tail_intact, true))"
    return (
        history.where("producer_id IS NOT NULL")
        .join(ends, "replica_log_id", "left")
        .groupBy("cluster", "producer_id")
        .agg(
            F.expr(f"max({bound}) AS known_from_ms"),
            F.expr(f"IF({to_the_end}, min(told_until), max(batch_timestamp_ms)) AS known_until_ms"),
            F.lit(True).alias("has_story"),
        )
    )


def _whole(history: DataFrame, replica_logs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Per cluster: whether its coordinator logs were dumped from the first entry to the last (`whole`), so that a producer without entries
    has no transaction, and until when that is so (`whole_until_ms`, null: no bound)."""
    logs = history.groupBy("cluster").agg(F.expr("bool_and(log_contiguous AND tail_known) AS contiguous"))
    until = _coordinator_logs(replica_logs, clusters).groupBy("cluster").agg(F.min("told_until").alias("whole_until_ms"))
    known = clusters.join(logs, "cluster", "left").join(until, "cluster", "left")
    return known.selectExpr("cluster", "coordinator_complete AND coalesce(contiguous, true) AS whole", "whole_until_ms")


def _judged(events: DataFrame, whole: DataFrame) -> DataFrame:
    """Adds what can be said of each marker and span.

    `known`: whether the coordinator log tells about the time of the marker, or of the end of the span; `allowed`: the candidates that
    time and epoch allow, `marker_role` and `marker_instance` of markers.
    """
    at = "coalesce(marker.at_ms, closer.at_ms, span.last_ms)"
    told = f"coalesce({at} > known_from_ms + skew_ms, true) AND coalesce({at} <= known_until_ms, true)"
    in_whole = f"whole AND coalesce({at} <= whole_until_ms, true)"
    epochs = "c.data_epoch BETWEEN least(span.first_epoch, span.last_epoch) AND greatest(span.first_epoch, span.last_epoch)"
    # Where older rows of the producer are missing, so may be the markers of older candidates: only the one that the marker ends is left.
    seen = "span.complete_past AND (before IS NOT NULL OR first_offset = 0)"
    by_then = "closer IS NULL OR coalesce(c.start_ms <= closer.at_ms, known)"
    begun = f"IF({_ENDS_CANDIDATE}, {seen} OR c.instance_id = instance.instance_id, {by_then})"
    of_span = f"coalesce({epochs}, true) AND {begun}"
    of_marker = "c.data_epoch <=> marker.data_epoch AND coalesce(c.start_ms <= marker.at_ms, known)"
    return events.join(F.broadcast(whole), "cluster", "left").selectExpr(
        "*",
        f"NOT is_ambiguous AND IF(coalesce(has_story, false), {told}, coalesce({in_whole}, false)) AS known",
        f"filter(candidates, c -> IF(span IS NULL, {of_marker}, {of_span})) AS allowed",
        "try_element_at(allowed, 1) AS first_allowed",
        f"IF(marker IS NULL, NULL, {_marker_role()}) AS marker_role",
        """CASE WHEN marker_role IN ('unknown', 'unexplained') THEN NULL WHEN marker_role = 'duplicate' THEN coalesce(instance, before)
            WHEN marker_role = 'manual' OR match = 'duplicate' THEN first_allowed
            ELSE coalesce(instance, first_allowed) END AS marker_instance""",
    )


def _marker_role() -> str:
    """`kafka-transactions.sh abort` writes an ABORT with the data's epoch and the last coordinator epoch of the producer there, or 0.

    It is a hand's work while the coordinator has not decided, or decided later: the transaction's own marker comes behind it. Where none
    comes, the ABORT stands in the place of the marker that is missing.
    """
    by_tool = """marker.type = 'ABORT' AND marker.epoch = marker.data_epoch
        AND (marker.coordinator_epoch = 0 OR marker.coordinator_epoch <=> marker_before.coordinator_epoch)"""
    # Data behind the end of the matched instance is another's; under TV2 the epoch of that data is the epoch of the marker before it.
    behind = f"marker.closes AND marker.at_ms > instance.until_ms AND ({by_tool})"
    ended_later = f"ends_candidate < {OPEN_END}L AND try_element_at(candidates, -1).instance_id = first_allowed.instance_id"
    return f"""CASE
        WHEN match = 'closing' THEN IF(marker.closes, 'closing', 'empty')
        WHEN match = 'contradictory' OR (match = 'duplicate' AND NOT coalesce({behind}, false)) THEN match
        WHEN is_ambiguous THEN 'unknown'
        WHEN NOT marker.closes AND marker_before.type = marker.type AND marker_before.epoch = marker.epoch THEN 'duplicate'
        WHEN NOT known THEN 'unknown'
        WHEN NOT marker.closes THEN 'unexplained'
        WHEN first_allowed IS NULL THEN IF({by_tool}, 'manual', 'unexplained')
        WHEN ({by_tool}) AND (first_allowed.decision IS NULL OR {ended_later}) THEN 'manual'
        WHEN first_allowed.decision <> marker.type THEN 'contradictory'
        ELSE 'unexplained' END"""


def _with_unlisted(judged: DataFrame, instances: DataFrame) -> DataFrame:
    """Adds `owner` to spans without a candidate: the instance of the producer that was running then, and whether it lists the partition.

    Under TV0 and TV1 an instance's time begins with the decision before it; such times of one producer do not overlap.
    """
    before = "lag(decided_at_ms) OVER (PARTITION BY cluster, producer_id ORDER BY first_entry_offset)"
    running = instances.selectExpr(
        *("cluster AS owner_cluster", "producer_id AS owner_producer", "instance_id", "protocol", "data_epoch", "decision", "start_ms"),
        *("decided_at_ms", "partitions", f"{before} AS free_from_ms"),
    )
    ownerless = "span IS NOT NULL AND first_allowed IS NULL AND known"
    in_time = """coalesce(span.first_ms >= free_from_ms, true) AND coalesce(span.first_ms < decided_at_ms, true)
        AND span.first_ms >= start_ms - skew_ms AND coalesce(start_ms <= closer.at_ms, true)"""
    on = f"""owner_cluster = cluster AND owner_producer = IF({ownerless}, producer_id, -2 - place)
        AND data_epoch = span.first_epoch AND (protocol = 'tv2' OR ({in_time}))"""
    owner = """named_struct('instance_id', instance_id, 'protocol', protocol, 'data_epoch', data_epoch, 'decision', decision,
        'lists', array_contains(partitions, log))"""
    joined = judged.join(running, F.expr(on), "left")
    return joined.selectExpr(*judged.columns, f"IF(owner_producer IS NULL, NULL, {owner}) AS owner")


def _for_rows(owned: DataFrame) -> DataFrame:
    """What rows need, under the offset by which they find it."""
    return owned.selectExpr(
        *("replica_log_id", "IF(span IS NULL, place, span.span_id) AS at_offset", "skew_ms", "allowed", "before", "owner", "known"),
        *("clocklike", "marker_role", "marker_instance", f"{_ENDS_CANDIDATE} AS by_marker", "size(candidates) AS listing"),
        "span.hole_at AS hole_at",
    )


def _answers() -> list[str]:
    """Choose the owner of each data row (`chosen`); `late` says that the owner's marker came before it."""
    own = "filter(allowed, c -> coalesce(c.data_epoch = producer_epoch, true))"
    in_time = "max_timestamp_ms >= c.start_ms - skew_ms AND max_timestamp_ms < c.decided_at_ms"
    genuine = f"coalesce(try_element_at(filter(own, c -> coalesce({in_time}, c.decided_at_ms IS NULL)), 1), try_element_at(own, -1))"
    behind = "genuine IS NULL AND (owner.lists OR (owner IS NULL AND known AND before.data_epoch = producer_epoch))"
    early = """before.data_epoch = producer_epoch AND before.instance_id <> genuine.instance_id AND genuine.protocol <> 'tv2'
        AND max_timestamp_ms < genuine.start_ms - skew_ms"""
    in_earlier = "clocklike AND max_timestamp_ms BETWEEN before.start_ms - skew_ms AND before.decided_at_ms"
    # Before a hole the producer's own marker may be missing; under TV2 the epoch tells all the same.
    cut = "coalesce(base_offset < hole_at AND try_element_at(allowed, 1).protocol <> 'tv2', false)"
    return [
        f"row_kind = 'data' AND is_transactional AND judged AND known IS NOT NULL AND NOT {cut} AS is_assigned",
        f"{own} AS own",
        f"IF(is_assigned, {genuine}, NULL) AS genuine",
        f"""CASE WHEN NOT is_assigned THEN NULL WHEN {behind} THEN 'proved'
            WHEN {early} AND timestamp_type = 'LogAppendTime' THEN 'proved'
            WHEN {early} AND {in_earlier} THEN 'suspected' ELSE 'no' END AS late""",
        f"{_chosen()} AS chosen",
        *_columns(),
    ]


def _chosen() -> str:
    """The owner of a data row, as (instance_id, protocol, decision)."""
    fields = ("instance_id", "protocol", "decision")
    of = {name: "struct(" + ", ".join(f"{name}.{field}" for field in fields) + ")" for name in ("genuine", "owner", "before")}
    return f"""CASE WHEN NOT is_assigned THEN NULL
        WHEN late = 'no' THEN CASE WHEN genuine IS NOT NULL THEN {of["genuine"]} WHEN owner IS NOT NULL THEN {of["owner"]} END
        WHEN owner IS NOT NULL THEN {of["owner"]} ELSE {of["before"]} END"""


def _columns() -> list[str]:
    doubtful = "late = 'suspected' AND NOT genuine.decision <=> chosen.decision"
    nobody = "known AND coalesce(listing, 0) = 0 AND NOT epoch_regression"
    return [
        "CASE WHEN row_kind = 'marker' THEN marker_instance.instance_id ELSE chosen.instance_id END AS instance_id",
        f"""CASE WHEN row_kind = 'marker' THEN IF(marker_instance IS NULL, NULL, IF(marker_instance.protocol = 'tv2', 'epoch', 'marker'))
            WHEN NOT is_assigned THEN NULL WHEN late IN ('proved', 'suspected') THEN 'time'
            WHEN chosen.protocol = 'tv2' THEN 'epoch' WHEN genuine IS NOT NULL AND by_marker AND size(own) = 1 THEN 'marker'
            WHEN chosen IS NOT NULL THEN 'time' WHEN {nobody} THEN 'none' END AS instance_source""",
        f"""CASE WHEN row_kind = 'marker' THEN marker_instance.decision WHEN {doubtful} THEN NULL
            WHEN genuine IS NOT NULL OR late = 'proved' THEN chosen.decision END AS instance_decision""",
        f"""CASE WHEN NOT (row_kind = 'data' AND is_transactional) THEN NULL WHEN genuine IS NOT NULL OR late = 'proved' THEN 'registered'
            WHEN chosen IS NOT NULL OR {nobody} THEN 'unregistered' ELSE 'unknown' END AS registration""",
    ]
