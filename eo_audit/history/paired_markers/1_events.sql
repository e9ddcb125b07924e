-- The markers of each producer in each replica log, and the instances that list its partition: which is whose where epoch, place or time
-- tells it (`method`, and `partner`, the instance of a marker by that method). Where nothing does, `method` is null: the law must be asked.
-- One row per judged marker, and per instance and log of a partition that it lists.
--
-- `kind` says which: 0 an instance, 2 a marker; 3 a control batch of which nobody knows which marker it holds, which is no row of the
-- history (1 is a span, in judged_events). `place` is an offset of the coordinator's log for an instance, and of the data log for a marker.
--
-- rows                    what `sequences.producer_rows` returns
-- spans                   transaction_spans, for what is open behind the last marker
-- instances               transaction_instances
-- reach                   what `reach.reach` returns
-- coverage                the table, for offsets that are missing
-- replica_logs, clusters: the tables
-- far_ms                  how far a clock may be off of which nothing is known (eo_audit.model.alignment.prices)
-- skew_ms                 how far clocks may lie apart before that alone is odd (clusters.skew_ms)
-- never_ms                `until_ms` of what was not completed lies beyond this
-- rounding_ms, drift      how far two times may differ that one clock wrote (eo_audit.model.alignment.clocks)
WITH

