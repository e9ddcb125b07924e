"""How a story of the markers of one producer in one log goes on, and what each way costs: a marker is nobody's, repeats the one before it,
or ends one of the next transactions."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from eo_audit.model.alignment.clocks import (
    Decided,
    Distance,
    Marker,
    as_seen,
    of_two_clocks,
    shown_jump,
)
from eo_audit.model.alignment.limits import Limit
from eo_audit.model.alignment.pairs import Pair, Pairs
from eo_audit.model.alignment.prices import (
    AGAINST_WITNESSES,
    ALL_NEWER,
    APART,
    BY_HAND_TOO,
    CONTRADICTION,
    EMPTY,
    EXTRA,
    EXTRA_BY_TOOL,
    EXTRA_EMPTY,
    FAST_MS,
    FROM_BEFORE,
    FROM_BEFORE_BY_CLOCK,
    LATE,
    LATE_OR_NEWER,
    LOOSE,
    LOST_AND_NEWER,
    MISSING,
    MOST_APART,
    MOST_LOOSE,
    MOST_LOST_AND_NEWER,
    NOTHING,
    NOTHING_OF_MANY,
    ODD_EPOCH,
    RETRY,
    RETRY_OF_ONE,
    STANDS_IN,
    STEP,
    STEP_BACK,
    STEP_LIKE_A_PERIOD,
    STEP_OF_LEADERS,
    UNSEEN,
    Clock,
    Match,
    Step,
    foreign,
    is_after,
    is_before,
    looks_younger,
    may_be_newer,
    missing,
)
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.story import (
    Story,
    apart_at_ends,
    bounded,
    denied_up_to,
    evenly_told,
    given_back,
    goes_on,
    is_behind_hole,
    is_told_of,
    led_by_others,
    lost_and_newer,
    may_be_older,
    may_own,
    price_of_newer,
    stand_ins,
    step_of_leaders,
    within_log,
)

MOST_MISSING = 12  # transactions passed over at once, but for those that time passes over


def ended(story: Story, producer: Producer, clock: Clock) -> Story:
    """The transactions behind the last marker: they lack theirs, or the dump of the log ends before them."""
    last, rest = producer.markers[-1] if producer.markers else None, producer.decided[story.following :]
    left = len(rest)
    is_beyond = goes_on(story, producer, clock)
    lacking = [
        at
        for at, one in enumerate(rest, start=story.following)
        if not producer.newer_decided or not clock.is_younger(one) or (last is not None and is_after(last, one)) or is_beyond(one)
    ]
    # The marker that open data lacks would stand behind that data.
    owned = producer.open_from is not None and any(may_own(producer.decided[at], producer.open_epoch) for at in lacking)
    behind = producer.open_from if owned else story.last_offset
    in_hole = _in_last_hole(lacking, producer, owned=owned)
    lacking = [at for at in lacking if at not in in_hole]
    price, _ = bounded(story, producer, behind, missing(lost := len(lacking), producer, behind))
    price += missing(len(in_hole), producer, behind, after_hole=True)
    price += UNSEEN * min(left - lost - len(in_hole), 1)
    nothing = 0.0
    if story.last is None and producer.decided:
        # Strange, but no fault; not so strange where what is open behind all markers is the first transaction's that is still told.
        few = min(len(producer.markers), len(producer.decided)) < 2 or producer.has_open(producer.decided[0])
        # Nor where one log ended before the other begins, as both clocks say.
        ended = producer.older_markers and last is not None and last.at_ms < producer.decided[0].decided_ms
        nothing = NOTHING if few or ended else NOTHING_OF_MANY
    if story.strained and story.last is None:
        price += FROM_BEFORE if clock.is_heard else FROM_BEFORE_BY_CLOCK
    if last is not None and is_by_hand(last) and rest and not may_be_older(story, last, producer, clock):
        price += _by_hand_too(story, rest[0])
    if producer.open_from is not None and not any(may_own(one, producer.open_epoch) for one in rest):
        newer = producer.newer_markers and producer.open_from >= clock.told_up_to and not is_told_of(story, producer, clock)
        price += LATE_OR_NEWER if newer else LATE
    apart = min(APART * apart_at_ends(story, left), MOST_APART) + min(LOST_AND_NEWER * lost_and_newer(story), MOST_LOST_AND_NEWER)
    if not producer.anchored:
        apart += min(LOOSE * (min(len(producer.markers), len(producer.decided)) - story.pairs()), MOST_LOOSE)
        story = evenly_told(story)
    return story._replace(cost=story.cost + price + nothing + apart, faults=story.faults + price, lost=(*story.lost, *lacking))


def _in_last_hole(lacking: Sequence[int], producer: Producer, *, owned: bool) -> Sequence[int]:
    """Those of the transactions behind the last marker whose own may stand among the offsets that are missing behind it.

    Of data that is open behind these offsets the marker would stand behind it: the last one lacks it all the same.
    """
    if producer.hole_behind is None:
        return ()
    is_open_behind = owned and producer.open_from is not None and producer.open_from > producer.hole_behind
    return lacking[:-1] if is_open_behind else lacking


def is_by_hand(marker: Marker) -> bool:
    """Whether an operator may have ended a transaction with it."""
    return marker.by_tool and marker.closes


def _by_hand_too(story: Story, lost: Decided) -> float:
    """What it costs that an operator ended a transaction that the coordinator aborts besides, whose marker is in no dump."""
    passed_over = story.told is not None and story.told[1].decided is None
    return BY_HAND_TOO if passed_over and lost.decision == "ABORT" else 0.0


def continued(
    story: Story, pairs: Pairs, producer: Producer, clock: Clock, skew_ms: int, limit: Limit, *, by_hand: bool
) -> Iterable[Story]:
    """The story with one marker more: it is nobody's, repeats the one before it, or ends one of the next transactions. `by_hand`: the
    marker before it may be an operator's."""
    marker = pairs.marker
    yield passed_over(story, marker, producer, clock, skew_ms)
    if story.told is None and producer.older_decided and _begins_behind(marker, producer, clock, skew_ms):
        skipped = ALL_NEWER + UNSEEN
        yield passed_over(story._replace(cost=skipped, following=len(producer.decided)), marker, producer, clock, skew_ms)
    if story.told is not None and marker.after_hole and story.following < len(producer.decided):
        yield passed_over(_rest_in_hole(story, producer), marker, producer, clock, skew_ms)
    if marker.odd and story.following < len(producer.decided):
        yield _in_place_of_next(story, marker, producer)
    last, one = story.last, story.last_decided
    if last is not None and one is not None and not marker.closes and (marker.type, marker.epoch) == (last.type, one.epoch):
        yield from _matched(story, foreign(marker, one), pairs, producer, story.following - 1, clock, skew_ms, limit, again=True)
    within, least = within_log(story, marker, producer, clock), story.cost - given_back(story)
    for at in _next(story, marker, producer, limit.cap):
        pair = pairs[at]
        # Asked as soon as each part of the price is known: hundreds of stories ask, and most of what they could tell is too dear.
        if pair.price is None or least + pair.price + pair.out_of_order > limit.most:
            continue
        lacking, paid, cleaned = _left_out(story, marker, producer, at, within)
        price = pair.price + paid
        if least + price + pair.out_of_order > limit.most:
            continue
        if lacking:
            by_tool = _by_hand_too(story, producer.decided[lacking[0]]) if by_hand else 0.0
            price += by_tool + STANDS_IN * stand_ins(story, marker, lacking, producer)
        without = story._replace(lost=(*story.lost, *lacking), cleaned=story.cleaned + cleaned) if lacking or cleaned else story
        if marker.after_hole and story.told is not None and story.following < at:
            without = without._replace(in_hole=(*story.in_hole, *range(story.following, at)))
        yield from _matched(without, price, pairs, producer, at, clock, skew_ms, limit)


