"""One way to tell the markers of a producer, and what can be asked of it alone."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from eo_audit.model.alignment.clocks import DRIFT, ROUNDING_MS, Decided, Distance, Marker, distance_of, gap, leaders_of, of_two_clocks
from eo_audit.model.alignment.prices import (
    MOST_CLEANED,
    STEP,
    STEP_BACK,
    STEP_OF_LEADERS,
    UNSEEN,
    Clock,
    Match,
    Step,
    is_after,
    is_before,
    may_be_cleaned,
)
from eo_audit.model.alignment.producer import Producer


class Told(NamedTuple):
    """What is told of one producer: what became of each marker, and the transactions of which at least one lacks its marker, whichever
    story is true; none where the matches tell which one. `older` and `younger`: transactions whose markers the log begins behind, or ends
    before; `in_hole`: those whose markers were among offsets that are missing."""

    matches: Sequence[Match]
    one_lost_of: Sequence[int] = ()
    older: Sequence[int] = ()
    younger: Sequence[int] = ()
    in_hole: Sequence[int] = ()


# A named tuple: an audit of many logs tells a million, each a copy with something changed, and those of a data class were a quarter of it.
class Story(NamedTuple):
    """One way to tell the markers so far: its price, the next transaction, and what it remembers of the clock; `by_time`
    is what the first pair cost, `by_leaders` what was paid for other leaders' clocks; `lost`: the transactions that lack their marker;
    `cleaned`: what was paid for those that the cleaner may have removed; `in_hole`: the transactions whose markers were among offsets that
    are missing; `beside`: what of the price is for stories of other producers."""

    cost: float
    faults: float
    following: int
    distance: Distance | None = None
    last: Marker | None = None
    last_decided: Decided | None = None
    told: "tuple[Story, Match] | None" = None
    steps: tuple[Step, ...] = ()
    strained: bool = False
    by_time: float = 0.0
    by_leaders: float = 0.0
    lost: tuple[int, ...] = ()
    cleaned: float = 0.0
    in_hole: tuple[int, ...] = ()
    beside: float = 0.0

    def matches(self) -> list[Match]:
        """What it says of each marker, in order."""
        story, said = self, []
        while story.told is not None:
            story, match = story.told
            said.append(match)
        return said[::-1]

    @property
    def own(self) -> float:
        """What it costs without regard to those of others."""
        return self.cost - self.beside

    @property
    def last_offset(self) -> int | None:
        """Of the last marker that ended a transaction."""
        return None if self.last is None else self.last.offset

    def has_set_clock(self) -> bool:
        """Whether one leader's clock was set in it."""
        return any(step.leaders is None for step in self.steps)

    def pairs(self) -> int:
        """How many transactions have their marker."""
        return len({match.decided for match in self.matches()} - {None})


def unseen(story: Story, decided: int) -> tuple[list[int], list[int], Sequence[int]]:
    """Of so many transactions those that are held to be older than the log, those that are held to be younger, and those that were in a
    hole of it."""
    paired = [match.decided for match in story.matches() if match.decided is not None]
    first = min(paired, default=story.following)
    elsewhere = {*story.lost, *story.in_hole}
    older, younger = ([at for at in one if at not in elsewhere] for one in (range(first), range(story.following, decided)))
    return older, younger, story.in_hole


def evenly_told(story: Story) -> Story:
    """A distance of clocks that many pairs agree on, to a few milliseconds, is hardly chance: what it cost is shared among them."""
    even = story.pairs() - 1 - len(story.steps)
    if even < 2 or story.by_time >= STEP:  # others saw another one
        return story
    return story._replace(cost=story.cost - story.by_time * (1 - 1 / even), by_time=story.by_time / even)


def apart_at_ends(story: Story, left: int) -> int:
    """How many markers, but the first, are held to be of another time than as many transactions: a strange dump, if they are many."""
    told = [None if match.again else match.decided for match in story.matches()]
    first = next((at for at, one in enumerate(told) if one is not None), len(told))
    behind = next((at for at, one in enumerate(reversed(told)) if one is not None), 0)
    skipped = (told[first] or 0) if first < len(told) else 0
    return max(min(first, left) - 1, min(skipped, behind) - 1, 0)


