"""How much of a timeout is over, when the coordinator ends a transaction, and who wrote: as a person reads it."""

import re

import pytest

from eo_audit.audit.sentences import held_back_sentence
from eo_audit.rules.row import Row
from eo_audit.rules.waiting import frees_at_ms, spent, whose
from eo_audit.words import moment

MINUTE = 60_000


@pytest.mark.parametrize(
    ("ms", "timeout_ms", "said"),
    [
        (40 * MINUTE + 59_999, 60 * MINUTE, "40 of 60 min"),
        (2_500, 10 * MINUTE, "2.5 s of 10 min"),
        (10_000, MINUTE, "10 of 60 s"),
        (70_000, MINUTE, "70 of 60 s"),
        (119_999, MINUTE, "119 of 60 s"),
        (70_691_000, MINUTE, "19 h 38 min of 1 min"),
        (70_691_000, 15 * MINUTE, "19 h 38 min of 15 min"),
        (90_000, 125_500, "1 min of 2 min"),
        (None, MINUTE, "an unknown time of 1 min"),
    ],
)
def test_spent(ms: int | None, timeout_ms: int, said: str) -> None:
    assert spent(ms, timeout_ms) == said


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 1_000 + MINUTE + 7_000),
        ({"last_status": "PrepareCommit"}, None),
        ({"timeout_ms": 2**31 - 1}, None),
        ({"start_ms": -1}, None),
        ({"start_ms": None}, None),
    ],
)
def test_frees_at(changed: dict[str, object], expected: int | None) -> None:
    last = Row({"last_status": "Ongoing", "start_ms": 1_000, "timeout_ms": MINUTE} | changed)
    assert frees_at_ms(last, Row({"abort_scan_interval_ms": 7_000})) == expected


def test_a_scan_takes_ten_seconds_unless_the_cluster_says_otherwise() -> None:
    assert frees_at_ms(Row({"last_status": "Ongoing", "start_ms": 0, "timeout_ms": MINUTE}), Row({})) == MINUTE + 10_000
    assert frees_at_ms(None, Row({})) is None


def test_the_name_that_people_know_comes_first() -> None:
    assert whose("late-writer-0", 1, 0) == "late-writer-0 (producer 1, epoch 0)"
    assert whose("late-writer-0", 1) == "late-writer-0 (producer 1)"
    assert whose(None, 1, 0) == "producer 1 (epoch 0)"
    assert whose("evil\x1b[2J", 1) == "evil\\x1b[2J (producer 1)"


def test_a_moment_of_the_day_of_the_audit_needs_no_date() -> None:
    at = 1_795_306_903_000
    assert moment(at, at + 1) == "00:21:43 UTC"
    assert moment(at, at - 86_400_000) == moment(at) == "2026-11-22 00:21:43 UTC"
    assert moment(10**18) == f"{10**18} ms after 1970"


BLOCKER = {"transactional_id": "a", "producer_id": 7, "coordinator_status": "Ongoing", "held_back_seconds": 5, "timeout_ms": MINUTE}
HELD_BACK = {"cluster": "c", "topic": "orders", "partition": 0, "lso": 3, "hw": 8, "held_back_records": 2, "blocker": BLOCKER}
HANGING = {"rule": "T01", "cluster": "c", "topic": "orders", "partition": 0}


@pytest.mark.parametrize(
    ("changed", "findings", "said"),
    [
        ({}, [], "orders-0: read_committed consumers wait at offset 3 for a .producer 7., open for 5 of 60 s"),
        ({"held_back_records": 0}, [], "orders-0: read_committed consumers wait at .*No committed record stands behind it"),
        (
            {"held_back_records": 0},
            [HANGING],
            "orders-0: read_committed consumers are stuck at .*only an abort frees them, or that producer.s next",
        ),
        ({"held_back_records": None}, [], "orders-0: read_committed consumers are stuck at "),
        (
            {"held_back_records": None, "lso": None},
            [],
            "orders-0: nobody knows whether read_committed consumers are stuck behind a .producer 7.: ",
        ),
        ({"blocker": BLOCKER | {"coordinator_status": None}}, [], "orders-0: .* are stuck at .*these dumps do not tell whether that comes"),
    ],
)
def test_who_waits_is_not_stuck(changed: dict[str, object], findings: list[dict[str, object]], said: str) -> None:
    assert re.match(said, held_back_sentence(HELD_BACK | changed, findings))
