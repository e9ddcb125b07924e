-- Which of two sections of one file on the broker is read, and what is wrong with those that are.

-- Sections of which one per file on the broker is read, and what decides between two of them: the greatest rank wins.
candidates AS (
    SELECT
        *,
        struct(
            struct(
                -- No batch tells whether records were printed: of a segment that the cleaner emptied, and of the first one of a log that
                -- was created anew.
                supported,
                coalesce(
                    deep,
                    kind = 'log' AND end_reason IN ('eof', 'next') AND (is_cleaned OR shown_empty_base = segment_base_offset),
                    false
                ) AS deep,
                newness, length, path, -byte_offset AS place,
                -- Of two that nothing else puts in order one is read, whichever: two that were read would accuse their log of repeats.
                section_id
            ) AS rank,
            CASE
                WHEN is_of_log THEN string(segment_base_offset)
                WHEN is_answer THEN path
                WHEN path RLIKE 'dumped-at[.]txt' THEN string(section_id)
                ELSE regexp_extract(path, '[^/]*\\z', 0)
            END AS file,
            segment_base_offset AS base,
            -- Up to here it holds what older dumps have in segments of their own. All of a log that is cleaned, whatever is left of it.
            greatest(last_offset + 1, IF(kind = 'log' AND is_cleaned, next_base, NULL)) AS covered_up_to,
            digest,
            section_id,
            dump_set,
            is_cleaned,
            shown_last_base,
            dumped_up_to,
            is_of_earlier_life
        ) AS candidate,
        min(newness) OVER (PARTITION BY cluster, broker, replica_log_id, competes) AS least_newness
    FROM of_partitions
),
beside_rivals AS (
    SELECT
        *,
        -- By file: a broker's checkpoints are of no log, and each night brings some of each kind.
        collect_list(candidate) OVER of_file AS rivals,
        -- That may be newer than another file of its log (of a log that was dumped once there is none). Of the dumps of a segment the
        -- newest speaks for all, and that which reaches farthest; of each dump its last segment does. All nights of all segments would be a
        -- list that grows with the nights beside each row of as many: 300 segments of 30 nights took 446 s.
        kind = 'log' AND newness > least_newness AND (
            newness = max(newness) OVER of_file
            OR (is_cleaned AND newness = max(IF(is_cleaned, newness, NULL)) OVER of_file)
            OR struct(candidate.covered_up_to, newness) = max(struct(candidate.covered_up_to, newness)) OVER of_file
            OR segment_base_offset = dumped_last_base
        ) AS is_telling,
        -- Brokers of 2.8 may write it down long after they created the log.
        (
            max(IF(topic_id IS NOT NULL AND NOT is_of_earlier_life, struct(dumped_at_ms, topic_id), NULL))
                OVER (PARTITION BY cluster, broker, replica_log_id)
        ).topic_id AS own_topic_id,
        min(IF(kind = 'log', segment_base_offset, NULL)) OVER (PARTITION BY cluster, broker, replica_log_id)
            = max(IF(kind = 'log', segment_base_offset, NULL)) OVER (PARTITION BY cluster, broker, replica_log_id) AS is_of_one_segment,
        -- Where the segment ends that an index is of.
        max(IF(kind = 'log', last_offset, NULL)) OVER (
            PARTITION BY cluster, broker, replica_log_id, competes, dump_set, segment_base_offset
        ) AS segment_last_offset
    FROM candidates
    WINDOW of_file AS (PARTITION BY cluster, broker, replica_log_id, competes, kind, candidate.file)
),
against_rivals AS (
    SELECT
        * EXCEPT (rivals),
        array_max(filter(
            rivals,
            rival -> rival.rank > candidate.rank
                -- A log that was created anew may be empty: no line says that records are printed, nor are the old ones its own.
                AND NOT (is_of_log AND coalesce(rival.is_of_earlier_life AND NOT is_of_earlier_life, false))
                AND (is_of_log OR rival.rank.newness > candidate.rank.newness OR (rival.digest = digest AND NOT is_answer))
        )) AS better_rival
    FROM beside_rivals
),
beside_segments AS (
    SELECT *, collect_list(IF(is_telling, candidate, NULL)) OVER (PARTITION BY cluster, broker, replica_log_id, competes) AS segments
    FROM against_rivals
),
-- The section that is read instead of each: a better one of the same file, else the best segment of a newer dump that shows that the file
-- is no longer of its log. How a segment shows it is what the CASE says; its words are for who reads this, and for nobody else.
superseded AS (
    SELECT
        * EXCEPT (segments),
        IF(
            competes,
            coalesce(
                better_rival,
                array_max(filter(
                    segments,
                    newer -> newer.rank.newness > candidate.rank.newness AND CASE
                        WHEN is_of_log AND is_of_earlier_life THEN 'its log was created anew'
                        -- What a leader wrote anew, all behind it is gone with.
                        WHEN is_of_log AND candidate.base >= IF(kind = 'snapshot', replaced_from + 1, replaced_from)
                            THEN 'its end was written anew'
                        -- A log that its broker cut off, or began anew: behind its newest segment there is none.
                        WHEN newer.dump_set <> dump_set AND newer.shown_last_base < candidate.base AND (
                            kind IN ('log', 'txnindex')
                            OR (kind = 'snapshot' AND coalesce(newer.dumped_up_to + 1, newer.shown_last_base) < candidate.base)
                        ) THEN 'its log was cut off below it'
                        WHEN kind IN ('log', 'txnindex') AND is_of_two THEN 'two dumps of a cleaned log, in no order'
                        WHEN kind IN ('log', 'txnindex') AND newer.base < candidate.base AND newer.covered_up_to > candidate.base
                            THEN 'the cleaner merged it into an earlier segment'
                        -- The cleaner writes the index of what is left anew, and none where no aborted transaction is.
                        WHEN kind = 'txnindex' AND newer.is_cleaned AND newer.base = candidate.base AND newer.dump_set <> dump_set
                            THEN 'the cleaner wrote its index anew'
                        -- A broker that copies a log anew (its disk was lost, or it led none of it for long) begins other segments.
                        WHEN kind IN ('log', 'txnindex') AND newer.dump_set <> dump_set
                            AND newer.base > candidate.base AND newer.base <= segment_last_offset
                            THEN 'its log was copied anew, in other segments'
                    END IS NOT NULL
                ))
            ),
            NULL
        ) AS better
    FROM beside_segments
),

