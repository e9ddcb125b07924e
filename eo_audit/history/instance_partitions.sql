-- Did every partition of a transaction get its marker? Transaction instance x registered partition x replica log. A missing marker says
-- something only where the dump shows the place at which it should stand: past the completion of the transaction, above the log's start,
-- not in a hole, and not where the cleaner may have removed it (which it does only after the transaction's data). One row per transaction
-- instance, partition that it lists, and replica log of that partition.
--
-- instances           transaction_instances
-- rows                what `assign_instances` returns (the table producer_history will do)
-- events              what `judged_events` returns, for the producers whose markers can be told in more than one way
-- matched             what `match_markers` returns, for the transactions of which one lacks its marker
-- reach               what `reach.reach` returns
-- coordinator_logs    what `reach.coordinator_logs` returns
-- coverage, replica_logs, clock_offsets, clusters: the tables
-- farthest_clocks     what `clock_offsets.farthest_clocks` returns
-- lag_ms              how long a follower may lag before it is out of sync
-- far_ms              how far a clock may be off of which nothing is known (eo_audit.model.alignment.prices)
WITH

-- What each log shows of an instance.
owned AS (
    SELECT
        *,
        row_kind = 'data' AND late = 'no' AS is_own_data,
        struct(section_id, byte_offset, length) AS address,
        struct(
            base_offset, marker_type, producer_epoch, marker_coordinator_epoch, max_timestamp_ms, section_id, byte_offset, length
        ) AS marker
    FROM {rows}
    WHERE instance_id IS NOT NULL
),
seen AS (
    SELECT
        instance_id, replica_log_id,
        min(IF(is_own_data, base_offset, NULL)) AS data_first_offset,
        max(IF(is_own_data, last_offset, NULL)) AS data_last_offset,
        min_by(struct(base_sequence AS sequence, producer_epoch AS epoch), IF(is_own_data, base_offset, NULL)) AS begins,
        sum(IF(is_own_data, count, NULL)) AS data_records,
        coalesce(bool_or(is_own_data AND span_outcome <> 'open'), false) AS data_closed,
        min_by(address, IF(is_own_data, base_offset, NULL)) AS data,
        min_by(marker, IF(marker_role IN ('closing', 'empty'), base_offset, NULL)) AS closing,
        min_by(marker, IF(marker_role = 'contradictory', base_offset, NULL)) AS contradictory,
        min_by(marker, IF(marker_role = 'manual', base_offset, NULL)) AS manual,
        CAST(count_if(marker_role = 'duplicate') AS INT) AS duplicate_markers
    FROM owned
    GROUP BY instance_id, replica_log_id
),

-- Per replica log: what bounds the offsets that can be judged. Where nothing can be said of the log at all, and offsets of which nothing is
-- known.
bounds AS (
    SELECT
        replica_log_id, state, last_offset,
        state IN ('disorder', 'crc_invalid', 'not_judged', 'not_supported', 'shallow', 'no_epochs') AS is_broken,
        lacks_batches(state) AS is_hole
    FROM {coverage}
),
gaps AS (
    SELECT
        replica_log_id,
        bool_or(is_broken) AS broken,
        max(IF(is_hole, last_offset, NULL)) AS last_gap,
        bool_or(is_hole OR state IN ('compacted', 'count_short')) AS has_gaps
    FROM bounds
    GROUP BY replica_log_id
),
clocks_of_rows AS (
    SELECT
        replica_log_id, base_offset, partition_leader_epoch,
        -- As in `sections`: CreateTime is the client's word. And what is open was written before its own transaction was decided, whatever
        -- the clock says.
        IF(
            row_kind = 'marker' OR (timestamp_type = 'LogAppendTime' AND coalesce(span_outcome <> 'open', true)), max_timestamp_ms, NULL
        ) AS broker_ms
    FROM {rows}
),
ages AS (
    SELECT
        replica_log_id,
        max(partition_leader_epoch) AS leader_epoch,
        min(partition_leader_epoch) AS oldest_leader_epoch,
        min(broker_ms) AS oldest_ms,
        max(broker_ms) AS newest_clock_ms,
        max_by(base_offset, broker_ms) AS newest_clock_at
    FROM clocks_of_rows
    GROUP BY replica_log_id
),
logs AS (
    SELECT /*+ BROADCAST(gaps, ages) */
        logs.replica_log_id, logs.cluster, logs.broker, logs.topic, logs.partition, logs.is_internal, logs.first_offset,
        logs.tail_intact, logs.lacks_records, logs.is_empty, logs.uncleaned_from, logs.newest_broker_clock_ms, logs.dumped_at_ms,
        logs.collected_at_ms, logs.noted_at, logs.clean_end, logs.first_leader_epoch,
        -- A broker notes the epoch that it leads with where its log ends then (`Partition.makeLeader`), and any other with its first batch.
        -- A log start that went up has taken the note along (`LeaderEpochFileCache.truncateFromStart`): of a log that was deleted up to its
        -- end it tells nothing.
        coalesce(
            try_element_at(logs.leader_epochs, -1).offset = logs.leo AND NOT (logs.leo > 0 AND coalesce(logs.log_start = logs.leo, false)),
            false
        ) AS led_from_end,
        max(logs.newest_broker_clock_ms) OVER (PARTITION BY logs.cluster, logs.broker) AS broker_lived_ms,
        gaps.broken, gaps.last_gap,
        -- Behind the last batch, too: the newest segment may begin above it, and be empty.
        logs.empty_newest IS NOT NULL AS lacks_end,
        gaps.has_gaps OR logs.empty_newest IS NOT NULL AS has_gaps,
        ages.leader_epoch, ages.oldest_leader_epoch, ages.oldest_ms, ages.newest_clock_ms, ages.newest_clock_at,
        -- The topic is at least as old as what any of its logs holds.
        min(ages.oldest_ms) OVER (PARTITION BY logs.cluster, logs.topic) AS topic_oldest_ms
    FROM {replica_logs} logs
    LEFT JOIN gaps ON gaps.replica_log_id = logs.replica_log_id
    LEFT JOIN ages ON ages.replica_log_id = logs.replica_log_id
),
latest AS (
    SELECT coordinator_log_id, max(coordinator_latest_ms) AS coordinator_latest_ms FROM {reach} GROUP BY coordinator_log_id
),

listed AS (
    SELECT
        instance_id, replica_log_id AS coordinator_log_id, cluster, transactional_id, producer_id, protocol, data_epoch, decision, is_last,
        marker_epoch AS decided_epoch, last_status, decided_at_ms, completed_at_ms, next_at_ms,
        coalesce(complete_leader_epoch, prepare_leader_epoch) AS end_leader_epoch,
        coalesce(completed_at_ms, next_at_ms, decided_at_ms) AS ended_ms,
        complete_offset AS ended_at_offset,
        coalesce(prepare_offset, complete_offset) AS decided_at_offset,
        inline(partitions)
    FROM {instances}
),
expected AS (
    SELECT /*+ BROADCAST(clusters, logs, coordinators, latest, clocks, farthest) */
        listed.*,
        logs.* EXCEPT (cluster, topic, partition),
        stopped_together(logs.clean_end, logs.broker, coordinators.stopped_with) AS stopped_together,
        dumped_first(
            logs.noted_at, coordinators.coordinator_noted_at, logs.broker, coordinators.coordinator_broker, logs.dumped_at_ms,
            coordinators.coordinator_dumped_at_ms, logs.newest_broker_clock_ms, latest.coordinator_latest_ms
        ) AS dumped_first,
        coordinators.coordinator_noted_at, coordinators.coordinator_dumped_at_ms,
        clocks.newest_decision_offset, clocks.newest_decision_ms, clocks.oldest_completion_offset,
        clocks.newest_leader_epoch AS pair_leader_epoch, clocks.newest_coordinator_epoch AS pair_coordinator_epoch,
        clocks.told_up_to_offset,
        coalesce(clocks.newest_offset_ms, 0L) AS ahead_ms,
        clusters.skew_ms + coalesce(clocks.spread_ms, farthest.farthest_ms, 0L) AS margin_ms,
        clusters.skew_ms + coalesce(farthest.moved_ms, 0L) AS moved_margin_ms,
        -- Between the coordinator's clock and that of the broker that dumped the log, which need not have written to it.
        clusters.skew_ms + greatest(coalesce(clocks.spread_ms, 0L), coalesce(farthest.farthest_ms, 0L)) AS dump_margin_ms,
        clusters.max_transaction_timeout_ms
    FROM listed
    LEFT JOIN {clusters} clusters ON clusters.cluster = listed.cluster
    -- Left: a partition that a transaction lists and nobody dumped has a row too. Its marker is not missing, nobody has looked.
    LEFT JOIN logs ON logs.cluster = listed.cluster AND logs.topic = listed.topic AND logs.partition = listed.partition
    LEFT JOIN {coordinator_logs} coordinators ON coordinators.coordinator_log_id = listed.coordinator_log_id
    LEFT JOIN latest ON latest.coordinator_log_id = listed.coordinator_log_id
    LEFT JOIN {clock_offsets} clocks
        ON clocks.replica_log_id = logs.replica_log_id AND clocks.coordinator_log_id = listed.coordinator_log_id
    LEFT JOIN {farthest_clocks} farthest ON farthest.cluster = listed.cluster
),

-- Markers that cannot be matched: one of them may be the one that seems to be missing. Few producers have some, so the others are left out
-- before anything is shuffled.
unsure AS (
    SELECT
        replica_log_id, producer_id,
        bool_or(marker IS NOT NULL AND is_ambiguous) AS is_doubtful,
        collect_set(IF(is_ambiguous, marker.epoch, NULL)) AS doubtful_epochs,
        min_by(struct(span.first_sequence AS sequence, span.first_epoch AS epoch), span.span_id) AS first
    FROM {events}
    WHERE of_doubtful
    GROUP BY replica_log_id, producer_id
    HAVING is_doubtful
),
lost AS (
    SELECT own.instance_id AS instance_id, replica_log_id, lost_among, unseen
    FROM {matched}
    WHERE lost_among IS NOT NULL OR unseen IS NOT NULL
),
expected_and_seen AS (
    SELECT /*+ BROADCAST(lost) */
        expected.*,
        unsure.is_doubtful, unsure.doubtful_epochs, unsure.first,
        lost.lost_among,
        lost.unseen,
        seen.* EXCEPT (instance_id, replica_log_id)
    FROM expected
    LEFT JOIN unsure ON unsure.replica_log_id = expected.replica_log_id AND unsure.producer_id = expected.producer_id
    LEFT JOIN lost ON lost.instance_id = expected.instance_id AND lost.replica_log_id = expected.replica_log_id
    LEFT JOIN seen ON seen.instance_id = expected.instance_id AND seen.replica_log_id = expected.replica_log_id
),
with_first_data AS (
    SELECT
        * EXCEPT (first),
        coalesce(first, min_by(begins, data_first_offset) OVER (PARTITION BY replica_log_id, producer_id)) AS first
    FROM expected_and_seen
),
-- Whether the log goes back to the decision: it may have been made anew since.
headed AS (
    SELECT
        *,
        coalesce(
            (
                -- A log from offset 0 on that is younger than the decision: its topic was deleted and created again (leader epoch 0), or
                -- all was lost. The clock of an older leader is not the one that the newest pairs tell of.
                first_offset = 0 AND (
                    (oldest_ms - ahead_ms + margin_ms < decided_at_ms AND coalesce(pair_leader_epoch = oldest_leader_epoch, true))
                    -- Begun under a later leader: emptied, or the topic was created again, and nothing written before another leader was
                    -- elected. Other logs of the topic tell which.
                    OR (first_leader_epoch > 0 AND (is_internal OR topic_oldest_ms + margin_ms < decided_at_ms))
                )
            )
            OR data_first_offset IS NOT NULL
            -- The first data of an epoch has sequence 0 (`ProducerAppendInfo.checkSequence`), so no older data of that epoch was here.
            -- Not in `__consumer_offsets`: the group coordinator gives every batch sequence 0.
            OR (first_offset = 0 AND first.sequence = 0 AND first.epoch = data_epoch AND NOT is_internal)
            OR oldest_completion_offset < decided_at_offset,
            false
        ) AS head_seen
    FROM with_first_data
),
beside_others AS (
    SELECT
        * EXCEPT (lost_among),
        -- One of them lacks its marker, but only where the log told of all of them.
        IF(min(head_seen) OVER (PARTITION BY replica_log_id, producer_id, lost_among), lost_among, NULL) AS lost_among
    FROM headed
),
with_ends AS (
    SELECT
        *,
        coalesce(contradictory, manual, closing) AS marker,
        -- Whether the log goes on behind the place of the marker. Order proves it: a marker of a transaction that the same coordinator
        -- decided after the completion stands in the log. So does one stop of both logs, or one broker's clock when it dumped both; clocks
        -- of two brokers only by more than they may have moved, and only what stands behind the newest marker of a known transaction: what
        -- is before it is older than all that was decided later. What ended later and by an earlier time was ended by a clock that had been
        -- set back. An empty log has no clock but that of its own dump. One time for a whole collection proves nothing: its files were read
        -- over minutes.
        -- Another marker has ended its data: its own can no longer do so.
        coalesce(data_closed, false)
            OR coalesce(newest_decision_offset > ended_at_offset, false)
            OR stopped_together
            OR dumped_first = 'coordinator'
            OR coalesce(is_empty AND dumped_at_ms >= ended_ms + margin_ms, false)
            OR coalesce(
                pair_leader_epoch = leader_epoch
                    AND pair_coordinator_epoch <=> end_leader_epoch
                    AND newest_clock_at > told_up_to_offset
                    AND newest_clock_ms - ahead_ms >= ended_ms + greatest(margin_ms, moved_margin_ms)
                    AND (ended_ms >= newest_decision_ms OR newest_decision_ms IS NULL),
                false
            ) AS is_past_end,
        -- The coordinator completes a transaction when every replica in sync has its marker (`WriteTxnMarkers`, acknowledged by all).
        -- A log that was dumped later and ends before it was left behind, or has lost it: nothing in the log tells which. Of a broker that
        -- led nothing nobody knows the clock: both dumps must have come later, by more than lies between them.
        coalesce(
            noted_at IS NOT NULL AND coordinator_noted_at IS NOT NULL AND (completed_at_ms IS NOT NULL OR next_at_ms IS NOT NULL)
                AND least(dumped_at_ms, coordinator_dumped_at_ms - abs(dumped_at_ms - coordinator_dumped_at_ms))
                    >= ended_ms + dump_margin_ms,
            false
        )
            -- The manifest's time is that before the first dump; written by hand it may be the one behind the last, by which so much had
            -- been waiting as no transaction may. The cleaner takes nothing of what is open.
            OR coalesce(
                (completed_at_ms IS NOT NULL OR next_at_ms IS NOT NULL)
                    AND data_first_offset IS NOT NULL
                    AND collected_at_ms >= ended_ms + dump_margin_ms + max_transaction_timeout_ms,
                false
            ) AS is_overdue,
        -- By less than that, and by more than any clock is off: nobody knows which of the two times it is.
        coalesce(
            noted_at IS NULL AND (completed_at_ms IS NOT NULL OR next_at_ms IS NOT NULL) AND data_first_offset IS NOT NULL
                AND collected_at_ms >= ended_ms + dump_margin_ms + {far_ms},
            false
        ) AS is_perhaps_overdue,
        -- It led the partition when nothing stood behind, and lived on after the completion by more than a follower in sync may lag
        -- (replica.lag.time.max.ms): another leader's marker would have come.
        led_from_end AND coalesce(broker_lived_ms >= ended_ms + dump_margin_ms + {lag_ms}, false) AS is_led_on
    FROM beside_others
),
-- Whether the place of the marker was dumped.
covered AS (
    SELECT
        *,
        CASE
            WHEN replica_log_id IS NULL THEN 'not_dumped'
            WHEN marker IS NOT NULL THEN 'covered'
            -- Of a marker whose record line was lost nobody knows what it says, nor whether it is this one.
            WHEN coalesce(broken OR lacks_records, false) OR (lost_among IS NOT NULL AND last_gap IS NOT NULL) THEN 'not_judged'
            WHEN lost_among IS NOT NULL THEN 'covered'
            -- Under TV2 the epoch names the transaction; where the feature was taken back, later ones of the old protocol have it, too.
            WHEN coalesce(is_doubtful AND (protocol <> 'tv2' OR array_contains(doubtful_epochs, decided_epoch)), false)
                THEN 'not_judged'
            WHEN coalesce(unseen = 'tail', NOT is_past_end) AND tail_intact AND (is_overdue OR is_perhaps_overdue) AND head_seen
                AND coalesce(last_gap < data_first_offset, last_gap IS NULL)
                -- Of a transaction without data here the cleaner may have taken the marker, unless the log ends before its time.
                AND (
                    data_first_offset IS NOT NULL
                    OR coalesce(uncleaned_from = 0, NOT has_gaps, false)
                    OR NOT lacks_end AND coalesce(newest_clock_ms - ahead_ms < ended_ms + margin_ms, true)
                )
                THEN CASE WHEN NOT is_overdue THEN 'perhaps_overdue' WHEN is_led_on THEN 'led_on' ELSE 'overdue' END
            -- So the markers of all producers of the log, told together, have it.
            WHEN unseen IS NOT NULL THEN IF(unseen IN ('hole', 'last_hole'), 'not_judged', unseen)
            WHEN NOT (tail_intact AND is_past_end) THEN 'tail'
            WHEN last_gap >= coalesce(data_first_offset, 0) THEN 'not_judged'
            WHEN NOT head_seen THEN 'below_start'
            WHEN NOT (is_empty OR coalesce(uncleaned_from = 0, NOT has_gaps, false)) AND data_first_offset IS NULL THEN 'compacted'
            ELSE 'covered'
        END AS coverage
    FROM with_ends
)

SELECT
    instance_id, cluster, transactional_id, producer_id, topic, partition, replica_log_id, broker,
    coverage,
    data_first_offset, data_last_offset, data_records,
    decision,
    -- In this order: beside a marker that contradicts the decision, one that fits is no comfort.
    CASE
        WHEN contradictory IS NOT NULL THEN 'contradictory'
        WHEN manual IS NOT NULL THEN 'manual'
        WHEN closing IS NOT NULL THEN 'closing'
        WHEN is_last AND last_status NOT IN ('CompleteCommit', 'CompleteAbort') THEN 'pending'
        WHEN lost_among IS NOT NULL AND coverage = 'covered' THEN 'missing_among'
        WHEN decision IS NOT NULL AND coverage = 'covered' THEN 'missing'
        ELSE 'unknown'
    END AS marker_match,
    marker.base_offset AS marker_offset,
    marker.marker_type AS marker_type,
    marker.producer_epoch AS marker_epoch,
    marker.marker_coordinator_epoch AS marker_coordinator_epoch,
    marker.max_timestamp_ms AS marker_timestamp_ms,
    coalesce(duplicate_markers, 0) AS duplicate_markers,
    data.section_id AS data_section_id, data.byte_offset AS data_byte_offset, data.length AS data_length,
    marker.section_id AS marker_section_id, marker.byte_offset AS marker_byte_offset, marker.length AS marker_length
FROM covered
