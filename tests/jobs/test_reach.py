"""Times and offsets that a client or damage wrote do not end an audit."""

import pyarrow as pa
import pytest

from eo_audit.store.reach import FARTHEST, within_reach
from eo_audit.store.schemas import schema

LAST = 2**63 - 1


def rows(table: str, **columns: object) -> pa.Table:
    """One row of a table for each value; null where no column is given."""
    size = len(next(iter(columns.values())))  # type: ignore[arg-type]
    return pa.table({f.name: pa.array(columns.get(f.name, [None] * size), f.type) for f in schema(table).arrow()})


def test_what_is_farther_than_any_clock_or_log_is_as_far_as_can_be() -> None:
    within = within_reach(
        rows("batches", base_offset=[LAST, 3, None], max_timestamp_ms=[-LAST - 1, -1, LAST], producer_id=[LAST, 1, None]), "batches"
    )
    assert within["base_offset"].to_pylist() == [FARTHEST, 3, None]
    assert within["max_timestamp_ms"].to_pylist() == [-FARTHEST, -1, FARTHEST]
    assert within["producer_id"].to_pylist() == [LAST, 1, None]
    assert within.schema.types == schema("batches").arrow().types


def test_what_is_within_reach_is_handed_on() -> None:
    same = rows("records", offset=[FARTHEST, 0], timestamp_ms=[-FARTHEST, 1_795_300_000_000])
    assert within_reach(same, "records") is same


@pytest.mark.parametrize(
    "table", ["batches", "records", "coordinator_entries", "offset_commits", "producer_snapshots", "aborted_transactions"]
)
def test_each_table_of_what_others_wrote_has_times_or_offsets(table: str) -> None:
    assert schema(table).longs_in(("ms", "offset"))
