-- What each marker did, and whose each span may be: for assigned_rows, open_transactions, unmatched and instance_partitions. One row per
-- judged marker and per judged span of a producer in a replica log.
--
-- `kind` says what a row is: 0 an instance that lists the log's partition, 1 a span, 2 a marker. Instances stand in the order of the
-- coordinator's log, and end as rows with step `beside_coordinators`; spans and markers stand in the order of the data log, a span right
-- before the marker that closes it, or at open_end. What ties the two orders are `claims`: of an instance the place of the marker that
-- ended it, and of that marker its own place. So one stretch of a producer's life lies between two claims, in either order.
--
-- 1_events.sql          the rows, which clocks date them, and `candidates`: instances of the stretch in which a row stands
-- 2_what_is_told.sql    whether the coordinator's log tells of that stretch, from its beginning on and up to its end: `known`, or why not
-- 3_roles.sql           `allowed`: candidates that time and epoch allow; and what each marker did
--
-- What the columns mean that are handed on, `assignment.judged_events` says. `match`, `found` and `claims` are those of matched_markers.
--
-- rows                          what `sequences.producer_rows` returns, for the broker clocks behind open spans and the leaders of each log
-- spans                         transaction_spans
-- matched                       what `marker_match.match_markers` returns
-- reach, whole_logs             what `reach` returns
-- clock_offsets, replica_logs, clusters: the tables
-- farthest_clocks               what `clock_offsets.farthest_clocks` returns
-- open_end                      the place of what no marker has ended yet
-- rounding_ms                   how far two times may differ that one clock wrote (eo_audit.model.alignment.clocks)
-- far_ms                        how far a clock may be off of which nothing is known (eo_audit.model.alignment.prices)
WITH

-- Open spans lie between two times that a broker wrote there.
open_spans AS (
    SELECT replica_log_id, producer_id, span_id FROM {spans} WHERE marker_offset IS NULL
),
clocks_around AS (
    SELECT /*+ BROADCAST(unended) */
        unended.replica_log_id, unended.producer_id, rows.max_timestamp_ms,
        IF(rows.base_offset < unended.span_id, rows.base_offset, NULL) AS before_it,
        IF(rows.base_offset >= unended.span_id, rows.base_offset, NULL) AS behind_its_start
    FROM {rows} rows
    JOIN open_spans unended ON unended.replica_log_id = rows.replica_log_id
    WHERE rows.judged AND (rows.row_kind = 'marker' OR rows.timestamp_type = 'LogAppendTime')
),
sealed AS (
    SELECT
        replica_log_id, producer_id,
        max_by(max_timestamp_ms, before_it) AS began_after_ms,
        min_by(max_timestamp_ms, behind_its_start) AS sealed_ms
    FROM clocks_around
    GROUP BY replica_log_id, producer_id
),
placed_spans AS (
    SELECT /*+ BROADCAST(sealed) */
        spans.replica_log_id, spans.producer_id,
        -- Just before the marker that closes them.
        coalesce(spans.marker_offset, {open_end}) AS place,
        struct(
            spans.span_id, spans.first_epoch, spans.last_epoch, spans.first_timestamp_ms AS first_ms, spans.last_timestamp_ms AS last_ms,
            spans.complete_past, spans.hole_at, spans.first_sequence
        ) AS span,
        sealed.began_after_ms, sealed.sealed_ms
    FROM {spans} spans
    LEFT JOIN sealed
        ON sealed.replica_log_id = spans.replica_log_id AND sealed.producer_id = spans.producer_id AND spans.marker_offset IS NULL
    WHERE spans.judged
),
-- Instances (0) and markers (2), as they were matched, and spans (1).
events AS (
    SELECT
        replica_log_id, producer_id, kind, place, own, marker, found, match, claims, doubtful, ambiguous, legal,
        unseen <=> 'hole' AS in_hole, hole_behind,
        CAST(NULL AS STRUCT<
            span_id: BIGINT, first_epoch: INT, last_epoch: INT, first_ms: BIGINT, last_ms: BIGINT, complete_past: BOOLEAN,
            hole_at: BIGINT, first_sequence: INT
        >) AS span,
        NULL AS began_after_ms, NULL AS sealed_ms
    FROM {matched}
    UNION ALL
    SELECT
        replica_log_id, producer_id, 1, place, NULL, NULL, NULL, NULL, NULL, false, false, true, false, NULL,
        span, began_after_ms, sealed_ms
    FROM placed_spans
),

