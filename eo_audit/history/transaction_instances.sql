-- Transaction instances: the begin-to-complete runs of the coordinator log, each with its decision and, if aborted, the cause. One row per
-- run.
--
-- coordinator_history   the table
-- clusters              the table, for kafka_version and abort_scan_interval_ms
-- From eo_audit.model.states: commit_states and abort_states (those that tell a decision), expirable_states;
-- from eo_audit.model.abort_cause: restart_within_ms
WITH

known AS (
    SELECT
        cluster,
        abort_scan_interval_ms,
        -- KAFKA-19367: under TV2 this release raises the epoch by two where it fences or times out.
        coalesce(startswith(kafka_version, '4.0.0'), false) AS server_adds_two
    FROM {clusters}
),

-- Each entry with the id's next one, and whether the transaction's time counts from it.
entries AS (
    SELECT
        *,
        IF(tombstone, 'Tombstone', coalesce(status, 'Unknown')) AS state,
        coalesce(origin_status, previous_status) AS went_on_from,
        IF(origin_status IS NOT NULL, origin_partitions, previous_partitions) AS listed_before
    FROM {coordinator_history}
),
linked AS (
    SELECT
        *,
        lead(struct(state, producer_epoch, producer_id, batch_timestamp_ms)) OVER (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY entry_offset
        ) AS following,
        -- An Ongoing that only adds partitions (AddPartitionsToTxn) goes on; the time counts from the one that added to nothing.
        status = 'Ongoing' AND NOT coalesce(
            went_on_from = 'Ongoing'
                AND size(array_except(partitions, listed_before)) > 0
                AND size(array_except(listed_before, partitions)) = 0,
            false
        ) AS opens
    FROM entries
),
in_runs AS (
    SELECT
        cluster, coordinator_partition, replica_log_id, transactional_id, instance_id, entry_offset, state, producer_epoch, partitions,
        start_ms, last_update_ms, opens,
        struct(
            entry_offset, state, producer_id, producer_epoch, partition_leader_epoch, timeout_ms, partitions, start_ms, last_update_ms,
            batch_timestamp_ms, log_previous_batch_ms, went_on_from, head_known, protocol, following, section_id, byte_offset, length
        ) AS entry,
        IF(state = 'Ongoing', entry_offset, NULL) AS ongoing_at,
        IF(state IN ('PrepareCommit', 'PrepareAbort'), entry_offset, NULL) AS prepare_at,
        IF(state IN ('CompleteCommit', 'CompleteAbort'), entry_offset, NULL) AS complete_at
    FROM linked
    WHERE instance_id IS NOT NULL
),

