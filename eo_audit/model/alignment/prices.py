"""What the alignment of markers is made of: both sequences, what others saw of the clocks, and the price of each step of a story.

A price says how odd a step is, not how bad: a story of two odd steps may beat one of a single very odd one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from math import inf
from typing import NamedTuple

from eo_audit.model.alignment.clocks import (
    ROUNDING_MS,
    Decided,
    Distance,
    Leaders,
    Marker,
    Stretches,
    distance_of,
    gap,
    is_of_lost_decision,
    leaders_of,
)
from eo_audit.model.alignment.producer import Producer

MISSING = 1.0  # the marker of a transaction is not in the log, between others that are
MISSING_CLEANED = 0.25  # the same, where the cleaner may have removed it
MOST_CLEANED = 1.0  # and for as many stretches of them as there may be: it goes over all of a log, again and again
MISSING_TOO = 0.01  # and that of the next one neither: a stretch of a log is lost as one
MISSING_ALONE = 0.4  # the same, where one leader wrote on both sides, and nothing of its log is missing: each was lost for itself
CONTRADICTION = 1.0  # a marker of the other type
EXTRA = 2.0  # a marker that ends data and that no coordinator sent: rarer than any clock that was set
EXTRA_BY_TOOL = 1.2  # the same, as `kafka-transactions.sh abort` writes it: an operator's hand is no fault of Kafka's
ODD_EPOCH = 0.4  # a marker that stands where that of the next transaction should, with an epoch that no protocol version writes there
STANDS_IN = 2.5  # besides, where it stands in the place of one that is missing, with its type and epoch: order tells more than clocks
EXTRA_EMPTY = 0.9  # a marker that ends nothing and belongs to no transaction
RETRY = 0.05  # the same marker again: a coordinator that was elected sends what its predecessor may have sent
RETRY_OF_ONE = 0.15  # by the same coordinator: a request whose answer was lost
BY_HAND_TOO = 1.0  # an operator's ABORT, and the coordinator's own of the same transaction is in no dump: two rare things at once
FOREIGN_COORDINATOR = 0.6  # right in every other way, but its coordinator epoch is that of no leader from PrepareX to CompleteX
EMPTY = 0.1  # a transaction that wrote nothing in a partition of its list: rarer than a marker that was sent again
UNSEEN = 0.01  # at an end that the dumps may lack: next to nothing, so that stories with fewer such loose ends win
STEP = 1.5  # a clock that was set, where no other producer of the log can tell
STEP_LIKE_A_PERIOD = 1.0  # the same, where transactions follow each other so fast that any step looks like some of them missing
STEP_DENIED = 3.0  # the same, where another producer saw the clock go on evenly
STEP_BACK = 0.5  # by as much back again at the next pair: both clocks were set alike, one after the other
STEP_OF_LEADERS = 0.5  # another leader has another clock
BY_TIME_ALONE = 0.3  # the whole of what is asked for a distance of clocks within the tolerance, where nothing but time anchors a story
AGAINST_WITNESSES = 0.6  # other producers saw another distance, where the places anchor the story
OUT_OF_ORDER = 3.0  # what others of the log ended stands on the wrong side of the pair, in one of both logs
TOO_FAR = 0.5  # and for one beyond it
TOO_FAR_IN_PLACE = 0.2  # the same, where the places anchor it
LATE = 1.0  # data that is open behind the last marker, and no transaction is left that it could belong to
LATE_OR_NEWER = 0.1  # the same, where that transaction may be younger than what the coordinator's log still tells
APART = 0.1  # for each marker, but the first, that is held to be older than all transactions of a log that has as many: or the other way
MOST_APART = 1.0  # and for as many as there may be
LOST_AND_NEWER = 0.25  # for each transaction, but the first, that lacks its marker, with a marker behind that is nobody's yet
MOST_LOST_AND_NEWER = 2.5  # and for as many as there may be
LOOSE = 0.05  # for each marker held to be of another time than as many transactions, where no end is anchored: many even pairs tell more
MOST_LOOSE = 0.5  # and for as many as there may be
NOTHING = 0.1  # no pair at all, though there is a marker and a transaction
NOTHING_OF_MANY = 1.0  # the same, where there are several of both
ALL_NEWER = 0.6  # all transactions are held to be older than the log, and all markers younger than what the coordinator still tells of
FROM_BEFORE = 2.3  # all markers are held to be older than what the coordinator still tells of, though some look younger
FROM_BEFORE_BY_CLOCK = 0.8  # the same, where nobody tells of the two clocks: what a pair costs for which they lie as far apart
FAR_MS = 60_000  # so far a clock of which nothing is known may be off: healthy clusters were seen with clocks 30 s apart
FAST_MS = 20 * ROUNDING_MS  # transactions closer together than this: see STEP_LIKE_A_PERIOD


class Match(NamedTuple):
    """What became of one marker: the index of its transaction, or None; `again`: it repeats the one before; `doubtful`: another story that
    gives it another transaction is as good; `legal`: and whichever of them is true, nothing is wrong."""

    decided: int | None
    again: bool
    doubtful: bool
    legal: bool = True


class Step(NamedTuple):
    """A jump of the distance between two matched markers: after the offset of the first, up to that of the second, by `least` to `most`
    ms; `leaders`: the partition's leader epochs on both sides, where they differ; `paid`: its price; `over_hole`: offsets are missing."""

    after: int
    up_to: int
    least: float
    most: float
    leaders: tuple[int | None, int | None] | None = None
    paid: float = 0.0
    over_hole: bool = False

    def is_undone_by(self, other: "Step") -> bool:
        """The other one follows at the next pair and leads back to the distance from before."""
        back = self.least + other.least <= ROUNDING_MS and self.most + other.most >= -ROUNDING_MS
        return self.leaders is None and self.up_to == other.after and back

    def may_be(self, other: "Step") -> bool:
        """Both may have seen the clock set at one moment, or two leaders' clocks. What allows nearly any jump tells nothing."""
        both = self.leaders == other.leaders and (self.leaders is not None or (self.after < other.up_to and other.after < self.up_to))
        alike = self.least <= other.most + ROUNDING_MS and other.least <= self.most + ROUNDING_MS
        return both and alike and all(one.most - one.least <= min(abs(one.least), abs(one.most)) for one in (self, other))


