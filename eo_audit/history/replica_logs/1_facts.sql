-- What is known of each replica log beside its batches: segments, log start, high watermark, cleaning, which sidecars were dumped. One row
-- per replica log with at least one log section, read or of an unsupported dialect.
--
-- 1. log_start = max(checkpoint row if there is one, lowest segment base of the newest dump, or of its listing): a checkpoint without a row
--    for the log does not say 0. What tells of segments that nobody dumped (a listing, the checkpoint, the leader epoch cache) moves it
--    down to them. Older dumps may hold segments that retention has deleted since. Offsets missing between two segments below
--    that start were lost by nobody: the broker deletes from the head on (`UnifiedLog.deleteOldSegments`), and the log begins behind them.
--    Where a listing as new still shows an older segment, they are missing from the dumps. Where nothing says which of two dumps is newer,
--    and neither has segments on both sides of what is missing, retention may have deleted it or it may be lost: `unordered_before`. Then
--    nobody knows where the log starts. Two dumps in one folder without a time look like one: what is missing within is missing.
-- 2. HW = checkpoint row, not beyond the log end offset where the dump shows it: no broker keeps one there; without a row, the log end
--    offset. For `__transaction_state` a high watermark or recovery point beyond the end says that the dump stops before the log does:
--    nothing else shows a cut between two records, and what an id lacks there must not be held against it. In other logs it may be a lost
--    marker (T05).
-- 3. Cleaning: a row of the cleaner's checkpoint, of this replica or another one, the highest; a cleaner that is off; other checkpoints of
--    the broker without such a row mean "never", unless batches have lost records (a log copied from a leader that cleans); else the
--    topic's cleanup.policy; else lost records.
-- 4. An index that was not dumped is known not to exist when a listing shows its directory without it, or when the log's snapshot and any
--    index of the broker were dumped, with no unread text between. One of which the dump shows a part is not known, and neither is one
--    without entries whose segment the listing no longer shows: of an index that was deleted before its dump the tool prints as much
--    (`TransactionIndex`). Of a segment that retention deleted since it was dumped the listing of that time tells, though newer ones have
--    taken its place. Of a segment that was rolled since its directory was listed the snapshot of that roll tells, or a later one: what
--    lies beside the log was dumped behind it.
-- 5. A snapshot of the producers at the log end offset: the broker had been stopped. It takes none of an empty log
--    (`ProducerStateManager.takeSnapshot`), whose end is known by the other logs of its broker, if all of them ended so.
-- 6. Kafka's leader epoch cache is cut at the log start: an entry below the first segment dumped tells of older segments, unless a listing
--    shows that there are none.
-- 7. A topic begins with leader epoch 0. A log that begins at offset 0 with a later one was begun anew under a later leader
--    (`LeaderEpochFileCache`): its leader had lost what was there, or nothing had been written to the topic before.
-- 8. The newest leader epoch of a log is that of its batches, or of an entry of its leader epoch cache: a leader makes one before it writes
--    (`Partition.makeLeader`). An entry that begins behind the end of the dump is of a log that went on, and says nothing of what was
--    dumped.
-- 9. Tiered storage (KIP-405): the oldest segments of a log may lie in remote storage only, and the log still starts with them. The broker
--    writes down the log start of every log that it moves there, and of others only where it lies within their first segment
--    (`LogManager.checkpointLogStartOffsetsInDir`): a row of 0 below the oldest segment tells. Another row may be older than a deletion;
--    it tells where the cluster moves segments at all, unless the leader epoch cache was cut since. Nothing is moved that lies above the
--    last stable offset (`RemoteLogManager.copyLogSegmentsToRemote`), so nothing that was moved is open.
--
-- section_status    the table
-- checkpoints, listed_files, manifest_entries: the tables; only rows of sections that are read count
WITH

