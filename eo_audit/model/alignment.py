"""Which marker ended which transaction: the markers of one producer in one log, beside its decided transactions that list the partition.

Order is evidence, time is a hint. `TransactionMarkerChannelManager` sends the markers of a transaction before the id's next one can begin, so
both sequences run in the same order; where every type fits, nothing else is asked. What does not fit has a price: a transaction without its
marker, a marker of the other type, a marker that nobody sent. The cheapest story is believed, unless another one costs nearly as little.

Clocks only weigh stories against each other. A marker has the clock of the partition's leader, a decision that of the coordinator's; the two may
lie any distance apart, but the distance does not jump: a marker that follows its decision at another distance than the one before it did
tells of a clock that was set, or of a wrong pair. Other producers of the same log have seen the same clock, and are asked which of the two it was.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

MISSING = 1.0  # the marker of a transaction is not in the log, between others that are
MISSING_CLEANED = 0.25  # the same, where the cleaner may have removed it
MISSING_TOO = 0.01  # and that of the next one neither: a stretch of a log is lost as one
CONTRADICTION = 1.0  # a marker of the other type
EXTRA = 2.0  # a marker that ends data and that no coordinator sent: rarer than any clock that was set
EXTRA_BY_TOOL = 1.2  # the same, as `kafka-transactions.sh abort` writes it: an operator's hand is no fault of Kafka's
EXTRA_EMPTY = 0.9  # a marker that ends nothing and belongs to no transaction
RETRY = 0.05  # the same marker again: a coordinator that was elected sends what its predecessor may have sent
FOREIGN_COORDINATOR = 0.6  # right in every other way, but its coordinator epoch is that of no leader from PrepareX to CompleteX
UNSEEN = 0.01  # at an end that the dumps may lack: next to nothing, so that stories with fewer such loose ends win
STEP = 1.5  # a clock that was set, where no other producer of the log can tell
STEP_LIKE_A_PERIOD = 1.0  # the same, where transactions follow each other so fast that any step looks like some of them missing
STEP_DENIED = 3.0  # the same, where another producer saw the clock go on evenly
STEP_OF_LEADERS = 0.5  # another leader has another clock
BY_TIME_ALONE = 0.3  # the whole of what is asked for a distance of clocks within the tolerance, where nothing but time anchors a story
TOO_FAR = 0.5  # and for one beyond it
TOO_FAR_IN_PLACE = 0.2  # the same, where the places anchor it
LATE = 1.0  # data that is open behind the last marker, and no transaction is left that it could belong to
LITTLE = 0.2  # loose ends and markers that were sent again: no fault of a story
FROM_BEFORE = 1.5  # a marker that looks younger than the first transaction the coordinator still tells of, and is yet held to be older
MARGIN = 0.5  # stories that lie closer together than this are told apart by nothing

ROUNDING_MS = 10  # timestamps are whole milliseconds, taken at both ends of a request
DRIFT = 5e-4  # NTP slews a clock by 500 ppm at most
FAST_MS = 20 * ROUNDING_MS  # transactions closer together than this: see STEP_LIKE_A_PERIOD
MOST_MISSING = 12  # transactions passed over at once, but for those that time passes over
STORIES = 4  # kept for each place in the sequence of transactions
MOST_STORIES = 256
CAPS = (0.6, 1.6, 3.2)  # what a story may cost: most are told for nothing, and are found at once where no dear ones are followed
TOO_DEAR = 4.0  # where even that is not enough: dearer than the cheapest by more than this


@dataclass(frozen=True)
class Decided:
    """A decided transaction that lists the partition. `until_ms`: when its markers had all been written; None while it is not completed."""

    place: int
    epoch: int | None
    decision: str
    decided_ms: int
    until_ms: int | None
    first_leader_epoch: int | None = None
    last_leader_epoch: int | None = None


@dataclass(frozen=True)
class Marker:
    """A marker of the log. `closes`: data of the producer was open; `by_tool`: it looks as the abort tool writes it; `after_hole`:
    offsets are missing between it and the producer's marker before."""

    offset: int
    type: str
    epoch: int
    at_ms: int
    closes: bool
    by_tool: bool = False
    coordinator_epoch: int | None = None
    leader_epoch: int | None = None
    after_hole: bool = False


@dataclass(frozen=True)
class Producer:
    """One producer's two sequences, and which of their ends the dumps may lack: what is older, what is newer.

    `coordinator`: names the coordinator's log, whose clock wrote the decisions. `cleaned`: the cleaner may have removed markers; `open_behind`: data stands behind the last marker, and no transaction is running.
    """

    markers: Sequence[Marker]
    decided: Sequence[Decided]
    older_markers: bool = False
    older_decided: bool = False
    newer_markers: bool = True
    newer_decided: bool = True
    cleaned: bool = False
    open_behind: bool = False
    coordinator: int | None = None

    @property
    def anchored(self) -> bool:
        """One of its ends is known on both sides, so that places tell of pairs."""
        return not (self.older_markers or self.older_decided) or not (self.newer_markers or self.newer_decided)


