-- What the transaction coordinator wrote, id by id: every entry with its predecessor, its legality and its transaction. One row per
-- coordinator entry of an authority replica.
--
-- `__transaction_state` is replicated like any log, and one replica of each partition is enough: the authority is the one whose dumps cover
-- most offsets without a missing segment; what an earlier leader wrote where a later one had begun is covered by none, for it is cut off
-- (KIP-101). The others are compared with it elsewhere, never merged. The words that come out are those of eo_audit.model.coordinator, and
-- a test holds both against each other row by row.
--
-- coordinator_entries   the table, all replicas
-- section_status        the table: which sections are read, and where they lie
-- clusters              the table, for transaction_version, kafka_version, id_partitions and transactional_id_expiration_ms
-- unread_spans          the table
-- replica_logs          the table, for segments that are listed and were not dumped, and for where the cleaner has come
-- The law, from eo_audit.model.states; a step is `before>after` of two states, with what must be so beside it:
-- known_states, transient_states, run_states (those of a transaction), expirable_states
-- continuing_steps      before>after within one transaction
-- legal_steps           protocol>before>after
-- epoch_steps           protocol>so much higher
-- epoch_steps_of_commit, epoch_steps_most_of_commit: the same of a PrepareCommit, and with all that is less
-- ghosts_any, ghosts_restarted, ghosts_same_payload, ghosts_forgotten
--                       before>after>protocol>so much higher; what is asked of the entry beside that is in the name: nothing, that its
--                       transaction began again, that nothing changed, that it lists no partition
-- largest_epoch_step, ghosts_in_sight, fence_jumps_below_major, fence_jumps_below_minor, own_version_from_major: numbers
WITH

releases AS (
    SELECT
        cluster,
        transaction_version,
        id_partitions,
        transactional_id_expiration_ms,
        try_cast(get(split(kafka_version, '\\.'), 0) AS INT) AS major,
        try_cast(get(split(kafka_version, '\\.'), 1) AS INT) AS minor
    FROM {clusters}
),
known AS (
    SELECT
        cluster,
        transaction_version,
        id_partitions,
        transactional_id_expiration_ms,
        -- Whether a fence of the old protocol may raise the epoch by more than one on this release (KAFKA-9666); unknown counts as maybe.
        coalesce(
            major < {fence_jumps_below_major} OR (major = {fence_jumps_below_major} AND minor < {fence_jumps_below_minor}), true
        ) AS may_jump,
        -- Whether a coordinator may end by transaction.version 2 what a client of an older protocol began.
        coalesce(major >= {own_version_from_major} AND NOT coalesce(transaction_version < 2, false), false) AS ends_by_own_version
    FROM releases
),

