"""Every segment is read once, however often it was dumped."""

import pytest
from pyspark.sql import Row, SparkSession

from eo_audit.history.sections import section_status
from eo_audit.history.text import Seen, looking_for, run
from tests.support.rows import table

MONDAY, TUESDAY = 1_000, 2_000


def file(number: int, path: str, *, dumped_at_ms: int | None = None, digest: str | None = None) -> dict[str, object]:
    dump_set = path.rpartition("/")[0]
    return {
        "dump_file_id": number,
        "path": path,
        "dumped_at_ms": dumped_at_ms,
        "digest": digest or f"digest {number}",
        "dump_set": dump_set,
    }


def section(number: int, *, base: int = 0, **more: object) -> dict[str, object]:
    return {
        "section_id": number,
        "dump_file_id": number,
        "length": 100,
        "kind": "log",
        "cluster": "c",
        "replica_log_id": 1,
        "dir_kind": "normal",
        "segment_base_offset": base,
        "dialect": "3.3",
        "deep": True,
    } | more


def metadata(number: int, topic_id: str) -> dict[str, object]:
    return section(number, kind="partition_metadata", segment_base_offset=None, dialect=None, deep=None, topic_id=topic_id)


def batch(section_id: int, base: int, last: int, **more: object) -> dict[str, object]:
    offsets = {"base_offset": base, "last_offset": last, "count": last - base + 1}
    return {"section_id": section_id, "magic": 2, "crc_valid": True} | offsets | more


