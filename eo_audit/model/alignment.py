"""Which marker ended which transaction: the markers of one producer in one log, beside its decided transactions that list the partition.

Order is evidence, time is a hint. `TransactionMarkerChannelManager` sends the markers of a transaction before the id's next one can begin,
so both sequences run in the same order; where every type fits, nothing else is asked. What does not fit has a price: a transaction
without its marker, a marker of the other type, a marker that nobody sent. The cheapest story is believed, unless another one costs nearly
as little.

Clocks only weigh stories against each other. A marker has the clock of the partition's leader, a decision that of the coordinator's; the
two may lie any distance apart, but the distance does not jump: a marker that follows its decision at another distance than the one before
it did tells of a clock that was set, or of a wrong pair. Other producers of the same log have seen the same clock, and are asked which of
the two it was.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from eo_audit.model.marker_prices import (
    AGAINST_WITNESSES,
    APART,
    BY_TIME_ALONE,
    CONTRADICTION,
    DRIFT,
    EXTRA,
    EXTRA_BY_TOOL,
    EXTRA_EMPTY,
    FAST_MS,
    FROM_BEFORE,
    LATE,
    LATE_OR_NEWER,
    MISSING,
    MOST_APART,
    NOTHING,
    ODD_EPOCH,
    RETRY,
    ROUNDING_MS,
    STEP,
    STEP_LIKE_A_PERIOD,
    STEP_OF_LEADERS,
    UNSEEN,
    Clock,
    Decided,
    Distance,
    Marker,
    Match,
    Producer,
    Step,
    Witness,
    distance_of,
    first_price,
    foreign,
    gap,
    missing,
    narrowed,
    of_two_clocks,
    price_of,
    witness,
)

__all__ = ["DRIFT", "ROUNDING_MS", "Clock", "Decided", "Distance", "Marker", "Match", "Producer", "Witness", "align", "distance_of"]

LITTLE = 0.2  # loose ends and markers that were sent again: no fault of a story
MARGIN = 0.5  # stories that lie closer together than this are told apart by nothing
MOST_MISSING = 12  # transactions passed over at once, but for those that time passes over
STORIES = 4  # kept for each last pair
MOST_STORIES = 256
CAPS = (0.6, 1.6, 3.2)  # what a story may cost: most are told for nothing, and are found at once where no dear ones are followed
TOO_DEAR = 4.0  # where even that is not enough: dearer than the cheapest by more than this
LITTLE_TOLD = 2  # where no end anchors them, a story that matches so many times fewer markers than another one has told little ...
FOR_LITTLE = STEP + MARGIN  # ... and is held to be as good as that one up to this difference: one clock that was set


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
    steps: tuple[Step, ...] = field(default=())
    strained: bool = False

    def matches(self) -> list[Match]:
        """What it says of each marker, in order."""
        story, said = self, []
        while story.told is not None:
            story, match = story.told
            said.append(match)
        return said[::-1]


def align(
    producers: Mapping[int, Producer], *, skew_ms: int, seen: Mapping[int | None, Sequence[Witness]] = MappingProxyType({})
) -> dict[int, list[Match]]:
    """Match the markers of one log with the transactions of their producers.

    Args:
        producers: the sequences of each producer id, markers in the order of the log, transactions in that of the coordinator's log.
        skew_ms: how far clocks may lie apart before that alone is odd.
        seen: by coordinator, what pairs tell of the clocks that need no alignment (TV2).

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
        told[name] = _with_doubts(stories, producer)
    return told


def _agreed(producer: Producer, stories: Sequence[_Story]) -> Iterable[tuple[Marker, Match]]:
    """The markers of which all stories that cost about as little say the same."""
    told = [story.matches() for story in stories if story.cost - stories[0].cost < MARGIN]
    for marker, *said in zip(producer.markers, *told, strict=True):
        if all(match == said[0] for match in said):
            yield marker, said[0]


def _is_firm(stories: Sequence[_Story]) -> bool:
    near = [story for story in stories[1:] if story.cost - stories[0].cost < MARGIN]
    best = stories[0].matches() if near else []
    return all(story.matches() == best for story in near)


def _needs_witnesses(stories: Sequence[_Story]) -> bool:
    return bool(stories) and (stories[0].cost >= BY_TIME_ALONE or stories[0].last is None or not _is_firm(stories))


