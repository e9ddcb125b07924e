"""One audit for tests that each change a real dump in some place, and ask what is said of that."""

import pytest
from pyspark.sql import SparkSession

import eo_audit
from eo_audit import pipeline
from eo_audit.report.results import Results
from tests.jobs.test_forged import forge
from tests.jobs.test_wrong_stable_offset import with_wrong_indexes


@pytest.fixture(scope="session")
def altered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All changed dumps, each a cluster of its own: planning an audit costs more than some clusters more in it."""
    root, out = tmp_path_factory.mktemp("altered"), tmp_path_factory.mktemp("out")
    pipeline.run(out, [*forge(root), *with_wrong_indexes(root)], pipeline.Options(), spark=lambda: spark)
    return eo_audit.open(out)
