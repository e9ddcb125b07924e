-- The logs of `__transaction_state`, each with the time up to which it tells all. One row per replica of a partition of
-- `__transaction_state`.
--
-- replica_logs   the table
-- clusters       the table, for skew_ms
WITH

logs AS (
    SELECT /*+ BROADCAST(clusters) */
        logs.*,
        clusters.skew_ms,
        -- What has no broker's name is one broker's.
        coalesce(logs.broker, -1) AS of_broker
    FROM {replica_logs} logs
    JOIN {clusters} clusters ON clusters.cluster = logs.cluster
    WHERE logs.topic = '__transaction_state'
),
stopped AS (
    -- Brokers are stopped one after another, and a copy that stopped first lacks what was written later (KIP-101). That two logs ended at
    -- one moment is told by their broker, or by a broker's own copy of the coordinator's log that ends where the copy which tells of it
    -- does.
    SELECT
        *,
        collect_set(IF(clean_end, of_broker, NULL)) OVER (PARTITION BY cluster, partition, leo) AS stopped_here,
        -- The dumping machine's clock and that of the coordinator's leader are one clock or nearly so: a replica may lie on another broker.
        dumped_at_ms - skew_ms AS dumped_ms
    FROM logs
)

SELECT
    cluster,
    replica_log_id AS coordinator_log_id,
    broker AS coordinator_broker,
    dumped_at_ms AS coordinator_dumped_at_ms,
    noted_at AS coordinator_noted_at,
    IF(clean_end, stopped_here, NULL) AS stopped_with,
    coalesce(tail_intact, true) AS tail_intact,
    newest_broker_clock_ms IS NULL AS is_empty,
    listed AND whole AS is_as_listed,
    newest_broker_clock_ms AS newest_ms,
    partition,
    leo AS end_offset,
    greatest(newest_broker_clock_ms, dumped_ms) AS told_until_ms,
    dumped_ms
FROM stopped