class Distance(NamedTuple):
    """How far the partition leader's clock may be ahead of the coordinator's, in ms: from `least` to `most`, as of `at_ms`."""

    least: float
    most: float
    at_ms: int


class Match(NamedTuple):
    """What became of one marker: the index of its transaction, or None; `again`: it repeats the marker before it; `doubtful`: another
    story that gives it another transaction is as good."""

    decided: int | None
    again: bool
    doubtful: bool


@dataclass(frozen=True)
class _Step:
    """A jump of the distance between two matched markers: after the offset of the first, up to that of the second."""

    after: int
    up_to: int
    by_ms: float


@dataclass(frozen=True)
class Clock:
    """What other producers saw of a log's clock.

    `offsets` and `distances` of their matched markers in log order; `set_at`: stretches of offsets in which several saw it set.
    """

    offsets: Sequence[int] = ()
    distances: Sequence[Distance] = ()
    set_at: Sequence[tuple[int, int]] = ()

    def price(self, after: int, up_to: int) -> float:
        """What a jump between two offsets costs."""
        if any(first < up_to and after < last for first, last in self.set_at):
            return 0.0
        seen = slice(max(0, bisect_right(self.offsets, after) - 1), bisect_left(self.offsets, up_to) + 1)
        inside = self.distances[seen]
        even = len(inside) >= 2 and self.offsets[seen.start] <= after and self.offsets[min(seen.stop, len(self.offsets)) - 1] >= up_to
        return STEP_DENIED if even and all(_gap(a, b) == 0 for a, b in pairwise(inside)) else STEP

    def near(self, offset: int) -> Distance | None:
        """The distance at the matched marker next to an offset."""
        if not self.offsets:
            return None
        at = min(bisect_left(self.offsets, offset), len(self.offsets) - 1)
        return self.distances[at]


@dataclass(frozen=True)
class _Story:
    """One way to tell the markers so far: its price, the next transaction, and what it remembers of the clock."""

    cost: float
    faults: float
    following: int
    distance: Distance | None = None
    last: Marker | None = None
    last_decided: Decided | None = None
    told: "tuple[_Story, Match] | None" = None
    steps: tuple[_Step, ...] = field(default=())
    strained: bool = False

    def matches(self) -> list[Match]:
        """What it says of each marker, in order."""
        story, said = self, []
        while story.told is not None:
            story, match = story.told
            said.append(match)
        return said[::-1]


def align(
    producers: Mapping[int, Producer], *, skew_ms: int, seen: Mapping[int | None, Sequence[tuple[int, Distance]]] = MappingProxyType({})
) -> dict[int, list[Match]]:
    """Match the markers of one log with the transactions of their producers.

    Args:
        producers: the sequences of each producer id, markers in the order of the log, transactions in that of the coordinator's log.
        skew_ms: how far clocks may lie apart before that alone is odd.
        seen: by coordinator, the distances of clocks at offsets of the log that pairs tell which need no alignment (TV2).

    Returns:
        For each producer id one `Match` a marker.
    """
    alone = {name: _stories(producer, Clock(), skew_ms) for name, producer in producers.items()}
    told = {}
    for name, producer in producers.items():
        others = {other: found for other, found in alone.items() if other != name and found}
        told_else = seen.get(producer.coordinator, ())
        asked = bool(others or told_else) and _needs_witnesses(alone[name])
        stories = _stories(producer, _clock(producers, others, (producer, alone[name][0]), told_else), skew_ms) if asked else alone[name]
        told[name] = _with_doubts(stories)
    return told


def _is_firm(stories: Sequence[_Story]) -> bool:
    return len(stories) == 1 or stories[1].cost - stories[0].cost >= MARGIN


def _needs_witnesses(stories: Sequence[_Story]) -> bool:
    return bool(stories) and (stories[0].cost >= BY_TIME_ALONE or not _is_firm(stories))