-- What the tool said of a file as a whole, the first of it. `TransactionIndex.iterator` gives up at an entry of another version.
said AS (
    SELECT
        coalesce(applies_to_section, section_id) AS of_section,
        min_by(struct(text_kind, section_id, byte_offset, length), struct(section_id, byte_offset)) AS message
    FROM {tool_messages}
    WHERE text_kind IN ('snapshot_corrupt', 'invalid_bytes')
        OR (text_kind = 'exception' AND contains(text, 'aborted transaction version'))
    GROUP BY coalesce(applies_to_section, section_id)
),
-- Of all that a broker writes into an aborted index, each entry has 34 bytes (`AbortedTxn.TotalSize`); the tool passes over a rest.
odd_sizes AS (
    SELECT
        replica_log_id, CAST(regexp_extract(file_name, '(\\d+)[.]txnindex', 1) AS LONG) AS base,
        max(struct(section_id, byte_offset, length)) AS line
    FROM {listed_files}
    WHERE file_bytes % 34 <> 0 AND replica_log_id IS NOT NULL AND file_name RLIKE '^\\d+[.]txnindex$'
        AND NOT folder RLIKE '-(delete|future|stray)$'
    GROUP BY replica_log_id, CAST(regexp_extract(file_name, '(\\d+)[.]txnindex', 1) AS LONG)
),
not_understood AS (
    SELECT
        section_id,
        bool_or(reason IN ('undecoded_record', 'missing_record', 'orphan_record', 'undelimited_record', 'ambiguous')) AS hides_records,
        max(IF(hides_batches(reason), byte_offset, NULL)) AS hides_batches_at,
        bool_or(reason <> 'blank_line') AS hides_lines
    FROM {unread_spans}
    GROUP BY section_id
),
with_faults AS (
    SELECT /*+ BROADCAST(said), BROADCAST(odd), BROADCAST(unread) */
        superseded.*,
        kind IN ('snapshot', 'txnindex') AND (
            -- Where the tool said why it printed no more, the file is damaged, and not its text.
            unread.section_id IS NOT NULL
            OR (end_reason = 'truncated' AND NOT coalesce(said.message.text_kind IN ('snapshot_corrupt', 'exception'), false))
        ) AS is_in_part,
        -- A text that was cut lacks records at its end, which is told by where it ends.
        coalesce(unread.hides_records, false)
            OR coalesce(deep AND incomplete_from < IF(end_reason IN ('truncated', 'exception'), newest_base, newest_base + 1), false)
            AS lacks_records,
        coalesce(unread.hides_lines, false) AS hides_lines,
        kind = 'log' AND coalesce(unread.hides_batches_at > coalesce(last_line_at, -1L), false) AS hides_end,
        CASE
            WHEN said.message.text_kind = 'snapshot_corrupt' AND kind = 'snapshot' THEN 'snapshot_corrupt'
            WHEN said.message.text_kind = 'exception' AND kind = 'txnindex' THEN 'index_version'
            WHEN said.message.text_kind = 'invalid_bytes' AND kind = 'log' THEN 'invalid_bytes'
            WHEN odd.line IS NOT NULL AND kind = 'txnindex' THEN 'index_size'
        END AS fault,
        said.message AS message,
        odd.line AS line,
        supported AND removed_by IS NULL AND anew_by IS NULL
            AND ((competes AND better IS NULL) OR NOT (is_of_log OR is_of_broker)) AS is_chosen
    FROM superseded
    LEFT JOIN not_understood unread ON unread.section_id = superseded.section_id
    LEFT JOIN said ON said.of_section = superseded.section_id
    LEFT JOIN odd_sizes odd ON odd.replica_log_id = superseded.replica_log_id AND odd.base = superseded.segment_base_offset
)

