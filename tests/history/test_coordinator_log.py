"""One entry of the coordinator beside the one before it, where the log between them was cleaned."""

import pytest
from pyspark.sql import SparkSession

from eo_audit.history.coordinator import coordinator_history
from tests.support.rows import table

LOG = 1


def steps(spark: SparkSession, *entries: tuple[int, str, int, str]) -> dict[int, str]:
    """Offset -> step, of entries: offset, transactional id, epoch, status."""
    rows = [
        {
            "section_id": LOG,
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
    section = {"section_id": LOG, "replica_log_id": LOG, "cluster": "c", "topic": "__transaction_state", "partition": 0, "kind": "log"}
    section |= {"segment_base_offset": 0, "end_reason": "eof", "is_read": True}
    cluster = {"cluster": "c", "transaction_version": 0, "kafka_version": "3.6.2", "id_partitions": 1, "abort_scan_interval_ms": 10_000}
    cluster |= {"transactional_id_expiration_ms": 604_800_000}
    history = coordinator_history(
        table(spark, "coordinator_entries", rows), table(spark, "section_status", [section]), table(spark, "clusters", [cluster])
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
