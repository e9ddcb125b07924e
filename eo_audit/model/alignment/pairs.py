"""A marker beside each transaction that it may have ended: what is the same in every story, and is asked by hundreds of them."""

from collections.abc import Sequence
from functools import cached_property

from eo_audit.model.alignment.clocks import Decided, Distance, Leaders, Marker, as_seen, distance_of, gap, leaders_of, narrowed
from eo_audit.model.alignment.prices import (
    AGAINST_WITNESSES,
    BY_TIME_ALONE,
    FAR_MS,
    OUT_OF_ORDER,
    STEP,
    TOO_FAR,
    TOO_FAR_IN_PLACE,
    Clock,
    Step,
    price_of,
)
from eo_audit.model.alignment.producer import Producer


class Pair:
    """A marker and a transaction.

    Attributes:
        marker, one: the two.
        price: what it costs to believe that the marker ended the transaction; None where the epochs rule it out.
    """

    def __init__(self, marker: Marker, one: Decided, clock: Clock) -> None:
        """`clock`: what others saw."""
        self.marker, self.one, self._clock = marker, one, clock
        self.price = price_of(marker, one)
        self._jumps: dict[Distance, tuple[float, Distance]] = {}
        self._asked: dict[tuple[int, Distance], float] = {}

    @cached_property
    def here(self) -> Distance:
        """The distance of clocks that the pair allows."""
        return distance_of(self.marker, self.one)

    @cached_property
    def leaders(self) -> Leaders:
        """Whose clocks it compares."""
        return leaders_of(self.marker, self.one)

    def behind(self, before: Distance) -> tuple[float, Distance]:
        """How far the distance jumps from the one before, and what both allow where it does not."""
        found = self._jumps.get(before)
        if found is None:
            jump = gap(before, self.here)
            found = self._jumps[before] = jump, self.here if jump else narrowed(before, self.here)
        return found

    def price_of_step(self, step: Step, before: Distance) -> float:
        """What others say of a clock that was set just before the pair."""
        asked = self._asked.get((step.after, before))
        if asked is None:
            asked = self._asked[step.after, before] = self._clock.price(step, before, self.here, self.leaders)
        return asked

    @cached_property
    def out_of_order(self) -> float:
        """What it costs besides, where what others ended stands on the wrong side."""
        return OUT_OF_ORDER if self._clock.denies(self.marker, self.one) else 0.0

    @cached_property
    def seen(self) -> list[Distance]:
        """The distances that others saw next to it, under the same leaders."""
        return self._clock.around(self.marker, self.one)

    @cached_property
    def agreed(self) -> Distance | None:
        """The distance as narrow as others saw it; None where none of them saw it so."""
        return as_seen(self.here, self.seen)

    @cached_property
    def _is_out_of_bounds(self) -> bool:
        """Whether epochs alone tell of other clocks."""
        return any(gap(bound, self.here) for bound in self._clock.bounds_around(self.marker, self.one))

    def first_price(self, skew_ms: int, *, anchored: bool) -> float:
        """What it costs as the first pair of a story."""
        price = _first_price(self.here, self.seen, skew_ms, anchored=anchored)
        return max(price, AGAINST_WITNESSES if anchored else STEP) if self._is_out_of_bounds else price


def _first_price(here: Distance, seen: Sequence[Distance], skew_ms: int, *, anchored: bool) -> float:
    """The first pair of a story: beside what others saw, or, where nothing but time anchors it, beside clocks that agree."""
    if seen and not as_seen(here, seen):
        return AGAINST_WITNESSES if anchored else STEP
    # A marker that waited long bounds the distance so loosely that it agrees with nearly everything.
    if any(one.most - one.least <= skew_ms and not gap(one, here) for one in seen):
        return 0.0
    apart = max(here.least, -here.most, 0)
    if anchored:
        return (TOO_FAR_IN_PLACE if apart > skew_ms else 0.0) + (BY_TIME_ALONE if apart > FAR_MS else 0.0)
    return BY_TIME_ALONE * min(1.0, apart / skew_ms) + (TOO_FAR if apart > skew_ms else 0.0)


class Pairs(dict[int, Pair]):
    """One marker beside the transactions of its producer, by their number."""

    def __init__(self, marker: Marker, producer: Producer, clock: Clock) -> None:
        """Each is made when it is asked for."""
        super().__init__()
        self.marker = marker
        self._decided, self._clock = producer.decided, clock

    def __missing__(self, at: int) -> Pair:
        found = self[at] = Pair(self.marker, self._decided[at], self._clock)
        return found
