"""One entry of the coordinator beside the one before it, where the log between them was cleaned."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from pyspark.sql import SparkSession

from eo_audit.history.coordinator import coordinator_history
from tests.support.rows import table

LOG = 1


Entry = tuple[int, str, int, str]


def steps(
    spark: SparkSession, *entries: Entry, segments: tuple[int, ...] = (0,), log: Mapping[str, object] = MappingProxyType({})
) -> dict[int, str]:
    """Offset -> step, of entries: offset, transactional id, epoch, status; `segments` are the base offsets of the log's files, `log` what
    else is known of it."""
    rows = [
        {
            "section_id": max(base for base in segments if base <= offset),
            "byte_offset": offset * 100,
            "length": 100,
            "replica_log_id": LOG,
            "entry_offset": offset,
            "partition_leader_epoch": 0,
            "batch_timestamp_ms": 1_000_000 + offset,
            "transactional_id": name,
            "tombstone": status == "Tombstone",
            "producer_id": 4,
            "producer_epoch": epoch,
            "timeout_ms": 60_000,
            "status": None if status == "Tombstone" else status,
            "partitions": [{"topic": "orders", "partition": 0}] if status in ("Ongoing", "PrepareCommit", "PrepareAbort") else None,
            "last_update_ms": 1_000_000 + offset,
            "start_ms": 1_000_000,
            "client_transaction_version": None,
        }
        for offset, name, epoch, status in entries
    ]
    place = {"replica_log_id": LOG, "cluster": "c", "topic": "__transaction_state", "partition": 0, "kind": "log", "is_read": True}
    sections = [place | {"section_id": base, "segment_base_offset": base, "end_reason": "eof"} for base in segments]
    cluster = {"cluster": "c", "transaction_version": 0, "kafka_version": "3.6.2", "id_partitions": 1, "abort_scan_interval_ms": 10_000}
    cluster |= {"transactional_id_expiration_ms": 604_800_000}
    history = coordinator_history(
        table(spark, "coordinator_entries", rows),
        table(spark, "section_status", sections),
        table(spark, "clusters", [cluster]),
        replica_logs=table(spark, "replica_logs", [{"replica_log_id": LOG, "topic": "__transaction_state", **log}]).toArrow(),
    )
    return {row.entry_offset: row.step for row in history.collect()}


# Offset, leader epoch, status. The old leader's end was never acknowledged; its successor ended the transaction by its timeout.
OLD_LEADER = [(0, 3, "Ongoing"), (1, 3, "PrepareCommit"), (2, 3, "PrepareCommit"), (3, 3, "PrepareCommit"), (4, 3, "PrepareCommit")]
NEW_LEADER = [(0, 3, "Ongoing"), (1, 4, "PrepareAbort"), (2, 4, "CompleteAbort")]
NO_EPOCHS = [(offset, None, status) for offset, _, status in NEW_LEADER]


@pytest.mark.parametrize(
    ("replicas", "last"),
    [
        ([OLD_LEADER, NEW_LEADER], "CompleteAbort"),
        ([NEW_LEADER, OLD_LEADER], "CompleteAbort"),
        # Behind another one's end its own goes on.
        ([OLD_LEADER, OLD_LEADER[:3]], "PrepareCommit"),
        # Where no epochs are printed the longest counts.
        ([OLD_LEADER, NO_EPOCHS], "PrepareCommit"),
    ],
)
def test_the_end_of_an_earlier_leader_is_covered_by_no_replica(
    spark: SparkSession, replicas: list[list[tuple[int, int | None, str]]], last: str
) -> None:
    rows = [
        {
            **{"section_id": log, "byte_offset": offset * 100, "length": 100, "replica_log_id": log, "entry_offset": offset},
            **{"partition_leader_epoch": epoch, "batch_timestamp_ms": 1_000_000 + offset, "transactional_id": "one", "tombstone": False},
            **{"producer_id": 4, "producer_epoch": 1 if "Abort" in status else 0, "timeout_ms": 60_000, "status": status},
            **{"last_update_ms": 1_000_000 + offset, "start_ms": 1_000_000},
        }
        for log, entries in enumerate(replicas)
        for offset, epoch, status in entries
    ]
    place = {"cluster": "c", "topic": "__transaction_state", "partition": 0, "kind": "log", "end_reason": "eof", "is_read": True}
    sections = [{**place, "section_id": log, "replica_log_id": log, "segment_base_offset": 0} for log in range(len(replicas))]
    history = coordinator_history(
        table(spark, "coordinator_entries", rows), table(spark, "section_status", sections), table(spark, "clusters", [{"cluster": "c"}])
    )
    assert [row.status for row in history.where("is_last").collect()] == [last]


@pytest.mark.parametrize("last", ["PrepareCommit", "Tombstone"])
def test_a_step_over_what_the_cleaner_of_a_leader_took_is_none(spark: SparkSession, last: str) -> None:
    """A broker of 3.6.2 that had been away: its own uncleaned end, then what its leader had left. Twin was at 3 when it died."""
    found = steps(
        spark,
        (1, "twin", 3, "Empty"),
        (2, "twin", 3, "Ongoing"),
        (3, "twin", 4, "PrepareAbort"),
        (40, "twin", 9, last),
        (41, "other", 0, "Empty"),
    )
    assert found == {1: "first", 2: "legal", 3: "legal", 40: "first", 41: "first"}


def test_what_the_cleaner_left_goes_on(spark: SparkSession) -> None:
    """It leaves one entry of each id: the next one of the id is the next that was written."""
    found = steps(spark, (3, "twin", 4, "CompleteAbort"), (40, "other", 0, "Empty"), (41, "twin", 4, "PrepareCommit"))
    assert found == {3: "first", 40: "first", 41: "illegal"}


def test_one_entry_that_is_lost_is_not_the_cleaners_work(spark: SparkSession) -> None:
    found = steps(spark, (0, "twin", 4, "Empty"), (1, "twin", 4, "Ongoing"), (3, "twin", 4, "CompleteCommit"))
    assert found == {0: "first", 1: "legal", 3: "illegal"}


# `__transaction_state-1` of a broker of 4.3.1 under load. Its first file was dumped, then the cleaner went on, then its last was dumped.
CLEANED = [
    (251, "copy-1", 1, "CompleteAbort"),
    (1702, "new-1", 2, "Ongoing"),
    (1721, "own-0", 7, "Ongoing"),
    (1727, "aio-0", 0, "Ongoing"),
    (1728, "mem-0", 0, "PrepareCommit"),
]
SINCE = [
    (6664, "new-1", 14, "Ongoing"),
    (6665, "mem-0", 1, "PrepareCommit"),
    (6666, "aio-0", 2, "Ongoing"),
    (6667, "mem-0", 1, "CompleteCommit"),
    (6668, "mem-0", 1, "Ongoing"),
    (6669, "aio-0", 2, "PrepareCommit"),
]


def test_a_log_that_was_cleaned_while_it_was_dumped_tells_no_step_between_its_files(spark: SparkSession) -> None:
    """The cleaner would have left the entry at 6663, the newest of its id in all that it had come to."""
    found = steps(spark, *CLEANED, *SINCE, segments=(0, 6664))
    assert [found[offset] for offset, *_ in SINCE] == ["first", "first", "first", "legal", "legal", "legal"]


def test_where_the_cleaner_had_come_to_the_base_of_a_segment_the_log_goes_on(spark: SparkSession) -> None:
    """The entry right before it was left. Where the segment behind was cleaned, too, it need not be."""
    left = [*CLEANED[:2], (6663, "own-0", 7, "PrepareCommit")]
    assert steps(spark, *left, *SINCE[:4], (6668, "own-0", 9, "Ongoing"), segments=(0, 6664))[6668] == "illegal"
    once = [(6700, "aio-0", 0, "PrepareCommit"), (6701, "own-0", 7, "PrepareCommit")]
    found = steps(spark, *CLEANED, *once, segments=(0, 6664))
    assert (found[6700], found[6701]) == ("legal", "legal")


@pytest.mark.parametrize(
    ("log", "step"),
    [
        ({}, "illegal"),
        ({"listed": True, "missing_segments": [2000]}, "first"),
        ({"listed": True, "missing_segments": [], "uncleaned_from": 2000}, "illegal"),
        ({"listed": False, "uncleaned_from": 2000}, "first"),
        ({"listed": False, "uncleaned_from": 6664}, "illegal"),
    ],
)
def test_a_segment_that_was_not_dumped_is_not_the_cleaners_work(spark: SparkSession, log: Mapping[str, object], step: str) -> None:
    """A listing shows it, or the cleaner had not come so far."""
    entries = (3, "twin", 4, "CompleteAbort"), (40, "other", 0, "Empty"), (6664, "twin", 4, "PrepareCommit")
    assert steps(spark, *entries, segments=(0, 6664), log=log)[6664] == step
