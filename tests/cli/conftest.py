"""One audit for the tests of what brokers and consoles said beside the dumps."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eo_audit import pipeline

EXAMPLE = Path(__file__).parents[2] / "examples" / "hanging-transaction" / "dumps"


@pytest.fixture(scope="session")
def beside(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with answers of live brokers and texts of console consumers beside the dumps: no rule judges by either."""
    from tests.cli import test_answers, test_console

    out = tmp_path_factory.mktemp("beside")
    dumps = Path(shutil.copytree(EXAMPLE, out / "given" / "dumps"))
    pipeline.run(out, [test_console.written(test_answers.answers(dumps))], pipeline.Options(), spark=lambda: spark)
    return out
