-- What the coordinator's log can tell of each marker and span: whether it reaches that far back and that far on, and why not.

-- Clusters in which a coordinator wrote markers of producers that the coordinator's log does not know, and of some that it knows.
sent AS (
    SELECT
        sent.cluster,
        -- An ABORT with the epoch of the data may be a hand's (`kafka-transactions.sh abort`).
        bool_or(reach.producer_id IS NULL AND (
            sent.marker.type = 'COMMIT'
            OR coalesce(sent.marker.closes AND sent.marker.epoch - sent.marker.data_epoch BETWEEN 1 AND 2, false)
        )) AS has_strangers,
        bool_or(reach.producer_id IS NOT NULL) AS has_acquaintances
    FROM {matched} sent
    LEFT JOIN {reach} reach ON reach.cluster = sent.cluster AND reach.producer_id = sent.producer_id
    WHERE sent.kind = 2
    GROUP BY sent.cluster
),
coordinators AS (
    SELECT
        whole_logs.* EXCEPT (copies),
        -- A coordinator that knows nothing of a producer whose markers only a coordinator can have written is not the one that did, and its
        -- log, made anew, tells of no producer before.
        coalesce(sent.has_strangers, false) OR knows_nobody AS other_coordinator,
        only_cleaned AND as_listed AND coalesce(sent.has_acquaintances, false) AS has_newest_entries
    FROM {whole_logs} whole_logs
    LEFT JOIN sent ON sent.cluster = whole_logs.cluster
),
copies_of_brokers AS (
    SELECT cluster, copy.* FROM {whole_logs} LATERAL VIEW explode(copies) AS copy
),
-- From here on markers and spans only.
beside_coordinators AS (
    SELECT /*+ BROADCAST(coordinators), BROADCAST(copy) */
        events.*, coordinators.* EXCEPT (cluster),
        dumped_first(
            events.noted_at, copy.noted_at, events.broker, copy.broker, events.dumped_at_ms, copy.dumped_at_ms,
            events.newest_broker_clock_ms, copy.newest_ms
        ) = 'log' AS dumped_before_all
    FROM with_candidates events
    LEFT JOIN coordinators ON coordinators.cluster = events.cluster
    LEFT JOIN copies_of_brokers copy ON copy.cluster = events.cluster AND copy.broker <=> events.broker
    WHERE events.kind > 0
),

