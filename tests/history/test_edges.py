"""producer_edges: what is known of the first and last records of a producer."""

import pytest
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


@pytest.mark.parametrize("chunked", [False, True])
def test_each_of_two_batches_that_begin_at_one_offset_has_its_own_records(spark: SparkSession, chunked: bool) -> None:
    """As in a log out of order: two of one producer, and one of another between them."""
    at_one_offset = {"replica_log_id": 1, "section_id": 1, "row_kind": "data", "base_offset": 5, "last_offset": 6, "count": 2}
    wrote = [(7, 0, True), (8, 300, False), (7, 600, False)]  # producer, line, is judged
    lines = [(line, at_one_offset | {"producer_id": name, "producer_epoch": 0, "judged": judged}) for name, line, judged in wrote]
    records = [
        {
            "replica_log_id": 1,
            "section_id": 1,
            "base_offset": 5,
            "offset": 5 + n,
            "byte_offset": line + 100 * n + 50,
            "value_hash": line + n,
        }
        for line, _ in lines
        for n in range(2)
    ]
    records.append(records[-1] | {"section_id": 2, "value_hash": 99})  # of another dump of the segment
    rows = table(spark, "producer_history", [row | {"byte_offset": line, "length": 50} for line, row in lines])
    logs = table(spark, "replica_logs", [{"replica_log_id": 1, "topic": "orders", "is_internal": False}])
    edges = producer_edges(rows, table(spark, "records", records), logs, chunked=chunked).collect()
    wanted = {7: [(5, 0), (5, 600), (6, 1), (6, 601)], 8: [(5, 300), (6, 301)]}
    for end in ("head", "tail"):
        assert {edge.producer_id: [(record.offset, record.value_hash) for record in edge[end]] for edge in edges} == wanted
