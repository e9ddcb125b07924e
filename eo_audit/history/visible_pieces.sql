-- Runs of offsets that exist in each replica log, with the readers that get them. A batch holds every offset of its range unless the
-- cleaner took some: then its record lines say which are left. Markers hold no records. One row per piece, which is a batch or a record of
-- one that was thinned.
--
-- Who gets a piece is a sum of bits, so that neighbours that the same readers get are found by comparing one number:
--   1  read_committed, from the log start on
--   2  read_uncommitted, from the log start on
--   4  what was committed in truth
--   8  read_committed, one fetch from each segment's base, with the index looked up to the end of the segment
--
-- rows                    producer_history
-- records                 the table; only those of sections that the cleaner has worked on are read
-- visibility, section_status: the tables
WITH

logs AS (
    -- Where nobody knows where the log starts, what lies above the last place where it may is there.
    SELECT replica_log_id, coalesce(log_start, first_offset) AS log_start, lso_at_least, hw FROM {visibility}
),
held AS (
    SELECT /*+ BROADCAST(log) */
        rows.replica_log_id, rows.section_id, rows.base_offset, rows.last_offset, log.log_start,
        rows.returned, rows.returned_from_segment,
        -- As far as an index is not known the view shows what a sound one would give.
        rows.last_offset < log.lso_at_least AND (
            NOT coalesce(rows.is_transactional, false) OR coalesce(rows.span_outcome = 'committed', false)
        ) AS is_soundly_returned,
        rows.last_offset < log.hw AS is_below_hw,
        rows.truth IN ('committed', 'plain') AS is_committed,
        coalesce(rows.count > rows.last_offset - rows.base_offset, true) AS is_complete
    FROM {rows} rows
    JOIN logs log ON log.replica_log_id = rows.replica_log_id
    WHERE rows.row_kind IN ('data', 'plain') AND coalesce(rows.count, 1) > 0 AND rows.last_offset >= log.log_start
),
with_readers AS (
    SELECT
        *,
        IF(coalesce(returned, is_soundly_returned), 1, 0)
            + IF(is_below_hw, 2, 0)
            + IF(is_below_hw AND is_committed, 4, 0)
            + IF(coalesce(returned_from_segment, is_soundly_returned), 8, 0) AS seen
    FROM held
),
records_left AS (
    SELECT section_id, base_offset, offset FROM {records}
    LEFT SEMI JOIN (SELECT /*+ BROADCAST */ section_id FROM {section_status} WHERE shows_cleaning AND is_read) USING (section_id)
)

SELECT replica_log_id, section_id, greatest(base_offset, log_start) AS first, last_offset AS last, seen
FROM with_readers
WHERE seen > 0 AND is_complete
UNION ALL
-- Records of a batch that the cleaner thinned stand one by one; where its record lines were not printed it counts as whole.
SELECT
    batch.replica_log_id,
    batch.section_id,
    coalesce(one.offset, greatest(batch.base_offset, batch.log_start)) AS first,
    coalesce(one.offset, batch.last_offset) AS last,
    batch.seen
FROM with_readers batch
LEFT JOIN records_left one ON one.section_id = batch.section_id AND one.base_offset = batch.base_offset
WHERE batch.seen > 0 AND NOT batch.is_complete AND coalesce(one.offset >= batch.log_start, true)