read_sections AS (
    SELECT section_id, dumped_at_ms FROM {section_status} WHERE is_read
),
-- A listing that gave way to a newer one still tells of segments that were deleted since.
told_sections AS (
    SELECT section_id, dumped_at_ms, dump_set, is_read
    FROM {section_status}
    WHERE is_read OR (kind = 'listing' AND superseded_by IS NOT NULL)
),
of_sections AS (
    SELECT
        *,
        kind = 'log' AND coalesce(dir_kind, 'normal') = 'normal' AND replica_log_id IS NOT NULL AS was_dumped,
        is_read AND kind = 'log' AS is_segment
    FROM {section_status}
),
-- `LogFileUtils.filenamePrefixFromOffset`: twenty digits. `LocalLog` names directories so that are being deleted, copied to another disk,
-- or were found without an owner.
of_listed_files AS (
    SELECT /*+ BROADCAST(read) */
        file.*,
        read.dumped_at_ms AS listing_at_ms,
        read.is_read,
        read.dump_set,
        try_cast(regexp_extract(file.file_name, '\\A(\\d{{20}})\\.(?:log|txnindex|snapshot)\\z', 1) AS BIGINT) AS base_offset,
        file.file_name LIKE '%.log' AS is_log,
        -- An index of no bytes has no entry to miss.
        file.file_name LIKE '%.txnindex' AND file.file_bytes > 0 AS is_index,
        file.file_bytes IS NOT NULL AS is_listed
    FROM {listed_files} file
    JOIN told_sections read ON read.section_id = file.section_id
    WHERE file.replica_log_id IS NOT NULL AND NOT file.folder RLIKE '-(?:delete|future|stray)\\z'
),

-- Facts of all kinds in one frame, each with columns of its own: one shuffle gathers what is said of a log.
facts AS (
    SELECT
        cluster, broker, replica_log_id, topic, partition,
        named_struct(
            'is_log', was_dumped AND superseded_by IS NULL,
            'topic_id', topic_id,
            'dumped', IF(was_dumped, struct(dumped_at_ms, dump_set, segment_base_offset AS base_offset), NULL),
            'segment', IF(
                is_segment,
                struct(
                    segment_base_offset AS base_offset, last_offset + 1 AS end, section_id, tail_intact, decoder,
                    lacks_records, end_position, end_at_most, cut_before,
                    NOT lacks_checksums AS has_sizes, struct(section_id, byte_offset, header_length AS length) AS header, dumped_at_ms
                ),
                NULL
            ),
            'index', IF(
                is_read AND kind = 'txnindex' AND segment_base_offset IS NOT NULL,
                struct(segment_base_offset AS base_offset, dumped_at_ms),
                NULL
            ),
            'bare_index', IF(is_read AND is_bare, segment_base_offset, NULL),
            'index_in_part', IF(is_in_part AND kind = 'txnindex', segment_base_offset, NULL),
            'hides_sections', hides_sections AND superseded_by IS NULL,
            'snapshot', IF(is_read AND kind = 'snapshot', struct(segment_base_offset AS offset, section_id), NULL),
            -- Every running broker keeps these three; cleaner-offset-checkpoint is what is asked about, so it proves nothing here.
            'checkpoints_of', IF(
                is_read AND kind = 'checkpoint'
                    AND path RLIKE '(?:\\A|/)(?:replication|recovery-point|log-start)-offset-checkpoint[^/]*\\z',
                struct(dumped_at_ms),
                NULL
            ),
            'newest_broker_clock', IF(
                is_segment AND newest_broker_clock_ms IS NOT NULL, struct(segment_base_offset, newest_broker_clock_ms AS at_ms), NULL
            ),
            'latest_broker_clock_ms', IF(is_segment, latest_broker_clock_ms, NULL),
            'oldest_batch_ms', IF(is_segment, oldest_batch_ms, NULL),
            'shows_cleaning', is_segment AND shows_cleaning,
            'cleaned_to', IF(is_segment, cleaned_to, NULL),
            'is_of_earlier_life', supersession_reason <=> 'created_anew',
            'first_leader_epoch', IF(is_segment, first_leader_epoch, NULL),
            'last_leader_epoch', IF(is_segment, last_leader_epoch, NULL)
        ) AS section,
        NULL AS checkpoint,
        NULL AS file,
        NULL AS file_then,
        NULL AS said
    FROM of_sections
    UNION ALL
    SELECT /*+ BROADCAST(read) */
        entry.cluster, entry.broker, entry.replica_log_id, entry.topic, entry.partition, NULL,
        struct(entry.checkpoint_kind AS kind, entry.offset, entry.leader_epoch),
        NULL,
        NULL,
        NULL
    FROM {checkpoints} entry
    JOIN read_sections read ON read.section_id = entry.section_id
    UNION ALL
    SELECT
        cluster, broker, replica_log_id, topic, partition, NULL, NULL,
        IF(
            is_read,
            named_struct(
                'is_listed', is_listed,
                'listed_at_ms', listing_at_ms,
                'log', IF(is_log AND is_listed, base_offset, NULL),
                'size', IF(is_log AND is_listed, struct(base_offset, file_bytes), NULL),
                'dump_time', IF(
                    is_log AND dumped_at_ms IS NOT NULL,
                    struct(base_offset, struct(dumped_at_ms, section_id, byte_offset) AS noted),
                    NULL
                ),
                'snapshot', IF(file_name LIKE '%.snapshot' AND is_listed, base_offset, NULL),
                'index', IF(is_index, base_offset, NULL)
            ),
            NULL
        ),
        named_struct(
            'listed', IF(is_log AND is_listed, struct(section_id, dump_set, base_offset, file_bytes), NULL),
            'indexed', IF(is_index, struct(section_id, base_offset), NULL),
            'noted', IF(is_log AND dumped_at_ms IS NOT NULL, struct(dump_set, base_offset, dumped_at_ms), NULL)
        ),
        NULL
    FROM of_listed_files
    UNION ALL
    SELECT /*+ BROADCAST(read) */
        entry.cluster, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        struct(entry.name, entry.value)
    FROM {manifest_entries} entry
    JOIN read_sections read ON read.section_id = entry.section_id
),

