"""How each history table is read by rules: which offsets a row spans, what it counts, and where its lines are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """One history table, as rules read it.

    Attributes:
        table: its name.
        first, last: the offsets that a row spans, as SQL expressions.
        records: how many records it concerns, or None.
        timestamp: when it happened, or None.
        addresses: prefixes of its (section_id, byte_offset, length) columns, with the column of the offset each speaks of.
        row: columns that `explain` may read, with blanks between.
        judged: the table has a `judged` column, and rows without it are left alone.
    """

    table: str
    first: str
    last: str
    row: str
    addresses: tuple[tuple[str, str], ...]
    records: str | None = None
    timestamp: str | None = None
    judged: bool = False


_SOURCES = (
    Source(
        table="producer_history",
        first="base_offset",
        last="last_offset",
        records="count",
        timestamp="max_timestamp_ms",
        addresses=(("", "base_offset"),),
        judged=True,
        row="""row_kind base_offset last_offset count producer_id producer_epoch base_sequence last_sequence is_transactional
            partition_leader_epoch max_timestamp_ms marker_type marker_coordinator_epoch previous_epoch max_epoch_before expected_sequence
            skipped_sequences same_identity_offset data_batches_since_same same_identity_timestamp_ms same_identity_leader_epoch
            overlaps_offset leader_epoch_before span_id span_outcome instance_id instance_decision registration late marker_role truth
            returned returned_from_segment""",
    ),
    Source(
        table="transaction_spans",
        first="first_offset",
        last="last_offset",
        records="records",
        timestamp="last_timestamp_ms",
        addresses=(("data_", "first_offset"), ("marker_", "marker_offset")),
        judged=True,
        row="""producer_id first_offset last_offset batches records first_epoch last_epoch first_timestamp_ms last_timestamp_ms
            marker_offset marker_type marker_epoch marker_coordinator_epoch marker_timestamp_ms outcome complete_past""",
    ),
    Source(
        table="coordinator_history",
        first="entry_offset",
        last="entry_offset",
        timestamp="batch_timestamp_ms",
        addresses=(("", "entry_offset"), ("previous_", "previous_offset")),
        row="""coordinator_partition entry_offset batch_timestamp_ms transactional_id tombstone producer_id producer_epoch timeout_ms status
            partitions last_update_ms start_ms protocol previous_offset previous_status previous_pid previous_epoch previous_timeout_ms
            previous_start_ms previous_partitions origin_offset origin_status uncounted step_reason epoch_step field_change instance_id""",
    ),
    Source(
        table="transaction_instances",
        first="first_entry_offset",
        last="coalesce(complete_offset, prepare_offset, first_entry_offset)",
        timestamp="coalesce(decided_at_ms, start_ms)",
        addresses=(("", "first_entry_offset"), ("last_", "complete_offset")),
        row="""instance_id cluster coordinator_partition transactional_id producer_id data_epoch marker_epoch protocol start_ms start_source
            timeout_ms partitions partitions_complete first_entry_offset last_status decision decided_at_ms prepare_offset completed_at_ms
            complete_offset next_status next_epoch next_at_ms is_last ongoing_epoch abort_cause abort_cause_certainty
            abort_cause_alternatives""",
    ),
    Source(
        table="instance_partitions",
        first="data_first_offset",
        last="data_last_offset",
        records="data_records",
        timestamp="marker_timestamp_ms",
        addresses=(("data_", "data_first_offset"), ("marker_", "marker_offset")),
        row="""instance_id cluster transactional_id producer_id topic partition coverage data_first_offset data_last_offset data_records
            marker_match marker_offset marker_type marker_epoch marker_coordinator_epoch marker_timestamp_ms""",
    ),
    Source(
        table="visibility",
        first="lso",
        last="hw - 1",
        records="held_back_records",
        timestamp="blocker_last_timestamp_ms",
        addresses=(("blocker_", "blocker_first_offset"),),
        row="""log_start hw hw_source leo lso lso_if_hw_is_leo lso_source blocker_producer_id blocker_epoch blocker_first_offset
            blocker_last_timestamp_ms blocker_began_after_ms blocker_open_by_ms
            blocker_instance_id open_transactions held_back_offsets held_back_records
            held_back_committed_records""",
    ),
    Source(
        table="coverage",
        first="first_offset",
        last="last_offset",
        addresses=(("", "first_offset"),),
        row="first_offset last_offset state reason",
    ),
    Source(
        table="aborted_index",
        first="coalesce(span_first_offset, entry_first_offset)",
        last="marker_offset",
        records="records",
        addresses=(("", "marker_offset"),),
        row="""producer_id marker_offset span_first_offset span_last_offset records entry_first_offset entry_last_stable_offset
            ends_at_offset ends_at_stable_offset state reason""",
    ),
    Source(
        table="producer_edges",
        first="first_offset",
        last="last_offset",
        records="records",
        timestamp="first_timestamp_ms",
        addresses=(("", "first_offset"),),
        row="producer_id producer_epoch first_offset last_offset records first_timestamp_ms last_timestamp_ms is_transactional",
    ),
)
SOURCES = {source.table: source for source in _SOURCES}
