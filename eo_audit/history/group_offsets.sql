-- What became of the offsets that consumer groups committed in transactions: one row per commit of a group that ever did so in this log.
--
-- 1. A commit in a transaction is parked, by producer id and not by epoch, until the producer's next marker: COMMIT applies what is parked,
--    ABORT drops it (`GroupMetadata.completePendingTxnOffsetCommit`, `OffsetMetadataManager.replayEndTransactionMarker`). No aborted index
--    is asked. Any other commit counts where it stands.
-- 2. Of two commits that count the one with the greater record offset wins, not the one whose marker came last.
-- 3. The log is compacted: only the newest commit of a partition surely stands there, so nothing follows from what is missing. A tombstone
--    (expiry, topic deleted) begins anew. So does what nobody can read: tools up to 2.4 print tombstones without a name.
--
-- offset_commits, section_status, visibility: the tables
-- rows                                        producer_history
WITH

logs AS (
    SELECT replica_log_id, holes, coalesce(unjudged_from, 9223372036854775807L) AS unjudged_from
    FROM {visibility}
    WHERE topic = '__consumer_offsets'
),
records AS (
    SELECT /*+ BROADCAST(logs), BROADCAST(section) */
        said.replica_log_id, said.record_kind, said.`group`, said.topic, said.partition, said.committed_offset, said.commit_timestamp_ms,
        said.tombstone, said.record_offset, said.producer_id, said.producer_epoch, said.section_id, said.byte_offset, said.length,
        coalesce(said.is_transactional, false) AS is_transactional
    FROM {offset_commits} said
    JOIN logs ON logs.replica_log_id = said.replica_log_id AND said.record_offset < logs.unjudged_from
    JOIN {section_status} section ON section.section_id = said.section_id AND section.is_read
),
-- Groups that commit plainly only were promised nothing.
transacting AS (
    SELECT DISTINCT replica_log_id, `group` FROM records WHERE record_kind = 'commit' AND is_transactional
),
of_groups AS (
    SELECT /*+ BROADCAST(transacting) */ records.*
    FROM records
    LEFT SEMI JOIN transacting ON transacting.replica_log_id = records.replica_log_id AND transacting.`group` = records.`group`
),
nameless AS (
    SELECT replica_log_id, min(record_offset) AS first_offset, max(record_offset) AS last_offset
    FROM records
    WHERE `group` IS NULL
    GROUP BY replica_log_id
),

-- Each commit in a transaction with its batch, which stands at or before it, and with the producer's next marker.
events AS (
    SELECT /*+ BROADCAST(logs) */
        rows.replica_log_id, rows.producer_id, rows.base_offset AS at,
        IF(rows.row_kind = 'data', struct(rows.last_offset, rows.span_outcome, rows.instance_id, rows.instance_decision), NULL)
            AS batch,
        IF(rows.row_kind = 'marker', rows.base_offset, NULL) AS marker_offset,
        NULL AS told
    FROM {rows} rows
    JOIN logs ON logs.replica_log_id = rows.replica_log_id
    WHERE rows.judged AND (rows.row_kind = 'marker' OR (rows.row_kind = 'data' AND rows.is_transactional))
    UNION ALL
    SELECT replica_log_id, producer_id, record_offset, NULL, NULL, struct(*)
    FROM of_groups
    WHERE record_kind = 'commit' AND is_transactional
),
with_next_marker AS (
    SELECT
        told,
        last(batch, true) OVER (
            -- A batch begins at its first record.
            PARTITION BY replica_log_id, producer_id ORDER BY at, told IS NOT NULL ROWS UNBOUNDED PRECEDING
        ) AS batch,
        last(marker_offset, true) OVER (
            PARTITION BY replica_log_id, producer_id ORDER BY at DESC ROWS UNBOUNDED PRECEDING
        ) AS marker_offset
    FROM events
),
in_transactions AS (
    -- Behind a hole the next marker may be that of a later transaction.
    SELECT /*+ BROADCAST(logs) */
        placed.told.*,
        IF(placed.batch.last_offset >= placed.told.record_offset, placed.batch, NULL) AS batch,
        placed.marker_offset,
        coalesce(
            exists(logs.holes, h -> h.first_offset > placed.told.record_offset AND h.first_offset < placed.marker_offset), false
        ) AS is_behind_hole
    FROM with_next_marker placed
    JOIN logs ON logs.replica_log_id = placed.told.replica_log_id
    WHERE placed.told IS NOT NULL
),
fated AS (
    SELECT
        * EXCEPT (batch, marker_offset, is_behind_hole),
        batch.instance_id, batch.instance_decision,
        CASE IF(is_behind_hole, 'unknown', batch.span_outcome)
            WHEN 'committed' THEN 'applied' WHEN 'aborted' THEN 'dropped' WHEN 'open' THEN 'pending' ELSE 'unknown'
        END AS outcome,
        IF(batch.span_outcome IN ('committed', 'aborted') AND NOT is_behind_hole, marker_offset, NULL) AS marker_offset
    FROM in_transactions
    UNION ALL
    SELECT *, NULL, NULL, IF(record_kind = 'commit', 'applied', NULL), NULL FROM of_groups
    WHERE NOT (record_kind = 'commit' AND is_transactional)
),