-- The entries of sections that are read, with cluster, partition and segment.
sections AS (
    SELECT /*+ BROADCAST(unread), BROADCAST(logs) */
        section.section_id, section.cluster, section.partition AS coordinator_partition, segment_base_offset,
        incomplete_from, incomplete_to,
        array_max(filter(logs.missing_segments, base -> base < section.segment_base_offset)) AS missing_below,
        IF(logs.listed, NULL, logs.uncleaned_from) AS uncleaned_from,
        unread.unread_at, unread.unread_from, unread.last_unread_at,
        -- Up to 2.4.0 the dump tool dies at the first tombstone (KAFKA-9293): what follows was never printed. Of a later segment a decoder
        -- may have read nothing.
        end_reason IN ('truncated', 'exception')
            OR coalesce(
                segment_base_offset < max(IF(undecoded_at IS NULL, NULL, segment_base_offset)) OVER (PARTITION BY section.replica_log_id),
                false
            ) AS cut_off,
        undecoded_at
    FROM {section_status} section
    -- A text with more such places is not understood behind the 64th: each entry is held against all of them.
    LEFT JOIN (
        SELECT section_id, slice(spans, 1, 64) AS unread_at, get(spans, 64) AS unread_from, array_max(spans) AS last_unread_at, undecoded_at
        FROM (
            SELECT
                section_id, array_sort(collect_list(byte_offset)) AS spans,
                max(IF(reason = 'undecoded_record', byte_offset, NULL)) AS undecoded_at
            FROM {unread_spans}
            GROUP BY section_id
        )
    ) unread ON unread.section_id = section.section_id
    LEFT JOIN {replica_logs} logs ON logs.replica_log_id = section.replica_log_id
    WHERE section.topic = '__transaction_state' AND section.kind = 'log' AND section.is_read AND section.partition IS NOT NULL
),
placed AS (
    SELECT /*+ BROADCAST(sections) */
        entries.* EXCEPT (value_version, size_identity_ok),
        sections.* EXCEPT (section_id, unread_at, unread_from, last_unread_at, cut_off, undecoded_at),
        -- What no decoder could read behind an entry, or what lost its line, may be the next of its id.
        cut_off OR coalesce(undecoded_at > byte_offset, false) OR coalesce(incomplete_to > entry_offset, false) AS cut_off,
        -- The newest text before the entry that was not understood: one number for the shuffle, not all places of the section.
        IF(byte_offset > unread_from, byte_offset, array_max(filter(unread_at, at -> at < byte_offset))) AS unread_before,
        coalesce(last_unread_at > byte_offset, false) AS is_before_unread,
        -- An expired id is written without a value (`TransactionStateManager.removeExpiredTransactionalIds`); here that is a state of its
        -- own.
        IF(entries.tombstone, 'Tombstone', coalesce(entries.status, 'Unknown')) AS state,
        coalesce(entries.partitions, CAST(array() AS ARRAY<STRUCT<topic: STRING, partition: INT>>)) AS listed
    FROM {coordinator_entries} entries
    JOIN sections ON sections.section_id = entries.section_id
),
-- Segments that no cleaner has come to: nothing is missing in them, and an id stands there twice.
untouched AS (
    SELECT section_id, sum(entries) = max(last_offset) - min(first_offset) + 1 AND max(entries) > 1 AS is_untouched
    FROM (
        SELECT section_id, transactional_id, count(1) AS entries, min(entry_offset) AS first_offset, max(entry_offset) AS last_offset
        FROM {coordinator_entries}
        GROUP BY section_id, transactional_id
    )
    GROUP BY section_id
),
together AS (
    -- One shuffle: every window from here on is partitioned by these columns, and more.
    SELECT /*+ REPARTITION(cluster, coordinator_partition), BROADCAST(untouched) */
        placed.*, coalesce(untouched.is_untouched, false) AS is_untouched
    FROM placed
    LEFT JOIN untouched ON untouched.section_id = placed.section_id
),

