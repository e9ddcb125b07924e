-- Up to where each replica log may be read, what holds it back there, and how much is held back. The law is eo_audit.model.lso. One row per
-- replica log.
--
-- rows                producer_history up to marker_role
-- spans               transaction_spans
-- producer_snapshots, section_status, replica_logs, coverage, clusters: the tables
-- instances           transaction_instances; without rows nothing is known of transactions that no batch shows
WITH

-- What may hold the LSO of a log. `first_offset` is the first field, so the least of such structs is the oldest transaction.
open_spans AS (
    -- `ProducerStateManager.unreplicatedTxns`: what has ended holds the LSO until its marker is below the high watermark.
    SELECT /*+ BROADCAST(logs) */
        spans.replica_log_id,
        struct(
            spans.first_offset, spans.producer_id, 'span' AS source, spans.last_epoch AS epoch, spans.last_timestamp_ms,
            spans.marker_offset, spans.data_section_id AS section_id, spans.data_byte_offset AS byte_offset, spans.data_length AS length
        ) AS txn
    FROM {spans} spans
    JOIN {replica_logs} logs ON logs.replica_log_id = spans.replica_log_id
    WHERE spans.outcome = 'open' OR spans.marker_offset >= logs.hw
),

-- What the newest snapshot of a log calls open. One that is older than LEO is believed where it speaks of offsets below the first dumped
-- one: no span can show those. At LEO it knows more than a replay: up to 2.3 a broker forgets producers whose data is gone. What was open
-- at the high watermark and has ended since, older ones tell.
snapshot_entries AS (
    SELECT /*+ BROADCAST(logs), BROADCAST(read) */ entry.*, entry.section_id = logs.snapshot_section_id AS is_of_newest, logs.hw
    FROM {producer_snapshots} entry
    JOIN (SELECT section_id FROM {section_status} WHERE kind = 'snapshot' AND is_read) read ON read.section_id = entry.section_id
    JOIN {replica_logs} logs ON logs.replica_log_id = entry.replica_log_id
    WHERE entry.current_txn_first_offset IS NOT NULL
        AND (entry.section_id = logs.snapshot_section_id OR (entry.snapshot_offset <= logs.hw AND logs.hw < logs.snapshot_offset))
        AND (entry.snapshot_offset = logs.leo OR entry.current_txn_first_offset < logs.first_offset)
),
-- The first marker behind a snapshot that ended what it calls open.
ended_since AS (
    SELECT /*+ BROADCAST(entry) */ entry.section_id, entry.producer_id, min(rows.base_offset) AS ended_at
    FROM {rows} rows
    JOIN snapshot_entries entry
        ON entry.replica_log_id = rows.replica_log_id AND entry.producer_id = rows.producer_id AND entry.snapshot_offset <= rows.base_offset
    WHERE rows.row_kind = 'marker'
    GROUP BY entry.section_id, entry.producer_id
),
open_in_snapshots AS (
    SELECT /*+ BROADCAST(since) */
        replica_log_id,
        struct(
            current_txn_first_offset AS first_offset, entry.producer_id, IF(ended_at IS NULL, 'snapshot', 'span') AS source,
            producer_epoch AS epoch, last_timestamp_ms, ended_at AS marker_offset, entry.section_id, byte_offset, length
        ) AS txn
    FROM snapshot_entries entry
    LEFT JOIN ended_since since ON since.section_id = entry.section_id AND since.producer_id = entry.producer_id
    WHERE ended_at >= hw OR (ended_at IS NULL AND is_of_newest)
),

