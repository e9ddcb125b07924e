-- Which producer ids were given out, and which were used: for I03 and I04. Only of clusters of which a block is known. One row per block
-- that stands in a segment of a metadata log, and per first use of a producer id: of each log its highest, and those that were never given
-- out.
--
-- 1. Each ProducerIdsRecord raises the next producer id (`ProducerIdControlManager.replay` refuses any other). A snapshot of the metadata
--    repeats the last one, under offsets of its own: only records of segments are in an order.
-- 2. Up to when all blocks are known: the newest batch of a metadata log of which nothing is missing and all is decoded. What lies before
--    its head is lower. Of several replicas the one that reaches furthest knows all that the others know.
-- 3. A producer id is used from its first batch on. When that was, only brokers' clocks tell: the next marker or LogAppendTime batch in the
--    log was appended later, so it bounds it from above.
--
-- producer_id_blocks, manifest_entries, section_status, replica_logs, coverage, clusters, coordinator_history, producer_history: the tables
-- apart_ms   clocks that are kept lie less apart
WITH

blocks AS (
    SELECT block.*, log.cluster, section.segment_base_offset IS NOT NULL AS is_placed
    FROM {producer_id_blocks} block
    JOIN {section_status} section ON section.section_id = block.section_id
    JOIN {replica_logs} log ON log.replica_log_id = block.replica_log_id
    WHERE section.is_read
),
in_order AS (
    SELECT
        *,
        max(struct(next_producer_id, record_offset, section_id, byte_offset, length)) OVER (
            PARTITION BY replica_log_id ORDER BY record_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS highest
    FROM blocks
    WHERE is_placed
),

-- Whether all that was given out is known.
undecoded AS (
    SELECT DISTINCT replica_log_id
    FROM {section_status}
    WHERE is_read AND kind = 'log' AND NOT decoder <=> 'json'
),
broken AS (
    SELECT DISTINCT replica_log_id
    FROM {coverage}
    WHERE state NOT IN ('covered', 'compacted', 'head_missing', 'truncated')
),
of_logs AS (
    SELECT
        block.cluster,
        max(block.next_producer_id) AS next_producer_id,
        max(IF(undecoded.replica_log_id IS NULL AND broken.replica_log_id IS NULL, log.newest_broker_clock_ms, NULL)) AS known_until_ms
    FROM blocks block
    JOIN {replica_logs} log ON log.replica_log_id = block.replica_log_id
    LEFT JOIN undecoded ON undecoded.replica_log_id = block.replica_log_id
    LEFT JOIN broken ON broken.replica_log_id = block.replica_log_id
    GROUP BY block.cluster
),
-- ZooKeeper's /latest_producer_id_block ends with the last id of the block (`ProducerIdBlockZNode`).
told_by_manifest AS (
    SELECT
        entry.cluster,
        max(coalesce(
            IF(entry.name = 'next_producer_id', try_cast(entry.value AS BIGINT), NULL),
            IF(entry.name = 'producer_id_block.block_end', try_cast(entry.value AS BIGINT) + 1, NULL)
        )) AS next_producer_id
    FROM {manifest_entries} entry
    JOIN {section_status} section ON section.section_id = entry.section_id
    WHERE section.is_read AND entry.name IN ('next_producer_id', 'producer_id_block.block_end')
    GROUP BY entry.cluster
),
limits AS (
    SELECT
        cluster.cluster,
        coalesce(log.next_producer_id, told.next_producer_id) AS next_producer_id,
        IF(log.cluster IS NULL, cluster.dumped_at_ms, log.known_until_ms) AS known_until_ms,
        IF(log.cluster IS NULL, 'manifest', 'metadata') AS source
    FROM {clusters} cluster
    LEFT JOIN of_logs log ON log.cluster = cluster.cluster
    LEFT JOIN told_by_manifest told ON told.cluster = cluster.cluster
    WHERE coalesce(log.next_producer_id, told.next_producer_id) IS NOT NULL
),

-- The first use of each producer id in each log: its highest, and those that were never given out.
batches AS (
    SELECT batch.*, log.cluster
    FROM {producer_history} batch
    JOIN {replica_logs} log ON log.replica_log_id = batch.replica_log_id
    WHERE batch.judged
),
writers AS (
    SELECT cluster, replica_log_id, producer_id, min(struct(base_offset AS at, section_id, byte_offset, length)) AS first
    FROM batches
    WHERE producer_id >= 0
    GROUP BY cluster, replica_log_id, producer_id
),
entries AS (
    SELECT
        cluster, replica_log_id, producer_id,
        min(struct(entry_offset AS at, section_id, byte_offset, length, batch_timestamp_ms)) AS first
    FROM {coordinator_history}
    WHERE producer_id >= 0
    GROUP BY cluster, replica_log_id, producer_id
),
users AS (
    SELECT
        cluster, replica_log_id, producer_id, first.at, first.section_id, first.byte_offset, first.length,
        CAST(NULL AS BIGINT) AS used_by_ms
    FROM writers
    UNION ALL
    SELECT cluster, replica_log_id, producer_id, first.at, first.section_id, first.byte_offset, first.length, first.batch_timestamp_ms
    FROM entries
),
beside_limits AS (
    SELECT
        used.*, known.next_producer_id, known.known_until_ms, known.source,
        used.producer_id >= known.next_producer_id AS is_beyond,
        max(used.producer_id) OVER (PARTITION BY used.replica_log_id) AS highest_id
    FROM users used
    JOIN limits known ON known.cluster = used.cluster
),
suspects AS (
    SELECT * FROM beside_limits WHERE is_beyond OR producer_id = highest_id
),
broker_clocks AS (
    SELECT replica_log_id, base_offset, max_timestamp_ms
    FROM batches
    WHERE row_kind = 'marker' OR timestamp_type = 'LogAppendTime'
),
timed AS (
    SELECT
        suspect.replica_log_id, suspect.producer_id,
        min(clock.max_timestamp_ms) AS at_ms
    FROM suspects suspect
    JOIN broker_clocks clock ON clock.replica_log_id = suspect.replica_log_id AND clock.base_offset >= suspect.at
    GROUP BY suspect.replica_log_id, suspect.producer_id
)

SELECT
    cluster, replica_log_id, section_id, byte_offset, length,
    'block' AS row_kind,
    record_offset AS first_offset,
    CAST(NULL AS BIGINT) AS producer_id,
    broker_id,
    next_producer_id,
    highest.next_producer_id AS highest_before,
    highest.record_offset AS previous_offset,
    highest.section_id AS previous_section_id,
    highest.byte_offset AS previous_byte_offset,
    highest.length AS previous_length,
    CAST(NULL AS BIGINT) AS used_by_ms,
    CAST(NULL AS BIGINT) AS known_until_ms,
    CAST(NULL AS STRING) AS source,
    false AS is_beyond,
    false AS is_proved
FROM in_order
UNION ALL
SELECT
    suspect.cluster, suspect.replica_log_id, suspect.section_id, suspect.byte_offset, suspect.length,
    'user',
    suspect.at,
    suspect.producer_id,
    NULL,
    suspect.next_producer_id,
    NULL, NULL, NULL, NULL, NULL,
    coalesce(suspect.used_by_ms, timed.at_ms),
    suspect.known_until_ms,
    suspect.source,
    suspect.is_beyond,
    suspect.is_beyond AND coalesce(coalesce(suspect.used_by_ms, timed.at_ms) + {apart_ms} < suspect.known_until_ms, false)
FROM suspects suspect
LEFT JOIN timed ON timed.replica_log_id = suspect.replica_log_id AND timed.producer_id = suspect.producer_id