class Witness(NamedTuple):
    """What a matched marker of another producer tells of a log: the distance of two leaders' clocks at its offset, and which entries of
    the coordinator's log stand beside it; `sure`: more than one time that fits tells so."""

    offset: int
    distance: Distance
    leaders: Leaders
    decided_at: int | None = None
    completed_at: int | None = None
    sure: bool = True


@dataclass(frozen=True)
class Clock:
    """What other producers saw of a log's clock.

    `seen`: their matched markers in log order; `bounds`: what epochs alone tell (`alignment.bounds_of`), in the same order; `set_at`: where
    several saw it set; `led_apart`: how the clocks of two leaders differ, as others saw; `newest`: each leader epoch's newest marker.

    Order tells more: a completion stands behind all that was decided before its marker was written, so the coordinator's log tells of what
    stands before that marker (`told_up_to`, an offset of the log); and what was decided between the oldest completion and the newest
    decision (`decided_from` and `decided_up_to`, offsets of the coordinator's log) has its marker in the log.
    """

    seen: Sequence[Witness] = ()
    bounds: Sequence[Witness] = ()
    set_at: Sequence[tuple[int, int]] = ()
    led_apart: Sequence[Step] = ()
    newest: Mapping[int | None, Marker] = field(default_factory=dict)

    @property
    def is_heard(self) -> bool:
        """Somebody tells how far the two clocks lie apart."""
        return bool(self.seen or self.bounds)

    @cached_property
    def told_up_to(self) -> int:
        """Before this offset no marker is younger than the coordinator's log."""
        return max((one.offset for one in self.seen if one.completed_at is not None), default=-1)

    @cached_property
    def surely_told_up_to(self) -> int:
        """The same, by witnesses that are sure."""
        return max((one.offset for one in self.seen if one.sure and one.completed_at is not None), default=-1)

    @cached_property
    def decided_from(self) -> int | None:
        """What was decided behind this entry is not older than the log."""
        return min((one.completed_at for one in self.seen if one.completed_at is not None), default=None)

    @cached_property
    def surely_decided_from(self) -> int | None:
        """The same, by witnesses that are sure."""
        return min((one.completed_at for one in self.seen if one.sure and one.completed_at is not None), default=None)

    @cached_property
    def decided_up_to(self) -> int | None:
        """What was completed before this entry is not younger than the log."""
        return max((one.decided_at for one in self.seen if one.decided_at is not None), default=None)

    @cached_property
    def _decided_before(self) -> list[int]:
        """For each witness: the newest decision that had its marker at this place of the log."""
        return list(accumulate((-1 if one.decided_at is None else one.decided_at for one in self.seen), max))

    @cached_property
    def _completed_behind(self) -> list[float]:
        """For each witness: the oldest completion of those that have their markers from this place on."""
        behind = (inf if one.completed_at is None else one.completed_at for one in reversed(self.seen))
        return list(accumulate(behind, min))[::-1]

    @cached_property
    def _offsets(self) -> list[int]:
        return [one.offset for one in self.seen]

    def denies(self, marker: Marker, one: Decided) -> bool:
        """Whether order alone tells that a marker is not the first one of a transaction.

        All markers of a transaction are written between its two entries. So what was completed before a decision has its marker before
        those of that decision, in every log, and what was decided behind a completion has it behind.
        """
        before, behind = bisect_left(self._offsets, marker.offset), bisect_right(self._offsets, marker.offset)
        if is_of_lost_decision(marker, one):
            return False
        late = before > 0 and one.completed_at is not None and one.completed_at < self._decided_before[before - 1]
        early = behind < len(self.seen) and one.decided_at is not None and one.decided_at > self._completed_behind[behind]
        return late or early

    def is_behind(self, marker: Marker, entry: int) -> bool:
        """Whether a marker stands behind that of a decision behind an entry: then it is of no transaction completed before the entry."""
        before = self.seen[: bisect_left(self._offsets, marker.offset)]
        return any(one.sure and one.decided_at is not None and one.decided_at > entry for one in before)

    def is_younger(self, one: Decided) -> bool:
        """Whether the log may end before the marker of a transaction."""
        return None in (self.decided_up_to, one.completed_at) or one.completed_at > self.decided_up_to  # type: ignore[operator]

    def is_older(self, one: Decided) -> bool:
        """Whether the log may begin behind the marker of a transaction."""
        return None in (self.decided_from, one.decided_at) or one.decided_at < self.decided_from  # type: ignore[operator]

    def may_be_older(self, one: Decided) -> bool:
        """The same, unless a witness denies it that is sure: a lone pair may be one by chance."""
        return None in (self.surely_decided_from, one.decided_at) or one.decided_at < self.surely_decided_from  # type: ignore[operator]

    def price(self, step: Step, before: Distance, here: Distance, leaders: Leaders) -> float:
        """What a jump between the clocks of two leaders costs, from the distance before to the one here."""
        if self._set_in.reach(step.after, step.up_to):
            return 0.0
        first = bisect_right(self._offsets, step.after) - 1
        beside = self.seen[max(0, first) : bisect_left(self._offsets, step.up_to) + 1]
        led = [one for one in beside if one.leaders == leaders]
        even = len(led) >= 2 and led[0].offset <= step.after and led[-1].offset >= step.up_to
        if even and all(gap(a.distance, b.distance) == 0 for a, b in pairwise(led)):
            return STEP_DENIED
        sides = ((step.after, before), (step.up_to, here))
        told = [[seen for seen in self._around(offset, leaders) if not gap(seen, own)] for offset, own in sides]
        return 0.0 if any(gap(first, second) for first in told[0] for second in told[1]) else STEP

    @cached_property
    def _set_in(self) -> Stretches:
        return Stretches(self.set_at)

    def sees_between(self, after: int, up_to: int, leaders: Leaders) -> bool:
        """Whether somebody saw the clocks of these leaders between two offsets."""
        beside = self.seen[bisect_right(self._offsets, after) : bisect_left(self._offsets, up_to)]
        return any(one.leaders == leaders for one in beside)

    def around(self, marker: Marker, one: Decided) -> list[Distance]:
        """The distances at the matched markers next to one, before and behind it, under the same leaders."""
        return self._around(marker.offset, leaders_of(marker, one))

    def bounds_around(self, marker: Marker, one: Decided) -> list[Distance]:
        """The bounds of the distance next to a pair."""
        return _next_to(self.bounds, bisect_left(self.bounds, marker.offset, key=lambda bound: bound.offset), leaders_of(marker, one))

    def _around(self, offset: int, leaders: Leaders) -> list[Distance]:
        told = self._told_around.get((offset, leaders))
        if told is None:
            told = self._told_around[offset, leaders] = _next_to(self.seen, bisect_left(self._offsets, offset), leaders)
        return told

    @cached_property
    def _told_around(self) -> dict[tuple[int, Leaders], list[Distance]]:
        """What `_around` has said: hundreds of stories ask of the same place."""
        return {}