-- Everything that is known of a log's transactions, and what is not known of its text.
transactions_and_gaps AS (
    SELECT replica_log_id, txn, false AS is_broken, NULL AS hole, NULL AS cut, NULL AS unjudged_at FROM open_spans
    UNION ALL
    SELECT replica_log_id, txn, false, NULL, NULL, NULL FROM open_in_snapshots
    UNION ALL
    SELECT
        replica_log_id,
        NULL,
        -- Behind any of these an open transaction, or the marker that ended one, may be unseen: then coverage is partial.
        state IN (
            'hole', 'unexplained', 'segment_missing', 'head_missing', 'lines_missing', 'disorder', 'crc_invalid', 'not_judged', 'truncated',
            'shallow', 'not_supported', 'unordered'
        ),
        IF(lacks_batches(state) AND state <> 'truncated', struct(first_offset, last_offset), NULL),
        IF(state = 'truncated', struct(first_offset, last_offset), NULL),
        IF(state = 'not_judged', first_offset, NULL)
    FROM {coverage}
),
told_of_log AS (
    SELECT
        replica_log_id,
        collect_list(txn) AS transactions,
        bool_or(is_broken) AS is_broken,
        collect_list(hole) AS missing,
        collect_list(cut) AS cut,
        min(unjudged_at) AS unjudged_from
    FROM transactions_and_gaps told
    GROUP BY replica_log_id
),

-- Transactions that the coordinator holds open for a partition, and whose data may lie below the first offset that was dumped: they pin the
-- LSO to the log start (`UnifiedLog.fetchLastStableOffsetMetadata`), and no batch that is left shows them. A log from offset 0 on hides
-- nothing, and a snapshot in the dumped part lists all that was open there. Few: one for each partition that a running transaction lists.
listed_open AS (
    -- Until CompleteX is written its markers may still be on their way, so PrepareX counts as open.
    SELECT
        cluster, instance_id, producer_id, start_ms, replica_log_id AS coordinator_log_id, last_status,
        inline(transform(partitions, p -> struct(p.topic, p.partition)))
    FROM {instances}
    WHERE is_last AND last_status IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')
),
dumps AS (
    SELECT replica_log_id, max(dumped_at_ms) AS dumped_at_ms FROM {section_status} WHERE kind = 'log' AND is_read GROUP BY replica_log_id
),
hidden_candidates AS (
    SELECT /*+ BROADCAST(own), BROADCAST(told) */
        logs.replica_log_id, logs.first_offset, listed.instance_id, listed.producer_id, listed.start_ms, clusters.skew_ms,
        -- Else its marker may stand in what was deleted between two dumps, and nobody saw.
        listed.last_status = 'Ongoing' AND coalesce(told.dumped_at_ms >= own.dumped_at_ms, false)
            -- KAFKA-7190: up to 2.3 a broker forgets a transaction with its data.
            AND NOT coalesce(clusters.remembers_by_batches, false) AS is_open_still
    FROM listed_open listed
    JOIN {replica_logs} logs
        ON logs.cluster = listed.cluster AND logs.topic = listed.topic AND logs.partition = listed.partition
    JOIN {clusters} clusters ON clusters.cluster = listed.cluster
    LEFT JOIN dumps own ON own.replica_log_id = logs.replica_log_id
    LEFT JOIN dumps told ON told.replica_log_id = listed.coordinator_log_id
    -- What is open was never moved to remote storage (`RemoteLogManager` copies up to the LSO).
    WHERE logs.first_offset > 0 AND NOT logs.only_remote_missing AND NOT coalesce(logs.snapshot_offset >= logs.first_offset, false)
),
compared_with_rows AS (
    SELECT /*+ BROADCAST(one) */
        one.replica_log_id,
        one.instance_id,
        one.start_ms,
        one.skew_ms,
        one.is_open_still,
        rows.row_kind = 'marker' AND rows.base_offset >= one.first_offset AS is_marker,
        rows.max_timestamp_ms,
        -- Its instance owns data here, or its producer id has something open.
        rows.base_offset >= one.first_offset AND rows.row_kind <> 'marker' AND (
            rows.instance_id <=> one.instance_id OR (rows.producer_id = one.producer_id AND rows.span_outcome <=> 'open')
        ) AS is_seen,
        -- Its instance owns a marker here, or its producer id has one that is younger than its start.
        rows.base_offset >= one.first_offset AND rows.row_kind = 'marker' AND (
            rows.instance_id <=> one.instance_id
            OR (rows.producer_id = one.producer_id AND rows.max_timestamp_ms + one.skew_ms >= one.start_ms)
        ) AS is_ended,
        rows.base_offset < one.first_offset AND rows.instance_id <=> one.instance_id AS is_seen_below,
        struct(
            rows.base_offset AS first_offset, rows.producer_id, 'coordinator' AS source, rows.producer_epoch AS epoch,
            rows.max_timestamp_ms AS last_timestamp_ms, CAST(NULL AS BIGINT) AS marker_offset,
            rows.section_id, rows.byte_offset, rows.length
        ) AS begun
    FROM {rows} rows
    JOIN hidden_candidates one ON one.replica_log_id = rows.replica_log_id
),
hidden AS (
    SELECT
        replica_log_id,
        bool_or(is_seen_below AND is_open_still) AS is_held,
        min(IF(is_seen_below AND is_open_still, begun, NULL)) AS begun
    FROM compared_with_rows
    GROUP BY replica_log_id, instance_id, start_ms, skew_ms
    HAVING NOT bool_or(is_ended) AND (
        is_held
        -- Without a marker in the dump, or a start in the entry, nothing says that it began later.
        OR NOT bool_or(is_seen)
        AND (bool_or(is_seen_below) OR coalesce(start_ms < min(IF(is_marker, max_timestamp_ms, NULL)) + skew_ms, true))
    )
),
pinned_logs AS (
    -- True where its data were seen, below: the LSO lies where they begin, or at the log start.
    SELECT replica_log_id, bool_or(is_held) AS pinned, collect_list(begun) AS pinned_by FROM hidden GROUP BY replica_log_id
),

