-- The first and the last records of one producer id and epoch in one replica log, as hashes. One row per producer id and epoch in a replica
-- log that edge_epochs keeps.
--
-- A resend under another identity repeats what one producer wrote last at the beginning of what another writes; so payloads are compared at
-- these edges only. Batches without producer id show no edges at all; of them more records are kept.
--
-- kept       what edge_epochs returns
-- batches    what edge_batches returns
-- records    the table
WITH

numbered AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY replica_log_id, producer_id, producer_epoch ORDER BY base_offset, section_id, byte_offset
        ) AS from_start,
        row_number() OVER (
            PARTITION BY replica_log_id, producer_id, producer_epoch ORDER BY base_offset DESC, section_id DESC, byte_offset DESC
        ) AS from_end
    FROM {batches}
),
read AS (
    SELECT
        batch.replica_log_id, batch.producer_id, batch.producer_epoch, batch.most,
        batch.from_start <= batch.most AS at_start,
        batch.from_end <= batch.most AS at_end,
        -- A key may be there and have no hash: it is no text, or was not printed. Such a record equals no other.
        struct(
            record.offset, record.key_hash, record.value_hash, record.timestamp_ms, batch.returned,
            coalesce(record.key_size >= 0, false) AS keyed
        ) AS record
    FROM numbered batch
    -- Of magic 0 and 1 one line may be both batch and record.
    JOIN {records} record
        ON record.section_id = batch.section_id
        AND record.base_offset = batch.base_offset
        AND record.byte_offset >= batch.byte_offset
        AND (batch.records_end_at IS NULL OR record.byte_offset < batch.records_end_at)
    WHERE batch.from_start <= batch.most OR batch.from_end <= batch.most
),
edges AS (
    -- By offset, which is the first field; the batches come in no order.
    SELECT
        replica_log_id, producer_id, producer_epoch, most,
        sort_array(collect_list(IF(at_start, record, NULL))) AS head,
        sort_array(collect_list(IF(at_end, record, NULL))) AS tail
    FROM read
    GROUP BY replica_log_id, producer_id, producer_epoch, most
),
cut AS (
    SELECT
        replica_log_id, producer_id, producer_epoch,
        slice(head, 1, most) AS head,
        slice(tail, greatest(1, size(tail) - most + 1), most) AS tail
    FROM edges
)

SELECT
    kept.replica_log_id, kept.producer_id, kept.producer_epoch, kept.first_offset, kept.last_offset, kept.records,
    kept.first.base_sequence AS first_base_sequence,
    get(edge.head, 0).timestamp_ms AS first_timestamp_ms,
    coalesce(try_element_at(edge.tail, -1).timestamp_ms, kept.last_timestamp_ms) AS last_timestamp_ms,
    kept.is_transactional,
    coalesce(edge.head, array()) AS head,
    coalesce(edge.tail, array()) AS tail,
    kept.first.section_id AS section_id,
    kept.first.byte_offset AS byte_offset,
    kept.first.length AS length
FROM {kept} kept
LEFT JOIN cut edge
    ON edge.replica_log_id = kept.replica_log_id
    AND edge.producer_id = kept.producer_id
    AND edge.producer_epoch = kept.producer_epoch
