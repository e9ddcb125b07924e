-- Every row with what was decided about it, and whether a read_committed consumer gets it: the last columns of producer_history. One row
-- per batch.
--
-- Where what a consumer gets differs from what the markers say is told by the simulated fetches of each segment; the law is
-- eo_audit.model.visibility. A fetch finds an index entry when it lies in its segment's file or a later one, reaches into what the fetch
-- covers, and no entry walked before it has a lastStableOffset at or beyond the upper bound. From the entry's first offset on its producer
-- id is dropped, until an ABORT marker of the id or the end of the fetch. A sound index drops exactly the aborted transactions, so only the
-- differences are kept: few rows, that any number of batches can be compared with.
--
-- rows                    producer_history up to marker_role
-- visibility              the table, for segments, log start, LSO, holes, and from where on the index is known
-- aborted_transactions, section_status: the tables
WITH

-- The entries of the index sections that are read.
entries AS (
    SELECT * FROM {aborted_transactions}
    LEFT SEMI JOIN (SELECT /*+ BROADCAST */ section_id FROM {section_status} WHERE kind = 'txnindex' AND is_read) USING (section_id)
),
newest_entries AS (
    SELECT replica_log_id, max(last_offset) AS newest_entry FROM entries GROUP BY replica_log_id
),
logs AS (
    SELECT
        -- Nothing is said behind the first batch that is not judged, and the offsets of a damaged one may be any.
        replica_log_id, least(leo, unjudged_from) AS leo, holes, index_known_from, index_may_lag,
        -- One fetch for each segment, from its start: `LocalLog.collectAbortedTransactions` walks from the file of the segment that is
        -- read, so where a fetch starts decides which entries it meets.
        transform(
            filter(segments, s -> s.end_offset > log_start),
            s -> struct(
                s.base_offset, greatest(s.base_offset, log_start) AS start, s.end_offset AS end, least(s.end_offset, lso_at_least) AS upper
            )
        ) AS fetches
    FROM {visibility}
),

-- Where an aborted transaction starts, where an ABORT takes its producer out of the aborted set, and up to where a span ends in doubt:
-- behind a hole, or at a marker that is not judged.
telling_rows AS (
    SELECT /*+ BROADCAST(logs), BROADCAST(ends) */
        rows.replica_log_id, rows.producer_id, logs.leo, rows.base_offset, rows.span_id,
        rows.row_kind = 'marker' AS is_marker,
        rows.marker_type,
        (rows.predecessor = 'hole' AND rows.base_offset > rows.span_id)
            OR (rows.row_kind = 'marker' AND rows.span_id IS NOT NULL AND NOT rows.judged) AS is_in_doubt,
        rows.base_offset >= logs.index_known_from AS index_is_begun,
        rows.base_offset >= logs.index_known_from
            AND NOT may_be_behind_index(rows.base_offset, ends.newest_entry, logs.index_may_lag) AS index_is_known
    FROM {rows} rows
    JOIN logs ON logs.replica_log_id = rows.replica_log_id
    LEFT JOIN newest_entries ends ON ends.replica_log_id = rows.replica_log_id
    WHERE rows.row_kind = 'marker' OR (rows.predecessor = 'hole' AND rows.base_offset > rows.span_id)
),
events_of_rows AS (
    SELECT
        replica_log_id, producer_id, leo,
        array(
            IF(
                marker_type = 'ABORT' AND span_id IS NOT NULL AND index_is_known,
                index_event(span_id, base_offset, NULL, NULL, NULL, NULL, NULL), NULL
            ),
            -- What a marker of a shallow dump says is not shown: an ABORT, if the index says so.
            -- It clears what an older entry dropped also where the index is not known any more.
            IF(
                is_marker AND coalesce(marker_type, 'ABORT') = 'ABORT' AND index_is_begun,
                index_event(base_offset, NULL, true, NULL, NULL, NULL, NULL), NULL
            ),
            IF(is_in_doubt, index_event(span_id, NULL, NULL, NULL, NULL, NULL, base_offset), NULL),
            IF(is_in_doubt, index_event(base_offset, NULL, NULL, NULL, NULL, NULL, NULL), NULL)
        ) AS events
    FROM telling_rows
),

