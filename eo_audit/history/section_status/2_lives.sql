-- What each section shows, and which are of an earlier log of the same name, or of what a leader has written anew since.

-- The offsets and clocks of each log section, by its batches that are whole.
batches_of_sections AS (
    SELECT
        *,
        coalesce(crc_valid, true) AS is_intact,
        -- The leader before may have had a clock far ahead, and a clock may have been set back: the latest time says nothing of the clock
        -- that wrote the end of the log.
        struct(coalesce(partition_leader_epoch, -1) AS leader_epoch, base_offset, max_timestamp_ms AS at_ms) AS led,
        -- CreateTime is the client's word. Markers are stamped by the leader that appends them, and so is LogAppendTime.
        marker_type IS NOT NULL OR timestamp_type = 'LogAppendTime' AS is_of_broker
    FROM {batches}
),
extents AS (
    SELECT
        section_id,
        min(base_offset) AS first_offset,
        max(last_offset) AS last_offset,
        max(IF(is_intact, led, NULL)).at_ms AS newest_batch_ms,
        max(IF(is_intact AND is_of_broker, led, NULL)).at_ms AS newest_broker_batch_ms,
        max(IF(is_intact, max_timestamp_ms, NULL)) AS latest_batch_ms,
        max(IF(is_intact AND is_of_broker, max_timestamp_ms, NULL)) AS latest_broker_batch_ms,
        min(IF(is_intact, max_timestamp_ms, NULL)) AS oldest_batch_ms,
        max(
            IF(is_intact AND (count < last_offset - base_offset + 1 OR delete_horizon_ms IS NOT NULL), last_offset + 1, NULL)
        ) AS cleaned_to,
        min(IF(is_intact AND base_offset = 0 AND partition_leader_epoch >= 0, partition_leader_epoch, NULL)) AS first_leader_epoch,
        max(IF(is_intact AND partition_leader_epoch >= 0, partition_leader_epoch, NULL)) AS last_leader_epoch,
        -- What stands first tells two logs of one name apart: an offset keeps its batch as long as its leader epoch.
        min(IF(
            is_intact,
            struct(
                base_offset, last_offset, producer_id, base_sequence,
                IF(partition_leader_epoch >= 0, partition_leader_epoch, NULL) AS leader_epoch, crc, max_timestamp_ms AS at_ms
            ),
            NULL
        )) AS first_batch,
        max(byte_offset) AS last_line_at,
        max(position + size_bytes) AS end_position,
        min(position) AS first_position,
        min(IF(records_seen < count, base_offset, NULL)) AS incomplete_from,
        max(IF(records_seen < count, base_offset, NULL)) AS incomplete_to,
        max(base_offset) AS newest_base,
        -- Offsets are missing, and not a byte: the cleaner wrote the segment anew.
        coalesce(
            min(position) = 0 AND sum(size_bytes) = max(position + size_bytes)
                AND sum(last_offset - base_offset + 1) < max(last_offset) - min(base_offset) + 1,
            false
        ) AS rewritten,
        bool_or(magic >= 2 AND crc IS NULL) AS lacks_checksums,
        -- A batch without a producer has no epoch either: there it is not missed.
        bool_or(producer_id >= 0 AND producer_epoch IS NULL) AS lacks_epochs
    FROM batches_of_sections
    GROUP BY section_id
),

