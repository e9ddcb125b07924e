-- Batches of the sections that are read, each with its place in its replica log. One row per batch.
--
-- Order is where the text stands: segments by base offset, batches by byte offset. Of several dumps of one segment only the one that
-- replica_logs names is read. A position is the number of the section within its log, then the byte offset within the section: 44 bits are
-- room for 16 TiB of text.
--
-- batches, replica_logs, clusters    the tables
-- unread_spans                       the table
-- chunk_bits               a log is cut where 2**chunk_bits bytes of a section's text are full
WITH

known_logs AS (
    SELECT /*+ BROADCAST(known) */
        logs.*,
        -- KAFKA-7190: up to 2.3 a broker forgets a producer with its last record. A log outlives the release that wrote it: below the log
        -- start of a later one may stand what the broker forgot before it was upgraded. While a broker up to 2.3 runs, the checkpoint of
        -- the log start is up to a minute older than the newest DeleteRecords (`log.flush.start.offset.checkpoint.interval.ms`). Where
        -- nobody says which release it is, it may be one.
        IF(
            coalesce(known.remembers_by_batches, true) AND NOT logs.clean_end AND logs.log_start > logs.first_offset,
            logs.leo,
            logs.log_start
        ) AS forgets_below
    FROM {replica_logs} logs
    LEFT JOIN {clusters} known ON known.cluster = logs.cluster
),
sections AS (
    SELECT
        -- The group coordinator gives every offset batch sequence 0, and entries of `__transaction_state` have no producer id at all.
        NOT is_internal AS sequenced,
        -- A compacted log of which nobody knows how far the cleaner came may have been cleaned everywhere.
        IF(compacted, coalesce(uncleaned_from, 9223372036854775807L), NULL) AS cleaned_below,
        removed_before,
        -- What the cleaner did not take: segments that nobody dumped, and what is behind the end of a text that was cut.
        array_union(coalesce(missing_segments, array()), coalesce(short_ends, array())) AS missing,
        first_offset, log_start, forgets_below,
        posexplode(segments) AS (section_number, segment)
    FROM known_logs
),
read_sections AS (
    SELECT
        segment.section_id AS section_id,
        segment.base_offset AS segment_base_offset,
        CAST(section_number AS BIGINT) AS section_number,
        sequenced,
        cleaned_below,
        array_max(filter(missing, base -> base < segment.base_offset)) AS missing_below,
        size(filter(removed_before, base -> base <= segment.base_offset)) AS era,
        array_contains(removed_before, segment.base_offset) AS behind_removal,
        exists(removed_before, base -> base > segment.base_offset) AS removed_behind,
        -- The lowest offset that the log must show: a segment has the name of the first offset in it (`UnifiedLog.roll`), though its first
        -- lines may be missing in the text, and below the log start nobody reads. Of the first segments there may be no batch.
        IF(size(removed_before) = 0, greatest(first_offset, log_start), NULL) AS starts_at,
        forgets_below
    FROM sections
),
-- The cleaner leaves nothing of a batch: what is missing before a batch line, with lines right before it that were not understood, may
-- stand in those.
lost_lines AS (
    SELECT section_id, byte_offset + length AS end FROM {unread_spans} WHERE hides_batches(reason)
),
placed AS (
    SELECT /*+ BROADCAST(section), BROADCAST(lost) */
        batch.section_id, batch.byte_offset, batch.length, batch.replica_log_id, batch.base_offset, batch.last_offset, batch.count,
        batch.base_sequence, batch.last_sequence, batch.producer_id, batch.producer_epoch, batch.partition_leader_epoch,
        batch.is_transactional, batch.is_control, batch.marker_type, batch.coordinator_epoch, batch.control_type, batch.timestamp_type,
        batch.max_timestamp_ms, batch.crc, batch.crc_valid,
        section.* EXCEPT (section_id, section_number, missing_below),
        IF(lost.section_id IS NULL, section.missing_below, 9223372036854775807L) AS missing_below, -- beyond every offset
        -- A shallow dump prints only the last offset of a compressed batch of magic 0 or 1.
        coalesce(batch.magic < 2 AND batch.codec <> 'none' AND coalesce(batch.records_seen, 0) = 0, false) AS base_unknown,
        shiftleft(section.section_number, 44) + batch.byte_offset AS position_in_log
    FROM {batches} batch
    JOIN read_sections section ON section.section_id = batch.section_id
    LEFT JOIN lost_lines lost ON lost.section_id = batch.section_id AND lost.end = batch.byte_offset
)

SELECT *, shiftright(position_in_log, {chunk_bits}) AS chunk
FROM placed
