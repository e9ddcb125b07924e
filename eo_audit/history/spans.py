"""transaction_spans: from the first transactional batch of a producer id to the marker that closes it, in one replica log."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def transaction_spans(rows: DataFrame) -> DataFrame:
    """The table transaction_spans: one row per span.

    Args:
        rows: what `sequences.producer_rows` returns (the table producer_history will do).
    """
    return run("transaction_spans", rows=rows)
