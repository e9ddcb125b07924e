-- Which offsets of each replica log the dumps show, and what breaks them: runs of offsets with their state, each with the line where it was
-- seen. One row per run of offsets and state: rules judge what is `covered`.
--
-- A stretch of batches without a hole is one `covered` row, up to the first bad checksum or offset disorder; behind that nothing is judged.
-- Offsets missing where the cleaner has been are legal and do not end a stretch. A gap is a hole only in a topic that is known not to be
-- compacted: in any other the cleaner of this broker, or of the one it was copied from, may have made it, and it is `unexplained`. So it is
-- where the text before the batch was not understood: the offsets may stand there. Where a listing shows the segment, only the dump lacks
-- it. Offsets that stand later in the log are out of order, and not missing. What the broker deleted between two dumps was `not_observed`,
-- and is no hole: what an older dump showed below it stays as it was seen then. Where nothing says which of two dumps is newer, what is
-- missing between them may have been deleted so, or be lost: it is `unordered`, and nothing is concluded across it. What is missing before
-- a newest segment that holds no batch yet is told in the same way.
--
-- ordered                              what `in_log_order` returns
-- section_status, replica_logs         the tables
-- unread_spans                         the table
WITH

logs AS (
    SELECT
        replica_log_id, cluster, broker, topic, partition, hw, first_offset, missing_head_from, in_remote, only_remote_missing, log_start,
        missing_segments, short_ends, unordered_before, listed, listed_longer, empty_newest,
        gap_before(
            empty_newest.newest_below, empty_newest.base_offset, empty_newest.base_offset, false,
            IF(compacted, coalesce(uncleaned_from, 9223372036854775807L), NULL),
            array_max(array_union(coalesce(missing_segments, array()), coalesce(short_ends, array()))),
            array_contains(removed_before, empty_newest.base_offset)
        ) AS gap_before_empty,
        tail_intact AS log_tail_intact,
        array_max(segments.base_offset) AS newest_segment,
        array_max(filter(segments.base_offset, base -> base <= first_offset)) AS first_segment,
        -- Where the cleaner works it may have gone on between the copy of its checkpoint and the dump.
        uncleaned_from IS NOT NULL
            AND NOT coalesce(compacted OR coalesce(contains(cleanup_policy, 'compact'), false), false) AS never_cleaned
    FROM {replica_logs}
),

