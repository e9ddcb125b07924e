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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from eo_audit.model.marker_prices import (
    AGAINST_WITNESSES,
    BY_TIME_ALONE,
    DRIFT,
    OUT_OF_ORDER,
    ROUNDING_MS,
    STEP,
    Clock,
    Decided,
    Distance,
    Marker,
    Match,
    Producer,
    Witness,
    distance_of,
    gap,
    witness,
)
from eo_audit.model.marker_stories import FOR_LITTLE, MARGIN, Story, stories_of

__all__ = ["DRIFT", "ROUNDING_MS", "Clock", "Decided", "Distance", "Marker", "Match", "Producer", "Witness", "align", "distance_of"]

LITTLE = 0.2  # loose ends and markers that were sent again: no fault of a story
ROUNDS = 2  # who was not sure alone may be sure beside others, and is a witness then
LITTLE_TOLD = 2  # where no end anchors them, a story that matches so many times fewer markers than another one has told little


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
    told: dict[int, Sequence[Story]] = {name: stories_of(producer, Clock(), skew_ms) for name, producer in producers.items()}
    for _ in range(ROUNDS):
        told = {name: _told_beside(producers, told, name, seen, skew_ms) for name in producers}
    return {name: _with_doubts(told[name], producer) for name, producer in producers.items()}


def _told_beside(
    producers: Mapping[int, Producer],
    told: Mapping[int, Sequence[Story]],
    name: int,
    seen: Mapping[int | None, Sequence[Witness]],
    skew_ms: int,
) -> Sequence[Story]:
    """The stories of one producer, told anew with what the others say if it is not sure itself."""
    producer, stories = producers[name], told[name]
    others = {other: found for other, found in told.items() if other != name and found}
    told_else = seen.get(producer.coordinator, ())
    if not (others or told_else) or not _needs_witnesses(producer, stories):
        return stories
    again = stories_of(producer, _clock(producers, others, producer, stories, told_else), skew_ms)
    return _supported(producers, others, producer, again)


def _near(stories: Sequence[Story], margin: float = MARGIN) -> list[Story]:
    """The stories that cost about as little as the cheapest one: one that is dear itself is not sure against others as dear again."""
    return [story for story in stories if story.cost - stories[0].cost < max(margin, stories[0].cost)]


def _agreed(producer: Producer, stories: Sequence[Story]) -> list[tuple[Marker, Match]]:
    """The markers of which all stories that cost about as little say the same."""
    told = [story.matches() for story in _near(stories)]
    return [(marker, said[0]) for marker, *said in zip(producer.markers, *told, strict=True) if all(match == said[0] for match in said)]


def _is_firm(producer: Producer, stories: Sequence[Story]) -> bool:
    return len(_agreed(producer, stories)) == len(producer.markers)


def _needs_witnesses(producer: Producer, stories: Sequence[Story]) -> bool:
    return bool(stories) and (stories[0].cost >= BY_TIME_ALONE or stories[0].last is None or not _is_firm(producer, stories))


def _witnesses(producer: Producer, told: Iterable[tuple[Marker, Match]]) -> list[Witness]:
    return [witness(marker, producer.decided[at]) for marker, (at, again, _) in told if at is not None and not again]


def _clock(
    producers: Mapping[int, Producer],
    others: Mapping[int, Sequence[Story]],
    own: Producer,
    stories: Sequence[Story],
    told_else: Sequence[Witness],
) -> Clock:
    """What the stories of other producers say of the clock: where it stood if they are sure, where it was set if one saw the same step."""
    beside = {name: found for name, found in others.items() if producers[name].coordinator == own.coordinator}
    seen = [one for name, found in beside.items() for one in _witnesses(producers[name], _agreed(producers[name], found))]
    elsewhere = [step for found in others.values() for story in _near(found) for step in story.steps]
    agreed = [
        (max(step.after, other.after), min(step.up_to, other.up_to))
        for story in _near(stories)
        for step in story.steps
        for other in elsewhere
        if step.may_be(other)
    ]
    return Clock(sorted([*seen, *told_else]), agreed)


def _supported(
    producers: Mapping[int, Producer], others: Mapping[int, Sequence[Story]], own: Producer, stories: Sequence[Story]
) -> list[Story]:
    """The stories with what it costs to believe them beside one story of each other producer that is not sure either.

    Who is not sure is no witness. But all of them have seen one clock and one order, so the stories that are true fit each other.
    """
    if not stories or _is_firm(own, stories):
        return list(stories)
    of_others = []
    for name, found in others.items():
        if producers[name].coordinator == own.coordinator and not _is_firm(producers[name], found):
            beside = _near(found, FOR_LITTLE)
            clocks = [
                Clock(sorted(_witnesses(producers[name], zip(producers[name].markers, one.matches(), strict=True)))) for one in beside
            ]
            of_others.append([(one.cost - found[0].cost, clock) for one, clock in zip(beside, clocks, strict=True)])
    near = _near(stories, FOR_LITTLE)
    costs = [one.cost + sum(min(cost + _against(own, one, clock) for cost, clock in told) for told in of_others) for one in near]
    supported = [replace(one, cost=cost) for one, cost in zip(near, costs, strict=True)]
    return sorted([*supported, *stories[len(near) :]], key=lambda story: story.cost)


def _against(producer: Producer, story: Story, clock: Clock) -> float:
    """What speaks against a story if another producer's story is true: another clock, another order."""
    pairs = [
        (m, producer.decided[at])
        for m, (at, again, _) in zip(producer.markers, story.matches(), strict=True)
        if at is not None and not again
    ]
    apart = [marker for marker, one in pairs if (seen := clock.near(marker, one)) is not None and gap(seen, distance_of(marker, one))]
    price = STEP if any(clock.surrounds(marker) for marker in apart) else AGAINST_WITNESSES if apart else 0.0
    return price + (OUT_OF_ORDER if any(clock.denies(marker, one) for marker, one in pairs) else 0.0)


def _with_doubts(stories: Sequence[Story], producer: Producer) -> list[Match]:
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


def _pairs(story: Story) -> int:
    return len({match.decided for match in story.matches()} - {None})