def _rest_in_hole(story: Story, producer: Producer) -> Story:
    """The story in which all transactions that are still told had their markers among offsets that are missing here."""
    rest, end = range(story.following, len(producer.decided)), len(producer.decided)
    price = missing(len(rest), producer, story.last_offset, after_hole=True)
    return story._replace(cost=story.cost + price, faults=story.faults + price, following=end, in_hole=(*story.in_hole, *rest))


def _left_out(story: Story, marker: Marker, producer: Producer, at: int, within: list[int] | None) -> tuple[list[int], float, float]:
    """The transactions that lack their marker before one that has it, what that costs, and how much of it for what the cleaner took."""
    lost = range(story.following, at)
    if within is not None:
        lacking = within[: bisect_left(within, at)]
        paid, behind, ends = missing(len(lacking), producer, None), None, UNSEEN * min(at - len(lacking), 1)
    elif story.last is None and story.told is not None:
        # Where markers were passed over, none is missing: each transaction that is passed over as well counts for itself.
        return ([] if marker.after_hole else list(lost)), MISSING * at, 0.0
    else:
        lacking, behind, ends = [] if marker.after_hole else list(lost), story.last_offset, 0.0
        # A leader that comes later cuts the log where its own began (KIP-101).
        alone = story.last is not None and story.last.leader_epoch == marker.leader_epoch
        paid = missing(len(lost), producer, behind, after_hole=marker.after_hole, alone=alone)
    paid, cleaned = bounded(story, producer, behind, paid)
    return lacking, ends + paid, cleaned


