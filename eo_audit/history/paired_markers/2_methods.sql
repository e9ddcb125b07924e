-- Which marker and which instance may be a pair: by epoch, by place, or by time.

-- KIP-890: under TV2 every EndTxn raises the epoch, so (producer id, marker epoch) is one transaction. Those rows are a group of their
-- own: a producer id may begin under TV1 and go on under TV2. Where transaction.version was lowered, the transactions of TV1 keep the epoch
-- that the last one of TV2 raised: its markers are many, and told as those of TV1 are.
by_protocol AS (
    SELECT
        *,
        coalesce(max(own.protocol = 'tv2') OVER same_epoch AND NOT max(own.protocol = 'tv0') OVER same_epoch, false) AS of_tv2,
        -- Where two ids share a producer id, the one that stands first in its coordinator's log, and then by its name: so `own` begins.
        min(own) OVER same_epoch AS of_epoch,
        -- Behind the newest entry that is told TV1 may go on with its epoch (`reach.untold_epoch`); a repeated marker that ends data of the
        -- next transaction looks the same.
        newer_markers AND marker.closes AND marker.data_epoch = epoch
            AND coalesce(epoch >= untold_epoch, false)
            AND place > min(IF(kind = 2, place, NULL)) OVER same_epoch AS may_be_newer
    FROM beside_untyped
    WHERE kind <> 3
    WINDOW same_epoch AS (PARTITION BY replica_log_id, producer_id, epoch)
),
ranked AS (
    SELECT
        *,
        -- Both times are whole milliseconds, and a decision is written before its markers are sent: it is moved back by what rounding
        -- takes.
        IF(kind = 2, marker.at_ms, own.decided_at_ms - {rounding_ms}) AS at_ms,
        IF(of_tv2 AND NOT coalesce(may_be_newer, false), of_epoch, NULL) AS by_epoch,
        -- What has no rank gets a negative one that nobody shares: in a window partitioned by rank it stands alone.
        IF(
            kind = 2 OR is_decided,
            row_number() OVER (PARTITION BY replica_log_id, producer_id, of_tv2, kind = 2, is_decided ORDER BY place),
            -1 - place
        ) AS rank
    FROM by_protocol
),
candidates AS (
    SELECT
        *,
        IF(kind = 2, first(own, true) OVER (PARTITION BY replica_log_id, producer_id, of_tv2, rank), NULL) AS by_rank,
        -- The newest decision at or before the marker: at equal times the instance comes first, and no later one can have sent it.
        IF(
            kind = 2,
            last(IF(is_decided, struct(own AS one, rank), NULL), true) OVER (
                PARTITION BY replica_log_id, producer_id, of_tv2
                ORDER BY at_ms, kind, place
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ),
            NULL
        ) AS nearest
    FROM ranked
),
compared AS (
    SELECT
        *,
        may_be_its_marker(
            marker.type, marker.epoch, marker.coordinator_epoch, by_rank.decision, by_rank.marker_epoch, by_rank.complete_leader_epoch
        ) AS agrees_by_rank,
        may_be_its_marker(
            marker.type, marker.epoch, marker.coordinator_epoch,
            nearest.one.decision, nearest.one.marker_epoch, nearest.one.complete_leader_epoch
        ) AS agrees_by_time,
        coalesce(marker.at_ms <= greatest(nearest.one.until_ms, nearest.one.decided_at_ms) + {rounding_ms}, false) AS is_in_its_time,
        -- How far the clocks lie apart at a marker: it is written between the decision and its completion.
        struct(
            marker.at_ms - greatest(by_rank.until_ms, by_rank.decided_at_ms) AS least,
            marker.at_ms - by_rank.decided_at_ms AS most,
            marker.at_ms AS at_ms
        ) AS distance
    FROM candidates
),
-- By time: each marker between decision and completion of one instance, or older than all that the coordinator log still tells.
beside_few_before AS (
    SELECT
        *,
        kind = 2 AND agrees_by_time AND is_in_its_time AS in_its_time,
        kind = 2 AND nearest IS NULL AND older_markers AS is_older,
        -- A marker that waited for seconds tells of the distance only within seconds, and would join two others that are as far apart; so
        -- each is held against all of the last few before it.
        struct(
            max(distance.least) OVER few_before AS least,
            min(distance.most) OVER few_before AS most,
            min(distance.at_ms) OVER few_before AS at_ms
        ) AS distance_before,
        -- Offsets are missing before the marker, or within what it ends, or nobody knows what a marker says that stands between.
        marker.after_hole OR coalesce(kind = 2 AND untyped_before > coalesce(max(place) OVER few_before, -1L), false) AS after_hole
    FROM compared
    WINDOW few_before AS (
        PARTITION BY replica_log_id, producer_id, of_tv2, kind = 2, is_decided
        ORDER BY place
        ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING
    )
),
tolerated AS (
    -- NTP slews a clock and does not set it: two distances differ by no more than that, and by what rounding takes.
    SELECT *, {rounding_ms} + {drift} * abs(marker.at_ms - distance_before.at_ms) AS tolerance FROM beside_few_before
),
fitted AS (
    SELECT
        *,
        -- Types and epochs of a producer repeat for ever, so the n-th marker fits the n-th instance also where one is missing on each side;
        -- the distance between the two clocks then jumps. The first marker has none before it.
        agrees_by_rank AND coalesce(
            distance.least <= distance_before.most + tolerance AND distance.most >= distance_before.least - tolerance, true
        ) AS fits_rank,
        -- Two markers within the time of one instance: one repeats the other, or is somebody else's, and time does not say which.
        IF(in_its_time, count_if(in_its_time) OVER (PARTITION BY replica_log_id, producer_id, of_tv2, nearest.rank), 0) AS rivals
    FROM tolerated
),
of_producer AS (
    SELECT
        *,
        count(marker) OVER producer AS seen,
        count_if(is_decided) OVER producer AS wanted,
        -- A marker that ends no data repeats the one before it, perhaps; then what is open behind the last one belongs to the last
        -- transaction, or the last transactions were decided after the log was dumped.
        bool_or(kind = 2 AND NOT coalesce(marker.closes, true)) OVER producer AND (
            newer_decided OR (open_from IS NOT NULL AND NOT bool_or(kind = 0 AND own.decision IS NULL) OVER producer)
        ) AS may_repeat,
        bool_and(kind <> 2 OR fits_rank) OVER producer AS all_fit,
        bool_and(kind <> 2 OR is_older OR in_its_time) OVER producer AS all_in_time,
        -- What is not complete has all the time there is: a marker that ends no data may repeat the one before it.
        bool_or(in_its_time AND NOT coalesce(marker.closes, true) AND nearest.one.until_ms >= {never_ms}) OVER producer AS fits_any_time,
        count_if(in_its_time) OVER producer AS matched,
        count_if(is_older) OVER producer AS older,
        max(IF(is_older, place, NULL)) OVER producer AS last_older,
        min(IF(in_its_time, place, NULL)) OVER producer AS first_in_time,
        max(rivals) OVER producer AS rivals_most,
        min(IF(in_its_time, nearest.rank, NULL)) OVER producer AS first_rank,
        max(IF(in_its_time, nearest.rank, NULL)) OVER producer AS last_rank,
        -- Behind all that is known to be the producer's own offsets are missing, or a marker without its record stands there.
        IF(
            greatest(last_hole, last_untyped) > coalesce(max(IF(kind = 2, place, NULL)) OVER producer, -1L),
            greatest(last_hole, last_untyped),
            NULL
        ) AS hole_behind,
        coalesce(bool_or(after_hole) OVER producer, false) AS is_over_hole,
        -- What a marker without its record ended counts as a decision, and it has no rank.
        bool_or(kind = 2 AND untyped_before IS NOT NULL) OVER producer AS is_over_untyped
    FROM fitted
    WINDOW producer AS (PARTITION BY replica_log_id, producer_id, of_tv2)
),
told_by AS (
    SELECT
        *,
        all_fit AND NOT (older_markers OR older_decided)
            -- Fewer markers than decisions, right from the first one on: the others were decided after the data log was dumped.
            -- Or they stood among offsets that are missing behind the last one.
            AND NOT may_repeat
            AND NOT is_over_untyped
            AND (seen = wanted OR (seen < wanted AND (newer_decided OR (hole_behind IS NOT NULL AND NOT is_over_hole)))) AS by_place,
        all_in_time
            AND NOT fits_any_time
            -- What is older stands before the others: behind them it has the clock of another leader, or of one that was set.
            AND coalesce(last_older < first_in_time, true)
            AND rivals_most <= 1
            -- Of the decided instances none is left out between the first and the last one met; those at the ends are left out only where a
            -- dump may lack their markers. A log that holds markers older than all that is decided lacks none of the first ones.
            AND last_rank - first_rank + 1 = matched
            AND (first_rank = 1 OR (older_decided AND older = 0))
            AND (last_rank = wanted OR newer_decided OR hole_behind IS NOT NULL)
            -- So few that fit by their times may do so by chance, where as many do not overlap on both sides.
            AND NOT (matched <= least(older, wanted - last_rank))
            -- Nor a single one where another decision is left out and nothing is known of both ends: the law hears the other producers.
            AND NOT (
                matched = 1 AND wanted > 1 AND (older_markers OR older_decided)
                AND (newer_markers OR newer_decided OR hole_behind IS NOT NULL)
            ) AS by_time
    FROM of_producer
),
methods AS (
    SELECT
        *,
        CASE
            WHEN of_tv2 THEN 'epoch' WHEN seen = 0 OR wanted = 0 THEN 'nothing' WHEN by_place THEN 'place' WHEN by_time THEN 'time'
        END AS method
    FROM told_by
)

SELECT
    replica_log_id, producer_id, cluster, kind, epoch, place, own, marker, after_hole,
    skew_ms, epochs_are_elections, cleaned_below,
    coordinator_log_id, known_until_ms, known_until_epoch, known_from_offset, open_from, open_epoch,
    older_markers, older_decided, newer_markers, newer_decided, both_stopped, hole_behind, of_tv2,
    method,
    CASE method WHEN 'epoch' THEN by_epoch WHEN 'place' THEN by_rank WHEN 'time' THEN nearest.one END AS partner
FROM methods