def lost_and_newer(story: Story) -> int:
    """How many transactions, but the first, lack their markers while as many markers behind are held to be younger than all that is told:
    rather they are theirs."""
    told = story.matches()
    last = max((at for at, match in enumerate(told) if match.decided is not None and not match.again), default=len(told))
    newer = sum(match.decided is None for match in told[last + 1 :])
    return max(0, min(len(story.lost), newer) - 1)


def may_own(one: Decided, epoch: int | None) -> bool:
    """Whether data of an epoch may be a transaction's: its marker has that epoch, or one or two more (fenced: KAFKA-19367)."""
    return None in (epoch, one.epoch) or 0 <= one.epoch - epoch <= 2  # type: ignore[operator]


def bounded(story: Story, producer: Producer, behind: int | None, price: float) -> tuple[float, float]:
    """What is paid for missing markers behind an offset, and how much of it for what the cleaner may have removed: of that no story pays
    more than MOST_CLEANED."""
    if not may_be_cleaned(producer, behind):
        return price, 0.0
    paid = min(price, MOST_CLEANED - story.cleaned)
    return paid, paid


def within_log(story: Story, marker: Marker, producer: Producer, clock: Clock) -> list[int] | None:
    """The transactions that the log does not begin behind, should it begin with a marker; None where it begins with none."""
    if story.told is not None or not producer.older_decided:
        return None
    rest = enumerate(producer.decided[story.following :], start=story.following)
    return [at for at, one in rest if not clock.is_older(one) or is_before(marker, one)]


def stand_ins(story: Story, marker: Marker, lacking: Sequence[int], producer: Producer) -> int:
    """How many markers that are nobody's stand between the last pair and a marker, each with the type and epoch of a transaction that lacks
    its own there, in their order."""
    told, nobodys = story.told, list[Marker]()
    if told is None or told[1].decided is not None:
        return 0
    at = bisect_left(producer.markers, marker.offset, key=lambda one: one.offset)
    while told is not None and told[1].decided is None:
        at, told = at - 1, told[0].told
        nobodys.append(producer.markers[at])
    lost = (producer.decided[number] for number in lacking)
    return sum(one.type == own.decision and own.epoch in (None, one.epoch) for one, own in zip(reversed(nobodys), lost, strict=False))


def given_back(story: Story) -> float:
    """What a clock that is set back at the next pair makes of a step that others deny (`_price_of_step`)."""
    return max(0.0, story.steps[-1].paid - STEP - STEP_BACK) if story.steps else 0.0


def denied_up_to(story: Story, marker: Marker, here: Distance) -> int:
    """The offset of the last pair that the distance at a marker denies: behind it the clock was set. A marker that waited long fits both
    distances, and does not tell on which side of it that was."""
    told: Story | None = story
    while told is not None and told.last is not None and told.last_decided is not None:
        if told.last.leader_epoch != marker.leader_epoch or gap(distance_of(told.last, told.last_decided), here):
            return told.last.offset
        told = told.told[0] if told.told is not None else None
    return -1 if story.last is None else story.last.offset


def step_of_leaders(story: Story, marker: Marker, one: Decided, here: Distance) -> Step | None:
    """How the clocks of two leaders of the partition differ, where the coordinator's is one and the same."""
    last, decided, before = story.last, story.last_decided, story.distance
    if last is None or decided is None or before is None or decided.first_leader_epoch != one.first_leader_epoch:
        return None
    leaders = last.leader_epoch, marker.leader_epoch
    return Step(last.offset, marker.offset, here.least - before.most, here.most - before.least, leaders)


def led_by_others(story: Story, marker: Marker, one: Decided) -> bool:
    """Another leader, of the partition or of the coordinator, has another clock."""
    last, decided = story.last, story.last_decided
    return last is not None and decided is not None and leaders_of(last, decided) != leaders_of(marker, one)


