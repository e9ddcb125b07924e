"""Which log a text speaks of: paths as cases, sources in their order, ids that never change."""

from pathlib import Path

import pytest

from eo_audit.dump.files import identity
from eo_audit.dump.files.identity import ManifestHint, PathFacts, identify, parse_path
from tests.support.yaml_text import read_yaml

PATHS = read_yaml(Path(__file__).parent / "cases" / "paths.yaml")


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case["path"])
def test_what_a_path_says(case: dict[str, object]) -> None:
    assert parse_path(str(case.pop("path"))) == PathFacts(**case)  # type: ignore[arg-type]


def test_ids_are_the_same_in_every_run() -> None:
    assert identity.replica_log_id("c", 1, "orders", 0) == 7725280100008829733
    assert identity.dump_file_id("c", "a/b.txt", "00") == 4939065834258073139
    assert identity.section_id(7, 0) == 2755914014053402962


def test_ids_tell_apart_what_differs() -> None:
    logs = [("c", 1, "orders", 0), ("c", None, "orders", 0), ("c", 2, "orders", 0), ("d", 1, "orders", 0), ("c", 1, "orders", 1)]
    ids = {identity.replica_log_id(*log) for log in logs}
    assert len(ids) == len(logs)
    assert all(0 <= number < 2**63 for number in ids)


def test_each_of_broker_topic_and_partition_comes_from_the_first_source_that_names_it() -> None:
    own, dumped = parse_path("broker-1/own-1/00000000000000000001.log.txt"), "broker-2/dumped-2/00000000000000000002.log"

    def named(manifest: ManifestHint, dumped_path: str | None, *, is_first: bool = False) -> tuple[object, ...]:
        found = identify("c", manifest=manifest, dumped_path=dumped_path, own=own, is_first=is_first)
        return found.broker, found.broker_source, found.topic, found.partition, found.segment_base_offset

    assert named(ManifestHint(), None) == (1, "folder", "own", 1, 1)
    assert named(ManifestHint(), dumped) == (2, "path", "dumped", 2, 2)
    assert named(ManifestHint(), "00000000000000000003.log") == (1, "folder", "own", 1, 3)
    assert named(ManifestHint(), "00000000000000000003.log", is_first=True) == (1, "folder", "own", 1, 3)
    assert named(ManifestHint(), "/var/lib/kafka/da", is_first=True) == (1, "folder", "own", 1, 1)
    assert named(ManifestHint(), "/var/lib/kafka/da") == (1, "folder", "own", 1, None)
    assert named(ManifestHint(broker=3), dumped) == (3, "manifest", "dumped", 2, 2)
    assert named(ManifestHint(topic="said", partition=0), dumped) == (2, "path", "said", 0, 2)


def test_a_log_without_partition_has_no_id_and_a_log_without_broker_has_one() -> None:
    unknown = identify("c", manifest=ManifestHint(), dumped_path="00000000000000000000.log", own=PathFacts())
    assert (unknown.broker, unknown.broker_source, unknown.replica_log_id, unknown.kind) == (None, None, None, "log")
    brokerless = identify("c", manifest=ManifestHint(), dumped_path="/d/orders-0/00000000000000000000.log", own=PathFacts())
    assert brokerless.replica_log_id == identity.replica_log_id("c", None, "orders", 0)