def _next_to(seen: Sequence[Witness], at: int, leaders: Leaders) -> list[Distance]:
    ways = (range(at - 1, -1, -1), range(at, len(seen)))
    led = (next((seen[i] for i in way if seen[i].leaders == leaders), None) for way in ways)
    return [one.distance for one in led if one is not None]


def missing(count: int, producer: Producer, behind: int | None, *, after_hole: bool = False, alone: bool = False) -> float:
    """What it costs that so many transactions in a row lack their markers, behind an offset: of the marker before, or of their data.
    `alone`: no stretch of the log can have been lost there."""
    cleaned = may_be_cleaned(producer, behind)
    first = UNSEEN if after_hole else MISSING_CLEANED if cleaned else MISSING
    return first + (MISSING_ALONE if alone and not cleaned and not after_hole else MISSING_TOO) * (count - 1) if count else 0.0


def may_be_cleaned(producer: Producer, behind: int | None) -> bool:
    """Whether the cleaner may have removed a marker that stood behind an offset."""
    return (behind or 0) < producer.cleaned_below


def price_of(marker: Marker, one: Decided) -> float | None:
    """What it costs to believe that a marker ended a transaction; None where the epochs rule it out."""
    if one.epoch is not None and marker.epoch != one.epoch:
        return None
    return (0.0 if marker.type == one.decision else CONTRADICTION) + foreign(marker, one)


