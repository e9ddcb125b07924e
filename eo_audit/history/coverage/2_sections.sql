-- What sections tell beside their batches: a head or an end that is missing, and what their dialect leaves out.

-- The sections with unread text behind their last batch line, and whether it can be read in more than one way, or was of batches.
unread_batches AS (
    SELECT
        section_id,
        max(struct(byte_offset AS at, reason)) AS newest,
        max(IF(hides_batches(reason), struct(byte_offset AS at, reason), NULL)) AS doubt
    FROM {unread_spans}
    WHERE reason <> 'blank_line'
    GROUP BY section_id
),
last_batches AS (
    SELECT /*+ BROADCAST(doubt) */ batch.section_id, max(batch.byte_offset) AS last_at
    FROM {ordered} batch
    JOIN unread_batches doubt ON doubt.section_id = batch.section_id
    GROUP BY batch.section_id
),
doubtful AS (
    SELECT
        unread.section_id, unread.newest.reason AS unread_because,
        IF(unread.doubt.at > coalesce(last.last_at, -1L), unread.doubt.reason, NULL) AS reason
    FROM unread_batches unread
    LEFT JOIN last_batches last ON last.section_id = unread.section_id
    WHERE unread.newest.at > coalesce(last.last_at, -1L)
),
sections AS (
    SELECT /*+ BROADCAST(doubt), BROADCAST(log) */
        log.*,
        section.segment_base_offset,
        section.last_offset AS section_end,
        section.segment_base_offset = log.newest_segment AS is_newest,
        -- Of a segment whose name was cut, and of which nothing was read, nobody knows where it begins.
        coalesce(section.segment_base_offset, section.first_offset, 0L) AS begin,
        coalesce(section.incomplete_from, section.last_offset + 1, section.segment_base_offset, 0L) AS end,
        struct(section.section_id, section.byte_offset, section.header_length AS length) AS at,
        doubt.reason IS NOT NULL AS is_doubtful, doubt.reason AS doubted_because, doubt.unread_because,
        -- A log is rolled behind a batch (`UnifiedLog.maybeRoll`): of an older segment only the cleaner leaves none. But it may have been
        -- the newest one of an older dump, whose records were written and deleted since.
        section.first_offset IS NULL AND section.segment_base_offset < log.newest_segment AND coalesce(
            (log.never_cleaned AND NOT coalesce(section.next_segment_base <= log.log_start, false))
                OR doubt.unread_because IS NOT NULL
                OR array_contains(log.short_ends, section.segment_base_offset),
            false
        ) AS shows_nothing,
        section.is_read, section.next_segment_base, section.tail_intact, section.end_reason, section.invalid_tail_bytes, section.deep,
        section.lacks_checksums, section.lacks_epochs, section.supported, section.superseded_by, section.dir_kind
    FROM {section_status} section
    JOIN logs log ON log.replica_log_id = section.replica_log_id
    LEFT JOIN doubtful doubt ON doubt.section_id = section.section_id
    WHERE section.kind = 'log'
),
parts_of_sections AS (
    SELECT
        replica_log_id, cluster, broker, topic, partition,
        concat(
            IF(
                is_read AND segment_base_offset = first_segment AND missing_head_from IS NOT NULL,
                array(struct(
                    missing_head_from AS first_offset, first_offset - 1 AS last_offset,
                    IF(segment_base_offset < first_offset, 'lines_missing', 'head_missing') AS state,
                    CASE
                        WHEN segment_base_offset < first_offset THEN 'the text begins behind the first batches of its segment'
                        WHEN only_remote_missing THEN 'remote storage: the broker moved the older segments there'
                        WHEN in_remote AND NOT listed THEN 'remote storage may hold the older segments, or they were not dumped'
                        ELSE 'older segments were not dumped'
                    END AS reason,
                    at
                )),
                array()
            ),
            IF(
                is_read AND (is_doubtful OR NOT (tail_intact AND (log_tail_intact OR NOT is_newest)) OR shows_nothing),
                array(struct(
                    end AS first_offset,
                    -- The log reached its high watermark, however early the dump of it ends, and an older segment the next one.
                    greatest(end, section_end, IF(is_newest, hw - 1, next_segment_base - 1)) AS last_offset,
                    'truncated' AS state,
                    CASE
                        WHEN is_doubtful THEN concat('unread text: ', doubted_because)
                        WHEN shows_nothing THEN coalesce(concat('unread text: ', unread_because), 'no batch of the segment was dumped')
                        WHEN tail_intact AND listed_longer THEN 'more of it was listed right before it was dumped'
                        WHEN tail_intact THEN 'a snapshot, a listed segment or a checkpoint tells of more'
                        WHEN end_reason = 'exception' THEN 'the dump tool failed here'
                        WHEN invalid_tail_bytes > 0 THEN 'bytes that are no batch stand behind its last one'
                        WHEN unread_because = 'no_line_end' THEN 'the last line of the text has no line end'
                        ELSE 'the dump ends here, the segment does not'
                    END AS reason,
                    at
                )),
                array()
            ),
            IF(
                is_read AND section_end IS NOT NULL AND NOT deep,
                array(struct(
                    begin AS first_offset, section_end AS last_offset, 'shallow' AS state,
                    'printed without --deep-iteration' AS reason, at
                )),
                array()
            ),
            IF(
                is_read AND lacks_checksums,
                array(struct(
                    begin AS first_offset, coalesce(section_end, begin) AS last_offset, 'no_checksums' AS state,
                    'printed by a kafka-dump-log older than 2.2' AS reason, at
                )),
                array()
            ),
            IF(
                is_read AND lacks_epochs,
                array(struct(
                    begin AS first_offset, coalesce(section_end, begin) AS last_offset, 'no_epochs' AS state,
                    'printed by kafka-dump-log 0.11.0.0 or 0.11.0.1' AS reason, at
                )),
                array()
            ),
            IF(
                NOT supported AND superseded_by IS NULL AND coalesce(dir_kind, 'normal') = 'normal',
                array(struct(
                    begin AS first_offset, begin AS last_offset, 'not_supported' AS state,
                    'printed by a kafka-dump-log older than 2.2, and its first lines are missing' AS reason,
                    at
                )),
                array()
            )
        ) AS parts
    FROM sections
),
of_sections AS (
    SELECT
        * EXCEPT (at), at.section_id AS section_id, at.byte_offset AS byte_offset, at.length AS length
    FROM (SELECT replica_log_id, cluster, broker, topic, partition, inline(parts) FROM parts_of_sections)
),
-- Of what is missing within text of an older segment that was not understood, or cut off.
cuts_of_logs AS (
    SELECT
        replica_log_id,
        collect_list(struct(
            end AS first_offset, next_segment_base - 1 AS last_offset,
            IF(unread_because IS NULL, 'lines_missing', 'unexplained') AS state,
            coalesce(concat('unread text: ', unread_because), 'the text ends before the last batches of its segment') AS reason
        )) AS cuts
    FROM sections
    WHERE is_read AND next_segment_base > end AND (unread_because IS NOT NULL OR NOT tail_intact)
    GROUP BY replica_log_id
),
behind_cuts AS (
    SELECT /*+ BROADCAST(cuts) */
        part.*,
        IF(
            part.state = 'hole',
            get(filter(cuts.cuts, cut -> cut.first_offset <= part.last_offset AND cut.last_offset >= part.first_offset), 0),
            NULL
        ) AS cut
    FROM explained part
    LEFT JOIN cuts_of_logs cuts ON cuts.replica_log_id = part.replica_log_id
)

SELECT
    replica_log_id, cluster, broker, topic, partition, first_offset, last_offset,
    coalesce(cut.state, state) AS state,
    coalesce(cut.reason, reason) AS reason,
    section_id, byte_offset, length
FROM behind_cuts
UNION ALL
SELECT * FROM of_sections
