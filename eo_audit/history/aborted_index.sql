-- One row per aborted transaction of a log and per entry of its `.txnindex` files, joined where they are the same: what S02 to S05 judge.
--
-- rows                    producer_history up to span_id; only markers that close nothing are read
-- spans                   transaction_spans
-- aborted_transactions, visibility, section_status: the tables
WITH

-- Indexes that were dumped in one go with the newest segment of their log.
indexes AS (
    SELECT
        section_id, kind,
        coalesce(
            dump_set = max_by(IF(kind = 'log', dump_set, NULL), IF(kind = 'log', segment_base_offset, NULL))
                OVER (PARTITION BY replica_log_id),
            false
        ) AS is_beside_log
    FROM {section_status}
    WHERE kind IN ('log', 'txnindex') AND is_read
),
-- The entries of the index sections that are read. `TransactionIndex.append` takes none twice, so one that is the same as the one before it
-- is a line that was printed, or collected, twice.
printed AS (
    SELECT
        *,
        struct(version, producer_id, first_offset, last_offset, last_stable_offset) AS entry,
        lag(struct(version, producer_id, first_offset, last_offset, last_stable_offset))
            OVER (PARTITION BY section_id ORDER BY entry_index) AS entry_before
    FROM {aborted_transactions}
    JOIN (SELECT /*+ BROADCAST */ section_id, is_beside_log FROM indexes WHERE kind = 'txnindex') USING (section_id)
),
-- Each with the highest lastStableOffset before it as `TransactionIndex.collectAbortedTxns` walks: file by file, entry by entry.
entries AS (
    SELECT
        *,
        max(struct(last_stable_offset, last_offset, producer_id)) OVER (
            PARTITION BY replica_log_id
            ORDER BY segment_base_offset, entry_index
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS highest,
        entry_before.last_offset AS last_offset_before
    FROM printed
    WHERE entry IS DISTINCT FROM entry_before
),
entry_columns AS (
    SELECT
        replica_log_id, producer_id, last_offset AS marker_offset,
        first_offset AS entry_first_offset,
        last_stable_offset AS entry_last_stable_offset,
        struct(section_id, byte_offset, length) AS entry_at,
        is_beside_log,
        -- `TransactionIndex.append` and `sanityCheck` refuse them.
        CASE
            WHEN version <> 0 THEN 'version'
            WHEN first_offset > last_offset THEN 'first_after_last'
            WHEN last_offset < segment_base_offset THEN 'below_base'
            WHEN last_offset <= last_offset_before THEN 'order'
        END AS entry_fault,
        highest
    FROM entries
),
newest_entries AS (
    SELECT replica_log_id, max(last_offset) AS newest_entry FROM entries GROUP BY replica_log_id
),

-- At its marker: the first offset of what ends later, or never. What begins behind the marker begins above it, and does not count.
ended_spans AS (
    SELECT
        *,
        min(first_offset) OVER (
            PARTITION BY replica_log_id
            ORDER BY coalesce(marker_offset, 9223372036854775807L) DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS open_beside
    FROM {spans}
),
-- Markers that closed data, and so must have an entry if they are ABORTs; and those that closed nothing.
markers AS (
    SELECT
        replica_log_id, producer_id, marker_offset, marker_type, judged,
        first_offset AS span_first_offset, last_offset AS span_last_offset, records,
        -- `ProducerStateManager.lastStableOffset` of the transaction that completes.
        coalesce(least(open_beside, marker_offset + 1), marker_offset + 1) AS stable_offset,
        struct(marker_section_id AS section_id, marker_byte_offset AS byte_offset, marker_length AS length) AS marker_at
    FROM ended_spans
    WHERE marker_offset IS NOT NULL
    UNION ALL
    SELECT
        replica_log_id, producer_id, base_offset, marker_type, judged, NULL, NULL, NULL, NULL, struct(section_id, byte_offset, length)
    FROM {rows}
    WHERE row_kind = 'marker' AND span_id IS NULL
),

-- A full join: an entry without a marker is a fault (S03), as is a marker without an entry (S02).
entries_and_markers AS (
    SELECT
        * EXCEPT (highest),
        least(entry_first_offset, span_first_offset) AS begins_at,
        -- The look-up ends there: entries behind it are in the file, and yet not found (`model.visibility.look_up_ends_before`). One that
        -- begins too early is no witness: nothing of its transaction lies where it is not found.
        IF(highest.last_stable_offset > greatest(entry_first_offset, span_first_offset), highest, NULL) AS ended_by,
        ended_by.last_offset AS ends_at_offset,
        ended_by.last_stable_offset AS ends_at_stable_offset,
        ended_by.producer_id = producer_id AS ends_at_its_own
    FROM markers
    FULL JOIN entry_columns USING (replica_log_id, producer_id, marker_offset)
    WHERE entry_at IS NOT NULL OR (marker_type = 'ABORT' AND span_first_offset IS NOT NULL)
),
-- Where transactions begin: behind an offset disorder two may at one offset. Before 2.8 a marker that closes nothing begins one.
transaction_starts AS (
    SELECT replica_log_id, first_offset, min(producer_id) AS lowest_producer, max(producer_id) AS highest_producer
    FROM (
        SELECT replica_log_id, first_offset, producer_id FROM {spans}
        UNION ALL
        SELECT replica_log_id, base_offset, producer_id FROM {rows} WHERE row_kind = 'marker' AND span_id IS NULL
    )
    GROUP BY replica_log_id, first_offset
),
-- Whether the look-up ends at what a follower writes of batches that it fetched at once (`model.visibility.is_of_one_fetch`). Few rows look
-- for anything there: a broadcast would cost a job.
told_of_fetches AS (
    SELECT /*+ MERGE(begun) */
        told.*,
        coalesce(begun.lowest_producer <> told.producer_id OR begun.highest_producer <> told.producer_id, false) AS begins_beside
    FROM entries_and_markers told
    LEFT JOIN transaction_starts begun
        ON begun.replica_log_id = told.replica_log_id AND begun.first_offset = IF(told.ends_at_its_own, told.ends_at_stable_offset, NULL)
),
known AS (
    SELECT /*+ BROADCAST(log), BROADCAST(ends) */
        told.*,
        -- What begins behind the end of the dump nobody sees, nor what the cleaner took.
        IF(
            told.ends_at_offset IS NULL,
            NULL,
            told.begins_beside OR (
                told.ends_at_its_own AND (
                    told.ends_at_stable_offset >= log.leo
                    OR (log.compacted AND told.ends_at_stable_offset < coalesce(log.uncleaned_from, 9223372036854775807L))
                )
            )
        ) AS ends_in_one_fetch,
        -- A broker that has stopped writes no index any more.
        coalesce(log.clean_end AND told.is_beside_log, false) AS has_ended,
        log.leo, log.unjudged_from, log.first_offset, log.holes, log.uncleaned_from,
        coalesce(log.log_start, log.first_offset) AS log_start,
        exists(
            log.segments,
            -- Of a segment without a name nobody knows which index is its.
            s -> coalesce(array_contains(log.unknown_indexes, s.base_offset) AND told.marker_offset >= s.base_offset, true)
                AND told.marker_offset < s.end_offset
        ) AS is_in_unknown_index,
        may_be_behind_index(told.marker_offset, ends.newest_entry, log.index_may_lag) AS is_behind_index,
        -- Compacted, and nobody knows how far: the cleaner may have been everywhere.
        IF(log.compacted, coalesce(log.uncleaned_from, 9223372036854775807L), 0L) AS cleaned_below,
        -- Nobody knows whether the cleaner works here, and the data that the ABORT ended is not in the log.
        log.uncleaned_from IS NULL AND told.marker_type = 'ABORT' AND told.span_first_offset IS NULL AND told.entry_at IS NOT NULL
            AS may_be_cleaned
    FROM told_of_fetches told
    JOIN {visibility} log ON log.replica_log_id = told.replica_log_id
    LEFT JOIN newest_entries ends ON ends.replica_log_id = told.replica_log_id
),
-- Why nothing can be said, were entry and marker not the same; null where it can.
reasoned AS (
    SELECT
        *,
        CASE
            WHEN marker_at IS NOT NULL AND (NOT judged OR marker_type IS NULL) THEN 'uncovered'
            WHEN (marker_offset >= leo AND NOT has_ended) OR coalesce(marker_offset >= unjudged_from, false) THEN 'uncovered'
            WHEN entry_at IS NULL AND (is_in_unknown_index OR is_behind_index) THEN 'index_not_dumped'
            -- Up to 2.3 an open transaction is forgotten with the head of the log, and its ABORT ends nothing for the index.
            WHEN marker_offset < log_start OR coalesce(entry_first_offset < first_offset, false)
                OR (entry_at IS NOT NULL AND coalesce(span_first_offset < log_start, false))
                THEN 'below_start'
            WHEN marker_type = 'ABORT' AND span_first_offset IS NULL AND entry_first_offset = marker_offset THEN 'empty_abort'
            WHEN exists(holes, h -> h.first_offset <= marker_offset AND h.last_offset >= begins_at) THEN 'hole'
            WHEN begins_at < cleaned_below OR may_be_cleaned THEN 'compacted'
        END AS why_not
    FROM known
),
judged AS (
    SELECT
        *,
        CASE
            WHEN marker_type = 'ABORT' AND judged AND span_first_offset = entry_first_offset THEN 'match'
            WHEN why_not IS NOT NULL THEN 'not_judged'
            WHEN entry_at IS NULL THEN 'missing'
            WHEN marker_at IS NULL THEN 'extra'
            WHEN marker_type = 'COMMIT' THEN 'marker_is_commit'
            ELSE 'wrong_first'
        END AS state,
        -- Where a transaction may have been open that the dumps no longer show, its first offset is not known: below what was dumped, where
        -- the cleaner was or may have been, and behind a hole.
        CASE
            WHEN marker_type = 'ABORT' AND judged AND span_first_offset = entry_first_offset
                AND least(entry_last_stable_offset, stable_offset) >= greatest(first_offset, log_start, cleaned_below)
                AND uncleaned_from IS NOT NULL
                AND NOT coalesce(marker_offset >= unjudged_from, false)
                AND NOT exists(
                    holes, h -> h.first_offset <= marker_offset AND h.last_offset >= least(entry_last_stable_offset, stable_offset)
                )
                THEN stable_offset
        END AS expected_stable_offset
    FROM reasoned
)

SELECT
    replica_log_id, producer_id, marker_offset, span_first_offset, span_last_offset, records,
    entry_first_offset, entry_last_stable_offset, expected_stable_offset, entry_fault, ends_at_offset, ends_at_stable_offset,
    ends_in_one_fetch,
    state,
    IF(state = 'not_judged', why_not, NULL) AS reason,
    coalesce(marker_at, entry_at).section_id AS section_id,
    coalesce(marker_at, entry_at).byte_offset AS byte_offset,
    coalesce(marker_at, entry_at).length AS length
FROM judged
