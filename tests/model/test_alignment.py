"""Which marker ended which transaction, where places or clocks leave a choice."""

import random
from dataclasses import replace

import pytest

from eo_audit.model.alignment.align import align, bounds_of
from eo_audit.model.alignment.clocks import Decided, Distance, Marker
from eo_audit.model.alignment.prices import (
    FOREIGN_COORDINATOR,
    STEP,
    STEP_OF_LEADERS,
    UNSEEN,
    Clock,
    Match,
    Witness,
    may_be_newer,
    missing,
    witness,
)
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.story import Story, lost_and_newer
from eo_audit.model.alignment.teller import stories_of

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


def told(markers: list[Marker], transactions: str | list[Decided], **ends: int) -> list[int | None]:
    """The transaction of each marker; none of them may be doubtful."""
    known = decided(transactions) if isinstance(transactions, str) else transactions
    ((matches, *_),) = align({1: Producer(markers, known, **ends)}, skew_ms=2000).values()
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


def test_an_abort_between_others_is_the_decisions_before_it_is_a_hands() -> None:
    # The coordinator's clock and the leader's were set, and another leader came. The cleaner may have taken the decision's own marker; that
    # an operator's stands in its place is one thing too many.
    markers = at_times((9, "C", 7_654), (24, "A", 9_872), (31, "C", 22_436), leaders="002")
    ends = [("COMMIT", 7_041, 7_104), ("ABORT", 11_761, 11_825), ("COMMIT", 15_662, 22_439)]
    decisions = [Decided(place=at, epoch=0, decision=kind, decided_ms=first, until_ms=last) for at, (kind, first, last) in enumerate(ends)]
    producer = Producer(markers, decisions, older_decided=True, newer_markers=False, newer_decided=False, cleaned_below=21)
    cheapest = stories_of(producer, Clock(), 2_000)[0]
    assert [match.decided for match in cheapest.matches()] == [0, 1, 2]
    assert cheapest.faults == 0


def test_stories_that_differ_in_nothing_wrong_are_a_legal_doubt() -> None:
    # One decision that the cleaner left, and two markers that it may have sent, as the clocks allow.
    producer = Producer(at_times((1, "C", 5), (2, "C", 12)), decided("C"), older_markers=True)
    (matches, lost, *_), *_ = align({1: producer}, skew_ms=2_000).values()
    assert [(match.doubtful, match.legal) for match in matches] == [(True, True), (True, True)]
    assert not lost


def test_one_of_two_lacks_its_marker_where_nothing_tells_which() -> None:
    # Both dumps are whole; the marker between two that are sure has the clock of a leader of whom nothing else is known.
    markers = at_times((1, "A", 5), (2, "C", 90_000), (3, "A", 605), leaders="012")
    sure = [replace(each, by_tool=False) for each in markers]
    producer = Producer(sure, decided("ACCA"), newer_markers=False, newer_decided=False)
    (matches, lost, *_), *_ = align({1: producer}, skew_ms=2_000).values()
    assert [match.doubtful for match in matches] == [False, True, False]
    assert list(lost) == [1, 2]


def test_an_epoch_that_is_alone_names_its_transaction_whatever_the_clocks_say() -> None:
    # The coordinator's clock was set before the second decision, and the partition leader's behind its marker: the distance came back.
    decisions = [replace(one, epoch=epoch) for epoch, one in enumerate(decided("CAC"))]
    markers = [replace(marker(at, kind), epoch=at) for at, kind in enumerate("CAC")]
    markers[1] = replace(markers[1], at_ms=markers[1].at_ms - 5_000)
    ends = {"newer_markers": False, "newer_decided": False}
    assert stories_of(Producer(markers, decisions, **ends), Clock(), 2_000)[0].cost == 0
    # Where epochs are shared, two steps of a clock are dear.
    shared = [replace(one, epoch=0) for one in decisions], [replace(one, epoch=0) for one in markers]
    assert stories_of(Producer(shared[1], shared[0], **ends), Clock(), 2_000)[0].cost > 1


