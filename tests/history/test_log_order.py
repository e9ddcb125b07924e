"""Batches in the order of their replica logs: what stands where, and what breaks the order."""

import pytest
from pyspark.sql import SparkSession

from eo_audit.history.log_order import in_log_order
from tests.support.rows import table

PRINTED_BY_HAND = 100  # bytes a batch line
# Log -> its segments that are read, in the order of their base offsets, each with its batches as (base, last, count, checksum is right).
# Segment numbers are section ids: the text of a later segment may come first.
LOGS: dict[int, dict[int, list[tuple[int, int, int, bool]]]] = {
    1: {12: [(0, 2, 3, True), (3, 3, 1, True)], 11: [(4, 5, 2, True), (9, 9, 1, True)]},
    2: {21: [(0, 2, 3, True), (3, 3, 1, True)]},
    3: {31: [(0, 4, 2, True), (9, 9, 1, True), (20, 29, 9, True), (40, 44, 2, True)]},
    4: {41: [(0, 1, 2, True), (2, 2, 1, True), (2, 3, 2, True), (5, 5, 1, True)]},
    5: {51: [(7, 7, 1, True), (8, 9, 2, False), (10, 10, 1, True)]},
    6: {61: [(0, 0, 1, True), (3, 3, 1, True)], 63: [(12, 12, 1, True), (15, 15, 1, True)]},
    7: {71: [(0, 0, 1, True), (4, 4, 1, True)], 73: [(12, 12, 1, True), (15, 15, 1, True)]},
    **{log: {log * 10 + 1: [(4, 5, 2, True), (6, 6, 1, True)]} for log in (8, 9, 10, 11, 12)},
    13: {131: [], 132: [(4, 5, 2, True), (6, 6, 1, True)]},
}
NOT_READ = {99: [(0, 2, 3, True)]}
BASES = {12: 0, 11: 4, 21: 0, 31: 0, 41: 0, 51: 6, 61: 0, 63: 10, 71: 0, 73: 10, 81: 1, 91: 1, 101: 1, 111: 1, 121: 1, 131: 1, 132: 3}
WHOLE = {"removed_before": [], "first_offset": 1, "log_start": 1}
KNOWN: dict[int, dict[str, object]] = {
    3: {"compacted": True, "uncleaned_from": 20},
    5: {"is_internal": True},
    6: {"compacted": True, "missing_segments": [5]},
    7: {"compacted": True, "short_ends": [5]},
    # A segment named 1 whose first batch stands at 4.
    8: WHOLE,
    9: WHOLE | {"log_start": 3},
    10: WHOLE | {"log_start": 4},
    11: WHOLE | {"compacted": True, "uncleaned_from": 4},
    12: WHOLE | {"first_offset": 4},  # the first lines of its text are missing
    13: WHOLE,  # of the first segment no batch was understood
}


@pytest.fixture(scope="module", params=[None, 7, 26])
def ordered(spark: SparkSession, request: pytest.FixtureRequest) -> dict[int, list[dict[str, object]]]:
    """Rows of each log in order: worked on in one piece, in chunks of a batch or two, and as big as those of huge logs."""
    batches = [
        {
            "section_id": section,
            "byte_offset": number * PRINTED_BY_HAND,
            "length": PRINTED_BY_HAND,
            "replica_log_id": log,
            "base_offset": base,
            "last_offset": last,
            "count": count,
            "crc_valid": valid,
            "magic": 2,
        }
        for log, segments in LOGS.items()
        for section, written in (segments | (NOT_READ if log == 2 else {})).items()
        for number, (base, last, count, valid) in enumerate(written)
    ]
    logs = [
        {"replica_log_id": log, "segments": [(BASES[section], None, section) for section in segments], **KNOWN.get(log, {})}
        for log, segments in LOGS.items()
    ]
    tables = table(spark, "batches", batches), table(spark, "replica_logs", logs), table(spark, "clusters", [])
    rows = in_log_order(*tables, chunk_bits=request.param).collect()
    found = sorted((row.asDict() for row in rows), key=lambda row: row["position_in_log"])
    return {log: [row for row in found if row["replica_log_id"] == log] for log in LOGS}


def column(rows: list[dict[str, object]], name: str) -> list[object]:
    return [row[name] for row in rows]


def test_segments_stand_in_the_order_of_their_base_offsets(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[1], "section_id") == [12, 12, 11, 11]
    assert column(ordered[1], "previous_last_offset") == [None, 2, 3, 5]


def test_a_hole_is_told_apart_from_compaction(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[1], "gap") == [None, None, None, "hole"]
    assert column(ordered[3], "gap") == [None, "compacted", "compacted", "hole"]
    assert column(ordered[3], "cleaned_at") == [None, 9, 20, 20]
    assert column(ordered[3], "hole_at") == [None, None, None, 40]


