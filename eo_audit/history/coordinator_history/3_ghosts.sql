-- Entries whose append failed and which stayed in the coordinator log: where does one go on that its neighbour does not explain? The law
-- is that of eo_audit.model.coordinator: the newest entry from which this one and every entry between them can have come. Only ids with an
-- entry that its neighbour does not explain are looked at closer; all others carry nothing along.
odd_entries AS (
    SELECT
        *,
        previous IS NOT NULL AND NOT (
            judged = 'first' OR (judged = 'legal' AND epoch_step IN ('ok', 'not_judged') AND field_change IS NULL)
        ) AS odd
    FROM with_field_changes
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
                            AND NOT (entry.state = 'PrepareAbort' AND start.state IN {expirable_states} AND size(entry.listed) > 0)
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