@pytest.mark.parametrize(("decided_at", "said"), [(10, None), (18, 0)])
def test_a_marker_behind_that_of_a_known_decision_is_not_older_than_what_is_known(decided_at: int, said: int | None) -> None:
    # Another producer's clocks were even; its marker stands at offset 7, and was decided before or behind the first entry that is known.
    seen = [Witness(7, Distance(-5, 5, 600), (None, 0), decided_at=decided_at, completed_at=decided_at + 1)]
    mine = Decided(14, 0, "ABORT", decided_ms=960, until_ms=984, first_leader_epoch=0, decided_at=23, completed_at=24)
    marker_of = replace(at_times((12, "A", 680))[0], leader_epoch=None)
    cheapest = stories_of(Producer([marker_of], [mine], older_markers=True), Clock(seen), 2_000)[0]
    assert [match.decided for match in cheapest.matches()] == [said]


@pytest.mark.parametrize(("opened_at", "running", "said"), [(9, False, False), (11, False, True), (9, True, True), (None, False, True)])
def test_a_marker_is_not_younger_than_the_coordinators_log_where_its_data_is_not(opened_at: int | None, running: bool, said: bool) -> None:
    clock = Clock([Witness(10, Distance(-5, 5, 600), (None, None), decided_at=18, completed_at=19)])
    last = replace(marker(2, "C"), opened_at=opened_at)
    assert may_be_newer(last, Producer([last], [], running=running), clock) is said


@pytest.mark.parametrize(("epoch", "said"), [(2, False), (4, True), (None, True)])
def test_what_a_coordinator_decided_stands_before_all_that_later_ones_wrote(epoch: int | None, said: bool) -> None:
    # The coordinator's log goes on under leader epoch 4.
    last = replace(marker(2, "C"), coordinator_epoch=epoch)
    assert may_be_newer(last, Producer([last], [], told_until_epoch=4), Clock()) is said


@pytest.mark.parametrize(("of_election", "price"), [(True, 0.0), (False, 5 * FOREIGN_COORDINATOR)])
def test_a_zookeeper_cluster_raises_leader_epochs_without_an_election(of_election: bool, price: float) -> None:
    # The coordinator was elected under leader epoch 1, and a follower that died raised it to 3 (seen with three brokers of 2.3.1).
    decisions = [replace(one, first_leader_epoch=3, last_leader_epoch=3, of_election=of_election) for one in decided("CCACC")]
    markers = [replace(marker(at, kind), coordinator_epoch=1) for at, kind in enumerate("CCACC")]
    cheapest = stories_of(Producer(markers, decisions, newer_markers=False, of_election=of_election), Clock(), 2_000)[0]
    assert [match.decided for match in cheapest.matches()] == [0, 1, 2, 3, 4]
    assert cheapest.faults == pytest.approx(price)
    assert may_be_newer(markers[-1], Producer([markers[-1]], [], told_until_epoch=3, of_election=of_election), Clock()) is of_election


@pytest.mark.parametrize(("told_until_ms", "epoch", "may_be"), [(500, 3, False), (300, 3, True), (500, 4, True), (None, None, True)])
def test_the_coordinators_log_tells_up_to_its_dump(told_until_ms: int | None, epoch: int | None, may_be: bool) -> None:
    """The last marker, at 400 ms, is younger than that log, unless the log tells of that time by the same leader's clock."""
    decisions = [replace(one, first_leader_epoch=3, last_leader_epoch=3) for one in decided("CC")]
    producer = Producer(at_times((1, "C", 5), (2, "C", 205), (3, "C", 405)), decisions, told_until_ms=told_until_ms, told_until_epoch=epoch)
    assert (stories_of(producer, Clock(), 2_000)[0].cost < 0.1) is may_be


def test_the_cleaner_takes_the_data_before_the_marker() -> None:
    # Both logs were cleaned, and the clocks lie 250 ms apart: markers that end nothing any more are no transactions without data.
    markers = [replace(marker(at, "C", ahead_ms=250), closes=at == 11) for at in range(2, 12)]
    ends = Producer(markers, decided("CCCCCCCCCCCC"), older_markers=True, older_decided=True, cleaned_below=120)
    assert [match.decided for match in stories_of(ends, Clock(), 2_000)[0].matches()] == list(range(2, 12))


