"""The audit's now, the partition count of the coordinator log, and whether that log was dumped whole."""

import random

import pytest
from pyspark.sql import Row, SparkSession

from eo_audit.history.clusters import clusters
from eo_audit.history.text import run
from eo_audit.model import states
from tests.support.rows import table

Rows = list[dict[str, object]]
IDS = [f"order-writer-{n}" for n in range(40)]


def log(partition: int, **more: object) -> dict[str, object]:
    topic = {"topic": "__transaction_state", "partition": partition, "replica_log_id": partition}
    return topic | {"supported": True, "whole": True, "decoded": True} | more


def entries(partitions: int, *, only: set[int] | None = None) -> Rows:
    placed = [(name, states.partition_for(name, partitions)) for name in IDS]
    return [{"transactional_id": name, "replica_log_id": p} for name, p in placed if only is None or p in only]


THREE = [log(0), log(1), log(2)]
NOTHING: dict[str, str | None] = {}
# name: manifest, dump time, logs, coordinator entries, expected columns
CASES: dict[str, tuple[dict[str, str | None], int | None, Rows, Rows, dict[str, object]]] = {
    "nothing but files": (
        NOTHING, None, [], [],
        {"as_of_ms": None, "as_of_source": None, "coordinator_partitions": None, "coordinator_complete": False, "kafka_version": None,
         "max_transaction_timeout_ms": 900_000, "producer_id_expiration_ms": 86_400_000, "abort_scan_interval_ms": 10_000,
         "coordinator_partitions_covered": [], "transaction_version": None},
    ),
    "the manifest's time beats a newer clock": (
        NOTHING, 500, [log(0, newest_broker_clock_ms=900)], [],
        {"as_of_ms": 500, "as_of_source": "manifest", "dumped_at_ms": 500},
    ),
    "the newest clock": (
        NOTHING, None, [log(0, newest_broker_clock_ms=900), log(1, newest_broker_clock_ms=901)], [],
        {"as_of_ms": 901, "as_of_source": "newest_broker_clock"},
    ),
    "the manifest counts": (
        {"transaction_state_partitions": "3", "consumer_offsets_partitions": "2", "kafka_version": "2.3.1", "transaction_version": "0",
         "broker_config.transaction.max.timeout.ms": "60000"},
        None, THREE, entries(50),
        {"coordinator_partitions": 3, "coordinator_partitions_source": "manifest", "offsets_partitions": 2, "coordinator_complete": True,
         "transaction_version": 0, "max_transaction_timeout_ms": 60_000, "producer_id_expiration_ms": 604_800_000,
         "abort_scan_interval_ms": 60_000, "settings_known": True, "id_partitions": 3},
    ),
    "the manifest counts, and the ids fit": (
        {"transaction_state_partitions": "3"}, None, THREE, entries(3),
        {"coordinator_partitions_source": "manifest", "id_partitions": 3, "settings_known": False},
    ),
    "the ids contradict the manifest": (
        {"transaction_state_partitions": "12"}, None, [log(p) for p in range(10)], entries(50, only=set(range(10))),
        {"coordinator_partitions": 12, "id_partitions": None},
    ),
    "more partitions than the manifest counts": (
        {"transaction_state_partitions": "2"}, None, THREE, entries(3, only={0}), {"coordinator_partitions": 2, "id_partitions": None},
    ),
    "too few ids to contradict the manifest": (
        {"transaction_state_partitions": "3"}, None, THREE, entries(50, only={1})[:2], {"id_partitions": 3},
    ),
    "three partitions, by where the ids lie": (
        NOTHING, None, THREE, entries(3),
        {"coordinator_partitions": 3, "coordinator_partitions_source": "inferred", "coordinator_complete": True, "id_partitions": 3,
         "coordinator_partitions_covered": [0, 1, 2]},
    ),
    "three of fifty": (
        NOTHING, None, [log(0), log(1), log(2)], entries(50, only={0, 1, 2}),
        {"coordinator_partitions": 50, "coordinator_complete": False},
    ),
    "the highest partition is missing": (NOTHING, None, [log(0), log(1)], entries(3, only={0, 1}), {"coordinator_partitions": None}),
    "no ids": (NOTHING, None, THREE, [], {"coordinator_partitions": None, "coordinator_complete": False}),
    "one partition without decoder": (NOTHING, None, [log(0), log(1), log(2, decoded=False)], entries(3), {"coordinator_complete": False}),
    "one partition cut": (NOTHING, None, [log(0), log(1), log(2, whole=False)], entries(3), {"coordinator_complete": False}),
    "a second broker has it whole": (
        NOTHING, None, [log(0), log(1), log(2, whole=False), log(2, replica_log_id=7)], entries(3),
        {"coordinator_complete": True},
    ),
    "a dialect that is not read": (NOTHING, None, [log(0, supported=False)], [], {"coordinator_partitions_covered": []}),
    "a client of transaction version 2": (
        NOTHING, None, [log(0)], [{"transactional_id": "a", "replica_log_id": 0, "client_transaction_version": 2}],
        {"transaction_version": 2, "epochs_are_elections": True},
    ),
    "a release that knows ZooKeeper alone": (
        {"kafka_version": "2.3.1"}, None, [log(0)], [], {"epochs_are_elections": False, "remembers_by_batches": True},
    ),
    "the last release that remembers producers by their batches": (
        {"kafka_version": "2.4.0"}, None, [log(0)], [], {"remembers_by_batches": True},
    ),
    "the first that does not": ({"kafka_version": "2.4.1"}, None, [log(0)], [], {"remembers_by_batches": False}),
    "one of the two": ({"kafka_version": "2.4"}, None, [log(0)], [], {"remembers_by_batches": None}),
    "a later release without its bugfix number": ({"kafka_version": "3.5"}, None, [log(0)], [], {"remembers_by_batches": False}),
    "a release that nobody names": (NOTHING, None, [log(0)], [], {"remembers_by_batches": None}),
    "a release that nobody names, with transaction.version 1": (
        {"transaction_version": "1"}, None, [log(0)], [], {"remembers_by_batches": False},
    ),
    "a release that knows both": ({"kafka_version": "3.9.1"}, None, [log(0)], [], {"epochs_are_elections": False}),
    "the metadata log beside the others: KRaft may have come behind ZooKeeper": (
        {"kafka_version": "3.9.1"}, None, [log(0), log(1, topic="__cluster_metadata")], [], {"epochs_are_elections": False},
    ),
    "Confluent's number of Apache's 3.5": (
        {"kafka_version": "7.5.3-ccs"}, None, [log(0)], [], {"kafka_version": "3.5", "epochs_are_elections": False},
    ),
    "Confluent's number of Apache's 2.4": (
        {"kafka_version": "5.4.0-ce"}, None, [log(0)], [],
        {"kafka_version": "2.4", "epochs_are_elections": False, "abort_scan_interval_ms": 60_000},
    ),
    "Confluent's number of Apache's 2.8": ({"kafka_version": "6.2.1-ccs"}, None, [log(0)], [], {"kafka_version": "2.8"}),
    "Confluent's number of Apache's 4.3": (
        {"kafka_version": "8.3.0-0-ccs"}, None, [log(0)], [], {"kafka_version": "4.3", "epochs_are_elections": True},
    ),
    "another vendor's number begins with Apache's": (
        {"kafka_version": "3.4.1.7.1.9.0-387"}, None, [log(0)], [], {"kafka_version": "3.4.1.7.1.9.0-387"},
    ),
    "a release that knows KRaft alone": ({"kafka_version": "4.0.0"}, None, [log(0)], [], {"epochs_are_elections": True}),
}  # fmt: skip


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> dict[str, Row]:
    """All cases in one pass, each a cluster of its own."""
    tables: dict[str, Rows] = {
        name: [] for name in ("manifest_entries", "dump_files", "section_status", "replica_logs", "coordinator_entries")
    }
    for case, (manifest, dumped_at_ms, logs, ids, _) in enumerate(CASES.values()):
        own = {"cluster": str(case)}
        tables["dump_files"].append(own | {"dumped_at_ms": dumped_at_ms})
        tables["section_status"].append(own | {"section_id": case, "kind": "manifest", "is_read": True})
        tables["manifest_entries"] += [own | {"section_id": case, "name": name, "value": value} for name, value in manifest.items()]
        tables["replica_logs"] += [own | row | {"replica_log_id": 100 * case + int(str(row["replica_log_id"]))} for row in logs]
        tables["coordinator_entries"] += [row | {"replica_log_id": 100 * case + int(str(row["replica_log_id"]))} for row in ids]
    frames = {name: table(spark, name, rows) for name, rows in tables.items()}
    rows = clusters(frames.pop("manifest_entries"), frames.pop("dump_files"), **frames).collect()
    return {name: next(row for row in rows if row.cluster == str(case)) for case, name in enumerate(CASES)}


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_of_a_cluster(known: dict[str, Row], name: str) -> None:
    expected = CASES[name][4]
    assert {column: known[name][column] for column in expected} == expected


