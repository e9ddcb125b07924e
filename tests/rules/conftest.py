"""All cases of all rules in one audit: each case is a cluster of its own."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from eo_audit.audit.collect import Collected, collect
from eo_audit.audit.findings import Finding, findings
from tests.rules.compact import Rows, Tables
from tests.support.rows import arrow, table
from tests.support.yaml_text import read_yaml

CASES = Path(__file__).parent / "cases"


@dataclass
class InMemory:
    """Tables of an audit, as a warehouse would give them."""

    spark: SparkSession
    rows: Mapping[str, list[Rows]]

    def read(self, name: str) -> DataFrame:
        """A table."""
        return table(self.spark, name, self.rows.get(name, []))

    def arrow(self, name: str) -> pa.Table:
        """A table in memory."""
        return arrow(name, self.rows.get(name, []))

    def is_empty(self, name: str) -> bool:
        """Whether a table has no rows."""
        return not self.rows.get(name)


@dataclass(frozen=True)
class Audited:
    """What an audit of all cases gave: its findings by cluster, and what it collected."""

    of_cluster: Mapping[str, list[Finding]]
    collected: Collected
    crashed: Mapping[str, str]


@cache
def case_files() -> tuple[tuple[str, Mapping[str, object]], ...]:
    """Every case file: its stem and its content, read once."""
    return tuple((path.stem, read_yaml(path)) for path in sorted(CASES.glob("*.yaml")))


def audit(tables: InMemory) -> Audited:
    """Collect, explain, and sort by cluster."""
    collected = collect(tables)
    told, crashed = findings(collected)
    of_cluster: dict[str, list[Finding]] = defaultdict(list)
    for finding in told:
        of_cluster[finding.cluster].append(finding)
    return Audited(of_cluster, collected, {**collected.crashed, **crashed})


def all_cases() -> Tables:
    """The rows of all cases."""
    tables = Tables()
    for stem, content in case_files():
        for case in content["cases"]:  # type: ignore[attr-defined]
            tables.add_case(f"{stem}: {case['name']}", case)
    return tables


@pytest.fixture(scope="session")
def histories(spark: SparkSession) -> InMemory:
    """The histories of all cases that are given as rows."""
    return InMemory(spark, all_cases().rows)


@pytest.fixture(scope="session")
def audited(histories: InMemory) -> Audited:
    """The audit of all of them."""
    return audit(histories)
