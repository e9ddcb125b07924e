"""How the markers of one producer in one log can be told: every way to give them transactions, with its price, the cheapest first.

A dynamic program over the markers. Stories that agree on the last pair have the same clock and the same choices before them, so few of
each need to be kept.
"""

from collections.abc import Sequence
from functools import reduce

from eo_audit.model.alignment.clocks import Marker, distance_of, gap, narrowed
from eo_audit.model.alignment.limits import CAPS, MOST_STORIES, Limit, cheapest
from eo_audit.model.alignment.pairs import Pairs
from eo_audit.model.alignment.prices import FAR_MS, STEP, Clock, price_of
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.stories import continued, ended, is_by_hand, passed_over
from eo_audit.model.alignment.story import Story

MARGIN = 0.5  # stories that lie closer together than this are told apart by nothing
FOR_LITTLE = STEP + MARGIN  # so much a story may cost that tells far more than the cheapest one: one clock that was set
LITTLE = 0.2  # loose ends and markers that were sent again: no fault of a story
MANY = 32  # pairs that no chance brings together
TELLING = 8  # markers in whose types and distances two starts differ
HALF_A_RUN = 0.5  # so few of its length by chance: rather one is none
MOST_PAIRS = 1_000_000  # of markers and transactions, so that chance is asked of them in a second


class Teller:
    """The stories of one producer, asked again and again while others of its log settle on theirs. It remembers them: two times in five
    the others say of the clock what they said a round ago."""

    def __init__(self, producer: Producer, skew_ms: int) -> None:
        """Arguments as for `stories_of`."""
        self._producer, self._skew_ms = producer, skew_ms
        self._told: list[tuple[Clock, Sequence[Story]]] = []

    def stories(self, clock: Clock) -> Sequence[Story]:
        """The stories beside what others saw of the clock."""
        found = next((stories for known, stories in self._told if known == clock), None)
        if found is None:
            found = stories_of(self._producer, clock, self._skew_ms)
            self._told.append((clock, found))
        return found


def stories_of(producer: Producer, clock: Clock, skew_ms: int) -> list[Story]:
    """The cheapest story, and all that come near it, in the order of their prices.

    `skew_ms`: how far clocks may lie apart before that alone is odd.
    """
    beside = [Pairs(marker, producer, clock) for marker in producer.markers]
    # A coordinator's log that is compacted tells of the last dozen transactions of an id, its partitions of thousands. Each of their
    # markers could begin a story of clocks that lie hours apart, and to follow them all was nine tenths of a live dump's audit.
    older = _far_older(producer, clock)
    if older:
        told = _found(producer, clock, skew_ms, beside, older)
        if _is_even(producer, told[0]) or (older > MANY and not _may_lie_far_apart(producer, older)):
            return told
    return _found(producer, clock, skew_ms, beside, 0)


def _far_older(producer: Producer, clock: Clock) -> int:
    """How many markers at the beginning of the log are older than all that the coordinator's still tells of, unless clocks lie farther
    apart than those of healthy clusters, or than others saw them."""
    if not producer.decided or producer.anchored or not producer.older_markers:
        return 0
    behind = min((seen.distance.least for seen in clock.seen), default=0.0)
    from_ms = producer.decided[0].decided_ms - FAR_MS + min(behind, 0.0)
    return next((at for at, marker in enumerate(producer.markers) if marker.at_ms >= from_ms), len(producer.markers))


def _is_even(producer: Producer, story: Story) -> bool:
    """Whether nothing is odd about a story that tells nearly all there is: no other one is as good."""
    pairs = story.pairs()
    return pairs >= TELLING and 2 * (pairs + 1) > len(producer.decided) and story.cost < LITTLE and not story.lost


def _may_lie_far_apart(producer: Producer, older: int) -> bool:
    """Whether some of the first so many markers, one after the other, follow as many transactions at one distance of clocks: more of them
    than chance brings together in a log whose transactions come so fast and so regularly."""
    markers, decided = producer.markers[:older], producer.decided
    if older * len(decided) > MOST_PAIRS:
        return True
    fitting = {
        (at, to): distance_of(marker, one)
        for to, one in enumerate(decided)
        for at, marker in enumerate(markers)
        if price_of(marker, one) == 0.0
    }
    runs, by_chance = fitting, 0.0
    for others in range(1, len(decided)):
        runs = {
            (at, to): narrowed(distance, here)
            for (at, to), distance in runs.items()
            if (here := fitting.get((at + others, to + others))) is not None and not gap(distance, here)
        }
        by_chance = by_chance or len(runs) / max(len(fitting), 1)
        if others > 1 and runs and len(fitting) * by_chance**others < HALF_A_RUN:
            return True
    return False


def _found(producer: Producer, clock: Clock, skew_ms: int, beside: Sequence[Pairs], older: int) -> list[Story]:
    """The stories in which the first so many markers are `older` than what the coordinator's log tells of."""

    def begun(story: Story, marker: Marker) -> Story:
        return passed_over(story, marker, producer, clock, skew_ms)

    first = reduce(begun, producer.markers[:older], Story(0.0, 0.0, 0))
    for cap in (*CAPS, None):
        alive = [first]
        for number, pairs in enumerate(beside[older:], start=older):
            # Where clocks lie far apart all starts cost the same: which one is right, only the next markers tell.
            most = None if number < TELLING else MOST_STORIES
            by_hand = number > 0 and is_by_hand(producer.markers[number - 1])
            limit = Limit(cap)
            told = [
                limit.seen(after) for story in alive for after in continued(story, pairs, producer, clock, skew_ms, limit, by_hand=by_hand)
            ]
            alive = cheapest(told, cap, most)
        found = sorted((ended(story, producer, clock) for story in alive), key=lambda story: (story.cost, -story.following))
        if cap is None or (found and found[0].cost + _margin(producer, found[0]) <= cap):
            return found
    return []


def _margin(producer: Producer, story: Story) -> float:
    """How much dearer a story may be that matters: where no end is anchored, one that tells far more. Of many pairs none can, and a shift
    of all of them would be a step of the clock at each."""
    pairs = 0 if producer.anchored else story.pairs()
    told = pairs >= MANY and 2 * pairs >= min(len(producer.markers), len(producer.decided))
    if producer.anchored and story.lost and story.pairs() == 1:
        return STEP  # one pair says nothing of how the clock went on
    return MARGIN if producer.anchored or told else FOR_LITTLE