CASES = {
    "deep beats shallow, even when newer and longer": (
        [file(1, "a.log.txt", dumped_at_ms=MONDAY), file(2, "a.log.shallow.txt", dumped_at_ms=TUESDAY)],
        [section(1), section(2, deep=False, length=900)],
        {2: (1, "deep_beats_shallow")},
    ),
    "the active segment dumped on two days": (
        [file(1, "mon/0.log.txt", dumped_at_ms=MONDAY), file(2, "tue/0.log.txt", dumped_at_ms=TUESDAY)],
        [section(1, length=500), section(2)],
        {1: (2, "newer_dump")},
    ),
    "no dump times: the longer text": (
        [file(1, "x/0.log.txt"), file(2, "y/0.log.txt")],
        [section(1, length=500), section(2, length=600)],
        {1: (2, "longer_dump")},
    ),
    "nobody knows when one of them was dumped: the longer text": (
        [file(1, "x/0.log.txt", dumped_at_ms=MONDAY), file(2, "y/0.log.txt"), file(3, "x/5.log.txt", dumped_at_ms=MONDAY)],
        [section(1, length=500), section(2, length=600), section(3, base=5)],
        {1: (2, "longer_dump")},
    ),
    "a segment that the cleaner has emptied since": (
        [file(1, "mon/0.log.txt", dumped_at_ms=MONDAY), file(2, "tue/0.log.txt", dumped_at_ms=TUESDAY)],
        [section(1, topic="__transaction_state"), section(2, topic="__transaction_state", deep=None, end_reason="eof")],
        {1: (2, "newer_dump")},
    ),
    "a segment whose dump ended before its first batch, of a log that is cleaned": (
        [file(1, "mon/0.log.txt", dumped_at_ms=MONDAY), file(2, "tue/0.log.txt", dumped_at_ms=TUESDAY)],
        [section(1, topic="__transaction_state"), section(2, topic="__transaction_state", deep=None, end_reason="truncated")],
        {2: (1, "deep_beats_shallow")},
    ),
    "the same text twice": (
        [file(1, "x/0.log.txt", digest="d"), file(2, "y/0.log.txt", digest="d")],
        [section(1), section(2)],
        {1: (2, "same_text")},
    ),
    "one segment twice in one file": (
        [file(1, "all.txt")],
        [section(1), section(2, dump_file_id=1, byte_offset=100)],
        {2: (1, "same_text")},
    ),
    "a dialect that can be read beats one that cannot": (
        [file(1, "x.txt"), file(2, "y.txt")],
        [section(1), section(2, dialect="0.11-2.1", length=900)],
        {2: (1, "supported_dialect")},
    ),
    "segments that the cleaner merged since": (
        [file(1, "mon/0.txt", dumped_at_ms=MONDAY), file(2, "mon/50.txt", dumped_at_ms=MONDAY), file(3, "tue/0.txt", dumped_at_ms=TUESDAY)],
        [section(1), section(2, base=50), section(3)],
        {1: (3, "newer_dump"), 2: (3, "newer_dump")},
    ),
    "the index of a segment that the cleaner merged since": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2)] + [file(3, "tue/0.txt", dumped_at_ms=TUESDAY)],
        [section(1, base=50, kind="txnindex"), section(2, base=90, kind="txnindex"), section(3)],
        {1: (3, "newer_dump")},
    ),
    "the index of a segment that the cleaner wrote anew since, without one": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2)] + [file(3, "tue/0.txt", dumped_at_ms=TUESDAY)],
        [section(1, topic="__consumer_offsets"), section(2, kind="txnindex"), section(3, topic="__consumer_offsets")],
        {1: (3, "newer_dump"), 2: (3, "newer_dump")},
    ),
    "the index of a segment that was dumped again without it, of a log that is not cleaned": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2)] + [file(3, "tue/0.txt", dumped_at_ms=TUESDAY)],
        [section(1), section(2, kind="txnindex"), section(3)],
        {1: (3, "newer_dump")},
    ),
    "segments of a cleaned log of which nothing is left": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2)] + [file(n, f"tue/{n}.txt", dumped_at_ms=TUESDAY) for n in (3, 4)],
        [section(number, base=base, topic="__transaction_state") for number, base in ((1, 90), (2, 300), (3, 0), (4, 150))],
        {1: (3, "newer_dump")},
    ),
    "two dumps of a cleaned log, and nobody says when": (
        [file(n, f"mon/{n}.txt") for n in (1, 2)] + [file(n, f"other/{n}.txt") for n in (3, 4)],
        [
            section(number, base=base, length=length, topic="__transaction_state")
            for number, base, length in ((1, 0, 900), (2, 90, 100), (3, 0, 100), (4, 150, 100))
        ],
        {1: (3, "newer_dump"), 2: (4, "newer_dump")},
    ),
    "a topic that was created anew": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2, 3)] + [file(n, f"tue/{n}.txt", dumped_at_ms=TUESDAY) for n in (4, 5)],
        [section(1), section(2, base=300), metadata(3, "first"), section(4), metadata(5, "second")],
        {1: (4, "created_anew"), 2: (4, "created_anew")},
    ),
    "a topic that was created anew, and holds nothing yet": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2, 3)] + [file(n, f"tue/{n}.txt", dumped_at_ms=TUESDAY) for n in (4, 5)],
        [section(1), section(2, base=300), metadata(3, "first"), section(4, deep=None, end_reason="eof"), metadata(5, "second")],
        {1: (4, "created_anew"), 2: (4, "created_anew")},
    ),
    "the same topic on two days": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2, 3)] + [file(n, f"tue/{n}.txt", dumped_at_ms=TUESDAY) for n in (4, 5)],
        [section(1), section(2, base=300), metadata(3, "first"), section(4), metadata(5, "first")],
        {1: (4, "newer_dump")},
    ),
    "segments that a dump lacks, and the cleaner does not work": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2)] + [file(n, f"tue/{n}.txt", dumped_at_ms=TUESDAY) for n in (3, 4)],
        [section(1, base=90), section(2, base=300), section(3), section(4, base=150)],
        {},
    ),
    "a log that was copied anew from another broker, whose log had begun later, and the index of what it held": (
        [file(n, f"mon/{n}.txt", dumped_at_ms=MONDAY) for n in (1, 2)] + [file(3, "tue/25.txt", dumped_at_ms=TUESDAY)],
        [section(1), section(2, kind="txnindex"), section(3, base=25)],
        {1: (3, "newer_dump"), 2: (3, "newer_dump")},
    ),
    "segments of one dump that overlap, the later one dumped later": (
        [file(1, "mon/0.txt", dumped_at_ms=MONDAY), file(2, "mon/25.txt", dumped_at_ms=TUESDAY)],
        [section(1), section(2, base=25)],
        {},
    ),
    "two log directories have a checkpoint each": (
        [file(1, "d1/replication-offset-checkpoint"), file(2, "d2/replication-offset-checkpoint")],
        [section(n, kind="checkpoint", replica_log_id=None, segment_base_offset=None, dialect=None, deep=None, length=n) for n in (1, 2)],
        {},
    ),
    "a newer checkpoint": (
        [file(1, "m/cleaner-offset-checkpoint", dumped_at_ms=MONDAY), file(2, "t/cleaner-offset-checkpoint", dumped_at_ms=TUESDAY)],
        [section(n, kind="checkpoint", replica_log_id=None, segment_base_offset=None, dialect=None, deep=None) for n in (1, 2)],
        {1: (2, "newer_dump")},
    ),
    "what brokers answered on two nights": (
        [file(n, f"{of}/list.txt", dumped_at_ms=at) for n, of, at in ((1, "b", MONDAY), (2, "b", TUESDAY), (3, "c", MONDAY))],
        [
            section(n, dump_file_id=of, byte_offset=at, kind="broker_answers", replica_log_id=None, segment_base_offset=None, deep=None)
            for n, of, at in ((1, 1, 0), (2, 1, 90), (3, 2, 0), (4, 2, 90), (5, 3, 0))
        ],
        {1: (3, "newer_dump"), 2: (3, "newer_dump")},
    ),
    "dump times of two collections, perhaps of other topics": (
        [file(1, "broker-1/dumped-at.txt", dumped_at_ms=MONDAY), file(2, "broker-1/dumped-at.txt", dumped_at_ms=TUESDAY)],
        [section(n, kind="listing", replica_log_id=None, segment_base_offset=None, dialect=None, deep=None) for n in (1, 2)],
        {},
    ),
    "a segment, its index and its snapshot": (
        [file(1, "0.log.txt"), file(2, "0.txnindex.txt"), file(3, "0.snapshot.txt")],
        [section(1), section(2, kind="txnindex"), section(3, kind="snapshot")],
        {},
    ),
    "two brokers": ([file(1, "b1/0.txt"), file(2, "b2/0.txt")], [section(1, broker=1), section(2, broker=2, replica_log_id=2)], {}),
    "a directory being moved": ([file(1, "0.txt"), file(2, "f/0.txt")], [section(1), section(2, dir_kind="future", length=900)], {}),
}


