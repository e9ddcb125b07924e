"""Batches of an older leader behind those of a newer one, and where leader-epoch-checkpoint says otherwise (R05).

By leader epoch, not batch by batch: a log has few epochs, so what is compared is small however long the log is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = "base_offset last_offset partition_leader_epoch newer_epoch newer_offset told_epoch told_offset"
# What a hit of producer_history is made of.
_ROW = (
    "base_offset last_offset count max_timestamp_ms section_id byte_offset length producer_id producer_epoch instance_id "
    "partition_leader_epoch"
)
# What the checkpoint is held against. It is cut at the log start (`LeaderEpochFileCache.truncateFromStart`); at and above the high
# watermark the log may have been cut between the two copies.
_HELD = "IF(base_offset BETWEEN held_from AND held_to, base_offset, NULL)"
# The entry of a batch; null: the checkpoint begins behind it.
_ENTRY = "try_element_at(filter(leader_epochs, e -> e.offset <= batch.base_offset), -1)"


def odd_epochs(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Hits of R05, one for each leader epoch: its last batch, where a newer epoch begins before it; else a batch of which the log's
    leader-epoch-checkpoint says that another epoch wrote it.

    Args:
        histories: history tables by name; producer_history and replica_logs are read.
    """
    from pyspark.sql import functions as F

    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    # Magic 0 and 1 and old tools show no leader epoch, and -1 is none.
    known = histories["producer_history"].where("judged AND partition_leader_epoch >= 0")
    told = histories["replica_logs"].where("size(leader_epochs) > 0")
    held = told.selectExpr("replica_log_id", "log_start AS held_from", "hw - 1 AS held_to")
    row = F.struct(*_ROW.split())
    epochs = (
        known.join(F.broadcast(held), "replica_log_id", "left")
        .groupBy("replica_log_id", F.col("partition_leader_epoch").alias("epoch"))
        .agg(
            F.min("base_offset").alias("begins"),
            F.max_by(row, "base_offset").alias("last"),
            # A checkpoint gives each epoch one stretch of the log, so its first and last batch there speak for all.
            F.array(F.min_by(row, F.expr(_HELD)), F.max_by(row, F.expr(_HELD))).alias("held"),
        )
        .join(F.broadcast(told.select("replica_log_id", "leader_epochs")), "replica_log_id", "left")
    )
    newer = "PARTITION BY replica_log_id ORDER BY epoch DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    compared = epochs.selectExpr(
        "*",
        f"min(struct(begins, epoch)) OVER ({newer}) AS newer",
        # What is newer than all of the checkpoint came when it had been copied.
        "epoch <= array_max(transform(leader_epochs, e -> e.leader_epoch)) AS is_told",
    )
    judged = compared.selectExpr(
        "*",
        "coalesce(newer.begins < last.base_offset, false) AS is_older",
        f"get(filter(array_compact(held), batch -> is_told AND {_ENTRY}.leader_epoch <> epoch), 0) AS foreign",
    )
    found = judged.where("is_older OR foreign IS NOT NULL").selectExpr("*", "IF(is_older, last, foreign) AS batch")
    told_of = found.selectExpr(
        "replica_log_id",
        "batch.*",
        "IF(is_older, newer.epoch, NULL) AS newer_epoch",
        "IF(is_older, newer.begins, NULL) AS newer_offset",
        f"{_ENTRY}.leader_epoch AS told_epoch",
        f"{_ENTRY}.offset AS told_offset",
        "'R05' AS rule",
    )
    return hits(SOURCES["producer_history"], told_of, key="''", weight="0", columns=COLUMNS.split())
