-- Totals of each producer id and epoch, for the first and the last epochs of each producer id, of topics that clients write. A producer
-- that starts an epoch with each transaction (transaction.version 2) has thousands: those at the ends stand for them. One row per producer
-- id and epoch in a replica log that is kept.
--
-- rows            the table producer_history
-- replica_logs    the table
-- most            epochs kept at each end
WITH

totals AS (
    SELECT
        rows.replica_log_id, rows.producer_id, rows.producer_epoch,
        min(rows.base_offset) AS first_offset,
        max(rows.last_offset) AS last_offset,
        sum(CAST(rows.count AS BIGINT)) AS records,
        -- Where a log is out of order, two batches may begin at one offset: what is judged stands before what is not, and in the order of
        -- the text.
        min_by(
            struct(rows.base_sequence, rows.section_id, rows.byte_offset, rows.length),
            struct(rows.base_offset, NOT rows.judged, rows.section_id, rows.byte_offset)
        ) AS first,
        max_by(rows.max_timestamp_ms, struct(rows.base_offset, NOT rows.judged, rows.section_id, rows.byte_offset)) AS last_timestamp_ms,
        coalesce(bool_or(rows.is_transactional), false) AS is_transactional
    FROM {rows} rows
    LEFT SEMI JOIN (SELECT /*+ BROADCAST */ replica_log_id FROM {replica_logs} WHERE NOT is_internal) log
        ON log.replica_log_id = rows.replica_log_id
    -- Dumps of 0.11.0.0 and 0.11.0.1 print no epochs of producers: which records begin one nobody knows.
    WHERE rows.row_kind IN ('data', 'plain') AND rows.count > 0 AND rows.producer_epoch IS NOT NULL
    GROUP BY rows.replica_log_id, rows.producer_id, rows.producer_epoch
),
numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY replica_log_id, producer_id ORDER BY first_offset, producer_epoch) AS from_start,
        row_number() OVER (PARTITION BY replica_log_id, producer_id ORDER BY first_offset DESC, producer_epoch DESC) AS from_end
    FROM totals
)

SELECT * EXCEPT (from_start, from_end)
FROM numbered
WHERE least(from_start, from_end) <= {most}
