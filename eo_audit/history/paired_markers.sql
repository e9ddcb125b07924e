-- The markers of each producer in each replica log, and the instances that list its partition: which is whose where epoch, place or time
-- tells it (`method`, and `partner`, the instance of a marker by that method). Where nothing does, `method` is null: the law must be asked.
--
-- rows                    what `sequences.producer_rows` returns
-- spans                   transaction_spans, for what is open behind the last marker
-- instances               transaction_instances
-- reach                   what `reach.reach` returns
-- replica_logs, clusters: the tables
-- far_ms                  how far a clock may be off of which nothing is known (eo_audit.model.marker_prices)
-- skew_ms                 how far clocks may lie apart before that alone is odd (clusters.skew_ms)
-- rounding_ms, drift      how far two times may differ that one clock wrote (eo_audit.model.marker_clocks)
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
        rows.replica_log_id, rows.producer_id, 2 AS kind, rows.producer_epoch AS epoch, rows.base_offset AS place,
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
    -- A control batch without a type (a dump without --deep-iteration) may be either marker: it matches nothing.
    WHERE rows.row_kind = 'marker' AND rows.judged AND rows.marker_type IS NOT NULL
),
events AS (
    SELECT * FROM expected UNION ALL SELECT * FROM markers
),

-- Of a topic that was deleted and created anew the coordinator's log tells transactions that ended before this log began: of each producer
-- the first ones, and what ended here are the others. Where they are not, the clock of a coordinator was behind. What ended by more than
-- any clock is off before the log is left out; by less than that the law is asked, which holds it against what the distances say.
ended AS (
    SELECT replica_log_id, producer_id, count(marker_offset) AS spans FROM {spans} GROUP BY replica_log_id, producer_id
),
told_of AS (
    SELECT /*+ BROADCAST(logs) */
        logs.replica_log_id, listed.producer_id, listed.place, listed.own.decided_at_ms,
        listed.told_until_ms < logs.oldest_batch_ms - {far_ms} AS ended_before,
        listed.told_until_ms < logs.oldest_batch_ms - {skew_ms} AS may_have_ended_before
    FROM listed
    JOIN {replica_logs} logs ON logs.cluster = listed.cluster AND logs.topic = listed.topic AND logs.partition = listed.partition
    WHERE listed.own.decided_at_ms IS NOT NULL AND logs.first_offset = 0 AND NOT logs.compacted
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
    LEFT JOIN ended ON ended.replica_log_id = told_before.replica_log_id AND ended.producer_id = told_before.producer_id
    GROUP BY told_before.replica_log_id
    HAVING count(last_perhaps_before) > 0
),
logs AS (
    SELECT /*+ BROADCAST(clusters), MERGE(begun_anew) */
        logs.replica_log_id, logs.cluster, clusters.skew_ms, clusters.epochs_are_elections,
        -- A leader whose clock is far ahead writes what looks as young, and at the end of its log what is younger than all decisions. Where
        -- all of them ended before the log began, the coordinator's log may end there, too: that places tell of pairs is not sure.
        coalesce(
            is_before AND (none_since OR logs.newest_broker_clock_ms <= begun_anew.last_decided_ms + clusters.skew_ms), false
        ) AS may_be_anew,
        coalesce(begun_anew.may_be_plain, false) AS may_begin_late,
        IF(begun_anew.is_plain, logs.oldest_batch_ms - {far_ms}, NULL) AS begun_anew_at_ms,
        logs.first_offset, logs.compacted, logs.uncleaned_from,
        logs.clean_end, logs.broker, logs.dumped_at_ms, logs.noted_at, logs.newest_broker_clock_ms
    FROM {replica_logs} logs
    JOIN {clusters} clusters ON clusters.cluster = logs.cluster
    LEFT JOIN begun_anew ON begun_anew.replica_log_id = logs.replica_log_id
),
still_open AS (
    SELECT replica_log_id, producer_id, min(span_id) AS open_from, min_by(first_epoch, span_id) AS open_epoch
    FROM {spans}
    WHERE marker_offset IS NULL
    GROUP BY replica_log_id, producer_id
),
-- Logs, clusters and what is open are few rows beside the markers: broadcast, so that only markers and instances are shuffled.
told AS (
    SELECT /*+ BROADCAST(logs, unended) */
        events.replica_log_id, events.producer_id, logs.cluster, events.kind, events.epoch, events.place, events.own, events.marker,
        -- A marker is sent when PrepareX is replicated (`TransactionCoordinator.endTransaction`): what is not decided yet waits for none.
        events.kind = 0 AND events.own.decision IS NOT NULL AND events.own.decided_at_ms IS NOT NULL AS is_decided,
        logs.skew_ms, logs.epochs_are_elections,
        IF(logs.compacted, coalesce(logs.uncleaned_from, 4611686018427387904L), 0L) AS cleaned_below, -- beyond every offset
        reach.coordinator_log_id, reach.known_until_ms, reach.known_until_epoch, reach.known_from_offset, reach.untold_epoch,
        unended.open_from, unended.open_epoch,
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
        * EXCEPT (known_from_ms, first_offset, compacted, may_be_anew, may_begin_late, stopped_together, dumped_first),
        -- `__transaction_state` is compacted: of each id only the newest entries are sure to be left, of older markers the decisions are
        -- gone.
        known_from_ms IS NOT NULL AS older_markers,
        -- Retention and the cleaner take markers from the head of the data log whose decisions are still there.
        first_offset > 0 OR compacted OR may_be_anew OR may_begin_late AS older_decided,
        NOT (stopped_together OR dumped_first = 'log') AS newer_markers,
        NOT (stopped_together OR dumped_first = 'coordinator') AS newer_decided
    FROM told
),

