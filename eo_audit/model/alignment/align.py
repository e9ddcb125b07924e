"""The markers of one log told beside each other: each producer's stories alone, then beside those of the others."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from types import MappingProxyType

from eo_audit.model.alignment.clocks import Distance, Marker, leaders_of
from eo_audit.model.alignment.hearing import LITTLE_TOLD, agreed, heard, is_nearer_in_time, near, tells_far_more, witnesses
from eo_audit.model.alignment.prices import STEP, Clock, Match, Witness, is_after, is_before
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.story import Story, Told, is_early_only_by_its_clock, unseen
from eo_audit.model.alignment.teller import FOR_LITTLE, LITTLE, MARGIN, TELLING, Teller

TIE = 0.1  # less than clocks that differ by the tolerance tell


def align(
    producers: Mapping[int, Producer], *, skew_ms: int, seen: Mapping[int | None, Sequence[Witness]] = MappingProxyType({})
) -> dict[int, Told]:
    """Match the markers of one log with the transactions of their producers.

    Args:
        producers: the sequences of each producer id, markers in the order of the log, transactions in that of the coordinator's log. In
            this order they are heard, and who is heard later has heard more: the same question must come in the same order.
        skew_ms: how far clocks may lie apart before that alone is odd.
        seen: by coordinator, what pairs tell of the clocks that need no alignment (TV2).

    Returns:
        For each producer id one `Match` a marker, and what is lost.
    """
    newest: dict[int | None, Marker] = {}
    markers = (marker for producer in producers.values() for marker in producer.markers)
    for marker in sorted(markers, key=lambda marker: (marker.at_ms, marker.offset)):
        newest[marker.leader_epoch] = marker
    bounds = {one: _bounds(producers, one) for one in {producer.coordinator for producer in producers.values()}}
    alone = {one: Clock(newest=newest, bounds=bounds[one]) for one in bounds}
    tellers = {name: Teller(producer, skew_ms) for name, producer in producers.items()}
    told_alone = {name: tellers[name].stories(alone[one.coordinator]) for name, one in producers.items()}
    known = {one: replace(clock, seen=seen.get(one, ())) for one, clock in alone.items()}
    told_beside = heard(producers, tellers, told_alone, known)
    told = {name: _innocent_first(stories, producers[name]) for name, stories in told_beside.items()}
    told_up_to = _told_up_to(producers, told, known)
    older = {one: _held_to_be_older(producers, told, one) for one in bounds}
    return {
        name: _told(told[name], producer, older[producer.coordinator], told_up_to[producer.coordinator])
        for name, producer in producers.items()
    }


def _bounds(producers: Mapping[int, Producer], coordinator: int | None) -> list[Witness]:
    return sorted(bound for one in producers.values() if one.coordinator == coordinator for bound in bounds_of(one))


def bounds_of(producer: Producer) -> list[Witness]:
    """What epochs alone tell of two clocks, as pairs with distances that are open on one side.

    The epochs of a producer id never go down: a marker with a smaller one than a transaction's stands before that was decided, one with a
    greater one behind.
    """
    markers = [marker for marker in producer.markers if not (marker.odd or marker.by_tool)]
    decided = [(one.epoch, one) for one in producer.decided if one.epoch is not None]
    found = []
    for at, (epoch, one) in enumerate(decided):
        if at == 0 or decided[at - 1][0] != epoch:
            before = bisect_left(markers, epoch, key=_epoch) - 1
            if before >= 0 and is_before(marker := markers[before], one):
                found.append(Witness(marker.offset, Distance(marker.at_ms - one.decided_ms, inf, marker.at_ms), leaders_of(marker, one)))
        if at + 1 == len(decided) or decided[at + 1][0] != epoch:
            behind = bisect_right(markers, epoch, key=_epoch)
            if behind < len(markers) and is_after(marker := markers[behind], one):
                found.append(Witness(marker.offset, Distance(-inf, marker.at_ms - one.decided_ms, marker.at_ms), leaders_of(marker, one)))
    return found


def _epoch(marker: Marker) -> int:
    return marker.epoch


def _acquits(producer: Producer, story: Story, cheapest: Story) -> bool:
    """Where no end is anchored, what is missing in the cheapest story may be a price of clocks alone: one that pairs more markers, and in
    which nothing is missing, is as good for what a clock costs that was set."""
    more = cheapest.lost and not story.lost and story.faults <= LITTLE and story.pairs() > cheapest.pairs()
    return bool(more) and not producer.anchored and story.cost - cheapest.cost < FOR_LITTLE


def _innocent_first(stories: Sequence[Story], producer: Producer) -> Sequence[Story]:
    """Where something is missing in the cheapest story, one in which every transaction has its marker, for what a clock costs that was set.

    Clocks are set every day, markers are hardly ever lost; and one that is lost leaves one marker less to pair, not several. Where both
    brokers had been stopped, one that is lost leaves one marker less than there are transactions. The same where both logs are held to
    share a moment only, though all of many transactions have theirs.
    """
    most = len(producer.decided)
    if not stories or not (stories[0].lost or (most >= TELLING and stories[0].pairs() == 1)):
        return stories
    whole = (one for one in stories if one.cost - stories[0].cost < FOR_LITTLE and not one.lost and one.faults <= LITTLE)
    even = producer.both_stopped and most == len(producer.markers)
    believed = next((one for one in whole if one.pairs() == most > stories[0].pairs() + (0 if even else 1)), None)
    return stories if believed is None else [believed, *(one for one in stories if one is not believed)]


def _held_to_be_older(producers: Mapping[int, Producer], told: Mapping[int, Sequence[Story]], coordinator: int | None) -> int:
    """The newest decision of those that are held to be older than the log, because all markers of their producer are younger."""
    beside = [(producers[name], found[0]) for name, found in told.items() if found and producers[name].coordinator == coordinator]
    older = [one.decided[-1] for one, story in beside if one.decided and story.last is None and story.following == len(one.decided)]
    return max((one.decided_at for one in older if one.decided_at is not None), default=-1)


def _told_up_to(
    producers: Mapping[int, Producer], told: Mapping[int, Sequence[Story]], known: Mapping[int | None, Clock]
) -> dict[int | None, int]:
    """By coordinator: before this offset of the log no marker is younger than the coordinator's log, as pairs tell that are sure: those of
    the stories, and those that need no alignment."""
    found = {one: clock.surely_told_up_to for one, clock in known.items()}
    for name, producer in producers.items():
        pairs = witnesses(producer, agreed(producer, told[name])) if told[name] else []
        sure = (one.offset for one in pairs if one.sure and one.completed_at is not None)
        found[producer.coordinator] = max(found[producer.coordinator], max(sure, default=-1))
    return found


def _told(stories: Sequence[Story], producer: Producer, held_older: int, told_up_to: int) -> Told:
    """The cheapest story with its doubts. Where the stories do not agree which transaction lacks its marker, but none is without one, not
    even among those that cost a clock more that was set: it is one of theirs.

    `held_older`: a decision that is older than the log, as another producer has it. A lone pair that was complete before it is in doubt.
    `told_up_to`: before this offset no marker is younger than the coordinator's log.
    """
    matches = _with_doubts(stories, producer, told_up_to)
    if stories and not producer.anchored and stories[0].pairs() == 1:
        completed = [None if match.decided is None else producer.decided[match.decided].completed_at for match in matches]
        matches = [
            match._replace(doubtful=match.doubtful or (at is not None and at < held_older))
            for match, at in zip(matches, completed, strict=True)
        ]
    likely = near(producer, stories, FOR_LITTLE) if stories else []
    one_lost = not producer.cleaned_below and any(match.doubtful for match in matches) and all(story.lost for story in likely)
    one_lost_of = sorted({at for story in likely if story.cost - likely[0].cost < MARGIN for at in story.lost}) if one_lost else []
    return Told(matches, one_lost_of, *(unseen(stories[0], len(producer.decided)) if stories else ()))


def _with_doubts(stories: Sequence[Story], producer: Producer, told_up_to: int) -> list[Match]:
    """The cheapest story; markers that a story of nearly the same price tells otherwise are doubtful, where the cheapest has a fault, or
    where no end is anchored, it leaves markers behind its last pair, and pairs fewer of them, or as many for the same price."""
    if not stories:
        return []
    cheapest, best, pairs = stories[0], stories[0].matches(), stories[0].pairs()
    last = -1 if cheapest.last is None else cheapest.last.offset
    # What is held to be younger than the coordinator's log, and is not, would be late data and a marker that nobody sent.
    behind = not producer.anchored and any(marker.closes and marker.offset > last for marker in producer.markers)
    rivals = [
        story
        for story in stories[1:]
        if (
            story.cost - cheapest.cost < MARGIN
            and (cheapest.faults > LITTLE or (behind and story.pairs() > pairs))
            and pairs < LITTLE_TOLD * (story.pairs() + 1)  # who tells far less is no rival
        )
        or (story.cost - cheapest.cost < TIE and behind and story.pairs() == pairs)
        # Of two brokers that had been stopped hardly anything is newer: a clock may have been set instead.
        or (producer.both_stopped and behind and story.pairs() > pairs and story.faults <= LITTLE and story.cost - cheapest.cost < STEP)
        # One pair says nothing of how the clock went on: that a marker was lost is not sure beside two pairs and a clock that was set.
        or (pairs == 1 < story.pairs() and cheapest.faults > LITTLE and story.cost - cheapest.cost < STEP)
        # And one pair that costs as much as none tells of no time that both logs have.
        or (pairs == 1 and not producer.anchored and story.last is None and story.cost - cheapest.cost < MARGIN and story.faults <= LITTLE)
        or tells_far_more(producer, story, cheapest)
        or _acquits(producer, story, cheapest)
        or is_nearer_in_time(producer, story, cheapest)
    ]
    # A fault, and a clock that was set besides: nobody thinks of that where nothing is wrong otherwise.
    legal = all(story.faults <= LITTLE or (story.has_set_clock() and cheapest.faults <= LITTLE) for story in (cheapest, *rivals))
    told = [story.matches() for story in rivals]
    early = [marker.offset > told_up_to and is_early_only_by_its_clock(marker, cheapest, producer) for marker in producer.markers]
    doubts = [early[at] or any(rival[at].decided != match.decided for rival in told) for at, match in enumerate(best)]
    return [match._replace(doubtful=doubtful, legal=legal) for match, doubtful in zip(best, doubts, strict=True)]
