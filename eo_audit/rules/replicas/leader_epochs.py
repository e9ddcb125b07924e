"""Batches of an older leader behind those of a newer one (R05).

By leader epoch, not batch by batch: a log has few epochs, so what is compared is small however long the log is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = "base_offset last_offset partition_leader_epoch newer_epoch newer_offset"
# What a hit of producer_history is made of.
_ROW = (
    "base_offset last_offset count max_timestamp_ms section_id byte_offset length producer_id producer_epoch instance_id "
    "partition_leader_epoch"
)


def regressions(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Hits of R05: of each leader epoch the last batch, where a newer epoch begins before it.

    Args:
        histories: history tables by name; producer_history is read.
    """
    from pyspark.sql import functions as F

    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    # Magic 0 and 1 and old tools show no leader epoch, and -1 is none.
    known = histories["producer_history"].where("judged AND partition_leader_epoch >= 0")
    epochs = known.groupBy("replica_log_id", F.col("partition_leader_epoch").alias("epoch")).agg(
        F.min("base_offset").alias("begins"), F.max_by(F.struct(*_ROW.split()), "base_offset").alias("last")
    )
    newer = "PARTITION BY replica_log_id ORDER BY epoch DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    found = epochs.selectExpr("*", f"min(struct(begins, epoch)) OVER ({newer}) AS newer").where("newer.begins < last.base_offset")
    told = found.selectExpr("replica_log_id", "last.*", "newer.epoch AS newer_epoch", "newer.begins AS newer_offset", "'R05' AS rule")
    return hits(SOURCES["producer_history"], told, key="''", weight="0", columns=COLUMNS.split())
