"""producer_history up to the span: what each batch is to the batches of its producer before it.

The law is `eo_audit.model.producer_history`; here it is windows, one shuffle for all of them. In chunks, each starts from what the other
chunks hand on.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.log_order import chunk_of
from eo_audit.history.text import run

_KEYS = ["replica_log_id", "chunk", "actor", "producer_epoch"]


def producer_rows(ordered: DataFrame, *, chunked: bool = False) -> DataFrame:
    """The columns of producer_history up to span_outcome, one row for each batch.

    Args:
        ordered: what `in_log_order` returns.
        chunked: work in its chunks, and `ordered` was made with chunk_bits. The rows are the same.
    """
    rows, chunk = run("producer_events", ordered=ordered), chunk_of(chunked=chunked)
    if chunked:
        told = run("inherited_states", states=run("producer_states", rows=rows, chunk=chunk))
        rows = rows.drop("inherited").join(told, _KEYS, "left")
    states = run("producer_states", rows=rows, chunk=chunk)
    return run("producer_rows", states=states, reached_in=F.col("reached_in") if chunked else 0)