def _clock(
    producers: Mapping[int, Producer],
    others: Mapping[int, Sequence[_Story]],
    own: tuple[Producer, _Story],
    told_else: Sequence[tuple[int, Distance]],
) -> Clock:
    """What the stories of other producers say of the clock: where it stood if they are firm, where it was set if one saw the same step."""
    seen = [
        (marker.offset, distance_of(marker, producers[name].decided[match.decided]))
        for name, stories in others.items()
        if _is_firm(stories) and producers[name].coordinator == own[0].coordinator
        for marker, match in zip(producers[name].markers, stories[0].matches(), strict=True)
        if match.decided is not None and not match.again
    ]
    seen = sorted([*seen, *told_else])
    agreed = [
        (max(step.after, other.after), min(step.up_to, other.up_to))
        for step in own[1].steps
        for stories in others.values()
        for other in stories[0].steps
        if step.after < other.up_to and other.after < step.up_to and abs(step.by_ms - other.by_ms) <= 2 * ROUNDING_MS
    ]
    return Clock([offset for offset, _ in seen], [distance for _, distance in seen], agreed)


def _with_doubts(stories: Sequence[_Story]) -> list[Match]:
    """The cheapest story; where it has a fault, markers that a story of nearly the same price tells otherwise are doubtful."""
    if not stories:
        return []
    best = stories[0].matches()
    if stories[0].faults <= LITTLE:
        return best
    rivals = [story.matches() for story in stories[1:] if story.cost - stories[0].cost < MARGIN]
    return [m._replace(doubtful=any(rival[at].decided != m.decided for rival in rivals)) for at, m in enumerate(best)]


def _stories(producer: Producer, clock: Clock, skew_ms: int) -> list[_Story]:
    """The cheapest story, and all that come near it, in the order of their prices."""
    for cap in (*CAPS, None):
        alive = [_Story(0.0, 0.0, 0)]
        for marker in producer.markers:
            alive = _cheapest((after for story in alive for after in _continued(story, marker, producer, clock, skew_ms, cap)), cap)
        told = sorted((_ended(story, producer) for story in alive), key=lambda story: (story.cost, -story.following))
        if cap is None or (told and told[0].cost + MARGIN <= cap):
            return told
    return []


def _cheapest(told: Iterable[_Story], cap: float | None) -> list[_Story]:
    ordered = sorted((story for story in told if cap is None or story.cost <= cap), key=lambda story: story.cost)
    at: dict[tuple[int, bool], list[_Story]] = {}
    for story in ordered:
        kept = at.setdefault((story.following, story.last is None), [])
        if len(kept) < STORIES and story.cost <= ordered[0].cost + TOO_DEAR:
            kept.append(story)
    return sorted((story for kept in at.values() for story in kept), key=lambda story: story.cost)[:MOST_STORIES]


def _ended(story: _Story, producer: Producer) -> _Story:
    """The transactions behind the last marker: they lack theirs, or the dump of the log ends before them."""
    left = len(producer.decided) - story.following
    price = UNSEEN * min(left, 1) if producer.newer_decided else _missing(left, producer)
    if producer.open_behind and not left and not producer.newer_markers:
        price += LATE
    return replace(story, cost=story.cost + price, faults=story.faults + price)


def _missing(count: int, producer: Producer, *, after_hole: bool = False) -> float:
    first = UNSEEN if after_hole else MISSING_CLEANED if producer.cleaned else MISSING
    return first + MISSING_TOO * (count - 1) if count else 0.0


def _continued(story: _Story, marker: Marker, producer: Producer, clock: Clock, skew_ms: int, cap: float | None) -> Iterable[_Story]:
    """The story with one marker more: it is nobody's, repeats the one before it, or ends one of the next transactions."""
    yield _passed_over(story, marker, producer, skew_ms)
    last, one = story.last, story.last_decided
    if last is not None and one is not None and not marker.closes and (marker.type, marker.epoch) == (last.type, one.epoch):
        match = Match(story.following - 1, again=True, doubtful=False)
        yield replace(story, cost=story.cost + RETRY, told=(story, match))
    for at in _next(story, marker, producer, cap):
        price = _price(marker, producer.decided[at])
        if price is not None:
            free = story.told is None and producer.older_decided  # the log may begin behind them
            # Where markers were passed over, none is missing: each transaction that is passed over as well counts for itself.
            passed = story.last is None and story.told is not None
            price += (
                UNSEEN * min(at, 1)
                if free
                else (MISSING * at if passed else _missing(at - story.following, producer, after_hole=marker.after_hole))
            )
            if cap is None or story.cost + price <= cap:
                yield _matched(story, price, marker, producer, at, clock, skew_ms)


def _next(story: _Story, marker: Marker, producer: Producer, cap: float | None) -> Iterable[int]:
    """The transactions that a marker may end: the next ones, and those that time points at behind a long hole."""
    decided = producer.decided
    if story.told is None and producer.older_decided:
        yield from range(len(decided))
        return
    most = MOST_MISSING if cap is None or story.cost + MISSING <= cap else 1
    near = range(story.following, min(story.following + most, len(decided)))
    yield from near
    if most == 1:
        return
    if near.stop < len(decided) and story.distance is not None:
        made = marker.at_ms - story.distance.most
        pointed = bisect_left(decided, made, lo=near.stop, key=lambda one: one.decided_ms)
        yield from range(max(near.stop, pointed - 1), min(pointed + 2, len(decided)))


