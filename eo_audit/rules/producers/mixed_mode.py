"""Batches outside transactions of producers that also write transactions (P09), in whatever partition.

A producer id is given out once in a cluster (`ProducerIdManager`), so the two kinds need not stand in one partition.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = "producer_id base_offset last_offset"


def outside(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Hits of P09: plain batches of producer ids that have a transaction anywhere in their cluster.

    Args:
        histories: history tables by name; producer_history, transaction_spans and visibility are read.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    clusters = histories["visibility"].select("replica_log_id", "cluster")
    # Spans are a row a transaction: far fewer than batches.
    of_spans = histories["transaction_spans"].where("judged").select("replica_log_id", "producer_id")
    transactional = of_spans.join(clusters, "replica_log_id").select("cluster", "producer_id").distinct()
    plain = histories["producer_history"].where("row_kind = 'data' AND judged AND NOT is_transactional")
    mixed = plain.join(clusters, "replica_log_id").join(transactional, ["cluster", "producer_id"], "left_semi")
    return hits(
        SOURCES["producer_history"],
        mixed.selectExpr("*", "'P09' AS rule"),
        key="producer_id",
        weight="0",
        columns=COLUMNS.split(),
    )
