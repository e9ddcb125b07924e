"""Which marker ended which transaction, where no end of either log is there to count from. Numbers are those of model clusters."""

from dataclasses import replace

import pytest

from eo_audit.model.alignment.align import align
from eo_audit.model.alignment.clocks import Decided, Marker
from eo_audit.model.alignment.prices import witness
from eo_audit.model.alignment.producer import Producer


def markers(*times: tuple[int, str, int], epochs: tuple[int, ...] = (), closes: str = "", leader: int = 0) -> list[Marker]:
    """Markers at (offset, type, ms), with the epochs given, else 0; what ends no data has a 0 in `closes`."""
    return [
        Marker(
            offset=offset,
            type={"C": "COMMIT", "A": "ABORT"}[kind],
            epoch=epochs[at] if epochs else 0,
            at_ms=at_ms,
            closes=closes[at : at + 1] != "0",
            leader_epoch=leader,
        )
        for at, (offset, kind, at_ms) in enumerate(times)
    ]


def decided(*times: tuple[str, int, int], entries: tuple[int, ...] = (), epochs: tuple[int, ...] = ()) -> list[Decided]:
    """Transactions by (decision, decided, completed), at the entries of the coordinator's log that are given, two behind each other."""
    return [
        Decided(
            place=at,
            epoch=epochs[at] if epochs else 0,
            decision={"C": "COMMIT", "A": "ABORT"}[kind],
            decided_ms=first,
            until_ms=last,
            first_leader_epoch=0,
            last_leader_epoch=0,
            decided_at=entries[at] if entries else 2 * at,
            completed_at=entries[at] + 1 if entries else 2 * at + 1,
            data_epoch=epochs[at] if epochs else 0,
        )
        for at, (kind, first, last) in enumerate(times)
    ]


@pytest.mark.parametrize(("told_until_ms", "said"), [(6_707, None), (500, 0)])
def test_open_data_is_not_of_a_transaction_that_the_coordinators_log_would_tell_of(told_until_ms: int, said: int | None) -> None:
    """An ABORT 41 ms before the decision, data behind it that is open, and a marker of another producer behind that: if the coordinator's
    log goes on for seconds, the data is the decision's, whose marker is late, and the ABORT is of a transaction that was cleaned away."""
    ends = {"older_markers": True, "told_until_ms": told_until_ms, "told_until_epoch": 0}
    aborted = Producer(markers((2, "A", 359)), decided(("A", 400, 5_996)), open_from=3, open_epoch=0, **ends)  # type: ignore[arg-type]
    beside = Producer(markers((21, "C", 610)), [], **ends)  # type: ignore[arg-type]
    (match,) = align({1: aborted, 2: beside}, skew_ms=2_000)[1].matches
    assert match.decided == said
    assert match.doubtful is (said is not None)


@pytest.mark.parametrize("beside", [True, False])
def test_a_lone_pair_by_chance_makes_nothing_missing(beside: bool) -> None:
    """All that the coordinator's log tells of one producer is older than the partition's log, as the epochs say. A pair of the other one
    that fits to 11 ms says that it begins before; that is in doubt then."""
    ends = {"older_markers": True, "older_decided": True, "told_until_ms": 19_508, "told_until_epoch": 0}
    younger = Producer(
        markers((78, "A", 21_625), (101, "C", 26_029), epochs=(9, 10)),
        decided(("C", 9_647, 9_668), ("A", 19_401, 19_408), entries=(45, 108), epochs=(3, 7)),
        **ends,  # type: ignore[arg-type]
    )
    lone = Producer(
        markers((69, "C", 18_826), (82, "C", 21_742), (112, "A", 29_664), epochs=(6, 6, 12)),
        decided(("A", 15_946, 15_959), ("C", 18_837, 18_852), entries=(85, 104), epochs=(5, 6)),
        **ends,  # type: ignore[arg-type]
    )
    told = align({1: lone, 2: younger} if beside else {1: lone}, skew_ms=2_000)
    first, *others = told[1].matches
    assert (first.decided, first.doubtful, [match.decided for match in others]) == (1, beside, [None, None])
    if beside:
        assert [(match.decided, match.legal) for match in told[2].matches] == [(None, True)] * 2


