-- Pieces that the same readers get, where one ends right before the next begins, as one, within 2**chunk_bits offsets of a segment: of a
-- large log no task then holds all pieces at once. One row per run of pieces.
--
-- pieces        what visible_pieces returns
-- chunk_bits    a number
WITH

pieces_in_chunks AS (
    SELECT *, shiftright(first, {chunk_bits}) AS chunk FROM {pieces}
),
started AS (
    SELECT
        *,
        IF(coalesce(lag(last) OVER in_order + 1 = first AND lag(seen) OVER in_order = seen, false), 0, 1) AS starts
    FROM pieces_in_chunks
    WINDOW in_order AS (PARTITION BY replica_log_id, section_id, chunk ORDER BY first)
),
runs AS (
    -- The number of starts so far names the run.
    SELECT
        *,
        sum(starts) OVER (
            PARTITION BY replica_log_id, section_id, chunk ORDER BY first ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS run
    FROM started
)

SELECT replica_log_id, section_id, min(first) AS first, max(last) AS last, seen
FROM runs
GROUP BY replica_log_id, section_id, chunk, seen, run