# Broker (None: a manifest for all of them) and what its manifest says, and the release that is believed.
RELEASES: dict[str, tuple[list[tuple[int | None, str]], str | None]] = {
    "one broker was upgraded": ([(1, "2.8.2"), (2, "2.3.1"), (3, "2.3.1")], "2.3.1"),
    "all but one were": ([(1, "3.9.1"), (2, "3.10.0"), (3, "3.10.0")], "3.9.1"),
    "a bugfix": ([(1, "2.4.1"), (2, "2.4.0")], "2.4.0"),
    "one broker was upgraded from a release whose tool does not know its own": ([(1, "2.5.1"), (2, ""), (3, "")], None),
    "none knows it, and somebody does": ([(None, "2.0.1"), (1, ""), (2, "")], "2.0.1"),
    "none knows it": ([(1, ""), (2, "")], None),
}


def test_of_brokers_that_are_upgraded_one_by_one_the_oldest_release_counts(spark: SparkSession) -> None:
    frames = {name: table(spark, name, []) for name in ("dump_files", "replica_logs", "coordinator_entries")}
    manifests = [
        {"cluster": name, "section_id": 10 * case + n, "broker": broker, "name": "kafka_version", "value": value}
        for case, (name, (said, _)) in enumerate(RELEASES.items())
        for n, (broker, value) in enumerate(said)
    ]
    read = [{key: row[key] for key in ("cluster", "section_id", "broker")} | {"kind": "manifest", "is_read": True} for row in manifests]
    entries = [{key: value for key, value in row.items() if key != "broker"} for row in manifests]
    rows = clusters(
        table(spark, "manifest_entries", entries), frames.pop("dump_files"), section_status=table(spark, "section_status", read), **frames
    ).collect()
    assert {row.cluster: row.kafka_version for row in rows} == {name: version for name, (_, version) in RELEASES.items()}
    mixed = {row.cluster: row.remembers_by_batches for row in rows}
    assert (mixed["one broker was upgraded"], mixed["a bugfix"], mixed["all but one were"]) == (True, True, False)


