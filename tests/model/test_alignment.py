"""Which marker ended which transaction, where places or clocks leave a choice."""

from dataclasses import replace

import pytest

from eo_audit.model.alignment import Clock, Decided, Marker, Producer, align
from eo_audit.model.marker_prices import STEP_OF_LEADERS
from eo_audit.model.marker_stories import stories_of

PERIOD_MS = 200


def decided(types: str) -> list[Decided]:
    """Transactions of one epoch, one after the other: C a COMMIT, A an ABORT."""
    names = {"C": "COMMIT", "A": "ABORT"}
    return [
        Decided(place=at, epoch=0, decision=names[kind], decided_ms=PERIOD_MS * at, until_ms=PERIOD_MS * at + 10)
        for at, kind in enumerate(types)
    ]


def marker(at: int, kind: str, *, ahead_ms: int = 0, epoch: int = 0) -> Marker:
    """The marker of the transaction `at`, by a clock that is so far ahead."""
    name = {"C": "COMMIT", "A": "ABORT"}[kind]
    return Marker(offset=10 * at, type=name, epoch=epoch, at_ms=PERIOD_MS * at + 5 + ahead_ms, closes=True, odd=epoch > 2)


def told(markers: list[Marker], transactions: str, **ends: bool) -> list[int | None]:
    """The transaction of each marker; none of them may be doubtful."""
    ((matches, _),) = align({1: Producer(markers, decided(transactions), **ends)}, skew_ms=2000).values()
    assert not any(match.doubtful for match in matches)
    return [match.decided for match in matches]


@pytest.mark.parametrize("ahead_ms", [-30_000, -300, 0, 300, 2_500, 30_000])
def test_order_tells_whatever_the_clocks_say(ahead_ms: int) -> None:
    kinds = "CCACACCCAC"
    assert told([marker(at, kind, ahead_ms=ahead_ms) for at, kind in enumerate(kinds)], kinds) == list(range(10))


def test_a_marker_that_was_lost_leaves_its_transaction_without_one() -> None:
    kinds = "CCACACCCAC"
    assert told([marker(at, kind) for at, kind in enumerate(kinds) if at != 4], kinds, newer_markers=False) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_marker_of_the_other_type_is_still_its_transactions() -> None:
    assert told([marker(at, "C") for at in range(6)], "CCACCC", newer_markers=False, newer_decided=False) == list(range(6))


@pytest.mark.parametrize("odd", range(3))
def test_a_marker_of_an_impossible_epoch_stands_for_its_transaction_and_ends_none(odd: int) -> None:
    markers = [marker(at, kind, epoch=3 if at == odd else 0) for at, kind in enumerate("CAC")]
    assert told(markers, "CAC") == [None if at == odd else at for at in range(3)]


def at_times(*times: tuple[int, str, int], leaders: str = "0", closes: str = "1") -> list[Marker]:
    """Markers at (offset, type, ms), under leaders and closing data as the digits say, the last digit for all behind."""
    return [
        Marker(
            offset=offset,
            type={"C": "COMMIT", "A": "ABORT"}[kind],
            epoch=0,
            at_ms=ms,
            closes=closes[min(at, len(closes) - 1)] == "1",
            leader_epoch=int(leaders[min(at, len(leaders) - 1)]),
            by_tool=kind == "A",
        )
        for at, (offset, kind, ms) in enumerate(times)
    ]


def test_a_marker_that_another_leader_got_again_says_nothing_of_the_clocks() -> None:
    # Three partition leaders, the middle one with a clock 11 s behind: the request was sent again because the first answer was lost.
    markers = at_times((1, "C", 5), (2, "C", 205), (3, "C", -10_700), (4, "C", 405), leaders="0012", closes="1101")
    assert told(markers, "CCC") == [0, 1, 1, 2]


def test_a_clock_that_the_log_itself_shows_set_back_costs_nothing() -> None:
    # The coordinator's clock went back by 2.5 s between its second and third decision, as its own times tell.
    ends = [(0, 10), (200, 210), (-2_100, -2_090), (-1_900, -1_890)]
    decisions = [Decided(place=at, epoch=0, decision="COMMIT", decided_ms=first, until_ms=last) for at, (first, last) in enumerate(ends)]
    markers = at_times((1, "C", 5), (2, "C", 205), (3, "C", 405), (4, "C", 605))
    producer = Producer(markers, decisions, newer_markers=False, newer_decided=False)
    assert [story.cost for story in stories_of(producer, Clock(), 2_000)][:1] == [0]


def test_what_two_leaders_clocks_differ_by_is_paid_once_for_all_producers_of_the_log() -> None:
    def one(coordinator: int) -> Producer:
        decisions = [replace(each, first_leader_epoch=3, last_leader_epoch=3) for each in decided("CC")]
        markers = at_times((coordinator, "C", 30_005), (20 + coordinator, "C", 205), leaders="01")
        return Producer(markers, decisions, newer_markers=False, coordinator=coordinator)

    alone = stories_of(one(1), Clock(), 2_000)[0]
    beside = stories_of(one(1), Clock(led_apart=stories_of(one(2), Clock(), 2_000)[0].steps), 2_000)[0]
    assert [match.decided for match in beside.matches()] == [0, 1]
    assert beside.cost == pytest.approx(alone.cost - STEP_OF_LEADERS)


def test_the_last_abort_is_the_last_decisions_before_it_is_a_hands() -> None:
    # It was written 240 ms before the decision, by clocks that agreed until then: set, or an operator who was there at that moment.
    markers = at_times((1, "C", 5), (2, "C", 205), (3, "A", 405 - 240))
    assert told(markers, "CCA") == [0, 1, 2]


def test_stories_that_differ_in_nothing_wrong_are_a_legal_doubt() -> None:
    # One decision that the cleaner left, and two markers that it may have sent, as the clocks allow.
    producer = Producer(at_times((1, "C", 5), (2, "C", 12)), decided("C"), older_markers=True)
    (matches, lost), *_ = align({1: producer}, skew_ms=2_000).values()
    assert [(match.doubtful, match.legal) for match in matches] == [(True, True), (True, True)]
    assert lost == ()


def test_one_of_two_lacks_its_marker_where_nothing_tells_which() -> None:
    # Both dumps are whole; the marker between two that are sure has the clock of a leader of whom nothing else is known.
    markers = at_times((1, "A", 5), (2, "C", 90_000), (3, "A", 605), leaders="012")
    sure = [replace(each, by_tool=False) for each in markers]
    producer = Producer(sure, decided("ACCA"), newer_markers=False, newer_decided=False)
    (matches, lost), *_ = align({1: producer}, skew_ms=2_000).values()
    assert [match.doubtful for match in matches] == [False, True, False]
    assert list(lost) == [1, 2]
