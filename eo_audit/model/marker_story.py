"""One way to tell the markers of a producer, and what can be asked of it alone."""

from dataclasses import dataclass, field, replace

from eo_audit.model.marker_clocks import Decided, Distance, Marker, distance_of, gap, leaders_of
from eo_audit.model.marker_prices import STEP, Match, Step


@dataclass(frozen=True)
class Story:
    """One way to tell the markers so far: its price, the next transaction, and what it remembers of the clock; `by_time`
    is what the first pair cost, `by_leaders` what was paid for other leaders' clocks; `lost`: the transactions that lack their marker;
    `beside`: what of the price is for stories of other producers."""

    cost: float
    faults: float
    following: int
    distance: Distance | None = None
    last: Marker | None = None
    last_decided: Decided | None = None
    told: "tuple[Story, Match] | None" = None
    steps: tuple[Step, ...] = field(default=())
    strained: bool = False
    by_time: float = 0.0
    by_leaders: float = 0.0
    lost: tuple[int, ...] = ()
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


def evenly_told(story: Story) -> Story:
    """A distance of clocks that many pairs agree on, to a few milliseconds, is hardly chance: what it cost is shared among them."""
    even = story.pairs() - 1 - len(story.steps)
    if even < 2 or story.by_time >= STEP:  # others saw another one
        return story
    return replace(story, cost=story.cost - story.by_time * (1 - 1 / even), by_time=story.by_time / even)


def apart_at_ends(story: Story, left: int) -> int:
    """How many markers, but the first, are held to be of another time than as many transactions: a strange dump, if they are many."""
    told = [None if match.again else match.decided for match in story.matches()]
    first = next((at for at, one in enumerate(told) if one is not None), len(told))
    behind = next((at for at, one in enumerate(reversed(told)) if one is not None), 0)
    skipped = (told[first] or 0) if first < len(told) else 0
    return max(min(first, left) - 1, min(skipped, behind) - 1, 0)


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