-- Since when the group has its members: it writes its metadata at each rebalance, and when it is empty. What tells of members of a group of
-- the newer protocol (KIP-848) is `other` to the decoder, and has the group's name.
in_generations AS (
    SELECT
        *,
        CASE WHEN outcome = 'applied' THEN coalesce(marker_offset, record_offset) END AS effective_offset,
        max(IF(record_kind = 'commit', NULL, record_offset)) OVER (
            PARTITION BY replica_log_id, `group` ORDER BY record_offset ROWS UNBOUNDED PRECEDING
        ) AS group_changed_at,
        -- The least that a later row says of an earlier one.
        struct(
            record_offset, committed_offset, tombstone, is_transactional, producer_id, producer_epoch, marker_offset, section_id,
            byte_offset, length
        ) AS own
    FROM fated
),
-- Of what one producer parked for a partition, its newest commit is what the marker applies.
lasting AS (
    SELECT
        *,
        outcome = 'applied' AND NOT lead(effective_offset) OVER (
            PARTITION BY replica_log_id, `group`, topic, partition, outcome ORDER BY effective_offset, record_offset
        ) <=> effective_offset AS lasts
    FROM in_generations
    WHERE record_kind = 'commit'
),
followed AS (
    SELECT
        *,
        max(IF(lasts, own, NULL)) OVER (
            PARTITION BY replica_log_id, `group`, topic, partition, outcome ORDER BY effective_offset, record_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS counted,
        max(IF(is_transactional, struct(marker_offset, own), NULL)) OVER earlier AS parked,
        lag(struct(own, group_changed_at)) OVER in_order AS before
    FROM lasting
    WINDOW
        in_order AS (PARTITION BY replica_log_id, `group`, topic, partition, outcome ORDER BY record_offset),
        earlier AS (
            PARTITION BY replica_log_id, `group`, topic, partition, outcome ORDER BY record_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
-- What may be said of two commits: nothing across a hole, nor across what has no name.
compared AS (
    SELECT /*+ BROADCAST(logs), BROADCAST(nameless) */
        followed.*,
        lasts AND coalesce(record_offset > counted.record_offset, true) AS wins,
        coalesce(
            lasts AND record_offset > counted.record_offset
                AND NOT tombstone AND NOT counted.tombstone AND committed_offset BETWEEN 0 AND counted.committed_offset - 1
                AND NOT exists(logs.holes, h -> h.first_offset > counted.record_offset AND h.first_offset < effective_offset)
                AND NOT coalesce(nameless.last_offset > counted.record_offset AND nameless.first_offset < effective_offset, false),
            false
        ) AS goes_back,
        coalesce(
            outcome = 'applied' AND is_transactional AND parked.marker_offset > record_offset
                AND parked.own.producer_id <> followed.producer_id
                AND NOT exists(
                    logs.holes,
                    h -> h.first_offset > parked.own.record_offset AND h.first_offset < greatest(parked.marker_offset, effective_offset)
                ),
            false
        ) AS is_unfenced,
        coalesce(
            outcome = 'applied' AND is_transactional <> before.own.is_transactional AND NOT tombstone AND NOT before.own.tombstone
                AND group_changed_at <=> before.group_changed_at
                AND NOT exists(logs.holes, h -> h.first_offset > before.own.record_offset AND h.first_offset < record_offset)
                AND NOT coalesce(nameless.last_offset > before.own.record_offset AND nameless.first_offset < record_offset, false),
            false
        ) AS turns
    FROM followed
    JOIN logs ON logs.replica_log_id = followed.replica_log_id
    LEFT JOIN nameless ON nameless.replica_log_id = followed.replica_log_id
),
counted_turns AS (
    SELECT
        *,
        CAST(
            count_if(turns) OVER (
                PARTITION BY replica_log_id, `group`, topic, partition, outcome, group_changed_at ORDER BY record_offset
                ROWS UNBOUNDED PRECEDING
            ) AS INT
        ) AS kind_changes
    FROM compared
)

SELECT
    replica_log_id, record_offset, section_id, byte_offset, length, `group`, topic, partition, committed_offset, tombstone,
    commit_timestamp_ms, is_transactional, producer_id, producer_epoch, instance_id, instance_decision, outcome, marker_offset,
    effective_offset, wins, goes_back, is_unfenced,
    IF(outcome = 'applied' AND turns, kind_changes, 0) AS kind_changes,
    -- The earlier commit, where there is something to say of both.
    IF(goes_back, counted.record_offset, NULL) AS counted_offset,
    IF(goes_back, counted.committed_offset, NULL) AS counted_committed_offset,
    IF(goes_back, counted.is_transactional, NULL) AS counted_is_transactional,
    IF(goes_back, counted.producer_id, NULL) AS counted_producer_id,
    IF(goes_back, counted.producer_epoch, NULL) AS counted_producer_epoch,
    IF(goes_back, counted.section_id, NULL) AS counted_section_id,
    IF(goes_back, counted.byte_offset, NULL) AS counted_byte_offset,
    IF(goes_back, counted.length, NULL) AS counted_length,
    IF(is_unfenced, parked.own.record_offset, NULL) AS parked_offset,
    IF(is_unfenced, parked.own.committed_offset, NULL) AS parked_committed_offset,
    IF(is_unfenced, parked.own.producer_id, NULL) AS parked_producer_id,
    IF(is_unfenced, parked.marker_offset, NULL) AS parked_marker_offset,
    IF(is_unfenced, parked.own.section_id, NULL) AS parked_section_id,
    IF(is_unfenced, parked.own.byte_offset, NULL) AS parked_byte_offset,
    IF(is_unfenced, parked.own.length, NULL) AS parked_length
FROM counted_turns
