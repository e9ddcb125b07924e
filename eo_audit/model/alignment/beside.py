"""What it costs to believe a story of one producer beside one of another in the same log: both saw one clock and one order."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from eo_audit.model.alignment.clocks import as_seen, distance_of
from eo_audit.model.alignment.prices import AGAINST_WITNESSES, OUT_OF_ORDER, STEP, Clock
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.story import Story

Pair = tuple[int, int]  # which marker of a producer, and which of its transactions


class Seen(NamedTuple):
    """A story with its pairs, and those of them that others may have seen, too."""

    story: Story
    pairs: frozenset[Pair]
    beside: frozenset[Pair]

    @classmethod
    def of(cls, producer: Producer, story: Story) -> "Seen":
        """The pairs of a producer's story."""
        pairs = [(number, at) for number, (at, again, *_) in enumerate(story.matches()) if at is not None and not again]
        # A clock that was set there and back is paid for already, and nobody else was there to see it.
        away = {step.up_to for step, back in pairwise(story.steps) if step.is_undone_by(back)}
        return cls(story, frozenset(pairs), frozenset(pair for pair in pairs if producer.markers[pair[0]].offset not in away))


class Said(NamedTuple):
    """What another producer's story says of pairs: which it has seen beside its own at all, of which its one marker there tells of other
    clocks, of which its several markers there all do, and which its order denies."""

    told: set[Pair]
    apart_of_one: set[Pair]
    apart_of_all: set[Pair]
    denied: set[Pair]


def said_of(producer: Producer, pairs: Iterable[Pair], clock: Clock) -> Said:
    """Each pair is asked once: the stories of a producer share nearly all of theirs, and to ask for each story took 20 times as long."""
    said = Said(set(), set(), set(), set())
    for pair in pairs:
        marker, one = producer.markers[pair[0]], producer.decided[pair[1]]
        if seen := clock.around(marker, one):
            said.told.add(pair)
            if not as_seen(distance_of(marker, one), seen):
                (said.apart_of_all if len(seen) > 1 else said.apart_of_one).add(pair)
        if clock.denies(marker, one):
            said.denied.add(pair)
    return said


def price_beside(mine: Seen, other: Story, said: Said) -> float:
    """What it costs to believe a story beside another producer's: for another clock, another order; one distance is paid once."""
    story = mine.story
    price = 0.0 if mine.pairs.isdisjoint(said.denied) else OUT_OF_ORDER
    if not mine.beside.isdisjoint(said.apart_of_all):
        return price + max(0.0, STEP - story.by_time)
    if not mine.beside.isdisjoint(said.apart_of_one):
        return price + max(0.0, AGAINST_WITNESSES - story.by_time)
    if any(step.may_be(theirs) for step in story.steps for theirs in other.steps):
        return price - min(STEP, max(0.0, story.cost - story.faults - story.by_leaders))  # one clock was set: one of both has paid for it
    return price - (0.0 if mine.beside.isdisjoint(said.told) else min(story.by_time, other.by_time))
