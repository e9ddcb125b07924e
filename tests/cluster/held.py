"""Which features the tests of today ask for, and the seeds that failed once."""

from dataclasses import replace
from pathlib import Path

from tests.cluster.properties import Case
from tests.cluster.shape import DUMPS, FEATURES, draw
from tests.support.yaml_text import read_yaml

# What still fails is left out here; the driver runs everything.
FAILING_FEATURES: frozenset[str] = frozenset()
FAILING_DUMPS: frozenset[str] = frozenset()
SURE_FEATURES = tuple(name for name in FEATURES if name not in FAILING_FEATURES)
SURE_DUMPS = tuple(name for name in DUMPS if name not in FAILING_DUMPS)
FIXED = ("dump", "transactions", "ids", "partitions", "brokers", "coordinators", "idempotent", "plain")


def held(*, healthy: bool, also_open: bool = False) -> list[Case]:
    """The cases of `held_seeds.yaml`.

    Args:
        healthy: those without a fault; else those with one.
        also_open: those that still fail as well.
    """
    rows = read_yaml(Path(__file__).parent / "held_seeds.yaml")
    cases = []
    for number, row in enumerate(rows):
        shape = replace(draw(row["seed"]), features=frozenset(row["features"]), **{name: row[name] for name in FIXED if name in row})
        if (row.get("fault") is None) == healthy and (also_open or not row.get("open")):
            cases.append(Case(shape, row.get("fault"), f"held{number}"))
    return cases
