-- What an audit must know of a cluster before it judges: its now, its versions and timeouts, what was dumped of its coordinator log. One
-- row per cluster.
--
-- manifest_entries, dump_files, section_status, replica_logs, coordinator_entries: the tables
-- as_of_ms   the audit's now for every cluster, as the user gave it, or NULL
-- default_partitions, nearly_all, fewest_ids, skew_ms: numbers; id_expires_ms: the default of transactional.id.expiration.ms
WITH

-- The partition of an id, under both counts that there can be.
ids_of_logs AS (
    -- An id has many entries, and its hash costs more than all else of them.
    SELECT
        replica_log_id,
        transactional_id,
        max(client_transaction_version) AS version,
        hex(encode(transactional_id, 'UTF-16BE')) AS digits
    FROM {coordinator_entries}
    GROUP BY replica_log_id, transactional_id
),
hashed AS (
    SELECT *, java_hash(digits) AS hash FROM ids_of_logs
),
places AS (
    SELECT cluster, replica_log_id, partition, max(partition) OVER (PARTITION BY cluster) + 1 AS counted
    FROM {replica_logs}
    WHERE topic = '__transaction_state' AND supported
),
placed AS (
    SELECT /*+ BROADCAST(places) */
        places.cluster,
        hashed.transactional_id,
        hashed.hash,
        hashed.version,
        partition_of(hashed.hash, {default_partitions}) AS by_default,
        partition_of(hashed.hash, places.counted) = places.partition AS fits_counted,
        partition_of(hashed.hash, {default_partitions}) = places.partition AS fits_default
    FROM hashed
    JOIN places ON places.replica_log_id = hashed.replica_log_id
),

facts_of_clusters AS (
    SELECT
        cluster,
        -- Else it is the time of one file.
        IF(NOT dumped_at_source <=> 'dumped-at', dumped_at_ms, NULL) AS dumped_at_ms,
        NULL AS said, NULL AS release_said, NULL AS newest_broker_clock_ms, NULL AS covered, NULL AS whole, NULL AS version,
        NULL AS fits_counted, NULL AS fits_default
    FROM {dump_files}
    UNION ALL
    SELECT
        entries.cluster, NULL, struct(entries.name, entries.value),
        IF(
            entries.name = 'kafka_version',
            struct(
                coalesce(release_of(apache_version(entries.value)), -1) AS release,
                coalesce(try_cast(regexp_extract(entries.value, '^[0-9]+[.][0-9]+[.]([0-9]+)', 1) AS INT), -1) AS bugfix,
                apache_version(entries.value) AS version,
                read.broker IS NOT NULL AS is_of_broker
            ),
            NULL
        ),
        NULL, NULL, NULL, NULL, NULL, NULL
    FROM {manifest_entries} entries
    JOIN (SELECT /*+ BROADCAST */ section_id, broker FROM {section_status} WHERE kind = 'manifest' AND is_read) read
        ON read.section_id = entries.section_id
    UNION ALL
    SELECT
        cluster, NULL, NULL, NULL, newest_broker_clock_ms,
        IF(topic = '__transaction_state' AND supported, partition, NULL),
        IF(topic = '__transaction_state' AND supported AND whole AND decoded, partition, NULL),
        NULL, NULL, NULL
    FROM {replica_logs}
    UNION ALL
    SELECT cluster, NULL, NULL, NULL, NULL, NULL, NULL, version, fits_counted, fits_default FROM placed
),
gathered AS (
    SELECT
        cluster,
        CAST({as_of_ms} AS BIGINT) AS asked_ms,
        max(dumped_at_ms) AS dumped_at_ms,
        collect_list(said) AS manifest,
        -- Brokers that are upgraded one by one are of two releases: what the oldest does may have happened. Before 2.2 no tool knew its
        -- own, and the script writes an empty word; only somebody who wrote a manifest for all brokers does.
        min(IF(release_said.version <> '', release_said, NULL)).version AS oldest_version,
        coalesce(bool_or(release_said.version = ''), false)
            AND NOT coalesce(bool_or(release_said.version <> '' AND NOT release_said.is_of_broker), false) AS is_oldest_unknown,
        max(newest_broker_clock_ms) AS newest_broker_clock_ms,
        array_sort(collect_set(covered)) AS covered,
        collect_set(whole) AS whole,
        max(version) AS newest_version,
        {nearly_all} * count(fits_default) AS enough,
        count(fits_default) AS ids,
        count_if(fits_counted) AS fit_counted,
        count_if(fits_default) AS fit_default
    FROM facts_of_clusters
    GROUP BY cluster
),
read AS (
    SELECT
        *,
        IF(is_oldest_unknown, NULL, oldest_version) AS kafka_version,
        try_cast(said(manifest, 'transaction_version') AS INT) AS told_version,
        try_cast(said(manifest, 'transaction_state_partitions') AS INT) AS told_partitions,
        try_cast(said(manifest, 'consumer_offsets_partitions') AS INT) AS offsets_partitions,
        try_cast(said(manifest, 'broker_config.transactional.id.expiration.ms') AS BIGINT) AS told_id_expiration_ms,
        try_cast(said(manifest, 'broker_config.producer.id.expiration.ms') AS BIGINT) AS told_producer_expiration_ms,
        try_cast(said(manifest, 'broker_config.transaction.max.timeout.ms') AS BIGINT) AS told_max_timeout_ms,
        try_cast(
            said(manifest, 'broker_config.transaction.abort.timed.out.transaction.cleanup.interval.ms') AS BIGINT
        ) AS told_scan_interval_ms,
        exists(manifest, entry -> startswith(entry.name, 'broker_config.')) AS settings_known
    FROM gathered
),
with_inferred AS (
    SELECT
        *,
        -- Kafka's default first: where few ids were seen they may fit a smaller number by chance.
        CASE
            WHEN enough = 0 THEN NULL
            WHEN array_max(covered) < {default_partitions} AND fit_default >= enough THEN {default_partitions}
            WHEN fit_counted >= enough THEN array_max(covered) + 1
        END AS inferred,
        coalesce(told_id_expiration_ms, CAST({id_expires_ms} AS BIGINT)) AS transactional_id_expiration_ms,
        release_of(kafka_version) AS release,
        -- No rule knows another now.
        coalesce(asked_ms, dumped_at_ms, newest_broker_clock_ms) AS as_of_ms
    FROM read
),
known AS (
    SELECT
        *,
        coalesce(told_partitions, inferred) AS coordinator_partitions,
        -- A topic keeps the number it was created with, whatever transaction.state.log.num.partitions says since: where the partitions that
        -- were dumped or nearly all ids contradict the manifest, nobody knows where an id belongs. A few ids may fit another number by
        -- chance.
        array_max(covered) >= told_partitions OR (ids >= {fewest_ids} AND inferred <> told_partitions) AS is_contradicted
    FROM with_inferred
)