def test_the_users_now_beats_all(spark: SparkSession) -> None:
    frames = {name: table(spark, name, []) for name in ("section_status", "replica_logs", "coordinator_entries")}
    files = table(spark, "dump_files", [{"cluster": "c", "dumped_at_ms": 5}])
    row = clusters(table(spark, "manifest_entries", []), files, **frames, as_of_ms=7).collect()[0]
    assert (row.as_of_ms, row.as_of_source, row.dumped_at_ms) == (7, "argument", 5)


def test_the_time_of_one_file_is_not_the_collections(spark: SparkSession) -> None:
    frames = {name: table(spark, name, []) for name in ("section_status", "replica_logs", "coordinator_entries")}
    times = {"manifest": 5, "dumped-at": 9}
    files = table(spark, "dump_files", [{"cluster": "c", "dumped_at_ms": at, "dumped_at_source": said} for said, at in times.items()])
    row = clusters(table(spark, "manifest_entries", []), files, **frames).collect()[0]
    assert (row.as_of_ms, row.as_of_source, row.dumped_at_ms) == (5, "manifest", 5)


def test_ids_lie_where_java_puts_them(spark: SparkSession) -> None:
    shuffled = random.Random(7)
    letters = "aZ09 ~-_.\u00e9\u4e2d\u07ff\uffff\U0001f600\U00010000"
    texts = ["", "kafka-txn-0", "polygenelubricants", *("".join(shuffled.choices(letters, k=shuffled.randint(1, 30))) for _ in range(500))]
    rows = {
        "replica_logs": [log(0, cluster="c")],
        "coordinator_entries": [{"transactional_id": text, "replica_log_id": 0} for text in texts],
    }
    names = ("manifest_entries", "dump_files", "section_status", "replica_logs", "coordinator_entries")
    frames = {name: table(spark, name, rows.get(name, [])) for name in names}
    placed = run("clusters", step="placed", **frames, as_of_ms=None, default_partitions=50, nearly_all=0.9, skew_ms=0)
    assert {row.transactional_id: (row.hash, row.by_default) for row in placed.collect()} == {
        text: (states.java_hash(text), states.partition_for(text, 50)) for text in texts
    }
