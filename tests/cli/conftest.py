"""What the tests of answers of live brokers and texts of console consumers look at."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from eo_audit.report.results import Results
from tests.support.canaries import CANARY_TOPIC, WholeRun

CLUSTER = "hanging_txn_k39"


@pytest.fixture(scope="session")
def beside(whole_run: WholeRun) -> Path:
    """Results of the example with both beside the dumps, and with logs of a topic more: no rule judges by either."""
    return whole_run.out


@pytest.fixture(scope="session")
def judged_alike(beside: Path, hanging_example: Path) -> Mapping[str, tuple[object, object]]:
    """What the audit says of the example's own logs with them and without: findings, LSO and the like, transactions, exit code."""

    def said(out: Path) -> dict[str, object]:
        results = Results(out)
        tables = {
            "findings": results.findings,
            "partitions": results.verdict["partitions"],
            "transactions": results.verdict["transactions"],
        }
        mine = {name: [row for row in rows if row["cluster"] == CLUSTER] for name, rows in tables.items()}  # type: ignore[attr-defined]
        own = {name: [row for row in rows if row.get("topic") != CANARY_TOPIC] for name, rows in mine.items()}
        return {**own, "exit_code": results.verdict["exit_code"]}

    with_them, without = said(beside), said(hanging_example)
    assert all(without.values())
    return {name: (with_them[name], without[name]) for name in without}
