"""Which marker and which instance are a pair, where an epoch tells it."""

import pytest
from pyspark.sql import SparkSession

from eo_audit.history.marker_match import match_markers
from tests.support.rows import frame, table

REACH = """cluster STRING, producer_id LONG, coordinator_log_id LONG, known_until_ms LONG, known_until_epoch INT, known_from_offset LONG,
    untold_epoch INT, known_from_ms LONG, stopped_with ARRAY<INT>, coordinator_noted_at STRUCT<section_id: LONG, byte_offset: LONG>,
    coordinator_broker INT, coordinator_dumped_at_ms LONG, coordinator_latest_ms LONG"""


@pytest.mark.parametrize("ids", [["payments", "shipping"], ["shipping", "payments"]])
def test_of_two_instances_with_one_epoch_the_same_is_meant_whichever_comes_first(spark: SparkSession, ids: list[str]) -> None:
    """Two ids that share a producer id, each with a partition of `__transaction_state`: their entries stand at the same offset."""
    marker = {"replica_log_id": 1, "row_kind": "marker", "base_offset": 8, "last_offset": 8, "producer_id": 7, "producer_epoch": 1}
    told = {"marker_type": "COMMIT", "max_timestamp_ms": 1_500, "in_open_transaction": True, "previous_epoch": 0, "judged": True}
    decided = {"protocol": "tv2", "data_epoch": 0, "marker_epoch": 1, "decision": "COMMIT", "start_ms": 1_000, "decided_at_ms": 1_490}
    one = decided | {"cluster": "c", "producer_id": 7, "completed_at_ms": 1_510, "partitions": [("orders", 0)]}
    matched = match_markers(
        table(spark, "producer_history", [marker | told]),
        table(spark, "transaction_spans", []),
        table(spark, "transaction_instances", [one | {"instance_id": name, "first_entry_offset": 4} for name in ids]),
        reach=frame(spark, REACH, []),
        coverage=table(spark, "coverage", []),
        replica_logs=table(spark, "replica_logs", [{"cluster": "c", "replica_log_id": 1, "topic": "orders", "partition": 0}]),
        clusters=table(spark, "clusters", [{"cluster": "c", "skew_ms": 2_000}]),
    )
    assert [row.found.instance_id for row in matched.where("kind = 2").collect()] == ["payments"]