def _clock(
    producers: Mapping[int, Producer],
    others: Mapping[int, Sequence[_Story]],
    own: tuple[Producer, _Story],
    told_else: Sequence[Witness],
) -> Clock:
    """What the stories of other producers say of the clock: where it stood if they are sure, where it was set if one saw the same step."""
    seen = [
        witness(marker, producers[name].decided[match.decided])
        for name, stories in others.items()
        if producers[name].coordinator == own[0].coordinator
        for marker, match in _agreed(producers[name], stories)
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
    return Clock(seen, agreed)


def _with_doubts(stories: Sequence[_Story], producer: Producer) -> list[Match]:
    """The cheapest story; where it has a fault, markers that a story of nearly the same price tells otherwise are doubtful.

    Loose ends cost next to nothing, so where no end is anchored the cheapest story may be that both sequences hardly overlap. One that
    pairs far more of them has the evidence, and may cost what a clock that was set costs.
    """
    if not stories:
        return []
    best = stories[0].matches()
    pairs = [_pairs(story) for story in stories] if not producer.anchored else [0] * len(stories)
    rivals = [
        story.matches()
        for story, paired in zip(stories[1:], pairs[1:], strict=True)
        if (stories[0].faults > LITTLE and story.cost - stories[0].cost < MARGIN)
        or (paired >= LITTLE_TOLD * pairs[0] + LITTLE_TOLD and story.cost - stories[0].cost < FOR_LITTLE)
    ]
    return [m._replace(doubtful=any(rival[at].decided != m.decided for rival in rivals)) for at, m in enumerate(best)]


def _pairs(story: _Story) -> int:
    return len({match.decided for match in story.matches()} - {None})


def _stories(producer: Producer, clock: Clock, skew_ms: int) -> list[_Story]:
    """The cheapest story, and all that come near it, in the order of their prices."""
    for cap in (*CAPS, None):
        alive = [_Story(0.0, 0.0, 0)]
        for marker in producer.markers:
            alive = _cheapest((after for story in alive for after in _continued(story, marker, producer, clock, skew_ms, cap)), cap)
        told = sorted((_ended(story, producer, clock) for story in alive), key=lambda story: (story.cost, -story.following))
        if cap is None or (told and told[0].cost + (MARGIN if producer.anchored else FOR_LITTLE) <= cap):
            return told
    return []


def _cheapest(told: Iterable[_Story], cap: float | None) -> list[_Story]:
    ordered = sorted((story for story in told if cap is None or story.cost <= cap), key=lambda story: story.cost)
    at: dict[tuple[int, int | None], list[_Story]] = {}
    for story in ordered:  # those that agree on the last pair have the same clock and the same choices before them
        kept = at.setdefault((story.following, story.last.offset if story.last else None), [])
        if len(kept) < STORIES and story.cost <= ordered[0].cost + TOO_DEAR:
            kept.append(story)
    return sorted((story for kept in at.values() for story in kept), key=lambda story: story.cost)[:MOST_STORIES]


def _ended(story: _Story, producer: Producer, clock: Clock) -> _Story:
    """The transactions behind the last marker: they lack theirs, or the dump of the log ends before them."""
    left = len(producer.decided) - story.following
    lost = sum(not clock.is_younger(one) for one in producer.decided[story.following :]) if producer.newer_decided else left
    price = missing(lost, producer) + UNSEEN * min(left - lost, 1)
    if story.last is None and producer.decided:
        price += NOTHING
    if story.strained and story.last is None:
        price += FROM_BEFORE
    if producer.open_behind and not left:
        price += LATE_OR_NEWER if producer.newer_markers else LATE
    apart = min(APART * _apart(story, left), MOST_APART)
    return replace(story, cost=story.cost + price + apart, faults=story.faults + price)


def _apart(story: _Story, left: int) -> int:
    """How many markers, but the first, are held to be of another time than as many transactions: a strange dump, if they are many."""
    told = [None if match.again else match.decided for match in story.matches()]
    first = next((at for at, one in enumerate(told) if one is not None), len(told))
    behind = next((at for at, one in enumerate(reversed(told)) if one is not None), 0)
    skipped = (told[first] or 0) if first < len(told) else 0
    return max(min(first, left) - 1, min(skipped, behind) - 1, 0)


def _continued(story: _Story, marker: Marker, producer: Producer, clock: Clock, skew_ms: int, cap: float | None) -> Iterable[_Story]:
    """The story with one marker more: it is nobody's, repeats the one before it, or ends one of the next transactions."""
    yield _passed_over(story, marker, producer, clock, skew_ms)
    if marker.odd and story.following < len(producer.decided):
        yield _in_place_of_next(story, marker, producer)
    last, one = story.last, story.last_decided
    if last is not None and one is not None and not marker.closes and (marker.type, marker.epoch) == (last.type, one.epoch):
        yield from _matched(story, foreign(marker, one), marker, producer, story.following - 1, clock, skew_ms, again=True)
    for at in _next(story, marker, producer, cap):
        price = price_of(marker, producer.decided[at])
        if price is not None:
            free = story.told is None and producer.older_decided  # the log may begin behind them
            # Where markers were passed over, none is missing: each transaction that is passed over as well counts for itself.
            passed = story.last is None and story.told is not None
            if free:
                lost = sum(not clock.is_older(one) for one in producer.decided[:at])
                price += missing(lost, producer) + UNSEEN * min(at - lost, 1)
            else:
                price += MISSING * at if passed else missing(at - story.following, producer, after_hole=marker.after_hole)
            if cap is None or story.cost + price <= cap:
                yield from _matched(story, price, marker, producer, at, clock, skew_ms)


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


def _passed_over(story: _Story, marker: Marker, producer: Producer, clock: Clock, skew_ms: int) -> _Story:
    price = EXTRA_BY_TOOL if marker.by_tool and marker.closes else EXTRA if marker.closes else EXTRA_EMPTY
    strained = story.strained
    if story.last is None and producer.older_markers:
        price = UNSEEN if story.told is None else 0.0
        if producer.decided and not strained and marker.at_ms > producer.decided[0].decided_ms + skew_ms:
            strained = True
    elif story.following >= len(producer.decided) and producer.newer_markers and marker.offset >= clock.told_up_to:
        price = UNSEEN
    told = (story, Match(None, again=False, doubtful=False))
    return replace(story, cost=story.cost + price, faults=story.faults + price, told=told, strained=strained)


def _in_place_of_next(story: _Story, marker: Marker, producer: Producer) -> _Story:
    """The next transaction lacks its marker, and this one stands there."""
    price = ODD_EPOCH + (0.0 if marker.type == producer.decided[story.following].decision else CONTRADICTION)
    told = (story, Match(None, again=False, doubtful=False))
    return replace(story, cost=story.cost + price, faults=story.faults + price, following=story.following + 1, told=told)


def _matched(
    story: _Story, price: float, marker: Marker, producer: Producer, at: int, clock: Clock, skew_ms: int, *, again: bool = False
) -> Iterable[_Story]:
    """The story in which a marker ends a transaction, or is sent `again` before its end is written (`TransactionMarkerChannelManager`).

    What that says of the clocks has its price, too. Two stories, where the leader is another.
    """
    one = producer.decided[at]
    here, before = distance_of(marker, one), story.distance
    told = (story, Match(at, again=again, doubtful=False))
    known = story.cost + price + (RETRY if again else 0.0)

    def told_with(cost: float, distance: Distance, steps: tuple[Step, ...] = story.steps) -> _Story:
        return _Story(known + cost, story.faults + price, at + 1, distance, marker, one, told, steps, story.strained)

    if before is None or story.last is None:
        yield told_with(first_price(here, clock.near(marker), skew_ms, anchored=producer.anchored), here)
        return
    if again and of_two_clocks(one):
        yield told_with(0.0, before)
        return
    jump = gap(before, here)
    if not jump:
        yield told_with(0.0, narrowed(before, here))
    if _led_by_others(story, marker, one):
        seen = clock.near(marker)
        agreed = seen is not None and not gap(seen, here)
        against = 0.0 if seen is None or agreed else AGAINST_WITNESSES
        yield told_with(STEP_OF_LEADERS + against, narrowed(seen, here) if seen is not None and agreed else here)
    elif jump:
        step = Step(story.last.offset, marker.offset, jump)
        asked = clock.price(step, marker.leader_epoch)
        fast = at > 0 and one.decided_ms - producer.decided[at - 1].decided_ms < FAST_MS
        yield told_with(STEP_LIKE_A_PERIOD if fast and asked == STEP else asked, here, (*story.steps, step))


def _led_by_others(story: _Story, marker: Marker, one: Decided) -> bool:
    """Another leader, of the partition or of the coordinator, has another clock."""
    last, decided = story.last, story.last_decided
    partition = last is not None and last.leader_epoch != marker.leader_epoch
    return partition or (decided is not None and decided.last_leader_epoch != one.first_leader_epoch)