logs AS (
    SELECT /*+ BROADCAST(told), BROADCAST(pinned) */
        logs.*,
        coalesce(told.transactions, array()) AS transactions,
        told.is_broken,
        -- What was cut off from an older segment is a hole; the end of the newest is the log's.
        concat(coalesce(told.missing, array()), filter(coalesce(told.cut, array()), c -> c.last_offset < logs.leo)) AS missing,
        told.unjudged_from,
        pinned.pinned,
        coalesce(pinned.pinned_by, array()) AS pinned_by,
        coalesce(logs.snapshot_offset = logs.leo, false) AS by_snapshot,
        -- A tool that died before the first batch leaves no number of the log.
        NOT logs.is_empty AND NOT logs.tail_intact AND coalesce(logs.leo <= logs.first_offset, true) AS is_unreadable
    FROM {replica_logs} logs
    LEFT JOIN told_of_log told ON told.replica_log_id = logs.replica_log_id
    LEFT JOIN pinned_logs pinned ON pinned.replica_log_id = logs.replica_log_id
),
by_source AS (
    SELECT
        *,
        filter(transactions, t -> t.source = 'span' AND t.marker_offset IS NULL) AS of_spans,
        filter(transactions, t -> t.source = 'span' AND t.marker_offset IS NOT NULL) AS unreplicated,
        filter(transactions, t -> t.source = 'snapshot') AS of_snapshot
    FROM logs
),
opened AS (
    SELECT
        *,
        IF(
            by_snapshot,
            -- A snapshot only knows that a transaction is open, its span knows its first batch.
            transform(
                of_snapshot,
                t -> coalesce(get(filter(of_spans, s -> s.producer_id = t.producer_id AND s.first_offset = t.first_offset), 0), t)
            ),
            array_sort(concat(of_spans, pinned_by, of_snapshot))
        ) AS open_now
    FROM by_source
),
-- The oldest of what is open, and of what holds the LSO, for it is open or its marker is not below the high watermark.
holders AS (
    SELECT
        *,
        array_min(open_now) AS blocker,
        array_min(transform(concat(open_now, unreplicated), t -> struct(t.first_offset, t.marker_offset))) AS holder
    FROM opened
),
-- `UnifiedLog.maybeIncrementFirstUnstableOffset`: retention does not wait for open transactions, so one may begin below the log start;
-- then the log start itself is the first unstable offset.
shown AS (
    SELECT
        *,
        IF(holder IS NULL, hw, least(hw, greatest(holder.first_offset, log_start))) AS shown_lso,
        IF(blocker IS NULL, leo, least(leo, greatest(blocker.first_offset, log_start))) AS shown_lso_if_hw_is_leo
    FROM holders
),
-- What may be believed of that. `pinned` is null where nothing older can be open, false where it may be: then only a snapshot at LEO tells,
-- or an LSO that lies at the log start already and cannot be lower.
weighed AS (
    SELECT
        *,
        coalesce(pinned, false) AS is_held,
        -- A snapshot at LEO tells what is open whatever is missing, and so does the coordinator.
        IF(by_snapshot OR coalesce(pinned, false), array(), concat(
            missing,
            IF(unjudged_from IS NULL, array(), array(struct(unjudged_from AS first_offset, leo AS last_offset))),
            IF(tail_intact, array(), array(struct(leo AS first_offset, leo AS last_offset)))
        )) AS unseen
    FROM shown
),
believed AS (
    SELECT
        *,
        NOT supported
            OR is_unreadable
            OR coalesce(size(unordered_before) > 0 AND NOT (by_snapshot AND shown_lso >= first_offset), false)
            OR coalesce(NOT by_snapshot AND NOT pinned AND shown_lso > log_start, false) AS is_unknown,
        -- Where nothing says that the log starts at the first segment dumped, what holds the LSO from below holds it at either place.
        coalesce(log_start_source = 'segment_base' AND holder.first_offset < least(log_start, hw), false) AS is_below_start,
        -- What was open at a high watermark that lies in segments nobody dumped may have ended there as well.
        coalesce(hw < first_offset AND shown_lso > log_start, false) AS is_in_missing_head
    FROM weighed
),
bounded AS (
    SELECT
        *,
        CASE
            WHEN is_unknown THEN NULL
            WHEN is_below_start THEN holder.first_offset
            ELSE IF(is_in_missing_head, log_start, shown_lso)
        END AS lso_at_least,
        IF(is_unknown OR is_below_start OR may_have_ended(blocker.first_offset, NULL, unseen), NULL, shown_lso_if_hw_is_leo)
            AS lso_if_hw_is_leo
    FROM believed
),
stable AS (
    -- Where the marker of what holds it may be unseen the LSO lies there, or anywhere above.
    SELECT
        *,
        IF(
            is_below_start OR is_in_missing_head
                OR (holder.first_offset < hw AND may_have_ended(holder.first_offset, holder.marker_offset, unseen)),
            NULL, lso_at_least
        ) AS lso
    FROM bounded
),