def test_a_log_that_ended_before_what_the_coordinator_still_tells_shares_no_pair_with_it() -> None:
    # The last ABORT may be a hand's where it is younger than what is told; here it is older, and one pair of clocks 3 s apart is none.
    markers = at_times((1, "C", 100), (2, "C", 300), (3, "C", 500), (4, "A", 700))
    late = [replace(one, decided_ms=one.decided_ms + 3_700, until_ms=(one.until_ms or 0) + 3_700) for one in decided("ACA")]
    cheapest = stories_of(Producer(markers, late, older_markers=True), Clock(), 2_000)[0]
    assert {match.decided for match in cheapest.matches()} == {None}
    assert not cheapest.lost


@pytest.mark.parametrize(
    ("matches", "lost", "told"),
    [
        ([0, 1, 9, None, None, None], (2, 3, 4, 5), 2),
        ([0, 9, None, None, -9], (2, 3), 1),
        ([0, None, None], (), 0),
        ([0, 2, None], (1,), 0),
    ],
)
def test_as_many_markers_behind_as_transactions_before_lack_theirs_are_theirs(
    matches: list[int | None], lost: tuple[int, ...], told: int
) -> None:
    # What is below zero repeats a marker, and is no sign that the one before was not younger than all that is told.
    story = Story(0.0, 0.0, 10, lost=lost)
    for match in matches:
        again = match is not None and match < 0
        story = story._replace(told=(story, Match(abs(match) if match is not None else None, again=again, doubtful=False)))
    assert lost_and_newer(story) == told


def test_of_two_brokers_that_stopped_hardly_anything_is_newer() -> None:
    # The second marker is of a later time by the clock of the first pair, or that clock was set by 300 ms before it.
    markers = at_times((29, "C", 6_022), (32, "C", 6_872))
    decisions = [Decided(at, 0, "COMMIT", ms, ms + 10) for at, ms in enumerate((1_437, 3_326, 5_999, 7_168))]
    for both_stopped in (True, False):
        ends = Producer(markers, decisions, older_decided=True, both_stopped=both_stopped)
        (first, _) = align({1: ends}, skew_ms=2_000)[1].matches
        assert (first.decided, first.doubtful, first.legal) == (3, both_stopped, True)


@pytest.mark.parametrize(("both_stopped", "price"), [(False, STEP_OF_LEADERS), (True, STEP)])
def test_a_leader_that_came_later_has_another_clock_or_wrote_behind_the_coordinators_end(both_stopped: bool, price: float) -> None:
    # Its two markers look older than the end of the coordinator's log, at 500 ms, and more than its clock they tell only once.
    decisions = [replace(one, first_leader_epoch=3, last_leader_epoch=3) for one in decided("CC")]
    markers = at_times((1, "C", 5), (2, "C", 205), (3, "A", 405), (4, "A", 425), leaders="001")
    ends = Producer(markers, decisions, both_stopped=both_stopped, told_until_ms=500, told_until_epoch=3)
    assert stories_of(ends, Clock(), 2_000)[0].cost == pytest.approx(price + UNSEEN)


@pytest.mark.parametrize(("cleaned_below", "price"), [(0, 1.0), (5, 1.0), (15, 0.25)])
def test_the_cleaner_takes_no_marker_behind_what_it_has_cleaned(cleaned_below: int, price: float) -> None:
    markers = [marker(at, "C") for at in (0, 1, 3)]
    producer = Producer(markers, decided("CCCC"), newer_markers=False, newer_decided=False, cleaned_below=cleaned_below)
    cheapest = stories_of(producer, Clock(), 2_000)[0]
    assert (cheapest.lost, cheapest.cost) == ((2,), pytest.approx(price))


