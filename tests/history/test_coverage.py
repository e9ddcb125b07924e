"""What is missing at the end of a log, by what else tells of it."""

import pytest
from pyspark.sql import SparkSession

from eo_audit.history.coverage import coverage
from eo_audit.history.log_order import in_log_order
from tests.support.rows import table

ORDERED = """replica_log_id BIGINT, cluster STRING, broker INT, topic STRING, partition INT, hole_at BIGINT, judged BOOLEAN,
    previous_last_offset BIGINT, base_offset BIGINT, last_offset BIGINT, gap STRING, disorder BOOLEAN, crc_invalid BOOLEAN,
    count_short BOOLEAN, section_id BIGINT, byte_offset BIGINT, length BIGINT, position_in_log BIGINT"""
LOG = {"replica_log_id": 1, "cluster": "c", "broker": 1, "topic": "orders", "partition": 0}


@pytest.mark.parametrize(
    ("end_reason", "log_intact", "reason"),
    [
        ("eof", True, None),
        ("eof", False, "a snapshot, a listed segment or a checkpoint tells of more"),
        ("truncated", False, "the dump ends here, the segment does not"),
    ],
)
def test_the_end_of_a_log(spark: SparkSession, end_reason: str, log_intact: bool, reason: str | None) -> None:
    section = {"kind": "log", "section_id": 7, "segment_base_offset": 0, "first_offset": 0, "last_offset": 9, "end_reason": end_reason}
    known = {"is_read": True, "supported": True, "deep": True, "dir_kind": "normal", "header_length": 40, "byte_offset": 0}
    sections = table(spark, "section_status", [{**LOG, **section, **known, "tail_intact": end_reason == "eof"}])
    segments = [{"base_offset": 0, "end_offset": 10, "section_id": 7}]
    logs = table(spark, "replica_logs", [{**LOG, "hw": 15, "first_offset": 0, "segments": segments, "tail_intact": log_intact}])
    found = coverage(spark.createDataFrame([], ORDERED), sections, logs).collect()
    expected = [] if reason is None else [("truncated", 10, 14, reason)]
    assert [(row.state, row.first_offset, row.last_offset, row.reason) for row in found] == expected


@pytest.mark.parametrize(
    ("missing_segments", "state", "reason"),
    [
        ([], "hole", "4 is followed by 9"),
        ([5], "segment_missing", "segment 5 is listed, and was not dumped"),
        ([12], "hole", "4 is followed by 9"),
    ],
)
def test_a_hole_is_none_where_a_listing_shows_the_segment(
    spark: SparkSession, missing_segments: list[int], state: str, reason: str
) -> None:
    segments = [{"base_offset": 0, "end_offset": 9, "section_id": 7}, {"base_offset": 9, "end_offset": 20, "section_id": 8}]
    told = {"hw": 20, "first_offset": 0, "segments": segments, "tail_intact": True, "uncleaned_from": 0, "cleanup_policy": "delete"}
    logs = table(spark, "replica_logs", [{**LOG, **told, "missing_segments": missing_segments}])
    row = (1, "c", 1, "orders", 0, 9, True, 4, 9, 9, "hole", False, False, False, 8, 80, 40, 2)
    found = coverage(spark.createDataFrame([row], ORDERED), table(spark, "section_status", []), logs).collect()
    assert [(row.state, row.first_offset, row.last_offset, row.reason) for row in found if row.state != "covered"] == [
        (state, 5, 8, reason)
    ]


