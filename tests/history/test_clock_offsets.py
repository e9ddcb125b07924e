"""How far the clocks lie apart: of the pairs since one of them was last set, and of none that bounds nothing."""

from collections.abc import Sequence

import pytest
from pyspark.sql import Row, SparkSession

from eo_audit.history.clock_offsets import NEVER_MS, clock_offsets
from tests.support.rows import frame

SCHEMA = """replica_log_id LONG, coordinator_log_id LONG, cluster STRING, match STRING, place LONG,
    marker STRUCT<at_ms: LONG, leader_epoch: INT>,
    found STRUCT<decided_at_ms: LONG, until_ms: LONG, decided_at_offset: LONG, complete_offset: LONG, prepare_leader_epoch: INT,
        complete_leader_epoch: INT>"""


def told(spark: SparkSession, pairs: Sequence[tuple[int, int, int]]) -> Row:
    """The one row of pairs of (marker, decision, completion) in ms, in the order of both logs."""
    rows = [
        (1, 2, "prod", "closing", 10 * at, (marked, 0), (decided, until, 2 * at, 2 * at + 1, 0, 0))
        for at, (marked, decided, until) in enumerate(pairs)
    ]
    (row,) = clock_offsets(frame(spark, SCHEMA, rows)).collect()
    return row


STEADY = [(1_000, 995, 1_005), (2_000, 1_995, 2_005), (3_000, 2_995, 3_005)]


def test_clocks_that_agree(spark: SparkSession) -> None:
    row = told(spark, STEADY)
    assert (row.newest_offset_ms, row.newest_pairs, row.newest_from_offset, row.farthest_offset_ms) == (0, 3, 0, 0)


@pytest.mark.parametrize("set_by", [-2_500, 30_000])
def test_only_pairs_since_a_clock_was_set_tell_of_it_now(spark: SparkSession, set_by: int) -> None:
    row = told(spark, [*STEADY, (4_000 + set_by, 3_995, 4_005), (5_000 + set_by, 4_995, 5_005)])
    assert abs(row.newest_offset_ms - set_by) <= 5
    assert (row.newest_pairs, row.newest_from_offset) == (2, 30)
    assert abs(row.farthest_offset_ms - abs(set_by)) <= 5


def test_a_marker_that_waited_does_not_hide_that_a_clock_was_set(spark: SparkSession) -> None:
    # The one at 4,000 fits both distances; the one behind it does not fit those before.
    row = told(spark, [*STEADY, (4_000, 3_995, 7_000), (5_000, 7_495, 7_505), (6_000, 8_495, 8_505)])
    assert (row.newest_pairs, row.newest_from_offset) == (3, 30)


def test_a_pair_that_bounds_nothing_does_not_hide_those_that_do(spark: SparkSession) -> None:
    row = told(spark, [*STEADY, (1_500, 3_995, NEVER_MS + 1)])  # never completed, by a clock that was set back: the newest of all
    assert (row.newest_offset_ms, row.newest_pairs, row.farthest_offset_ms) == (0, 3, 2_495)


def test_a_clock_that_was_set_behind_the_last_pair_is_told_by_pairs_with_others(spark: SparkSession) -> None:
    """What a lone step of a coordinator's clock is, and what the log's own, nobody can say: all distances are as unsure from there on."""
    pairs = [(marked, decided, 2) for marked, decided, _ in STEADY]
    pairs += [(9_345, 2_149, 3), (7_526, 5_021, 3)]
    rows = [
        (1, coordinator, "prod", "closing", 10 * at, (marked, 0), (decided, decided + 2, 2 * at, 2 * at + 1, 0, 0))
        for at, (marked, decided, coordinator) in enumerate(pairs)
    ]
    spread = {row.coordinator_log_id: row.spread_ms for row in clock_offsets(frame(spark, SCHEMA, rows)).collect()}
    assert spread[2] >= spread[3] > 0
    alone = clock_offsets(frame(spark, SCHEMA, rows[:3])).collect()
    assert [row.spread_ms < 10 for row in alone] == [True]