def goes_on(story: Story, producer: Producer, clock: Clock) -> Callable[[Decided], bool]:
    """Whether the log goes on behind the completion of a transaction that has no marker in it, by the clocks of the last pair's leaders.

    Where one of them was set behind that pair, as later pairs of others tell or the coordinator's own times, nothing is known.
    """
    last, pair, distance = story.last, story.last_decided, story.distance
    newest = clock.newest.get(last.leader_epoch) if last is not None else None
    if last is None or pair is None or distance is None or newest is None or newest.offset <= last.offset:
        return lambda _: False
    later = [seen.distance.most for seen in clock.seen if seen.offset > last.offset and seen.leaders == leaders_of(last, pair)]
    shown = newest.at_ms - max([distance.most, *later]) - ROUNDING_MS - DRIFT * abs(newest.at_ms - last.at_ms)
    behind = pairwise([pair, *producer.decided[story.following :]])
    set_back = next((one.place for before, one in behind if one.decided_ms < (before.until_ms or before.decided_ms) - ROUNDING_MS), inf)
    return lambda one: (
        one.until_ms is not None
        and not of_two_clocks(one)
        and one.first_leader_epoch == pair.first_leader_epoch
        and one.place < set_back
        and one.until_ms < shown
    )


def _is_early(story: Story, marker: Marker, producer: Producer) -> bool:
    """At a time of which the coordinator's log still tells, by the clock that wrote the last transaction's marker: before that one was
    complete, or before the log was dumped."""
    return story.last is not None and marker.leader_epoch == story.last.leader_epoch and _would_be_early(story, marker, producer)


def _would_be_early(story: Story, marker: Marker, producer: Producer) -> bool:
    """The same, if the marker's leader had the clock of the last one's."""
    last, one, distance = story.last, story.last_decided, story.distance
    if last is None or one is None or distance is None:
        return False
    at_ms = marker.at_ms - distance.least + ROUNDING_MS + DRIFT * abs(marker.at_ms - last.at_ms)
    completed_ms = None if of_two_clocks(one) else one.until_ms
    told_ms = producer.told_until_ms if producer.told_until_epoch == one.first_leader_epoch else None
    return any(until_ms is not None and at_ms < until_ms for until_ms in (completed_ms, told_ms))


def price_of_newer(story: Story, marker: Marker, producer: Producer) -> tuple[float, float]:
    """What it costs that a marker is younger than the coordinator's log, as a fault and for another leader's clock: nothing,
    unless it looks older by the clock that is known; but where both brokers had been stopped, hardly anything is younger."""
    if _is_early(story, marker, producer):
        return STEP, 0.0
    told = story.told is not None and story.told[1].decided is None  # the marker before has paid for it
    if told or not _would_be_early(story, marker, producer):
        return UNSEEN, 0.0
    return (STEP, 0.0) if producer.both_stopped else (0.0, STEP_OF_LEADERS)


def is_early_only_by_its_clock(marker: Marker, story: Story, producer: Producer) -> bool:
    """Whether a marker behind the last pair is held to be younger than the coordinator's log, which was written on by then as clocks say:
    one of them was set, and whose the marker is nobody knows."""
    behind = story.last is not None and marker.offset > story.last.offset
    return behind and producer.newer_markers and marker.closes and _is_early(story, marker, producer)


def is_told_of(story: Story, producer: Producer, clock: Clock) -> bool:
    """Whether the coordinator's log would tell of the transaction of open data: a marker behind it was written before that log ends."""
    newest = clock.newest.get(story.last.leader_epoch) if story.last is not None else None
    behind = newest is not None and producer.open_from is not None and newest.offset > producer.open_from
    return behind and newest is not None and _is_early(story, newest, producer)


def may_be_older(story: Story, marker: Marker, producer: Producer, clock: Clock) -> bool:
    """Whether a marker may be one of those whose decisions are gone from the coordinator's log."""
    decided = producer.decided
    if is_behind_hole(story, producer):
        return producer.older_markers and not _is_younger_than_known(marker, decided[story.following], clock)
    none_yet = story.last is None and (story.following < len(decided) or not decided)
    return none_yet and producer.older_markers and not (decided and _is_younger_than_known(marker, decided[0], clock))


def is_behind_hole(story: Story, producer: Producer) -> bool:
    """Whether decisions are missing in the coordinator's log between the last transaction of a story and the next one."""
    told, anew, at = producer.decided, producer.told_anew_at, story.following
    return anew is not None and 0 < at < len(told) and told[at - 1].place < anew <= told[at].place


def _is_younger_than_known(marker: Marker, first: Decided, clock: Clock) -> bool:
    """Whether a marker is none of those whose decisions are gone from the coordinator's log, before the first one that it still tells."""
    raised = first.data_epoch is not None and marker.epoch > first.data_epoch and not marker.odd  # its data would have that epoch, too
    return raised or is_after(marker, first) or clock.is_behind(marker, first.place)
