-- What the transaction coordinator wrote, id by id: every entry with its predecessor, its legality and its transaction.
--
-- `__transaction_state` is replicated like any log, and one replica of each partition is enough: the authority is the one whose dumps cover
-- most offsets without a missing segment. The others are compared with it elsewhere, never merged. The words that come out are those of
-- eo_audit.model.coordinator, and a test holds both against each other row by row.
--
-- coordinator_entries   the table, all replicas
-- section_status        the table: which sections are read, and where they lie
-- clusters              the table, for transaction_version, kafka_version, id_partitions and transactional_id_expiration_ms
-- unread_spans          the table
-- The law, from eo_audit.model.states; a step is `before>after` of two states, with what must be so beside it:
-- known_states, transient_states, run_states (those of a transaction), expirable_states
-- continuing_steps      before>after within one transaction
-- legal_steps           protocol>before>after
-- epoch_steps           protocol>so much higher; of_commit: of a PrepareCommit, most_of_commit: or less
-- ghosts                before>after>protocol>so much higher, by the one more thing that is asked: any, restarted, same_payload, forgotten
-- largest_epoch_step, ghosts_in_sight, fence_jumps_below_major, fence_jumps_below_minor: numbers
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
        ) AS may_jump
    FROM releases
),

-- The entries of sections that are read, with cluster, partition and segment.
sections AS (
    SELECT /*+ BROADCAST(unread) */
        section.section_id, cluster, partition AS coordinator_partition, segment_base_offset, incomplete_from, incomplete_to,
        unread.unread_at, unread.unread_from,
        -- Up to 2.4.0 the dump tool dies at the first tombstone (KAFKA-9293): what follows was never printed. Of a later segment a decoder
        -- may have read nothing.
        end_reason IN ('truncated', 'exception')
            OR coalesce(
                segment_base_offset < max(IF(undecoded_at IS NULL, NULL, segment_base_offset)) OVER (PARTITION BY replica_log_id), false
            ) AS cut_off,
        undecoded_at
    FROM {section_status} section
    -- A text with more such places is not understood behind the 64th: each entry is held against all of them.
    LEFT JOIN (
        SELECT section_id, slice(spans, 1, 64) AS unread_at, get(spans, 64) AS unread_from, undecoded_at
        FROM (
            SELECT
                section_id, array_sort(collect_list(byte_offset)) AS spans,
                max(IF(reason = 'undecoded_record', byte_offset, NULL)) AS undecoded_at
            FROM {unread_spans}
            GROUP BY section_id
        )
    ) unread ON unread.section_id = section.section_id
    WHERE topic = '__transaction_state' AND kind = 'log' AND is_read AND partition IS NOT NULL
),
placed AS (
    SELECT /*+ BROADCAST(sections) */
        entries.* EXCEPT (value_version, size_identity_ok),
        sections.* EXCEPT (section_id, unread_at, unread_from, cut_off, undecoded_at),
        -- What no decoder could read behind an entry, or what lost its line, may be the next of its id.
        cut_off OR coalesce(undecoded_at > byte_offset, false) OR coalesce(incomplete_to > entry_offset, false) AS cut_off,
        -- The newest text before the entry that was not understood: one number for the shuffle, not all places of the section.
        IF(byte_offset > unread_from, byte_offset, array_max(filter(unread_at, at -> at < byte_offset))) AS unread_before,
        -- An expired id is written without a value (`TransactionStateManager.removeExpiredTransactionalIds`); here that is a state of its
        -- own.
        IF(entries.tombstone, 'Tombstone', coalesce(entries.status, 'Unknown')) AS state,
        coalesce(entries.partitions, CAST(array() AS ARRAY<STRUCT<topic: STRING, partition: INT>>)) AS listed
    FROM {coordinator_entries} entries
    JOIN sections ON sections.section_id = entries.section_id
),
together AS (
    -- One shuffle: every window from here on is partitioned by these columns, and more.
    SELECT /*+ REPARTITION(cluster, coordinator_partition) */ * FROM placed
),