def _passed_over(story: _Story, marker: Marker, producer: Producer, skew_ms: int) -> _Story:
    price = EXTRA_BY_TOOL if marker.by_tool and marker.closes else EXTRA if marker.closes else EXTRA_EMPTY
    strained = story.strained
    if story.last is None and producer.older_markers:
        price = UNSEEN if story.told is None else 0.0
        if producer.decided and not strained and marker.at_ms > producer.decided[0].decided_ms + skew_ms:
            price, strained = price + FROM_BEFORE, True
    elif story.following >= len(producer.decided) and producer.newer_markers:
        price = UNSEEN
    told = (story, Match(None, again=False, doubtful=False))
    return replace(story, cost=story.cost + price, faults=story.faults + price, told=told, strained=strained)


def _price(marker: Marker, one: Decided) -> float | None:
    """What it costs to believe that a marker ended a transaction; None where the epochs rule it out."""
    if one.epoch is not None and marker.epoch != one.epoch:
        return None
    price = 0.0 if marker.type == one.decision else CONTRADICTION
    if marker.coordinator_epoch is None:
        return price
    early = one.first_leader_epoch is not None and marker.coordinator_epoch < one.first_leader_epoch
    late = one.last_leader_epoch is not None and marker.coordinator_epoch > one.last_leader_epoch
    return price + (FOREIGN_COORDINATOR if early or late else 0.0)


def _matched(story: _Story, price: float, marker: Marker, producer: Producer, at: int, clock: Clock, skew_ms: int) -> _Story:
    """The story in which a marker ends a transaction: what that says of the clocks has its price, too."""
    one = producer.decided[at]
    here, before, steps = distance_of(marker, one), story.distance, story.steps
    faults = story.faults + price
    if before is None or story.last is None:
        price += _first_price(here, clock.near(marker.offset), skew_ms, anchored=producer.anchored)
    elif jump := _gap(before, here):
        if _led_by_others(story, marker, one):
            price += STEP_OF_LEADERS
        else:
            step = _Step(story.last.offset, marker.offset, jump)
            steps = (*steps, step)
            asked = clock.price(step.after, step.up_to)
            fast = at > 0 and one.decided_ms - producer.decided[at - 1].decided_ms < FAST_MS
            price += STEP_LIKE_A_PERIOD if fast and asked == STEP else asked
    else:
        here = _narrowed(before, here)
    told = (story, Match(at, again=False, doubtful=False))
    return _Story(story.cost + price, faults, at + 1, here, marker, one, told, steps, story.strained)


def _first_price(here: Distance, seen: Distance | None, skew_ms: int, *, anchored: bool) -> float:
    """The first pair of a story: beside what others saw, or, where nothing but time anchors it, beside clocks that agree."""
    if seen is not None:
        return 0.0 if not _gap(seen, here) else (BY_TIME_ALONE if anchored else STEP)
    apart = max(here.least, -here.most, 0)
    return BY_TIME_ALONE * min(1.0, apart / skew_ms) + ((TOO_FAR_IN_PLACE if anchored else TOO_FAR) if apart > skew_ms else 0.0)


def _led_by_others(story: _Story, marker: Marker, one: Decided) -> bool:
    """Another leader, of the partition or of the coordinator, has another clock."""
    last, decided = story.last, story.last_decided
    partition = last is not None and last.leader_epoch != marker.leader_epoch
    return partition or (decided is not None and decided.last_leader_epoch != one.first_leader_epoch)


def distance_of(marker: Marker, one: Decided) -> Distance:
    """The distance of clocks that a pair allows: a marker is written between the decision and its completion."""
    until = one.until_ms if one.until_ms is not None else one.decided_ms + 60_000
    return Distance(marker.at_ms - max(until, one.decided_ms), marker.at_ms - one.decided_ms, marker.at_ms)


def _gap(before: Distance, here: Distance) -> float:
    """How far two distances lie apart, with its sign; 0 where rounding and drift explain it."""
    tolerance = ROUNDING_MS + DRIFT * abs(here.at_ms - before.at_ms)
    if here.least > before.most + tolerance:
        return here.least - before.most
    return here.most - before.least if here.most < before.least - tolerance else 0.0


def _narrowed(before: Distance, here: Distance) -> Distance:
    """What both allow, as far as clocks may have drifted between."""
    drift = ROUNDING_MS + DRIFT * abs(here.at_ms - before.at_ms)
    least, most = max(here.least, before.least - drift), min(here.most, before.most + drift)
    return Distance(least, most, here.at_ms) if least <= most else here
