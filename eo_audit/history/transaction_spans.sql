-- From the first transactional batch of a producer id to the marker that closes it, in one replica log. Whose data a span holds is another
-- question: late data of an earlier transaction and genuine data can share one (KIP-890). One row per span.
--
-- rows    what `sequences.producer_rows` returns (the table producer_history will do)
WITH

rows_of_spans AS (
    SELECT
        *,
        row_kind = 'data' AS is_data,
        IF(row_kind = 'data', base_offset, NULL) AS data_at
    FROM {rows}
    WHERE span_id IS NOT NULL
),
spans AS (
    SELECT
        replica_log_id, producer_id, span_id,
        min_by(
            struct(base_offset, base_sequence, producer_epoch, max_timestamp_ms, section_id, byte_offset, length), data_at
        ) AS data,
        max_by(struct(producer_epoch, max_timestamp_ms), data_at) AS last,
        max(IF(is_data, last_offset, NULL)) AS last_offset,
        CAST(count_if(is_data) AS INT) AS batches,
        coalesce(sum(IF(is_data, count, NULL)), 0L) AS records,
        -- One at most: whatever its epoch, the next marker of the producer id closes what is open (`ProducerStateManager.completeTxn`).
        max(IF(
            is_data,
            NULL,
            struct(
                base_offset, marker_type, producer_epoch, marker_coordinator_epoch, max_timestamp_ms, section_id, byte_offset, length
            )
        )) AS marker,
        max(span_outcome) AS outcome,
        -- One batch behind the first break is enough: the span may end otherwise than it seems.
        bool_and(judged) AS judged,
        -- Behind a hole, or what was deleted between two dumps, the first batches, or a marker between, may be unseen.
        bool_and(predecessor IN ('observed', 'not_observed')) AS complete_past,
        -- So may what a marker says whose record line is missing.
        max(IF(
            (predecessor = 'hole' AND base_offset > span_id) OR predecessor = 'removed' OR (NOT is_data AND marker_type IS NULL),
            base_offset,
            NULL
        )) AS hole_at,
        -- What the cleaner has emptied is of no transaction that anybody reads.
        min(IF(is_data AND count > 0, struct(base_offset, producer_epoch), NULL)) AS with_records,
        max(IF(is_data AND count > 0, struct(producer_epoch, -base_offset AS from_offset), NULL)) AS newest_epoch
    FROM rows_of_spans
    GROUP BY replica_log_id, producer_id, span_id
)

SELECT
    replica_log_id, producer_id, span_id,
    data.base_offset AS first_offset,
    last_offset, batches, records,
    data.base_sequence AS first_sequence,
    data.producer_epoch AS first_epoch,
    last.producer_epoch AS last_epoch,
    data.max_timestamp_ms AS first_timestamp_ms,
    last.max_timestamp_ms AS last_timestamp_ms,
    marker.base_offset AS marker_offset,
    marker.marker_type AS marker_type,
    marker.producer_epoch AS marker_epoch,
    marker.marker_coordinator_epoch AS marker_coordinator_epoch,
    marker.max_timestamp_ms AS marker_timestamp_ms,
    outcome, judged, complete_past, hole_at,
    with_records.base_offset AS records_from,
    IF(newest_epoch.producer_epoch > with_records.producer_epoch, -newest_epoch.from_offset, NULL) AS epoch_changes_at,
    data.section_id AS data_section_id, data.byte_offset AS data_byte_offset, data.length AS data_length,
    marker.section_id AS marker_section_id, marker.byte_offset AS marker_byte_offset, marker.length AS marker_length
FROM spans