-- Only the entries of the authority replica of each coordinator partition, with what the log as a whole tells.
in_logs AS (
    SELECT
        *,
        lag(struct(entry_offset, section_id, byte_offset, batch_timestamp_ms, partition_leader_epoch)) OVER in_log AS log_previous,
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
            AS is_behind_unread
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
    -- Offsets missing between two segments are a missing segment where nothing shows the cleaner at work before, else its work. Where text
    -- was not understood they stood there. The cleaner leaves one entry of each id up to where it comes (`Cleaner.shouldRetainRecord`), so
    -- offsets missing behind an id that stands there twice are not its work in this log: the broker had been away, and copied what the
    -- cleaner of its leader had left. Of an id it may have an entry of its own from before, and then one from long after. One entry alone,
    -- where nothing else is missing, no cleaner took.
    SELECT
        *,
        hole AND is_behind_unread AS is_lost,
        CASE
            WHEN hole AND is_behind_unread THEN entry_offset - IF(begins_section, segment_base_offset, log_previous.entry_offset + 1)
            WHEN begins_section AND segment_base_offset > log_previous.entry_offset + 1 AND NOT cleaned
                THEN segment_base_offset - log_previous.entry_offset - 1
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
        min(entry_offset) OVER log AS log_begin,
        max(entry_offset) OVER log AS log_end,
        sum(skipped) OVER log AS log_skipped,
        max(IF(is_lost, entry_offset, NULL)) OVER log AS log_lost_below,
        count(*) OVER log AS log_entries,
        NOT max_by(cut_off, entry_offset) OVER log AS tail_known
    FROM behind_segments
    WINDOW
        up_to_here AS (
            PARTITION BY cluster, coordinator_partition, replica_log_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ),
        log AS (PARTITION BY cluster, coordinator_partition, replica_log_id)
),
ranked AS (
    SELECT
        *,
        log_end + 1 = log_entries AS log_contiguous,
        -- The last field decides nothing but ties, so that every run chooses the same replica.
        struct(log_end - log_begin - log_skipped AS covered, log_entries, -replica_log_id AS tie) AS rank
    FROM of_logs
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
        known.may_jump
    FROM (SELECT * FROM compared_replicas WHERE rank = best) entries
    LEFT JOIN known ON known.cluster = entries.cluster
),