-- Everything said of one log in one row; what is said of no log (a broker's checkpoint files) in one row of the broker.
gathered AS (
    SELECT
        cluster, broker, replica_log_id,
        max(topic) AS topic,
        max(partition) AS partition,
        coalesce(bool_or(section.is_log), false) AS is_log,
        array_sort(collect_list(section.segment)) AS read,
        collect_list(section.dumped) AS dumped,
        transform(collect_set(section.index), i -> i.base_offset) AS indexes,
        collect_set(section.index) AS indexes_at,
        collect_set(section.bare_index) AS bare_indexes,
        collect_set(section.index_in_part) AS indexes_in_part,
        coalesce(bool_or(section.hides_sections), false) AS hides_sections,
        max(section.snapshot) AS snapshot,
        max(section.topic_id) AS topic_id,
        max(section.checkpoints_of) AS checkpoints_of,
        max(section.newest_broker_clock).at_ms AS newest_broker_clock_ms,
        max(section.latest_broker_clock_ms) AS latest_broker_clock_ms,
        min(section.oldest_batch_ms) AS oldest_batch_ms,
        coalesce(bool_or(section.shows_cleaning), false) AS shows_cleaning,
        max(section.cleaned_to) AS cleaned_to,
        coalesce(bool_or(section.is_of_earlier_life), false) AS was_created_anew,
        max(IF(checkpoint.kind = 'log-start-offset', checkpoint.offset, NULL)) AS start_row,
        max(IF(checkpoint.kind = 'replication-offset', checkpoint.offset, NULL)) AS hw_row,
        max(IF(checkpoint.kind = 'recovery-point-offset', checkpoint.offset, NULL)) AS recovery_row,
        max(IF(checkpoint.kind = 'cleaner-offset', checkpoint.offset, NULL)) AS cleaner_row,
        min(IF(checkpoint.kind = 'leader-epoch', checkpoint.offset, NULL)) AS epoch_start,
        least(
            min(section.first_leader_epoch),
            min(IF(checkpoint.kind = 'leader-epoch' AND checkpoint.offset = 0, checkpoint.leader_epoch, NULL))
        ) AS first_leader_epoch,
        max(section.last_leader_epoch) AS batch_leader_epoch,
        collect_set(IF(checkpoint.kind = 'leader-epoch', struct(checkpoint.offset, checkpoint.leader_epoch), NULL)) AS epoch_rows,
        coalesce(bool_or(file.is_listed), false) AS listed,
        max(file.listed_at_ms) AS listed_at_ms,
        collect_set(file.log) AS listed_logs,
        collect_set(file.index) AS listed_indexes,
        collect_set(file.snapshot) AS listed_snapshots,
        collect_set(file.size) AS listed_sizes,
        collect_set(file.dump_time) AS dump_times,
        collect_set(file_then.listed) AS then_listed,
        collect_set(file_then.indexed) AS then_indexed,
        collect_set(file_then.noted) AS then_noted,
        collect_list(said) AS said
    FROM facts
    GROUP BY cluster, broker, replica_log_id
),
