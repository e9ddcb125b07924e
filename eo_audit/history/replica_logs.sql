-- What is known of each replica log beside its batches: segments, log start, high watermark, cleaning, which sidecars were dumped. One row
-- per replica log with at least one log section, read or of an unsupported dialect.
--
-- 1. log_start = max(checkpoint row if there is one, lowest segment base of the newest dump, or of its listing): a checkpoint without a row
--    for the log does not say 0. Older dumps may hold segments that retention has deleted since. Offsets missing between two segments below
--    that start were lost by nobody: the broker deletes from the head on (`UnifiedLog.deleteOldSegments`), and the log begins behind them.
--    Where a listing as new still shows an older segment, they are missing from the dumps. Where nothing says which of two dumps is newer,
--    and neither has segments on both sides of what is missing, retention may have deleted it or it may be lost: `unordered_before`. Then
--    nobody knows where the log starts. Two dumps in one folder without a time look like one: what is missing within is missing.
-- 2. HW = checkpoint row, not beyond the log end offset where the dump shows it: no broker keeps one there; without a row, the log end
--    offset. For `__transaction_state` a high watermark or recovery point beyond the end says that the dump stops before the log does:
--    nothing else shows a cut between two records, and what an id lacks there must not be held against it. In other logs it may be a lost
--    marker (T05).
-- 3. Cleaning: a row of the cleaner's checkpoint, of this replica or another one, the highest; a cleaner that is off; other checkpoints of
--    the broker without such a row mean "never", unless batches have lost records (a log copied from a leader that cleans); else the topic's
--    cleanup.policy; else lost records.
-- 4. An index that was not dumped is known not to exist when a listing shows its directory without it, or when the log's snapshot and any
--    index of the broker were dumped. One of which the dump shows a part is not known, and neither is one without entries whose segment the
--    listing no longer shows: of an index that was deleted before its dump the tool prints as much (`TransactionIndex`). Of a segment that
--    retention deleted since it was dumped the listing of that time tells, though newer ones have taken its place. Of a segment that was rolled
--    since its directory was listed the snapshot of that roll tells, or a later one: what lies beside the log was dumped behind it.
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
    SELECT section_id, dumped_at_ms, dump_set, is_read FROM {section_status} WHERE is_read OR (kind = 'listing' AND superseded_by IS NOT NULL)
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
        max(section.snapshot) AS snapshot,
        max(section.topic_id) AS topic_id,
        max(section.checkpoints_of) AS checkpoints_of,
        max(section.newest_broker_clock).at_ms AS newest_broker_clock_ms,
        max(section.latest_broker_clock_ms) AS latest_broker_clock_ms,
        min(section.oldest_batch_ms) AS oldest_batch_ms,
        coalesce(bool_or(section.shows_cleaning), false) AS shows_cleaning,
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
of_cluster AS (
    SELECT
        * EXCEPT (cleaner_row), cleaner_row AS own_cleaner_row,
        -- A follower copies what its leader has left of the log: the cleaner was as far as that of any replica.
        max(cleaner_row) OVER (PARTITION BY cluster, topic, partition) AS cleaner_row,
        array_max(filter(
            collect_set(IF(checkpoints_of IS NULL, NULL, struct(coalesce(broker, -1) AS broker, checkpoints_of.dumped_at_ms))) OVER cluster_rows,
            of_broker -> of_broker.broker = coalesce(broker, -1)
        )) AS checkpoints,
        array_contains(collect_set(IF(size(indexes) > 0, coalesce(broker, -1), NULL)) OVER cluster_rows, coalesce(broker, -1))
            AS broker_has_index,
        flatten(collect_list(said) OVER cluster_rows) AS manifest,
        bool_or(coalesce(topic = '__remote_log_metadata', false) OR coalesce(start_row = 0, false)) OVER cluster_rows AS shows_remote
    FROM gathered
    WINDOW cluster_rows AS (PARTITION BY cluster)
),
logs AS (
    SELECT
        *,
        transform(read, s -> s.base_offset) AS bases,
        -- Segments that were gone, or not there yet, when their directory was listed, or that were dumped again since: it says nothing of
        -- their indexes.
        IF(
            listed,
            transform(
                filter(
                    read,
                    s -> NOT array_contains(listed_logs, s.base_offset)
                        OR (
                            NOT coalesce(listed_at_ms >= s.dumped_at_ms, listed_at_ms IS NULL AND s.dumped_at_ms IS NULL)
                            AND NOT exists(dump_times, t -> t.base_offset = s.base_offset AND t.noted.dumped_at_ms = s.dumped_at_ms)
                        )
                ),
                s -> s.base_offset
            ),
            array()
        ) AS unlisted,
        -- Indexes that were dumped before their log was dumped again: of what was written between they hold no entry. (Here and above
        -- `is_older` in full: no lambda may call a function.)
        transform(
            filter(
                read,
                s -> exists(
                    indexes_at,
                    i -> i.base_offset = s.base_offset
                        AND NOT coalesce(i.dumped_at_ms >= s.dumped_at_ms, i.dumped_at_ms IS NULL AND s.dumped_at_ms IS NULL)
                )
            ),
            s -> s.base_offset
        ) AS older_indexes,
        -- When its newest segment was dumped, if collect-dumps.sh noted it.
        array_max(transform(
            filter(
                dump_times,
                t -> t.base_offset = try_element_at(read, -1).base_offset AND t.noted.dumped_at_ms <=> try_element_at(read, -1).dumped_at_ms
            ),
            t -> t.noted
        )) AS noted,
        -- A segment without a batch still says that the log had reached its base.
        coalesce(greatest(array_max(transform(read, s -> s.end)), array_max(transform(read, s -> s.base_offset))), 0L) AS leo,
        size(read) > 0 AS supported,
        coalesce(said(manifest, 'broker_config.log.cleaner.enable') = 'false', false) AS cleaner_is_off,
        coalesce(
            exists(manifest, e -> e.name = concat('topics.', topic) OR startswith(e.name, concat('topics.', topic, '.'))), false
        ) AS is_mentioned,
        is_internal(topic) AS is_internal,
        -- Of the newest dump of a log: when, which, its lowest segment. Files of which nobody knows when they were dumped may be of any.
        IF(exists(dumped, d -> d.dumped_at_ms IS NULL), NULL, array_max(dumped)) AS newest
    FROM of_cluster
    WHERE is_log
),
configured AS (
    SELECT
        *,
        coalesce(
            said(manifest, concat('topics.', topic, '.cleanup.policy')),
            -- What brokers create them with, whatever log.cleanup.policy says (`AutoTopicCreationManager`). The share coordinator deletes
            -- the records below its snapshots itself (KIP-932: `ShareCoordinatorService.shareGroupStateTopicConfigs`).
            CASE
                WHEN topic IN ('__transaction_state', '__consumer_offsets') THEN 'compact'
                WHEN topic = '__share_group_state' THEN 'delete'
            END,
            IF(is_mentioned, coalesce(said(manifest, 'broker_config.log.cleanup.policy'), 'delete'), NULL)
        ) AS cleanup_policy,
        IF(
            supported,
            greatest(batch_leader_epoch, array_max(transform(filter(epoch_rows, e -> e.offset <= leo), e -> e.leader_epoch))),
            NULL
        ) AS last_leader_epoch,
        coalesce(
            shows_remote
                OR said(manifest, 'broker_config.remote.log.storage.system.enable') = 'true'
                OR said(manifest, concat('topics.', topic, '.remote.storage.enable')) = 'true',
            false
        ) AS may_be_remote,
        transform(filter(dumped, d -> d.dump_set = newest.dump_set), d -> d.base_offset) AS dumped_then,
        coalesce(NOT coalesce(listed_at_ms < newest.dumped_at_ms, false) AND size(listed_logs) > 0, false) AS is_listed_then,
        -- Checkpoints of an older collection say nothing of what was done to a log since. Null: the broker has none.
        IF(
            checkpoints IS NULL,
            NULL,
            size(read) > 0 AND is_older(checkpoints.dumped_at_ms, IF(noted IS NULL, try_element_at(read, -1).dumped_at_ms, listed_at_ms))
        ) AS checkpoints_are_older,
        array_max(transform(filter(listed_sizes, l -> l.base_offset = array_max(bases)), l -> l.file_bytes)) AS listed_bytes
    FROM logs
),
cleaned AS (
    SELECT
        *,
        CASE
            WHEN cleaner_row IS NOT NULL THEN true
            WHEN cleaner_is_off OR (NOT coalesce(checkpoints_are_older, true) AND NOT shows_cleaning) THEN false
            ELSE coalesce(contains(cleanup_policy, 'compact'), shows_cleaning)
        END AS compacted,
        -- Segments that a listing of any time shows at least as long as their text, and no index beside them: an index is made with its
        -- first entry (`TransactionIndex.append`), so what the text shows has none. Only the cleaner makes a segment shorter. So do segments
        -- whose dump collect-dumps.sh noted: it dumps the indexes behind the log, and lists what there is.
        IF(
            was_created_anew OR shows_cleaning OR coalesce(contains(cleanup_policy, 'compact'), false),
            array(),
            transform(
                filter(
                    read,
                    s -> exists(
                        then_listed,
                        l -> l.base_offset = s.base_offset
                            AND (
                                l.file_bytes >= coalesce(s.end_position, 0L)
                                OR array_contains(then_noted, struct(l.dump_set, l.base_offset, s.dumped_at_ms))
                            )
                            AND NOT array_contains(then_indexed, struct(l.section_id, l.base_offset))
                    )
                ),
                s -> s.base_offset
            )
        ) AS unindexed,
        IF(
            is_listed_then,
            array_min(listed_logs),
            -- A dump of a few segments, brought later, does not show the others gone: the newest segment of all is in a whole one.
            greatest(array_min(listed_logs), IF(array_max(dumped_then) >= array_max(bases), array_min(dumped_then), NULL))
        ) AS head
    FROM configured
),
-- What the broker deleted before a segment, and what may be deleted or lost there.
gaps AS (
    SELECT
        *,
        coalesce(
            may_be_remote
                AND start_row < coalesce(head, array_min(bases))
                AND coalesce(epoch_start < coalesce(head, array_min(bases)), true),
            false
        ) AS in_remote,
        transform(
            read,
            (s, i) -> struct(
                get(bases, i + 1) AS next,
                coalesce(
                    NOT compacted
                    AND coalesce(s.end, s.base_offset) < get(bases, i + 1)
                    AND coalesce(greatest(start_row, head) >= get(bases, i + 1), false),
                    false
                ) AS is_removed,
                coalesce(
                    NOT compacted
                    AND coalesce(s.end, s.base_offset) < get(bases, i + 1)
                    AND newest IS NULL
                    AND NOT exists(
                        listed_logs, base -> base >= coalesce(s.end, s.base_offset) AND base < get(bases, i + 1)
                    )
                    AND coalesce(
                        NOT arrays_overlap(
                            transform(filter(dumped, d -> d.base_offset <= s.base_offset), d -> d.dump_set),
                            transform(filter(dumped, d -> d.base_offset >= get(bases, i + 1)), d -> d.dump_set)
                        ),
                        false
                    ),
                    false
                ) AS is_unordered
            )
        ) AS gaps
    FROM cleaned
),
begun AS (
    SELECT
        *,
        array_compact(transform(gaps, gap -> IF(gap.is_removed OR gap.is_unordered, gap.next, NULL))) AS removed_before,
        array_compact(transform(gaps, gap -> IF(gap.is_unordered AND NOT gap.is_removed, gap.next, NULL))) AS unordered_before
    FROM gaps
),
based AS (
    SELECT *, coalesce(array_max(removed_before), array_min(bases)) AS first_base
    FROM begun
),
started AS (
    -- The first lines of the lowest segment may be missing from its text.
    SELECT *, coalesce(array_min(transform(filter(read, s -> s.base_offset = first_base), s -> s.cut_before)), first_base) AS first_offset
    FROM based
),
placed AS (
    SELECT
        *,
        CASE
            WHEN size(unordered_before) > 0 THEN NULL
            WHEN in_remote THEN start_row
            ELSE coalesce(greatest(start_row, head, first_base), 0L)
        END AS log_start,
        CASE
            WHEN size(unordered_before) > 0 THEN NULL
            WHEN in_remote OR start_row >= coalesce(greatest(first_base, head), 0L) THEN 'checkpoint'
            WHEN array_min(listed_logs) = greatest(first_base, head) AND array_min(listed_logs) > first_base THEN 'listing'
            ELSE 'segment_base'
        END AS log_start_source,
        transform(read, (s, i) -> struct(s.base_offset, coalesce(get(bases, i + 1), leo) AS end_offset, s.section_id)) AS segments,
        -- null: nothing says so
        array_sort(filter(array_except(listed_logs, bases), base -> base > first_base AND base < array_max(bases)))
            AS missing_segments,
        -- What a listing does not show was not left out: it was deleted, perhaps after the checkpoints were written.
        nullif(
            least(
                CASE
                    WHEN in_remote THEN start_row
                    WHEN size(removed_before) = 0 THEN least(IF(listed, NULL, least(start_row, epoch_start)), array_min(listed_logs))
                END,
                first_base,
                first_offset
            ),
            first_offset
        ) AS missing_head_from,
        -- Without a listing nobody knows whether a segment that the broker has was left out, and with it what is open.
        coalesce(in_remote AND listed AND array_min(listed_logs) >= first_base AND first_offset = first_base, false) AS only_remote_missing,
        -- collect-dumps.sh, which notes its times, lists the size of a log's newest segment right before its dump: a text that shows less
        -- was cut, also where it was cut between two lines. A listing that was made by hand may be younger than the dump.
        transform(
            filter(
                read,
                s -> s.base_offset < array_max(bases) AND (
                    NOT s.tail_intact
                    OR coalesce(
                        s.has_sizes AND size(dump_times) > 0 AND exists(
                            listed_sizes, l -> l.base_offset = s.base_offset AND l.file_bytes > IF(s.end IS NULL, 0L, s.end_position)
                        ),
                        false
                    )
                )
            ),
            s -> coalesce(s.end, s.base_offset)
        ) AS short_ends,
        -- So was one whose newest segment was listed and could not be dumped. Up to 2.1 the text does not say where its newest batch ends.
        coalesce(
            noted IS NOT NULL AND (
                listed_bytes > IF(
                    coalesce(try_element_at(read, -1).has_sizes, true),
                    coalesce(try_element_at(read, -1).end_position, 0L),
                    try_element_at(read, -1).end_at_most
                )
                OR array_max(listed_logs) > array_max(bases)
            ),
            false
        ) AS listed_longer,
        -- An empty segment whose path has no offset has no base.
        array_sort(array_compact(array_union(
            array_except(
                CASE
                    WHEN listed THEN array_union(
                        array_intersect(bases, listed_indexes),
                        filter(
                            array_except(unlisted, unindexed),
                            base -> NOT coalesce(broker_has_index AND base > array_max(listed_logs) AND base <= snapshot.offset, false)
                        )
                    )
                    WHEN snapshot IS NOT NULL AND broker_has_index THEN slice(bases, 1, 0)
                    ELSE bases
                END,
                indexes
            ),
            array_intersect(
                bases,
                array_union(
                    array_union(indexes_in_part, older_indexes), array_except(array_intersect(unlisted, bare_indexes), unindexed)
                )
            )
        ))) AS unknown_indexes
    FROM started
),
ended AS (
    SELECT
        *,
        -- A snapshot or a listed segment beyond the end of the dump tells of a tail, too; not one that was taken after the files were
        -- listed, which may be younger than the dump of the log.
        coalesce(try_element_at(read, -1).tail_intact, false)
            AND NOT coalesce(snapshot.offset > leo AND (NOT listed OR array_contains(listed_snapshots, snapshot.offset)), false)
            AND NOT coalesce(array_max(listed_logs) > array_max(bases), false)
            AND NOT listed_longer
            AND NOT coalesce(topic = '__transaction_state' AND greatest(hw_row, recovery_row) > leo, false) AS tail_intact
    FROM placed
),
closed AS (
    SELECT
        *,
        -- A dump tool that died before the first batch may leave the same text.
        supported AND tail_intact AND forall(read, s -> s.end IS NULL AND s.tail_intact)
            AND NOT coalesce(greatest(hw_row, recovery_row) > leo, false) AS is_empty,
        -- `UnifiedLog.close` takes a snapshot; a flushed end alone is no stop (log.flush.interval.messages), one beyond the dump's end is.
        -- An index has entries of its own segment (`TransactionIndex` makes the file with the first): one that begins at the end of what
        -- was dumped shows that the log was rolled there (`UnifiedLog.roll` takes a snapshot as well), and went on.
        tail_intact
            -- One that was taken after the files were listed may be of a roll: the broker ran.
            AND coalesce(
                (snapshot.offset = leo AND (NOT listed OR array_contains(listed_snapshots, snapshot.offset))) OR recovery_row > leo, false
            )
            AND NOT coalesce(array_max(concat(indexes, listed_indexes)) >= leo, false)
            -- The script copies the cleaner's checkpoint last: where it was beyond the end, the log had gone on.
            AND NOT coalesce(own_cleaner_row > leo, false) AS has_clean_end,
        exists(
            transform(read, (s, i) -> s.end < get(bases, i + 1) AND s.base_offset >= first_base), jumps -> jumps
        ) AS jumps
    FROM ended
)