sections AS (
    SELECT /*+ BROADCAST(removed) */
        section.*,
        removed.listing_id AS removed_by,
        shown.last_base AS shown_last_base,
        IF(shown.is_last_empty, shown.last_base, NULL) AS shown_empty_base,
        extent.* EXCEPT (section_id),
        section.kind IN ('log', 'snapshot', 'txnindex') AS is_of_log,
        section.kind IN ('checkpoint', 'listing', 'manifest', 'broker_answers', 'console_records') AS is_of_broker,
        (
            section.kind IN ('log', 'snapshot', 'txnindex') AND section.replica_log_id IS NOT NULL
            AND coalesce(section.dir_kind, 'normal') = 'normal'
        ) OR section.kind IN ('checkpoint', 'listing', 'manifest', 'broker_answers', 'console_records') AS competes,
        section.kind IN ('broker_answers', 'console_records') AS is_answer,
        NOT section.dialect <=> {unsupported_dialect} AS supported
    FROM in_files section
    LEFT JOIN removed ON removed.section_id = section.section_id
    LEFT JOIN shown ON shown.replica_log_id = section.replica_log_id AND shown.dump_set = section.dump_set
    LEFT JOIN extents extent ON extent.section_id = section.section_id
),
-- The segments of a log that one dump holds: where they end, what comes next, and whether the cleaner was there.
beside_dumped AS (
    SELECT
        *,
        lead(segment_base_offset) OVER (
            PARTITION BY cluster, broker, replica_log_id, dump_set, kind ORDER BY segment_base_offset, section_id
        ) AS next_base,
        max(IF(kind = 'log', last_offset, NULL)) OVER of_dump AS dumped_up_to,
        max(IF(kind = 'log' AND competes, segment_base_offset, NULL)) OVER of_dump AS dumped_last_base,
        min(dumped_at_ms) OVER of_dump AS dump_began_ms,
        replica_log_id IS NOT NULL AND (
            topic IN ('__transaction_state', '__consumer_offsets')
            OR coalesce(bool_or(kind = 'log' AND (cleaned_to IS NOT NULL OR rewritten)) OVER of_dump, false)
        ) AS is_cleaned
    FROM sections
    WINDOW of_dump AS (PARTITION BY cluster, broker, replica_log_id, dump_set)
),
-- The dumps of each segment: what the newest begins with, and whether their texts differ.
beside_dumps AS (
    SELECT
        *,
        min(IF(kind = 'log', digest, NULL)) OVER of_segment AS first_text,
        max(IF(kind = 'log', digest, NULL)) OVER of_segment AS last_text,
        max(IF(
            kind = 'log' AND supported AND first_batch IS NOT NULL AND competes,
            struct(dumped_at_ms, dump_set, first_batch, is_cleaned, section_id),
            NULL
        )) OVER of_segment AS newest_begin
    FROM beside_dumped
    WINDOW of_segment AS (PARTITION BY cluster, broker, replica_log_id, segment_base_offset)
),
-- Two dumps of a log that is cleaned, where times do not tell which is newer: no log can be put together of both, and the one counts that
-- ends last.
ordered AS (
    SELECT
        *,
        IF(
            is_of_two,
            struct(coalesce(dumped_up_to, -1L) AS up_to, dump_set AS tie),
            struct(IF(is_untimed, -1L, coalesce(dumped_at_ms, -1L)) AS up_to, '' AS tie)
        ) AS newness
    FROM (
        SELECT
            *,
            -- Then the longer text of a segment is the newer one.
            is_of_log AND replica_log_id IS NOT NULL AND NOT bool_and(dumped_at_ms IS NOT NULL OR NOT is_of_log) OVER of_log AS is_untimed,
            bool_or(is_cleaned) OVER of_log AND NOT bool_and(dumped_at_ms IS NOT NULL) OVER of_log
                AND coalesce(bool_or(first_text <> last_text) OVER of_log, false) AS is_of_two,
            (max(IF(topic_id IS NOT NULL, struct(dumped_at_ms, topic_id), NULL)) OVER of_log).topic_id AS newest_topic_id
        FROM beside_dumps
        WINDOW of_log AS (PARTITION BY cluster, broker, replica_log_id)
    )
),
-- Segments that begin with another batch than a newer dump of theirs. The cleaner keeps the offsets of a batch and what its producer
-- numbered, and nothing else.
replaced AS (
    SELECT
        *,
        coalesce(
            kind = 'log' AND supported AND competes
                AND newest_begin.dumped_at_ms > dumped_at_ms AND newest_begin.dump_set <> dump_set
                AND newest_begin.first_batch.base_offset = first_batch.base_offset,
            false
        ) AND (
            coalesce(newest_begin.first_batch.last_offset <> first_batch.last_offset, false)
            OR coalesce(newest_begin.first_batch.producer_id <> first_batch.producer_id, false)
            OR coalesce(newest_begin.first_batch.base_sequence <> first_batch.base_sequence, false)
            OR (
                NOT (is_cleaned OR newest_begin.is_cleaned)
                AND (
                    coalesce(newest_begin.first_batch.crc <> first_batch.crc, false)
                    OR coalesce(newest_begin.first_batch.at_ms <> first_batch.at_ms, false)
                )
            )
        ) AS is_replaced
    FROM ordered
),
-- What was dumped before a topic was deleted and created anew is of another log of the same name. Without its id (before 2.8) another first
-- batch tells, or another one of the same leader epoch. One of another epoch may be what a leader wrote anew: then what was before stays.
of_lives AS (
    SELECT
        *,
        coalesce(
            dump_began_ms <= max(IF(
                topic_id <> newest_topic_id
                    OR (is_replaced AND (first_batch.base_offset = 0 OR first_batch.leader_epoch = newest_begin.first_batch.leader_epoch)),
                dumped_at_ms,
                NULL
            )) OVER (PARTITION BY cluster, broker, replica_log_id),
            false
        ) AS is_of_earlier_life,
        coalesce(
            dump_began_ms <= max(IF(is_replaced AND first_batch.leader_epoch = newest_begin.first_batch.leader_epoch, dumped_at_ms, NULL))
                OVER (PARTITION BY cluster, broker, replica_log_id),
            false
        ) AS is_surely_of_earlier_life,
        max(IF(is_replaced, newest_begin.section_id, NULL)) OVER (PARTITION BY cluster, broker, replica_log_id) AS replaced_by,
        min(IF(is_replaced, segment_base_offset, NULL)) OVER (
            PARTITION BY cluster, broker, replica_log_id
            ORDER BY dump_began_ms RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS replaced_from
    FROM replaced
),
-- What a broker showed that was not there when the others were dumped again: its log begins like their earlier ones.
begun_alike AS (
    SELECT
        *,
        max(IF(
            kind = 'log' AND is_surely_of_earlier_life AND NOT is_cleaned AND first_batch.crc IS NOT NULL, replaced_by, NULL
        )) OVER (PARTITION BY cluster, topic, partition, first_batch) AS alike_replaced_by
    FROM of_lives
),
of_partitions AS (
    SELECT
        *,
        max(IF(kind = 'log' AND supported AND first_batch IS NOT NULL AND NOT is_of_earlier_life, alike_replaced_by, NULL))
            OVER (PARTITION BY replica_log_id, dump_set) AS anew_by
    FROM begun_alike
),