def _begins_behind(marker: Marker, producer: Producer, clock: Clock, skew_ms: int) -> bool:
    """Whether a log that has lost its head may begin where a coordinator's log ends, that has lost its end."""
    decided = producer.decided
    may_be = bool(decided) and producer.newer_markers and may_be_newer(marker, producer, clock) and clock.may_be_older(decided[-1])
    return may_be and looks_younger(marker, decided[-1], clock, skew_ms) and not is_before(marker, decided[-1])


def _next(story: Story, marker: Marker, producer: Producer, cap: float | None) -> Iterable[int]:
    """The transactions that a marker may end: the next ones, and those that time points at behind a long hole. Where a hole is all that
    stands before it, no time points anywhere, and it may hold any number of markers."""
    decided = producer.decided
    if (story.told is None and producer.older_decided) or (story.distance is None and marker.after_hole):
        yield from range(story.following, len(decided))
        return
    one_lost = missing(1, producer, story.last_offset, after_hole=marker.after_hole)
    most = MOST_MISSING if cap is None or story.cost + one_lost <= cap else 1
    near = range(story.following, min(story.following + most, len(decided)))
    yield from near
    if most == 1:
        return
    if near.stop < len(decided) and story.distance is not None:
        made = marker.at_ms - story.distance.most
        pointed = bisect_left(decided, made, lo=near.stop, key=lambda one: one.decided_ms)
        yield from range(max(near.stop, pointed - 1), min(pointed + 2, len(decided)))


def passed_over(story: Story, marker: Marker, producer: Producer, clock: Clock, skew_ms: int) -> Story:
    """The story in which a marker is nobody's: of a time that the coordinator's log does not tell of, or one that no coordinator sent."""
    price = EXTRA_BY_TOOL if marker.by_tool and marker.closes else EXTRA if marker.closes else EXTRA_EMPTY
    strained, by_leaders = story.strained, 0.0
    decided = producer.decided
    if may_be_older(story, marker, producer, clock):
        price = UNSEEN if story.told is None else 0.0
        first = bool(decided) and not is_behind_hole(story, producer)
        strained = strained or (first and looks_younger(marker, decided[0], clock, skew_ms))
    elif _is_newer(story, marker, producer, clock):
        price, by_leaders = price_of_newer(story, marker, producer)
    told = (story, Match(None, again=False, doubtful=False))
    paid, faults = story.cost + price + by_leaders, story.faults + price
    return story._replace(cost=paid, faults=faults, by_leaders=story.by_leaders + by_leaders, told=told, strained=strained)


def _is_newer(story: Story, marker: Marker, producer: Producer, clock: Clock) -> bool:
    """Whether a marker may be younger than the coordinator's log."""
    is_last = story.following >= len(producer.decided) and not (producer.decided and is_before(marker, producer.decided[-1]))
    return is_last and producer.newer_markers and may_be_newer(marker, producer, clock)


def _in_place_of_next(story: Story, marker: Marker, producer: Producer) -> Story:
    """The next transaction lacks its marker, and this one stands there."""
    price = ODD_EPOCH + (0.0 if marker.type == producer.decided[story.following].decision else CONTRADICTION)
    told = (story, Match(None, again=False, doubtful=False))
    return story._replace(cost=story.cost + price, faults=story.faults + price, following=story.following + 1, told=told)