-- One row per run, with its telling entries as structs: picked by their offsets in one pass; no entry is joined with another.
runs AS (
    SELECT
        cluster, coordinator_partition, replica_log_id, transactional_id, instance_id,
        min_by(entry, entry_offset) AS first,
        max_by(entry, entry_offset) AS last,
        max_by(entry, ongoing_at) AS ongoing,
        max_by(struct(state, producer_epoch, partitions), prepare_at) AS last_prepare,
        -- A PrepareX that was written again (its append seemed to fail) was decided when it was first written.
        min_by(entry, IF(state = 'PrepareCommit', entry_offset, NULL)) AS commit,
        min_by(entry, IF(state = 'PrepareAbort', entry_offset, NULL)) AS abort,
        min_by(entry, complete_at) AS complete,
        max_by(producer_epoch, complete_at) AS complete_epoch,
        max_by(start_ms, IF(start_ms >= 0, entry_offset, NULL)) AS printed_start_ms,
        max_by(last_update_ms, IF(opens, entry_offset, NULL)) AS opened_ms
    FROM in_runs
    GROUP BY cluster, coordinator_partition, replica_log_id, transactional_id, instance_id
),
known_runs AS (
    SELECT /*+ BROADCAST(known) */
        runs.*,
        known.abort_scan_interval_ms,
        known.server_adds_two,
        CASE WHEN last_prepare.state = 'PrepareCommit' THEN commit WHEN last_prepare IS NOT NULL THEN abort END AS prepare,
        -- The list that counted: that of the last PrepareX, or while Ongoing, of the last entry; null where neither survived.
        -- CompleteX lists no partitions (`TransactionMetadata.prepareComplete`): where the cleaner took PrepareX, nobody knows them.
        CASE
            WHEN last_prepare IS NOT NULL THEN struct(last_prepare.partitions)
            WHEN ongoing IS NOT NULL THEN struct(ongoing.partitions)
        END AS listing,
        coalesce(printed_start_ms, opened_ms) AS start_ms,
        -- Compaction takes the beginning of a story first: the oldest Ongoing that is left may only have added partitions.
        CASE
            WHEN printed_start_ms IS NOT NULL THEN 'start_ms'
            WHEN opened_ms IS NOT NULL THEN IF(first.head_known, 'first_ongoing', 'upper_bound')
        END AS start_source,
        coalesce(last_prepare.producer_epoch, complete_epoch) AS marker_epoch
    FROM runs
    LEFT JOIN known ON known.cluster = runs.cluster
),
with_next_start AS (
    SELECT
        *,
        coalesce(prepare, complete) AS end,
        lead(start_ms) OVER (
            PARTITION BY cluster, coordinator_partition, replica_log_id, transactional_id ORDER BY first.entry_offset
        ) AS next_start_ms
    FROM known_runs
),
decided AS (
    SELECT
        *,
        CASE WHEN end.state IN {commit_states} THEN 'COMMIT' WHEN end.state IN {abort_states} THEN 'ABORT' END AS decision
    FROM with_next_start
),
described AS (
    SELECT
        *,
        first.producer_id AS producer_id,
        -- The client's. Where the coordinator itself aborts (`TransactionCoordinator.abortTimedOutTransactions`) its entries have the
        -- cluster's transaction.version; an Ongoing in the form that prints a start prints the client's.
        IF(ongoing.start_ms IS NOT NULL, ongoing.protocol, last.protocol) AS protocol,
        -- The epoch of the data; where no Ongoing survived, read from the entry that ended the run, null where that cannot tell.
        CASE
            WHEN ongoing IS NOT NULL THEN ongoing.producer_epoch
            -- KIP-890: every EndTxn raises the epoch by one. Before, a commit keeps it, and an abort may be a fence: nothing tells.
            WHEN last.protocol = 'tv2' AND marker_epoch > 0 THEN marker_epoch - 1
            WHEN last.protocol = 'tv0' AND decision = 'COMMIT' THEN marker_epoch
        END AS data_epoch,
        IF(ongoing IS NOT NULL, ongoing.timeout_ms, last.timeout_ms) AS timeout_ms,
        last.following.state AS next_status,
        last.following.producer_epoch AS next_epoch,
        last.following.batch_timestamp_ms AS next_at_ms,
        complete.batch_timestamp_ms AS completed_at_ms,
        -- KIP-890: a client may abort where it has added nothing, and then PrepareAbort follows Empty or CompleteX.
        coalesce(abort.went_on_from IN {expirable_states}, false) AS nothing_open,
        CAST(abort.producer_epoch AS BIGINT) - ongoing.producer_epoch AS epochs_raised
    FROM decided
),