def test_five_markers_are_lost_as_one_only_where_a_later_leader_may_have_cut_the_log() -> None:
    # The coordinator's clock was set by 2.5 s behind its first decision; or five transactions lack theirs, five markers are younger.
    decisions = [replace(one, decided_ms=one.decided_ms + 2_700, until_ms=(one.until_ms or 0) + 2_700) for one in decided("CCCCCCC")]
    markers = at_times((0, "C", 5), *((10 * at, "C", 205 + 200 * at) for at in range(1, 7)))
    producer = Producer(markers, [*decided("C"), *decisions[1:]])
    assert [match.decided for match in stories_of(producer, Clock(), 2_000)[0].matches()] == list(range(7))
    assert [missing(5, producer, None, alone=alone) for alone in (True, False)] == pytest.approx([2.6, 1.04])


def test_a_clock_that_two_producers_saw_set_is_paid_once() -> None:
    # Neither lost a marker: one clock went back by 300 ms, about one period, between their markers.
    def one(first: int) -> Producer:
        times = [(first, "C", first + 5), (first + 10, "C", PERIOD_MS + first + 5), (first + 20, "C", 2 * PERIOD_MS + first + 5 - 190)]
        decisions = [replace(each, decided_ms=each.decided_ms + first, until_ms=(each.until_ms or 0) + first) for each in decided("CCC")]
        return Producer(at_times(*times), decisions, older_markers=True, newer_markers=False, newer_decided=False, coordinator=1)

    told_of = align({1: one(1), 2: one(4)}, skew_ms=2_000)
    assert [[match.decided for match in each.matches] for each in told_of.values()] == [[0, 1, 2]] * 2
    assert not any(match.doubtful for each in told_of.values() for match in each.matches)


def test_a_marker_that_waited_does_not_tell_on_which_side_of_it_the_clock_was_set() -> None:
    decisions = decided("CCCC")
    waited = [decisions[0], decisions[1], replace(decisions[2], until_ms=decisions[2].decided_ms + 4_000), decisions[3]]
    markers = [marker(at, "C", ahead_ms=0 if at < 2 else 2_500) for at in range(4)]
    (story, *_) = stories_of(Producer(markers, waited, newer_markers=False, newer_decided=False), Clock(), 2_000)
    assert [match.decided for match in story.matches()] == [0, 1, 2, 3]
    assert [(step.after, step.up_to) for step in story.steps] == [(10, 30)]


def test_a_clock_that_was_set_there_and_back_around_one_marker_is_one_odd_moment() -> None:
    # Both brokers' clocks were set by 2.5 s, one transaction apart. The other story, a marker lost and one from nowhere, needs two faults.
    kinds = "CCCCC"
    markers = [marker(at, kind, ahead_ms=-2_500 if at == 2 else 0) for at, kind in enumerate(kinds)]
    ends = {"newer_markers": False, "newer_decided": False}
    assert told(markers, kinds, **ends) == [0, 1, 2, 3, 4]
    # Another producer's markers, before and behind, were even; one that stands between would have seen it.
    elsewhere = [Witness(offset, Distance(-5, 5, 20 * offset), (None, None)) for offset in (1, 35)]
    between = Witness(25, Distance(-5, 5, 500), (None, None))
    seen = [Clock(elsewhere), Clock(sorted([*elsewhere, between]))]
    assert [stories_of(Producer(markers, decided(kinds), **ends), clock, 2_000)[0].cost for clock in seen] == [2.0, 3.0]


@pytest.mark.parametrize(("open_from", "price"), [(12, 0.25), (17, 1.0)])
def test_the_marker_that_open_data_lacks_would_stand_behind_it(open_from: int, price: float) -> None:
    # Data is open and its transaction was decided: only below offset 15 may the cleaner have taken the marker.
    ends = {"newer_markers": False, "newer_decided": False, "cleaned_below": 15, "open_epoch": 0}
    producer = Producer([marker(0, "C"), marker(1, "C")], decided("CCC"), open_from=open_from, **ends)  # type: ignore[arg-type]
    cheapest = stories_of(producer, Clock(), 2_000)[0]
    assert (cheapest.lost, cheapest.cost) == ((2,), pytest.approx(price))


