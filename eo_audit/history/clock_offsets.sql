-- How far the clock behind a log is ahead of the coordinator's, as the log's own markers tell: one row per replica log and coordinator's
-- log that have a matched pair.
--
-- matched               what `marker_match.match_markers` returns
-- never_ms              `until_ms` of what was not completed lies beyond this
-- rounding_ms, drift    how far two times may differ that one clock wrote (eo_audit.model.alignment.clocks)
WITH

-- What each matched pair tells of the clocks: they lie apart by `at_least` (null where nothing bounds it) to `at_most` ms.
matched_pairs AS (
    SELECT
        replica_log_id, coordinator_log_id, cluster, place AS at_offset, marker.at_ms AS at_ms,
        IF(
            -- Else the completion has another leader's time, or that of a clock that was set back (`model.alignment.clocks.of_two_clocks`).
            coalesce(found.prepare_leader_epoch = found.complete_leader_epoch, true)
                AND found.until_ms >= found.decided_at_ms - {rounding_ms}
                AND found.until_ms < {never_ms},
            marker.at_ms - greatest(found.until_ms, found.decided_at_ms),
            NULL
        ) AS at_least,
        marker.at_ms - found.decided_at_ms AS at_most,
        found.decided_at_offset AS decided_at_offset,
        found.complete_offset AS complete_offset,
        found.decided_at_ms AS decided_at_ms,
        marker.leader_epoch AS leader_epoch,
        found.prepare_leader_epoch AS coordinator_epoch
    FROM {matched}
    WHERE found.decided_at_ms IS NOT NULL AND match = 'closing' AND coordinator_log_id IS NOT NULL
),
-- Each leader has a clock of its own, that of the partition and that of the coordinator. Without a completion of the same leader a marker
-- may have come at any time: it bounds the distance from one side only.
ordered AS (
    SELECT
        *,
        row_number() OVER bounded_first AS place,
        first(at_least IS NOT NULL) OVER bounded_first AS is_bounded,
        struct(leader_epoch, coordinator_epoch) <=> first(struct(leader_epoch, coordinator_epoch)) OVER bounded_first AS of_newest_leaders
    FROM matched_pairs
    WINDOW bounded_first AS (PARTITION BY replica_log_id, coordinator_log_id ORDER BY at_least IS NULL, at_offset DESC)
),
telling AS (
    SELECT *, of_newest_leaders AND (at_least IS NOT NULL OR NOT is_bounded) AS tells FROM ordered
),

-- Whether the clock of one of the two leaders was set behind a pair, as later pairs of both show: what waited long fits nearly any
-- distance, so not the next one alone is asked.
followed AS (
    SELECT
        *,
        max(at_least) OVER behind AS most_least,
        min(at_most) OVER behind AS least_most,
        max(at_ms) OVER behind AS last_at_ms
    FROM telling
    WINDOW behind AS (
        PARTITION BY replica_log_id, coordinator_log_id, leader_epoch, coordinator_epoch, tells
        ORDER BY at_offset DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
tolerated AS (
    -- Clocks drift, and each time is rounded to a millisecond: only what is beyond both was a step (NTP, a machine that was resumed).
    SELECT *, {rounding_ms} + {drift} * abs(last_at_ms - at_ms) AS tolerance FROM followed
),
steps AS (
    SELECT *, coalesce(at_least > least_most + tolerance OR at_most < most_least - tolerance, false) AS is_before_step FROM tolerated
),
counted AS (
    -- Counted from the end of the log backwards: a pair from before a step tells nothing of where the clock stood at the dump.
    SELECT
        *,
        count_if(is_before_step) OVER (
            PARTITION BY replica_log_id, coordinator_log_id, leader_epoch, coordinator_epoch, tells
            ORDER BY at_offset DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS sets_behind
    FROM steps
),

marked AS (
    -- 64 pairs tell of the end of a log.
    SELECT *, place <= 64 AND tells AND sets_behind = 0 AS is_newest FROM counted
),
summed AS (
    SELECT
        replica_log_id, coordinator_log_id,
        max(cluster) AS cluster,
        count(1) AS pairs,
        count_if(is_newest) AS newest_pairs,
        min(IF(is_newest, at_offset, NULL)) AS newest_from_offset,
        median(coalesce(at_least, at_most)) AS all_least,
        median(at_most) AS all_most,
        median(IF(is_newest, coalesce(at_least, at_most), NULL)) AS least,
        median(IF(is_newest, at_most, NULL)) AS most,
        -- A marker that waited for its partition is an outlier, no width of the clocks: the outer tenths stay out.
        percentile(IF(is_newest, at_most, NULL), 0.1) AS lowest,
        percentile(IF(is_newest, at_most, NULL), 0.9) AS highest,
        max(greatest(at_least, -at_most, 0L)) AS farthest_offset_ms,
        max(decided_at_offset) AS newest_decision_offset,
        max_by(decided_at_ms, decided_at_offset) AS newest_decision_ms,
        min(complete_offset) AS oldest_completion_offset,
        min_by(IF(is_bounded, leader_epoch, NULL), place) AS newest_leader_epoch,
        min_by(coordinator_epoch, place) AS newest_coordinator_epoch,
        max(IF(complete_offset IS NOT NULL, at_offset, NULL)) AS told_up_to_offset,
        max(at_offset) AS newest_pair_offset
    FROM marked
    GROUP BY replica_log_id, coordinator_log_id
)

SELECT
    cluster, replica_log_id, coordinator_log_id, pairs, newest_pairs, newest_from_offset,
    CAST(proved_distance(all_least, all_most) AS BIGINT) AS offset_ms,
    CAST(proved_distance(least, most) AS BIGINT) AS newest_offset_ms,
    farthest_offset_ms,
    -- Behind the last pair with one coordinator, pairs with others may show that a clock was set since: theirs, or the log's.
    CAST(ceil(max(greatest(most - least, (highest - lowest) / 2)) OVER since) AS BIGINT) AS spread_ms,
    newest_decision_offset, newest_decision_ms, oldest_completion_offset, newest_leader_epoch, newest_coordinator_epoch, told_up_to_offset
FROM summed
WINDOW since AS (PARTITION BY replica_log_id ORDER BY newest_pair_offset DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