@pytest.fixture(scope="module")
def status(spark: SparkSession) -> dict[str, list[Row]]:
    """All cases in one pass: each is a cluster of its own, with ids of its own."""
    files, sections, batches = [], [], []
    for case, (its_files, its_sections, _) in enumerate(CASES.values()):
        own = {"cluster": str(case)}
        files += [row | own | {"dump_file_id": 100 * case + int(str(row["dump_file_id"]))} for row in its_files]
        for row in its_sections:
            ids = {name: 100 * case + int(str(row[name])) for name in ("section_id", "dump_file_id")}
            log = None if row["replica_log_id"] is None else 100 * case + int(str(row["replica_log_id"]))
            sections.append(row | own | ids | {"replica_log_id": log})
            if row["kind"] == "log" and row["segment_base_offset"] in (0, 150):
                batches.append(batch(ids["section_id"], int(str(row["segment_base_offset"])), int(str(row["segment_base_offset"])) + 80))
    tables = (("dump_sections", sections), ("dump_files", files), ("batches", batches))
    found: dict[str, list[Row]] = {name: [] for name in CASES}
    for row in section_status(*(table(spark, name, rows) for name, rows in tables)).collect():
        found[list(CASES)[int(row.cluster)]].append(row)
    return found


@pytest.mark.parametrize("name", CASES)
def test_supersession(status: dict[str, list[Row]], name: str) -> None:
    _, sections, expected = CASES[name]
    rows = status[name]
    assert {row.section_id % 100: (row.superseded_by % 100, row.supersession_reason) for row in rows if row.superseded_by} == expected
    unread = {row.section_id % 100 for row in rows if not row.is_read}
    assert unread == set(expected) | {s["section_id"] for s in sections if s["dir_kind"] == "future"}
    assert len(rows) == len(sections)


