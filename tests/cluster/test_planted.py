"""One planted fault is found where it is, and nothing else is said to have failed."""

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from tests.cluster.faults import FAULTS
from tests.cluster.held import SURE_DUMPS, SURE_FEATURES, held
from tests.cluster.properties import Case, check
from tests.cluster.shape import draw

SEEDS = range(1_000, 1_190)


def test_the_fault_is_found_and_nothing_beside_it(spark: SparkSession, tmp_path: Path) -> None:
    names = list(FAULTS)
    cases = [Case(draw(seed, features=SURE_FEATURES, dumps=SURE_DUMPS), names[seed % len(names)]) for seed in SEEDS]
    results = check(spark, [*cases, *held(healthy=False)], tmp_path)
    asked = Counter(result.case.fault for result in results if result.truth and result.truth.demands)
    assert set(FAULTS) - set(asked) <= {"late_write_merged"}, "not planted where they can be decided"
    assert {result.case.name: result.wrong for result in results if result.wrong} == {}