-- Only the entries of the authority replica of each coordinator partition, with what the log as a whole tells.
in_logs AS (
    SELECT
        *,
        lag(struct(entry_offset, section_id, byte_offset, batch_timestamp_ms, partition_leader_epoch, is_before_unread)) OVER in_log
            AS log_previous,
        row_number() OVER in_log AS place,
        transactional_id IS NOT NULL AND entry_offset > min(entry_offset) OVER of_id AS is_again
    FROM together
    WINDOW
        in_log AS (PARTITION BY cluster, coordinator_partition, replica_log_id ORDER BY entry_offset, section_id, byte_offset),
        of_id AS (PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id)
),
in_sections AS (
    SELECT
        *,
        log_previous.batch_timestamp_ms AS log_previous_batch_ms,
        log_previous.partition_leader_epoch AS log_previous_leader_epoch,
        NOT (section_id <=> log_previous.section_id) AS begins_section
    FROM in_logs
),
behind_holes AS (
    SELECT
        *,
        coalesce(entry_offset > IF(begins_section, segment_base_offset, log_previous.entry_offset + 1), false) AS hole,
        (coalesce(begins_section OR unread_before > log_previous.byte_offset, false) AND unread_before IS NOT NULL)
            OR coalesce(incomplete_from < entry_offset AND (begins_section OR incomplete_to > log_previous.entry_offset), false)
            AS is_behind_unread,
        -- The text of the segment before ends with what was not understood.
        coalesce(begins_section AND segment_base_offset > log_previous.entry_offset + 1 AND log_previous.is_before_unread, false)
            AS is_behind_lost_end
    FROM in_sections
),
behind_cleaner AS (
    SELECT
        *,
        coalesce(max(hole) OVER before, false) AS cleaned,
        coalesce(max(is_again) OVER before, false) AS some_again
    FROM behind_holes
    WINDOW before AS (
        PARTITION BY cluster, coordinator_partition, replica_log_id ORDER BY entry_offset, section_id, byte_offset
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
behind_segments AS (
    -- Offsets missing between two segments are a missing segment where a listing shows one, where no cleaner had come so far, or where
    -- nothing shows the cleaner at work before; else its work. Where text was not understood they stood there. The cleaner leaves one
    -- entry of each id up to where it comes (`Cleaner.shouldRetainRecord`), so offsets missing behind an id that stands there twice are
    -- not its work in this log: the broker had been away, and copied what the cleaner of its leader had left. Of an id it may have an
    -- entry of its own from before, and then one from long after. One entry alone, where nothing else is missing, no cleaner took. Where
    -- the cleaner has stopped at the base of a segment, the entry right before it is the newest of its id up to there, and stays: what is
    -- missing there was cleaned while one segment after the other was dumped.
    SELECT
        *,
        coalesce(
            begins_section AND segment_base_offset > log_previous.entry_offset + 1 AND (
                is_untouched OR is_behind_lost_end OR NOT cleaned
                OR coalesce(missing_below > log_previous.entry_offset, false)
                OR (uncleaned_from IS NOT NULL AND segment_base_offset > greatest(log_previous.entry_offset + 1, uncleaned_from))
            ),
            false
        ) AS lacks_segment,
        hole AND is_behind_unread OR lacks_segment AS is_lost,
        CASE
            WHEN hole AND is_behind_unread THEN entry_offset - IF(begins_section, segment_base_offset, log_previous.entry_offset + 1)
            WHEN lacks_segment THEN segment_base_offset - log_previous.entry_offset - 1
            WHEN some_again AND (cleaned OR entry_offset > log_previous.entry_offset + 2)
                THEN greatest(entry_offset - log_previous.entry_offset - 1, 0)
            ELSE 0
        END AS skipped
    FROM behind_cleaner
),
of_logs AS (
    SELECT
        *,
        -- Behind a missing segment or lost lines a new stretch begins: a step across it is none, and is not judged.
        sum(signum(skipped)) OVER up_to_here AS stretch,
        -- What the cleaner took before the first entry left is no segment that was not dumped.
        least(min(segment_base_offset) OVER log, min(entry_offset) OVER log) AS log_begin,
        max(entry_offset) OVER log AS log_end,
        sum(skipped) OVER log AS log_skipped,
        max(IF(is_lost, entry_offset, NULL)) OVER log AS log_lost_below,
        count(*) OVER log AS log_entries,
        max(partition_leader_epoch) OVER log AS log_epoch,
        max(partition_leader_epoch) OVER (PARTITION BY cluster, coordinator_partition) AS newest_epoch,
        NOT max_by(cut_off, entry_offset) OVER log AS tail_known
    FROM behind_segments
    WINDOW
        up_to_here AS (
            PARTITION BY cluster, coordinator_partition, replica_log_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ),
        log AS (PARTITION BY cluster, coordinator_partition, replica_log_id)
),
beside_newest AS (
    SELECT
        *,
        min(IF(partition_leader_epoch = newest_epoch, entry_offset, NULL)) OVER (PARTITION BY cluster, coordinator_partition) AS newest_from
    FROM of_logs
),
ranked AS (
    SELECT
        *,
        log_end + 1 = log_entries AS log_contiguous,
        struct(
            IF(log_epoch < newest_epoch, least(log_end, newest_from - 1), log_end) - log_begin - log_skipped AS covered,
            log_entries,
            -- It decides nothing but ties, so that every run chooses the same replica.
            -replica_log_id AS tie
        ) AS rank
    FROM beside_newest
),
compared_replicas AS (
    SELECT *, max(rank) OVER (PARTITION BY cluster, coordinator_partition) AS best FROM ranked
),
of_authority AS (
    SELECT /*+ BROADCAST(known) */
        entries.*,
        known.transaction_version,
        known.id_partitions,
        known.transactional_id_expiration_ms,
        known.may_jump,
        known.ends_by_own_version
    FROM (SELECT * FROM compared_replicas WHERE rank = best) entries
    LEFT JOIN known ON known.cluster = entries.cluster
),