def test_what_a_section_holds(spark: SparkSession) -> None:
    batches = [
        batch(1, 0, 4, max_timestamp_ms=99, timestamp_type="CreateTime"),
        batch(1, 5, 5, max_timestamp_ms=7, timestamp_type="CreateTime", marker_type="COMMIT"),
        batch(1, 6, 8, max_timestamp_ms=500, timestamp_type="LogAppendTime", crc_valid=False),
        batch(2, 0, 4, max_timestamp_ms=6, timestamp_type="LogAppendTime", count=3),
        batch(3, 9, 9, max_timestamp_ms=8, timestamp_type="CreateTime"),
        # Whole batches are gone, and not a byte; in the other one bytes are missing too, as where lines are.
        batch(5, 1, 1, position=0, size_bytes=70, max_timestamp_ms=8, timestamp_type="CreateTime"),
        batch(5, 4, 4, position=70, size_bytes=70, max_timestamp_ms=9, timestamp_type="CreateTime"),
        batch(6, 1, 1, position=0, size_bytes=70, max_timestamp_ms=8, timestamp_type="CreateTime"),
        batch(6, 4, 4, position=140, size_bytes=70, max_timestamp_ms=9, timestamp_type="CreateTime"),
    ]
    sections = [section(1), section(2, base=9), section(3, topic="__transaction_state", replica_log_id=2), section(4, replica_log_id=None)]
    sections += [section(5, replica_log_id=5), section(6, replica_log_id=6)]
    status = section_status(
        table(spark, "dump_sections", sections),
        table(spark, "dump_files", [file(n, f"{n}.txt") for n in range(1, 7)]),
        table(spark, "batches", batches),
    )
    columns = ("first_offset", "last_offset", "newest_broker_clock_ms", "shows_cleaning", "cleaned_to", "is_read")
    assert {row.section_id: tuple(row[name] for name in columns) for row in status.collect()} == {
        1: (0, 8, 7, False, None, True),
        2: (0, 4, 6, True, 5, True),
        3: (9, 9, 8, False, None, True),
        4: (None, None, None, False, None, False),
        5: (1, 4, None, True, None, True),
        6: (1, 4, None, False, None, True),
    }


def test_the_leader_epochs_of_the_batch_at_offset_0_and_of_the_newest(spark: SparkSession) -> None:
    batches = [
        batch(1, 0, 4, partition_leader_epoch=2),
        batch(1, 5, 5, partition_leader_epoch=1),
        batch(2, 0, 4, partition_leader_epoch=2, crc_valid=False),
        batch(3, 9, 9, partition_leader_epoch=2),
        batch(4, 0, 4, partition_leader_epoch=-1),
        batch(5, 0, 4, magic=1),
    ]
    status = section_status(
        table(spark, "dump_sections", [section(n, replica_log_id=n) for n in range(1, 7)]),
        table(spark, "dump_files", [file(n, f"{n}.txt") for n in range(1, 7)]),
        table(spark, "batches", batches),
    )
    assert {row.section_id: row.first_leader_epoch for row in status.collect() if row.first_leader_epoch is not None} == {1: 2}
    assert {row.section_id: row.last_leader_epoch for row in status.collect() if row.last_leader_epoch is not None} == {1: 2, 3: 2}


