"""The benchmark of many batches makes the tables that histories read today, and what it plants is found, in chunks as well."""

import pytest
from pyspark.sql import SparkSession

from benchmarks import sequences
from eo_audit.history.log_order import in_log_order
from eo_audit.history.sequences import producer_rows
from tests.support.rows import table

pytestmark = pytest.mark.spark
BATCHES = 3000
FAULTS = sequences.Faults(gap_every=500, repeat_every=400)
# About 850 batches of the busiest log, so that it has several chunks, and the busy producer a front that they hand on.
CHUNK_BITS = 18


def test_what_is_planted_is_found(spark: SparkSession) -> None:
    batches, logs = sequences.batches_of(spark, BATCHES, FAULTS), sequences.replica_logs_of(spark, BATCHES)
    ordered = in_log_order(batches, logs, table(spark, "clusters", []), chunk_bits=CHUNK_BITS)
    labels = producer_rows(ordered, chunked=True).groupBy("label").count().toArrow().to_pylist()
    found = {row["label"]: row["count"] for row in labels}
    assert {label: found.get(label) for label in ("duplicate", "gap")} == sequences.planted(BATCHES, FAULTS) == {"duplicate": 4, "gap": 2}
    assert set(found) == {"duplicate", "gap", "in_sequence", "first_zero"}
