-- producer_history up to the span: what each batch is to the batches of its producer before it. The law is `model.producer_history`. One
-- row per batch.
--
-- 1 and 2 are those of producer_states:
-- 3. per identity (producer id, epoch, unwrapped sequences): the newest earlier batch that is the same;
-- 4. per producer id and epoch in order of sequences: the front that first carried what a batch repeats in another shape.
--
-- In chunks, 3 is spread by identity anyway, and for 4 a repeat goes to the chunk where the front passed its first sequence.
--
-- states        what producer_states returns
-- reached_in    the column of that name, or 0: work on each log in one piece
WITH

twins AS (
    -- Rows without sequences would all have one identity, and be one group and one task: each gets a key of its own.
    SELECT
        *,
        lag(struct(row, batches_before)) OVER (
            PARTITION BY
                replica_log_id, actor, producer_epoch, first_unwrapped, last_unwrapped, IF(sequences IS NULL, position_in_log, NULL)
            ORDER BY position_in_log
        ) AS twin
    FROM {states}
),
-- Repeats of sequences without a twin: those that go past the front, and those that do not.
repeats AS (
    SELECT
        *,
        coalesce(twin IS NULL AND first_unwrapped <= front.last AND NOT begins_anew AND is_front, false) AS is_passing,
        coalesce(twin IS NULL AND first_unwrapped <= front.last AND NOT begins_anew AND NOT is_front, false) AS is_inside
    FROM twins
),
-- The front that first reached the first sequence of a repeat. In order of sequences, downwards, fronts stand at their last sequence and
-- repeats at their first; so the newest front above a repeat is the one that reached it first.
fronts_and_repeats AS (
    SELECT
        *,
        CASE WHEN is_front THEN last_unwrapped WHEN is_inside THEN first_unwrapped END AS place,
        coalesce(
            IF(is_inside, get(filter(inherited.fronts, f -> f.last >= first_unwrapped), 0).chunk, NULL), chunk
        ) AS reached_in
    FROM repeats
),
reached AS (
    SELECT
        *,
        last(IF(is_front, struct(first_unwrapped, row.base_offset), NULL), true) OVER (
            PARTITION BY replica_log_id, actor, producer_epoch, {reached_in}
            ORDER BY place DESC, is_front DESC, position_in_log
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reaching
    FROM fronts_and_repeats
),
compared AS (
    SELECT
        *,
        IF(actor >= 0, seen_since(previous.base_offset, facts.hole_at, facts.cleaned_at, facts.era), NULL) AS predecessor,
        seen_since(IF(front IS NULL, entered_at, front.offset), facts.hole_at, facts.cleaned_at, facts.era) AS since_front,
        CASE
            WHEN sequences IS NULL OR begins_anew THEN NULL
            WHEN front IS NOT NULL THEN pmod(front.last + 1, 2147483648L)
            WHEN entered_at IS NOT NULL THEN 0L
        END AS expected_sequence,
        IF(begins_anew, NULL, first_unwrapped - coalesce(front.last + 1, IF(entered_at IS NULL, NULL, 0L))) AS skipped_sequences,
        CASE
            WHEN is_passing THEN front.offset
            WHEN is_inside AND reaching.first_unwrapped <= last_unwrapped THEN reaching.base_offset
        END AS overlaps_offset,
        coalesce(opened, false) AS in_open_transaction
    FROM reached
)

SELECT
    replica_log_id,
    facts.section_id, facts.byte_offset, facts.length, facts.row_kind,
    row.base_offset,
    facts.last_offset, facts.count, facts.producer_id,
    producer_epoch,
    facts.base_sequence, facts.last_sequence, facts.is_transactional,
    row.partition_leader_epoch,
    facts.timestamp_type,
    row.max_timestamp_ms,
    facts.crc, facts.marker_type, facts.marker_coordinator_epoch, facts.control_type, facts.judged,
    predecessor,
    previous.producer_epoch AS previous_epoch,
    max_epoch AS max_epoch_before,
    expected_sequence,
    skipped_sequences,
    IF(sequences IS NULL OR begins_anew, NULL, front.last) AS max_unwrapped_last_before,
    twin.row.base_offset AS same_identity_offset,
    CAST(batches_before - twin.batches_before - 1 AS INT) AS data_batches_since_same,
    twin.row.max_timestamp_ms AS same_identity_timestamp_ms,
    twin.row.partition_leader_epoch AS same_identity_leader_epoch,
    overlaps_offset,
    previous.partition_leader_epoch AS leader_epoch_before,
    row.max_timestamp_ms - previous.max_timestamp_ms AS idle_ms,
    -- The law of `model.producer_history.label`; the order of the cases is part of it.
    CASE
        WHEN facts.row_kind = 'marker' THEN IF(in_open_transaction, 'marker', 'empty_marker')
        WHEN facts.row_kind <> 'data' THEN facts.row_kind
        WHEN sequences IS NULL THEN 'not_sequenced'
        WHEN twin.row.base_offset IS NOT NULL THEN 'duplicate'
        WHEN overlaps_offset IS NOT NULL THEN 'overlap'
        WHEN first_unwrapped <= front.last AND NOT begins_anew THEN 'out_of_order'
        WHEN producer_epoch < max_epoch THEN 'epoch_regression'
        WHEN skipped_sequences IS NULL THEN IF(sequences.base = 0, 'first_zero', 'first_nonzero')
        WHEN skipped_sequences = 0 THEN IF(front IS NULL, 'new_epoch', 'in_sequence')
        WHEN since_front IN ('hole', 'compacted') THEN 'after_hole'
        ELSE IF(front IS NULL, 'new_epoch_nonzero', 'gap')
    END AS label,
    coalesce(producer_epoch < max_epoch, false) AS epoch_regression,
    in_open_transaction,
    IF(
        coalesce(transaction_event, false) OR (facts.row_kind = 'marker' AND in_open_transaction), span_start, NULL
    ) AS span_id,
    CASE
        WHEN NOT coalesce(transaction_event, false) THEN NULL
        WHEN next_marker IS NULL THEN IF(facts.removed_behind, 'unknown', 'open')
        WHEN next_marker.type = 'COMMIT' THEN 'committed'
        WHEN next_marker.type = 'ABORT' THEN 'aborted'
        ELSE 'unknown'
    END AS span_outcome
FROM compared