def test_a_segment_begins_where_its_name_says(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert {log: (ordered[log][0]["gap"], ordered[log][0]["previous_last_offset"]) for log in (8, 9, 10, 11, 12, 13)} == {
        8: ("hole", 0),
        9: ("hole", 2),  # nobody reads below the log start
        10: (None, None),
        11: (None, None),  # the cleaner's work
        12: (None, None),
        13: ("hole", 0),
    }
    assert column(ordered[8], "hole_at") == [4, 4]
    assert column(ordered[8], "disorder") == [False, False]


def test_fewer_records_than_offsets_are_legal_where_the_cleaner_has_been(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[3], "count_short") == [False, False, True, True]


def test_two_replicas_are_two_logs_and_a_section_that_is_not_read_is_none(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[2], "section_id") == [21, 21]
    assert column(ordered[2], "disorder") == [False, False]


def test_nothing_is_judged_behind_a_break(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[4], "disorder") == [False, False, True, False]
    assert column(ordered[4], "judged") == [True, True, False, False]
    assert column(ordered[5], "crc_invalid") == [False, True, False]
    assert column(ordered[5], "judged") == [True, False, False]


def test_internal_topics_have_no_sequences(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[1], "sequenced") == [True] * 4
    assert column(ordered[5], "sequenced") == [False] * 3


# A shallow dump of batches of magic 0 and 1: (offset printed, codec); then one of magic 2, and two of magic 1 behind a hole.
OLD = [(2, "gzip"), (3, "none"), (7, "snappy"), (15, None), (17, "gzip"), (19, "none")]


@pytest.mark.parametrize("chunk_bits", [None, 7, 30])
def test_a_compressed_batch_of_which_only_the_last_offset_is_printed_begins_behind_the_one_before(
    spark: SparkSession, chunk_bits: int | None
) -> None:
    place = {"section_id": 1, "replica_log_id": 1, "length": PRINTED_BY_HAND, "crc_valid": True}
    batches = [
        place | {"byte_offset": PRINTED_BY_HAND * number, "base_offset": last, "last_offset": last, "codec": codec, "magic": 1}
        for number, (last, codec) in enumerate(OLD)
    ]
    batches[3] |= {"base_offset": 8, "count": 8, "magic": 2, "codec": "gzip"}
    logs = [{"replica_log_id": 1, "segments": [(0, None, 1)]}]
    found = in_log_order(
        table(spark, "batches", batches), table(spark, "replica_logs", logs), table(spark, "clusters", []), chunk_bits=chunk_bits
    ).collect()
    rows = [row.asDict() for row in sorted(found, key=lambda row: row.position_in_log)]
    assert column(rows, "base_offset") == [0, 3, 4, 8, 16, 19]
    assert column(rows, "gap") == [None] * 5 + ["hole"]
    assert column(rows, "disorder") == [False] * 6


def test_in_chunks_only_a_log_begins_where_its_segment_does(spark: SparkSession) -> None:
    place = {"section_id": 1, "replica_log_id": 1, "length": PRINTED_BY_HAND, "crc_valid": True, "magic": 2, "count": 1}
    batches = [place | {"byte_offset": PRINTED_BY_HAND * n, "base_offset": 4 + n, "last_offset": 4 + n} for n in range(6)]
    logs = [{"replica_log_id": 1, "segments": [(0, None, 1)], "removed_before": [], "first_offset": 0, "log_start": 0}]
    found = in_log_order(
        table(spark, "batches", batches), table(spark, "replica_logs", logs), table(spark, "clusters", []), chunk_bits=7
    ).collect()
    rows = [row.asDict() for row in sorted(found, key=lambda row: row.position_in_log)]
    assert len(set(column(rows, "chunk"))) > 2
    assert column(rows, "gap") == ["hole"] + [None] * 5
    assert column(rows, "hole_at") == [4] * 6


@pytest.mark.parametrize("chunk_bits", [None, 7, 26])
def test_a_hole_at_the_head_of_a_log_is_seen_behind_text_that_was_not_understood(spark: SparkSession, chunk_bits: int | None) -> None:
    place = {"section_id": 1, "replica_log_id": 1, "length": PRINTED_BY_HAND, "crc_valid": True, "magic": 2, "count": 1}
    batches = [place | {"byte_offset": 70_000_000 + PRINTED_BY_HAND * n, "base_offset": 4 + n, "last_offset": 4 + n} for n in range(2)]
    logs = [{"replica_log_id": 1, "segments": [(0, None, 1)], "removed_before": [], "first_offset": 0, "log_start": 0}]
    found = in_log_order(
        table(spark, "batches", batches), table(spark, "replica_logs", logs), table(spark, "clusters", []), chunk_bits=chunk_bits
    ).collect()
    rows = [row.asDict() for row in sorted(found, key=lambda row: row.position_in_log)]
    assert column(rows, "previous_last_offset") == [-1, 4]
    assert column(rows, "gap") == ["hole", None]
    assert column(rows, "hole_at") == [4, 4]


def test_deep_dumps_show_where_such_a_batch_begins(spark: SparkSession) -> None:
    place = {"section_id": 1, "replica_log_id": 1, "length": PRINTED_BY_HAND, "crc_valid": True, "magic": 1, "codec": "gzip"}
    batches = [
        place | {"byte_offset": 0, "base_offset": 0, "last_offset": 2, "records_seen": 3},
        place | {"byte_offset": PRINTED_BY_HAND, "base_offset": 5, "last_offset": 7, "records_seen": 3},
    ]
    logs = [{"replica_log_id": 1, "segments": [(0, None, 1)]}]
    rows = [
        row.asDict()
        for row in in_log_order(
            table(spark, "batches", batches), table(spark, "replica_logs", logs), table(spark, "clusters", [])
        ).collect()
    ]
    assert sorted((row["base_offset"], row["gap"]) for row in rows) == [(0, None), (5, "hole")]


def test_no_cleaner_took_what_stood_in_a_segment_that_was_listed_and_not_dumped(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[6], "gap") == [None, "compacted", "hole", "compacted"]


def test_no_cleaner_took_what_stands_behind_the_end_of_a_text_that_was_cut(ordered: dict[int, list[dict[str, object]]]) -> None:
    assert column(ordered[7], "gap") == [None, "compacted", "hole", "compacted"]


@pytest.mark.parametrize("chunk_bits", [None, 7])
def test_no_cleaner_took_what_may_stand_in_lines_that_were_not_understood(spark: SparkSession, chunk_bits: int | None) -> None:
    place = {"section_id": 1, "replica_log_id": 1, "length": 40, "crc_valid": True, "magic": 2, "count": 1}
    batches = [place | {"byte_offset": 200 * n, "base_offset": 4 * n, "last_offset": 4 * n} for n in range(5)]
    reasons = {1: "orphan_record", 2: "unknown_line", 4: "missing_record"}
    unread = [{"section_id": 1, "byte_offset": 200 * n - 30, "length": 30, "reason": reason} for n, reason in reasons.items()]
    unread += [{"section_id": 1, "byte_offset": 520, "length": 30, "reason": "lost_batch"}]  # and behind it what was not asked for
    logs = [{"replica_log_id": 1, "segments": [(0, None, 1)], "removed_before": [], "compacted": True, "first_offset": 0, "log_start": 0}]
    tables = table(spark, "batches", batches), table(spark, "replica_logs", logs), table(spark, "clusters", [])
    found = in_log_order(*tables, unread_spans=table(spark, "unread_spans", unread), chunk_bits=chunk_bits).collect()
    gaps = {row.base_offset: row.gap for row in found}
    assert gaps == {0: None, 4: "hole", 8: "compacted", 12: "compacted", 16: "hole"}


def test_what_a_broker_may_have_forgotten(spark: SparkSession) -> None:
    """KAFKA-7190: up to 2.3 it forgets a producer with the last of its records; how far they are deleted, a running one notes each minute.

    The log of a later one may be older than its release.
    """
    logs: dict[int, tuple[str, dict[str, object], int | None]] = {
        1: ("up_to_2_3", {"log_start": 0, "clean_end": True}, 0),
        2: ("up_to_2_3", {"log_start": 40, "clean_end": True}, 40),
        3: ("up_to_2_3", {"log_start": 40, "clean_end": False}, 99),
        4: ("up_to_2_3", {"log_start": 0, "clean_end": False}, 0),
        5: ("later", {"log_start": 40, "clean_end": False}, 40),
        6: ("unknown", {"log_start": 40, "clean_end": False}, 99),
    }
    batches = [{"section_id": log, "byte_offset": 0, "replica_log_id": log, "base_offset": 0, "last_offset": 98} for log in logs]
    known = [
        {
            "replica_log_id": log,
            "cluster": cluster,
            "segments": [(0, None, log)],
            "removed_before": [],
            "first_offset": 0,
            "leo": 99,
            **ends,
        }
        for log, (cluster, ends, _) in logs.items()
    ]
    clusters = [{"cluster": "up_to_2_3", "remembers_by_batches": True}, {"cluster": "later", "remembers_by_batches": False}]
    rows = in_log_order(table(spark, "batches", batches), table(spark, "replica_logs", known), table(spark, "clusters", clusters)).collect()
    assert {row.replica_log_id: row.forgets_below for row in rows} == {log: below for log, (_, _, below) in logs.items()}
