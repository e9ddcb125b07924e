"""producer_edges: what is known of the first and last records of a producer."""

from pyspark.sql import SparkSession

from eo_audit.history.edges import producer_edges
from tests.support.rows import table


def test_no_key_is_not_a_key_without_a_hash(spark: SparkSession) -> None:
    """A key that is no text has a size and no hash; a record without a key has size -1."""
    batch = {"replica_log_id": 1, "section_id": 1, "row_kind": "data", "base_offset": 0, "last_offset": 2, "count": 3, "producer_id": 7}
    keys = [(-1, None), (8, None), (3, 55)]
    records = [
        {"replica_log_id": 1, "section_id": 1, "base_offset": 0, "offset": offset, "key_size": size, "key_hash": known, "value_hash": 9}
        for offset, (size, known) in enumerate(keys)
    ]
    logs = [{"replica_log_id": 1, "topic": "orders", "is_internal": False}]
    rows = table(spark, "producer_history", [{**batch, "producer_epoch": 0}])
    (edge,) = producer_edges(rows, table(spark, "records", records), table(spark, "replica_logs", logs)).collect()
    assert [(record.offset, record.key_hash, record.keyed) for record in edge.head] == [(0, None, False), (1, None, True), (2, 55, True)]
