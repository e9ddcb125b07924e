-- Per cluster: whether its coordinator logs were dumped from the first entry to the last, so that a producer without entries has no
-- transaction, and until when that is so. One row per cluster.
--
-- coordinator_history   the table
-- coordinator_logs      what `reach.coordinator_logs` returns
-- clusters              the table
-- cut_logs              what `cut_logs.cut_logs` returns
WITH

entries AS (
    SELECT /*+ BROADCAST(cuts) */
        entries.cluster,
        entries.log_contiguous,
        entries.log_lost_below,
        entries.tail_known AND NOT coalesce(cuts.is_cut, false) AS to_the_end
    FROM {coordinator_history} entries
    LEFT JOIN {cut_logs} cuts ON cuts.coordinator_log_id = entries.replica_log_id
),
of_clusters AS (
    SELECT
        cluster,
        bool_and(log_contiguous AND to_the_end) AS contiguous,
        bool_and(to_the_end) AS to_the_end,
        bool_or(log_lost_below IS NOT NULL) AS lost
    FROM entries
    GROUP BY cluster
),

-- The partitions of one broker are dumped one right after the other; the newest entry of any of them tells of all.
of_brokers AS (
    SELECT cluster, max(told_until_ms) AS until_ms FROM {coordinator_logs} GROUP BY cluster, coordinator_broker
),
until AS (
    SELECT cluster, min(until_ms) AS whole_until_ms FROM of_brokers GROUP BY cluster
),
-- Segments that were left out look like what the cleaner took, but in a listing.
listed AS (
    SELECT cluster, bool_and(is_as_listed) AS as_listed FROM {coordinator_logs} GROUP BY cluster
),

-- Brokers that have a copy of each coordinator's log, none of which is shorter than any other's: what they had written of a log before the
-- first of these was dumped, all the coordinators' logs tell of.
ends AS (
    SELECT cluster, partition, max(end_offset) AS end_offset, count(1) OVER (PARTITION BY cluster) AS partitions
    FROM {coordinator_logs}
    GROUP BY cluster, partition
),
whole_copies AS (
    SELECT
        logs.cluster,
        logs.coordinator_broker AS broker,
        IF(
            count(logs.coordinator_noted_at) = count(1)
                AND min(logs.coordinator_noted_at).section_id = max(logs.coordinator_noted_at).section_id,
            min(logs.coordinator_noted_at),
            NULL
        ) AS noted_at,
        IF(count(logs.coordinator_dumped_at_ms) = count(1), min(logs.coordinator_dumped_at_ms), NULL) AS dumped_at_ms,
        max(logs.newest_ms) AS newest_ms
    FROM {coordinator_logs} logs
    JOIN ends ON ends.cluster = logs.cluster AND ends.partition = logs.partition AND ends.end_offset = logs.end_offset
    GROUP BY logs.cluster, logs.coordinator_broker
    HAVING count(DISTINCT logs.partition) = max(ends.partitions)
),
all_copies AS (
    SELECT cluster, collect_list(struct(broker, noted_at, dumped_at_ms, newest_ms)) AS copies FROM whole_copies GROUP BY cluster
),

-- Brokers that stopped when all coordinator logs had ended as they were dumped.
longest_copies AS (
    -- Of copies that end at one offset the one tells that had been stopped, and of the others one that has a batch.
    SELECT
        cluster,
        max(struct(end_offset, stopped_with IS NOT NULL AS is_stopped, NOT is_empty AS is_written, stopped_with AS brokers)) AS longest
    FROM {coordinator_logs}
    GROUP BY cluster, partition
),
stopped_brokers AS (
    SELECT
        cluster,
        collect_list(IF(NOT (longest.is_written OR longest.is_stopped), NULL, coalesce(longest.brokers, array()))) AS stopped
    FROM longest_copies
    GROUP BY cluster
)

SELECT
    clusters.cluster,
    clusters.coordinator_complete AND coalesce(told.contiguous, true) AS whole,
    -- Logs that were never written to know of no id, and no transactional producer begins without an entry (InitProducerId).
    told.cluster IS NULL AS knows_nobody,
    until.whole_until_ms,
    aggregate(stopped.stopped, get(stopped.stopped, 0), (one, other) -> array_intersect(one, other)) AS whole_stopped_with,
    -- Nothing is missing but what the cleaner took: it leaves the newest entry of each id.
    clusters.coordinator_complete AND NOT coalesce(told.contiguous, true) AND told.to_the_end AND NOT told.lost AS only_cleaned,
    coalesce(listed.as_listed, false) AS as_listed,
    all_copies.copies
FROM {clusters} clusters
LEFT JOIN of_clusters told ON told.cluster = clusters.cluster
LEFT JOIN until ON until.cluster = clusters.cluster
LEFT JOIN stopped_brokers stopped ON stopped.cluster = clusters.cluster
LEFT JOIN listed ON listed.cluster = clusters.cluster
LEFT JOIN all_copies ON all_copies.cluster = clusters.cluster
