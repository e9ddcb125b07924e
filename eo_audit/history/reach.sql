-- How far the story of each producer id in the coordinator's log is known. The end of the log may be missing though the text ends as it
-- should: a snapshot tells how far the log went. One row per producer id that has an entry.
--
-- coordinator_history   the table
-- coordinator_logs      what `reach.coordinator_logs` returns: a row for each replica of a partition of `__transaction_state`, 50 by
--                       default (transaction.state.log.num.partitions)
-- cut_logs              what `cut_logs.cut_logs` returns
WITH

entries_of_logs AS (
    SELECT /*+ BROADCAST(cuts) */
        entries.* EXCEPT (replica_log_id),
        entries.replica_log_id AS coordinator_log_id,
        coalesce(cuts.is_cut, false) AS is_cut
    FROM {coordinator_history} entries
    LEFT JOIN {cut_logs} cuts ON cuts.coordinator_log_id = entries.replica_log_id
),
newest_of_logs AS (
    SELECT
        coordinator_log_id,
        -- Not the highest: where two histories of the partition are mixed in one log (R05), the last entry tells how far this one goes.
        max_by(partition_leader_epoch, entry_offset) AS newest_epoch,
        max_by(batch_timestamp_ms, entry_offset) AS newest_at_ms,
        -- The clock of an older leader, or of one that was set back, may show a later time than the log's last entry.
        max(struct(partition_leader_epoch AS epoch, batch_timestamp_ms AS at_ms)).at_ms AS latest_ms
    FROM entries_of_logs
    GROUP BY coordinator_log_id
),
of_logs AS (
    SELECT /*+ BROADCAST(logs), BROADCAST(newest) */
        entries.cluster,
        entries.producer_id,
        entries.coordinator_log_id,
        -- Where the head of the log was deleted or never dumped, what a producer did before its first entry left there is unknown; so is
        -- what it did before its first entry behind a segment that is missing: the last of these counts, whatever time a clock that was
        -- set back gave it.
        max(IF(
            entries.previous_offset IS NULL AND NOT entries.head_known,
            struct(entries.entry_offset, entries.partition_leader_epoch AS epoch, entries.producer_epoch),
            NULL
        )) AS first_known,
        max(IF(entries.previous_offset IS NULL AND NOT entries.head_known, entries.batch_timestamp_ms, NULL)) AS known_from_ms,
        max(newest.newest_epoch) AS known_until_epoch,
        bool_and(entries.tail_known AND coalesce(logs.tail_intact, true) AND NOT entries.is_cut) AS to_the_end,
        -- Of an id without an entry behind lost lines nobody knows what became.
        coalesce(max(entries.entry_offset) < max(entries.log_lost_below), false) AS lost_behind,
        max(struct(
            entries.entry_offset, entries.batch_timestamp_ms AS at_ms,
            -- KIP-890: what is open under TV2 ends with the next epoch; what TV1 begins behind the newest entry ends with that of the
            -- entry.
            entries.producer_epoch + IF(entries.status = 'Ongoing' AND entries.protocol = 'tv2', 1, 0) AS untold_epoch
        )) AS newest,
        min(greatest(newest.newest_at_ms, logs.dumped_ms)) AS told_until_ms,
        max(newest.latest_ms) AS coordinator_latest_ms,
        coalesce(bool_or(entries.home_partition = entries.coordinator_partition), false) AS at_home,
        count(*) AS entries,
        max(struct(
            logs.coordinator_broker, logs.coordinator_dumped_at_ms, logs.coordinator_noted_at, logs.stopped_with
        )) AS dump
    FROM entries_of_logs entries
    LEFT JOIN {coordinator_logs} logs ON logs.coordinator_log_id = entries.coordinator_log_id
    LEFT JOIN newest_of_logs newest ON newest.coordinator_log_id = entries.coordinator_log_id
    WHERE entries.producer_id IS NOT NULL
    GROUP BY entries.cluster, entries.producer_id, entries.coordinator_log_id
),
of_producers AS (
    SELECT
        cluster,
        producer_id,
        max(IF(first_known IS NULL, NULL, struct(known_from_ms AS at_ms, first_known AS entry))) AS known_from,
        max(known_until_epoch) AS known_until_epoch,
        bool_and(to_the_end AND NOT lost_behind) AS to_the_end,
        bool_or(lost_behind) AS lost_behind,
        max(newest).at_ms AS newest_ms,
        max(newest).untold_epoch AS untold_epoch,
        min(told_until_ms) AS told_until_ms,
        max(coordinator_latest_ms) AS coordinator_latest_ms,
        -- Where an id lies in two partitions, the one in which its hash puts it has its coordinator. Of how many there are, not every dump
        -- tells, and two ids may share the producer id: then it is the one in which most entries stand.
        max(struct(at_home, entries, coordinator_log_id, dump)) AS log
    FROM of_logs
    GROUP BY cluster, producer_id
)

SELECT
    cluster,
    producer_id,
    true AS has_story,
    known_from.at_ms AS known_from_ms,
    known_from.entry.epoch AS known_from_epoch,
    known_from.entry.entry_offset AS known_from_offset,
    known_from.entry.producer_epoch AS known_from_producer_epoch,
    known_until_epoch,
    untold_epoch,
    coordinator_latest_ms,
    lost_behind,
    IF(to_the_end, greatest(newest_ms, told_until_ms), newest_ms) AS known_until_ms,
    log.coordinator_log_id AS coordinator_log_id,
    log.dump.coordinator_broker AS coordinator_broker,
    IF(to_the_end, log.dump.coordinator_dumped_at_ms, NULL) AS coordinator_dumped_at_ms,
    IF(to_the_end, log.dump.coordinator_noted_at, NULL) AS coordinator_noted_at,
    IF(to_the_end, log.dump.stopped_with, NULL) AS stopped_with
FROM of_producers