@pytest.mark.parametrize(("set_ms", "lost"), [(-300, ()), (0, ()), (0, (6,)), (0, (2, 6))])
def test_a_clock_that_was_set_is_believed_before_transactions_without_markers(set_ms: int, lost: tuple[int, ...]) -> None:
    """Nine pairs and a clock that was set twice by 0.3 s, beside five pairs, one step of 14 s and four transactions without markers in a
    log that is cleaned. By an even clock those without a marker are told."""
    period = (
        ("C", 6_783),
        ("C", 11_013),
        ("A", 18_343),
        ("C", 22_175),
        ("A", 26_493),
        ("C", 31_722),
        ("A", 35_909),
        ("A", 38_092),
        ("A", 40_442),
    )
    own = decided(*((kind, ms, ms + 20) for kind, ms in period))
    steps = [0] * 4 + [set_ms] + [2 * set_ms] * 4
    sent = [(10 + 4 * at, kind, ms + 5 - 30_000 + steps[at]) for at, (kind, ms) in enumerate(period)]
    sent = [one for at, one in enumerate(sent) if at not in lost]
    begun = markers(*sent, (51, "C", 46_760 - 30_000))
    producer = Producer(begun, own, older_decided=True, cleaned_below=1 << 62, told_until_ms=40_506, told_until_epoch=0, coordinator=1)
    matches, *_ = align({1: producer}, skew_ms=2_000)[1]
    true = [at for at in range(9) if at not in lost]
    assert [(match.decided, match.doubtful) for match in matches] == [(at, False) for at in (*true, None)]


@pytest.mark.parametrize("others", [True, False])
def test_behind_a_coordinators_clock_that_was_set_back_no_time_says_that_a_log_goes_on(others: bool) -> None:
    """The log ends behind the first pair; what was decided behind it has earlier times, and the log's newest marker a later one."""
    ends = {"older_markers": True, "told_until_ms": 3_866, "told_until_epoch": 0}
    own = decided(("C", 3_213, 3_223), ("C", 2_546, 2_610), ("C", 3_859, 3_866), entries=(26, 45, 53))
    seen = decided(("A", 1_148, 1_213), ("A", 3_699, 3_707), ("C", 2_098, 2_162), entries=(5, 30, 40))
    beside = markers((5, "A", 1_154), (17, "A", 3_704), (24, "C", 4_660))
    # Where nobody else tells of the clock behind the pair, the coordinator's own times do.
    other = Producer(beside, seen if others else [], **ends)  # type: ignore[arg-type]
    told = align({1: Producer(markers((15, "C", 3_218)), own, **ends), 2: other}, skew_ms=2_000)  # type: ignore[arg-type]
    assert [(match.decided, match.doubtful) for match in told[1].matches] == [(0, not others)]
    assert not told[1].one_lost_of


@pytest.mark.parametrize("stopped", [True, False])
def test_as_many_markers_as_transactions_of_brokers_that_had_stopped_are_theirs(stopped: bool) -> None:
    """Two pairs and a clock that was set by 0.3 s; or the first marker lost, and a second one that the coordinator's log does not know."""
    own = decided(("C", 4_563, 4_567), ("C", 5_965, 6_031), entries=(2, 7))
    sent = markers((1, "C", 1_766), (6, "C", 2_927), leader=3)
    told = align({1: Producer(sent, own, both_stopped=stopped, coordinator=1)}, skew_ms=2_000)[1]
    if stopped:
        assert [(match.decided, match.doubtful) for match in told.matches] == [(0, False), (1, False)]
    else:
        assert all(match.doubtful for match in told.matches)


def test_pairs_ten_seconds_apart_deny_nothing_where_clocks_may_as_well_agree() -> None:
    """Four markers that fit four decisions at a distance of ten seconds, or the last of them the first decision by equal clocks: what they
    say of the clocks makes no marker of another producer missing."""
    ends = {"older_markers": True, "told_until_ms": 88_738, "told_until_epoch": 0, "coordinator": 1}
    four = Producer(
        markers((1, "C", 71_210), (4, "C", 72_371), (8, "C", 73_244), (13, "C", 75_241)),
        decided(("C", 75_237, 82_162), ("C", 82_449, 82_472), ("C", 82_882, 84_521), ("C", 84_839, 88_738), entries=(43, 56, 65, 94)),
        **ends,  # type: ignore[arg-type]
    )
    one = Producer(
        markers((10, "C", 74_700)),
        decided(("C", 82_101, 82_264), ("C", 82_972, 82_997), ("C", 83_221, 83_235), ("C", 84_435, 84_443), entries=(51, 68, 73, 85)),
        **ends,  # type: ignore[arg-type]
    )
    told = align({1: four, 2: one}, skew_ms=2_000)
    assert all(match.doubtful for match in told[1].matches)
    assert not [match for match in told[2].matches if match.decided == 3]


