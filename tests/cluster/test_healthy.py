"""A healthy cluster is not accused, however its clocks go and however it is dumped."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.cluster.held import SURE_DUMPS, SURE_FEATURES, held
from tests.cluster.properties import Case, check
from tests.cluster.shape import draw

SEEDS = range(150)  # more of them: python -m tests.cluster --seeds 0:10000


def test_no_finding_above_info_and_nothing_unknown_in_complete_dumps(spark: SparkSession, tmp_path: Path) -> None:
    cases = [Case(draw(seed, features=SURE_FEATURES, dumps=SURE_DUMPS)) for seed in SEEDS]
    results = check(spark, [*cases, *held(healthy=True)], tmp_path)
    assert len(results) >= len(SEEDS)
    assert {result.case.name: result.wrong for result in results if result.wrong} == {}
    assert sum(result.open for result in results[: len(SEEDS)]) <= 1  # where a clock moved: 2 of 3,000 clusters
