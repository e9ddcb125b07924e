-- Markers and spans of each producer in each replica log, what lies between the instances that ended before and the one that ends next, and
-- what can be said of them: whether the coordinator's log tells, which instances time and epoch allow, and what each marker did.
--
-- rows                          what `sequences.producer_rows` returns, for the broker clocks behind open spans and the leaders of each log
-- spans                         transaction_spans
-- matched                       what `marker_match.match_markers` returns
-- reach, whole_logs             what `reach` returns
-- clock_offsets, replica_logs, clusters: the tables
-- open_end                      the place of what no marker has ended yet
-- rounding_ms                   how far two times may differ that one clock wrote (eo_audit.model.marker_clocks)
-- far_ms                        how far a clock may be off of which nothing is known (eo_audit.model.marker_prices)
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
-- Instances and markers, as they were matched, and spans.
events AS (
    SELECT
        replica_log_id, producer_id, kind, place, own, marker, found, match, claims, doubtful, ambiguous, legal,
        CAST(NULL AS STRUCT<
            span_id: BIGINT, first_epoch: INT, last_epoch: INT, first_ms: BIGINT, last_ms: BIGINT, complete_past: BOOLEAN,
            hole_at: BIGINT, first_sequence: INT
        >) AS span,
        NULL AS began_after_ms, NULL AS sealed_ms
    FROM {matched}
    UNION ALL
    SELECT
        replica_log_id, producer_id, 1, place, NULL, NULL, NULL, NULL, NULL, false, false, true,
        span, began_after_ms, sealed_ms
    FROM placed_spans
),

