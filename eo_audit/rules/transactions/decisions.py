"""Two decisions on one transaction, where its markers alone do not show them (T06).

Without the coordinator log (KIP-890): under transaction.version 2 every transaction has a marker epoch of its own, so markers of one
producer id and epoch belong to one transaction, in whatever partition. A COMMIT one epoch above its data proves that version; an ABORT of
the same producer and epoch elsewhere contradicts it.

With it: an ABORT that an operator wrote, and the coordinator decided COMMIT. The tool writes to the partition's leader and the coordinator
does not learn of it, so a transaction that is still alive goes on and is committed everywhere else.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARKER_COLUMNS = "row_kind marker_type base_offset"
PARTITION_COLUMNS = "marker_offset marker_type marker_match marker_coordinator_epoch data_first_offset data_last_offset"

_RAISED = "producer_epoch - previous_epoch"
# Across partitions, and so without the replica log: KIP-890 gives each transaction an epoch that no other has.
_TRANSACTION = "PARTITION BY cluster, producer_id, producer_epoch"


def contradictions(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Transactions that ended in two ways, as no single row shows it.

    Args:
        histories: history tables by name; producer_history, visibility, instance_partitions and transaction_instances are read.

    Returns:
        Hits of T06 with the producer id as key: the markers of both kinds, where no coordinator log says which is right, and the
        partitions where an operator aborted what the coordinator committed.
    """
    return _in_data(histories).unionByName(_by_hand(histories))


def _in_data(histories: "Mapping[str, DataFrame]") -> "DataFrame":
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


def _by_hand(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    committed = histories["transaction_instances"].where("decision = 'COMMIT'").select("instance_id")
    aborted = histories["instance_partitions"].where("marker_match = 'manual' AND marker_type = 'ABORT'")
    found = aborted.join(committed, "instance_id", "left_semi").selectExpr("*", "'T06' AS rule")
    return hits(SOURCES["instance_partitions"], found, key="producer_id", weight="0", columns=PARTITION_COLUMNS.split())
