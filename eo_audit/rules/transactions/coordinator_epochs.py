"""Markers of an older coordinator behind those of a newer one, of one producer in one log (T08)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = "producer_id base_offset marker_type marker_coordinator_epoch highest_before highest_at lowest_epoch highest_epoch"
# kafka-transactions.sh sends the coordinator epoch that the leader remembers, or 0 where it remembers none.
_BY_HAND = (
    "marker_role = 'manual' OR (marker_type = 'ABORT' AND marker_coordinator_epoch = 0 AND producer_epoch = previous_epoch "
    "AND NOT coalesce(marker_role IN ('closing', 'empty', 'duplicate'), false))"
)


def regressions(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Hits of T08, with the producer id as key.

    Args:
        histories: history tables by name; only the markers of producer_history are read.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    markers = histories["producer_history"].where("row_kind = 'marker' AND judged AND marker_coordinator_epoch IS NOT NULL")
    by_coordinator = markers.selectExpr("*", f"coalesce({_BY_HAND}, false) AS by_hand")
    before = "PARTITION BY replica_log_id, producer_id ORDER BY base_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    highest = f"max(IF(by_hand, NULL, struct(marker_coordinator_epoch, base_offset))) OVER ({before}) AS highest"
    found = by_coordinator.selectExpr("*", highest).where("NOT by_hand AND marker_coordinator_epoch < highest.marker_coordinator_epoch")
    own = "OVER (PARTITION BY replica_log_id, producer_id)"
    told = found.selectExpr(
        "*",
        "highest.marker_coordinator_epoch AS highest_before",
        "highest.base_offset AS highest_at",
        f"min(marker_coordinator_epoch) {own} AS lowest_epoch",
        f"max(marker_coordinator_epoch) {own} AS highest_epoch",
        "'T08' AS rule",
    )
    return hits(SOURCES["producer_history"], told, key="producer_id", weight="0", columns=COLUMNS.split())