logs AS (
    SELECT
        logs.replica_log_id, logs.cluster, struct(logs.topic, logs.partition) AS log, logs.first_offset, logs.compacted,
        logs.removed_before, logs.broker, logs.dumped_at_ms, logs.noted_at, logs.newest_broker_clock_ms,
        coalesce(logs.latest_broker_clock_ms - logs.newest_broker_clock_ms, 0L) AS set_back_ms,
        coalesce(logs.clean_end, false) AS clean_end,
        -- Of several brokers' dumps one has the partition: it may be a follower that lags, and the time of its dump says nothing.
        size(collect_set(logs.broker) OVER (PARTITION BY logs.cluster)) > 1
            AND size(collect_set(logs.broker) OVER (PARTITION BY logs.cluster, logs.topic, logs.partition)) = 1 AS may_lag,
        clusters.skew_ms, clusters.as_of_ms, clusters.max_transaction_timeout_ms
    FROM {replica_logs} logs
    JOIN {clusters} clusters ON clusters.cluster = logs.cluster
),
leaders AS (
    SELECT replica_log_id, max(partition_leader_epoch) AS leader_epoch FROM {rows} GROUP BY replica_log_id
),
-- Where nobody knows whose a marker is, a clock may have been set behind the last pair: what it wrote there is no time of the other's.
doubts AS (
    SELECT replica_log_id, max(place) AS doubted_at FROM {matched} WHERE kind = 2 AND doubtful AND match IS NULL GROUP BY replica_log_id
),
-- Each row with what is known of its log, of its producer in the coordinator's log, and of the clocks of both.
beside_clocks AS (
    SELECT /*+ BROADCAST(logs, farthest, leaders, clocks, doubts) */
        events.*,
        logs.* EXCEPT (replica_log_id, removed_before),
        -- What no marker ended before the broker deleted segments between two dumps: its marker may have stood in those.
        IF(kind = 1 AND place = {open_end}, get(filter(removed_before, base -> base > span.span_id), 0), NULL) AS removed_at,
        reach.* EXCEPT (cluster, producer_id),
        farthest.farthest_ms, leaders.leader_epoch, doubts.doubted_at,
        clocks.newest_pairs, clocks.newest_offset_ms, clocks.spread_ms, clocks.newest_leader_epoch, clocks.newest_coordinator_epoch,
        clocks.told_up_to_offset, clocks.newest_from_offset, clocks.newest_decision_offset, clocks.oldest_completion_offset
    FROM events
    JOIN logs ON logs.replica_log_id = events.replica_log_id
    LEFT JOIN {reach} reach ON reach.cluster = logs.cluster AND reach.producer_id = events.producer_id
    LEFT JOIN {farthest_clocks} farthest ON farthest.cluster = logs.cluster
    LEFT JOIN leaders ON leaders.replica_log_id = events.replica_log_id
    LEFT JOIN doubts ON doubts.replica_log_id = events.replica_log_id
    LEFT JOIN {clock_offsets} clocks
        ON clocks.replica_log_id = events.replica_log_id AND clocks.coordinator_log_id = reach.coordinator_log_id
),
-- ahead_ms: how far the log's clock is before the coordinator's, tolerance_ms: how exactly that is known. unsure_ms and unheard_ms are 0
-- where pairs tell of both newest leaders' clocks, to within skew_ms; else the second is as far as clocks may lie apart of which nothing is
-- known.
with_known_clocks AS (
    SELECT
        *,
        -- Pairs tell of the two clocks that wrote them: a leader that came later has its own. One pair alone may be a wrong one, if it says
        -- that the clocks lie far apart.
        coalesce(newest_leader_epoch = leader_epoch, newest_offset_ms IS NOT NULL AND leader_epoch IS NULL)
            AND coalesce(newest_coordinator_epoch = known_until_epoch, true)
            AND (newest_pairs > 1 OR abs(newest_offset_ms) <= skew_ms) AS is_clocked,
        -- Whatever is in doubt, it is not for these clocks.
        coalesce(abs(newest_offset_ms) <= skew_ms AND spread_ms <= skew_ms, false) AS is_in_step
    FROM beside_clocks
),
-- How far the log's clock is ahead, and how exactly that is known.
with_distances AS (
    -- One shuffle for all windows below.
    SELECT /*+ REPARTITION(replica_log_id, producer_id) */
        * EXCEPT (place),
        coalesce(removed_at, place) AS place,
        place = {open_end} AS is_unended,
        IF(is_clocked, newest_offset_ms, 0L) AS ahead_ms,
        IF(is_clocked, spread_ms + {rounding_ms}, skew_ms + coalesce(farthest_ms, 0L)) AS tolerance_ms,
        -- Pairs that waited for seconds tell no distance: it may be that of either bound.
        IF(is_clocked, IF(spread_ms > skew_ms, spread_ms, 0L), skew_ms + coalesce(farthest_ms, 0L)) AS unsure_ms,
        IF(is_clocked, 0L, greatest({far_ms}L, coalesce(farthest_ms, 0L))) AS unheard_ms,
        ends_instance(match) AS is_ending
    FROM with_known_clocks
),

