"""Expressions of the sequence history: arithmetic modulo 2^31, and the columns of producer_history."""

CIRCLE_BITS = 31
CIRCLE = 2**CIRCLE_BITS  # sequences run from 0 to 2^31 - 1
HALF_CIRCLE = 2**30

# What a batch is to its producer (`model.batches.Batch.kind`). A shallow dump does not show which marker a control batch holds.
ROW_KIND = """
    CASE WHEN NOT coalesce(is_control, false) THEN IF(coalesce(producer_id >= 0, false), 'data', 'plain')
         WHEN marker_type IS NOT NULL OR (producer_id >= 0 AND coalesce(count > 0, true)) THEN 'marker'
         ELSE 'control' END"""
# Rows of one producer id have one actor; each row without a producer is an actor of its own, below 0. Behind segments that were deleted
# between two dumps a producer id is somebody new: what it did meanwhile, nobody saw.
ACTOR = f"""
    CASE WHEN row_kind NOT IN ('data', 'marker') THEN -1 - position_in_log
         WHEN era = 0 THEN producer_id ELSE pmod(xxhash64(producer_id, era), {2**62}L) END"""
# true: data of a transaction; false: the end of one.
TRANSACTION_EVENT = "CASE WHEN row_kind = 'marker' THEN false WHEN row_kind = 'data' AND is_transactional THEN true END"
SEQUENCES = """
    IF(row_kind = 'data' AND sequenced AND base_sequence >= 0 AND last_sequence >= 0,
       struct(CAST(base_sequence AS BIGINT) AS base, CAST(last_sequence AS BIGINT) AS last), NULL)"""
LAST_UNWRAPPED = f"first_unwrapped + pmod(sequences.last - sequences.base, {CIRCLE})"


def cycle_step(previous: str, base: str) -> str:
    """By how many circles a base sequence is ahead of the batch before it; 0 when there is none before, null without sequences.

    Args:
        previous: struct(base, last) of the batch before.
        base: the base sequence.
    """
    step = f"pmod({base} - {previous}.last - 1, {CIRCLE})"
    reached = f"{previous}.last + 1 + IF({step} < {HALF_CIRCLE}, {step}, {step} - {CIRCLE})"
    ahead = f"IF({previous}.last < {previous}.base, 1L, 0L) + shiftright({reached} - {base}, {CIRCLE_BITS})"
    return f"CASE WHEN {base} IS NULL THEN NULL WHEN {previous} IS NULL THEN 0L ELSE {ahead} END"


def _between(offset: str) -> str:
    """What lies between an earlier row at an offset and this one."""
    return f"""
    CASE WHEN {offset} IS NULL THEN 'not_observed'
         WHEN facts.hole_at > {offset} THEN 'hole'
         WHEN facts.cleaned_at > {offset} THEN 'compacted'
         ELSE 'observed' END"""


# Repeats of sequences without a twin: those that go past the front, and those that do not.
PASSING = "coalesce(twin IS NULL AND first_unwrapped <= front.last AND is_front, false)"
INSIDE = "coalesce(twin IS NULL AND first_unwrapped <= front.last AND NOT is_front, false)"

_ANCHOR = "IF(front IS NULL, entered_at, front.offset)"
# The law of `model.producer_history.label`; the order of the cases is part of it.
_LABEL = f"""
    CASE WHEN facts.row_kind = 'marker' THEN IF(coalesce(opened, false), 'marker', 'empty_marker')
         WHEN facts.row_kind <> 'data' THEN facts.row_kind
         WHEN sequences IS NULL THEN 'not_sequenced'
         WHEN same_identity_offset IS NOT NULL THEN 'duplicate'
         WHEN overlaps_offset IS NOT NULL THEN 'overlap'
         WHEN first_unwrapped <= front.last THEN 'out_of_order'
         WHEN producer_epoch < max_epoch THEN 'epoch_regression'
         WHEN skipped_sequences IS NULL THEN IF(sequences.base = 0, 'first_zero', 'first_nonzero')
         WHEN skipped_sequences = 0 THEN IF(front IS NULL, 'new_epoch', 'in_sequence')
         WHEN {_between(_ANCHOR)} IN ('hole', 'compacted') THEN 'after_hole'
         ELSE IF(front IS NULL, 'new_epoch_nonzero', 'gap') END"""
_OUTCOME = """
    CASE WHEN next_marker IS NULL THEN IF(facts.removed_behind, 'unknown', 'open') WHEN next_marker.type = 'COMMIT' THEN 'committed'
         WHEN next_marker.type = 'ABORT' THEN 'aborted' ELSE 'unknown' END"""

# Columns of producer_history that are not facts, in its order: later ones may name earlier ones.
HISTORY_COLUMNS = {
    "predecessor": f"IF(actor >= 0, {_between('previous.base_offset')}, NULL)",
    "previous_epoch": "previous.producer_epoch",
    "max_epoch_before": "max_epoch",
    "expected_sequence": f"""
    CASE WHEN sequences IS NULL THEN NULL
         WHEN front IS NOT NULL THEN pmod(front.last + 1, {CIRCLE})
         WHEN entered_at IS NOT NULL THEN 0L END""",
    "skipped_sequences": "first_unwrapped - coalesce(front.last + 1, IF(entered_at IS NULL, NULL, 0L))",
    "max_unwrapped_last_before": "IF(sequences IS NULL, NULL, front.last)",
    "same_identity_offset": "twin.row.base_offset",
    "data_batches_since_same": "CAST(batches_before - twin.batches_before - 1 AS INT)",
    "same_identity_timestamp_ms": "twin.row.max_timestamp_ms",
    "same_identity_leader_epoch": "twin.row.partition_leader_epoch",
    "overlaps_offset": f"""
    CASE WHEN {PASSING} THEN front.offset
         WHEN {INSIDE} AND reaching.first_unwrapped <= last_unwrapped THEN reaching.base_offset END""",
    "leader_epoch_before": "previous.partition_leader_epoch",
    "idle_ms": "row.max_timestamp_ms - previous.max_timestamp_ms",
    "label": _LABEL,
    "epoch_regression": "coalesce(producer_epoch < max_epoch, false)",
    "in_open_transaction": "coalesce(opened, false)",
    "span_id": """
    IF(coalesce(transaction_event, false) OR (facts.row_kind = 'marker' AND in_open_transaction),
       span_start, NULL)""",
    "span_outcome": f"IF(coalesce(transaction_event, false), {_OUTCOME}, NULL)",
}