def test_that_nothing_overlaps_is_strange_and_no_fault() -> None:
    # The first dump was made long before the other log's oldest entry. Stories that pair some need a lost marker and a clock that was set.
    markers = at_times((5, "C", 2_898), (9, "C", 4_412), (11, "C", 5_007), (17, "C", 7_714), closes="1101")
    ends = [(13_619, 13_685), (14_078, 14_101), (15_024, 15_087), (15_486, 15_494)]
    decisions = [
        Decided(place=at, epoch=0, decision=kind, decided_ms=first, until_ms=last)
        for at, (kind, (first, last)) in enumerate(zip(("ABORT", "COMMIT", "COMMIT", "COMMIT"), ends, strict=True))
    ]
    producer = Producer(markers, decisions, older_markers=True, older_decided=True, newer_markers=False, cleaned_below=18)
    (matches, *_), *_ = align({1: producer}, skew_ms=2_000).values()
    assert [(match.decided, match.legal) for match in matches] == [(None, True)] * 4


def test_one_time_far_off_does_not_join_logs_that_may_not_overlap() -> None:
    """The partition's log has lost its head and the coordinator's its end, which tells of no transaction of the second one's epoch."""
    ends, late = {"older_decided": True, "newer_markers": True, "newer_decided": True}, {"ahead_ms": 8_000}
    lone = Producer([marker(3, "C", **late)], decided("CCCC")[3:], older_markers=True, open_from=40, open_epoch=0, **ends)
    begun = Producer([marker(at, "C", **late, epoch=1) for at in (1, 2)], decided("CCCCC")[4:], **ends)
    told = align({1: lone, 2: begun}, skew_ms=2000)
    # The second one's epochs tell that the clocks are not so far apart that the lone marker could be of the time of the decision.
    assert [(match.decided, match.doubtful) for match in told[1].matches] == [(None, False)]
    assert [(match.decided, match.legal) for match in told[2].matches] == [(None, True), (None, True)]


def test_a_long_log_whose_clock_lies_half_a_minute_apart_is_told_though_its_head_is_gone() -> None:
    # Of 1,200 transactions the coordinator's log tells the last 1,100, the data log has the last 300 markers: nothing but order and one
    # distance of the clocks tells which. More starts cost the same than stories are kept.
    rng, kinds, at_ms = random.Random(4), "", []
    for _ in range(1200):
        kinds += rng.choice("CCCCA")
        at_ms.append((at_ms[-1] if at_ms else 0) + rng.randrange(50, 400))
    decisions = [replace(one, decided_ms=ms, until_ms=ms + 10) for one, ms in zip(decided(kinds), at_ms, strict=True)]
    markers = [replace(marker(at, kinds[at]), at_ms=at_ms[at] + 30_005) for at in range(900, 1200)]
    producer = Producer(markers, decisions[100:], older_markers=True, older_decided=True)
    (matches, *_), *_ = align({1: producer}, skew_ms=2_000).values()
    assert [(match.decided, match.doubtful) for match in matches] == [(at, False) for at in range(800, 1100)]


@pytest.mark.parametrize(("data_epoch", "said"), [(6, [None, 0, 0]), (None, [None, None, 0])])
def test_a_marker_with_a_raised_epoch_is_not_older_than_the_transaction_whose_data_has_the_one_before(
    data_epoch: int | None, said: list[int | None]
) -> None:
    # The coordinator's log begins with this transaction of epoch 6, which a fence ended with epoch 7; its marker was sent twice.
    fenced = Decided(104, 7, "ABORT", decided_ms=5_309, until_ms=5_349, decided_at=161, completed_at=165, data_epoch=data_epoch)
    first, *both = at_times((9, "C", 913), (62, "A", 5_318), (67, "A", 5_348), closes="110")
    markers = [replace(first, epoch=2), *(replace(one, epoch=7, by_tool=False) for one in both)]
    producer = Producer(markers, [fenced], older_markers=True, newer_markers=False)
    assert [match.decided for match in stories_of(producer, Clock(), 2_000)[0].matches()] == said


