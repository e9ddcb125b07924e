"""Whose transaction each batch belongs to, and what each marker did (KIP-98, KIP-890).

The instance is assigned per batch: one span can hold late data of an earlier instance beside genuine data. Data between two markers of a
producer belongs to the instance that the second one ends, or, where a marker is missing, to one that lists the partition and ended
between them: the first in whose time it was made, up to the decision, because a client begins anew only after its last one. Data that no
listed instance can own was written late (behind the marker of its own instance) or on a partition that was never registered.
Where the coordinator log was not dumped, its head compacted away, or its dump may be older than the data, the answer is unknown, never a
guess. The client's time (CreateTime) proves nothing: it chooses between instances that order allows, and where it alone speaks the answer
is `suspected`.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.clock_offsets import clocked
from eo_audit.history.marker_match import DUMPED_AFTER, DUMPED_BEFORE, INSTANCE_TYPE, MARKER_TYPE
from eo_audit.history.reach import STOPPED_TOGETHER, STOPPED_WITH_ALL

OPEN_END = 2**62  # the place of what no marker has ended yet

ENDS_CANDIDATE = "coalesce(match IN ('closing', 'contradictory'), false)"
_LOG = "replica_log_id, producer_id"
_BACK = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_EARLIER = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
# What comes next is looked for backwards: Spark takes time by the square of the rows for frames that end at UNBOUNDED FOLLOWING.
_SPAN = """named_struct('span_id', span_id, 'first_epoch', first_epoch, 'last_epoch', last_epoch,
    'first_ms', first_timestamp_ms, 'last_ms', last_timestamp_ms, 'complete_past', complete_past, 'hole_at', hole_at,
    'first_sequence', first_sequence)"""
_SPAN_TYPE = """struct<span_id: bigint, first_epoch: int, last_epoch: int, first_ms: bigint, last_ms: bigint, complete_past: boolean,
    hole_at: bigint, first_sequence: int>"""


def judged_events(
    rows: DataFrame,
    spans: DataFrame,
    matched: DataFrame,
    *,
    reach: DataFrame,
    whole_logs: DataFrame,
    clock_offsets: DataFrame,
    replica_logs: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """Markers and spans of each producer in each replica log, and what can be said of them.

    Args:
        rows: what `sequences.producer_rows` returns, for the broker clocks behind open spans.
        spans: the table transaction_spans.
        matched: what `marker_match.match_markers` returns.
        reach, whole_logs: what `reach` returns.
        clock_offsets: the table.
        replica_logs: the table, for topic, partition, first offset, and how and when each log was dumped.
        clusters: the table, for skew_ms.

    Returns:
        replica_log_id, producer_id, cluster, log (topic and partition), first_offset (of the log), skew_ms, ahead_ms (of the log's clock
        before the coordinator's), tolerance_ms (how exactly that is known), place (in the log);
        marker (null on a span), span (null on a marker);
        match and instance (the one matched, or null) of the marker, on a span those of the marker that closes it, which is `closer` (null
        while open); marker_before: the producer's previous marker; candidates: the instances that list the partition, from the last one
        that some marker ended before (`before`) up to the one that the next marker ends, which stands at ends_candidate;
        is_ambiguous: the marker cannot be matched; clocklike: the producer's timestamps follow its transactions;
        why_unknown: why the coordinator log does not tell of it (see the table unmatched); null where it does;
        known_to_the_end: whether the coordinator log tells what became of it, be its transaction still in that log or not;
        known: whether it tells about the time of the marker, or of the end of the span; allowed: the candidates that time and epoch
        allow, marker_role and marker_instance of markers;
        began_after_ms and sealed_ms of an open span: the times of the broker before and behind its beginning.
    """
    logs = replica_logs.selectExpr(
        *(
            "replica_log_id",
            "cluster",
            "struct(topic, partition) AS log",
            "first_offset",
            "broker",
            "dumped_at_ms",
            "noted_at",
            "newest_broker_clock_ms",
        ),
        "coalesce(clean_end, false) AS clean_end",
    )
    limits = clusters.select("cluster", "skew_ms", "as_of_ms", "max_transaction_timeout_ms")
    events = (
        _sides(matched)
        .unionByName(_spans(spans, rows))
        .join(F.broadcast(logs.join(limits, "cluster")), "replica_log_id")
        .join(reach, ["cluster", "producer_id"], "left")
        .transform(lambda frame: clocked(frame, rows, clock_offsets))
    )
    strangers = _other_coordinators(matched, reach)
    told = whole_logs.join(strangers, "cluster", "left").withColumn("other_coordinator", F.expr("coalesce(has_strangers, false)"))
    return _judged(_with_candidates(events.repartition("replica_log_id", "producer_id")), told)


def _other_coordinators(matched: DataFrame, reach: DataFrame) -> DataFrame:
    """Clusters in which a coordinator wrote markers of producers that the coordinator's log does not know."""
    # An ABORT with the epoch of the data may be a hand's (`kafka-transactions.sh abort`).
    raised = "marker.closes AND marker.epoch - marker.data_epoch BETWEEN 1 AND 2"
    strangers = matched.where(f"kind = 2 AND (marker.type = 'COMMIT' OR coalesce({raised}, false))")
    unknown = strangers.join(reach, ["cluster", "producer_id"], "left_anti")
    return unknown.select("cluster").distinct().selectExpr("cluster", "true AS has_strangers")


def _sides(matched: DataFrame) -> DataFrame:
    """Instances and markers, as they were matched."""
    return matched.selectExpr(
        *("replica_log_id", "producer_id", "kind", "place", "own", "marker", "found", "match", "claims", "doubtful", "ambiguous", "legal"),
        *(f"CAST(NULL AS {_SPAN_TYPE}) AS span", "CAST(NULL AS BIGINT) AS began_after_ms", "CAST(NULL AS BIGINT) AS sealed_ms"),
    )


def _spans(spans: DataFrame, rows: DataFrame) -> DataFrame:
    """Spans stand just before the marker that closes them. Open ones lie between two times that a broker wrote there."""
    unended = spans.where("marker_offset IS NULL")
    still_open = F.broadcast(unended.selectExpr("replica_log_id AS of_log", "producer_id AS whose", "span_id AS at"))
    by_broker = rows.where("judged AND (row_kind = 'marker' OR timestamp_type = 'LogAppendTime')")
    clocks = by_broker.select("replica_log_id", "base_offset", "max_timestamp_ms")
    of_open = clocks.join(still_open, F.expr("replica_log_id = of_log"))
    sealed = of_open.groupBy("of_log", "whose").agg(
        F.expr("max_by(max_timestamp_ms, IF(base_offset < at, base_offset, NULL)) AS began_after_ms"),
        F.expr("min_by(max_timestamp_ms, IF(base_offset >= at, base_offset, NULL)) AS sealed_ms"),
    )
    judged = spans.where("judged").join(
        F.broadcast(sealed), F.expr("replica_log_id = of_log AND producer_id = whose AND marker_offset IS NULL"), "left"
    )
    return judged.selectExpr(
        *("replica_log_id", "producer_id", "1 AS kind", f"coalesce(marker_offset, {OPEN_END}L) AS place"),
        *(f"CAST(NULL AS {INSTANCE_TYPE}) AS own", f"CAST(NULL AS {MARKER_TYPE}) AS marker", f"CAST(NULL AS {INSTANCE_TYPE}) AS found"),
        *("CAST(NULL AS STRING) AS match", "CAST(NULL AS BIGINT) AS claims", "false AS doubtful", "false AS ambiguous", "true AS legal"),
        *(f"{_SPAN} AS span", "began_after_ms", "sealed_ms"),
    )


def _with_candidates(events: DataFrame) -> DataFrame:
    """Each marker and span with what lies between the instances that ended before and the one that ends next."""
    side = f"PARTITION BY {_LOG}, kind = 0 ORDER BY place, kind"
    backwards = f"PARTITION BY {_LOG}, kind = 0 ORDER BY place DESC, kind DESC"
    known = "named_struct('marker', marker, 'match', match, 'instance', IF(match IS NULL, NULL, found), 'doubtful', doubtful)"
    ends = "IF(match IN ('closing', 'contradictory'), found, NULL)"
    stale = "coalesce(closing.match = 'closing' AND span.first_ms < closing.instance.start_ms - skew_ms, false)"
    return (
        events.selectExpr(
            "*",
            f"max(ambiguous) OVER (PARTITION BY {_LOG}) AS of_doubtful",
            f"min(legal) OVER (PARTITION BY {_LOG}) AS all_legal",
            f"coalesce(last(claims, true) OVER ({backwards} {_BACK}), {OPEN_END}L) AS ends_candidate",
            f"last({ends}, true) OVER ({side} {_EARLIER}) AS before",
            f"last(marker, true) OVER ({side} {_EARLIER}) AS marker_before",
            f"last(IF(kind = 2, {known}, NULL), true) OVER ({backwards} {_BACK}) AS closing",
        )
        .withColumnRenamed("match", "own_match")
        .drop("found")
        .selectExpr(
            *("*", "closing.marker AS closer", "closing.match AS match", "closing.instance AS instance", f"{stale} AS stale"),
            # Where markers can be told in two ways, one of them may have ended what seems to have no marker.
            "IF(of_doubtful AND claims IS NULL, NULL, own) AS candidate",
            f"min(IF({_SENT}, place, NULL)) OVER (PARTITION BY {_LOG}) AS sent_unseen_from",
            f"coalesce(closing.doubtful, of_doubtful AND ends_candidate = {OPEN_END}L) AS is_ambiguous",
        )
        .selectExpr(
            "*",
            f"sort_array(collect_list(candidate) OVER (PARTITION BY {_LOG}, ends_candidate)) AS candidates",
            # A producer whose timestamps mostly lie before its transactions sets them itself: they are no clock.
            f"2 * count_if(stale) OVER (PARTITION BY {_LOG}) <= count(span) OVER (PARTITION BY {_LOG}) AS clocklike",
        )
        .where("kind > 0")
        .drop("kind", "own", "closing", "stale", "candidate", "claims", "doubtful", "ambiguous", "legal", "own_match")
    )


# A COMMIT, an ABORT with a raised epoch, or one of a leader that came later than all that the coordinator's log tells of, which no known
# transaction sent, behind all that did: only a coordinator writes those.
# With an epoch that no protocol version writes (T10) it tells of nothing.
_SENT = f"""kind = 2 AND own_match IS NULL AND NOT doubtful AND ends_candidate = {OPEN_END}L
    AND NOT coalesce(marker.closes AND marker.epoch - marker.data_epoch NOT BETWEEN 0 AND IF(marker.type = 'COMMIT', 1, 2), false)
    AND (marker.type = 'COMMIT' OR coalesce(marker.epoch > marker.data_epoch, false)
        OR coalesce(marker.coordinator_epoch > known_until_epoch, false))"""


def _judged(events: DataFrame, whole_logs: DataFrame) -> DataFrame:
    """Adds `known`, `allowed`, `first_allowed`, `marker_role` and `marker_instance`.

    The coordinator's log tells of what stands here if it was dumped behind it: one broker's own clock says so, or the time of a marker at
    that place or behind it, on the coordinator's clock; or both brokers had been stopped.
    """
    sealed = "IF(marker IS NULL AND closer IS NULL, sealed_ms, coalesce(marker.at_ms, closer.at_ms)) - ahead_ms"
    # The clock of an older leader is not the one whose distance is known, nor the same one before it was set.
    by_known_clock = """coalesce(coalesce(marker, closer).leader_epoch = newest_leader_epoch, true)
        AND coalesce(known_from_epoch = newest_coordinator_epoch, true) AND coalesce(place >= newest_from_offset, true)"""
    begins = f"""(known_from_ms IS NULL OR coalesce({by_known_clock}
        AND coalesce({sealed}, span.last_ms - ahead_ms) > known_from_ms + skew_ms + unheard_ms, true))"""
    dumped_behind = f"({STOPPED_TOGETHER} OR {DUMPED_BEFORE})"
    by_order = "coalesce(coalesce(span.span_id, place) <= told_up_to_offset, false)"
    by_time = f"coalesce({sealed} + unsure_ms <= known_until_ms, false)"
    behind = f"{dumped_behind} OR {by_order} OR {by_time} OR {ENDS_CANDIDATE}"
    unseen = "coalesce(place >= sent_unseen_from, false)"
    # A marker that only a coordinator writes, of a transaction that its log does not tell of: the log was cut, whenever it was dumped. One
    # without its head may only have forgotten that transaction.
    to_the_end = f"({by_order} OR NOT {unseen} OR (known_from_ms IS NOT NULL AND {dumped_behind})) AND ({behind})"
    told = f"(before IS NOT NULL OR {begins}) AND {to_the_end}"
    # What the coordinator's log no longer tells had ended when the oldest entry left of the producer was written: where this log goes on
    # behind that, by the clocks or by the marker of a later decision, the end would be here.
    reaches_head = f"""{STOPPED_TOGETHER} OR {DUMPED_AFTER}
        OR coalesce(newest_decision_offset > known_from_offset, false)
        OR coalesce(greatest(newest_broker_clock_ms, dumped_at_ms) - ahead_ms - unsure_ms >= known_from_ms, false)"""
    ended_here = f"before IS NOT NULL OR {begins} OR {reaches_head}"
    # A coordinator that knows nothing of a producer whose markers only a coordinator can have written is not the one that did, and its log,
    # made anew, tells of no producer before.
    in_whole = f"whole AND NOT other_coordinator AND ({STOPPED_WITH_ALL} OR coalesce({sealed} + unsure_ms <= whole_until_ms, false))"
    epochs = "c.data_epoch BETWEEN least(span.first_epoch, span.last_epoch) AND greatest(span.first_epoch, span.last_epoch)"
    # Where older rows of the producer are missing, so may be the markers of older candidates: only the one that the marker ends is left.
    seen = "span.complete_past AND (before IS NOT NULL OR first_offset = 0)"
    by_then = "closer IS NULL OR coalesce(c.start_ms <= closer.at_ms - ahead_ms + tolerance_ms, known)"
    # Under TV2 the epoch names the instance, whatever is missing.
    begun = f"IF({ENDS_CANDIDATE}, {seen} OR c.instance_id = instance.instance_id OR c.protocol = 'tv2', {by_then})"
    of_span = f"coalesce({epochs}, true) AND {begun}"
    of_marker = "c.data_epoch <=> marker.data_epoch AND coalesce(c.start_ms <= marker.at_ms - ahead_ms + tolerance_ms, known)"
    older = "coalesce(first_offset > 0 AND coalesce(c.decided_at_offset, c.complete_offset) < oldest_completion_offset, false)"
    return events.join(F.broadcast(whole_logs), "cluster", "left").selectExpr(
        "*",
        f"NOT is_ambiguous AND IF(coalesce(has_story, false), {told}, coalesce({in_whole}, false)) AS known",
        # Its end may stand behind all that the coordinator's log tells.
        f"{dumped_behind} OR coalesce(place <= told_up_to_offset, false) OR {by_time} AS end_is_told",
        f"{_why_unknown(sealed, begins)} AS why_unknown",
        # An older transaction, of which the coordinator's log tells no more, would have ended what is open here.
        f"NOT is_ambiguous AND IF(coalesce(has_story, false), ({to_the_end}) AND ({ended_here}), known) AS known_to_the_end",
        # What a marker ended that nobody can place is nobody's whom we know.
        "span IS NOT NULL AND closer IS NOT NULL AND match IS NULL AND NOT known AS is_untold",
        f"IF(is_untold, slice(candidates, 1, 0), filter(candidates, c -> IF(span IS NULL, {of_marker}, {of_span}))) AS any_allowed",
        # The marker of one that ended before all of which the log still tells went with its head: the data is rather a later one's.
        f"filter(any_allowed, c -> NOT ({older})) AS young",
        "IF(marker IS NULL AND closer IS NULL AND size(young) > 0, young, any_allowed) AS allowed",
        "try_element_at(allowed, 1) AS first_allowed",
        f"IF(marker IS NULL, NULL, {_marker_role()}) AS marker_role",
        """CASE WHEN marker_role IN ('unknown', 'unexplained') THEN NULL WHEN marker_role = 'duplicate' THEN coalesce(instance, before)
            WHEN marker_role = 'manual' OR match = 'duplicate' THEN first_allowed
            ELSE coalesce(instance, first_allowed) END AS marker_instance""",
    )


def _why_unknown(at: str, begins: str) -> str:
    """Null where it is known."""
    return f"""CASE WHEN is_ambiguous AND (NOT all_legal OR (marker IS NULL AND closer IS NULL AND NOT ({_is_young(at)})))
            THEN 'clocks_apart'
        WHEN is_ambiguous AND marker IS NULL AND closer IS NULL THEN 'live_tail'
        WHEN is_ambiguous THEN IF(known_from_ms IS NULL, 'live_tail', 'coordinator_compacted') WHEN known THEN NULL
        WHEN coalesce(has_story, false) AND before IS NULL AND NOT {begins} THEN 'coordinator_compacted'
        WHEN NOT coalesce(has_story, false) AND NOT whole
            THEN IF(only_cleaned AND coalesce(marker, closer) IS NOT NULL, 'coordinator_compacted', 'no_coordinator')
        WHEN NOT coalesce(has_story, false) AND other_coordinator THEN 'other_coordinator'
        WHEN {_is_young(at)} THEN 'live_tail' ELSE 'dumped_apart' END"""


def _is_young(at: str) -> str:
    """No transaction can have hung for long that began after the coordinator's log was dumped, or not long before the dump of this log."""
    until = "IF(coalesce(has_story, false), known_until_ms, whole_until_ms)"
    began = "began_after_ms - ahead_ms >= as_of_ms - max_transaction_timeout_ms"
    ended = f"coalesce({at} - {until} <= max_transaction_timeout_ms, false)"
    # Nothing was going on where the broker had been stopped.
    return f"NOT clean_end AND ({ended} OR (marker IS NULL AND closer IS NULL AND coalesce({began}, false)))"


def _marker_role() -> str:
    """`kafka-transactions.sh abort` writes an ABORT with the data's epoch and the last coordinator epoch of the producer there, or 0.

    It is a hand's work while the coordinator has not decided, or decided later: the transaction's own marker comes behind it. Where none
    comes, the ABORT stands in the place of the marker that is missing.
    """
    by_tool = """marker.type = 'ABORT' AND marker.epoch = marker.data_epoch
        AND (marker.coordinator_epoch = 0 OR marker.coordinator_epoch <=> marker_before.coordinator_epoch)"""
    # Data behind the end of the matched instance is another's; under TV2 the epoch of that data is the epoch of the marker before it.
    behind = f"marker.closes AND marker.at_ms - ahead_ms > instance.until_ms AND ({by_tool})"
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