def test_the_cases_are_told_the_same_with_other_producers_of_another_coordinator() -> None:
    """Another coordinator has another clock: what is said of its producers tells nothing."""
    one = Producer(markers((2, "A", 359)), decided(("A", 400, 5_996)), older_markers=True, coordinator=1)
    other = replace(one, markers=markers((4, "A", 90_359)), coordinator=2)
    alone, beside = align({1: one}, skew_ms=2_000)[1], align({1: one, 2: other}, skew_ms=2_000)[1]
    assert alone == beside


def test_one_pair_that_is_near_in_time_does_not_deny_two_and_a_clock_that_was_set() -> None:
    """Both logs from their beginnings, two markers and two decisions 2.5 s apart, and 0.3 s more at the second; or one pair 1.3 s apart."""
    own = decided(("C", 570, 581), ("C", 1_710, 1_773), entries=(3, 6))
    told = align(
        {1: Producer(markers((3, "C", 3_072), (9, "C", 4_570), leader=3), own, coordinator=1, told_until_ms=1_773, told_until_epoch=0)},
        skew_ms=2_000,
    )[1]
    assert all(match.doubtful for match in told.matches) and not told.one_lost_of


def test_a_marker_in_the_place_of_its_transaction_is_its_own_whatever_the_clocks_say() -> None:
    """The first six of eight decisions, types and epochs agree: a clock was set before the third marker, which others saw, and once more
    behind it, which a marker of another producer, that waited for seconds, seems to deny."""
    times = (1_251, 1_262), (7_453, 7_458), (9_460, 9_471), (11_033, 11_042), (12_335, 12_398), (13_938, 13_999), (17_492, 17_514)
    kinds, epochs = "CCACACA", (0, 1, 2, 2, 2, 2, 3)
    own = decided(
        *((kind, first, last) for kind, (first, last) in zip(kinds, times, strict=True)), epochs=epochs, entries=(6, 45, 49, 52, 55, 62, 73)
    )
    written = (5, "C", 959), (20, "C", 7_155), (25, "A", 6_668), (27, "C", 7_935), (31, "A", 9_296), (39, "C", 10_898)
    sent = markers(*written, epochs=epochs, closes="110111", leader=3)
    beside = decided(("C", 4_600, 4_605), ("C", 9_190, 9_510), ("C", 11_300, 11_305), ("C", 16_000, 16_005), entries=(20, 46, 53, 64))
    other = Producer(markers((12, "C", 4_300), (22, "C", 6_400), (30, "C", 8_200), (45, "C", 12_900), leader=3), beside, coordinator=1)
    told = align({1: Producer(sent, own, coordinator=1, told_until_ms=27_693, told_until_epoch=0), 2: other}, skew_ms=2_000)[1]
    assert [match.decided for match in told.matches] == list(range(6))


def test_what_the_log_begins_behind_or_ends_before_is_told() -> None:
    """The first decision is older than the log, the last one younger."""
    own = decided(("C", 100, 110), ("A", 5_000, 5_010), ("C", 9_000, 9_010))
    producer = Producer(markers((20, "A", 5_004)), own, older_decided=True, coordinator=1)
    told = align({1: producer}, skew_ms=2_000)[1]
    assert (told.matches[0].decided, told.older, told.younger) == (1, [0], [2])