-- Most logs hold nothing back: batches are counted for those only that do.
held_rows AS (
    SELECT /*+ BROADCAST(stuck) */
        rows.replica_log_id,
        rows.base_offset,
        rows.instance_id,
        rows.producer_id,
        stuck.blocker,
        coalesce(rows.count, rows.last_offset - rows.base_offset + 1) AS records,
        rows.base_offset >= stuck.lso AND rows.last_offset < stuck.hw AS is_behind,
        truth(rows.row_kind, rows.is_transactional, rows.instance_decision, rows.judged, rows.span_outcome) AS truth,
        -- The client gives data its time (CreateTime); markers, LogAppendTime and batches of internal topics have the broker's.
        IF(
            rows.judged AND (rows.row_kind = 'marker' OR rows.timestamp_type = 'LogAppendTime' OR stuck.is_internal),
            rows.max_timestamp_ms,
            NULL
        ) AS broker_ms
    FROM {rows} rows
    JOIN (SELECT replica_log_id, lso, hw, blocker, is_internal FROM stable WHERE lso < hw) stuck
        ON stuck.replica_log_id = rows.replica_log_id
),
held_back AS (
    SELECT
        replica_log_id,
        sum(IF(is_behind AND truth IN ('committed', 'aborted', 'plain'), records, 0L)) AS records,
        sum(IF(is_behind AND truth IN ('committed', 'plain'), records, 0L)) AS committed_records,
        max(IF(is_behind AND producer_id = blocker.producer_id AND base_offset = blocker.first_offset, instance_id, NULL)) AS instance_id,
        -- Brokers' clocks on both sides of the first open offset bound the age of what is open; the client's own time proves nothing.
        max(IF(base_offset < blocker.first_offset, broker_ms, NULL)) AS began_after_ms,
        min(IF(base_offset >= blocker.first_offset, broker_ms, NULL)) AS open_by_ms
    FROM held_rows
    GROUP BY replica_log_id
)