-- Why was a transaction aborted: the procedure of eo_audit.model.abort_cause, whose words these are: cause, certainty and alternatives.
timed AS (
    SELECT
        *,
        abort.last_update_ms - start_ms - timeout_ms AS over,
        coalesce(next_status = 'Empty' AND next_at_ms - completed_at_ms <= {restart_within_ms}, false) AS restarted
    FROM described
),
with_deadline AS (
    SELECT
        *,
        -- How long after the deadline; null where that cannot be told.
        IF(start_source <> 'upper_bound' OR over >= 0, over, NULL) AS over_ms
    FROM timed
),
with_delays AS (
    SELECT
        *,
        -- Timeouts are found by a scan: late only where nobody was there to scan. The id's partition had moved to another leader, or wrote
        -- nothing since the deadline.
        ongoing.partition_leader_epoch <> coalesce(abort.partition_leader_epoch, -1)
            OR abort.log_previous_batch_ms <= abort.last_update_ms - over_ms AS nobody_scanned
    FROM with_deadline
),
after_deadline AS (
    -- At or after the deadline; `or_client`: where the epoch does not rule out the client's abort.
    -- transaction.abort.timed.out.transaction.cleanup.interval.ms: the scan comes by within that time.
    SELECT
        *,
        CASE
            WHEN restarted THEN 'timeout_or_fence open coordinator_timeout fenced_by_init'
            WHEN over_ms <= abort_scan_interval_ms THEN 'coordinator_timeout definite'
            WHEN nobody_scanned THEN 'coordinator_timeout likely fenced_by_init'
            ELSE 'timeout_or_fence open coordinator_timeout fenced_by_init'
        END AS late,
        CASE
            WHEN restarted THEN 'timeout_or_fence open coordinator_timeout fenced_by_init client_abort'
            WHEN over_ms <= abort_scan_interval_ms THEN 'coordinator_timeout likely client_abort'
            WHEN nobody_scanned THEN 'coordinator_timeout likely fenced_by_init client_abort'
            ELSE 'timeout_or_fence open coordinator_timeout fenced_by_init client_abort'
        END AS late_or_client
    FROM with_delays
),
by_protocol AS (
    SELECT
        *,
        CASE
            -- KIP-360: a client that met an error it can recover from aborts, and asks for the next epoch at once.
            WHEN epochs_raised = 0 AND restarted AND next_epoch = abort.producer_epoch + 1
                THEN 'client_abort_with_epoch_bump likely client_abort'
            WHEN epochs_raised = 0 THEN 'client_abort definite'
            WHEN over_ms IS NULL THEN 'timeout_or_fence open fenced_by_init coordinator_timeout'
            -- Both times are the coordinator's, so no clocks are compared: before the deadline only InitProducerId raises the epoch.
            WHEN over_ms < 0 THEN 'fenced_by_init definite'
            ELSE late
        END AS by_old_protocol,
        CASE
            WHEN server_adds_two AND epochs_raised = 1 THEN 'client_abort definite'
            WHEN over_ms IS NULL AND epochs_raised = 2 THEN 'timeout_or_fence open fenced_by_init coordinator_timeout'
            WHEN over_ms IS NULL THEN 'unknown open client_abort fenced_by_init coordinator_timeout'
            WHEN over_ms >= 0 AND epochs_raised = 2 THEN late
            WHEN over_ms >= 0 THEN late_or_client
            WHEN epochs_raised = 2 THEN 'fenced_by_init definite'
            WHEN restarted THEN 'fenced_by_init likely client_abort'
            -- A client that ended its transaction itself got the raised epoch with the answer, and begins the next with it.
            WHEN next_status = 'Ongoing' AND next_epoch = abort.producer_epoch THEN 'client_abort definite'
            ELSE 'client_abort likely fenced_by_init'
        END AS by_new_protocol,
        CASE
            WHEN over_ms IS NULL THEN 'unknown open client_abort fenced_by_init coordinator_timeout'
            WHEN over_ms >= 0 THEN late_or_client
            WHEN restarted THEN 'fenced_by_init likely client_abort'
            ELSE 'unknown open client_abort fenced_by_init'
        END AS by_either_protocol
    FROM after_deadline
),
explained AS (
    SELECT
        *,
        -- One text for three columns: apart, each of them would bring the whole decision into the plan.
        split(
            CASE
                WHEN NOT decision <=> 'ABORT' THEN NULL
                WHEN abort.last_update_ms IS NULL THEN 'unknown open'
                WHEN nothing_open AND protocol <> 'tv0' THEN 'empty_client_abort definite'
                WHEN epochs_raised IS NULL THEN 'unknown open client_abort fenced_by_init coordinator_timeout'
                WHEN protocol = 'tv0' OR epochs_raised = 0 THEN by_old_protocol
                WHEN protocol = 'tv2' THEN by_new_protocol
                ELSE by_either_protocol
            END,
            ' '
        ) AS why
    FROM by_protocol
)

SELECT
    instance_id, cluster, coordinator_partition, replica_log_id, transactional_id, producer_id,
    data_epoch, marker_epoch, protocol, start_ms, start_source, timeout_ms,
    coalesce(listing.partitions, CAST(array() AS ARRAY<STRUCT<topic: STRING, partition: INT>>)) AS partitions,
    listing IS NOT NULL AS partitions_complete,
    first.entry_offset AS first_entry_offset,
    last.state AS last_status,
    decision,
    end.last_update_ms AS decided_at_ms,
    prepare.entry_offset AS prepare_offset,
    prepare.partition_leader_epoch AS prepare_leader_epoch,
    completed_at_ms,
    complete.entry_offset AS complete_offset,
    complete.partition_leader_epoch AS complete_leader_epoch,
    next_status, next_epoch,
    last.following.producer_id AS next_producer_id,
    next_at_ms, next_start_ms,
    last.following IS NULL AS is_last,
    ongoing.producer_epoch AS ongoing_epoch,
    get(why, 0) AS abort_cause,
    get(why, 1) AS abort_cause_certainty,
    slice(why, 3, 9) AS abort_cause_alternatives,
    first.section_id AS section_id, first.byte_offset AS byte_offset, first.length AS length,
    last.section_id AS last_section_id, last.byte_offset AS last_byte_offset, last.length AS last_length
FROM explained