def test_a_lone_pair_that_agrees_with_the_clock_of_an_older_leader_is_as_good_as_one_of_a_later_leader() -> None:
    """One decision is left. By equal clocks it sent the second marker, and the new leader of the partition is 3.2 s behind; or that leader
    is 1.7 s behind, and it sent the last."""
    ends = {"older_markers": True, "older_decided": True, "told_until_ms": 18_315, "told_until_epoch": 0}
    before, behind = markers((37, "C", 17_128), (43, "A", 18_294), leader=1), markers((48, "C", 15_085), (54, "A", 16_593), leader=3)
    producer = Producer([*before, *behind], decided(("A", 18_291, 18_315)), coordinator=1, **ends)  # type: ignore[arg-type]
    told = align({1: producer}, skew_ms=2_000)[1]
    assert {marker.offset for marker, match in zip(producer.markers, told.matches, strict=True) if match.doubtful} == {43, 54}


@pytest.mark.parametrize("hole", [True, False])
def test_markers_beside_a_hole_of_the_coordinators_log_are_of_decisions_that_it_lost(hole: bool) -> None:
    """A broker of 4.3.1 whose coordinator's log was dumped by hand while the cleaner worked: of one producer a COMMIT is left, and the
    ABORT behind the hole. Without one, so many markers that nobody sent would be dearer than one of the wrong type."""
    between = [(846, "C", 210_667), (872, "C", 213_058), (884, "C", 214_253)]
    behind = [
        (2298, "C", 434_756),
        (2307, "C", 437_324),
        (2315, "C", 438_579),
        (2317, "C", 439_752),
        (2320, "C", 440_516),
        (2324, "A", 444_261),
    ]
    sent = markers((807, "C", 207_240), *between, *behind, epochs=(4, 5, 5, 5, 13, 13, 14, 14, 14, 14))
    one, other = decided(("C", 161_951, 162_000), ("A", 424_250, 424_358), epochs=(4, 14), entries=(2221, 6672))
    told = [replace(one, place=2221), replace(other, place=6664)]
    ends = {"older_markers": True, "told_until_ms": 425_531, "told_until_epoch": 0, "told_anew_at": 6664 if hole else None}
    found = align({2: Producer(sent, told, **ends)}, skew_ms=2_000)[2]  # type: ignore[arg-type]
    assert ([match.decided for match in found.matches] == [0, *[None] * 8, 1]) is hole


def test_what_is_told_last_may_have_ended_in_a_hole() -> None:
    """One transaction a second each. Segments are missing, and the coordinator's log ends within the time of those: markers behind are of
    later transactions, and not of the last that are told with a clock that was set, though two producers would have seen it set alike."""
    ends = {"older_decided": True, "told_until_ms": 22_782, "told_until_epoch": 0}

    def every_second(kinds: str, first_ms: int) -> list[tuple[str, int, int]]:
        return [(kind, ms, ms + 8) for at, kind in enumerate(kinds) if (ms := first_ms + 1_000 * at)]

    def behind(offset: int, opened_at: int, seen: list[Marker]) -> list[Marker]:
        return [replace(one, after_hole=True, opened_at=opened_at) if one.offset == offset else one for one in seen]

    seen = {
        1: markers((75, "C", 19_741), (81, "C", 20_741), (89, "A", 21_741), (139, "C", 28_741), (149, "C", 29_741)),
        2: markers((71, "C", 18_778), (76, "C", 19_778), (82, "A", 20_778), (133, "C", 27_778), (140, "C", 28_778)),
    }
    told_of = {
        1: decided(*every_second("CACCCCAC", 15_737), entries=(76, 87, 99, 110, 121, 132, 143, 155)),
        2: decided(*every_second("CCCCACC", 16_774), entries=(88, 100, 111, 122, 133, 144, 156)),
    }
    told = align(
        {
            1: Producer(behind(139, 134, seen[1]), told_of[1], **ends),  # type: ignore[arg-type]
            2: Producer(behind(133, 133, seen[2]), told_of[2], **ends),  # type: ignore[arg-type]
        },
        skew_ms=2_000,
    )
    assert [match.decided for match in told[1].matches] == [4, 5, 6, None, None]
    assert [match.decided for match in told[2].matches] == [2, 3, 4, None, None]
    assert (told[1].in_hole, told[2].in_hole) == ((7,), (5, 6))


def test_a_marker_behind_a_hole_ends_the_transaction_that_time_tells_though_others_ended_in_the_hole() -> None:
    """An ABORT as the tool writes it is no operator's where the coordinator decided one right then."""
    first, last = markers((5, "C", 498), (19, "A", 639))
    seen = [first, replace(last, by_tool=True, after_hole=True, opened_at=18)]
    told = align({1: Producer(seen, decided(("C", 486, 503), ("A", 565, 573), ("A", 635, 641)))}, skew_ms=2_000)[1]
    assert [match.decided for match in told.matches] == [0, 2] and told.in_hole == (1,)


