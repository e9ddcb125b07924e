"""Which marker ended which transaction instance, in each replica log.

Under TV2 the producer id and the marker's epoch name the instance. Under TV0 and TV1 many instances share them:
1. By rank, where there are as many markers as instances: each marker belongs to the instance of its place, if their types agree and one
   common offset of the clocks explains all the pairs.
2. By time: a marker is written between the decision and the completion of its instance. That contradicts itself (two markers for one
   instance, a COMMIT for an aborted one) when clocks lie further apart than transactions.
3. By rank without markers that may be retries, then by rank from the end where one of the two heads is missing.
4. By time after all, where only a few markers contradict it; else the whole group is ambiguous, and nothing is said of it.

A match needs the decision's type and a coordinator epoch between the leader epochs of PrepareX and CompleteX.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

OPEN_END = 2**62  # the place of what no marker has ended yet
ROUNDING_MS = 10  # clocks of two brokers drift this much within a group of markers
FEW = 2  # markers that may contradict their time before the times of the whole group are in doubt; or one of ten

_LOG = "replica_log_id, producer_id"
_GROUP = f"{_LOG}, epoch"
_BACK = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_EARLIER = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
# What comes next is looked for backwards: Spark takes time by the square of the rows for frames that end at UNBOUNDED FOLLOWING.
_IN_RANGE = """coalesce(marker.coordinator_epoch >= found.prepare_leader_epoch, true)
    AND coalesce(marker.coordinator_epoch <= found.complete_leader_epoch, true)"""

_INSTANCE = """named_struct('first_entry_offset', first_entry_offset, 'instance_id', instance_id, 'protocol', protocol,
    'data_epoch', data_epoch, 'decision', decision, 'start_ms', IF(start_source = 'upper_bound', NULL, start_ms),
    'decided_at_ms', decided_at_ms, 'until_ms', coalesce(completed_at_ms, next_at_ms, 4611686018427387904L),
    'prepare_leader_epoch', prepare_leader_epoch, 'complete_leader_epoch', complete_leader_epoch)"""
_INSTANCE_TYPE = """struct<first_entry_offset: bigint, instance_id: string, protocol: string, data_epoch: int, decision: string,
    start_ms: bigint, decided_at_ms: bigint, until_ms: bigint, prepare_leader_epoch: int, complete_leader_epoch: int>"""
_MARKER = """named_struct('type', marker_type, 'epoch', producer_epoch, 'coordinator_epoch', marker_coordinator_epoch,
    'at_ms', max_timestamp_ms, 'closes', in_open_transaction, 'data_epoch', previous_epoch)"""
_MARKER_TYPE = "struct<type: string, epoch: int, coordinator_epoch: int, at_ms: bigint, closes: boolean, data_epoch: int>"
_SPAN = """named_struct('span_id', span_id, 'first_epoch', first_epoch, 'last_epoch', last_epoch,
    'first_ms', first_timestamp_ms, 'last_ms', last_timestamp_ms, 'complete_past', complete_past, 'hole_at', hole_at)"""
_SPAN_TYPE = """struct<span_id: bigint, first_epoch: int, last_epoch: int, first_ms: bigint, last_ms: bigint, complete_past: boolean,
    hole_at: bigint>"""


def matched(
    rows: DataFrame, spans: DataFrame, instances: DataFrame, *, reach: DataFrame, replica_logs: DataFrame, clusters: DataFrame
) -> DataFrame:
    """Markers and spans of each producer in each replica log, with the instances they may belong to.

    Args:
        rows: what `sequences.producer_rows` returns.
        spans: the table transaction_spans.
        instances: the table transaction_instances.
        reach: cluster, producer_id, has_story (true), known_from_ms and known_until_ms: the time of which the coordinator log tells about
            the producer, null where there is no bound.
        replica_logs: the table, for topic, partition and first offset of each log.
        clusters: the table, for skew_ms.

    Returns:
        the columns of reach; replica_log_id, producer_id, cluster, log (topic and partition), first_offset (of the log), skew_ms;
        place (in the log);
        marker (null on a span), span (null on a marker);
        match (closing, duplicate, contradictory or null) and instance (the one matched, or null) of the marker, on a span those of
        the marker that closes it, which is `closer` (null while open); marker_before: the producer's previous marker;
        candidates: the instances that list the partition, from the last one that some marker ended before (`before`) up to the one
        that the next marker ends, which stands at ends_candidate; is_ambiguous: the marker cannot be matched;
        clocklike: the producer's timestamps follow its transactions.
    """
    logs = replica_logs.select("replica_log_id", "cluster", "topic", "partition", "first_offset")
    skews = F.broadcast(clusters.select("cluster", "skew_ms"))
    log = F.struct("topic", "partition").alias("log")
    known = F.broadcast(logs.select("replica_log_id", "cluster", log, "first_offset").join(skews, "cluster"))
    events = _expected(instances, logs.drop("first_offset")).unionAll(_markers(rows)).unionAll(_spans(spans)).join(known, "replica_log_id")
    told = events.join(reach, ["cluster", "producer_id"], "left").repartition("replica_log_id", "producer_id")
    return _with_candidates(_claimed(_by_time_and_rank(told)))


def _expected(instances: DataFrame, logs: DataFrame) -> DataFrame:
    """Instance x partition x replica log: each must see one marker there once it is decided."""
    listed = instances.selectExpr("cluster", "producer_id", "marker_epoch", f"{_INSTANCE} AS own", "explode(partitions) AS listed")
    found = listed.selectExpr("*", "listed.topic", "listed.partition").join(F.broadcast(logs), ["cluster", "topic", "partition"])
    return found.selectExpr(
        *("replica_log_id", "producer_id", "0 AS kind", "marker_epoch AS epoch", "own.decided_at_ms AS at_ms"),
        *("own.first_entry_offset AS place", "own", f"CAST(NULL AS {_MARKER_TYPE}) AS marker", f"CAST(NULL AS {_SPAN_TYPE}) AS span"),
    )


def _markers(rows: DataFrame) -> DataFrame:
    return rows.where("row_kind = 'marker' AND judged AND marker_type IS NOT NULL").selectExpr(
        *("replica_log_id", "producer_id", "2 AS kind", "producer_epoch AS epoch", "max_timestamp_ms AS at_ms", "base_offset AS place"),
        *(f"CAST(NULL AS {_INSTANCE_TYPE}) AS own", f"{_MARKER} AS marker", f"CAST(NULL AS {_SPAN_TYPE}) AS span"),
    )


def _spans(spans: DataFrame) -> DataFrame:
    """Spans stand just before the marker that closes them."""
    return spans.where("judged").selectExpr(
        *("replica_log_id", "producer_id", "1 AS kind", "CAST(NULL AS INT) AS epoch", "CAST(NULL AS BIGINT) AS at_ms"),
        f"coalesce(marker_offset, {OPEN_END}L) AS place",
        *(f"CAST(NULL AS {_INSTANCE_TYPE}) AS own", f"CAST(NULL AS {_MARKER_TYPE}) AS marker", f"{_SPAN} AS span"),
    )


def _by_time_and_rank(events: DataFrame) -> DataFrame:
    """Adds `found`, the instance of each marker by time or by rank, whether it `fits` or is `odd` (of the other type), `ambiguous`."""
    in_time = f"PARTITION BY {_GROUP} ORDER BY at_ms, kind, place"
    against_time = f"PARTITION BY {_GROUP} ORDER BY at_ms DESC, kind DESC, place DESC"
    in_log = f"PARTITION BY {_GROUP}, kind ORDER BY place"
    backwards = f"PARTITION BY {_GROUP}, kind ORDER BY place DESC"
    kept = "kind = 2 AND NOT again"
    older = "earlier IS NULL AND known_from_ms IS NOT NULL"  # than all that the coordinator log still tells
    off = f"{kept} AND IF(nearest IS NULL, NOT ({older}), nearest.decision <> marker.type OR rivals > 1)"
    return (
        events.selectExpr(
            "*",
            f"last(own, true) OVER ({in_time} {_BACK}) AS earlier",
            f"last(own, true) OVER ({against_time} {_BACK}) AS later",
            # Closes nothing, and is of the same type as the one before: a retry, or the marker of a partition without data.
            f"coalesce(kind = 2 AND NOT marker.closes AND lag(marker.type) OVER ({in_log}) = marker.type, false) AS again",
            f"IF(kind = 2, {_nearest()}, NULL) AS nearest",
        )
        .selectExpr(
            "*",
            f"row_number() OVER ({backwards}) AS rank",
            f"sum(IF(again, 0, 1)) OVER ({backwards} {_BACK}) AS kept_rank",
            f"count_if({kept}) OVER (PARTITION BY {_GROUP}, nearest.instance_id) AS rivals",
        )
        .selectExpr(
            "*",
            f"IF(kind = 2, first(own, true) OVER (PARTITION BY {_GROUP}, rank), NULL) AS partner",
            f"IF({kept}, first(own, true) OVER (PARTITION BY {_GROUP}, kept_rank), NULL) AS kept_partner",
            f"count_if({off}) OVER (PARTITION BY {_GROUP}) AS doubts",
            f"count(own) OVER (PARTITION BY {_GROUP}) AS wanted",
            f"count(marker) OVER (PARTITION BY {_GROUP}) AS seen",
            f"count_if({kept}) OVER (PARTITION BY {_GROUP}) AS kept_seen",
        )
        .selectExpr(
            "*",
            f"{_explained('partner')} AS by_rank",
            f"{_explained('kept_partner')} AS by_kept_rank",
            f"""CASE WHEN nearest.protocol = 'tv2' THEN 'time' WHEN by_rank AND seen = wanted THEN 'rank' WHEN doubts = 0 THEN 'time'
                WHEN by_kept_rank AND kept_seen = wanted THEN 'kept' WHEN by_rank AND {_headless("seen")} THEN 'rank'
                WHEN by_kept_rank AND {_headless("kept_seen")} THEN 'kept'
                WHEN doubts <= {FEW} OR doubts * 10 <= seen THEN 'time' ELSE 'none' END AS method""",
            "CASE method WHEN 'time' THEN nearest WHEN 'rank' THEN partner WHEN 'kept' THEN kept_partner END AS found",
            f"coalesce(kind = 2 AND found.decision = marker.type AND {_IN_RANGE}, false) AS fits",
            "coalesce(kind = 2 AND found.decision <> marker.type, false) AS odd",
            "method = 'none' AS ambiguous",
        )
    )


def _headless(seen: str) -> str:
    """The counts may differ: the older markers, or the older instances, were not dumped."""
    return f"((first_offset > 0 OR {seen} >= wanted) AND (known_from_ms IS NOT NULL OR {seen} <= wanted))"


def _nearest() -> str:
    """The instance whose time from decision to completion holds the marker, else one of the right type within the tolerance."""
    after, ahead = "at_ms - earlier.until_ms", "later.decided_at_ms - at_ms"
    return f"""CASE
        WHEN coalesce(earlier.protocol, later.protocol) = 'tv2' THEN coalesce(earlier, later)
        WHEN {after} <= 0 THEN earlier
        WHEN {after} <= skew_ms AND earlier.decision = marker.type
            AND NOT coalesce({ahead} < {after} AND later.decision = marker.type, false) THEN earlier
        WHEN {ahead} <= skew_ms AND later.decision = marker.type THEN later END"""


def _explained(partner: str) -> str:
    """One offset of the clocks, within the tolerance, explains the pairs of a group, and their types agree."""
    group = f"OVER (PARTITION BY {_GROUP})"
    least, most = f"max(at_ms - {partner}.until_ms) {group}", f"min(at_ms - {partner}.decided_at_ms) {group}"
    agree = f"bool_and({partner}.decision = marker.type) {group}"
    return f"""coalesce({least} <= {most} + {ROUNDING_MS} AND {least} <= skew_ms AND {most} >= -skew_ms AND {agree}, false)"""


def _claimed(paired: DataFrame) -> DataFrame:
    """Adds `match`, and `claims`: the place of the marker that ends the instance, on both."""
    of_instance = f"PARTITION BY {_GROUP}, coalesce(own.instance_id, found.instance_id)"
    foreign = "coalesce(marker.closes AND marker.data_epoch <> found.data_epoch, false)"
    return paired.selectExpr(
        "*",
        # A marker with a wrong epoch may fit an instance whose own marker comes later: that one closes data of the instance's epoch.
        f"(min(IF(fits, struct({foreign} AS foreign, place), NULL)) OVER ({of_instance})).place AS first_fit",
        f"min(IF(odd, place, NULL)) OVER ({of_instance}) AS first_odd",
        """CASE WHEN fits AND place = first_fit THEN 'closing' WHEN fits THEN 'duplicate'
            WHEN odd AND first_fit IS NULL AND place = first_odd THEN 'contradictory' END AS match""",
        """CASE WHEN own IS NOT NULL THEN coalesce(first_fit, first_odd)
            WHEN match IN ('closing', 'contradictory') THEN place END AS claims""",
    )


def _with_candidates(claimed: DataFrame) -> DataFrame:
    """Each marker and span with what lies between the instances that ended before and the one that ends next."""
    side = f"PARTITION BY {_LOG}, kind = 0 ORDER BY place, kind"
    backwards = f"PARTITION BY {_LOG}, kind = 0 ORDER BY place DESC, kind DESC"
    known = "named_struct('marker', marker, 'match', match, 'instance', IF(match IS NULL, NULL, found), 'ambiguous', ambiguous)"
    ends = "IF(match IN ('closing', 'contradictory'), found, NULL)"
    stale = "coalesce(closing.match = 'closing' AND span.first_ms < closing.instance.start_ms - skew_ms, false)"
    return (
        claimed.selectExpr(
            *("replica_log_id", "producer_id", "cluster", "log", "first_offset", "skew_ms", "kind", "place", "own", "marker", "span"),
            *("has_story", "known_from_ms", "known_until_ms"),
            f"coalesce(last(claims, true) OVER ({backwards} {_BACK}), {OPEN_END}L) AS ends_candidate",
            f"last({ends}, true) OVER ({side} {_EARLIER}) AS before",
            f"last(marker, true) OVER ({side} {_EARLIER}) AS marker_before",
            f"last(IF(kind = 2, {known}, NULL), true) OVER ({backwards} {_BACK}) AS closing",
            *("closing.marker AS closer", "closing.match AS match", "closing.instance AS instance", f"{stale} AS stale"),
            "IF(ambiguous, NULL, own) AS candidate",
            "coalesce(closing.ambiguous, false) AS is_ambiguous",
        )
        .selectExpr(
            "*",
            f"sort_array(collect_list(candidate) OVER (PARTITION BY {_LOG}, ends_candidate)) AS candidates",
            # A producer whose timestamps mostly lie before its transactions sets them itself: they are no clock.
            f"2 * count_if(stale) OVER (PARTITION BY {_LOG}) <= count(span) OVER (PARTITION BY {_LOG}) AS clocklike",
        )
        .where("kind > 0")
        .drop("kind", "own", "closing", "stale", "candidate")
    )
