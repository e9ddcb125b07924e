"""How the producers of one log hear each other: all of them have seen the same clocks, and one order.

Who is not sure hears those who are. Who is sure may be so by chance: where intervals are wide and transactions follow each other fast, a
few markers fit as many wrong transactions. So who is talked into faults of which it knew nothing is heard first, and the others beside it.
Where all together tell that for less, the faults are in doubt; where for less than a clock that was set costs besides, there are none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from eo_audit.model.alignment.beside import Seen, price_beside, said_of
from eo_audit.model.alignment.clocks import Marker
from eo_audit.model.alignment.prices import BY_TIME_ALONE, Clock, Match, Witness, witness
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.story import Story
from eo_audit.model.alignment.teller import FOR_LITTLE, LITTLE, MARGIN, Teller

LITTLE_TOLD = 2  # a story that pairs so many times fewer markers than another one has told little

Stories = Mapping[int, Sequence[Story]]  # of each producer, the cheapest first
_Heard = Callable[[Producer, Sequence[Story]], list[tuple[Marker, Match]]]


def heard(producers: Mapping[int, Producer], tellers: Mapping[int, Teller], alone: Stories, known: Mapping[int | None, Clock]) -> Stories:
    """The stories of each producer beside those of the others.

    Args:
        producers: in the order in which they are heard.
        tellers: what tells the stories of each.
        alone: the stories of each, told alone.
        known: by coordinator, what of the clocks needs no alignment.
    """
    hearing = _Hearing(producers, tellers, known)
    told = hearing.told(alone)
    innocent = {name: [alone[name][0]] for name, stories in told.items() if _is_talked_into_faults(alone[name], stories)}
    if not innocent:
        return told
    anew = hearing.told_beside(innocent, alone)
    saved = _price(told) - _price(anew)
    if saved >= FOR_LITTLE:
        return anew
    return {name: _with_rival(stories, anew[name]) for name, stories in told.items()} if saved > 0 else told


def _is_talked_into_faults(alone: Sequence[Story], beside: Sequence[Story]) -> bool:
    return bool(alone and beside) and alone[0].faults <= LITTLE < beside[0].faults


def _price(told: Stories) -> float:
    return sum(stories[0].cost for stories in told.values() if stories)


def _with_rival(stories: Sequence[Story], others: Sequence[Story]) -> Sequence[Story]:
    """The stories, and one that is as good."""
    if not others or others[0].matches() == stories[0].matches():
        return stories
    return [stories[0], others[0]._replace(cost=stories[0].cost), *stories[1:]]


def near(producer: Producer, stories: Sequence[Story], margin: float = MARGIN) -> list[Story]:
    """The stories that cost about as little as the cheapest one: one that is dear itself, not only for its leaders, is not sure against
    others as dear again, and one that tells little not against those that tell far more."""
    most = max(margin, stories[0].cost - stories[0].by_leaders)
    # Where nothing is anchored, that clocks agree is likely and no proof: others may have seen them apart.
    apart = [0.0 if producer.anchored else max(0.0, one.by_time - stories[0].by_time) for one in stories]
    return [
        one
        for one, by_time in zip(stories, apart, strict=True)
        if one.cost - by_time - stories[0].cost < most or tells_far_more(producer, one, stories[0])
    ]


def tells_far_more(producer: Producer, story: Story, cheapest: Story) -> bool:
    """Loose ends cost next to nothing, so where no end is anchored the cheapest story may be that both sequences hardly overlap. One that
    pairs far more of them may cost what a clock that was set costs, and is as good, unless it accuses where the other does not."""
    little = LITTLE_TOLD * (cheapest.pairs() + 1)
    as_good = story.pairs() >= little and (bool(cheapest.lost) or not story.lost)
    return not producer.anchored and story.cost - cheapest.cost < FOR_LITTLE and as_good


def is_nearer_in_time(producer: Producer, story: Story, cheapest: Story) -> bool:
    """Where no end is anchored, clocks need not lie as far apart as the cheapest story has them: another one is as good, and faultless."""
    nearer = story.by_time < cheapest.by_time and story.cost - cheapest.cost < MARGIN
    return nearer and story.faults <= LITTLE and not producer.anchored


def agreed(producer: Producer, stories: Sequence[Story]) -> list[tuple[Marker, Match]]:
    """The markers of which all stories that cost about as little say the same."""
    told = [story.matches() for story in near(producer, stories)]
    return [(marker, said[0]) for marker, *said in zip(producer.markers, *told, strict=True) if all(match == said[0] for match in said)]


def witnesses(producer: Producer, told: Iterable[tuple[Marker, Match]]) -> list[Witness]:
    """What the pairs of a producer tell the others."""
    pairs = [(marker, producer.decided[at]) for marker, (at, again, *_) in told if at is not None and not again]
    return [witness(marker, one)._replace(sure=producer.anchored or len(pairs) > 1) for marker, one in pairs]


def _settled(producer: Producer, stories: Sequence[Story]) -> list[tuple[Marker, Match]]:
    """All markers as the cheapest story has them. Where nothing is anchored, a lone pair tells nobody how clocks went, nor do pairs for
    which clocks would lie farther apart than another story, as good, has them."""
    if not producer.anchored and (stories[0].pairs() == 1 or any(is_nearer_in_time(producer, one, stories[0]) for one in stories)):
        return agreed(producer, stories)
    return list(zip(producer.markers, stories[0].matches(), strict=True))


def _is_firm(producer: Producer, stories: Sequence[Story]) -> bool:
    return len(agreed(producer, stories)) == len(producer.markers)


def _needs_witnesses(producer: Producer, stories: Sequence[Story]) -> bool:
    """Whoever is not sure; and where something is left loose at an end, others may tell how far the logs reach."""
    loose = bool(stories) and (stories[0].faults > 0 or stories[0].last is None)
    return bool(stories) and (loose or stories[0].cost >= BY_TIME_ALONE or not _is_firm(producer, stories))


@dataclass(frozen=True)
class _Hearing:
    """All producers of a log, what tells the stories of each, and by coordinator what of the clocks needs no alignment."""

    producers: Mapping[int, Producer]
    tellers: Mapping[int, Teller]
    known: Mapping[int | None, Clock]

    def told(self, alone: Stories) -> Stories:
        """One after the other, in three rounds. Who was not sure alone may be sure beside others, and is a witness then; in the last round
        whoever is not sure hears what the others have settled on by then, because the stories that are told must fit each other."""
        told = dict(alone)
        for hearing in (agreed, agreed, _settled):
            for name in self.producers:
                told[name] = self._told_beside(told, name, hearing)
        return told

    def told_beside(self, believed: Stories, alone: Stories) -> Stories:
        """All others beside the stories of some, and these beside what the others tell then: who does not yield is still heard."""
        told = dict(alone) | dict(believed)
        for name in (one for one in self.producers if one not in believed):
            told[name] = self._told_beside({**believed, name: told[name]}, name, _settled)
        for name in self.producers:
            told[name] = self._told_beside(told, name, _settled)
        return told

    def _told_beside(self, told: Stories, name: int, heard: _Heard) -> Sequence[Story]:
        """The stories of one producer, told anew with what the others say if it is not sure itself."""
        producer, stories = self.producers[name], told[name]
        known = self.known[producer.coordinator]
        others = {other: found for other, found in told.items() if other != name and found}
        if not (others or known.seen) or not _needs_witnesses(producer, stories):
            return stories
        again = self.tellers[name].stories(self._clock(others, producer, stories, known, heard))
        return self._supported(others, producer, again)

    def _clock(self, others: Stories, own: Producer, stories: Sequence[Story], known: Clock, heard: _Heard) -> Clock:
        """What the stories of other producers say of the clock: where it stood, where it was set if one saw the same step."""
        beside = {name: found for name, found in others.items() if self.producers[name].coordinator == own.coordinator}
        seen = [one for name, found in beside.items() for one in witnesses(self.producers[name], heard(self.producers[name], found))]
        elsewhere = [step for name, found in others.items() for story in near(self.producers[name], found) for step in story.steps]
        # Offsets that are missing look like a clock that was set, the same to all whose transactions come as regularly.
        set_at = [
            (max(step.after, other.after), min(step.up_to, other.up_to))
            for story in near(own, stories)
            for step in story.steps
            for other in elsewhere
            if step.leaders is None and not step.over_hole and step.may_be(other)
        ]
        led_apart = [step for step in elsewhere if step.leaders is not None]
        return replace(known, seen=sorted([*seen, *known.seen]), set_at=set_at, led_apart=led_apart)

    def _supported(self, others: Stories, own: Producer, stories: Sequence[Story]) -> Sequence[Story]:
        """The stories with what it costs to believe them beside one story of each other producer that is not sure either.

        Who is not sure is no witness. But all of them have seen one clock and one order, so the stories that are true fit each other.
        """
        if not stories or _is_firm(own, stories):
            return list(stories)
        unsure = [
            (self.producers[name], found)
            for name, found in others.items()
            if self.producers[name].coordinator == own.coordinator and not _is_firm(self.producers[name], found)
        ]
        # What fits has not been paid for twice: of the others' stories only what they cost themselves is counted.
        of_others = [
            [(one, one.own - min(story.own for story in found), _heard_of(other, one)) for one in near(other, found, FOR_LITTLE)]
            for other, found in unsure
        ]
        mine = [Seen.of(own, story) for story in near(own, stories, FOR_LITTLE)]
        asked = frozenset().union(*(one.pairs for one in mine))
        prices = [0.0] * len(mine)
        for told in of_others:
            said = [(one, cost, said_of(own, asked, clock)) for one, cost, clock in told]
            prices = [
                price + min(cost + price_beside(one, other, of_pairs) for other, cost, of_pairs in said)
                for price, one in zip(prices, mine, strict=True)
            ]
        supported = [one.story._replace(cost=one.story.cost + price, beside=price) for one, price in zip(mine, prices, strict=True)]
        return sorted([*supported, *stories[len(mine) :]], key=lambda story: story.cost)


def _heard_of(producer: Producer, story: Story) -> Clock:
    return Clock(sorted(witnesses(producer, zip(producer.markers, story.matches(), strict=True))))