def test_a_snapshot_that_was_cut_is_not_read_and_one_that_is_damaged_is(spark: SparkSession) -> None:
    """Its listing tells of more producers either way; of the second the tool says why it printed none."""
    messages = [{"section_id": 2, "text_kind": "snapshot_corrupt"}, {"section_id": 3, "text_kind": "invalid_bytes"}]
    status = section_status(
        table(spark, "dump_sections", [section(n, kind="snapshot", base=n, end_reason="truncated") for n in (1, 2, 3)]),
        table(spark, "dump_files", [file(n, f"{n}.txt") for n in (1, 2, 3)]),
        table(spark, "batches", []),
        tool_messages=table(spark, "tool_messages", messages),
    )
    assert {row.section_id: (row.is_read, row.is_in_part, row.fault) for row in status.collect()} == {
        1: (False, True, None),
        2: (True, False, "snapshot_corrupt"),
        3: (False, True, None),
    }


def test_a_log_does_not_end_where_text_behind_its_last_batch_was_not_understood(spark: SparkSession) -> None:
    reasons = {1: ("orphan_record", 300), 2: ("missing_record", 300), 3: ("orphan_record", 100), 4: ("unknown_line", 300)}
    batch = {"base_offset": 0, "last_offset": 0, "count": 1, "byte_offset": 200, "length": 40, "position": 0, "size_bytes": 70}
    status = section_status(
        table(spark, "dump_sections", [section(n, end_reason="eof") for n in (*reasons, 5)]),
        table(spark, "dump_files", [file(n, f"{n}.txt") for n in (*reasons, 5)]),
        table(spark, "batches", [{"section_id": n, "magic": 2, **batch} for n in (*reasons, 5)]),
        unread_spans=table(
            spark, "unread_spans", [{"section_id": n, "reason": why, "byte_offset": at, "length": 50} for n, (why, at) in reasons.items()]
        ),
    )
    assert {row.section_id for row in status.collect() if not row.tail_intact} == {1, 2}


def test_unread_lines_may_hide_sections_in_files_that_are_not_named_like_one_segment(spark: SparkSession) -> None:
    names = {1: "all.txt", 2: f"{'0' * 20}.log.txt", 3: "all.txt", 4: "all.txt", 5: f"{'0' * 20}.log/dump.txt"}
    reasons = {1: "lost_batch", 2: "lost_batch", 3: "blank_line", 5: "ambiguous"}
    status = section_status(
        table(spark, "dump_sections", [section(n, end_reason="truncated" if n == 4 else "eof") for n in names]),
        table(spark, "dump_files", [file(n, name) for n, name in names.items()]),
        table(spark, "batches", []),
        unread_spans=table(spark, "unread_spans", [{"section_id": n, "reason": reason} for n, reason in reasons.items()]),
    )
    assert {row.section_id for row in status.collect() if row.hides_sections} == {1, 4, 5}


def listed(section_id: int, path: str, log: int | None = None) -> dict[str, object]:
    folder, _, name = path.rpartition("/")
    return {"section_id": section_id, "cluster": "c", "replica_log_id": log, "folder": folder, "file_name": name, "file_bytes": 1}


def of_broker(number: int, kind: str, **more: object) -> dict[str, object]:
    return section(number, kind=kind, replica_log_id=None, segment_base_offset=None, dialect=None, deep=None) | more


def checkpointed(section_id: int, log: int) -> dict[str, object]:
    return {"section_id": section_id, "cluster": "c", "broker": 1, "replica_log_id": log, "checkpoint_kind": "replication-offset"}


META = "meta.properties"
# Log 1 was dumped on Monday (file 1), log 2 on both days (2 and 5); listings are 3 and 6, checkpoints 4 and 7.
ON_MONDAY = [listed(3, META), listed(3, "a-0/0.log", 1), listed(3, "b-0/0.log", 2)]
REMOVALS = {
    "the newest listing shows no such log": ([listed(6, META), listed(6, "b-0/0.log", 2)], [checkpointed(7, 2)], True),
    "the newest listing shows it": ([listed(6, META), listed(6, "a-0/0.log", 1)], [checkpointed(7, 2)], False),
    "the collection did not come to it": ([listed(6, META), listed(6, "b-0/0.log", 2)], [checkpointed(7, 1), checkpointed(7, 2)], False),
    "a listing of another directory": ([listed(6, META)], [], False),
    "a listing of one directory, where there were two": ([listed(3, META), listed(6, META)], [checkpointed(7, 2)], False),
    "no listing of the whole directory": ([listed(6, "b-0/0.log", 2)], [checkpointed(7, 2)], False),
}  # fmt: skip


