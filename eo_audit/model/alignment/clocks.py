"""How far the clocks of two leaders lie apart, as a marker and its transaction tell: an interval, as exact as drift allows."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import NamedTuple

ROUNDING_MS = 10  # timestamps are whole milliseconds, taken at both ends of a request
DRIFT = 5e-4  # NTP slews a clock by 500 ppm at most
LONG_MS = 60_000  # a marker that nothing bounds from above comes within so long


@dataclass(frozen=True)
class Decided:
    """A decided transaction that lists the partition. `until_ms`: when its markers had all been written; None while it is not completed.
    `epoch` is that of its markers, `data_epoch` that of its data; `decided_at` and `completed_at` are the offsets of those entries in the
    coordinator's log, None where they are not in it; `of_election`: the coordinator sends markers under the leader epoch of its election,
    which may be older than that of its entries; `elected`: of these, the newest that is known to be its coordinator's or older."""

    place: int
    epoch: int | None
    decision: str
    decided_ms: int
    until_ms: int | None
    first_leader_epoch: int | None = None
    last_leader_epoch: int | None = None
    decided_at: int | None = None
    completed_at: int | None = None
    data_epoch: int | None = None
    of_election: bool = False
    elected: int | None = None


@dataclass(frozen=True)
class Marker:
    """A marker of the log. `closes`: data of the producer was open; `by_tool`: it looks as the abort tool writes it; `odd`: no protocol
    version ends the data before it with that epoch; `after_hole`: offsets are missing between it and the producer's marker before;
    `opened_at`: the first offset of the data that it closes."""

    offset: int
    type: str
    epoch: int
    at_ms: int
    closes: bool
    by_tool: bool = False
    odd: bool = False
    coordinator_epoch: int | None = None
    leader_epoch: int | None = None
    after_hole: bool = False
    opened_at: int | None = None


class Distance(NamedTuple):
    """How far the partition leader's clock may be ahead of the coordinator's, in ms: from `least` to `most`, as of `at_ms`."""

    least: float
    most: float
    at_ms: int


Leaders = tuple[int | None, int | None]  # the leader epoch of the partition, and that of the coordinator when it decided: two clocks


def distance_of(marker: Marker, one: Decided) -> Distance:
    """The distance of clocks that a pair allows: a marker is written between the decision and its completion; that of a decision which was
    lost with its coordinator, before the successor took it anew; and that of a coordinator elected later, as late as you like."""
    if is_of_lost_decision(marker, one):
        return Distance(marker.at_ms - one.decided_ms, marker.at_ms - one.decided_ms + LONG_MS, marker.at_ms)
    if _is_sent_again(marker, one):
        return Distance(-inf, marker.at_ms - one.decided_ms, marker.at_ms)
    until = one.until_ms if one.until_ms is not None and not of_two_clocks(one) else one.decided_ms + LONG_MS
    return Distance(marker.at_ms - max(until, one.decided_ms), marker.at_ms - one.decided_ms, marker.at_ms)


def _is_sent_again(marker: Marker, one: Decided) -> bool:
    """Whether a coordinator sent it that was elected later: each one sends again what is not completed, whenever that is."""
    known = one.until_ms is None and None not in (marker.coordinator_epoch, one.first_leader_epoch)
    return known and marker.coordinator_epoch > one.first_leader_epoch  # type: ignore[operator]


def leaders_of(marker: Marker, one: Decided) -> Leaders:
    """Whose clocks a pair compares."""
    return marker.leader_epoch, one.first_leader_epoch


def is_of_lost_decision(marker: Marker, one: Decided) -> bool:
    """Whether a coordinator sent a marker that was not the one whose decision is told, but one before it: its own is lost.

    A coordinator that was killed, and is back before it is missed, sends the markers of what its own log ends with
    (`TransactionStateManager.loadTransactionsForTxnTopicPartition`), though no other broker has that; its successor decides the same anew.
    """
    return None not in (marker.coordinator_epoch, one.elected) and marker.coordinator_epoch < one.elected  # type: ignore[operator]


def of_two_clocks(one: Decided) -> bool:
    """Another leader of the coordinator's partition wrote the completion, or the clock was set back before it: it says nothing of the
    decision's clock."""
    led_anew = None not in (one.first_leader_epoch, one.last_leader_epoch) and one.first_leader_epoch != one.last_leader_epoch
    return led_anew or (one.until_ms is not None and one.until_ms < one.decided_ms - ROUNDING_MS)


def shown_jump(last: Marker, marker: Marker, before: Decided, one: Decided, jump: float) -> bool:
    """Whether the logs themselves show the clock set that makes the distance jump: times of one leader go back where offsets go on.

    The distance falls where the partition's clock is set back, and grows where the coordinator's is, by at least as much as the log shows.
    """
    back_here = last.at_ms - marker.at_ms if last.leader_epoch == marker.leader_epoch else 0
    newest = max(before.decided_ms, before.until_ms or 0)
    back_there = newest - one.decided_ms if before is not one and before.first_leader_epoch == one.first_leader_epoch else 0
    return ROUNDING_MS < back_here <= -jump + ROUNDING_MS or ROUNDING_MS < back_there <= jump + ROUNDING_MS


def gap(before: Distance, here: Distance) -> float:
    """How far two distances lie apart, with its sign; 0 where rounding and drift explain it."""
    tolerance = ROUNDING_MS + DRIFT * abs(here.at_ms - before.at_ms)
    if here.least > before.most + tolerance:
        return here.least - before.most
    return here.most - before.least if here.most < before.least - tolerance else 0.0


def as_seen(here: Distance, seen: Sequence[Distance]) -> Distance | None:
    """The distance that a pair allows, as narrow as others saw it before or behind; None where none of them saw it so."""
    return next((narrowed(one, here) for one in seen if not gap(one, here)), None)


def narrowed(before: Distance, here: Distance) -> Distance:
    """What both allow, as far as clocks may have drifted between."""
    drift = ROUNDING_MS + DRIFT * abs(here.at_ms - before.at_ms)
    least, most = max(here.least, before.least - drift), min(here.most, before.most + drift)
    return Distance(least, most, here.at_ms) if least <= most else here


class Stretches:
    """Stretches of a log between two offsets. Hundreds of thousands of stories ask for one among hundreds that several producers saw: to go
    over all of them was a third of an alignment's time."""

    def __init__(self, between: Iterable[tuple[int, int]]) -> None:
        """`between`: the first and the last offset of each."""
        ordered = sorted(set(between))
        self._firsts = [first for first, _ in ordered]
        self._lasts = list(accumulate((last for _, last in ordered), max))  # the farthest end of those up to each

    def reach(self, after: int, up_to: int) -> bool:
        """Whether one of them has something between two offsets."""
        before = bisect_left(self._firsts, up_to)
        return before > 0 and self._lasts[before - 1] > after
