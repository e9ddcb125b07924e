"""What is missing at the end of a log, by what else tells of it: each case is a log of its own, all of them in one query."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import Row, SparkSession

from eo_audit.history.coverage import coverage
from eo_audit.history.log_order import in_log_order
from tests.support.rows import frame, table

ORDERED = """replica_log_id BIGINT, cluster STRING, broker INT, topic STRING, partition INT, hole_at BIGINT, judged BOOLEAN,
    previous_last_offset BIGINT, base_offset BIGINT, last_offset BIGINT, gap STRING, disorder BOOLEAN, crc_invalid BOOLEAN, crc BIGINT,
    count_short BOOLEAN, section_id BIGINT, byte_offset BIGINT, length BIGINT, position_in_log BIGINT"""
PLACE = {"cluster": "c", "broker": 1, "topic": "orders", "partition": 0}
READ = {"kind": "log", "is_read": True, "supported": True, "deep": True, "dir_kind": "normal", "header_length": 40, "byte_offset": 0}
TEN = {"segment_base_offset": 0, "first_offset": 0, "last_offset": 9}  # a section with offsets 0 to 9
DELETED = {"hw": 20, "first_offset": 0, "tail_intact": True, "uncleaned_from": 0, "cleanup_policy": "delete"}
# Batch lines as `in_log_order` gives them, from hole_at on: 9 behind 4, and 0 to 9 without a hole.
NINE_BEHIND_FOUR = (9, True, 4, 9, 9, "hole", False, False, 5, False)
ZERO_TO_NINE = (None, True, None, 0, 9, None, False, False, 5, False)


@dataclass(frozen=True)
class Case:
    """One log without its ids: its row, segments as (base offset, end offset), a section, a batch line at byte 80, unread text."""

    log: dict[str, object]
    segments: Sequence[tuple[int, int]] = ()
    section: dict[str, object] | None = None
    batch: tuple[object, ...] | None = None
    unread: dict[str, object] | None = None


def ending(end_reason: str, *, log_intact: bool, **log: object) -> Case:
    section = {**TEN, "end_reason": end_reason, "tail_intact": end_reason == "eof"}
    return Case({"hw": 15, "first_offset": 0, "tail_intact": log_intact} | log, [(0, 10)], section)


def listed(missing_segments: list[int]) -> Case:
    return Case(DELETED | {"missing_segments": missing_segments}, [(0, 9), (9, 20)], batch=NINE_BEHIND_FOUR)


def unread_before_a_hole(ends_at: int) -> Case:
    return Case(DELETED, batch=NINE_BEHIND_FOUR, unread={"byte_offset": ends_at - 30, "length": 30, "reason": "ambiguous"})


def empty_behind_four(**log: object) -> Case:
    newest = {"newest_below": 4, "base_offset": 9, "section_id": 1, "byte_offset": 0, "length": 40}
    return Case(DELETED | {"empty_newest": newest} | log)


def unread_at_the_end(reason: str, at: int) -> Case:
    section = {**TEN, "end_reason": "eof", "tail_intact": True}
    unread = {"byte_offset": at, "length": 30, "reason": reason}
    return Case({"hw": 10, "first_offset": 0, "tail_intact": True}, [(0, 10)], section, ZERO_TO_NINE, unread)


ENDS = {
    "an end": (ending("eof", log_intact=True), None),
    "an end, and something tells of more": (ending("eof", log_intact=False), "a snapshot, a listed segment or a checkpoint tells of more"),
    "an end, and more was there when it was dumped": (
        ending("eof", log_intact=False, listed_longer=True),
        "more of it was listed right before it was dumped",
    ),
    "cut off": (ending("truncated", log_intact=False), "the dump ends here, the segment does not"),
    "its last line lacks its line end": (
        replace(
            ending("truncated", log_intact=False), batch=ZERO_TO_NINE, unread={"byte_offset": 100, "length": 30, "reason": "no_line_end"}
        ),
        "the last line of the text has no line end",
    ),
    "invalid bytes": (
        Case(
            {"hw": 15, "first_offset": 0, "tail_intact": False},
            [(0, 10)],
            TEN | {"end_reason": "eof", "tail_intact": False, "invalid_tail_bytes": 17},
        ),
        "bytes that are no batch stand behind its last one",
    ),
    "the tool failed": (ending("exception", log_intact=False), "the dump tool failed here"),
}
# Offsets 9 to 22 on the broker, the log start below them.
NINE_ON = {"segment_base_offset": 9, "first_offset": 9, "last_offset": 22, "tail_intact": True}
HEAD = {"hw": 23, "first_offset": 9, "missing_head_from": 0, "tail_intact": True}
HEADS = {
    "not dumped": (Case(HEAD, [(9, 23)], NINE_ON), "older segments were not dumped"),
    "moved to remote storage": (
        Case(HEAD | {"in_remote": True, "only_remote_missing": True, "listed": True}, [(9, 23)], NINE_ON),
        "remote storage: the broker moved the older segments there",
    ),
    "moved to remote storage, or not dumped": (
        Case(HEAD | {"in_remote": True, "listed": False}, [(9, 23)], NINE_ON),
        "remote storage may hold the older segments, or they were not dumped",
    ),
    "moved to remote storage, and one that the broker has was not dumped": (
        Case(HEAD | {"in_remote": True, "listed": True}, [(9, 23)], NINE_ON),
        "older segments were not dumped",
    ),
}
NINE_BEHIND_REMOVED = (9, True, 4, 9, 9, "removed", False, False, 5, False)
REMOVED = {
    "deleted between two dumps": (
        Case(DELETED | {"log_start": 9}, batch=NINE_BEHIND_REMOVED),
        "the broker deleted these segments between two dumps",
    ),
    "moved between two dumps": (
        Case(DELETED | {"log_start": 0, "in_remote": True}, batch=NINE_BEHIND_REMOVED),
        "remote storage: the broker moved these segments there between two dumps",
    ),
    "deleted in remote storage between two dumps": (
        Case(DELETED | {"log_start": 9, "in_remote": True}, batch=NINE_BEHIND_REMOVED),
        "the broker deleted these segments between two dumps",
    ),
}
HOLES = {
    "no segment is listed": (listed([]), "hole", "4 is followed by 9"),
    "the segment is listed": (listed([5]), "segment_missing", "segment 5 is listed, and was not dumped"),
    "another segment is listed": (listed([12]), "hole", "4 is followed by 9"),
    "the text before it was cut": (
        Case(DELETED | {"missing_segments": [], "short_ends": [5]}, batch=NINE_BEHIND_FOUR),
        "lines_missing",
        "the text ends before the last batches of its segment",
    ),
    "unread text right before it": (unread_before_a_hole(80), "unexplained", "unread text: ambiguous"),
    "unread text elsewhere": (unread_before_a_hole(60), "hole", "4 is followed by 9"),
    "the newest segment is empty": (empty_behind_four(), "hole", "4 is followed by 9"),
    "all segments are empty": (empty_behind_four(first_offset=5), "hole", "its segments below 9 hold no batch"),
    "the newest segment is empty, in a cleaned log": (
        empty_behind_four(compacted=True, uncleaned_from=5),
        "unexplained",
        "4 is followed by 9",
    ),
}
# Segment 5 holds no batch that was understood, and the next one begins at 9.
NOTHING_IN_FIVE = {"segment_base_offset": 5, "next_segment_base": 9, "end_reason": "eof", "tail_intact": True}
LOST = {"byte_offset": 100, "length": 30, "reason": "lost_batch"}
WITHIN_CUTS = {
    "an older segment of which no line was understood": (
        Case(DELETED, [(0, 5), (5, 9), (9, 20)], NOTHING_IN_FIVE, NINE_BEHIND_FOUR, LOST),
        ["truncated", "unexplained"],
    ),
    "the same, of which record lines are missing at the end": (
        Case(DELETED, [(0, 5), (5, 9), (9, 20)], NOTHING_IN_FIVE, NINE_BEHIND_FOUR, LOST | {"reason": "missing_record"}),
        ["truncated", "unexplained"],
    ),
    "the same, whose text was cut": (
        Case(DELETED, [(0, 5), (5, 9), (9, 20)], NOTHING_IN_FIVE | {"end_reason": "truncated", "tail_intact": False}, NINE_BEHIND_FOUR),
        ["lines_missing", "truncated"],
    ),
    "an older segment of which no batch was dumped, and no line is odd": (
        Case(DELETED, [(0, 5), (5, 9), (9, 20)], NOTHING_IN_FIVE, NINE_BEHIND_FOUR),
        ["hole", "truncated"],
    ),
    "the same, below what is missing": (
        Case(DELETED, [(0, 5), (9, 20)], NOTHING_IN_FIVE | {"segment_base_offset": 0, "next_segment_base": 5}, NINE_BEHIND_FOUR, LOST),
        ["hole", "truncated"],
    ),
}
EMPTY_ONCE = {
    "an older segment that was empty when it was dumped, and was written and deleted since": (
        Case(DELETED | {"log_start": 9}, [(0, 5), (5, 9), (9, 20)], NOTHING_IN_FIVE, NINE_BEHIND_REMOVED),
        ["not_observed"],
    ),
    "the same, and nothing deleted what was written": (
        Case(DELETED | {"log_start": 5}, [(0, 5), (5, 9), (9, 20)], NOTHING_IN_FIVE, NINE_BEHIND_REMOVED),
        ["not_observed", "truncated"],
    ),
}
DOUBTFUL_ENDS = {
    "ambiguous text behind it": (unread_at_the_end("ambiguous", 100), ["ambiguous"]),
    "ambiguous text before it": (unread_at_the_end("ambiguous", 20), []),
    "a batch line behind it that was cut": (unread_at_the_end("lost_batch", 100), ["lost_batch"]),
    "a record line behind it that is no batch's": (unread_at_the_end("orphan_record", 100), ["orphan_record"]),
    "what follows a record line that is missing": (unread_at_the_end("missing_record", 100), ["missing_record"]),
    "other text behind it": (unread_at_the_end("unknown_line", 100), []),
}


def not_read(reason: str) -> Case:
    section = {**TEN, "is_read": False, "supported": False}
    return Case({"hw": 10, "first_offset": 0, "tail_intact": True}, [], section, None, {"byte_offset": 0, "length": 30, "reason": reason})


def flat(**lacks: bool) -> Case:
    section = {**TEN, "end_reason": "eof", "tail_intact": True, **lacks}
    return Case({"hw": 10, "first_offset": 0, "tail_intact": True}, [(0, 10)], section, ZERO_TO_NINE)


def without_a_name(case: Case) -> Case:
    """The line that names the segment was cut, and nothing of it was read."""
    section = {**(case.section or {}), "segment_base_offset": None, "first_offset": None, "last_offset": None}
    return replace(case, segments=[], section=section, batch=None)


NOT_READ = {
    "a flat dump without its head": (not_read("unsupported_dialect"), "older than 2.2, and its first lines are missing"),
    "the same, and nothing names the segment": (
        without_a_name(not_read("unsupported_dialect")),
        "older than 2.2, and its first lines are missing",
    ),
}
NAMELESS = {
    "cut off in its first lines": (without_a_name(ending("truncated", log_intact=False)), [("truncated", 0, 0)]),
    "flat lines of nobody": (without_a_name(flat(lacks_checksums=True, lacks_epochs=True)), [("no_checksums", 0, 0), ("no_epochs", 0, 0)]),
}
FLAT = {
    "without checksums": (flat(lacks_checksums=True), ["no_checksums"]),
    "without epochs": (flat(lacks_checksums=True, lacks_epochs=True), ["no_checksums", "no_epochs"]),
}
ALL = (ENDS, HEADS, REMOVED, HOLES, WITHIN_CUTS, EMPTY_ONCE, DOUBTFUL_ENDS, NOT_READ, NAMELESS, FLAT)
CASES = {name: told[0] for told_of in ALL for name, told in told_of.items()}


@pytest.fixture(scope="module")
def seen(spark: SparkSession) -> dict[str, list[Row]]:
    """Rows of coverage by case."""
    sections, logs, batches, unread = [], [], [], []
    for number, case in enumerate(CASES.values()):
        own, place = {"section_id": 10 * number}, {"replica_log_id": number, **PLACE}
        parts = [{"base_offset": base, "end_offset": end, "section_id": 10 * number + n} for n, (base, end) in enumerate(case.segments)]
        logs.append({**place, **case.log, "segments": parts})
        sections += [] if case.section is None else [{**place, **READ, **case.section, **own}]
        batches += [] if case.batch is None else [(number, *PLACE.values(), *case.batch, 10 * number, 80, 40, 2)]
        unread += [] if case.unread is None else [{**case.unread, **own}]
    ordered, told = frame(spark, ORDERED, batches), table(spark, "unread_spans", unread)
    return by_log(
        coverage(ordered, table(spark, "section_status", sections), table(spark, "replica_logs", logs), unread_spans=told).collect()
    )


def by_log(rows: list[Row], names: Sequence[str] = tuple(CASES)) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[names[row.replica_log_id]].append(row)
    return found


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_a_log(seen: dict[str, list[Row]], name: str) -> None:
    reason = ENDS[name][1]
    expected = [] if reason is None else [("truncated", 10, 14, reason)]
    assert [(row.state, row.first_offset, row.last_offset, row.reason) for row in seen[name] if row.state != "covered"] == expected


@pytest.mark.parametrize("name", HEADS)
def test_where_the_beginning_of_a_log_is(seen: dict[str, list[Row]], name: str) -> None:
    found = [(row.state, row.first_offset, row.last_offset, row.reason) for row in seen[name]]
    assert found == [("head_missing", 0, 8, HEADS[name][1])]


@pytest.mark.parametrize("name", REMOVED)
def test_where_segments_went_between_two_dumps(seen: dict[str, list[Row]], name: str) -> None:
    found = [(row.state, row.first_offset, row.last_offset, row.reason) for row in seen[name] if row.state != "covered"]
    assert found == [("not_observed", 5, 8, REMOVED[name][1])]


@pytest.mark.parametrize("name", HOLES)
def test_a_hole_is_none_where_a_listing_shows_the_segment_or_text_was_not_understood(seen: dict[str, list[Row]], name: str) -> None:
    _, state, reason = HOLES[name]
    broken = [(row.state, row.first_offset, row.last_offset, row.reason) for row in seen[name] if row.state != "covered"]
    assert broken == [(state, 5, 8, reason)]


@pytest.mark.parametrize("name", EMPTY_ONCE)
def test_a_segment_that_was_empty_once_is_not_cut_where_its_records_were_deleted_since(seen: dict[str, list[Row]], name: str) -> None:
    assert sorted(row.state for row in seen[name] if row.state != "covered") == EMPTY_ONCE[name][1]


@pytest.mark.parametrize("name", WITHIN_CUTS)
def test_what_is_missing_within_text_that_was_not_understood_is_no_hole(seen: dict[str, list[Row]], name: str) -> None:
    assert sorted(row.state for row in seen[name] if row.state != "covered") == WITHIN_CUTS[name][1]
    assert {(row.first_offset, row.last_offset) for row in seen[name] if row.state in ("hole", "unexplained", "lines_missing")} == {(5, 8)}


@pytest.mark.parametrize("name", DOUBTFUL_ENDS)
def test_a_log_whose_last_text_was_of_batches_that_were_not_read_ends_nowhere(seen: dict[str, list[Row]], name: str) -> None:
    expected = [f"unread text: {reason}" for reason in DOUBTFUL_ENDS[name][1]]
    assert [row.reason for row in seen[name] if row.state == "truncated"] == expected


@pytest.mark.parametrize("name", FLAT)
def test_an_old_dump_says_what_it_does_not_show(seen: dict[str, list[Row]], name: str) -> None:
    assert sorted(row.state for row in seen[name] if row.state != "covered") == FLAT[name][1]


@pytest.mark.parametrize("name", NOT_READ)
def test_an_old_dump_that_is_not_read_says_why(seen: dict[str, list[Row]], name: str) -> None:
    ((_state, reason),) = ((row.state, row.reason) for row in seen[name] if row.state == "not_supported")
    assert reason.endswith(NOT_READ[name][1])


@pytest.mark.parametrize("name", NAMELESS)
def test_a_segment_without_a_name_begins_where_the_log_may(seen: dict[str, list[Row]], name: str) -> None:
    assert sorted((row.state, row.first_offset, row.last_offset) for row in seen[name]) == NAMELESS[name][1]


# Batches in the order of the log, behind (0, 2) and then (10, 12); the offsets that stand nowhere.
OUT_OF_ORDER = {
    "all stand later": ([(3, 5), (6, 9), (13, 14)], []),
    "in another order": ([(7, 9), (3, 6)], []),
    "some stand later": ([(5, 6), (8, 8), (13, 14)], [(3, 4), (7, 7), (9, 9)]),
    "one within another": ([(3, 8), (4, 5), (13, 14)], [(9, 9)]),
    "the break is elsewhere": ([(11, 12), (13, 14)], [(3, 9)]),
    "it starts earlier and ends in the hole": ([(1, 4), (13, 14)], [(5, 9)]),
    "no disorder": ([(13, 14)], [(3, 9)]),
}


@pytest.fixture(scope="module")
def out_of_order(spark: SparkSession) -> dict[str, list[Row]]:
    batches, logs = [], []
    for number, (later, _) in enumerate(OUT_OF_ORDER.values()):
        place = {"section_id": number, "replica_log_id": number, "length": 40, "crc_valid": True, "magic": 2}
        batches += [
            place | {"byte_offset": 40 * at, "base_offset": base, "last_offset": last, "count": last - base + 1}
            for at, (base, last) in enumerate([(0, 2), (10, 12), *later])
        ]
        known = {"segments": [(0, 15, number)], "uncleaned_from": 0, "cleanup_policy": "delete", "first_offset": 0, "tail_intact": True}
        logs.append({"replica_log_id": number, **PLACE, **known})
    told = table(spark, "replica_logs", logs)
    rows = coverage(
        in_log_order(table(spark, "batches", batches), told, table(spark, "clusters", [])), table(spark, "section_status", []), told
    ).collect()
    return by_log(rows, tuple(OUT_OF_ORDER))


@pytest.mark.parametrize("name", OUT_OF_ORDER)
def test_offsets_that_stand_later_in_the_log_are_not_missing(out_of_order: dict[str, list[Row]], name: str) -> None:
    found = out_of_order[name]
    assert sorted((row.first_offset, row.last_offset) for row in found if row.state == "hole") == OUT_OF_ORDER[name][1]
    assert {row.reason for row in found if row.state == "hole"} <= {"2 is followed by 10"}
    assert any(row.state == "disorder" for row in found) is (name != "no disorder")
