-- Rows with their kind, the producer they are of, and what they do to its transaction and sequences. One row per batch.
--
-- ordered    what ordered_batches returns
WITH

kinds AS (
    SELECT
        *,
        -- What a batch is to its producer (`model.batches.Batch.kind`). A shallow dump does not show which marker a control batch holds.
        CASE
            WHEN NOT coalesce(is_control, false) THEN IF(coalesce(producer_id >= 0, false), 'data', 'plain')
            WHEN marker_type IS NOT NULL OR (producer_id >= 0 AND coalesce(count > 0, true)) THEN 'marker'
            ELSE 'control'
        END AS row_kind
    FROM {ordered}
)

SELECT
    replica_log_id, chunk, position_in_log, producer_epoch,
    -- What the windows do not look at travels as one: each window copies its rows, and few columns are quickly copied.
    struct(
        section_id, byte_offset, length, row_kind, last_offset, count, producer_id, base_sequence, last_sequence, is_transactional,
        timestamp_type, crc, marker_type, coordinator_epoch AS marker_coordinator_epoch, control_type, judged, hole_at, cleaned_at, era,
        removed_behind
    ) AS facts,
    struct(producer_epoch, partition_leader_epoch, max_timestamp_ms, base_offset) AS row,
    -- Rows of one producer id have one actor; each row without a producer is an actor of its own, below 0: together they would be the
    -- biggest group of all. Behind segments that were deleted between two dumps a producer id is somebody new: what it did meanwhile,
    -- nobody saw. 4611686018427387904 is 2^62.
    CASE
        WHEN row_kind NOT IN ('data', 'marker') THEN -1 - position_in_log
        WHEN era = 0 THEN producer_id
        ELSE pmod(xxhash64(producer_id, era), 4611686018427387904L)
    END AS actor,
    -- true: data of a transaction; false: the end of one.
    CASE WHEN row_kind = 'marker' THEN false WHEN row_kind = 'data' AND is_transactional THEN true END AS transaction_event,
    -- A struct, though its one field may be null: `IGNORE NULLS` would pass over a marker of which nobody knows the type.
    IF(row_kind = 'marker', struct(marker_type AS type), NULL) AS marker,
    -- Sequences begin anew with each epoch: where that is not printed (0.11.0.0 and 0.11.0.1) they tell nothing.
    IF(
        row_kind = 'data' AND sequenced AND producer_epoch IS NOT NULL AND base_sequence >= 0 AND last_sequence >= 0,
        struct(
            CAST(base_sequence AS BIGINT) AS base, CAST(last_sequence AS BIGINT) AS last, max_timestamp_ms,
            coalesce(last_offset < forgets_below, false) AS may_be_forgotten
        ),
        NULL
    ) AS sequences,
    -- A log in one piece inherits nothing; a chunk of one what inherited_states says.
    CAST(NULL AS STRUCT<
        previous: STRUCT<producer_epoch: INT, partition_leader_epoch: INT, max_timestamp_ms: BIGINT, base_offset: BIGINT>,
        max_epoch: INT, opened: BOOLEAN, span_start: BIGINT, next_marker: STRUCT<type: STRING>, epoch_known: BOOLEAN, entered_at: BIGINT,
        sequences: STRUCT<base: BIGINT, last: BIGINT, max_timestamp_ms: BIGINT, may_be_forgotten: BOOLEAN>, cycles: BIGINT,
        front: STRUCT<last: BIGINT, order: BIGINT, offset: BIGINT>,
        batches: BIGINT, fronts: ARRAY<STRUCT<last: BIGINT, chunk: BIGINT>>
    >) AS inherited
FROM kinds
