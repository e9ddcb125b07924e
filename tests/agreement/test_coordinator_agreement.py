"""The coordinator's law twice: replayed id by id in plain Python, rebuilt by windows in Spark. Both say the same of every entry."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from eo_audit.history.coordinator import coordinator_history
from eo_audit.history.instances import transaction_instances
from eo_audit.model.coordinator import Step, replay
from eo_audit.model.entries import Entry
from eo_audit.model.instances import Instance, instances
from eo_audit.model.states import TOMBSTONE, partition_for
from tests.support.coordinator_ghosts import ghost_life
from tests.support.coordinator_logs import CLUSTERS, Cluster, Log, log_of
from tests.support.rows import table

AT_LEAST = 100
COORDINATORS = 50
SEEDS = range(2)
HEALTHY = 7  # the coordinator partition whose entries are all legal, though many appends failed

STEP_VALUES = {
    "step": ["first", "legal", "ghost", "illegal"],
    "step_reason": ["not_in_table", "transient_state", "unknown_state", "double_complete", "tombstone_while_open"],
    "epoch_step": ["ok", "regression", "jump", "pid_change_epoch_not_zero", "not_judged"],
    "field_change": ["timeout", "partitions_shrank", "prepare_partitions", "start", "empty_partitions", "complete_partitions", "epoch"],
    "protocol": ["tv0", "tv2", "unknown"],
}
CAUSES = [
    *("client_abort", "client_abort_with_epoch_bump", "empty_client_abort", "fenced_by_init", "coordinator_timeout"),
    *("timeout_or_fence", "unknown"),
]


# The text of 4.0.0 does not say by which version its coordinator ended what an old client began.
MIXED = [*CLUSTERS, Cluster("old-clients-in-text", "tv0", False, 2, "4.0.0")]


@pytest.fixture(scope="module")
def logs() -> list[Log]:
    mixed = [log_of(random.Random(f"{seed}/{c.name}"), c, seed, ids=120, length=30) for seed in SEEDS for c in MIXED]
    healthy = [log_of(random.Random(f"ghosts/{c.name}"), c, HEALTHY, ids=60, length=40, lived=with_ghosts) for c in CLUSTERS]
    return [*mixed, *healthy]


def with_ghosts(source: random.Random, cluster: Cluster, length: int) -> list[Entry]:
    return ghost_life(source, cluster, length).log


@pytest.fixture(scope="module")
def replayed(logs: list[Log]) -> dict[tuple[str, int, str], list[Step]]:
    lives: dict[tuple[str, int, str], list] = {}
    for log in logs:
        for name, entry, _ in log.entries:
            lives.setdefault((log.cluster.name, log.partition, name), []).append(entry)
    known = {cluster.name: cluster for cluster in MIXED}
    return {
        key: replay(
            entries,
            known[key[0]].transaction_version,
            kafka_version=known[key[0]].kafka_version,
            id_expires_ms=known[key[0]].id_expires_ms,
        )
        for key, entries in lives.items()
    }


def fact_rows(logs: list[Log]) -> Iterator[dict[str, object]]:
    for number, log in enumerate(logs):
        for name, entry, section in log.entries:
            dead = entry.status == TOMBSTONE
            yield {
                "section_id": number * 10 + section,
                "byte_offset": entry.offset * 100,
                "length": 100,
                "replica_log_id": number,
                "entry_offset": entry.offset,
                "partition_leader_epoch": entry.leader_epoch,
                "batch_timestamp_ms": entry.batch_ms,
                "transactional_id": name,
                "tombstone": dead,
                "producer_id": entry.producer_id,
                "producer_epoch": entry.epoch,
                "timeout_ms": entry.timeout_ms,
                "status": None if dead else entry.status,
                "partitions": sorted(entry.partitions) or None,
                "last_update_ms": entry.last_update_ms,
                "start_ms": entry.start_ms,
                "client_transaction_version": entry.client_version,
            }


@pytest.fixture(scope="module")
def clusters(spark: SparkSession) -> DataFrame:
    rows = [
        {
            "cluster": c.name,
            "transaction_version": c.transaction_version,
            "kafka_version": c.kafka_version,
            "id_partitions": COORDINATORS,
            "transactional_id_expiration_ms": c.id_expires_ms,
            "abort_scan_interval_ms": c.scan_ms,
        }
        for c in MIXED
    ]
    return table(spark, "clusters", rows)


@pytest.fixture(scope="module")
def history(spark: SparkSession, logs: list[Log], clusters: DataFrame) -> DataFrame:
    sections = [
        {
            "section_id": number * 10 + section,
            "replica_log_id": number,
            "cluster": log.cluster.name,
            "topic": "__transaction_state",
            "partition": log.partition,
            "kind": "log",
            "segment_base_offset": base,
            "end_reason": "eof",
            "is_read": True,
        }
        for number, log in enumerate(logs)
        for section, base in enumerate(log.bases)
    ]
    return coordinator_history(
        table(spark, "coordinator_entries", list(fact_rows(logs))), table(spark, "section_status", sections), clusters
    ).localCheckpoint()  # not persist: what is cached goes after each test


def expected_entry(key: tuple[str, int, str], step: Step) -> dict[str, object]:
    before = step.previous
    return {
        "protocol": step.protocol,
        "step": step.step,
        "step_reason": step.step_reason,
        "epoch_step": step.epoch_step,
        "field_change": step.field_change,
        "origin_offset": step.origin.offset if step.origin else None,
        "origin_status": step.origin.status if step.origin else None,
        "uncounted": list(step.uncounted) or None,
        "previous_offset": before.offset if before else None,
        "previous_status": before.status if before else None,
        "previous_pid": before.producer_id if before else None,
        "previous_epoch": before.epoch if before else None,
        "instance_id": None if step.run is None else "/".join([key[0], str(key[1]), key[2], str(step.run)]),
        "is_last": step.is_last,
        "head_known": step.head_known,
        "log_previous_batch_ms": step.entry.log_previous_batch_ms,
        "log_previous_leader_epoch": step.entry.log_previous_leader_epoch,
        "previous_leader_epoch": before.leader_epoch if before else None,
        "home_partition": partition_for(key[2], COORDINATORS) if before is None else None,
    }


def test_every_entry(history: DataFrame, replayed: dict[tuple[str, int, str], list[Step]]) -> None:
    rows = {(row.cluster, row.coordinator_partition, row.transactional_id, row.entry_offset): row for row in history.collect()}
    assert len(rows) == sum(len(steps) for steps in replayed.values())
    for key, steps in replayed.items():
        for step in steps:
            row, expected = rows[(*key, step.entry.offset)], expected_entry(key, step)
            assert {name: row[name] for name in expected} == expected, (key, step)


def test_every_value_occurs_often(replayed: dict[tuple[str, int, str], list[Step]]) -> None:
    steps = [step for life in replayed.values() for step in life]
    seen = Counter((name, getattr(step, name)) for step in steps for name in STEP_VALUES)
    rare = {(name, value): seen[name, value] for name, values in STEP_VALUES.items() for value in values if seen[name, value] < AT_LEAST}
    assert not rare


def test_no_failing_append_makes_a_fault(history: DataFrame) -> None:
    healthy = history.where(f"coordinator_partition = {HEALTHY}")
    fault = "step = 'illegal' OR epoch_step NOT IN ('ok', 'not_judged') OR field_change IS NOT NULL"
    assert not healthy.where(fault).collect()
    assert healthy.where("size(uncounted) > 1").count() > AT_LEAST
    assert healthy.where("step = 'ghost' AND origin_offset IS NULL").count() > 0, "from what was compacted away"


def plain(row: Row) -> dict[str, object]:
    """A row as an instance prints itself."""
    values = row.asDict(recursive=True)
    values["partitions"] = frozenset((part["topic"], part["partition"]) for part in values["partitions"])
    cause = values.pop("abort_cause")
    others = tuple(values.pop("abort_cause_alternatives") or ())
    certainty = values.pop("abort_cause_certainty")
    values["cause"] = cause and {"cause": cause, "certainty": certainty, "alternatives": others}
    return values


def all_instances(replayed: dict[tuple[str, int, str], list[Step]]) -> dict[str, Instance]:
    known = {cluster.name: cluster for cluster in MIXED}
    return {
        "/".join([key[0], str(key[1]), key[2], str(found.first_entry_offset)]): found
        for key, steps in replayed.items()
        for found in instances(steps, scan_ms=known[key[0]].scan_ms, server_adds_two=known[key[0]].kafka_version == "4.0.0")
    }


def test_every_instance(history: DataFrame, clusters: DataFrame, replayed: dict[tuple[str, int, str], list[Step]]) -> None:
    expected = all_instances(replayed)
    rows = {row.instance_id: plain(row) for row in transaction_instances(history, clusters).collect()}
    assert rows.keys() == expected.keys()
    for name, found in expected.items():
        assert {column: rows[name][column] for column in asdict(found)} == asdict(found), name
    seen = Counter(found.cause.cause for found in expected.values() if found.cause)
    assert not {cause: seen[cause] for cause in CAUSES if seen[cause] < AT_LEAST}
