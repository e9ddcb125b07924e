"""How long an outage was: the coordinators' silence, and a new leader at its end."""

import pytest
from pyspark.sql import SparkSession

from eo_audit.audit.outages import CAUSE, Outage, outage
from eo_audit.rules.row import Row
from tests.rules.compact import Rows
from tests.rules.conftest import InMemory

TIMED_OUT = [Row({"abort_cause": CAUSE})]


def entry(offset: int, at_ms: int, *, leader_epoch: int = 0, log: int = 7, cluster: str = "prod") -> Rows:
    return {
        "cluster": cluster,
        "replica_log_id": log,
        "entry_offset": offset,
        "batch_timestamp_ms": at_ms,
        "partition_leader_epoch": leader_epoch,
    }


def aborted(start_ms: int, decided_at_ms: int, *, timeout_ms: int = 10_000, cause: str = CAUSE, cluster: str = "prod") -> Rows:
    times = {"start_ms": start_ms, "decided_at_ms": decided_at_ms, "timeout_ms": timeout_ms}
    return {"instance_id": f"of {start_ms}", "cluster": cluster, "abort_cause": cause, **times}


OUTAGE = [entry(0, 1_000), entry(1, 2_000), entry(2, 27_000, leader_epoch=1), entry(3, 28_000, leader_epoch=1)]


@pytest.mark.parametrize(
    ("entries", "aborts", "expected"),
    [
        pytest.param(OUTAGE, [aborted(1_000, 27_000)], Outage(1, 25_000), id="the abort is the first that the new leader writes"),
        pytest.param(OUTAGE, [aborted(1_000, 40_000)], Outage(1, 25_000), id="the abort comes later"),
        pytest.param(OUTAGE, [aborted(2_500, 40_000)], None, id="the transaction began within the silence: so there was none"),
        pytest.param(OUTAGE, [aborted(1_000, 40_000, timeout_ms=30_000)], None, id="there was time left when it ended"),
        pytest.param(OUTAGE, [aborted(1_000, 40_000), aborted(1_500, 27_000)], Outage(2, 25_000), id="two that ran out of time"),
        pytest.param(OUTAGE, [aborted(27_500, 90_000)], None, id="the transaction began after it"),
        pytest.param(OUTAGE, [aborted(1_000, 27_000, cluster="other")], None, id="another cluster"),
        pytest.param(OUTAGE, [aborted(1_000, 27_000, cause="client_abort")], None, id="the client aborted"),
        pytest.param(
            [entry(0, 1_000), entry(1, 2_000), entry(2, 27_000), entry(3, 28_000)], [aborted(1_000, 27_000)], None, id="a quiet night"
        ),
        pytest.param(
            [*OUTAGE, entry(5, 20_000, log=8)],
            [aborted(1_000, 27_000, timeout_ms=22_000)],
            Outage(1, 7_000),
            id="another coordinator wrote meanwhile",
        ),
    ],
)
def test_outages(spark: SparkSession, entries: list[Rows], aborts: list[Rows], expected: Outage | None) -> None:
    tables = InMemory(spark, {"coordinator_history": entries, "transaction_instances": aborts})
    histories = {name: tables.read(name) for name in ("coordinator_history", "transaction_instances")}
    assert outage(histories, TIMED_OUT) == expected


def test_nothing_is_asked_without_an_abort_by_timeout() -> None:
    assert outage({}, [Row({"abort_cause": "client_abort"})]) is None
