"""transaction_spans: from the first transactional batch of a producer id to the marker that closes it, in one replica log.

Whose data a span holds is another question: late data of an earlier transaction and genuine data can share one (KIP-890).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.store.schemas import schema

_IS_DATA = "row_kind = 'data'"
_ADDRESS = "section_id, byte_offset, length"
_FIRST = f"struct(base_offset, base_sequence, producer_epoch, max_timestamp_ms, {_ADDRESS})"
_MARKER = f"struct(base_offset, marker_type, producer_epoch, marker_coordinator_epoch, max_timestamp_ms, {_ADDRESS})"
_SUMS = {
    "data": f"min_by(IF({_IS_DATA}, {_FIRST}, NULL), IF({_IS_DATA}, base_offset, NULL))",
    "last": f"max_by(struct(producer_epoch, max_timestamp_ms), IF({_IS_DATA}, base_offset, NULL))",
    "last_offset": f"max(IF({_IS_DATA}, last_offset, NULL))",
    "batches": f"CAST(count_if({_IS_DATA}) AS INT)",
    "records": f"coalesce(sum(IF({_IS_DATA}, count, NULL)), 0L)",
    # One at most: whatever its epoch, the next marker of the producer id closes what is open (`ProducerStateManager.completeTxn`).
    "marker": f"max(IF({_IS_DATA}, NULL, {_MARKER}))",
    "outcome": "max(span_outcome)",
    # One batch behind the first break is enough: the span may end otherwise than it seems.
    "judged": "bool_and(judged)",
    # Behind a hole the first batches, or a marker between, may be unseen.
    "complete_past": "bool_and(predecessor IN ('observed', 'not_observed'))",
    "hole_at": "max(IF(predecessor = 'hole' AND base_offset > span_id, base_offset, NULL))",
}
_RENAMED = {
    "first_offset": "data.base_offset",
    "first_sequence": "data.base_sequence",
    "first_epoch": "data.producer_epoch",
    "last_epoch": "last.producer_epoch",
    "first_timestamp_ms": "data.max_timestamp_ms",
    "last_timestamp_ms": "last.max_timestamp_ms",
    "marker_offset": "marker.base_offset",
    "marker_type": "marker.marker_type",
    "marker_epoch": "marker.producer_epoch",
    "marker_coordinator_epoch": "marker.marker_coordinator_epoch",
    "marker_timestamp_ms": "marker.max_timestamp_ms",
    **{f"{of}_{name}": f"{of}.{name}" for of in ("data", "marker") for name in _ADDRESS.split(", ")},
}


def transaction_spans(rows: DataFrame) -> DataFrame:
    """The table transaction_spans: one row per span.

    Args:
        rows: what `sequences.producer_rows` returns (the table producer_history will do).
    """
    sums = [F.expr(f"{sql} AS {name}") for name, sql in _SUMS.items()]
    spans = rows.where("span_id IS NOT NULL").groupBy("replica_log_id", "producer_id", "span_id").agg(*sums)
    return spans.selectExpr(*[f"{_RENAMED.get(name, name)} AS {name}" for name in schema("transaction_spans").columns])