-- One row per stretch without a hole, judged or not: `hole_at` is the newest hole so far, so it names the stretch; what lies behind the
-- first break is a stretch of its own. So is an empty newest segment, without offsets.
batches AS (
    SELECT
        *,
        struct(section_id, byte_offset, length) AS at,
        coalesce(gap = 'compacted', false) AS is_cleaned,
        -- Behind the first break nothing is judged, holes neither.
        coalesce(gap IN ('hole', 'removed') AND (judged OR disorder OR crc_invalid), false) OR disorder OR crc_invalid AS is_odd
    FROM {ordered}
),
stretches AS (
    SELECT
        replica_log_id, hole_at, judged,
        min(base_offset) AS first,
        max(last_offset) AS last,
        min_by(at, position_in_log) AS at,
        min(IF(is_cleaned, previous_last_offset + 1, NULL)) AS cleaned_first,
        max(IF(is_cleaned, base_offset - 1, NULL)) AS cleaned_last,
        coalesce(sum(IF(is_cleaned, base_offset - previous_last_offset - 1, NULL)), 0L) AS cleaned,
        min_by(at, IF(is_cleaned, position_in_log, NULL)) AS cleaned_at,
        count_if(count_short) AS short,
        min(IF(count_short, base_offset, NULL)) AS short_first,
        max(IF(count_short, last_offset, NULL)) AS short_last,
        min_by(at, IF(count_short, position_in_log, NULL)) AS short_at,
        collect_list(IF(
            is_odd, struct(previous_last_offset, base_offset, last_offset, gap, disorder, crc_invalid, crc, at), NULL
        )) AS odd
    FROM batches
    GROUP BY replica_log_id, hole_at, judged
    UNION ALL
    SELECT
        replica_log_id, NULL, true, NULL, NULL, NULL, NULL, NULL, 0L, NULL, 0L, NULL, NULL, NULL,
        array(struct(
            empty_newest.newest_below, empty_newest.base_offset, empty_newest.base_offset - 1, gap_before_empty, false, false,
            CAST(NULL AS BIGINT),
            struct(empty_newest.section_id, empty_newest.byte_offset, empty_newest.length)
        ))
    FROM logs
    WHERE gap_before_empty IN ('hole', 'removed')
),
stretches_of_logs AS (
    SELECT /*+ BROADCAST(log) */
        stretch.*,
        log.* EXCEPT (replica_log_id),
        -- Stretches behind the first break, and what of a hole none of them holds.
        array_sort(collect_list(IF(stretch.judged, NULL, struct(stretch.first, stretch.last))) OVER (PARTITION BY stretch.replica_log_id))
            AS later
    FROM stretches stretch
    JOIN logs log ON log.replica_log_id = stretch.replica_log_id
),
-- Each odd batch with the hole before it, without the stretches that stand later in the log: of what is left nobody has seen anything.
looked_at AS (
    SELECT
        *,
        transform(
            odd,
            one -> struct(
                one.previous_last_offset, one.base_offset, one.last_offset, one.gap, one.disorder, one.crc_invalid, one.crc, one.at,
                CASE
                    WHEN one.previous_last_offset >= first_offset
                        THEN format_string('%d is followed by %d', one.previous_last_offset, one.base_offset)
                    WHEN one.last_offset < one.base_offset THEN format_string('its segments below %d hold no batch', one.base_offset)
                    ELSE format_string('the first batch of its log stands at %d', one.base_offset)
                END AS missing,
                get(filter(missing_segments, base -> base BETWEEN one.previous_last_offset + 1 AND one.base_offset - 1), 0) AS listed_base,
                exists(short_ends, end -> end BETWEEN one.previous_last_offset + 1 AND one.base_offset - 1) AS is_behind_cut,
                array_contains(unordered_before, one.base_offset) AS is_unordered,
                aggregate(
                    filter(later, s -> s.last > one.previous_last_offset AND s.first < one.base_offset),
                    struct(
                        one.previous_last_offset + 1 AS next,
                        CAST(array() AS ARRAY<STRUCT<first: BIGINT, last: BIGINT>>) AS parts
                    ),
                    (so_far, s) -> struct(
                        greatest(so_far.next, s.last + 1) AS next,
                        IF(
                            s.first > so_far.next,
                            concat(so_far.parts, array(struct(so_far.next AS first, s.first - 1 AS last))),
                            so_far.parts
                        ) AS parts
                    ),
                    so_far -> IF(
                        so_far.next < one.base_offset,
                        concat(so_far.parts, array(struct(so_far.next AS first, one.base_offset - 1 AS last))),
                        so_far.parts
                    )
                ) AS missed
            )
        ) AS odd_batches,
        -- With a listing that does not tell, a second one would not either.
        concat(
            'nothing says which of two dumps is newer: dumped_at in the manifest.yaml of each',
            IF(listed, '', ', or a listing.txt or log-start-offset-checkpoint of the newer one'),
            ' would tell'
        ) AS what_would_tell
    FROM stretches_of_logs
),
-- A stretch becomes all its rows at once: nothing is read twice.
parts_of_stretches AS (
    SELECT
        replica_log_id, cluster, broker, topic, partition,
        concat(
            IF(
                first IS NULL,
                array(),
                array(struct(
                    first AS first_offset, last AS last_offset,
                    IF(judged, 'covered', 'not_judged') AS state,
                    IF(judged, NULL, 'behind a bad checksum or an offset disorder') AS reason,
                    at
                ))
            ),
            IF(
                cleaned > 0,
                array(struct(
                    cleaned_first AS first_offset, cleaned_last AS last_offset, 'compacted' AS state,
                    format_string('%d offsets removed by the cleaner', cleaned) AS reason, cleaned_at AS at
                )),
                array()
            ),
            IF(
                short > 0,
                array(struct(
                    short_first AS first_offset, short_last AS last_offset, 'count_short' AS state,
                    concat(
                        IF(short = 1, '1 batch holds', format_string('%d batches hold', short)),
                        ' fewer records than offsets, in a log that was not compacted there'
                    ) AS reason,
                    short_at AS at
                )),
                array()
            ),
            flatten(transform(
                odd_batches,
                one -> concat(
                    IF(
                        one.gap = 'hole',
                        transform(
                            one.missed,
                            missed -> struct(
                                missed.first AS first_offset, missed.last AS last_offset,
                                CASE
                                    WHEN one.listed_base IS NOT NULL THEN 'segment_missing'
                                    WHEN one.is_behind_cut THEN 'lines_missing'
                                    WHEN never_cleaned THEN 'hole'
                                    ELSE 'unexplained'
                                END AS state,
                                CASE
                                    WHEN one.listed_base IS NOT NULL
                                        THEN format_string('segment %d is listed, and was not dumped', one.listed_base)
                                    WHEN one.is_behind_cut THEN 'the text ends before the last batches of its segment'
                                    ELSE one.missing
                                END AS reason,
                                one.at AS at
                            )
                        ),
                        array()
                    ),
                    IF(
                        one.gap = 'removed',
                        array(struct(
                            one.previous_last_offset + 1 AS first_offset, one.base_offset - 1 AS last_offset,
                            IF(one.is_unordered, 'unordered', 'not_observed') AS state,
                            CASE
                                WHEN one.is_unordered THEN what_would_tell
                                WHEN in_remote AND one.base_offset > log_start
                                    THEN 'remote storage: the broker moved these segments there between two dumps'
                                ELSE 'the broker deleted these segments between two dumps'
                            END AS reason,
                            one.at AS at
                        )),
                        array()
                    ),
                    IF(
                        one.disorder,
                        array(struct(
                            one.base_offset AS first_offset, one.last_offset AS last_offset, 'disorder' AS state,
                            IF(
                                one.previous_last_offset >= one.base_offset,
                                one.missing,
                                'it ends before it starts, or lies below its segment'
                            ) AS reason,
                            one.at AS at
                        )),
                        array()
                    ),
                    IF(
                        one.crc_invalid,
                        array(struct(
                            one.base_offset AS first_offset, one.last_offset AS last_offset, 'crc_invalid' AS state,
                            -- Tools before 2.2 print no checksum with --deep-iteration: another dump of the segment told of it.
                            IF(one.crc IS NULL, 'isvalid: false, without --deep-iteration', 'isvalid: false') AS reason, one.at AS at
                        )),
                        array()
                    )
                )
            ))
        ) AS parts
    FROM looked_at
),
of_batches AS (
    SELECT
        * EXCEPT (at), at.section_id AS section_id, at.byte_offset AS byte_offset, at.length AS length,
        IF(state IN ('hole', 'unexplained'), at.byte_offset, NULL) AS unread_end
    FROM (SELECT replica_log_id, cluster, broker, topic, partition, inline(parts) FROM parts_of_stretches)
),
-- What is missing before a batch line with unread text right before it is unexplained, and no hole.
explained AS (
    SELECT
        part.replica_log_id, part.cluster, part.broker, part.topic, part.partition, part.first_offset, part.last_offset,
        IF(unread.section_id IS NOT NULL AND part.state = 'hole', 'unexplained', part.state) AS state,
        coalesce(concat('unread text: ', unread.reason), part.reason) AS reason,
        part.section_id, part.byte_offset, part.length
    FROM of_batches part
    LEFT JOIN {unread_spans} unread ON unread.section_id = part.section_id AND unread.byte_offset + unread.length = part.unread_end
),