-- KIP-890: under TV2 every EndTxn raises the epoch, so (producer id, marker epoch) is one transaction. Those rows are a group of their
-- own: a producer id may begin under TV1 and go on under TV2. Where transaction.version was lowered, the transactions of TV1 keep the epoch
-- that the last one of TV2 raised: its markers are many, and told as those of TV1 are.
by_protocol AS (
    SELECT
        *,
        coalesce(max(own.protocol = 'tv2') OVER same_epoch AND NOT max(own.protocol = 'tv0') OVER same_epoch, false) AS of_tv2,
        first(own, true) OVER same_epoch AS of_epoch,
        -- Behind the newest entry that is told TV1 may go on with its epoch (`reach.untold_epoch`); a repeated marker that ends data of the
        -- next transaction looks the same.
        newer_markers AND marker.closes AND marker.data_epoch = epoch
            AND coalesce(epoch >= untold_epoch, false)
            AND place > min(IF(kind = 2, place, NULL)) OVER same_epoch AS may_be_newer
    FROM ends
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
placed AS (
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
        ) AS distance_before
    FROM compared
    WINDOW few_before AS (
        PARTITION BY replica_log_id, producer_id, of_tv2, kind = 2, is_decided
        ORDER BY place
        ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING
    )
),
tolerated AS (
    -- NTP slews a clock and does not set it: two distances differ by no more than that, and by what rounding takes.
    SELECT *, {rounding_ms} + {drift} * abs(marker.at_ms - distance_before.at_ms) AS tolerance FROM placed
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
        max(IF(in_its_time, nearest.rank, NULL)) OVER producer AS last_rank
    FROM fitted
    WINDOW producer AS (PARTITION BY replica_log_id, producer_id, of_tv2)
),
told_by AS (
    SELECT
        *,
        all_fit AND NOT (older_markers OR older_decided)
            -- Fewer markers than decisions, right from the first one on: the others were decided after the data log was dumped.
            AND NOT may_repeat AND (seen = wanted OR (seen < wanted AND newer_decided)) AS by_place,
        all_in_time
            AND NOT fits_any_time
            -- What is older stands before the others: behind them it has the clock of another leader, or of one that was set.
            AND coalesce(last_older < first_in_time, true)
            AND rivals_most <= 1
            -- Of the decided instances none is left out between the first and the last one met; those at the ends are left out only where a
            -- dump may lack their markers. A log that holds markers older than all that is decided lacks none of the first ones.
            AND last_rank - first_rank + 1 = matched
            AND (first_rank = 1 OR (older_decided AND older = 0))
            AND (last_rank = wanted OR newer_decided)
            -- So few that fit by their times may do so by chance, where as many do not overlap on both sides.
            AND NOT (matched <= least(older, wanted - last_rank))
            -- Nor a single one where another decision is left out and nothing is known of both ends: the law hears the other producers, too.
            AND NOT (
                matched = 1 AND wanted > 1 AND (older_markers OR older_decided) AND (newer_markers OR newer_decided)
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
    replica_log_id, producer_id, cluster, kind, epoch, place, own, marker, skew_ms, epochs_are_elections, cleaned_below,
    coordinator_log_id, known_until_ms, known_until_epoch, known_from_offset, open_from, open_epoch,
    older_markers, older_decided, newer_markers, newer_decided, both_stopped, of_tv2,
    method,
    CASE method WHEN 'epoch' THEN by_epoch WHEN 'place' THEN by_rank WHEN 'time' THEN nearest.one END AS partner
FROM methods
