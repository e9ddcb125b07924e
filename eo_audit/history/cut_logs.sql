-- The logs of `__transaction_state` that lack decisions behind their end. One row per such log: what is absent from it is not held against
-- anybody.
--
-- rows                  what `sequences.producer_rows` returns
-- instances             transaction_instances
-- coordinator_history   the table
-- logs                  replica_log_id, cluster, topic, partition, clean_end, hw_source and listed of the table replica_logs
WITH

markers_of_producers AS (
    SELECT
        replica_log_id, producer_id,
        -- A marker that ends no data may repeat the one before it.
        count(1) AS markers,
        count_if(marker_type = 'COMMIT') AS commits,
        -- Only a coordinator raises an epoch; one that no protocol version writes tells of nobody.
        max(IF(
            producer_epoch - previous_epoch BETWEEN IF(marker_type = 'COMMIT', 0, 1) AND IF(marker_type = 'COMMIT', 1, 2),
            producer_epoch,
            NULL
        )) AS epoch
    FROM {rows}
    WHERE row_kind = 'marker' AND judged AND in_open_transaction
    GROUP BY ALL
),
listed AS (
    SELECT cluster, producer_id, decision, explode(partitions) AS place FROM {instances} WHERE decision IS NOT NULL
),
decided AS (
    SELECT logs.replica_log_id, listed.producer_id, count(1) AS decisions, count_if(listed.decision = 'COMMIT') AS commits
    FROM listed
    JOIN {logs} logs
        ON logs.cluster = listed.cluster AND logs.topic = listed.place.topic AND logs.partition = listed.place.partition
    GROUP BY ALL
),
newest_of_producers AS (
    SELECT
        cluster, producer_id,
        max_by(replica_log_id, entry_offset) AS coordinator_log_id,
        max(producer_epoch) AS newest_epoch,
        -- Decisions that the cleaner took from the head of the log are missing, too.
        bool_and(head_known OR previous_offset IS NOT NULL) AS from_the_head
    FROM {coordinator_history}
    WHERE producer_id IS NOT NULL
    GROUP BY ALL
)

SELECT DISTINCT told.coordinator_log_id, true AS is_cut
FROM markers_of_producers ended
JOIN {logs} logs ON logs.replica_log_id = ended.replica_log_id
JOIN newest_of_producers told ON told.cluster = logs.cluster AND told.producer_id = ended.producer_id
LEFT JOIN decided ON decided.replica_log_id = ended.replica_log_id AND decided.producer_id = ended.producer_id
-- Its broker stopped and took a snapshot there: that is where the log ended, whatever was lost of it before. A broker that runs takes one
-- where it begins another segment, which a checkpoint or a listing would show.
LEFT ANTI JOIN {logs} stopped
    ON stopped.replica_log_id = told.coordinator_log_id AND stopped.clean_end AND (stopped.hw_source = 'checkpoint' OR stopped.listed)
WHERE (told.from_the_head AND ended.markers > coalesce(decided.decisions, 0) AND ended.commits > coalesce(decided.commits, 0))
    -- A producer's epoch never goes down: what ended with a greater one than any entry has was decided behind them all, whatever the
    -- cleaner took.
    OR coalesce(ended.epoch > told.newest_epoch, false)