@pytest.mark.parametrize(
    ("ends_at", "state", "reason"), [(80, "unexplained", "unread text: ambiguous"), (60, "hole", "4 is followed by 9")]
)
def test_a_hole_is_none_where_the_text_before_it_was_not_understood(spark: SparkSession, ends_at: int, state: str, reason: str) -> None:
    told = {"hw": 20, "first_offset": 0, "segments": [], "tail_intact": True, "uncleaned_from": 0, "cleanup_policy": "delete"}
    logs = table(spark, "replica_logs", [{**LOG, **told}])
    row = (1, "c", 1, "orders", 0, 9, True, 4, 9, 9, "hole", False, False, False, 8, 80, 40, 2)
    unread = table(spark, "unread_spans", [{"section_id": 8, "byte_offset": ends_at - 30, "length": 30, "reason": "ambiguous"}])
    ordered = spark.createDataFrame([row], ORDERED)
    found = coverage(ordered, table(spark, "section_status", []), logs, unread_spans=unread).collect()
    assert [(row.state, row.reason) for row in found if row.state != "covered"] == [(state, reason)]


@pytest.mark.parametrize(("reason", "at", "expected"), [("ambiguous", 100, 1), ("ambiguous", 20, 0), ("unknown_line", 100, 0)])
def test_a_log_whose_last_text_can_be_read_in_two_ways_ends_nowhere(spark: SparkSession, reason: str, at: int, expected: int) -> None:
    section = {"kind": "log", "section_id": 8, "segment_base_offset": 0, "first_offset": 0, "last_offset": 9, "end_reason": "eof"}
    known = {"is_read": True, "supported": True, "deep": True, "dir_kind": "normal", "header_length": 40, "tail_intact": True}
    sections = table(spark, "section_status", [{**LOG, **section, **known, "byte_offset": 0}])
    segments = [{"base_offset": 0, "end_offset": 10, "section_id": 8}]
    logs = table(spark, "replica_logs", [{**LOG, "hw": 10, "first_offset": 0, "segments": segments, "tail_intact": True}])
    row = (1, "c", 1, "orders", 0, None, True, None, 0, 9, None, False, False, False, 8, 80, 40, 2)
    unread = table(spark, "unread_spans", [{"section_id": 8, "byte_offset": at, "length": 30, "reason": reason}])
    found = coverage(spark.createDataFrame([row], ORDERED), sections, logs, unread_spans=unread).collect()
    assert [row.reason for row in found if row.state == "truncated"] == ["unread text: ambiguous"] * expected


# Batches in the order of the log, behind (0, 2) and then (10, 12); the offsets that stand nowhere.
OUT_OF_ORDER = {
    "all stand later": ([(3, 5), (6, 9), (13, 14)], []),
    "in another order": ([(7, 9), (3, 6)], []),
    "some stand later": ([(5, 6), (8, 8), (13, 14)], [(3, 4), (7, 7), (9, 9)]),
    "the break is elsewhere": ([(11, 12), (13, 14)], [(3, 9)]),
    "it starts earlier and ends in the hole": ([(1, 4), (13, 14)], [(5, 9)]),
    "no disorder": ([(13, 14)], [(3, 9)]),
}


@pytest.mark.parametrize("name", OUT_OF_ORDER)
def test_offsets_that_stand_later_in_the_log_are_not_missing(spark: SparkSession, name: str) -> None:
    later, missing = OUT_OF_ORDER[name]
    place = {"section_id": 1, "replica_log_id": 1, "length": 40, "crc_valid": True, "magic": 2}
    written = [(0, 2), (10, 12), *later]
    batches = [
        place | {"byte_offset": 40 * number, "base_offset": base, "last_offset": last, "count": last - base + 1}
        for number, (base, last) in enumerate(written)
    ]
    known = {"segments": [(0, 15, 1)], "uncleaned_from": 0, "cleanup_policy": "delete", "first_offset": 0, "tail_intact": True}
    logs = table(spark, "replica_logs", [{**LOG, **known}])
    ordered = in_log_order(table(spark, "batches", batches), logs)
    found = coverage(ordered, table(spark, "section_status", []), logs).collect()
    assert sorted((row.first_offset, row.last_offset) for row in found if row.state == "hole") == missing
    assert {row.reason for row in found if row.state == "hole"} <= {"2 is followed by 10"}
    assert any(row.state == "disorder" for row in found) is (name != "no disorder")
