-- Records that stand in their log again, by the same producer and under other sequences: a broker removes duplicates by sequence only, so
-- it takes what an application (or a client that counts wrongly) sends once more. One row per run of such records.
--
-- Equal records prove something only where records differ: heartbeats and states repeat themselves. So a log is asked only where few of its
-- records are repeats, and of a content that stands more than twice the first and the last copy are looked at.
--
-- records         the table, of all dumps that were ever read
-- section_status  the table: which of them are read now
-- rows            the table producer_history; it is read three times
-- replica_logs    the table
-- least           records that a log must have
-- one_in          one record in so many may be a repeat
-- most_copies     of one content
-- most_apart_ms   between two copies
WITH

logs AS (
    SELECT replica_log_id, sum(count) AS records
    FROM {rows}
    WHERE row_kind IN ('data', 'plain')
    GROUP BY replica_log_id
),
-- As numbers only, which are aggregated without a sort: of one log the offset of the first copy and the least offset of a batch are of one
-- row.
contents AS (
    SELECT
        replica_log_id,
        count(1) AS copies,
        min(offset) AS original, min(base_offset) AS original_base_offset,
        max(offset) AS again, max(base_offset) AS base_offset,
        max(timestamp_ms) AS timestamp_ms, max(timestamp_ms) - min(timestamp_ms) AS apart_ms
    -- Not those that a newer dump replaced, nor of an earlier log of the same name: a record is as often in its log, however often it was
    -- dumped.
    FROM {records}
    LEFT SEMI JOIN (SELECT /*+ BROADCAST */ section_id FROM {section_status} WHERE is_read) USING (section_id)
    -- A key may be there and have no hash: it is no text, or was not printed. Such a record equals no other.
    WHERE value_hash IS NOT NULL AND (key_hash IS NOT NULL OR key_size < 0)
    GROUP BY replica_log_id, key_hash, value_hash
    HAVING min(offset) < max(offset)
),
counted AS (
    SELECT *, sum(copies - 1) OVER (PARTITION BY replica_log_id) AS repeats
    FROM contents
),
rare AS (
    SELECT /*+ BROADCAST(known, log) */ counted.*, log.records AS of_records
    FROM counted
    JOIN logs log ON log.replica_log_id = counted.replica_log_id
    JOIN {replica_logs} known ON known.replica_log_id = counted.replica_log_id
    WHERE NOT known.is_internal
        AND log.records >= {least}
        AND counted.repeats * {one_in} <= log.records
        AND counted.copies <= {most_copies}
        -- Clients set these times: where they are missing they rule nothing out.
        AND coalesce(counted.apart_ms <= {most_apart_ms}, true)
),
batches AS (
    SELECT
        replica_log_id, section_id, byte_offset, length, base_offset, producer_id, producer_epoch, base_sequence, is_transactional
    FROM {rows}
    WHERE row_kind = 'data' AND judged
        -- What readers did not get may be sent again.
        AND reached_readers(returned, span_outcome)
),
pairs AS (
    SELECT
        rare.replica_log_id, rare.original, rare.again, rare.timestamp_ms, rare.apart_ms, rare.repeats, rare.of_records,
        batch.producer_id, batch.producer_epoch, batch.is_transactional,
        batch.section_id, batch.byte_offset, batch.length,
        first.producer_epoch AS original_epoch,
        first.section_id AS original_section_id, first.byte_offset AS original_byte_offset, first.length AS original_length,
        batch.base_sequence + rare.again - rare.base_offset AS sequence,
        first.base_sequence + rare.original - rare.original_base_offset AS original_sequence
    FROM rare
    JOIN batches batch ON batch.replica_log_id = rare.replica_log_id AND batch.base_offset = rare.base_offset
    JOIN batches first
        ON first.replica_log_id = rare.replica_log_id
        AND first.base_offset = rare.original_base_offset
        AND first.producer_id = batch.producer_id
    -- Each transaction of transaction.version 2 is an epoch. Of other producers the next epoch is looked at by itself (producer_edges).
    WHERE batch.producer_epoch = first.producer_epoch OR (batch.is_transactional AND first.is_transactional)
),
-- The same sequences twice is what a broker should have known.
resent AS (
    SELECT *
    FROM pairs
    WHERE producer_epoch <> original_epoch OR sequence <> original_sequence
),
broken AS (
    SELECT
        *,
        -- By sequence: other producers write between the batches of this one.
        coalesce(
            lag(sequence) OVER in_order + 1 <> sequence OR lag(original_sequence) OVER in_order + 1 <> original_sequence, true
        ) AS begins
    FROM resent
    WINDOW in_order AS (PARTITION BY replica_log_id, producer_id, producer_epoch, original_epoch ORDER BY again)
),
runs AS (
    SELECT
        *,
        count_if(begins) OVER (PARTITION BY replica_log_id, producer_id, producer_epoch, original_epoch ORDER BY again) AS run
    FROM broken
)

SELECT
    replica_log_id, producer_id, producer_epoch,
    min(again) AS first_offset, max(again) AS last_offset,
    min(original) AS original_first_offset, max(original) AS original_last_offset,
    original_epoch,
    min(sequence) AS first_sequence, min(original_sequence) AS original_first_sequence,
    count(1) AS records,
    bool_or(is_transactional) AS is_transactional,
    min(timestamp_ms) AS timestamp_ms,
    max(apart_ms) AS apart_ms,
    max(repeats) AS log_repeats,
    max(of_records) AS log_records,
    min_by(section_id, again) AS section_id,
    min_by(byte_offset, again) AS byte_offset,
    min_by(length, again) AS length,
    min_by(original_section_id, again) AS original_section_id,
    min_by(original_byte_offset, again) AS original_byte_offset,
    min_by(original_length, again) AS original_length
FROM runs
GROUP BY replica_log_id, producer_id, producer_epoch, original_epoch, run
