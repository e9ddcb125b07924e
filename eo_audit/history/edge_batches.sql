-- Batches of the epochs that edge_epochs keeps, which hold the first or the last records of theirs (each holds at least one), within blocks
-- of 2**block_bits offsets: what is at an edge of the whole is at an edge of its block, so a huge producer is many tasks.
--
-- rows                      the table producer_history
-- kept                      what edge_epochs returns
-- block_bits                63: each log is one block
-- records_of, of_nobody     records kept at an edge: of a producer id, and of batches without one
WITH

batches AS (
    SELECT /*+ BROADCAST(kept) */
        rows.replica_log_id, rows.producer_id, rows.producer_epoch, rows.section_id, rows.base_offset,
        reached_readers(rows.returned, rows.span_outcome) AS returned,
        IF(rows.producer_id < 0, {of_nobody}, {records_of}) AS most,
        shiftright(rows.base_offset, {block_bits}) AS block
    FROM {rows} rows
    LEFT SEMI JOIN {kept} kept
        ON kept.replica_log_id = rows.replica_log_id
        AND kept.producer_id = rows.producer_id
        AND kept.producer_epoch = rows.producer_epoch
    WHERE rows.row_kind IN ('data', 'plain') AND rows.count > 0
),
numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY replica_log_id, producer_id, producer_epoch, block ORDER BY base_offset) AS from_start,
        row_number() OVER (PARTITION BY replica_log_id, producer_id, producer_epoch, block ORDER BY base_offset DESC) AS from_end
    FROM batches
)

SELECT * EXCEPT (from_start, from_end, block)
FROM numbered
WHERE from_start <= most OR from_end <= most
