"""The coordinator's log is compacted: it tells of the last transactions of an id, the partition of thousands. `alignment` on such lives."""

import random
from typing import NamedTuple

import pytest

from eo_audit.model.alignment.align import align
from eo_audit.model.alignment.clocks import Decided, Marker
from eo_audit.model.alignment.prices import Clock, Match
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.teller import MANY, TELLING, stories_of

HOURS_MS = 7_200_000
SKEW_MS = 2_000


class Life(NamedTuple):
    """The markers of a log, and the transactions that are still told; `truth`: for each marker the index of its transaction."""

    producer: Producer
    truth: list[int | None]


def life(seed: int, *, told: int, ahead_ms: int, behind: int = 0, pace_ms: int = 1_000, markers: int = 0) -> Life:
    """So many of the last transactions are told, and the log was dumped before the last `behind` of them had their markers."""
    rng = random.Random(seed)
    count = markers or rng.randrange(60, 300)
    at_ms, decided, written = 0, list[Decided](), list[Marker]()
    for number in range(count + behind):
        at_ms, wait = at_ms + rng.randrange(pace_ms // 4, 2 * pace_ms), rng.choice((3, 5, 8, 20, 60))
        kind = rng.choice(("COMMIT",) * 5 + ("ABORT",))
        leaders = {"first_leader_epoch": 0, "last_leader_epoch": 0, "decided_at": 3 * number + 1, "completed_at": 3 * number + 2}
        if number >= count + behind - told:
            decided.append(Decided(3 * number, 0, kind, at_ms, at_ms + wait + 2, **leaders))
        if number < count:
            written.append(Marker(10 * number, kind, 0, at_ms + rng.randrange(1, wait) + ahead_ms, closes=True, leader_epoch=0))
    first = count + behind - told
    return Life(
        Producer(written, decided, older_markers=True, older_decided=True), [at - first if at >= first else None for at in range(count)]
    )


def matches(one: Life) -> list[Match]:
    return list(align({1: one.producer}, skew_ms=SKEW_MS)[1].matches)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("behind", [0, 2, 40])
def test_no_marker_older_than_what_is_told_is_given_a_transaction(seed: int, behind: int) -> None:
    one = life(seed, told=random.Random(seed).randrange(3, 30), ahead_ms=300, behind=behind)
    said = matches(one)
    assert [match.decided for match in said if not match.doubtful] == [
        truth for truth, match in zip(one.truth, said, strict=True) if not match.doubtful
    ]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ahead_ms", [-HOURS_MS, HOURS_MS])
def test_clocks_hours_apart_are_believed_where_many_pairs_tell_so(seed: int, ahead_ms: int) -> None:
    one = life(seed, told=2 * TELLING, ahead_ms=ahead_ms)
    assert [match.decided for match in matches(one)] == one.truth


@pytest.mark.parametrize("seed", range(10))
def test_a_log_that_ended_minutes_before_what_is_told_is_no_doubt(seed: int) -> None:
    one = life(seed, told=10, ahead_ms=0, behind=10 + 200, markers=3 * MANY)
    said = matches(one)
    assert {match.decided for match in said} == {None}
    assert not any(match.doubtful for match in said)
    assert all(match.legal for match in said)


def test_markers_that_are_far_older_begin_no_story() -> None:
    one = life(1, told=10, ahead_ms=0, markers=600)
    told = stories_of(one.producer, Clock(), SKEW_MS)
    begun = {next(at for at, match in enumerate(story.matches()) if match.decided is not None) for story in told if story.pairs()}
    assert min(begun) > 400
    assert [match.decided for match in told[0].matches()] == one.truth