-- Each entry beside the id's previous one, and the newest earlier one with a value. Windows, and no replay of each id in Python: 5 million
-- entries of 100,000 ids took 5 s with `lag`, 78 s with `applyInPandas` (two cores).
in_stories AS (
    SELECT
        *,
        lag(struct(
            state, producer_id, producer_epoch, timeout_ms, listed, last_update_ms, start_ms, partition_leader_epoch, entry_offset, stretch,
            section_id, byte_offset, length
        )) OVER in_id AS entry_before,
        lead(false, 1, true) OVER in_id AS is_last,
        -- Where the append of a tombstone failed the id is still in memory, and goes on from here.
        last(IF(NOT tombstone, struct(state, producer_id, stretch), NULL)) IGNORE NULLS OVER before AS value_before
    FROM of_authority
    WINDOW
        in_id AS (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset, section_id, byte_offset
        ),
        before AS (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
beside AS (
    -- Null after a missing segment.
    SELECT
        *,
        IF(entry_before.stretch = stretch, entry_before, NULL) AS previous,
        IF(value_before.stretch = stretch, value_before, NULL) AS alive
    FROM in_stories
),
-- What the law asks about an entry and its predecessor.
compared AS (
    SELECT
        *,
        concat(previous.state, '>', state) AS pair,
        CAST(producer_epoch AS BIGINT) - previous.producer_epoch AS raised,
        size(array_except(listed, previous.listed)) AS added,
        size(array_except(previous.listed, listed)) AS removed,
        producer_id <=> previous.producer_id AS same_producer,
        start_ms <> previous.start_ms AS new_start,  -- null where one of them is not printed
        state IN {run_states} AS in_run,
        state IN ('PrepareCommit', 'PrepareAbort') AS is_prepare,
        state IN ('CompleteCommit', 'CompleteAbort') AS is_complete,
        -- Once for each id, and once more behind a missing segment: an id has many entries, and its hash costs more than all else of them.
        IF(previous IS NULL, hex(encode(transactional_id, 'UTF-16BE')), NULL) AS digits
    FROM beside
),
features AS (
    SELECT
        *,
        coalesce(pair IN {continuing_steps}, false) AS continues,
        is_prepare AND previous.state = 'Ongoing' AS ended,
        -- A tool that prints the start prints every field: without clientTransactionVersion the value is of version 0, which no TV2 client
        -- gets.
        start_ms IS NOT NULL AND state NOT IN ('Empty', 'Tombstone') AS printed,
        CAST(partition_of(java_hash(digits), id_partitions) AS INT) AS home_partition
    FROM compared
),
begun AS (
    SELECT
        *,
        -- Whether a transaction begins with this entry.
        in_run AND (NOT continues OR (NOT same_producer AND NOT is_complete)) AS begins,
        -- What an entry itself tells about its protocol: tv0, tv2 or null.
        CASE
            WHEN client_transaction_version >= 2 THEN 'tv2'
            WHEN transaction_version < 2 OR printed THEN 'tv0'
            WHEN ended AND raised = 0 THEN 'tv0'
            -- An abort with one more may be a fence or a timeout of the old protocol, a commit is KIP-890.
            WHEN ended AND raised = 1 AND state = 'PrepareCommit' THEN 'tv2'
        END AS evidence
    FROM features
),
with_protocol AS (
    SELECT
        *,
        -- A client is upgraded between two transactions: what an entry tells counts from there on, and the first that tells anything counts
        -- for those before it.
        coalesce(
            last(evidence) IGNORE NULLS OVER up_to_here,
            first(evidence) IGNORE NULLS OVER whole_id,
            CASE WHEN transaction_version < 2 THEN 'tv0' WHEN transaction_version = 2 THEN 'tv2' ELSE 'unknown' END
        ) AS protocol
    FROM begun
    WINDOW
        up_to_here AS (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ),
        whole_id AS (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
),

-- The tables of the law, looked up.
looked_up AS (
    SELECT
        *,
        concat(protocol, '>', pair) IN {legal_steps} AS is_legal,
        -- `writeTombstonesForExpiredTransactionalIds` takes an id out of memory when its tombstone was acknowledged; else it stays there,
        -- and goes on under its old producer id.
        alive.producer_id <=> producer_id AND concat(protocol, '>', alive.state, '>', state) IN {legal_steps} AS survived,
        concat_ws('>', pair, protocol, CAST(raised AS STRING)) AS ghost,
        -- No mere extension; and a shorter list with the very same start has no failed append behind it.
        coalesce(new_start, false)
            OR (NOT (added > 0 AND removed = 0) AND NOT (removed > 0 AND added = 0 AND new_start IS NOT NULL)) AS is_restarted,
        added + removed = 0
            AND previous.timeout_ms <=> timeout_ms
            AND previous.last_update_ms <=> last_update_ms
            AND previous.start_ms <=> start_ms AS is_same_payload,
        -- A commit keeps the epoch, or raises it by one (KIP-890): only a fence raises it further.
        state = 'PrepareCommit' AND NOT concat(protocol, '>', CAST(raised AS STRING)) IN {epoch_steps_most_of_commit}
            AS is_too_high_for_commit,
        -- KAFKA-9666 (before 2.6): every fence that failed raised the epoch in memory once more.
        (may_jump AND protocol <> 'tv2' AND state = 'PrepareAbort')
            OR concat(protocol, '>', CAST(raised AS STRING)) IN {epoch_steps} AS is_allowed_epoch
    FROM with_protocol
),
with_ghosts AS (
    SELECT
        *,
        same_producer AND (
            ghost IN {ghosts_any}
            OR (ghost IN {ghosts_restarted} AND is_restarted)
            OR (ghost IN {ghosts_same_payload} AND is_same_payload)
            OR (ghost IN {ghosts_forgotten} AND size(listed) = 0)
        ) AS is_ghost_beside
    FROM looked_up
),
stepped AS (
    SELECT
        *,
        -- The step and, where it is illegal, the reason behind a blank.
        CASE
            WHEN state IN {transient_states} THEN 'illegal transient_state'
            WHEN state NOT IN {known_states} THEN 'illegal unknown_state'
            WHEN previous.state IS NULL OR previous.state NOT IN {known_states} THEN 'first'
            WHEN previous.state = 'Tombstone' AND state <> 'Tombstone' THEN CASE
                WHEN survived OR (alive IS NULL AND state <> 'Empty') THEN 'ghost'
                WHEN state = 'Empty' THEN 'legal'
                ELSE 'illegal not_in_table'
            END
            WHEN is_ghost_beside THEN 'ghost'
            WHEN is_legal THEN 'legal'
            -- `TransactionState.isExpirationAllowed`: only Empty, CompleteCommit and CompleteAbort expire.
            WHEN state = 'Tombstone' THEN 'illegal tombstone_while_open'
            -- KAFKA-10080 wrote a completion twice; written again unchanged it is a retry, and was a ghost above.
            WHEN is_complete AND previous.state = state THEN 'illegal double_complete'
            ELSE 'illegal not_in_table'
        END AS judged,
        CASE
            WHEN raised IS NULL THEN 'not_judged'
            WHEN same_producer AND raised < 0 THEN 'regression'
            WHEN same_producer AND is_too_high_for_commit THEN 'jump'
            WHEN same_producer AND is_allowed_epoch THEN 'ok'
            WHEN same_producer THEN 'jump'
            -- Another producer id, by rotation or a second birth, begins at epoch 0.
            WHEN producer_epoch = 0 THEN 'ok'
            ELSE 'pid_change_epoch_not_zero'
        END AS epoch_step
    FROM with_ghosts
),
judged AS (
    SELECT
        *,
        -- The first field that changed and may not, for a step that is legal by its states.
        CASE
            WHEN NOT (judged = 'legal' AND epoch_step IN ('ok', 'not_judged')) THEN NULL
            WHEN pair IS NOT NULL AND state = 'Empty' AND size(listed) > 0 THEN 'empty_partitions'
            -- What `TransactionMetadata.completeTransitionTo` refuses; InitProducerId, which writes Empty, may change all else.
            WHEN pair IS NULL OR state IN ('Empty', 'Tombstone') OR previous.state = 'Tombstone' THEN NULL
            WHEN NOT (previous.timeout_ms <=> timeout_ms) THEN 'timeout'
            WHEN pair = 'Ongoing>Ongoing' AND removed > 0 THEN 'partitions_shrank'
            WHEN is_prepare AND continues AND added + removed > 0 THEN 'prepare_partitions'
            WHEN continues AND new_start THEN 'start'
            WHEN is_complete AND size(listed) > 0 THEN 'complete_partitions'
            WHEN (state = 'Ongoing' OR is_complete) AND same_producer AND NOT (previous.producer_epoch <=> producer_epoch) THEN 'epoch'
        END AS field_change,
        coalesce(
            previous IS NOT NULL
                -- Every offset from 0 to here holds an entry: no cleaner has taken one of this id.
                OR entry_offset = place - 1
                -- `TransactionCoordinator.handleInitProducerId`: an id that it does not know begins Empty, with a new producer id and
                -- epoch 0.
                OR (state = 'Empty' AND producer_epoch = 0),
            false
        ) AS head_known
    FROM stepped
),

-- Entries whose append failed and which stayed in the coordinator log: where does one go on that its neighbour does not explain? The law
-- is that of eo_audit.model.coordinator: the newest entry from which this one and every entry between them can have come. Only ids with an
-- entry that its neighbour does not explain are looked at closer; all others carry nothing along.
odd_entries AS (
    SELECT
        *,
        previous IS NOT NULL AND NOT (
            judged = 'first' OR (judged = 'legal' AND epoch_step IN ('ok', 'not_judged') AND field_change IS NULL)
        ) AS odd
    FROM judged
),
odd_ids AS (
    SELECT
        *,
        max(odd) OVER (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS id_is_odd
    FROM odd_entries
),
with_sight AS (
    SELECT
        *,
        -- Arrays of entries only in ids that have an odd one: they would be the largest column of all.
        collect_list(IF(
            id_is_odd,
            struct(
                state, producer_id, producer_epoch, timeout_ms, listed, last_update_ms, start_ms, entry_offset, protocol,
                batch_timestamp_ms, head_known, stretch
            ),
            NULL
        )) OVER (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN {ghosts_in_sight} PRECEDING AND CURRENT ROW
        ) AS in_sight
    FROM odd_ids
),
chained AS (
    SELECT
        *,
        -- A completion behind a completion is written again unchanged, or wrong (KAFKA-10080): none is a step from before.
        -- Behind a missing segment nothing is a neighbour, so what lies before it is no origin either.
        IF(
            odd AND NOT (is_complete AND coalesce(previous.state IN ('CompleteCommit', 'CompleteAbort'), false)),
            filter(in_sight, entry -> entry.stretch = stretch),
            NULL
        ) AS chain
    FROM with_sight
),
-- All in sight can have come from one entry that was compacted away: an open transaction, or none.
with_unseen AS (
    SELECT
        *,
        get(chain, 0) AS oldest,
        coalesce(
            get(filter(chain, entry -> entry.state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')), 0), get(chain, 0)
        ) AS of_transaction,
        coalesce(array_min(transform(chain, entry -> entry.producer_epoch)), 0) AS lowest_epoch,
        -- AddPartitionsToTxn only adds, so what they all went on from listed no more than all of them have.
        aggregate(chain, get(chain, 0).listed, (kept, entry) -> array_intersect(kept, entry.listed)) AS common
    FROM chained
),
-- What the entry may have gone on from: an entry in sight, the neighbour apart, or one that is not seen. `next` is the place in the chain
-- from which on all must have come from it.
with_starts AS (
    SELECT
        *,
        IF(
            chain IS NULL,
            NULL,
            concat(
                transform(
                    slice(chain, 1, size(chain) - 2),
                    (entry, i) -> struct(
                        entry.state, entry.producer_id, entry.producer_epoch, entry.timeout_ms, entry.listed, entry.last_update_ms,
                        entry.start_ms, entry.entry_offset, i + 2 AS next
                    )
                ),
                IF(
                    oldest.head_known,
                    array(),
                    flatten(transform(
                        filter(sequence(0, {largest_epoch_step}), raised -> raised <= lowest_epoch),
                        raised -> array(
                            struct(
                                'Ongoing' AS state, of_transaction.producer_id, lowest_epoch - raised AS producer_epoch,
                                of_transaction.timeout_ms, common AS listed, oldest.last_update_ms, of_transaction.start_ms,
                                CAST(NULL AS BIGINT) AS entry_offset, 1 AS next
                            ),
                            struct(
                                'CompleteCommit' AS state, of_transaction.producer_id, lowest_epoch - raised AS producer_epoch,
                                of_transaction.timeout_ms, slice(common, 1, 0) AS listed, oldest.last_update_ms, of_transaction.start_ms,
                                CAST(NULL AS BIGINT) AS entry_offset, 1 AS next
                            )
                        )
                    ))
                )
            )
        ) AS starts
    FROM with_unseen
),
-- `TransactionStateManager.appendTransactionToLog` changes memory when the append was acknowledged. One that timed out, or had too few
-- replicas, leaves its record in the log, and the next record is made from the state before: from what a coordinator remembers as `start`
-- it writes every `entry`.
with_fitting AS (
    SELECT
        *,
        filter(
            starts,
            start ->
                -- A tombstone needs an id that was idle for transactional.id.expiration.ms.
                (
                    state <> 'Tombstone'
                    OR coalesce(batch_timestamp_ms - start.last_update_ms >= transactional_id_expiration_ms, false)
                )
                AND forall(
                    slice(chain, start.next, size(chain)),
                    entry -> exists(
                        array(struct(
                            concat(start.state, '>', entry.state) AS pair,
                            entry.producer_epoch - start.producer_epoch AS raised,
                            start.producer_id <=> entry.producer_id AS same_producer
                        )),
                        step ->
                            concat(entry.protocol, '>', step.pair) IN {legal_steps}
                            -- A producer id changes with Empty, and with CompleteX where the epochs ran out (KIP-890), never inside a
                            -- transaction.
                            AND (step.same_producer OR entry.state NOT IN ('Ongoing', 'PrepareCommit', 'PrepareAbort'))
                            -- `TransactionMetadata.prepareAddPartitions`: the entry that begins a transaction has one time as its start and
                            -- its last update.
                            AND NOT coalesce(
                                start.state IN {expirable_states}
                                    AND entry.state IN ('Ongoing', 'PrepareAbort')
                                    AND entry.start_ms <> entry.last_update_ms,
                                false
                            )
                            AND (
                                entry.state <> 'PrepareCommit'
                                OR step.raised IS NULL
                                OR concat(entry.protocol, '>', CAST(step.raised AS STRING)) IN {epoch_steps_of_commit}
                            )
                            AND CASE
                                WHEN step.raised IS NULL THEN true
                                WHEN NOT step.same_producer THEN entry.producer_epoch = 0
                                ELSE step.raised >= 0 AND (
                                    (may_jump AND entry.protocol <> 'tv2' AND entry.state = 'PrepareAbort')
                                    OR concat(entry.protocol, '>', CAST(step.raised AS STRING)) IN {epoch_steps}
                                )
                            END
                            -- No field changed that may not: what `TransactionMetadata.completeTransitionTo` refuses.
                            AND NOT (entry.state = 'Empty' AND size(entry.listed) > 0)
                            AND (
                                entry.state IN ('Empty', 'Tombstone')
                                OR start.state = 'Tombstone'
                                OR (
                                    start.timeout_ms <=> entry.timeout_ms
                                    AND (step.pair <> 'Ongoing>Ongoing' OR size(array_except(start.listed, entry.listed)) = 0)
                                    AND NOT (
                                        entry.state IN ('PrepareCommit', 'PrepareAbort')
                                        AND step.pair IN {continuing_steps}
                                        AND size(array_except(entry.listed, start.listed))
                                            + size(array_except(start.listed, entry.listed)) > 0
                                    )
                                    AND NOT coalesce(step.pair IN {continuing_steps} AND start.start_ms <> entry.start_ms, false)
                                    AND NOT (entry.state IN ('CompleteCommit', 'CompleteAbort') AND size(entry.listed) > 0)
                                    AND NOT (
                                        entry.state IN ('Ongoing', 'CompleteCommit', 'CompleteAbort')
                                        AND step.same_producer
                                        AND NOT (start.producer_epoch <=> entry.producer_epoch)
                                    )
                                )
                            )
                    )
                )
        ) AS fitting
    FROM with_starts
),
with_origin AS (
    SELECT
        *,
        coalesce(size(fitting) > 0, false) AS is_ghost,
        -- The newest of them that is in sight: each append that failed is one more thing to believe.
        try_element_at(filter(fitting, start -> start.next > 1), -1) AS found
    FROM with_fitting
),
rejudged AS (
    SELECT
        * EXCEPT (judged, epoch_step, field_change, begins),
        CASE
            WHEN is_ghost THEN 'ghost'
            -- KAFKA-10080: a completion once more, unchanged, when the id's next transaction had begun.
            WHEN judged = 'illegal not_in_table' AND is_complete AND exists(
                chain,
                entry -> entry.entry_offset < entry_offset
                    AND entry.state = state
                    AND entry.producer_id <=> producer_id
                    AND entry.producer_epoch <=> producer_epoch
                    AND entry.last_update_ms <=> last_update_ms
            ) THEN 'illegal double_complete'
            ELSE judged
        END AS judged,
        CASE WHEN NOT is_ghost THEN epoch_step WHEN producer_epoch IS NULL THEN 'not_judged' ELSE 'ok' END AS epoch_step,
        IF(is_ghost, NULL, field_change) AS field_change,
        -- Judged anew with the entry it goes on from: it belongs to that one's transaction, not to one that the lost neighbour began.
        begins AND (
            found IS NULL
            OR NOT coalesce(concat(found.state, '>', state) IN {continuing_steps}, false)
            OR (NOT (found.producer_id <=> producer_id) AND NOT is_complete)
        ) AS begins,
        CASE
            WHEN found IS NOT NULL THEN struct(found.entry_offset, found.state, found.listed)
            WHEN NOT odd AND previous IS NOT NULL THEN struct(previous.entry_offset, previous.state, previous.listed)
        END AS origin,
        CASE
            WHEN is_ghost THEN transform(
                filter(
                    chain,
                    entry -> entry.entry_offset < entry_offset AND (found IS NULL OR entry.entry_offset > found.entry_offset)
                ),
                entry -> entry.entry_offset
            )
            WHEN judged = 'ghost' THEN array(previous.entry_offset)
        END AS uncounted
    FROM with_origin
),
in_runs AS (
    SELECT
        *,
        last(IF(begins, entry_offset, NULL)) IGNORE NULLS OVER (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset, section_id, byte_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS begin
    FROM rejudged
)

SELECT
    cluster, coordinator_partition, replica_log_id, section_id, byte_offset, length,
    entry_offset, partition_leader_epoch, batch_timestamp_ms, transactional_id, tombstone,
    producer_id, previous_producer_id, next_producer_id, producer_epoch, timeout_ms, status, partitions, last_update_ms, start_ms,
    client_transaction_version, protocol,
    previous.entry_offset AS previous_offset,
    previous.state AS previous_status,
    previous.producer_id AS previous_pid,
    previous.producer_epoch AS previous_epoch,
    previous.last_update_ms AS previous_last_update_ms,
    previous.start_ms AS previous_start_ms,
    previous.timeout_ms AS previous_timeout_ms,
    previous.partition_leader_epoch AS previous_leader_epoch,
    previous.listed AS previous_partitions,
    previous.section_id AS previous_section_id,
    previous.byte_offset AS previous_byte_offset,
    previous.length AS previous_length,
    origin.entry_offset AS origin_offset,
    origin.state AS origin_status,
    origin.listed AS origin_partitions,
    uncounted,
    substring_index(judged, ' ', 1) AS step,
    get(split(judged, ' '), 1) AS step_reason,
    epoch_step, field_change,
    IF(
        in_run,
        concat_ws('/', cluster, CAST(coordinator_partition AS STRING), transactional_id, CAST(begin AS STRING)),
        NULL
    ) AS instance_id,
    is_last, head_known, tail_known, log_contiguous, log_lost_below, log_previous_batch_ms, log_previous_leader_epoch, home_partition
FROM in_runs