-- Instance x partition x replica log: each must see one marker there once it is decided.
-- An instance and a marker are one struct each, null in rows of the other kind: a window copies every column of its rows, and one column is
-- quickly copied. The type of that null is written out: so all fields of the struct may be null, as they are where the struct is.
listed AS (
    -- `TransactionMarkerChannelManager.addTxnMarkersToSend` sends one to every partition of the list, also where no data was written.
    SELECT
        cluster, producer_id, marker_epoch AS epoch, first_entry_offset AS place,
        struct(
            first_entry_offset, instance_id, protocol, data_epoch, marker_epoch, decision,
            -- A start that is only an upper bound (the head of the instance's run was compacted away) proves nothing, nor does one behind
            -- the decision (of another leader's clock, or of one that was set), so it is left out.
            IF(start_source = 'upper_bound' OR start_ms > decided_at_ms, NULL, start_ms) AS start_ms,
            decided_at_ms,
            -- What is not completed is completed at the end of time: comparisons with it need no null.
            coalesce(completed_at_ms, next_at_ms, 4611686018427387904L) AS until_ms,
            prepare_leader_epoch, complete_leader_epoch, prepare_offset AS decided_at_offset, complete_offset
        ) AS own,
        -- Until when it was told of: a decision alone may have the time of a clock that was set back for a moment.
        greatest(start_ms, decided_at_ms, coalesce(completed_at_ms, next_at_ms)) AS told_until_ms,
        inline(partitions)
    FROM {instances}
),
expected AS (
    SELECT /*+ BROADCAST(logs) */
        logs.replica_log_id, listed.producer_id, 0 AS kind, listed.epoch, listed.place, listed.own, listed.told_until_ms,
        CAST(NULL AS STRUCT<
            type: STRING, epoch: INT, coordinator_epoch: INT, at_ms: BIGINT, closes: BOOLEAN, data_epoch: INT, leader_epoch: INT,
            after_hole: BOOLEAN, opened_at: BIGINT
        >) AS marker
    FROM listed
    JOIN {replica_logs} logs ON logs.cluster = listed.cluster AND logs.topic = listed.topic AND logs.partition = listed.partition
),
-- Transactions with offsets missing before or within them: another marker may have stood there. What the cleaner took has its own prices.
behind_holes AS (
    SELECT replica_log_id, producer_id, span_id, max(base_offset) AS hole_at
    FROM {rows} WHERE predecessor IN ('hole', 'removed') AND span_id IS NOT NULL
    GROUP BY replica_log_id, producer_id, span_id
),
markers AS (
    SELECT /*+ BROADCAST(behind_holes) */
        rows.replica_log_id, rows.producer_id, IF(rows.marker_type IS NULL, 3, 2) AS kind, rows.producer_epoch AS epoch,
        rows.base_offset AS place,
        CAST(NULL AS STRUCT<
            first_entry_offset: BIGINT, instance_id: STRING, protocol: STRING, data_epoch: INT, marker_epoch: INT, decision: STRING,
            start_ms: BIGINT, decided_at_ms: BIGINT, until_ms: BIGINT, prepare_leader_epoch: INT, complete_leader_epoch: INT,
            decided_at_offset: BIGINT, complete_offset: BIGINT
        >) AS own,
        CAST(NULL AS BIGINT) AS told_until_ms,
        struct(
            rows.marker_type AS type,
            rows.producer_epoch AS epoch,
            rows.marker_coordinator_epoch AS coordinator_epoch,
            rows.max_timestamp_ms AS at_ms,
            rows.in_open_transaction AS closes,
            rows.previous_epoch AS data_epoch,
            rows.partition_leader_epoch AS leader_epoch,
            rows.predecessor IN ('hole', 'removed') OR behind_holes.hole_at IS NOT NULL AS after_hole,
            coalesce(behind_holes.hole_at, rows.span_id) AS opened_at -- what stood before a hole may have ended in it
        ) AS marker
    FROM {rows} rows
    LEFT JOIN behind_holes USING (replica_log_id, producer_id, span_id)
    -- A control batch without a type (a dump without --deep-iteration, or its record was lost) may be either marker: kind 3 ends nothing.
    WHERE rows.row_kind = 'marker' AND rows.judged
),
events AS (
    SELECT * FROM expected UNION ALL SELECT * FROM markers
),

-- Of a topic that was deleted and created anew the coordinator's log tells transactions that ended before this log began: of each producer
-- the first ones, and what ended here are the others. Where they are not, the clock of a coordinator was behind. What ended by more than
-- any clock is off before the log is left out; by less than that the law is asked, which holds it against what the distances say. Where
-- even the oldest batch is younger than its broker's clock was at the dump, that clock was set back since, and no time of the log tells an
-- order.
ended_here AS (
    SELECT replica_log_id, producer_id, count(marker_offset) AS spans FROM {spans} GROUP BY replica_log_id, producer_id
),
told_of AS (
    SELECT /*+ BROADCAST(logs) */
        logs.replica_log_id, listed.producer_id, listed.place, listed.own.decided_at_ms,
        listed.told_until_ms < logs.oldest_batch_ms - {far_ms} AS ended_before,
        listed.told_until_ms < logs.oldest_batch_ms - {skew_ms} AS may_have_ended_before
    FROM listed
    JOIN {replica_logs} logs ON logs.cluster = listed.cluster AND logs.topic = listed.topic AND logs.partition = listed.partition
    WHERE
        listed.own.decided_at_ms IS NOT NULL AND logs.first_offset = 0 AND NOT logs.compacted
        AND coalesce(logs.oldest_batch_ms <= logs.dumped_at_ms + {skew_ms}, true)
),
told_before AS (
    SELECT
        replica_log_id, producer_id,
        max(IF(ended_before, place, NULL)) AS last_before,
        min(IF(NOT ended_before, place, NULL)) AS first_since,
        count_if(NOT ended_before) AS since,
        max(IF(may_have_ended_before, place, NULL)) AS last_perhaps_before,
        min(IF(NOT may_have_ended_before, place, NULL)) AS first_surely_since,
        count_if(NOT may_have_ended_before) AS surely_since,
        max(decided_at_ms) AS last_decided_ms
    FROM told_of
    GROUP BY replica_log_id, producer_id
),
begun_anew AS (
    SELECT
        told_before.replica_log_id,
        max(told_before.last_decided_ms) AS last_decided_ms,
        count(last_before) > 0 AS is_before,
        max(since) = 0 AS none_since,
        bool_and(may_begin_behind(last_before, first_since, since, ended.spans)) AS is_plain,
        bool_and(may_begin_behind(last_perhaps_before, first_surely_since, surely_since, ended.spans)) AS may_be_plain
    FROM told_before
    LEFT JOIN ended_here ended ON ended.replica_log_id = told_before.replica_log_id AND ended.producer_id = told_before.producer_id
    GROUP BY told_before.replica_log_id
    HAVING count(last_perhaps_before) > 0
),
holes AS (
    SELECT replica_log_id, max(last_offset) AS last_hole FROM {coverage} WHERE lacks_batches(state) GROUP BY replica_log_id
),
logs AS (
    SELECT /*+ BROADCAST(clusters), BROADCAST(holes), MERGE(begun_anew) */
        logs.replica_log_id, logs.cluster, clusters.skew_ms, clusters.epochs_are_elections,
        -- A leader whose clock is far ahead writes what looks as young, and at the end of its log what is younger than all decisions. Where
        -- all of them ended before the log began, the coordinator's log may end there, too: that places tell of pairs is not sure.
        coalesce(
            is_before AND (none_since OR logs.newest_broker_clock_ms <= begun_anew.last_decided_ms + clusters.skew_ms), false
        ) AS may_be_anew,
        coalesce(begun_anew.may_be_plain, false) AS may_begin_late,
        IF(begun_anew.is_plain, logs.oldest_batch_ms - {far_ms}, NULL) AS begun_anew_at_ms,
        logs.first_offset, logs.compacted, logs.uncleaned_from,
        logs.clean_end, logs.broker, logs.dumped_at_ms, logs.noted_at, logs.newest_broker_clock_ms, holes.last_hole
    FROM {replica_logs} logs
    JOIN {clusters} clusters ON clusters.cluster = logs.cluster
    LEFT JOIN holes ON holes.replica_log_id = logs.replica_log_id
    LEFT JOIN begun_anew ON begun_anew.replica_log_id = logs.replica_log_id
),
still_open AS (
    SELECT
        replica_log_id, producer_id,
        min(IF(marker_offset IS NULL, span_id, NULL)) AS open_from,
        min_by(first_epoch, IF(marker_offset IS NULL, span_id, NULL)) AS open_epoch,
        -- A producer counts its records in a partition from 0 on (`ProducerAppendInfo.checkSequence`): the others stood in an earlier log.
        coalesce(min_by(first_sequence, span_id) > 0, false) AS begun_before
    FROM {spans}
    GROUP BY replica_log_id, producer_id
    HAVING open_from IS NOT NULL OR begun_before
),
-- Logs, clusters and what is open are few rows beside the markers: broadcast, so that only markers and instances are shuffled.
events_of_logs AS (
    SELECT /*+ BROADCAST(logs, unended) */
        events.replica_log_id, events.producer_id, logs.cluster, events.kind, events.epoch, events.place, events.own, events.marker,
        -- A marker is sent when PrepareX is replicated (`TransactionCoordinator.endTransaction`): what is not decided yet waits for none.
        events.kind = 0 AND events.own.decision IS NOT NULL AND events.own.decided_at_ms IS NOT NULL AS is_decided,
        logs.skew_ms, logs.epochs_are_elections,
        IF(logs.compacted, coalesce(logs.uncleaned_from, 4611686018427387904L), 0L) AS cleaned_below, -- beyond every offset
        reach.coordinator_log_id, reach.known_until_ms, reach.known_until_epoch, reach.known_from_offset, reach.untold_epoch,
        unended.open_from, unended.open_epoch, coalesce(unended.begun_before, false) AS begun_before, logs.last_hole,
        reach.known_from_ms, logs.first_offset, logs.compacted, logs.may_be_anew, logs.may_begin_late,
        stopped_together(logs.clean_end, logs.broker, reach.stopped_with) AS stopped_together,
        coalesce(logs.clean_end AND reach.stopped_with IS NOT NULL, false) AS both_stopped,
        dumped_first(
            logs.noted_at, reach.coordinator_noted_at, logs.broker, reach.coordinator_broker, logs.dumped_at_ms,
            reach.coordinator_dumped_at_ms, logs.newest_broker_clock_ms, reach.coordinator_latest_ms
        ) AS dumped_first
    FROM events
    JOIN logs ON logs.replica_log_id = events.replica_log_id
    LEFT JOIN {reach} reach ON reach.cluster = logs.cluster AND reach.producer_id = events.producer_id
    LEFT JOIN still_open unended ON unended.replica_log_id = events.replica_log_id AND unended.producer_id = events.producer_id
    WHERE NOT coalesce(
        events.own.decided_at_ms IS NOT NULL AND logs.may_be_anew AND events.told_until_ms < logs.begun_anew_at_ms, false
    )
),
-- Which ends of the two sequences the dumps may lack (`model.alignment.Producer`). Which of two logs was dumped last is told by one
-- broker's own clock, or does not matter: both logs had ended.
ends AS (
    -- One shuffle: all windows below are partitioned by these two columns and more.
    SELECT /*+ REPARTITION(replica_log_id, producer_id) */
        * EXCEPT (known_from_ms, first_offset, compacted, may_be_anew, may_begin_late, begun_before, stopped_together, dumped_first),
        -- `__transaction_state` is compacted: of each id only the newest entries are sure to be left, of older markers the decisions are
        -- gone.
        known_from_ms IS NOT NULL AS older_markers,
        -- Retention and the cleaner take markers from the head of the data log whose decisions are still there.
        first_offset > 0 OR compacted OR may_be_anew OR may_begin_late OR begun_before AS older_decided,
        NOT (stopped_together OR dumped_first = 'log') AS newer_markers,
        NOT (stopped_together OR dumped_first = 'coordinator') AS newer_decided
    FROM events_of_logs
),
-- Markers of which nobody knows what they say: another one may be meant than the next that is known.
beside_untyped AS (
    SELECT
        *,
        max(IF(kind = 3, place, NULL)) OVER (
            PARTITION BY replica_log_id, producer_id ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS untyped_before,
        max(IF(kind = 3, place, NULL)) OVER (PARTITION BY replica_log_id, producer_id) AS last_untyped
    FROM ends
),