@pytest.mark.parametrize("name", REMOVALS)
def test_of_a_log_that_its_broker_no_longer_has_nothing_is_read(spark: SparkSession, name: str) -> None:
    """Its topic was deleted, or the partition moved away; listing and checkpoint of one collection say so."""
    on_tuesday, named, is_removed = REMOVALS[name]
    paths = ("a-0/0.log.txt", "b-0/0.log.txt", "listing.txt", "replication-offset-checkpoint")
    files = [file(n, f"mon/{path}", dumped_at_ms=MONDAY) for n, path in enumerate(paths, 1)]
    files += [file(n, f"tue/{path}", dumped_at_ms=TUESDAY) for n, path in enumerate(paths[1:], 5)]
    files = [row | {"dump_set": str(row["path"])[:3], "dumped_at_source": "manifest"} for row in files]
    sections = [section(1), section(2, replica_log_id=2), of_broker(3, "listing"), of_broker(4, "checkpoint")]
    sections += [section(5, replica_log_id=2), of_broker(6, "listing"), of_broker(7, "checkpoint")]
    status = section_status(
        table(spark, "dump_sections", [row | {"broker": 1} for row in sections]),
        table(spark, "dump_files", files),
        table(spark, "batches", []),
        listed_files=table(spark, "listed_files", [*ON_MONDAY, *on_tuesday]),
        checkpoints=table(spark, "checkpoints", [checkpointed(4, 1), checkpointed(4, 2), *named]),
    )
    rows = {row.section_id: (row.is_read, row.superseded_by, row.supersession_reason) for row in status.collect()}
    assert rows[1] == ((False, 6, "removed") if is_removed else (True, None, None))
    assert rows[2] == (False, 5, "newer_dump")
    assert rows[5] == (True, None, None)


def of_night(number: int, kind: str, base: int) -> dict[str, object]:
    return section(number, kind=kind, base=base, broker=1, topic="a")


