"""Two dumps of unknown brokers may agree, or differ in how they were printed, but not in what they say of one segment."""

from pathlib import Path

import pytest

from eo_audit.dump.files.claims import check_claims, claims
from eo_audit.errors import InputError
from tests.support.facts import facts_of

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"

Row = dict[str, object]


def dump(number: int, digest: str, **changed: object) -> tuple[Row, Row]:
    """A dump file of one section, and that section."""
    section: Row = {
        "dump_file_id": number,
        "cluster": "c",
        "broker": None,
        "topic": "orders",
        "partition": 0,
        "replica_log_id": 1,
        "dir_kind": "normal",
        "kind": "log",
        "segment_base_offset": 0,
        "dialect": "3.3",
        "deep": True,
        "payload_printed": True,
        "decoder": "plain",
    }
    return {"dump_file_id": number, "path": f"{number}.log.txt", "digest": digest}, section | changed


def warnings(*dumps: tuple[Row, Row]) -> list[str]:
    return check_claims(claims([file for file, _ in dumps], [section for _, section in dumps]))


def test_what_agrees_is_a_warning() -> None:
    said = "cluster c: nothing says which broker printed 3 of its dump files (name a folder broker-1, or say so in manifest.yaml)"
    assert warnings(dump(1, "a"), dump(2, "a"), dump(3, "b", deep=False)) == [said]


def test_what_differs_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^1\.log\.txt and 2\.log\.txt both claim to be log 0 of orders-0 in cluster c, with different"):
        warnings(dump(1, "a"), dump(2, "b"))


@pytest.mark.parametrize("changed", [{"broker": 1}, {"kind": "checkpoint"}, {"replica_log_id": None}, {"segment_base_offset": None}])
def test_what_makes_no_claim(changed: Row) -> None:
    assert warnings(dump(1, "a", **changed), dump(2, "b", **changed)) == []


@pytest.mark.parametrize(
    "changed", [{"cluster": "d"}, {"segment_base_offset": 7}, {"kind": "snapshot"}, {"dir_kind": "future"}, {"partition": 1}]
)
def test_other_segments_are_no_conflict(changed: Row) -> None:
    assert warnings(dump(1, "a"), dump(2, "b", **changed))


def test_a_file_of_several_sections_makes_no_claim() -> None:
    file, section = dump(1, "a")
    assert claims([file], [section, section | {"segment_base_offset": 9}]) == []


def test_real_dumps_of_an_unknown_broker_are_a_warning() -> None:
    facts = facts_of([DUMPS / "dialects_tv2@2.3.1"])
    (warning,) = check_claims(claims(facts["dump_files"].to_pylist(), facts["dump_sections"].to_pylist()))
    assert warning.startswith("cluster dialects_tv2@2.3.1: nothing says which broker printed ")
