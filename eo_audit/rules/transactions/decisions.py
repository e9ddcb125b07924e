"""Two decisions on one transaction, seen without the coordinator log (KIP-890).

Under transaction.version 2 every transaction has a marker epoch of its own, so markers of one producer id and epoch belong to one
transaction, in whatever partition. A COMMIT one epoch above its data proves that version; an ABORT of the same producer and epoch
elsewhere contradicts it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARKER_COLUMNS = "row_kind marker_type base_offset"

_RAISED = "producer_epoch - previous_epoch"
# Across partitions, and so without the replica log: KIP-890 gives each transaction an epoch that no other has.
_TRANSACTION = "PARTITION BY cluster, producer_id, producer_epoch"


def contradictions(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Markers that contradict a marker of the same transaction, where no coordinator log says which is right.

    Args:
        histories: history tables by name; producer_history and visibility are read.

    Returns:
        Hits of T06 with the producer id as key: the markers of both kinds.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    unknown = f"row_kind = 'marker' AND judged AND in_open_transaction AND marker_role = 'unknown' AND {_RAISED} > 0"
    clusters = histories["visibility"].select("replica_log_id", "cluster")
    markers = histories["producer_history"].where(unknown).join(clusters, "replica_log_id")
    told = markers.selectExpr(
        "*",
        f"count_if(marker_type = 'COMMIT' AND {_RAISED} = 1) OVER ({_TRANSACTION}) AS commits",
        f"count_if(marker_type = 'ABORT') OVER ({_TRANSACTION}) AS aborts",
    ).where("commits > 0 AND aborts > 0")
    found = told.selectExpr("*", "'T06' AS rule")
    return hits(SOURCES["producer_history"], found, key="producer_id", weight="0", columns=MARKER_COLUMNS.split())