-- Entries with what the walk meets before them: in their own file, in the order of the file, not of offsets (so the broker reads it, and a
-- damaged index is out of order), and at most in each file.
highest_of_file AS (
    SELECT replica_log_id, segment_base_offset AS file, max(last_stable_offset) AS highest FROM entries GROUP BY ALL
),
files_of_log AS (
    -- A log has few segments with an index: what they reach fits into one array, which every entry carries.
    SELECT replica_log_id, collect_list(struct(file, highest)) AS files FROM highest_of_file GROUP BY replica_log_id
),
walked AS (
    SELECT
        *,
        max(last_stable_offset) OVER (
            PARTITION BY section_id ORDER BY entry_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS stable_before
    FROM entries
),
reached AS (
    -- An entry lies in the fetch's file or a later one, and its transaction reaches into what the fetch covers.
    SELECT /*+ BROADCAST(files), BROADCAST(logs) */
        walked.replica_log_id, walked.producer_id, logs.leo, logs.holes, files.files,
        walked.segment_base_offset, walked.first_offset, walked.last_offset, walked.stable_before,
        explode(filter(
            logs.fetches,
            f -> f.base_offset <= walked.segment_base_offset AND walked.first_offset < f.end AND walked.last_offset >= f.start
        )) AS fetch
    FROM walked
    JOIN files_of_log files ON files.replica_log_id = walked.replica_log_id
    JOIN logs ON logs.replica_log_id = walked.replica_log_id
),
found_entries AS (
    -- The walk from the fetch's file gets as far as the entry, which begins below the upper bound. `TransactionIndex.collectAbortedTxns`
    -- ends the walk at the first entry whose lastStableOffset is at or beyond the upper bound: one that is too high hides all behind it.
    SELECT
        *,
        first_offset < fetch.upper
            AND NOT coalesce(stable_before >= fetch.upper, false)
            AND NOT exists(
                files, x -> x.file >= fetch.base_offset AND x.file < segment_base_offset AND x.highest >= fetch.upper
            ) AS is_found,
        first_offset < fetch.end
            AND NOT coalesce(stable_before >= fetch.end, false)
            AND NOT exists(
                files, x -> x.file >= fetch.base_offset AND x.file < segment_base_offset AND x.highest >= fetch.end
            ) AS is_found_unbounded
    FROM reached
),
events_of_entries AS (
    -- Where a fetch starts to drop a producer, and where it ends. `CompletedFetch`: each response brings its own aborted transactions, and
    -- its set of aborted producer ids begins empty. The consumer met a marker in a hole, though the dumps do not show it.
    SELECT
        replica_log_id, producer_id, leo,
        array(
            index_event(greatest(first_offset, fetch.start), NULL, NULL, fetch.end, is_found, is_found_unbounded, NULL),
            index_event(fetch.end, NULL, NULL, NULL, NULL, NULL, NULL),
            IF(
                exists(holes, h -> last_offset BETWEEN h.first_offset AND h.last_offset),
                index_event(last_offset, NULL, true, NULL, NULL, NULL, NULL), NULL
            )
        ) AS events
    FROM found_entries
),
all_events AS (
    SELECT replica_log_id, producer_id, leo, inline(array_compact(events))
    FROM (SELECT * FROM events_of_rows UNION ALL SELECT * FROM events_of_entries)
),
so_far AS (
    -- By range: all that happens at one offset has happened there, in whatever order the rows come.
    SELECT
        replica_log_id, producer_id, at,
        coalesce(max(IF(clears, at, NULL)) OVER up_to_here, -1L) AS cleared,
        max(IF(marker_offset IS NOT NULL, struct(at, marker_offset), NULL)) OVER up_to_here AS span,
        max(IF(is_found, struct(at, until), NULL)) OVER up_to_here AS drop,
        max(IF(is_found_unbounded, struct(at, until), NULL)) OVER up_to_here AS drop_unbounded,
        max(unsure_until) OVER up_to_here AS unsure_so_far,
        least(lead(at) OVER (PARTITION BY replica_log_id, producer_id ORDER BY at), leo) AS to_offset
    FROM all_events
    WINDOW up_to_here AS (
        PARTITION BY replica_log_id, producer_id ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
-- Offsets whose batches a consumer gets although an ABORT closed them, or does not get although none did: when the index is looked up to
-- min(LSO, end of segment), or to the end of the segment; unsure: a hole lies before the marker that seems to close it, or that marker is
-- not judged. From an offset on, to one exclusive, of last offsets; those of one producer do not overlap.
differing AS (
    -- Dropped where no aborted span is, or not dropped where one is.
    SELECT
        replica_log_id, producer_id, to_offset,
        at AS from_offset,
        coalesce(drop.at > cleared AND at < drop.until, false) <> coalesce(at < span.marker_offset, false) AS bounded,
        coalesce(drop_unbounded.at > cleared AND at < drop_unbounded.until, false) <> coalesce(at < span.marker_offset, false)
            AS unbounded,
        coalesce(at < unsure_so_far, false) AS unsure
    FROM so_far
    WHERE at < to_offset
),
differences AS (
    -- Of a sound index nothing is left here: the join with all batches is then one with an empty table. A join by range would hold every
    -- batch against every interval of its producer; by buckets of 4096 offsets it is a join by equality.
    SELECT *, explode(sequence(shiftright(from_offset, 12), shiftright(to_offset - 1, 12))) AS bucket
    FROM differing
    WHERE bounded OR unbounded OR unsure
),

with_differences AS (
    SELECT /*+ BROADCAST(here), BROADCAST(log) */
        rows.*,
        log.lso_at_least,
        log.index_known_from,
        coalesce(here.bounded, false) AS bounded,
        coalesce(here.unbounded, false) AS unbounded,
        coalesce(here.unsure, false) AS unsure,
        -- Null outside of what a consumer reads.
        coalesce(
            rows.row_kind IN ('data', 'plain') AND rows.judged
                AND rows.last_offset < log.lso_at_least AND rows.last_offset >= log.log_start,
            false
        ) AS is_read
    FROM {rows} rows
    LEFT JOIN differences here
        ON here.replica_log_id = rows.replica_log_id
        AND here.producer_id = rows.producer_id
        AND here.bucket = shiftright(rows.last_offset, 12)
        AND rows.last_offset >= here.from_offset
        AND rows.last_offset < here.to_offset
    LEFT JOIN {visibility} log ON log.replica_log_id = rows.replica_log_id
)

SELECT
    * EXCEPT (lso_at_least, index_known_from, bounded, unbounded, unsure, is_read),
    unsure AS end_unsure,
    truth(row_kind, is_transactional, instance_decision, judged AND NOT unsure, span_outcome) AS truth,
    -- Null where the index is not known, too.
    CASE
        WHEN NOT is_read THEN NULL
        WHEN NOT coalesce(is_transactional, false) THEN true
        WHEN base_offset >= index_known_from THEN coalesce(span_outcome = 'aborted', false) = bounded
    END AS returned,
    CASE
        WHEN NOT is_read THEN NULL
        WHEN NOT coalesce(is_transactional, false) THEN true
        WHEN base_offset >= index_known_from THEN coalesce(span_outcome = 'aborted', false) = unbounded
    END AS returned_from_segment,
    coalesce(last_offset < lso_at_least, false) AS below_lso
FROM with_differences