def foreign(marker: Marker, one: Decided) -> float:
    """What it costs that the coordinator epoch of a marker is that of no leader from the decision to the completion."""
    if marker.coordinator_epoch is None:
        return 0.0
    # ZooKeeper's controller raises a leader's epoch when a follower dies, too: no coordinator hears of it (`ReplicaManager.makeLeaders`).
    early = not one.of_election and one.first_leader_epoch is not None and marker.coordinator_epoch < one.first_leader_epoch
    late = one.last_leader_epoch is not None and marker.coordinator_epoch > one.last_leader_epoch
    return FOREIGN_COORDINATOR if early or late else 0.0


def is_after(marker: Marker, one: Decided) -> bool:
    """Whether its epoch shows that a marker is younger than a transaction: the epochs of a producer id never go down."""
    return one.epoch is not None and marker.epoch > one.epoch and not marker.odd


def is_before(marker: Marker, one: Decided) -> bool:
    """Whether its epoch shows that a marker is older than a transaction; the abort tool (KIP-664) may end old data with its old epoch."""
    return one.epoch is not None and marker.epoch < one.epoch and not (marker.odd or marker.by_tool)


def may_be_newer(marker: Marker, producer: Producer, clock: Clock) -> bool:
    """Whether the coordinator's log may end before the decision of a marker: a partition is added (AddPartitionsToTxn) before its data, and
    what a coordinator leader decided stands before all that later ones wrote."""
    known = not producer.of_election and None not in (marker.coordinator_epoch, producer.told_until_epoch)
    if known and marker.coordinator_epoch < producer.told_until_epoch:  # type: ignore[operator]
        return False
    added = None if producer.running else marker.opened_at
    return (marker.offset if added is None else added) >= clock.surely_told_up_to


def looks_younger(marker: Marker, one: Decided, clock: Clock, skew_ms: int) -> bool:
    """Younger than a decision, as far as the distance of the clocks is known."""
    ahead = max((seen.most for seen in clock.around(marker, one)), default=0)
    ahead = max([ahead, *(bound.least for bound in clock.bounds_around(marker, one))])
    return marker.at_ms - ahead > one.decided_ms + skew_ms


def witness(marker: Marker, one: Decided) -> Witness:
    """What a matched pair tells the other producers of the log."""
    decided_at = None if is_of_lost_decision(marker, one) else one.decided_at
    return Witness(marker.offset, distance_of(marker, one), leaders_of(marker, one), decided_at, one.completed_at)