SELECT
    section_id, dump_file_id, byte_offset,
    -- "Dumping ", the path, the line end
    coalesce(octet_length(dumped_path) + 9L, 0L) AS header_length,
    path, replica_log_id, cluster, broker, topic, partition, kind, dir_kind, segment_base_offset, deep, payload_printed, decoder,
    lacks_records, end_reason, supported,
    own_topic_id AS topic_id,
    coalesce(removed_by, better.section_id, anew_by) AS superseded_by,
    CASE
        WHEN removed_by IS NOT NULL THEN 'removed'
        WHEN better IS NULL THEN IF(anew_by IS NULL, NULL, 'created_anew')
        WHEN better.digest = digest THEN 'same_text'
        WHEN is_of_earlier_life THEN 'created_anew'
        WHEN better.rank.supported AND NOT candidate.rank.supported THEN 'supported_dialect'
        WHEN better.rank.deep AND NOT candidate.rank.deep THEN 'deep_beats_shallow'
        WHEN better.rank.newness > candidate.rank.newness THEN 'newer_dump'
        ELSE 'longer_dump'
    END AS supersession_reason,
    is_chosen AND NOT is_in_part AS is_read,
    is_chosen AND is_in_part AS is_in_part,
    -- A file that is named like a segment's, as scripts name them that dump each file into one, holds nothing of another.
    kind IN ('log', 'snapshot', 'txnindex') AND NOT path RLIKE '(?:\\A|/)[0-9]{{20}}[.][^/]*\\z'
        AND (hides_lines OR end_reason <=> 'truncated') AS hides_sections,
    -- No line of an entry has as few bytes as a line end.
    kind = 'txnindex' AND length <= octet_length(dumped_path) + 12 AS is_bare,
    first_offset, last_offset, first_leader_epoch, last_leader_epoch, end_position, end_at_most, incomplete_from, incomplete_to,
    IF(first_position > 0, first_offset, NULL) AS cut_before,
    oldest_batch_ms,
    IF(is_internal(topic), newest_batch_ms, newest_broker_batch_ms) AS newest_broker_clock_ms,
    IF(is_internal(topic), latest_batch_ms, latest_broker_batch_ms) AS latest_broker_clock_ms,
    -- A broker appends offset after offset, byte after byte: where bytes follow each other and offsets do not, a cleaner took batches as a
    -- whole, here or on the leader that it was copied from. A replica that was reassigned has no row in the cleaner's checkpoint for what
    -- its leader's cleaner did, as long as all of it lies in one segment: the newest is never cleaned, the others soon are.
    cleaned_to IS NOT NULL OR coalesce(rewritten AND is_of_one_segment, false) AS shows_cleaning,
    cleaned_to,
    coalesce(lacks_checksums, false) AS lacks_checksums,
    coalesce(lacks_epochs, false) AS lacks_epochs,
    end_reason IN ('eof', 'next') AND coalesce(invalid_tail_bytes, 0L) = 0 AND NOT hides_end AS tail_intact,
    invalid_tail_bytes,
    IF(
        is_chosen AND kind = 'log',
        min(segment_base_offset) OVER (
            PARTITION BY replica_log_id, kind, is_chosen
            ORDER BY segment_base_offset RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ),
        NULL
    ) AS next_segment_base,
    fault,
    IF(fault = 'index_size', line.section_id, IF(fault IS NULL, NULL, message.section_id)) AS fault_section_id,
    IF(fault = 'index_size', line.byte_offset, IF(fault IS NULL, NULL, message.byte_offset)) AS fault_byte_offset,
    IF(fault = 'index_size', line.length, IF(fault IS NULL, NULL, message.length)) AS fault_length,
    dumped_at_ms, dump_set
FROM with_faults
