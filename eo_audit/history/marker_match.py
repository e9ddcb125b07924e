"""Which marker ended which transaction instance, in each replica log: `model.alignment`, and the windows that spare most logs the asking.

Under TV2 the producer id and the marker's epoch name the instance. Under TV0 and TV1 many instances share them, and order decides:
1. By place, where the log and the coordinator's story are known from their beginnings: the n-th marker belongs to the n-th instance, if all
   their types and epochs agree and the clocks of both brokers lie the same distance apart from each marker to the next.
2. By time, where a beginning is missing: each marker lies between the decision and the completion of one instance, and none is left out.
3. All others are aligned by the law itself (`doubtful_markers`), all producers of the log together: they have seen the same clocks.
What can be aligned in two ways is ambiguous, and nothing is said of it.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.doubtful_markers import aligned
from eo_audit.history.reach import STOPPED_TOGETHER
from eo_audit.model.alignment import DRIFT, ROUNDING_MS

_LOG = "replica_log_id, producer_id"
_BACK = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_EVERYWHERE = 2**62  # beyond every offset

# A start that is only an upper bound (the head of the instance's run was compacted away) proves nothing, nor does one behind the decision
# (of another leader's clock, or of one that was set), so it is left out. What is not
# completed is completed at the end of time: comparisons with it need no null.
_INSTANCE = """named_struct('first_entry_offset', first_entry_offset, 'instance_id', instance_id, 'protocol', protocol,
    'data_epoch', data_epoch, 'marker_epoch', marker_epoch, 'decision', decision,
    'start_ms', IF(start_source = 'upper_bound' OR start_ms > decided_at_ms, NULL, start_ms), 'decided_at_ms', decided_at_ms,
    'until_ms', coalesce(completed_at_ms, next_at_ms, 4611686018427387904L),
    'prepare_leader_epoch', prepare_leader_epoch, 'complete_leader_epoch', complete_leader_epoch,
    'decided_at_offset', prepare_offset, 'complete_offset', complete_offset)"""
# An instance and a marker are one struct each, null in rows of the other kind: a window copies every column of its rows, and one column is
# quickly copied.
INSTANCE_TYPE = """struct<first_entry_offset: bigint, instance_id: string, protocol: string, data_epoch: int, marker_epoch: int,
    decision: string, start_ms: bigint, decided_at_ms: bigint, until_ms: bigint, prepare_leader_epoch: int, complete_leader_epoch: int,
    decided_at_offset: bigint, complete_offset: bigint>"""
_MARKER = """named_struct('type', marker_type, 'epoch', producer_epoch, 'coordinator_epoch', marker_coordinator_epoch,
    'at_ms', max_timestamp_ms, 'closes', in_open_transaction, 'data_epoch', previous_epoch, 'leader_epoch', partition_leader_epoch,
    'after_hole', predecessor = 'hole' OR coalesce(hole_at IS NOT NULL, false), 'opened_at', span_id)"""
MARKER_TYPE = """struct<type: string, epoch: int, coordinator_epoch: int, at_ms: bigint, closes: boolean, data_epoch: int,
    leader_epoch: int, after_hole: boolean, opened_at: bigint>"""
# How far the clocks lie apart at a marker: it is written between the decision and its completion.
_DISTANCE = """named_struct('least', marker.at_ms - greatest(by_rank.until_ms, by_rank.decided_at_ms),
    'most', marker.at_ms - by_rank.decided_at_ms, 'at_ms', marker.at_ms)"""
# A marker that waited for seconds tells of the distance only within seconds, and would join two others that are as far apart; so each is
# held against all of the last few before it.
_FEW_BEFORE = "ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING"
_JOINED = """named_struct('least', max(distance.least) OVER ({window}), 'most', min(distance.most) OVER ({window}),
    'at_ms', min(distance.at_ms) OVER ({window}))"""
# NTP slews a clock and does not set it: two distances differ by no more than that, and by what rounding takes.
_TOLERANCE = f"{ROUNDING_MS} + {DRIFT} * abs(marker.at_ms - distance_before.at_ms)"
# Types and epochs of a producer repeat for ever, so the n-th marker fits the n-th instance also where one is missing on each side; the
# distance between the two clocks then jumps. The first marker has none before it.
_STEADY = f"""coalesce(distance.least <= distance_before.most + ({_TOLERANCE})
    AND distance.most >= distance_before.least - ({_TOLERANCE}), true)"""
# What the steps of `_paired` leave to each other; rows are kept behind them, and would carry it.
_SCRATCH = (
    *("distance", "distance_before"),
    *("by_epoch", "by_rank", "nearest", "rank", "rivals", "rivals_most", "first_rank", "last_rank", "at_ms", "fits_rank", "is_older"),
    *("in_its_time", "matched", "all_fit", "all_in_time", "seen", "wanted", "may_repeat", "older"),
    *("last_older", "first_in_time"),
)
# A marker that ends no data repeats the one before it, perhaps; then what is open behind the last one belongs to the last transaction, or
# the last transactions were decided after the log was dumped.
_MAY_REPEAT = """bool_or(kind = 2 AND NOT coalesce(marker.closes, true)) OVER ({group}) AND (newer_decided
    OR (open_from IS NOT NULL AND NOT bool_or(kind = 0 AND own.decision IS NULL) OVER ({group})))"""
# A marker is sent when PrepareX is replicated (`TransactionCoordinator.endTransaction`): what is not decided yet waits for none.
# Lines of one dumped-at.txt stand in the order of dumping, whatever the clock did meanwhile. Of two files the times tell, which are one
# broker's, in whole seconds. A log that holds something younger than its own dump, or than the later one, shows that the clock was set back
# between them.
NOTED_MS = 1_000
_OF_ONE_LIST = "coalesce(noted_at.section_id = coordinator_noted_at.section_id, false)"
_STEADY_CLOCK = f"""coalesce(newest_broker_clock_ms <= dumped_at_ms + {NOTED_MS}, true)
    AND coalesce(coordinator_latest_ms <= coordinator_dumped_at_ms + {NOTED_MS}, true)"""
DUMPED_BEFORE = f"""IF({_OF_ONE_LIST}, noted_at < coordinator_noted_at,
    coalesce(broker <=> coordinator_broker AND coordinator_dumped_at_ms >= dumped_at_ms AND {_STEADY_CLOCK}
        AND coalesce(newest_broker_clock_ms <= coordinator_dumped_at_ms + {NOTED_MS}, true), false))"""
DUMPED_AFTER = f"""IF({_OF_ONE_LIST}, noted_at > coordinator_noted_at,
    coalesce(broker <=> coordinator_broker AND dumped_at_ms > coordinator_dumped_at_ms AND {_STEADY_CLOCK}
        AND coalesce(coordinator_latest_ms <= dumped_at_ms + {NOTED_MS}, true), false))"""
DECIDED = "(kind = 0 AND own.decision IS NOT NULL AND own.decided_at_ms IS NOT NULL)"


def match_markers(
    rows: DataFrame,
    spans: DataFrame,
    instances: DataFrame,
    *,
    reach: DataFrame,
    replica_logs: DataFrame,
    clusters: DataFrame,
    keep: Callable[[DataFrame], DataFrame] = lambda frame: frame,
) -> DataFrame:
    """The markers of each producer in each replica log, and the instances that list its partition, each matched with the other.

    Args:
        rows: what `sequences.producer_rows` returns.
        spans: the table transaction_spans, for holes before markers and what is open behind the last one.
        instances: the table transaction_instances.
        reach: what `reach.reach` returns.
        replica_logs: the table, for topic, partition, first offset and cleaning of each log, and when it was dumped.
        clusters: the table, for skew_ms.
        keep: makes rows that are read several times once.

    Returns:
        replica_log_id, producer_id, cluster, kind (0 an instance, 2 a marker), place (offset of the first entry, or of the marker), own
        (the instance), marker; found (the instance of a marker, or null), match (closing, duplicate, contradictory or null), claims (the
        place of the marker that ended an instance, on both), ambiguous (the producer's markers in this log can be told in more than one
        way), legal (and nothing is wrong in any of them), lost_among (of an instance: at least one of so many of the producer lacks its
        marker in this log, and nothing tells which).
    """
    named = (
        "replica_log_id",
        "cluster",
        "topic",
        "partition",
        "first_offset",
        "clean_end",
        "broker",
        "dumped_at_ms",
        "noted_at",
        "newest_broker_clock_ms",
    )
    logs = replica_logs.selectExpr(
        *named, "compacted AS cleaned", f"IF(compacted, coalesce(uncleaned_from, {_EVERYWHERE}L), 0L) AS cleaned_below"
    )
    skews = F.broadcast(clusters.select("cluster", "skew_ms"))
    events = _expected(instances, logs.select("replica_log_id", "cluster", "topic", "partition")).unionAll(_markers(rows, spans))
    known = events.join(F.broadcast(logs.drop("topic", "partition").join(skews, "cluster")), "replica_log_id")
    # Logs, clusters and what is open are few rows beside the markers: broadcast, so that only markers and instances are shuffled.
    unended = spans.where("marker_offset IS NULL").groupBy("replica_log_id", "producer_id")
    still_open = F.broadcast(unended.agg(F.min("span_id").alias("open_from"), F.expr("min_by(first_epoch, span_id) AS open_epoch")))
    told = (
        known.join(reach, ["cluster", "producer_id"], "left")
        .join(still_open, ["replica_log_id", "producer_id"], "left")
        .selectExpr("*", *_ends())
    )
    # One shuffle: all windows below are partitioned by these two columns and more. And kept, because three plans read the rows: which logs
    # are doubtful, what the law is asked about, and where its answers are joined.
    paired = keep(_paired(told.repartition("replica_log_id", "producer_id")))
    return _claimed(_found(paired, aligned(paired)))


def _expected(instances: DataFrame, logs: DataFrame) -> DataFrame:
    """Instance x partition x replica log: each must see one marker there once it is decided."""
    # `TransactionMarkerChannelManager.addTxnMarkersToSend` sends one to every partition of the list, also where no data was written.
    listed = instances.selectExpr(
        *("cluster", "producer_id", "marker_epoch AS epoch", "first_entry_offset AS place", f"{_INSTANCE} AS own"),
        "explode(partitions) AS listed",
    )
    found = listed.selectExpr("*", "listed.topic", "listed.partition").join(F.broadcast(logs), ["cluster", "topic", "partition"])
    return found.selectExpr(
        *("replica_log_id", "producer_id", "0 AS kind", "epoch", "place", "own"),
        f"CAST(NULL AS {MARKER_TYPE}) AS marker",
    )


def _markers(rows: DataFrame, spans: DataFrame) -> DataFrame:
    # A control batch without a type (a dump without --deep-iteration) may be either marker: it matches nothing.
    markers = rows.where("row_kind = 'marker' AND judged AND marker_type IS NOT NULL")
    holes = F.broadcast(spans.where("hole_at IS NOT NULL").selectExpr("replica_log_id", "marker_offset AS base_offset", "hole_at"))
    return markers.join(holes, ["replica_log_id", "base_offset"], "left").selectExpr(
        *("replica_log_id", "producer_id", "2 AS kind", "producer_epoch AS epoch", "base_offset AS place"),
        *(f"CAST(NULL AS {INSTANCE_TYPE}) AS own", f"{_MARKER} AS marker"),
    )


def _ends() -> list[str]:
    """Which ends of the two sequences the dumps may lack (`model.alignment.Producer`).

    Which of two logs was dumped last is told by one broker's own clock, or does not matter: both logs had ended.
    """
    return [
        # `__transaction_state` is compacted: of each id only the newest entries are sure to be left, of older markers the decisions are
        # gone.
        "known_from_ms IS NOT NULL AS older_markers",
        # Retention and the cleaner take markers from the head of the data log whose decisions are still there.
        "first_offset > 0 OR cleaned AS older_decided",
        f"NOT ({STOPPED_TOGETHER} OR {DUMPED_BEFORE}) AS newer_markers",
        f"NOT ({STOPPED_TOGETHER} OR {DUMPED_AFTER}) AS newer_decided",
    ]


def _paired(events: DataFrame) -> DataFrame:
    """Adds `method` and `partner`, the instance of a marker by that method: by epoch, place or time; null where the law must be asked."""
    # KIP-890: under TV2 every EndTxn raises the epoch, so (producer id, marker epoch) is one transaction. Those rows are a group of their
    # own: a producer id may begin under TV1 and go on under TV2.
    by_epoch = f"PARTITION BY {_LOG}, epoch"
    group = f"PARTITION BY {_LOG}, of_tv2"
    in_log = f"{group}, kind = 2, {DECIDED} ORDER BY place"
    in_time = f"{group} ORDER BY at_ms, kind, place {_BACK}"
    numbered = (
        events.selectExpr("*", f"coalesce(max(own.protocol = 'tv2') OVER ({by_epoch}), false) AS of_tv2")
        .selectExpr(
            # Both times are whole milliseconds, and a decision is written before its markers are sent: it is moved back by what rounding
            # takes.
            *("*", f"IF(kind = 2, marker.at_ms, own.decided_at_ms - {ROUNDING_MS}) AS at_ms"),
            f"IF(of_tv2, first(own, true) OVER ({by_epoch}), NULL) AS by_epoch",
            # What has no rank gets a negative one that nobody shares: in a window partitioned by rank it stands alone.
            f"IF(kind = 2 OR {DECIDED}, row_number() OVER ({in_log}), -1 - place) AS rank",
        )
        .selectExpr(
            *("*", f"IF(kind = 2, first(own, true) OVER ({group}, rank), NULL) AS by_rank"),
            # The newest decision at or before the marker: at equal times the instance comes first, and no later one can have sent it.
            f"IF(kind = 2, last(IF({DECIDED}, struct(own AS one, rank AS rank), NULL), true) OVER ({in_time}), NULL) AS nearest",
        )
    )
    return (
        numbered.selectExpr("*", f"{_DISTANCE} AS distance", *_in_time())
        .selectExpr("*", f"{_JOINED.format(window=f'{in_log} {_FEW_BEFORE}')} AS distance_before")
        .selectExpr(
            *("*", f"{_agrees('by_rank')} AND {_STEADY} AS fits_rank"),
            # Two markers within the time of one instance: one repeats the other, or is somebody else's, and time does not say which.
            f"IF(in_its_time, count_if(in_its_time) OVER (PARTITION BY {_LOG}, of_tv2, nearest.rank), 0) AS rivals",
        )
        .selectExpr(
            "*",
            f"count(marker) OVER ({group}) AS seen",
            f"count_if({DECIDED}) OVER ({group}) AS wanted",
            f"{_MAY_REPEAT.format(group=group)} AS may_repeat",
            f"bool_and(kind <> 2 OR fits_rank) OVER ({group}) AS all_fit",
            f"bool_and(kind <> 2 OR is_older OR in_its_time) OVER ({group}) AS all_in_time",
            f"count_if(in_its_time) OVER ({group}) AS matched",
            f"count_if(is_older) OVER ({group}) AS older",
            f"max(IF(is_older, place, NULL)) OVER ({group}) AS last_older",
            f"min(IF(in_its_time, place, NULL)) OVER ({group}) AS first_in_time",
            f"max(rivals) OVER ({group}) AS rivals_most",
            f"min(IF(in_its_time, nearest.rank, NULL)) OVER ({group}) AS first_rank",
            f"max(IF(in_its_time, nearest.rank, NULL)) OVER ({group}) AS last_rank",
        )
        .selectExpr("*", f"{_method()} AS method")
        .selectExpr("*", "CASE method WHEN 'epoch' THEN by_epoch WHEN 'place' THEN by_rank WHEN 'time' THEN nearest.one END AS partner")
        .drop(*_SCRATCH)
    )


def _agrees(partner: str) -> str:
    return f"coalesce({partner}.decision = marker.type AND {partner}.marker_epoch = marker.epoch, false) AND {_in_range(partner)}"


def _in_range(found: str) -> str:
    """The coordinator epoch of a marker lies between the leader epochs of PrepareX and CompleteX."""
    # Both are one counter: `EndTransactionMarker.coordinatorEpoch` is the leader epoch of the `__transaction_state` partition, which the
    # batches of PrepareX and CompleteX print as partitionLeaderEpoch.
    return f"""coalesce(marker.coordinator_epoch >= {found}.prepare_leader_epoch, true)
        AND coalesce(marker.coordinator_epoch <= {found}.complete_leader_epoch, true)"""


def _in_time() -> list[str]:
    """By time: each marker between decision and completion of one instance, or older than all that the coordinator log still tells."""
    one = "nearest.one"
    inside = f"coalesce(marker.at_ms <= greatest({one}.until_ms, {one}.decided_at_ms) + {ROUNDING_MS}, false)"
    return [
        f"kind = 2 AND {_agrees(one)} AND {inside} AS in_its_time",
        "kind = 2 AND nearest IS NULL AND older_markers AS is_older",
    ]


def _method() -> str:
    # Fewer markers than decisions, right from the first one on: the others were decided after the data log was dumped.
    each = "NOT may_repeat AND (seen = wanted OR (seen < wanted AND newer_decided))"
    by_place = f"all_fit AND NOT (older_markers OR older_decided) AND ({each})"
    # Of the decided instances none is left out between the first and the last one met; those at the ends are left out only where a dump may
    # lack their markers.
    every_one = "last_rank - first_rank + 1 = matched AND (first_rank = 1 OR older_decided) AND (last_rank = wanted OR newer_decided)"
    # So few that fit by their times may do so by chance, where as many do not overlap on both sides.
    by_chance = "matched <= least(older, wanted - last_rank)"
    # What is older stands before the others: behind them it has the clock of another leader, or of one that was set.
    in_order = "coalesce(last_older < first_in_time, true)"
    by_time = f"all_in_time AND {in_order} AND rivals_most <= 1 AND ({every_one}) AND NOT ({by_chance})"
    return f"""CASE WHEN of_tv2 THEN 'epoch' WHEN seen = 0 OR wanted = 0 THEN 'nothing' WHEN {by_place} THEN 'place'
        WHEN coalesce({by_time}, false) THEN 'time' END"""


def _found(paired: DataFrame, answers: DataFrame) -> DataFrame:
    """Adds `found`, the instance of each marker, `again` and `doubtful`; `ambiguous`: some marker of the producer in this log is; `legal`:
    nothing is wrong, whichever story is true."""
    joined = paired.join(answers, ["replica_log_id", "producer_id", "kind", "place"], "left")
    # An instance and the marker that the law gave it meet in one window partition, and nobody else does.
    entry = "IF(kind = 0, place, coalesce(at_entry, -1 - place))"
    told = f"first(own, true) OVER (PARTITION BY {_LOG}, IF(kind = 0 OR method IS NULL, {entry}, -1 - place))"
    return joined.selectExpr(
        *("replica_log_id", "producer_id", "cluster", "kind", "epoch", "place", "own", "marker", "coordinator_log_id"),
        f"IF(kind = 2 AND NOT coalesce(doubtful, false), IF(method IS NULL, {told}, partner), NULL) AS found",
        "coalesce(again, false) AS again",
        "coalesce(doubtful, false) AS doubtful",
        f"coalesce(max(doubtful) OVER (PARTITION BY {_LOG}), false) AS ambiguous",
        f"coalesce(bool_and(legal) OVER (PARTITION BY {_LOG}), true) AS legal",
        "lost_among",
    )


def _claimed(paired: DataFrame) -> DataFrame:
    """Adds `match`, and `claims`: the place of the marker that ends the instance, on both."""
    # A coordinator that was elected sends the markers of every PrepareX again
    # (`TransactionStateManager.loadTransactionsForTxnTopicPartition`), and a failed request is retried: the first marker that fits closes,
    # those behind it repeat it.
    of_instance = f"PARTITION BY {_LOG}, coalesce(own.instance_id, found.instance_id)"
    foreign = "coalesce(marker.closes AND marker.data_epoch <> found.data_epoch, false)"
    return (
        paired.selectExpr(
            "*", "coalesce(found.decision = marker.type, false) AS fits", "coalesce(found.decision <> marker.type, false) AS odd"
        )
        .selectExpr(
            "*",
            # A marker with a wrong epoch may fit an instance whose own marker comes later: that one closes data of the instance's epoch.
            f"(min(IF(fits, struct(again, {foreign} AS foreign, place), NULL)) OVER ({of_instance})).place AS first_fit",
            f"min(IF(odd, place, NULL)) OVER ({of_instance}) AS first_odd",
        )
        .selectExpr(
            "*",
            """CASE WHEN fits AND place = first_fit THEN 'closing' WHEN fits THEN 'duplicate'
                WHEN odd AND first_fit IS NULL AND place = first_odd THEN 'contradictory' END AS match""",
            """CASE WHEN kind = 0 THEN coalesce(first_fit, first_odd)
                WHEN match IN ('closing', 'contradictory') THEN place END AS claims""",
        )
        .drop("fits", "odd", "first_fit", "first_odd", "again")
    )
