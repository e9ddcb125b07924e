"""The smallest cluster that still fails: fewer of everything, features off, clocks in step; all steps of one round in one audit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tests.cluster import shape as shapes
from tests.cluster.properties import Case, Result
from tests.cluster.shape import Shape

Checker = Callable[[Sequence[Case]], list[Result]]
ROUNDS = 8
COUNTS = ("transactions", "ids", "partitions", "brokers", "coordinators", "idempotent", "plain")
LEAST = {"transactions": 1, "ids": 1, "partitions": 1, "brokers": 1, "coordinators": 1, "idempotent": 0, "plain": 0}


def smaller(shape: Shape) -> Iterator[Shape]:
    """Shapes with a little less."""
    for feature in sorted(shape.features):
        yield replace(shape, features=shape.features - {feature})
    for name in COUNTS:
        now, least = getattr(shape, name), LEAST[name]
        for fewer in sorted({least, now // 2, now - 1}):
            if least <= fewer < now:
                yield replace(shape, **{name: fewer})
    if shape.dump != shapes.STOPPED:
        yield replace(shape, dump=shapes.STOPPED)


def shrink(result: Result, checker: Checker) -> Result:
    """Round by round: of all smaller cases that fail in the same way, the one with the fewest transactions and features.

    Args:
        result: a failing one.
        checker: audits some cases.
    """
    best, wanted = result, kinds(result)
    for _ in range(ROUNDS):
        shapes_ = list(smaller(best.case.shape))
        failing = [r for r in checker([Case(shape, best.case.fault, str(n)) for n, shape in enumerate(shapes_)]) if kinds(r) & wanted]
        if not failing:
            return best
        merged = _all_at_once(best.case, failing)
        if merged is not None and len(failing) > 1:
            again = [r for r in checker([merged]) if kinds(r) & wanted]
            failing += again
        best = min(failing, key=_weight)
    return best


def kinds(result: Result) -> set[str]:
    """What kind of wrong: the rules said, or missed."""
    return {" ".join(line.split()[: 2 if line.startswith(("unknown", "missed")) else 1]) for line in result.wrong}


def _weight(result: Result) -> tuple[int, int, int]:
    shape = result.case.shape
    return result.transactions, len(shape.features), shape.partitions + shape.brokers + shape.coordinators + shape.idempotent + shape.plain


def _all_at_once(case: Case, failing: Sequence[Result]) -> Case | None:
    """What every single step may leave out, left out together."""
    shape = case.shape
    off = {f for r in failing for f in shape.features - r.case.shape.features}
    least = {name: min(getattr(r.case.shape, name) for r in failing) for name in COUNTS}
    stopped = any(r.case.shape.dump == shapes.STOPPED for r in failing)
    merged = replace(shape, features=shape.features - off, dump=shapes.STOPPED if stopped else shape.dump, **least)
    return Case(merged, case.fault, "all")