def test_a_marker_that_ends_nothing_was_rather_sent_again_than_that_of_the_next_transaction() -> None:
    # An elected coordinator sends the second one again; the last marker, which ends data, may be younger than the coordinator's log.
    markers = at_times((3, "C", 5), (7, "C", 205), (8, "C", 292), (12, "C", 420), closes="1001")
    sent = [replace(one, coordinator_epoch=epoch) for one, epoch in zip(markers, (0, 0, 2, 2), strict=True)]
    decisions = [replace(one, first_leader_epoch=0, last_leader_epoch=2) for one in decided("CCC")]
    late = replace(decisions[1], until_ms=300), replace(decisions[2], decided_ms=355, until_ms=425, first_leader_epoch=2)
    assert [one.decided for one in stories_of(Producer(sent, [decisions[0], *late]), Clock(), 2_000)[0].matches()] == [0, 1, 1, 2]


def test_two_producers_do_not_talk_each_other_into_a_clock_that_neither_believes_alone() -> None:
    """Each has a cheap story in which its markers are 6 s, or three transactions, younger; told together it would be paid once, and what
    one says because the other one said it is not said again."""
    first = [(226, 2_830), (4_182, 4_344), (6_100, 6_109), (7_732, 10_336), (11_085, 11_089)]
    second = [(296, 318), (759, 770), (1_666, 4_675), (5_478, 5_483), (10_252, 10_276)]
    one, other = (
        [Decided(at, 0, "COMMIT", decided_ms=a, until_ms=b, first_leader_epoch=0, last_leader_epoch=0) for at, (a, b) in enumerate(ends)]
        for ends in (first, second)
    )
    ends = {"older_decided": True, "coordinator": 1}
    producers = {
        1: Producer(at_times((28, "C", 4_342), (40, "C", 6_106), (46, "C", 8_381), leaders="013", closes="011"), one, **ends),  # type: ignore[arg-type]
        2: Producer(
            at_times((27, "C", 4_272), (32, "C", 4_672), (36, "C", 5_480), (45, "C", 8_303), leaders="0113", closes="0011"),
            other,
            **ends,  # type: ignore[arg-type]
        ),
    }
    told = align(producers, skew_ms=2_000)
    assert [[match.decided for match in one.matches] for one in told.values()] == [[1, 2, 3], [2, 2, 3, 4]]


def test_epochs_alone_bound_how_far_two_clocks_lie_apart() -> None:
    # Epoch 0 ends before the decision of 978,177 ms: a marker of it at 982,917 ms is by a clock at least 4.7 s ahead. Epoch 2 is behind.
    markers = [
        replace(one, epoch=epoch)
        for one, epoch in zip(at_times((33, "C", 981_963), (41, "C", 982_917), (60, "C", 985_000)), (0, 0, 2), strict=True)
    ]
    decisions = [Decided(at, 1, "COMMIT", decided_ms=ms, until_ms=ms + 60) for at, ms in ((68, 978_177), (75, 979_184))]
    told = [(bound.offset, bound.distance.least, bound.distance.most) for bound in bounds_of(Producer(markers, decisions))]
    assert told == [(41, 4_740, float("inf")), (60, float("-inf"), 5_816)]


def test_a_pair_that_the_epochs_of_another_producer_deny_is_not_believed() -> None:
    """Alone, two even pairs 3.4 s apart look right; the other producer's last marker of an old epoch says that it is 4.7 s or more."""
    first = Producer(
        [replace(one, epoch=1) for one in at_times((18, "C", 980_206), (29, "C", 981_512), (36, "C", 982_528))],
        [Decided(69, 1, "COMMIT", decided_ms=978_104, until_ms=978_171), Decided(73, 1, "COMMIT", decided_ms=979_089, until_ms=979_151)],
        older_markers=True,
    )
    other = Producer(
        at_times((33, "C", 981_963), (41, "C", 982_917)),
        [Decided(68, 1, "COMMIT", decided_ms=978_177, until_ms=978_239)],
        older_markers=True,
    )
    told = {name: [match.decided for match in one.matches] for name, one in align({1: first, 2: other}, skew_ms=2_000).items()}
    assert told == {1: [None] * 3, 2: [None] * 2}
    assert [match.decided for match in align({1: first}, skew_ms=2_000)[1].matches] == [None, 0, 1]


