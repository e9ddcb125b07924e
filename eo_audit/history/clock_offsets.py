"""clock_offsets: how far the clock behind a log is ahead of the coordinator's, as the log's own markers tell.

A marker is written by the clock of the partition's leader, between the decision and the completion that the coordinator's clock wrote: each
matched pair bounds the distance of both clocks from two sides. The pairs of all producers together give it, as medians, so that a marker
that waited for its partition does not count; the newest pairs tell where the clocks stood when the dump was made.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from eo_audit.model.marker_clocks import DRIFT, ROUNDING_MS
from eo_audit.model.marker_prices import FAR_MS

NEWEST = 64  # pairs that tell of the end of a log
NEVER_MS = 2**60
# Else the completion has another leader's time, or that of a clock that was set back (`model.marker_clocks.of_two_clocks`).
_ONE_CLOCK = f"""coalesce(found.prepare_leader_epoch = found.complete_leader_epoch, true)
    AND found.until_ms >= found.decided_at_ms - {ROUNDING_MS}"""
# While 0 lies between the bounds the clocks may be one; else the bound next to 0 is the distance that is proved.
_BETWEEN = "IF(least <= 0 AND most >= 0, 0L, IF(abs(least) < abs(most), least, most))"


def clock_offsets(matched: DataFrame) -> DataFrame:
    """The table clock_offsets: one row per replica log and coordinator's log that have a matched pair.

    Args:
        matched: what `marker_match.match_markers` returns.
    """
    key, leaders = "replica_log_id, coordinator_log_id", "struct(leader_epoch, coordinator_epoch)"
    # Each leader has a clock of its own, that of the partition and that of the coordinator. Without a completion of the same leader a
    # marker may have come at any time: it bounds the distance from one side only.
    bounded_first = f"OVER (PARTITION BY {key} ORDER BY at_least IS NULL, at_offset DESC)"
    ordered = _pairs(matched).selectExpr(
        *("*", f"row_number() {bounded_first} AS place", f"first(at_least IS NOT NULL) {bounded_first} AS is_bounded"),
        f"{leaders} <=> first({leaders}) {bounded_first} AS of_newest_leaders",
    )
    newest = f"place <= {NEWEST} AND tells AND sets_behind = 0"
    told = (
        _sets(ordered.selectExpr("*", "of_newest_leaders AND (at_least IS NOT NULL OR NOT is_bounded) AS tells"), key)
        .groupBy("replica_log_id", "coordinator_log_id")
        .agg(
            *_sums(
                cluster="max(cluster)",
                pairs="count(1)",
                newest_pairs=f"count_if({newest})",
                newest_from_offset=f"min(IF({newest}, at_offset, NULL))",
                all_least="median(coalesce(at_least, at_most))",
                all_most="median(at_most)",
                least=f"median(IF({newest}, coalesce(at_least, at_most), NULL))",
                most=f"median(IF({newest}, at_most, NULL))",
                # A marker that waited for its partition is an outlier, no width of the clocks: the outer tenths stay out.
                lowest=f"percentile(IF({newest}, at_most, NULL), 0.1)",
                highest=f"percentile(IF({newest}, at_most, NULL), 0.9)",
                farthest_offset_ms="max(greatest(at_least, -at_most, 0L))",
                newest_decision_offset="max(decided_at_offset)",
                newest_decision_ms="max_by(decided_at_ms, decided_at_offset)",
                oldest_completion_offset="min(complete_offset)",
                newest_leader_epoch="min_by(IF(is_bounded, leader_epoch, NULL), place)",
                newest_coordinator_epoch="min_by(coordinator_epoch, place)",
                told_up_to_offset="max(IF(complete_offset IS NOT NULL, at_offset, NULL))",
            )
        )
    )
    every = _BETWEEN.replace("least", "all_least").replace("most", "all_most")
    return told.selectExpr(
        *("cluster", "replica_log_id", "coordinator_log_id", "pairs", "newest_pairs", "newest_from_offset"),
        f"CAST({every} AS BIGINT) AS offset_ms",
        *(f"CAST({_BETWEEN} AS BIGINT) AS newest_offset_ms", "farthest_offset_ms"),
        "CAST(ceil(greatest(most - least, (highest - lowest) / 2)) AS BIGINT) AS spread_ms",
        *(
            "newest_decision_offset",
            "newest_decision_ms",
            "oldest_completion_offset",
            "newest_leader_epoch",
            "newest_coordinator_epoch",
            "told_up_to_offset",
        ),
    )


def _pairs(matched: DataFrame) -> DataFrame:
    """What each matched pair tells of the clocks: they lie apart by `at_least` (null where nothing bounds it) to `at_most` ms."""
    least = "marker.at_ms - greatest(found.until_ms, found.decided_at_ms)"
    pair = "found.decided_at_ms IS NOT NULL AND match = 'closing' AND coordinator_log_id IS NOT NULL"
    return matched.where(pair).selectExpr(
        *("replica_log_id", "coordinator_log_id", "cluster", "place AS at_offset", "marker.at_ms AS at_ms"),
        f"IF({_ONE_CLOCK} AND found.until_ms < {NEVER_MS}L, {least}, NULL) AS at_least",
        *("marker.at_ms - found.decided_at_ms AS at_most", "found.decided_at_offset", "found.complete_offset", "found.decided_at_ms"),
        *("marker.leader_epoch AS leader_epoch", "found.prepare_leader_epoch AS coordinator_epoch"),
    )


def _sets(pairs: DataFrame, key: str) -> DataFrame:
    """Adds sets_behind: how often the clock of one of the two leaders was set behind a pair, as later pairs of both show."""
    order = f"OVER (PARTITION BY {key}, leader_epoch, coordinator_epoch, tells ORDER BY at_offset"
    # Clocks drift, and each time is rounded to a millisecond: only what is beyond both was a step (NTP, a machine that was resumed).
    tolerance = f"({ROUNDING_MS} + {DRIFT} * (at_ms - before.at_ms))"
    is_set = f"coalesce(at_least > before.at_most + {tolerance} OR at_most < before.at_least - {tolerance}, false)"
    return (
        pairs.selectExpr("*", f"lag(struct(at_least, at_most, at_ms)) {order}) AS before")
        .selectExpr("*", f"{is_set} AS is_set")
        # Counted from the end of the log backwards: a pair from before a step tells nothing of where the clock stood at the dump.
        .selectExpr("*", f"coalesce(count_if(is_set) {order} DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0L) AS sets_behind")
    )


def farthest(clock_offsets: DataFrame) -> DataFrame:
    """cluster and farthest_ms: of a log without a matched marker nobody knows the clock; it may be as far away as any other of the cluster.

    Args:
        clock_offsets: the table.
    """
    return clock_offsets.groupBy("cluster").agg(F.expr("max(abs(newest_offset_ms)) AS farthest_ms"))


def clocked(events: DataFrame, rows: DataFrame, clock_offsets: DataFrame) -> DataFrame:
    """Events of producers with ahead_ms (of their log's clock before the coordinator's), tolerance_ms (how exactly that is known),
    unsure_ms and unheard_ms (0 where pairs tell of both newest leaders' clocks, to within skew_ms; the second as far as clocks may lie
    apart of which nothing is known), newest_leader_epoch, newest_coordinator_epoch, newest_from_offset, told_up_to_offset,
    newest_decision_offset and oldest_completion_offset.

    Args:
        events: with cluster, replica_log_id, coordinator_log_id, known_until_epoch and skew_ms.
        rows: what `sequences.producer_rows` returns, for the newest leader of each log.
        clock_offsets: the table.
    """
    told_by = ("newest_pairs", "newest_offset_ms", "spread_ms", "newest_leader_epoch", "newest_coordinator_epoch", "told_up_to_offset")
    by_order = ("newest_from_offset", "newest_decision_offset", "oldest_completion_offset")
    ahead = F.broadcast(clock_offsets.select("replica_log_id", "coordinator_log_id", *told_by, *by_order))
    leaders = F.broadcast(rows.groupBy("replica_log_id").agg(F.max("partition_leader_epoch").alias("leader_epoch")))
    return (
        events.join(F.broadcast(farthest(clock_offsets)), "cluster", "left")
        .join(leaders, "replica_log_id", "left")
        .join(ahead, ["replica_log_id", "coordinator_log_id"], "left")
        # Pairs tell of the two clocks that wrote them: a leader that came later has its own. One pair alone may be a wrong one, if it says
        # that the clocks lie far apart.
        .selectExpr(
            "*",
            """coalesce(newest_leader_epoch = leader_epoch, newest_offset_ms IS NOT NULL AND leader_epoch IS NULL)
                AND coalesce(newest_coordinator_epoch = known_until_epoch, true)
                AND (newest_pairs > 1 OR abs(newest_offset_ms) <= skew_ms) AS is_clocked""",
        )
        .selectExpr(
            *("*", "IF(is_clocked, newest_offset_ms, 0L) AS ahead_ms"),
            f"IF(is_clocked, spread_ms + {ROUNDING_MS}, skew_ms + coalesce(farthest_ms, 0L)) AS tolerance_ms",
            # Pairs that waited for seconds tell no distance: it may be that of either bound.
            "IF(is_clocked, IF(spread_ms > skew_ms, spread_ms, 0L), skew_ms + coalesce(farthest_ms, 0L)) AS unsure_ms",
            f"IF(is_clocked, 0L, greatest({FAR_MS}L, coalesce(farthest_ms, 0L))) AS unheard_ms",
        )
    )


def _sums(**columns: str) -> list[Column]:
    return [F.expr(f"{sql} AS {name}") for name, sql in columns.items()]