def _matched(
    story: Story,
    price: float,
    pairs: Pairs,
    producer: Producer,
    at: int,
    clock: Clock,
    skew_ms: int,
    limit: Limit,
    *,
    again: bool = False,
) -> Iterable[Story]:
    """The story in which a marker ends a transaction, or is sent `again` before its end is written (`TransactionMarkerChannelManager`).

    What that says of the clocks has its price, too. Two stories, where the leader is another.
    """
    pair = pairs[at]
    marker, one, here, before = pair.marker, pair.one, pair.here, story.distance
    told = (story, Match(at, again=again, doubtful=False))
    price += 0.0 if again else pair.out_of_order
    same_leader = story.last is not None and story.last.coordinator_epoch == marker.coordinator_epoch
    wrote = marker.closes or marker.offset < producer.cleaned_below  # the cleaner takes the data before the marker
    sent = (RETRY_OF_ONE if same_leader else RETRY) if again else 0.0 if wrote else EMPTY
    known = story.cost + price + sent
    if known - given_back(story) > limit.most:
        return

    def told_with(cost: float, distance: Distance, *steps: Step, by_leaders: float = 0.0, by_time: float = story.by_time) -> Story:
        kept = story.strained, by_time, story.by_leaders + by_leaders, story.lost, story.cleaned, story.in_hole
        return Story(known + cost, story.faults + price, at + 1, distance, marker, one, told, (*story.steps, *steps), *kept)

    if before is None or story.last is None:
        first = pair.first_price(skew_ms, anchored=producer.anchored)
        yield told_with(first, pair.agreed or here, by_time=first)
        return
    if again and marker.leader_epoch != story.last.leader_epoch:
        # Sent again because the first answer was lost with a leader: what the new one's clock says of that tells nothing.
        yield told_with(0.0, before)._replace(last=story.last)
        return
    if again and of_two_clocks(one):
        yield told_with(0.0, before)
        return
    jump, both = pair.behind(before)
    if not jump:
        yield told_with(0.0, both)
    if led_by_others(story, marker, one):
        seen, agreed = pair.seen, pair.agreed
        step = step_of_leaders(story, marker, one, here)
        change = 0.0 if step is not None and any(step.may_be(other) for other in clock.led_apart) else STEP_OF_LEADERS
        paid = change + (AGAINST_WITNESSES if seen and not agreed else 0.0)
        yield told_with(paid, agreed or here, *(() if step is None else (step,)), by_leaders=change)
    elif jump:
        between = denied_up_to(story, marker, here), marker.offset
        step = Step(*between, here.least - before.most, here.most - before.least, over_hole=marker.after_hole)
        cost = _price_of_step(story, step, pair, producer, at, clock)
        # What lies above that the next pair may give back (`given_back`).
        if known + min(cost, STEP + STEP_BACK) <= limit.most:
            yield told_with(cost, here, step._replace(paid=cost))


def _price_of_step(story: Story, step: Step, pair: Pair, producer: Producer, at: int, clock: Clock) -> float:
    """What it costs that one leader's clock was set between the last pair and this one."""
    one, last, before = pair.one, story.last, story.last_decided
    if last is None or before is None or story.distance is None:
        return 0.0
    named = producer.lone_epochs
    if one.epoch in named or before.epoch in named or shown_jump(last, pair.marker, before, one, pair.behind(story.distance)[0]):
        return 0.0
    if not story.steps and _against(clock, last, before, story.distance) and pair.agreed:
        return max(0.0, STEP - story.by_time)  # the first pair has paid for it: others tell of the clock as it stands behind the step
    leaders, undone = pair.leaders, story.steps[-1] if story.steps else None
    if undone is not None and undone.is_undone_by(step) and not clock.sees_between(undone.after, step.up_to, leaders):
        return STEP + STEP_BACK - undone.paid  # who saw the clock go on evenly saw it before and behind both
    asked = pair.price_of_step(step, story.distance)
    fast = at > 0 and one.decided_ms - producer.decided[at - 1].decided_ms < FAST_MS
    return STEP_LIKE_A_PERIOD if fast and asked == STEP else asked


def _against(clock: Clock, marker: Marker, one: Decided, distance: Distance) -> bool:
    seen = clock.around(marker, one)
    return bool(seen) and as_seen(distance, seen) is None