-- The coordinator's log tells of what stands here if it was dumped behind it: one broker's own clock says so, or the time of a marker at
-- that place or behind it, on the coordinator's clock; or both brokers had been stopped.
dated AS (
    SELECT
        *,
        IF(is_open, sealed_ms, closer.at_ms) - ahead_ms AS sealed_at_ms,
        stopped_together(clean_end, broker, stopped_with) AS stopped_together,
        stopped_together(clean_end, broker, whole_stopped_with) AS stopped_with_all,
        dumped_first(
            noted_at, coordinator_noted_at, broker, coordinator_broker, dumped_at_ms, coordinator_dumped_at_ms, newest_broker_clock_ms,
            coordinator_latest_ms
        ) AS dumped_first,
        ends_instance(match) AS by_marker,
        -- That it tells of others behind that place says nothing of a producer whose entries are among lost lines. What stands behind a
        -- hole may be of a later transaction than what stands before it.
        coalesce(coalesce(span.hole_at, span.span_id, place) <= told_up_to_offset AND NOT lost_behind, false) AS by_order,
        coalesce(place >= sent_unseen_from, false) AS is_unseen,
        -- The clock of an older leader is not the one whose distance is known, nor the same one before it was set.
        coalesce(closer.leader_epoch = newest_leader_epoch, true)
            AND coalesce(known_from_epoch = newest_coordinator_epoch, true)
            AND coalesce(place >= newest_from_offset, true)
            -- What is dated behind the last that its broker wrote here was dated before the clock was set back.
            AND coalesce(closer.at_ms <= newest_broker_clock_ms + skew_ms, true)
            -- Nor is a clock known by which a marker was written after all that is told of its coordinator.
            AND coalesce(closer.at_ms - ahead_ms <= known_until_ms + skew_ms + unheard_ms, true) AS by_known_clock,
        -- Of the clock that dates it nothing is known, though another leader's is: a minute is nothing then. It may also have been set back
        -- by as much as the log's times go back.
        IF(
            coalesce(NOT is_clocked AND newest_pairs > 0 AND closer.leader_epoch <> newest_leader_epoch, false),
            unheard_ms,
            unsure_ms
        ) + set_back_ms AS dated_within_ms
    FROM beside_coordinators
),
-- Whether what the coordinator's log tells begins early enough: `has_begun` by order, `begins` by clocks; and proofs for how far it goes.
with_beginning AS (
    SELECT
        *,
        -- What ended before lines of the coordinator's log were lost tells nothing of what came between.
        before IS NOT NULL AND NOT coalesce(before.first_entry_offset < known_from_offset, false) AS has_begun,
        known_from_ms IS NULL
            OR (
                -- Epochs never go down: what ended with an older one than that of the producer's first entry left stood before it, whatever
                -- the clocks say.
                coalesce(closer.epoch >= known_from_producer_epoch, true)
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
        stopped_with_all OR dumped_before_all OR coalesce(sealed_at_ms + dated_within_ms <= whole_until_ms, false) AS before_end_of_all,
        -- No transaction can have hung for long that began after the coordinator's log was dumped, or not long before the dump of this log.
        -- Nothing was going on where the broker had been stopped.
        NOT clean_end
            AND (
                coalesce(
                    sealed_at_ms - IF(coalesce(has_story, false), known_until_ms, whole_until_ms) <= max_transaction_timeout_ms, false
                )
                OR (is_open AND coalesce(began_after_ms - ahead_ms >= as_of_ms - max_transaction_timeout_ms, false))
            ) AS is_young
    FROM dated
),
-- Whether it goes far enough: what ended a row, or will, would be told.
with_end AS (
    SELECT
        * EXCEPT (is_ambiguous),
        -- What is open behind the last pair, and dated by such a clock only.
        is_ambiguous
            OR (is_open AND NOT dumped_behind AND NOT by_order AND coalesce(doubted_at > told_up_to_offset, false))
            AS is_ambiguous,
        -- A marker that only a coordinator writes, of a transaction that its log does not tell of: the log was cut, whenever it was dumped.
        -- One without its head may only have forgotten that transaction; and of two brokers that had stopped, nothing is still to come.
        (by_order OR NOT is_unseen OR stopped_together OR (known_from_ms IS NOT NULL AND dumped_behind))
            AND (dumped_behind OR by_order OR by_time OR by_marker) AS to_the_end,
        -- Its end may stand behind all that the coordinator's log tells.
        dumped_behind OR coalesce(place <= told_up_to_offset AND NOT lost_behind, false) OR by_time AS end_is_told
    FROM with_beginning
),
-- Both together: of a producer without any entry it takes whole logs of all coordinators.
with_known AS (
    SELECT
        *,
        NOT is_ambiguous
            AND IF(
                coalesce(has_story, false),
                (has_begun OR begins) AND to_the_end,
                coalesce(whole AND NOT other_coordinator AND before_end_of_all, false)
            ) AS known
    FROM with_end
),
-- Why not, in the words of the table unmatched; the first that holds.
explained AS (
    SELECT
        *,
        CASE
            WHEN is_ambiguous AND (NOT all_legal OR (is_open AND NOT is_young))
                THEN IF(known_from_ms IS NOT NULL AND is_in_step, 'head_in_doubt', 'clocks_apart')
            WHEN is_ambiguous AND is_open THEN 'live_tail'
            WHEN is_ambiguous THEN IF(known_from_ms IS NULL, 'live_tail', 'coordinator_compacted')
            WHEN known THEN NULL
            WHEN would_reach_head AND NOT reaches_head AND to_the_end AND is_open THEN 'leader_not_dumped'
            WHEN coalesce(has_story, false) AND NOT has_begun AND NOT begins THEN 'coordinator_compacted'
            -- The cleaner leaves the newest entry of each id: of a producer without one the id expired, or goes on with another producer.
            -- Of dumps without a listing the entry may have been left out, and its transaction may run.
            WHEN NOT coalesce(has_story, false) AND NOT whole AND only_cleaned
                THEN IF(is_open, 'producer_forgotten', 'coordinator_compacted')
            WHEN NOT coalesce(has_story, false) AND NOT whole THEN 'no_coordinator'
            WHEN NOT coalesce(has_story, false) AND other_coordinator THEN 'other_coordinator'
            WHEN is_young THEN 'live_tail'
            ELSE 'dumped_apart'
        END AS why_unknown,
        -- An older transaction, of which the coordinator's log tells no more, would have ended what is open here.
        NOT is_ambiguous
            AND IF(
                coalesce(has_story, false),
                to_the_end AND (has_begun OR begins OR reaches_head),
                -- An id is forgotten only when it has no open transaction (`TransactionStateManager.removeExpiredTransactionalIds`), and
                -- takes another producer only then: nobody will end this one.
                known OR (is_open AND coalesce(has_newest_entries AND before_end_of_all, false))
            ) AS known_to_the_end,
        -- What a marker ended that nobody can place is nobody's whom we know.
        span IS NOT NULL AND NOT is_open AND match IS NULL AND NOT known AS is_untold,
        -- Where older rows of the producer are missing, so may be the markers of older candidates: only the one that the marker ends is
        -- left.
        span.complete_past AND (before IS NOT NULL OR first_offset = 0) AS is_seen
    FROM with_known
),