SELECT
    replica_log_id, cluster, broker, topic, partition, topic_id, is_internal, supported, segments, first_offset, removed_before, unordered_before,
    listed, first_leader_epoch, last_leader_epoch,
    IF(size(unordered_before) = 0, array_sort(epoch_rows), array()) AS leader_epochs,
    is_empty, missing_head_from, in_remote, only_remote_missing, missing_segments,
    log_start, log_start_source,
    -- The checkpoint is written every five seconds (replica.high.watermark.checkpoint.interval.ms); the log start may have passed it.
    IF(
        hw_row IS NULL OR coalesce(checkpoints_are_older, false), leo, greatest(IF(tail_intact, least(hw_row, leo), hw_row), log_start)
    ) AS hw,
    IF(hw_row IS NULL OR coalesce(checkpoints_are_older, false), 'leo', 'checkpoint') AS hw_source,
    leo, tail_intact, listed_longer, short_ends,
    IF(
        try_element_at(read, -1).end IS NULL AND array_max(transform(read, s -> s.end)) < try_element_at(read, -1).base_offset,
        struct(
            array_max(transform(read, s -> s.end)) - 1 AS newest_below, try_element_at(read, -1).base_offset AS base_offset,
            try_element_at(read, -1).header.section_id, try_element_at(read, -1).header.byte_offset, try_element_at(read, -1).header.length
        ),
        NULL
    ) AS empty_newest,
    supported AND tail_intact AND missing_head_from IS NULL AND NOT exists(read, s -> NOT s.tail_intact) AND size(short_ends) = 0
        AND size(unordered_before) = 0 AND size(array_except(listed_logs, bases)) = 0
        AND (compacted OR NOT coalesce(jumps, false)) AS whole,
    NOT exists(read, s -> s.end IS NOT NULL AND (s.lacks_records OR coalesce(s.decoder, 'plain') IN ('plain', 'other'))) AS decoded,
    exists(read, s -> s.lacks_records) AS lacks_records,
    snapshot.offset AS snapshot_offset,
    snapshot.section_id AS snapshot_section_id,
    CASE WHEN size(unknown_indexes) > 0 THEN 'not_dumped' WHEN size(indexes) > 0 THEN 'dumped' ELSE 'absent' END AS index_state,
    -- Indexes dumped at another time than their log may be older; collect-dumps.sh, which notes its times, dumps them behind it.
    NOT (has_clean_end OR noted.dumped_at_ms IS NOT NULL) AS index_may_lag,
    unknown_indexes, cleanup_policy, compacted,
    coalesce(
        IF(checkpoints_are_older, NULL, cleaner_row),
        IF(NOT compacted AND (cleaner_is_off OR NOT coalesce(checkpoints_are_older, true) OR cleanup_policy IS NOT NULL), 0L, NULL)
    ) AS uncleaned_from,
    newest_broker_clock_ms, latest_broker_clock_ms, oldest_batch_ms,
    noted.dumped_at_ms AS dumped_at_ms,
    IF(noted IS NULL, NULL, struct(noted.section_id, noted.byte_offset)) AS noted_at,
    has_clean_end OR (
        is_empty
        AND bool_and(has_clean_end OR is_empty) OVER (PARTITION BY cluster, broker)
        AND bool_or(has_clean_end) OVER (PARTITION BY cluster, broker)
    ) AS clean_end
FROM closed
