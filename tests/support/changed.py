"""One audit of all dumps in which tests changed something, and of the same as they are, each a cluster of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import eo_audit
from eo_audit import pipeline
from eo_audit.audit import step
from eo_audit.audit.collect import Collected, collect
from eo_audit.report.results import Results
from tests.cluster.audit import Said, told
from tests.support.reshaped import Kept


@dataclass(frozen=True)
class Changed:
    """What the audit says.

    Attributes:
        results: of all.
        said: of each cluster.
        kept: what each change of `test_invariances` kept, by cluster.
    """

    results: Results
    said: Mapping[str, Said]
    kept: Mapping[str, Kept]


def audit(spark: SparkSession, inputs: list[Path], kept: Mapping[str, Kept], out: Path) -> Changed:
    """Audit all at once; what its rules were told is asked once, for the results and for what is said of each cluster."""
    asked: list[Collected] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "collect", lambda warehouse: asked.append(collect(warehouse)) or asked[-1])
        pipeline.run(out, inputs, pipeline.Options(), spark=lambda: spark)
    return Changed(eo_audit.open(out), told(inputs, asked[0]), kept)
