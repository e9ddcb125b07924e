"""How each history table is read by rules: which offsets a row spans, what it counts, and where its lines are."""

from dataclasses import dataclass

# An id of which the tool printed something else for some characters (a locale that does not know them): its hash is another one.
GARBLED = "transactional_id RLIKE '[?\ufffd]'"


@dataclass(frozen=True)
class Source:
    """One history table, as rules read it.

    Attributes:
        table: its name.
        first, last: the offsets that a row spans, as SQL expressions.
        records: how many records it concerns, or None.
        timestamp: when it happened, or None.
        addresses: prefixes of its (section_id, byte_offset, length) columns, with the column of the offset each speaks of.
        about: columns that name what a row is about, with blanks between: all rules read them, without asking.
        judged: the table has a `judged` column, and rows without it are left alone.
    """

    table: str
    first: str
    last: str
    addresses: tuple[tuple[str, str], ...]
    about: str = ""
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
        about="producer_id producer_epoch instance_id",
    ),
    Source(
        table="transaction_spans",
        first="first_offset",
        last="last_offset",
        records="records",
        timestamp="last_timestamp_ms",
        addresses=(("data_", "first_offset"), ("marker_", "marker_offset")),
        judged=True,
        about="producer_id",
    ),
    Source(
        table="coordinator_history",
        first="entry_offset",
        last="entry_offset",
        timestamp="batch_timestamp_ms",
        addresses=(("", "entry_offset"), ("previous_", "previous_offset")),
        about="transactional_id producer_id producer_epoch instance_id",
    ),
    Source(
        table="transaction_instances",
        first="first_entry_offset",
        # As far as the transaction got.
        last="coalesce(complete_offset, prepare_offset, first_entry_offset)",
        timestamp="coalesce(decided_at_ms, start_ms)",
        addresses=(("", "first_entry_offset"), ("last_", "complete_offset")),
        about="instance_id cluster transactional_id producer_id",
    ),
    Source(
        table="instance_partitions",
        first="data_first_offset",
        last="data_last_offset",
        records="data_records",
        timestamp="marker_timestamp_ms",
        addresses=(("data_", "data_first_offset"), ("marker_", "marker_offset")),
        about="instance_id cluster transactional_id producer_id topic partition",
    ),
    Source(
        table="visibility",
        # The row of a log speaks of what its consumers wait for.
        first="lso",
        # What is held back reaches up to, and not including, the high watermark.
        last="hw - 1",
        records="held_back_records",
        timestamp="blocker_last_timestamp_ms",
        addresses=(("blocker_", "blocker_first_offset"),),
    ),
    Source(
        table="coverage",
        first="first_offset",
        last="last_offset",
        addresses=(("", "first_offset"),),
    ),
    Source(
        table="aborted_index",
        first="coalesce(span_first_offset, entry_first_offset)",
        last="marker_offset",
        records="records",
        addresses=(("", "marker_offset"),),
        about="producer_id",
    ),
    Source(
        table="producer_edges",
        first="first_offset",
        last="last_offset",
        records="records",
        timestamp="first_timestamp_ms",
        addresses=(("", "first_offset"),),
        about="producer_id producer_epoch",
    ),
    Source(
        table="repeated_records",
        first="first_offset",
        last="last_offset",
        records="records",
        timestamp="timestamp_ms",
        addresses=(("", "first_offset"), ("original_", "original_first_offset")),
        about="producer_id producer_epoch",
    ),
    Source(
        table="overwritten_offsets",
        first="first_offset",
        last="last_offset",
        timestamp="dumped_at_ms",
        addresses=(("", "first_offset"), ("then_", "last_offset")),
    ),
    Source(
        table="marker_keys",
        first="first_offset",
        last="last_offset",
        records="records",
        addresses=(("", "first_offset"),),
    ),
    Source(
        table="section_status",
        first="segment_base_offset",
        last="last_offset",
        addresses=(("fault_", "segment_base_offset"),),
    ),
    Source(
        table="snapshot_states",
        first="snapshot_offset",
        last="snapshot_offset",
        addresses=(("", "snapshot_offset"),),
        about="producer_id",
    ),
    Source(
        table="group_offsets",
        first="record_offset",
        last="record_offset",
        records="1",
        timestamp="commit_timestamp_ms",
        addresses=(("", "record_offset"), ("counted_", "counted_offset"), ("parked_", "parked_offset")),
        about="producer_id producer_epoch instance_id group topic partition",
    ),
    Source(
        table="id_allocation",
        first="first_offset",
        last="first_offset",
        addresses=(("", "first_offset"), ("previous_", "previous_offset")),
        about="producer_id",
    ),
)
SOURCES = {source.table: source for source in _SOURCES}
