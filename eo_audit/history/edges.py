"""producer_edges: the first and the last records of one producer id and epoch in one replica log, as hashes.

A resend under another identity repeats what one producer wrote last at the beginning of what another writes; so payloads are compared at
these edges only. A producer that starts an epoch with each transaction (transaction.version 2) has thousands of edges: those of its first
and last epochs stand for them. Batches without producer id show no edges at all; of them more records are kept.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.store.schemas import schema

EDGE_RECORDS = 64
EDGE_RECORDS_OF_NOBODY = 512
EDGE_EPOCHS = 16
_KEYS = ["replica_log_id", "producer_id", "producer_epoch"]
_BLOCK_BITS = 20
_LIMIT = f"IF(producer_id < 0, {EDGE_RECORDS_OF_NOBODY}, {EDGE_RECORDS})"
_TOTALS = {
    "first_offset": "min(base_offset)",
    "last_offset": "max(last_offset)",
    "records": "sum(CAST(count AS BIGINT))",
    "first": "min_by(struct(base_sequence, section_id, byte_offset, length), base_offset)",
    "last_timestamp_ms": "max_by(max_timestamp_ms, base_offset)",
    "is_transactional": "coalesce(bool_or(is_transactional), false)",
}
# A key may be there and have no hash: it is no text, or was not printed. Such a record equals no other.
_RECORD = "struct(offset, key_hash, value_hash, timestamp_ms, returned, coalesce(key_size >= 0, false) AS keyed)"
_COLUMNS = {
    "first_base_sequence": "first.base_sequence",
    "first_timestamp_ms": "get(head, 0).timestamp_ms",
    "last_timestamp_ms": "coalesce(try_element_at(tail, -1).timestamp_ms, last_timestamp_ms)",
    "head": "coalesce(head, array())",
    "tail": "coalesce(tail, array())",
    **{name: f"first.{name}" for name in ("section_id", "byte_offset", "length")},
}


def producer_edges(rows: DataFrame, records: DataFrame, replica_logs: DataFrame, *, chunked: bool = False) -> DataFrame:
    """The table producer_edges: one row per producer id and epoch, of topics that clients write.

    Args:
        rows: the table producer_history; it is read three times.
        records: the records table.
        replica_logs: the replica_logs table.
        chunked: look for the edges in blocks of offsets first, so that a huge producer is many tasks. The rows are the same.
    """
    clients = replica_logs.where("NOT is_internal").select("replica_log_id")
    data = rows.where("row_kind IN ('data', 'plain') AND count > 0").join(F.broadcast(clients), "replica_log_id", "left_semi")
    kept = _first_and_last_epochs(data)
    batches = data.join(F.broadcast(kept.select(*_KEYS)), _KEYS, "left_semi").selectExpr(
        *_KEYS, "section_id", "base_offset", "returned", f"shiftright(base_offset, {_BLOCK_BITS}) AS block"
    )
    if chunked:
        # What is at an edge of the whole is at an edge of its block.
        batches = _at_the_edges(batches, [*_KEYS, "block"])
    edges = _edges(_at_the_edges(batches, _KEYS), records)
    columns = [f"{_COLUMNS.get(name, name)} AS {name}" for name in schema("producer_edges").columns]
    return kept.join(edges, _KEYS, "left").selectExpr(*columns)


def _at_the_edges(batches: DataFrame, keys: list[str]) -> DataFrame:
    """Batches that hold the first or the last records of their group (each holds at least one), marked as such."""
    group = Window.partitionBy(*keys)
    from_start = F.row_number().over(group.orderBy("base_offset"))
    from_end = F.row_number().over(group.orderBy(F.desc("base_offset")))
    numbered = batches.withColumns({"at_start": from_start <= F.expr(_LIMIT), "at_end": from_end <= F.expr(_LIMIT)})
    return numbered.where("at_start OR at_end")


def _edges(batches: DataFrame, records: DataFrame) -> DataFrame:
    """The first and the last records of the batches, as two arrays."""
    read = batches.join(records.drop("replica_log_id", "byte_offset", "length"), ["section_id", "base_offset"])
    collected = read.groupBy(*_KEYS).agg(
        # By offset, which is the first field; the batches come in no order.
        F.expr(f"sort_array(collect_list(IF(at_start, {_RECORD}, NULL))) AS head"),
        F.expr(f"sort_array(collect_list(IF(at_end, {_RECORD}, NULL))) AS tail"),
    )
    return collected.selectExpr(
        *_KEYS, f"slice(head, 1, {_LIMIT}) AS head", f"slice(tail, greatest(1, size(tail) - {_LIMIT} + 1), {_LIMIT}) AS tail"
    )


def _first_and_last_epochs(data: DataFrame) -> DataFrame:
    """Totals of each producer id and epoch, for the first and the last epochs of each producer id."""
    totals = data.groupBy(*_KEYS).agg(*[F.expr(f"{sql} AS {name}") for name, sql in _TOTALS.items()])
    producer = Window.partitionBy("replica_log_id", "producer_id")
    from_start = F.row_number().over(producer.orderBy("first_offset", "producer_epoch"))
    from_end = F.row_number().over(producer.orderBy(F.desc("first_offset"), F.desc("producer_epoch")))
    numbered = totals.withColumn("nearest", F.least(from_start, from_end))
    return numbered.where(F.col("nearest") <= EDGE_EPOCHS)