FIRST = {"crc": 1, "partition_leader_epoch": 0, "producer_id": 7, "base_sequence": 5, "max_timestamp_ms": 100}
# On Monday segments 0, 100 and 300 of a log were dumped (1, 2 and 3), and a snapshot at 300 (4); on Tuesday one segment (5).
# Per case: its base, what its first batch has otherwise than Monday's, the files that Tuesday's listing shows, what gives way to it.
ALL = dict.fromkeys((1, 2, 3, 4), "created_anew")
CUT_OFF = dict.fromkeys((1, 2, 3, 4), "newer_dump")
CONTINUED = {
    "the same batch": (0, {}, None, {1: "newer_dump"}),
    "another batch": (0, {"crc": 2}, None, ALL),
    "a batch of another producer, and the tool prints no checksums": (0, {"crc": None, "producer_id": 8}, None, ALL),
    "a batch of another time, and the tool prints neither checksums nor leader epochs": (
        0, {"crc": None, "partition_leader_epoch": None, "max_timestamp_ms": 101}, None, ALL
    ),
    "another batch, by a later leader": (0, {"crc": 2, "partition_leader_epoch": 3}, None, ALL),
    "what the cleaner left of the batch": (0, {"crc": 2, "max_timestamp_ms": 99, "count": 1}, None, {1: "newer_dump"}),
    "a batch of another producer, of a log that is cleaned": (0, {"crc": 2, "producer_id": 8, "count": 1}, None, ALL),
    "a batch whose checksum is wrong": (0, {"crc": 2, "crc_valid": False}, None, {1: "newer_dump"}),
    "another batch of one leader in a later segment": (100, {"crc": 2}, None, ALL),
    # Segment 0 may be deleted by retention, and its records are what they were.
    "another batch, by a later leader, in a later segment": (
        100, {"crc": 2, "partition_leader_epoch": 3}, None, {2: "newer_dump", 3: "newer_dump", 4: "newer_dump"}
    ),
    "the same batch, and the log ends before the others": (0, {}, ("0.log",), CUT_OFF),
    "the same batch, and all segments are listed": (0, {}, ("0.log", "100.log", "300.log"), {1: "newer_dump"}),
    "the same batch, and the snapshot is listed": (0, {}, ("0.log", "100.log", "300.log", "300.snapshot"), {1: "newer_dump"}),
    "the same batch, and another snapshot is listed": (
        0, {}, ("0.log", "100.log", "300.log", "200.snapshot"), {1: "newer_dump", 4: "removed"}
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def continued(spark: SparkSession) -> dict[str, dict[int, str]]:
    """Each case is a log of its own: which sections are not read, and why."""
    files, sections, batches, shown = [], [], [], []
    for case, (base, more, listing, _) in enumerate(CONTINUED.values()):
        own = [of_night(n, kind, at) for n, kind, at in ((1, "log", 0), (2, "log", 100), (3, "log", 300), (4, "snapshot", 300))]
        own += [of_night(5, "log", base), of_broker(6, "listing", broker=1)]
        for row in own:
            number = int(str(row["section_id"]))
            night, at_ms = ("mon", MONDAY) if number < 5 else ("tue", TUESDAY)
            id_ = 100 * case + number
            files.append(file(id_, f"{case}/{night}/{number}.txt", dumped_at_ms=at_ms))
            log = None if row["replica_log_id"] is None else case
            sections.append(row | {"cluster": str(case), "section_id": id_, "dump_file_id": id_, "replica_log_id": log})
        for number, at in ((1, 0), (2, 100), (3, 300)):
            batches.append(batch(100 * case + number, at, at + 2, **FIRST))
        batches += [batch(100 * case + 5, base, base + 2, **(FIRST | more)), batch(100 * case + 5, base + 3, base + 80)]
        for name in listing or ():
            start, _, ending = name.partition(".")
            shown.append(listed(100 * case + 6, f"a-0/{start:0>20}.{ending}", case) | {"cluster": str(case)})
    status = section_status(
        table(spark, "dump_sections", sections),
        table(spark, "dump_files", files),
        table(spark, "batches", batches),
        night_listings=table(spark, "listed_files", shown),
    )
    found: dict[str, dict[int, str]] = {name: {} for name in CONTINUED}
    for row in status.collect():
        if row.supersession_reason:
            assert row.superseded_by % 100 == (6 if row.supersession_reason == "removed" else 5)
            assert not row.is_read
            found[list(CONTINUED)[int(row.cluster)]][row.section_id % 100] = row.supersession_reason
    return found


@pytest.mark.parametrize("name", CONTINUED)
def test_a_log_that_was_begun_or_written_anew_is_told_by_the_first_batch_of_a_segment(
    continued: dict[str, dict[int, str]], name: str
) -> None:
    """Before 2.8 a topic has no id: nothing else tells that it was deleted and created anew between two nights."""
    assert continued[name] == CONTINUED[name][3]


@pytest.mark.parametrize(
    ("file_bytes", "newest", "reason"), [(0, 0, "newer_dump"), (1, 0, "deep_beats_shallow"), (0, 9, "deep_beats_shallow")]
)
def test_a_newest_segment_that_its_listing_shows_empty_holds_nothing_of_before(
    spark: SparkSession, file_bytes: int, newest: int, reason: str
) -> None:
    """A topic without an id that was deleted and created anew, or a log that its broker cut off there; a tool may have died as well."""
    files = [
        file(n, f"{night}/{n}.txt", dumped_at_ms=at) for n, night, at in ((1, "mon", MONDAY), (2, "tue", TUESDAY), (3, "tue", TUESDAY))
    ]
    sections = [of_night(1, "log", 0), of_night(2, "log", 0) | {"deep": None, "end_reason": "eof"}, of_broker(3, "listing", broker=1)]
    names = {f"a-0/{base:020}.log": size for base, size in ((newest, 0), (0, file_bytes))}
    status = section_status(
        table(spark, "dump_sections", sections),
        table(spark, "dump_files", files),
        table(spark, "batches", [batch(1, 0, 2, **FIRST)]),
        night_listings=table(spark, "listed_files", [listed(3, name, 1) | {"file_bytes": size} for name, size in names.items()]),
    )
    assert [row.supersession_reason for row in status.collect() if row.supersession_reason] == [reason]


def test_a_broker_that_was_not_there_when_a_topic_was_created_anew_shows_the_log_before(spark: SparkSession) -> None:
    """Its log begins like that which the other broker had; that of a third one, of which nobody dumped the one before, does not."""
    files, sections, batches = [], [], []
    of = {1: ("mon", 1, 1), 2: ("tue", 1, 2), 3: ("mon", 2, 1), 4: ("tue", 3, 2), 5: ("mon", 4, 3)}
    for number, (night, log, crc) in of.items():
        files.append(file(number, f"{night}/broker-{log}/0.txt", dumped_at_ms=MONDAY if night == "mon" else TUESDAY))
        sections.append(of_night(number, "log", 0) | {"broker": log, "replica_log_id": log, "partition": 0})
        batches.append(batch(number, 0, 2, **(FIRST | {"crc": crc})))
    status = section_status(table(spark, "dump_sections", sections), table(spark, "dump_files", files), table(spark, "batches", batches))
    found = {row.section_id: (row.is_read, row.superseded_by, row.supersession_reason) for row in status.collect()}
    kept = (True, None, None)
    assert found == {1: (False, 2, "created_anew"), 2: kept, 3: (False, 2, "created_anew"), 4: kept, 5: kept}


@pytest.mark.parametrize("inputs", [("/dumps", "/dumps 2"), ("/dumps 2", "/dumps")])
def test_of_two_inputs_that_met_a_text_at_one_moment_the_name_decides(spark: SparkSession, inputs: tuple[str, str]) -> None:
    met = [{"dump_file_id": 1, "dumped_at_ms": TUESDAY, "input_path": name, "dump_set": "night"} for name in inputs]
    tables = {"dump_files": table(spark, "dump_files", [file(1, "a.log.txt", dumped_at_ms=MONDAY)])}
    (row,) = run("section_status", step="met_again", **tables, dump_sightings=table(spark, "dump_sightings", met)).collect()
    assert (row.newest.dumped_at_ms, row.newest.dump_set) == (TUESDAY, f"/dumps night {TUESDAY}")


def test_many_nights_of_many_segments_are_not_held_one_by_one_against_each_other(spark: SparkSession) -> None:
    nights, kept, fewer = 12, 10, 2  # retention takes two segments each night, and two come
    of_nights = [(night, base) for night in range(nights) for base in range(fewer * night, fewer * night + kept)]
    files = [file(n, f"{night}/{base}.log.txt", dumped_at_ms=MONDAY + night) for n, (night, base) in enumerate(of_nights)]
    sections = [section(n, base=base) for n, (_, base) in enumerate(of_nights)]
    batches = [batch(n, base, base) for n, (_, base) in enumerate(of_nights)]
    tables = {name: table(spark, name, rows) for name, rows in (("dump_sections", sections), ("dump_files", files), ("batches", batches))}
    with pytest.raises(Seen) as seen, looking_for("section_status", "beside_segments"):
        section_status(**tables)
    (longest,) = seen.value.rows.selectExpr("max(size(segments))").first() or ()
    assert nights <= longest <= fewer * nights + kept + nights
    status = {row.section_id: row for row in section_status(**tables).collect()}
    newest = {base: n for n, (_, base) in enumerate(of_nights)}
    assert {n for n, row in status.items() if row.is_read} == set(newest.values())
    assert {n: row.superseded_by for n, row in status.items() if row.superseded_by is not None} == {
        n: newest[base] for n, (_, base) in enumerate(of_nights) if newest[base] != n
    }
