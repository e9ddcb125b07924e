"""Which producer ids were given out, which were used, and what proves that an id was used before all blocks were known."""

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from eo_audit.history.id_allocation import APART_MS, id_allocation
from tests.support.rows import apart, case_of, table

METADATA, ORDERS, STATE = 1, 2, 3
END_MS = 10_000_000  # the newest batch of the metadata log
Rows = list[dict[str, object]]
LOGS: Rows = [
    {"replica_log_id": METADATA, "cluster": "c", "topic": "__cluster_metadata", "partition": 0, "newest_broker_clock_ms": END_MS},
    {"replica_log_id": ORDERS, "cluster": "c", "topic": "orders", "partition": 0},
    {"replica_log_id": STATE, "cluster": "c", "topic": "__transaction_state", "partition": 0},
]
SEGMENT = {
    "section_id": 10, "replica_log_id": METADATA, "kind": "log", "is_read": True, "decoder": "json", "segment_base_offset": 0,
}  # fmt: skip
EARLY, LATE = END_MS - 10 * APART_MS, END_MS - APART_MS // 2


def block(offset: int, next_id: int, section: int = 10) -> dict[str, object]:
    return {"replica_log_id": METADATA, "section_id": section, "record_offset": offset, "next_producer_id": next_id, "broker_id": 1}


def batch(offset: int, pid: int, at_ms: int, kind: str = "data") -> dict[str, object]:
    return {
        "replica_log_id": ORDERS, "base_offset": offset, "producer_id": pid, "row_kind": kind, "judged": True, "max_timestamp_ms": at_ms,
        "timestamp_type": "CreateTime",
    }  # fmt: skip


def entry(offset: int, pid: int, at_ms: int) -> dict[str, object]:
    return {"cluster": "c", "replica_log_id": STATE, "entry_offset": offset, "producer_id": pid, "batch_timestamp_ms": at_ms}


# Inputs besides the usual -> (log, producer) of all users, and of those that are proved; blocks that step back.
CASES: Mapping[str, tuple[dict[str, Rows], set[tuple[int, int]], set[tuple[int, int]]]] = {
    "an id that was given out": ({"producer_history": [batch(0, 7, EARLY), batch(1, 999, EARLY)]}, {(ORDERS, 999)}, set()),
    "a transactional id's": (
        {"coordinator_history": [entry(0, 1000, EARLY), entry(1, 1001, LATE)]},
        {(STATE, 1000), (STATE, 1001)},
        {(STATE, 1000)},
    ),
    "a marker behind it tells when": (
        {"producer_history": [batch(0, 2000, 1), batch(1, 5, EARLY, "marker"), batch(2, 5, LATE, "marker")]},
        {(ORDERS, 2000)},
        {(ORDERS, 2000)},
    ),
    "a marker before it tells nothing": (
        {"producer_history": [batch(0, 5, EARLY, "marker"), batch(1, 2000, 1)]},
        {(ORDERS, 2000)},
        set(),
    ),
    "the client's own clock tells nothing": ({"producer_history": [batch(0, 2000, 1)]}, {(ORDERS, 2000)}, set()),
    "younger than the dump of the metadata log": (
        {"producer_history": [batch(0, 2000, 1), batch(1, 2000, LATE, "marker")]},
        {(ORDERS, 2000)},
        set(),
    ),
    "the metadata log has a hole": (
        {
            "producer_history": [batch(0, 2000, 1), batch(1, 2000, EARLY, "marker")],
            "coverage": [{"replica_log_id": METADATA, "cluster": "c", "state": "hole"}],
        },
        {(ORDERS, 2000)},
        set(),
    ),
    "a segment of it was printed without its decoder": (
        {
            "producer_history": [batch(0, 2000, 1), batch(1, 2000, EARLY, "marker")],
            "section_status": [SEGMENT, {**SEGMENT, "section_id": 11, "decoder": "plain"}],
        },
        {(ORDERS, 2000)},
        set(),
    ),
    "no block is known": ({"producer_id_blocks": [], "producer_history": [batch(0, 2000, EARLY, "marker")]}, set(), set()),
    "the manifest of a ZooKeeper cluster": (
        {
            "producer_id_blocks": [],
            "manifest_entries": [{"section_id": 12, "cluster": "c", "name": "producer_id_block.block_end", "value": "999"}],
            "section_status": [{"section_id": 12, "kind": "manifest", "is_read": True}],
            "producer_history": [batch(0, 1000, 1), batch(1, 1000, EARLY, "marker"), batch(2, 999, EARLY)],
        },
        {(ORDERS, 1000)},
        {(ORDERS, 1000)},
    ),
}


def whole(given: Mapping[str, Rows]) -> dict[str, Rows]:
    usual: dict[str, Rows] = {
        "producer_id_blocks": [block(84, 1000)],
        "section_status": [SEGMENT],
        "replica_logs": LOGS,
        "clusters": [{"cluster": "c", "dumped_at_ms": END_MS}],
    }
    return {**usual, **given}


def allocated(spark: SparkSession, given: Mapping[str, Rows]) -> Rows:
    names = ("producer_history", "coordinator_history", "section_status", "replica_logs", "coverage", "clusters")
    tables = {name: table(spark, name, given.get(name, [])) for name in ("producer_id_blocks", "manifest_entries", *names)}
    rows = id_allocation(tables["producer_id_blocks"], tables["manifest_entries"], **{name: tables[name] for name in names}).collect()
    return [row.asDict() for row in rows]


@pytest.fixture(scope="module")
def users(spark: SparkSession) -> Rows:
    """Of all cases, each in a cluster of its own."""
    together: dict[str, Rows] = {}
    for number, (given, _, _) in enumerate(CASES.values()):
        for name, rows in whole(given).items():
            together.setdefault(name, []).extend(apart(rows, number))
    return [row for row in allocated(spark, together) if row["row_kind"] == "user"]


@pytest.mark.parametrize("name", CASES)
def test_which_ids_were_used_before_all_blocks_were_known(name: str, users: Rows) -> None:
    _, used, proved = CASES[name]
    number = [*CASES].index(name)
    places = {log: apart([{"replica_log_id": log}], number)[0]["replica_log_id"] for log in (ORDERS, STATE)}
    mine = [row for row in users if case_of(row["replica_log_id"]) == number]
    assert {(row["replica_log_id"], row["producer_id"]) for row in mine} == {(places[log], producer) for log, producer in used}
    proofs = {(row["replica_log_id"], row["producer_id"]) for row in mine if row["is_proved"]}
    assert proofs == {(places[log], producer) for log, producer in proved}


def test_blocks_have_the_highest_one_before_them(spark: SparkSession) -> None:
    of_snapshot = block(30, 9000, section=11)
    given: dict[str, Rows] = {
        "producer_id_blocks": [block(84, 1000), block(583, 3000), block(632, 2000), of_snapshot],
        # A snapshot of the metadata has no base offset of a segment, and offsets of its own.
        "section_status": [SEGMENT, {**SEGMENT, "section_id": 11, "segment_base_offset": None}],
    }
    rows = sorted((row for row in allocated(spark, whole(given)) if row["row_kind"] == "block"), key=lambda row: str(row["first_offset"]))
    assert [(row["first_offset"], row["highest_before"], row["previous_offset"]) for row in rows] == [
        (583, 1000, 84),
        (632, 3000, 583),
        (84, None, None),
    ]
