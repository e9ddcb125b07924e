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

    A span shows one, and so does a marker without data, or the coordinator's log where the producer's only data is plain: a client sets the
    flag by its configuration, and a producer with a transactional.id has no other data.

    Args:
        histories: history tables by name; producer_history, transaction_spans, transaction_instances and visibility are read.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    clusters = histories["visibility"].select("replica_log_id", "cluster")
    # Spans are a row a transaction: far fewer than batches.
    of_spans = histories["transaction_spans"].where("judged").select("replica_log_id", "producer_id")
    of_markers = histories["producer_history"].where("row_kind = 'marker' AND judged").select("replica_log_id", "producer_id")
    told = histories["transaction_instances"].select("cluster", "producer_id")
    transactional = of_spans.union(of_markers).join(clusters, "replica_log_id").select(*told.columns).union(told).distinct()
    plain = histories["producer_history"].where("row_kind = 'data' AND judged AND NOT is_transactional")
    mixed = plain.join(clusters, "replica_log_id").join(transactional, ["cluster", "producer_id"], "left_semi")
    return hits(
        SOURCES["producer_history"],
        mixed.selectExpr("*", "'P09' AS rule"),
        key="producer_id",
        weight="0",
        columns=COLUMNS.split(),
    )
