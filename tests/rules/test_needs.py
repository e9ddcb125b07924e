"""What a rule lacks, in words."""

from dataclasses import replace

import pytest

from eo_audit.rules.catalogue import BY_CODE
from eo_audit.rules.context import Context
from eo_audit.rules.needs import Unknown, sentences, unknown
from eo_audit.rules.replica_log import COORDINATOR_TOPIC, Log
from eo_audit.rules.row import Row


def test_a_cluster_is_named_once_for_all_its_partitions() -> None:
    places = ("a: orders-0", "a: orders-1 (broker 2)", "b: orders-0")
    why, bring = sentences({Unknown("cut_off", place) for place in places})
    assert why == "The dump text of a: orders-0, orders-1 (broker 2), b: orders-0 stops before the log does"
    assert bring == "Dump a: orders-0, orders-1 (broker 2), b: orders-0 again, to its end."


def test_copies_of_a_partition_are_named_together() -> None:
    copies = [("orders-0", 2), ("orders-0", 10), ("orders-0", 1), ("orders-1", 2)]
    why, _ = sentences({Unknown("cut_off", f"a: {partition} (broker {broker})") for partition, broker in copies})
    assert why == "The dump text of a: orders-0 (brokers 1, 2, 10), orders-1 (broker 2) stops before the log does"


def test_one_cluster_needs_no_name() -> None:
    why, _ = sentences({Unknown("cut_off", f"orders-{partition}") for partition in range(6)})
    assert why == "The dump text of orders-0, orders-1, orders-2, orders-3 and 2 more stops before the log does"


def test_text_that_can_be_read_in_two_ways_is_dumped_without_payloads_or_with_a_locale() -> None:
    _, bring = sentences({Unknown("ambiguous", "orders-0")})
    assert "without --print-data-log" in bring
    _, bring = sentences({Unknown("ambiguous_ids", "__transaction_state-3")})
    assert "UTF-8 locale" in bring and "--print-data-log" not in bring


@pytest.mark.parametrize(
    ("other", "hidden"),
    [
        ({"leo": 9, "lacks_records": False}, False),
        ({"leo": 12, "lacks_records": False}, False),
        ({"leo": 8, "lacks_records": False}, True),
        ({"leo": 9, "lacks_records": True}, True),
        ({"leo": 9, "lacks_records": False, "starts_at": 3}, True),
    ],
)
def test_entries_that_one_replica_hides_are_read_from_another_one(other: dict[str, int], hidden: bool) -> None:
    """Where it begins as early and goes on as far."""
    starts_at = other.pop("starts_at", 0)
    damaged = Log(1, "c", 1, COORDINATOR_TOPIC, 0, Row({"leo": 9, "lacks_records": True}), starts_at=0)
    sibling = Log(2, "c", 2, COORDINATOR_TOPIC, 0, Row(other), starts_at=starts_at)
    context = Context(
        logs={1: damaged, 2: sibling}, clusters={}, instances={}, last_of_producer={}, siblings={damaged.place: [damaged, sibling]}
    )
    assert context.half_read == ({"c": frozenset({0})} if hidden else {})


@pytest.mark.parametrize(
    ("other", "because"),
    [
        ({"leo": 9, "last_leader_epoch": 3}, None),
        ({"leo": 8, "last_leader_epoch": 3}, None),
        ({"leo": 12, "last_leader_epoch": 3}, "outdated_replica"),
        ({"leo": 8, "last_leader_epoch": 4}, "outdated_replica"),
        ({"leo": 12, "last_leader_epoch": 2}, None),
        # A leader that was just elected holds what the others hold.
        ({"leo": 9, "last_leader_epoch": 4}, None),
    ],
)
def test_the_end_of_a_coordinator_log_is_that_of_the_replica_that_counts(other: dict[str, int], because: str | None) -> None:
    chosen = Log(1, "c", 1, COORDINATOR_TOPIC, 0, Row({"leo": 9, "last_leader_epoch": 3, "tail_intact": True}), starts_at=0)
    sibling = Log(2, "c", 2, COORDINATOR_TOPIC, 0, Row({**other, "tail_intact": True}), starts_at=0)
    context = Context(logs={1: chosen, 2: sibling}, clusters={}, siblings={chosen.place: [chosen, sibling]})
    for code in ("C01", "C02"):
        found = unknown(BY_CODE[code], chosen, context)
        assert (found.because if found else None) == because


@pytest.mark.parametrize(
    ("source", "first_offset", "because"),
    [
        ("segment_base", 0, "start_untold"),
        ("listing", 0, None),
        ("leader_epochs", 0, None),
        ("segment_base", 3, None),
        ("segment_base", None, None),
    ],
)
def test_a_deleted_head_is_told_only_where_something_says_that_the_broker_has_none(
    source: str, first_offset: int | None, because: str | None
) -> None:
    numbers = {"log_start": 3, "log_start_source": source, "blocker_first_offset": first_offset, "tail_intact": True, "leo": 7}
    log = Log(1, "c", 1, "orders", 0, Row(numbers), starts_at=3)
    found = unknown(BY_CODE["L04"], log, Context(logs={1: log}, clusters={}, siblings={log.place: [log]}))
    assert (found.because if found else None) == because


@pytest.mark.parametrize(
    ("state", "reason", "hides"),
    [("unexplained", "unread text: unknown_line", True), ("unexplained", "segment missing", False), ("compacted", None, False)],
)
def test_entries_are_hidden_where_a_batch_of_the_coordinators_log_was_not_understood(state: str, reason: str | None, hides: bool) -> None:
    log = Log(1, "c", 1, COORDINATOR_TOPIC, 0, Row({"leo": 9, "lacks_records": False}), breaks=(Row({"state": state, "reason": reason}),))
    assert log.hides_entries == hides
    assert not replace(log, topic="orders").hides_entries


@pytest.mark.parametrize(
    ("subjects", "further", "because"),
    [
        ({"perhaps_overdue_marker"}, False, "marker_perhaps_overdue"),
        ({"perhaps_overdue_marker", "overdue_marker"}, False, "marker_overdue"),
        ({"perhaps_overdue_marker"}, True, None),
        (set(), False, None),
    ],
)
def test_a_log_that_ends_before_a_marker_is_not_judged_at_its_end(subjects: set[str], further: bool, because: str | None) -> None:
    """Unless another replica of its partition reaches further."""
    log = Log(1, "c", 1, "orders", 0, Row({"leo": 9, "tail_intact": True}), frozenset(subjects), starts_at=0)
    other = Log(2, "c", 2, "orders", 0, Row({"leo": 12 if further else 4, "tail_intact": True}), starts_at=0)
    context = Context(logs={1: log, 2: other}, clusters={}, siblings={log.place: [log, other]})
    found = unknown(BY_CODE["X02"], log, context)
    assert (found.because if found else None) == because
