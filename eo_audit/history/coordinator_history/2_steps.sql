-- Each entry beside the one before it of its id: which protocol wrote it, whether the step from there is legal, what of its fields changed
-- that may not.

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
        lead(struct(producer_id, stretch)) OVER in_id AS entry_behind,
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
        * EXCEPT (tail_known),
        -- What a producer did before a hole behind which its id goes on with another one, or is gone, is told nowhere.
        tail_known AND NOT coalesce(entry_behind.stretch <> stretch AND NOT entry_behind.producer_id <=> producer_id, false) AS tail_known,
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
with_beginnings AS (
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
        -- for those before it. A fence or a timeout is written by the version of the cluster, and tells nothing of the client: 4.0.0 raises
        -- the epoch by two there (KAFKA-19367), as no old protocol does.
        coalesce(
            IF(ends_by_own_version AND state = 'PrepareAbort' AND raised = 2, 'tv2', NULL),
            last(evidence) IGNORE NULLS OVER up_to_here,
            first(evidence) IGNORE NULLS OVER whole_id,
            CASE WHEN transaction_version < 2 THEN 'tv0' WHEN transaction_version = 2 THEN 'tv2' ELSE 'unknown' END
        ) AS protocol
    FROM with_beginnings
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
        concat(protocol, '>', pair) IN {legal_steps}
            -- KIP-890: EndTxn(ABORT) with nothing open has no partitions.
            AND NOT (state = 'PrepareAbort' AND previous.state IN {expirable_states} AND size(listed) > 0) AS is_legal,
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
with_field_changes AS (
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