logs AS (
    SELECT
        logs.replica_log_id, logs.cluster, struct(logs.topic, logs.partition) AS log, logs.first_offset,
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
farthest AS (
    -- Of a log without a matched marker nobody knows the clock; it may be as far away as any other of the cluster.
    SELECT cluster, max(abs(newest_offset_ms)) AS farthest_ms FROM {clock_offsets} GROUP BY cluster
),
leaders AS (
    SELECT replica_log_id, max(partition_leader_epoch) AS leader_epoch FROM {rows} GROUP BY replica_log_id
),
-- Where nobody knows whose a marker is, a clock may have been set behind the last pair: what it wrote there is no time of the other's.
doubts AS (
    SELECT replica_log_id, max(place) AS doubted_at FROM {matched} WHERE kind = 2 AND doubtful AND match IS NULL GROUP BY replica_log_id
),
located AS (
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
    LEFT JOIN farthest ON farthest.cluster = logs.cluster
    LEFT JOIN leaders ON leaders.replica_log_id = events.replica_log_id
    LEFT JOIN doubts ON doubts.replica_log_id = events.replica_log_id
    LEFT JOIN {clock_offsets} clocks
        ON clocks.replica_log_id = events.replica_log_id AND clocks.coordinator_log_id = reach.coordinator_log_id
),
-- ahead_ms: how far the log's clock is before the coordinator's, tolerance_ms: how exactly that is known. unsure_ms and unheard_ms are 0
-- where pairs tell of both newest leaders' clocks, to within skew_ms; else the second is as far as clocks may lie apart of which nothing is
-- known.
clocked AS (
    SELECT
        *,
        -- Pairs tell of the two clocks that wrote them: a leader that came later has its own. One pair alone may be a wrong one, if it says
        -- that the clocks lie far apart.
        coalesce(newest_leader_epoch = leader_epoch, newest_offset_ms IS NOT NULL AND leader_epoch IS NULL)
            AND coalesce(newest_coordinator_epoch = known_until_epoch, true)
            AND (newest_pairs > 1 OR abs(newest_offset_ms) <= skew_ms) AS is_clocked,
        -- Whatever is in doubt, it is not for these clocks.
        coalesce(abs(newest_offset_ms) <= skew_ms AND spread_ms <= skew_ms, false) AS is_in_step
    FROM located
),
measured AS (
    -- One shuffle for all windows below.
    SELECT /*+ REPARTITION(replica_log_id, producer_id) */
        * EXCEPT (place),
        coalesce(removed_at, place) AS place,
        IF(is_clocked, newest_offset_ms, 0L) AS ahead_ms,
        IF(is_clocked, spread_ms + {rounding_ms}, skew_ms + coalesce(farthest_ms, 0L)) AS tolerance_ms,
        -- Pairs that waited for seconds tell no distance: it may be that of either bound.
        IF(is_clocked, IF(spread_ms > skew_ms, spread_ms, 0L), skew_ms + coalesce(farthest_ms, 0L)) AS unsure_ms,
        IF(is_clocked, 0L, greatest({far_ms}L, coalesce(farthest_ms, 0L))) AS unheard_ms,
        ends_instance(match) AS is_ending
    FROM clocked
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
    FROM measured
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
closed AS (
    SELECT
        *,
        closing.marker AS closer,
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
with_candidates AS (
    SELECT
        *,
        min(IF(is_sent_unseen, place, NULL)) OVER producer AS sent_unseen_from,
        sort_array(collect_list(candidate) OVER (PARTITION BY replica_log_id, producer_id, ends_candidate)) AS candidates,
        -- A producer whose timestamps mostly lie before its transactions sets them itself: they are no clock.
        2 * count_if(stale) OVER producer <= count(span) OVER producer AS clocklike
    FROM closed
    WINDOW producer AS (PARTITION BY replica_log_id, producer_id)
),

-- Clusters in which a coordinator wrote markers of producers that the coordinator's log does not know.
strangers AS (
    SELECT sent.cluster, true AS has_strangers
    FROM {matched} sent
    LEFT ANTI JOIN {reach} reach ON reach.cluster = sent.cluster AND reach.producer_id = sent.producer_id
    WHERE sent.kind = 2
        -- An ABORT with the epoch of the data may be a hand's (`kafka-transactions.sh abort`).
        AND (
            sent.marker.type = 'COMMIT'
            OR coalesce(sent.marker.closes AND sent.marker.epoch - sent.marker.data_epoch BETWEEN 1 AND 2, false)
        )
    GROUP BY sent.cluster
),
coordinators AS (
    SELECT whole_logs.*, strangers.has_strangers, coalesce(strangers.has_strangers, false) OR knows_nobody AS other_coordinator
    FROM {whole_logs} whole_logs
    LEFT JOIN strangers ON strangers.cluster = whole_logs.cluster
),
asked AS (
    SELECT /*+ BROADCAST(coordinators) */ events.*, coordinators.* EXCEPT (cluster)
    FROM with_candidates events
    LEFT JOIN coordinators ON coordinators.cluster = events.cluster
    WHERE events.kind > 0
),

-- The coordinator's log tells of what stands here if it was dumped behind it: one broker's own clock says so, or the time of a marker at
-- that place or behind it, on the coordinator's clock; or both brokers had been stopped.
dated AS (
    SELECT
        *,
        IF(marker IS NULL AND closer IS NULL, sealed_ms, coalesce(marker.at_ms, closer.at_ms)) - ahead_ms AS sealed_at_ms,
        stopped_together(clean_end, broker, stopped_with) AS stopped_together,
        stopped_together(clean_end, broker, whole_stopped_with) AS stopped_with_all,
        dumped_first(
            noted_at, coordinator_noted_at, broker, coordinator_broker, dumped_at_ms, coordinator_dumped_at_ms, newest_broker_clock_ms,
            coordinator_latest_ms
        ) AS dumped_first,
        ends_instance(match) AS by_marker,
        coalesce(coalesce(span.span_id, place) <= told_up_to_offset, false) AS by_order,
        coalesce(place >= sent_unseen_from, false) AS is_unseen,
        -- The clock of an older leader is not the one whose distance is known, nor the same one before it was set.
        coalesce(coalesce(marker, closer).leader_epoch = newest_leader_epoch, true)
            AND coalesce(known_from_epoch = newest_coordinator_epoch, true)
            AND coalesce(place >= newest_from_offset, true)
            -- What is dated behind the last that its broker wrote here was dated before the clock was set back.
            AND coalesce(coalesce(marker, closer).at_ms <= newest_broker_clock_ms + skew_ms, true)
            -- Nor is a clock known by which a marker was written after all that is told of its coordinator.
            AND coalesce(coalesce(marker, closer).at_ms - ahead_ms <= known_until_ms + skew_ms + unheard_ms, true) AS by_known_clock,
        -- Of the clock that dates it nothing is known, though another leader's is: a minute is nothing then. It may also have been set back
        -- by as much as the log's times go back.
        IF(
            coalesce(NOT is_clocked AND newest_pairs > 0 AND coalesce(marker, closer).leader_epoch <> newest_leader_epoch, false),
            unheard_ms,
            unsure_ms
        ) + set_back_ms AS dated_within_ms
    FROM asked
),
bounded AS (
    SELECT
        *,
        -- What ended before lines of the coordinator's log were lost tells nothing of what came between.
        before IS NOT NULL AND NOT coalesce(before.first_entry_offset < known_from_offset, false) AS has_begun,
        known_from_ms IS NULL
            OR (
                -- Epochs never go down: what ended with an older one than that of the producer's first entry left stood before it, whatever
                -- the clocks say.
                coalesce(coalesce(marker, closer).epoch >= known_from_producer_epoch, true)
                AND coalesce(
                    by_known_clock AND coalesce(sealed_at_ms, span.last_ms - ahead_ms) > known_from_ms + skew_ms + unheard_ms, true
                )
            ) AS begins,
        stopped_together OR dumped_first = 'log' AS dumped_behind,
        coalesce(sealed_at_ms + dated_within_ms <= known_until_ms, false) AS by_time,
        -- What the coordinator's log no longer tells had ended when the oldest entry left of the producer was written: where this log goes
        -- on behind that, by the clocks or by the marker of a later decision, the end would be here.
        stopped_together
            OR dumped_first = 'coordinator'
            OR coalesce(newest_decision_offset > known_from_offset, false)
            OR coalesce(
                greatest(newest_broker_clock_ms, IF(may_lag, NULL, dumped_at_ms)) - ahead_ms - unsure_ms >= known_from_ms, false
            ) AS reaches_head,
        coalesce(may_lag AND dumped_at_ms - ahead_ms - unsure_ms >= known_from_ms, false) AS would_reach_head,
        -- A coordinator that knows nothing of a producer whose markers only a coordinator can have written is not the one that did, and its
        -- log, made anew, tells of no producer before.
        whole AND NOT other_coordinator
            AND (stopped_with_all OR coalesce(sealed_at_ms + dated_within_ms <= whole_until_ms, false)) AS in_whole,
        -- No transaction can have hung for long that began after the coordinator's log was dumped, or not long before the dump of this log.
        -- Nothing was going on where the broker had been stopped.
        NOT clean_end
            AND (
                coalesce(
                    sealed_at_ms - IF(coalesce(has_story, false), known_until_ms, whole_until_ms) <= max_transaction_timeout_ms, false
                )
                OR (
                    marker IS NULL AND closer IS NULL
                    AND coalesce(began_after_ms - ahead_ms >= as_of_ms - max_transaction_timeout_ms, false)
                )
            ) AS is_young
    FROM dated
),
reached AS (
    SELECT
        * EXCEPT (is_ambiguous),
        -- What is open behind the last pair, and dated by such a clock only.
        is_ambiguous
            OR (span IS NOT NULL AND closer IS NULL AND NOT dumped_behind AND NOT by_order AND coalesce(doubted_at > told_up_to_offset, false))
            AS is_ambiguous,
        -- A marker that only a coordinator writes, of a transaction that its log does not tell of: the log was cut, whenever it was dumped.
        -- One without its head may only have forgotten that transaction; and of two brokers that had stopped, nothing is still to come.
        (by_order OR NOT is_unseen OR stopped_together OR (known_from_ms IS NOT NULL AND dumped_behind))
            AND (dumped_behind OR by_order OR by_time OR by_marker) AS to_the_end,
        -- Its end may stand behind all that the coordinator's log tells.
        dumped_behind OR coalesce(place <= told_up_to_offset, false) OR by_time AS end_is_told
    FROM bounded
),
told AS (
    SELECT
        *,
        NOT is_ambiguous
            AND IF(coalesce(has_story, false), (has_begun OR begins) AND to_the_end, coalesce(in_whole, false)) AS known
    FROM reached
),
explained AS (
    SELECT
        *,
        CASE
            WHEN is_ambiguous AND (NOT all_legal OR (marker IS NULL AND closer IS NULL AND NOT is_young))
                THEN IF(known_from_ms IS NOT NULL AND is_in_step, 'head_in_doubt', 'clocks_apart')
            WHEN is_ambiguous AND marker IS NULL AND closer IS NULL THEN 'live_tail'
            WHEN is_ambiguous THEN IF(known_from_ms IS NULL, 'live_tail', 'coordinator_compacted')
            WHEN known THEN NULL
            WHEN would_reach_head AND NOT reaches_head AND to_the_end AND span IS NOT NULL AND closer IS NULL THEN 'leader_not_dumped'
            WHEN coalesce(has_story, false) AND NOT has_begun AND NOT begins THEN 'coordinator_compacted'
            WHEN NOT coalesce(has_story, false) AND NOT whole
                THEN IF(only_cleaned AND coalesce(marker, closer) IS NOT NULL, 'coordinator_compacted', 'no_coordinator')
            WHEN NOT coalesce(has_story, false) AND other_coordinator THEN 'other_coordinator'
            WHEN is_young THEN 'live_tail'
            ELSE 'dumped_apart'
        END AS why_unknown,
        -- An older transaction, of which the coordinator's log tells no more, would have ended what is open here.
        NOT is_ambiguous
            AND IF(coalesce(has_story, false), to_the_end AND (has_begun OR begins OR reaches_head), known) AS known_to_the_end,
        -- What a marker ended that nobody can place is nobody's whom we know.
        span IS NOT NULL AND closer IS NOT NULL AND match IS NULL AND NOT known AS is_untold,
        -- Where older rows of the producer are missing, so may be the markers of older candidates: only the one that the marker ends is
        -- left.
        span.complete_past AND (before IS NOT NULL OR first_offset = 0) AS is_seen
    FROM told
),
in_time AS (
    SELECT
        *,
        IF(
            is_untold,
            slice(candidates, 1, 0),
            filter(
                candidates,
                -- What was open when the coordinator's log ended has ended since, by a marker that only a coordinator writes.
                c -> NOT (span IS NOT NULL AND c.decision IS NULL AND is_unseen AND before IS NOT NULL AND NOT known_to_the_end) AND IF(
                    span IS NULL,
                    c.data_epoch <=> marker.data_epoch AND coalesce(c.start_ms <= marker.at_ms - ahead_ms + tolerance_ms, known),
                    coalesce(
                        c.data_epoch BETWEEN least(span.first_epoch, span.last_epoch) AND greatest(span.first_epoch, span.last_epoch), true
                    )
                    AND IF(
                        by_marker,
                        -- Under TV2 the epoch names the instance, whatever is missing.
                        is_seen OR c.instance_id = instance.instance_id OR c.protocol = 'tv2',
                        closer IS NULL OR coalesce(c.start_ms <= closer.at_ms - ahead_ms + tolerance_ms, known)
                    )
                )
            )
        ) AS any_allowed
    FROM explained
),
still_there AS (
    -- The marker of one that ended before all of which the log still tells went with its head: the data is rather a later one's.
    SELECT
        *,
        filter(
            any_allowed,
            c -> NOT coalesce(first_offset > 0 AND coalesce(c.decided_at_offset, c.complete_offset) < oldest_completion_offset, false)
        ) AS young
    FROM in_time
),
choices AS (
    SELECT *, IF(NOT by_marker AND size(young) > 0, young, any_allowed) AS allowed FROM still_there
),
chosen AS (
    SELECT
        *,
        try_element_at(allowed, 1) AS first_allowed,
        -- `kafka-transactions.sh abort` writes an ABORT with the data's epoch and the last coordinator epoch of the producer there, or 0.
        marker.type = 'ABORT' AND marker.epoch = marker.data_epoch
            AND (marker.coordinator_epoch = 0 OR marker.coordinator_epoch <=> marker_before.coordinator_epoch) AS by_tool,
        -- A coordinator loads its log up to the end, and not up to the high watermark: killed and back before it is missed, it sends the
        -- markers of a decision that no other broker has (`TransactionStateManager.loadTransactionMetadata`). Its successor decides anew;
        -- where it decides the same, its marker stands right behind.
        NOT marker_behind.marker.closes AND marker_behind.match = 'closing'
            AND marker_behind.marker.type = marker.type AND marker_behind.marker.epoch = marker.epoch
            AND marker_behind.marker.coordinator_epoch > marker.coordinator_epoch AS is_superseded
    FROM choices
),
roles AS (
    SELECT
        *,
        CASE
            WHEN marker IS NULL THEN NULL
            WHEN match = 'closing' THEN IF(marker.closes, 'closing', 'empty')
            WHEN match = 'contradictory' THEN match
            -- Data behind the end of the matched instance is another's; under TV2 the epoch of that data is the epoch of the marker before
            -- it.
            WHEN match = 'duplicate' AND NOT coalesce(marker.closes AND marker.at_ms - ahead_ms > instance.until_ms AND by_tool, false)
                THEN match
            WHEN is_ambiguous THEN 'unknown'
            WHEN NOT marker.closes AND marker_before.type = marker.type AND marker_before.epoch = marker.epoch THEN 'duplicate'
            WHEN NOT known THEN 'unknown'
            WHEN NOT marker.closes THEN IF(is_superseded, 'superseded', 'unexplained')
            WHEN first_allowed IS NULL THEN CASE WHEN by_tool THEN 'manual' WHEN is_superseded THEN 'superseded' ELSE 'unexplained' END
            -- It is a hand's work while the coordinator has not decided, or decided later: the transaction's own marker comes behind it.
            -- Where none comes, the ABORT stands in the place of the marker that is missing.
            WHEN by_tool AND (
                first_allowed.decision IS NULL
                OR (ends_candidate < {open_end} AND try_element_at(candidates, -1).instance_id = first_allowed.instance_id)
            ) THEN 'manual'
            WHEN first_allowed.decision <> marker.type THEN 'contradictory'
            WHEN is_superseded THEN 'superseded'
            ELSE 'unexplained'
        END AS marker_role
    FROM chosen
)

-- Only what is read, and of lists that nobody looks into their size alone: 206 fields were written of each row, and these are half of them
-- (docs/performance.md).
SELECT
    cluster, replica_log_id, producer_id, place, removed_at, marker, span, began_after_ms, sealed_ms, log, skew_ms, ahead_ms, tolerance_ms,
    of_doubtful, before, marker_before, closer, match, instance.until_ms AS matched_until_ms, is_ambiguous,
    -- Those that may have written the span. Under TV2 no transaction has data of another epoch than its own (KIP-890).
    size(filter(
        candidates,
        c -> span IS NULL OR c.protocol <> 'tv2' OR coalesce(
            c.data_epoch BETWEEN least(span.first_epoch, span.last_epoch) AND greatest(span.first_epoch, span.last_epoch), true
        )
    )) AS listing,
    clocklike, known, end_is_told, why_unknown, known_to_the_end, allowed, marker_role,
    CASE
        WHEN marker_role IN ('unknown', 'unexplained') THEN NULL
        WHEN marker_role = 'duplicate' THEN coalesce(instance, before)
        WHEN marker_role = 'superseded' THEN marker_behind.instance
        WHEN marker_role = 'manual' OR match = 'duplicate' THEN first_allowed
        ELSE coalesce(instance, first_allowed)
    END AS marker_instance
FROM roles
