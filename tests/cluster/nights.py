"""A cluster that was dumped before: by the script on running brokers, once or twice, with what was written, cleaned and deleted since."""

from dataclasses import replace

from tests.cluster import shape as shapes
from tests.cluster.brokers import World
from tests.cluster.clock import BEGIN_MS
from tests.cluster.dumping import Plan, copy_all, moments_of


def nights_before(world: World, plan: Plan) -> list[tuple[World, Plan]]:
    """The nights in which a cluster was dumped before, the first of them first: as `_night_before`."""
    nights: list[tuple[World, Plan]] = []
    for number in range(world.shape.stream("nights").choice((1, 1, 2))):
        before = _night_before(world, nights[0][1] if nights else plan, number)
        if before is None:
            break
        nights.insert(0, before)
    return nights


def _night_before(world: World, plan: Plan, number: int) -> tuple[World, Plan] | None:
    """The world as one that the script dumped while it ran, and how it did.

    Args:
        world: what happened.
        plan: how the cluster is dumped in the night after, which says when: of dumps without a time nobody knows which are newer.
        number: of the night, counted backwards.

    Returns:
        None where the clocks do not tell that it was before: they differ by more than lies between the two.
    """
    rng = world.shape.stream("night", number) if number else world.shape.stream("night")
    running = replace(world, shape=replace(world.shape, dump=shapes.SCRIPT))
    begins = BEGIN_MS + round((plan.begins - BEGIN_MS) * rng.uniform(0.2, 0.7))
    before = Plan(begins, dumped_at=world.clocks[1].read(begins) // 1000 * 1000, times=rng.random() < 0.6, later=plan)
    copy_all(before, running, moments_of(running, begins, rng))
    is_before = max(copy.moment for copy in before.copies) < min(copy.moment for copy in plan.copies)
    if plan.dumped_at is None or not is_before or max(_told(world, before)) + 1_000 > min(_told(world, plan)):
        return None
    return running, before


def _told(world: World, plan: Plan) -> list[int]:
    """All that is told of when a cluster was dumped."""
    noted = [world.clocks[copy.broker].read(copy.moment) for copy in plan.copies] if plan.times else []
    return [*noted, *([] if plan.dumped_at is None else [plan.dumped_at])]