@pytest.mark.parametrize("seed", range(2))
def test_all_that_the_cleaner_takes_of_a_long_log_costs_no_more_than_a_clock_that_was_set(seed: int) -> None:
    """Of 700 markers a sixth is left, most of them young, and a neighbour's first one: so the log begins before them all."""
    rng = random.Random(seed)
    kinds = "".join(rng.choice("CCCCCA") for _ in range(700))
    left = sorted({*rng.sample(range(550, 700), 110), *rng.sample(range(550), 8)})
    ends = {"older_decided": True, "newer_markers": True, "newer_decided": True, "cleaned_below": 10_000}
    cleaned = Producer([marker(at, kinds[at]) for at in left], decided(kinds), **ends)  # type: ignore[arg-type]
    beside = Producer([marker(0, "C")], decided("C"), **ends)  # type: ignore[arg-type]
    matches = align({1: cleaned, 2: beside}, skew_ms=2_000)[1].matches
    assert [match.decided for match in matches] == left


@pytest.mark.parametrize(("elected", "said"), [(1, [(0, False), (0, True), (1, False)]), (None, [(None, False), (0, False), (1, False)])])
def test_a_decision_that_was_lost_with_its_coordinator_was_taken_anew_behind_its_first_marker(
    elected: int | None, said: list[tuple[int | None, bool]]
) -> None:
    """The ABORT of a coordinator that was killed, 1.6 s before its successor decided the same and sent it again: no clock was set."""
    sent = at_times((12, "A", 323), (16, "A", 1_885), (20, "A", 1_980), closes="101")
    sent = [replace(one, coordinator_epoch=epoch) for one, epoch in zip(sent, (0, 1, 1), strict=True)]
    decisions = [
        Decided(
            at, 0, "ABORT", decided_ms=ms, until_ms=ms + 10, first_leader_epoch=1, last_leader_epoch=1, of_election=True, elected=elected
        )
        for at, ms in ((8, 2_026), (19, 2_119))
    ]
    producer = Producer(sent, decisions, newer_markers=False, newer_decided=False, of_election=True)
    (matches, *_), *_ = align({1: producer}, skew_ms=2_000).values()
    assert [(match.decided, match.again) for match in matches] == said
    assert any(match.doubtful for match in matches) is (elected is None)


@pytest.mark.parametrize(("elected", "ended"), [(3, 1), (2, None)])
def test_a_coordinator_that_was_elected_later_sends_the_marker_of_an_open_decision_whenever_that_is(
    elected: int, ended: int | None
) -> None:
    """Two minutes behind the decision, in a log whose cleaner took the first one (3.3.2: a decision that one partition held up)."""
    before, one = (replace(each, first_leader_epoch=2, last_leader_epoch=2, decided_at=2 * each.place) for each in decided("AA"))
    one = replace(one, until_ms=None, last_leader_epoch=None)
    again = Marker(offset=90, type="ABORT", epoch=0, at_ms=one.decided_ms + 117_000, closes=False, coordinator_epoch=elected)
    assert told([again], [before, one], older_decided=True, cleaned_below=90) == [ended]


def test_the_marker_of_a_lost_decision_tells_nobody_of_an_order() -> None:
    lost, anew = replace(marker(1, "A"), coordinator_epoch=0), replace(decided("CA")[1], decided_at=20, completed_at=21, elected=1)
    told = witness(lost, anew)
    assert (told.decided_at, told.completed_at) == (None, 21)
    # What was completed before that entry may stand behind the marker in the log.
    assert not Clock([Witness(15, Distance(-5, 5, 300), (None, None), decided_at=12, completed_at=13)]).denies(lost, anew)