-- Each marker and span with what lies between the instances that ended before and the one that ends next. What comes next is looked for
-- backwards: Spark takes time by the square of the rows for frames that end at UNBOUNDED FOLLOWING.
between_ends AS (
    SELECT
        * EXCEPT (match),
        match AS own_match,
        max(ambiguous) OVER producer AS of_doubtful,
        collect_list(IF(kind = 2 AND doubtful, place, NULL)) OVER producer AS doubtful_places,
        last(claims, true) OVER earlier AS begins_candidate,
        min(legal) OVER producer AS all_legal,
        coalesce(last(claims, true) OVER backwards, {open_end}) AS ends_candidate,
        last(IF(is_ending, found, NULL), true) OVER earlier AS before,
        last(marker, true) OVER earlier AS marker_before,
        last(
            IF(kind = 2, struct(marker, match, IF(match IS NULL, NULL, found) AS instance, doubtful), NULL), true
        ) OVER backwards AS closing,
        last(IF(kind = 2, struct(marker, match, found AS instance), NULL), true) OVER behind AS marker_behind
    FROM with_distances
    WINDOW
        producer AS (PARTITION BY replica_log_id, producer_id),
        earlier AS (
            PARTITION BY replica_log_id, producer_id, kind = 0 ORDER BY place, kind ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        backwards AS (
            PARTITION BY replica_log_id, producer_id, kind = 0
            ORDER BY place DESC, kind DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ),
        behind AS (
            PARTITION BY replica_log_id, producer_id, kind = 0
            ORDER BY place DESC, kind DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
-- Which marker ends each row, and which instance that is; and what may have been ended without a marker that is seen.
with_closers AS (
    SELECT
        *,
        -- The marker itself, and of a span the one that ended it.
        closing.marker AS closer,
        -- A marker whose record nobody printed has ended its span, whatever it was.
        is_unended AND closing.marker IS NULL AS is_open,
        closing.match AS match,
        closing.instance AS instance,
        coalesce(closing.match = 'closing' AND span.first_ms < closing.instance.start_ms - skew_ms, false) AS stale,
        -- Where markers can be told in two ways, one of them may have ended what seems to have no marker, if it stands between the markers
        -- that are sure before and behind it. What was running when the coordinator's log ended has no marker of those.
        IF(
            claims IS NULL AND own.decision IS NOT NULL
                AND exists(doubtful_places, at -> at > coalesce(begins_candidate, -1L) AND at < ends_candidate),
            NULL,
            own
        ) AS candidate,
        coalesce(closing.doubtful, of_doubtful AND ends_candidate = {open_end}) AS is_ambiguous,
        -- A COMMIT, an ABORT with a raised epoch, or one of a leader that came later than all that the coordinator's log tells of, which no
        -- known transaction sent, behind all that did: only a coordinator writes those.
        kind = 2 AND own_match IS NULL AND NOT doubtful AND ends_candidate = {open_end}
            -- With an epoch that no protocol version writes (T10) it tells of nothing.
            AND NOT coalesce(
                marker.closes AND marker.epoch - marker.data_epoch NOT BETWEEN 0 AND IF(marker.type = 'COMMIT', 1, 2), false
            )
            AND (
                marker.type = 'COMMIT'
                OR coalesce(marker.epoch > marker.data_epoch, false)
                OR coalesce(marker.coordinator_epoch > known_until_epoch, false)
            ) AS is_sent_unseen
    FROM between_ends
),
-- The instances of the stretch in which each row stands: they end at the same claim.
with_candidates AS (
    SELECT
        *,
        min(IF(is_sent_unseen, place, NULL)) OVER producer AS sent_unseen_from,
        -- One whose marker was among offsets that are missing has its data before or among them.
        sort_array(concat(
            collect_list(IF(in_hole, NULL, candidate)) OVER same_end,
            IF(coalesce(span.hole_at, removed_at) IS NULL, array(), collect_list(IF(in_hole, candidate, NULL)) OVER same_end)
        )) AS candidates,
        -- What no marker ended before offsets that are missing may have been ended among them, and another transaction begun.
        IF(place = {open_end} AND max(hole_behind) OVER producer > span.span_id, max(hole_behind) OVER producer, NULL) AS ended_unseen_at,
        -- A producer whose timestamps mostly lie before its transactions sets them itself: they are no clock.
        2 * count_if(stale) OVER producer <= count(span) OVER producer AS clocklike
    FROM with_closers
    WINDOW
        producer AS (PARTITION BY replica_log_id, producer_id),
        same_end AS (PARTITION BY replica_log_id, producer_id, ends_candidate)
),