SELECT
    cluster,
    as_of_ms,
    CASE
        WHEN asked_ms IS NOT NULL THEN 'argument'
        WHEN dumped_at_ms IS NOT NULL THEN 'manifest'
        WHEN as_of_ms IS NOT NULL THEN 'newest_broker_clock'
    END AS as_of_source,
    dumped_at_ms,
    kafka_version,
    coalesce(told_version, IF(newest_version >= 2, 2, NULL)) AS transaction_version,
    coordinator_partitions,
    CASE WHEN told_partitions IS NOT NULL THEN 'manifest' WHEN inferred IS NOT NULL THEN 'inferred' END AS coordinator_partitions_source,
    covered AS coordinator_partitions_covered,
    -- Only a log that is complete proves by its silence that no coordinator knows of a transaction.
    coalesce(
        coordinator_partitions > 0 AND size(array_except(sequence(0, coordinator_partitions - 1), whole)) = 0, false
    ) AS coordinator_complete,
    offsets_partitions,
    coalesce(told_max_timeout_ms, 900000L) AS max_transaction_timeout_ms,
    -- Before 3.4 producer ids lived as long as transactional ids.
    coalesce(
        told_producer_expiration_ms, IF(release < 304, transactional_id_expiration_ms, 86400000L)
    ) AS producer_id_expiration_ms,
    transactional_id_expiration_ms,
    IF(release < 304, told_id_expiration_ms, told_producer_expiration_ms) IS NOT NULL AS expiration_known,
    -- Up to 2.4 the coordinator looked for timeouts each minute, since then every ten seconds.
    coalesce(told_scan_interval_ms, IF(release <= 204, 60000L, 10000L)) AS abort_scan_interval_ms,
    CAST({skew_ms} AS BIGINT) AS skew_ms,
    -- Files of __cluster_metadata prove nothing: KRaft takes over logs that ZooKeeper's controller led before (3.4 to 3.9, KIP-866).
    coalesce(release >= 400, false) OR coalesce(coalesce(told_version, newest_version) >= 2, false) AS epochs_are_elections,
    -- KAFKA-7190 (2.4.0) and KAFKA-9144 (2.4.1). transaction.version came long after both.
    coalesce(
        IF(release = 204, try_cast(get(split(kafka_version, '\\.'), 2) AS INT) < 1, release < 204),
        IF(coalesce(told_version, newest_version) >= 1, false, NULL)
    ) AS remembers_by_batches,
    settings_known,
    IF(coalesce(is_contradicted, false), NULL, coordinator_partitions) AS id_partitions
FROM known
