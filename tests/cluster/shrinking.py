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


def shrink(results: Sequence[Result], checker: Checker) -> list[Result]:
    """For each failing result the smallest case that fails in the same way; each round of all of them is one audit.

    Args:
        results: failing ones, of different seeds or faults.
        checker: audits some cases.
    """
    best, going = list(results), set(range(len(results)))
    for _ in range(ROUNDS):
        tried = {n: [*smaller(best[n].case.shape)] for n in going}
        steps = [Case(shape, best[n].case.fault, f"{n}x{at}") for n in sorted(going) for at, shape in enumerate(tried[n])]
        failing = _by_number(checker(steps), results)
        together = [_all_at_once(best[n].case, found, f"{n}xall") for n, found in failing.items() if len(found) > 1]
        for n, found in _by_number(checker(together) if together else [], results).items():
            failing[n] += found
        best = [min(failing.get(n, [result]), key=_weight) for n, result in enumerate(best)]
        going &= failing.keys()
        if not going:
            break
    return best


def _by_number(checked: Sequence[Result], wanted: Sequence[Result]) -> dict[int, list[Result]]:
    """Results that still fail as the one did that they come from."""
    found: dict[int, list[Result]] = {}
    for result in checked:
        number = int(result.case.label.partition("x")[0])
        if kinds(result) & kinds(wanted[number]):
            found.setdefault(number, []).append(result)
    return found


def kinds(result: Result) -> set[str]:
    """What kind of wrong: the rules said, or missed."""
    return {" ".join(line.split()[: 2 if line.startswith(("unknown", "missed")) else 1]) for line in result.wrong}


def _weight(result: Result) -> tuple[int, int, int]:
    shape = result.case.shape
    return result.transactions, len(shape.features), shape.partitions + shape.brokers + shape.coordinators + shape.idempotent + shape.plain


def _all_at_once(case: Case, failing: Sequence[Result], label: str) -> Case:
    """What every single step may leave out, left out together."""
    shape = case.shape
    off = {f for r in failing for f in shape.features - r.case.shape.features}
    least = {name: min(getattr(r.case.shape, name) for r in failing) for name in COUNTS}
    stopped = any(r.case.shape.dump == shapes.STOPPED for r in failing)
    merged = replace(shape, features=shape.features - off, dump=shapes.STOPPED if stopped else shape.dump, **least)
    return Case(merged, case.fault, label)
