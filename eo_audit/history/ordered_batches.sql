-- The batches of each replica log in the order of the log, with what breaks that order. One row per batch of a section that is read.
--
-- 1. Offsets are what is checked against the order of the text (R03, R04).
-- 2. Nothing is judged from the first bad checksum or offset disorder of a replica log onward (R02, R03).
-- 3. A hole is legal below the offset up to which the log may have been compacted, and where the broker deleted segments between two dumps
--    (replica_logs.removed_before); it is a hole in any other case. Behind such a removal the log begins anew, as at its start: `era`.
-- 4. A shallow dump prints only the last offset of a compressed batch of magic 0 or 1: it begins where the batch before it ends.
--
-- A huge log is cut into chunks, and takes two runs: the first judges each chunk as if it were a log of its own, inherited_order sums these
-- up, and the second begins each chunk with what it inherits (`log_order.in_log_order`).
--
-- Source: `UnifiedLog.append` (offsets go up), `Cleaner` (holes, emptied batches).
--
-- placed       what placed_batches returns
-- inherited    what inherited_order returns, or no rows: then each log, or chunk of one, is judged as if nothing stood before it
-- chunk        the column of that name, or 0: work on each log in one piece
WITH

with_inherited AS (
    SELECT /*+ BROADCAST(inherited) */
        placed.*,
        inherited.last_offset AS inherited_last_offset,
        coalesce(inherited.broken, false) AS inherited_broken,
        inherited.hole_at AS inherited_hole_at,
        inherited.cleaned_at AS inherited_cleaned_at
    FROM {placed} placed
    LEFT JOIN {inherited} inherited ON inherited.replica_log_id = placed.replica_log_id AND inherited.chunk = placed.chunk
),
followed AS (
    -- Only the first row of a chunk has none before it there: what it follows is inherited. Before the first row of a log the cleaner may
    -- have been; where it was not, the log must begin where its segment does. The first row may stand in any chunk (no batch of the first
    -- segments was understood, or none for as long as a chunk is): inherited_order tells the first one there is.
    SELECT
        *,
        coalesce(
            lag(last_offset) OVER (PARTITION BY replica_log_id, {chunk} ORDER BY position_in_log),
            inherited_last_offset,
            IF(chunk = 0, begins_behind(starts_at, base_offset, base_unknown, cleaned_below), NULL)
        ) AS previous_last_offset
    FROM with_inherited
),
checked AS (
    SELECT
        *,
        gap_before(
            previous_last_offset, base_offset, segment_base_offset, base_unknown, cleaned_below, missing_below, behind_removal
        ) AS gap,
        is_disorder(previous_last_offset, base_offset, last_offset, segment_base_offset) AS disorder,
        coalesce(NOT crc_valid, false) AS crc_invalid
    FROM followed
),
with_breaks AS (
    SELECT
        *,
        max(disorder OR crc_invalid) OVER so_far OR inherited_broken AS broken,
        coalesce(last(IF(gap IN ('hole', 'removed'), base_offset, NULL), true) OVER so_far, inherited_hole_at) AS hole_at,
        coalesce(last(IF(gap = 'compacted', base_offset, NULL), true) OVER so_far, inherited_cleaned_at) AS cleaned_at
    FROM checked
    WINDOW so_far AS (
        PARTITION BY replica_log_id, {chunk} ORDER BY position_in_log ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)

SELECT
    section_id, byte_offset, length, replica_log_id,
    IF(base_unknown, least(coalesce(previous_last_offset + 1, segment_base_offset), base_offset), base_offset) AS base_offset,
    last_offset, count, base_sequence, last_sequence, producer_id, producer_epoch, partition_leader_epoch, is_transactional, is_control,
    marker_type, coordinator_epoch, control_type, timestamp_type, max_timestamp_ms, crc, crc_valid,
    segment_base_offset, sequenced, cleaned_below, forgets_below, era, behind_removal, removed_behind, position_in_log, chunk,
    previous_last_offset, gap, disorder, crc_invalid,
    -- The cleaner keeps a batch's first and last offset and takes records between them (`MemoryRecords.filterTo`); elsewhere a producer
    -- leaves no gaps.
    coalesce(last_offset >= cleaned_below, true) AND coalesce(count < last_offset - base_offset + 1, false) AS count_short,
    NOT broken AS judged,
    hole_at, cleaned_at
FROM with_breaks