def test_any_number_of_transactions_may_have_ended_in_a_hole_before_the_first_marker() -> None:
    """The log begins at offset 0; segments that nobody dumped hold all that a producer wrote before its last two transactions."""
    seconds = [("C" if at % 3 else "A", 1_000 * at, 1_000 * at + 9) for at in range(20)]
    first, last = markers((144, "A", 18_003), (147, "C", 19_003))
    told = align({1: Producer([replace(first, after_hole=True, opened_at=142), last], decided(*seconds))}, skew_ms=2_000)[1]
    assert [match.decided for match in told.matches] == [18, 19]


def test_who_fits_by_chance_talks_nobody_into_faults() -> None:
    """Both logs were cut, transactions come every 60 ms. Of one producer five markers fit as many later transactions evenly, 350 ms apart;
    the true story pairs its last one alone. The other one, whose last two fit, would lack three markers and have one of the other type."""
    ends = {"older_markers": True, "told_until_ms": 1_435, "told_until_epoch": 0, "coordinator": 1}
    times = [(7, "C", 54), (9, "A", 94), (16, "A", 153), (18, "A", 206), (24, "C", 250), (30, "A", 400), (36, "C", 467), (41, "C", 511)]
    ended = [
        ("C", 562, 624),
        ("A", 769, 780),
        ("C", 839, 851),
        ("C", 886, 898),
        ("C", 953, 1_016),
        ("A", 1_187, 1_252),
        ("C", 1_294, 1_297),
    ]
    by_chance = Producer(
        by_tool(markers(*times, (52, "C", 623))),
        decided(*ended, ("A", 1_362, 1_385), entries=(60, 77, 83, 88, 94, 112, 117, 121)),
        **ends,  # type: ignore[arg-type]
    )
    times = [(6, "C", 50), (11, "C", 118), (22, "C", 233), (28, "A", 318), (47, "C", 556), (55, "C", 645), (58, "A", 691)]
    ended = [("C", 637, 648), ("A", 686, 692), ("C", 741, 766), ("A", 833, 837), ("C", 881, 904), ("C", 1_016, 1_020), ("C", 1_075, 1_097)]
    talked_to = Producer(
        by_tool(markers(*times)),
        decided(*ended, ("C", 1_153, 1_161), ("C", 1_197, 1_219), entries=(65, 70, 74, 81, 87, 98, 103, 108, 113)),
        **ends,  # type: ignore[arg-type]
    )
    told = align({1: talked_to, 0: by_chance}, skew_ms=2_000)
    assert [[(match.decided, match.doubtful) for match in told[name].matches] for name in (1, 0)] == [
        [(None, False)] * 5 + [(0, False), (1, False)],
        [(None, False)] * 8 + [(0, False)],
    ]
    assert not (told[1].one_lost_of or told[0].one_lost_of)


def by_tool(sent: list[Marker]) -> list[Marker]:
    """The same; an ABORT looks as the abort tool writes it."""
    return [replace(one, by_tool=one.type == "ABORT") for one in sent]


@pytest.mark.parametrize("behind", [True, False])
def test_an_operators_abort_before_a_marker_that_the_coordinators_log_tells_of_is_no_doubt(behind: bool) -> None:
    """Behind all of a producer's transactions data is ended by an ABORT that no coordinator sent; the coordinator's log goes on for longer.
    A marker of TV2 behind it, whose epoch names its transaction, tells that none is younger."""
    own = Producer(
        by_tool(markers((3, "C", 5), (9, "C", 141), (65, "A", 600))),
        decided(("C", 0, 9), ("C", 133, 143)),
        told_until_ms=2_000,
        told_until_epoch=0,
    )
    seen = witness(*markers((66, "C", 1_605)), *decided(("C", 1_600, 1_610), entries=(60,)))
    *pairs, last = align({1: own}, skew_ms=2_000, seen={None: [seen] if behind else []})[1].matches
    assert [match.decided for match in pairs] == [0, 1]
    assert (last.decided, last.doubtful) == (None, not behind)