SELECT /*+ BROADCAST(held), BROADCAST(clusters) */
    stable.replica_log_id, stable.cluster, stable.broker, stable.topic, stable.partition, stable.topic_id,
    stable.log_start, stable.log_start_source, stable.hw, stable.hw_source, stable.leo, stable.last_leader_epoch,
    stable.lso,
    stable.lso_if_hw_is_leo,
    stable.lso_at_least,
    CASE
        WHEN stable.lso IS NULL THEN NULL WHEN stable.by_snapshot THEN 'snapshot' WHEN stable.is_held THEN 'coordinator' ELSE 'replay'
    END AS lso_source,
    clusters.as_of_ms, clusters.as_of_source,
    stable.blocker.producer_id AS blocker_producer_id,
    stable.blocker.epoch AS blocker_epoch,
    stable.blocker.first_offset AS blocker_first_offset,
    stable.blocker.last_timestamp_ms AS blocker_last_timestamp_ms,
    held.began_after_ms AS blocker_began_after_ms,
    held.open_by_ms AS blocker_open_by_ms,
    held.instance_id AS blocker_instance_id,
    stable.blocker.section_id AS blocker_section_id,
    stable.blocker.byte_offset AS blocker_byte_offset,
    stable.blocker.length AS blocker_length,
    size(array_distinct(transform(stable.open_now, t -> t.producer_id))) AS open_transactions,
    coalesce(stable.hw - stable.lso, 0L) AS held_back_offsets,
    coalesce(held.records, 0L) AS held_back_records,
    coalesce(held.committed_records, 0L) AS held_back_committed_records,
    stable.index_state, stable.index_may_lag,
    -- Behind the last segment whose index nobody knows; of a segment without a name nobody knows which it is.
    coalesce(
        array_max(transform(
            filter(stable.segments, s -> s.base_offset IS NULL OR array_contains(stable.unknown_indexes, s.base_offset)),
            s -> s.end_offset
        )),
        0L
    ) AS index_known_from,
    stable.snapshot_offset, coalesce(stable.clean_end, false) AS clean_end,
    CASE
        WHEN NOT stable.supported OR stable.is_unreadable THEN 'none'
        WHEN coalesce(stable.is_broken, false) OR NOT stable.whole THEN 'partial'
        ELSE 'full'
    END AS coverage,
    stable.tail_intact, stable.lacks_records, stable.compacted, stable.uncleaned_from, stable.is_internal, stable.newest_broker_clock_ms,
    stable.first_offset, stable.segments, stable.unknown_indexes,
    stable.missing AS holes,
    stable.unjudged_from
FROM stable
LEFT JOIN held_back held ON held.replica_log_id = stable.replica_log_id
LEFT JOIN {clusters} clusters ON clusters.cluster = stable.cluster
