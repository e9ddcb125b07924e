-- Batches of the epochs that edge_epochs keeps, which hold the first or the last records of theirs (each holds at least one), within blocks
-- of 2**block_bits offsets: what is at an edge of the whole is at an edge of its block, so a huge producer is many tasks. One row per such
-- batch.
--
-- Each with the line at which the next batch of its section begins that has the same base offset: behind it no record is its own.
--
-- rows                      the table producer_history
-- kept                      what edge_epochs returns
-- block_bits                63: each log is one block
-- records_of, of_nobody     records kept at an edge: of a producer id, and of batches without one
WITH

batches AS (
    SELECT /*+ BROADCAST(kept) */
        rows.replica_log_id, rows.producer_id, rows.producer_epoch, rows.section_id, rows.base_offset, rows.byte_offset,
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
        row_number() OVER (
            PARTITION BY replica_log_id, producer_id, producer_epoch, block ORDER BY base_offset, section_id, byte_offset
        ) AS from_start,
        row_number() OVER (
            PARTITION BY replica_log_id, producer_id, producer_epoch, block ORDER BY base_offset DESC, section_id DESC, byte_offset DESC
        ) AS from_end
    FROM batches
),
-- Where a log is out of order, two batches of a section may begin at one offset, whoever wrote them, and their records tell them apart only
-- by where they stand in the text. Of two such batches the later one is not judged; in most logs all are.
out_of_order AS (
    SELECT section_id, base_offset, collect_list(byte_offset) AS lines FROM {rows} WHERE NOT judged GROUP BY section_id, base_offset
)

SELECT
    numbered.* EXCEPT (from_start, from_end, block),
    array_min(filter(out_of_order.lines, line -> line > numbered.byte_offset)) AS records_end_at
FROM numbered
LEFT JOIN out_of_order ON out_of_order.section_id = numbered.section_id AND out_of_order.base_offset = numbered.base_offset
WHERE numbered.from_start <= numbered.most OR numbered.from_end <= numbered.most
