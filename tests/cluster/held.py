"""Which features the tests of today ask for, and the seeds that failed once."""

from dataclasses import replace
from pathlib import Path

import yaml

from tests.cluster.properties import Case
from tests.cluster.shape import DUMPS, FEATURES, STOPPED, draw

# What still fails is left out here; the driver runs everything.
FAILING_FEATURES: frozenset[str] = frozenset(FEATURES) - {"aborts", "payloads", "empty_partitions"}
FAILING_DUMPS: frozenset[str] = frozenset(DUMPS) - {STOPPED}
SURE_FEATURES = tuple(name for name in FEATURES if name not in FAILING_FEATURES)
SURE_DUMPS = tuple(name for name in DUMPS if name not in FAILING_DUMPS)


def held(*, healthy: bool) -> list[Case]:
    """The cases of `held_seeds.yaml`, with or without a fault."""
    rows = yaml.safe_load((Path(__file__).parent / "held_seeds.yaml").read_text(encoding="utf-8"))
    cases = []
    for row in rows:
        shape = draw(row["seed"])
        if "features" in row:
            shape = replace(shape, features=frozenset(row["features"]))
        shape = replace(shape, **{name: row[name] for name in ("dump", "transactions", "ids", "partitions") if name in row})
        if (row.get("fault") is None) == healthy:
            cases.append(Case(shape, row.get("fault")))
    return cases
