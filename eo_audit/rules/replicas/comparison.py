"""Replicas beside each other (R01): batches that stand at one offset in several logs of a partition, and are not the same there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FOUND = "row_kind base_offset last_offset other_log other_last_offset settled outvoted"

_PARTITION = "cluster, topic, partition"
# The checksum covers all of a batch but its base offset and leader epoch (`DefaultRecordBatch`), which followers copy as they are. Two
# replicas that agree hold one history up to there: a leader takes nothing but the next offset, a follower nothing but its leader's.
_CONTENT = "struct(last_offset, crc, partition_leader_epoch)"
# KIP-101: where replicas differ the log of the newest leader epoch counts; of those, what most of them hold.
_NEWEST = "struct(coalesce(last_leader_epoch, -1) AS epoch, leo, replica_log_id)"
_COUNTS = "struct(place.epoch, holders, place.leo, place.replica_log_id, content)"


def differences(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Batches of a replica that another replica of the partition, whose log counts, has otherwise.

    The cleaner works on each replica alone, so only what it never touched in either is compared.

    Args:
        histories: history tables by name; producer_history and visibility are read.

    Returns:
        Hits of R01, with other_log and other_last_offset (the replica that counts, and its batch); settled: the batch lies below the
        high watermark of all replicas, as their brokers noted it, or before a batch that they agree on, else a broker that comes back
        may still cut it off; outvoted: leader epochs or the number of replicas tell which one counts.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    rows = _replicated(histories)
    differing = _differing(rows)
    told = rows.join(differing.hint("broadcast"), ["cluster", "topic", "partition", "base_offset"])
    found = told.where(f"{_CONTENT} <> newest.content").selectExpr(
        "*",
        *("newest.replica_log_id AS other_log", "newest.content.last_offset AS other_last_offset", "'R01' AS rule"),
        "coalesce(last_leader_epoch, -1) < newest.epoch OR newest.holders > 1 AS outvoted",
    )
    return hits(SOURCES["producer_history"], found, key="newest.replica_log_id", weight="0", columns=FOUND.split())


def _replicated(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Batches of partitions of which several replicas were dumped, with what is known of their logs."""
    logs = (
        histories["visibility"]
        .selectExpr(
            *("replica_log_id", "cluster", "topic", "partition", "leo", "last_leader_epoch"),
            "IF(compacted, uncleaned_from, 0L) AS own_comparable_from",
            "IF(hw_source = 'checkpoint', hw, NULL) AS noted_hw",
        )
        .selectExpr(
            *("replica_log_id", "cluster", "topic", "partition", "leo", "last_leader_epoch"),
            f"count(1) OVER (PARTITION BY {_PARTITION}) AS replicas",
            # Null where nobody knows how far a cleaner came, or which offsets were replicated.
            *(
                f"IF(count({name}) OVER (PARTITION BY {_PARTITION}) = count(1) OVER (PARTITION BY {_PARTITION}), "
                f"{one}({name}) OVER (PARTITION BY {_PARTITION}), NULL) AS {told}"
                for name, one, told in (("own_comparable_from", "max", "comparable_from"), ("noted_hw", "min", "least_hw"))
            ),
        )
        .where("replicas > 1 AND comparable_from IS NOT NULL")
    )
    rows = histories["producer_history"].where("judged").join(logs.hint("broadcast"), "replica_log_id")
    return rows.where("base_offset >= comparable_from")


def _differing(rows: "DataFrame") -> "DataFrame":
    """Offsets at which replicas differ, with the batch that counts (`newest`) and `settled`."""
    from pyspark.sql import functions as F

    place = ("cluster", "topic", "partition", "base_offset")
    held = rows.groupBy(*place, F.expr(f"{_CONTENT} AS content"))
    versions = held.agg(*_sums(holders="count(1)", place=f"max({_NEWEST})", least_hw="min(least_hw)"))
    same = versions.groupBy(*place).agg(
        *_sums(versions="count(1)", replicas="sum(holders)", least_hw="min(least_hw)", newest=f"max({_COUNTS})")
    )
    agreed = f"max(IF(versions = 1 AND replicas > 1, base_offset, NULL)) OVER (PARTITION BY {_PARTITION})"
    return (
        same.selectExpr("*", f"{agreed} AS agreed_at")
        .where("versions > 1")
        .selectExpr(
            *("cluster", "topic", "partition", "base_offset", "newest"),
            "coalesce(base_offset < least_hw, false) OR coalesce(base_offset < agreed_at, false) AS settled",
        )
    )


def _sums(**columns: str) -> "list[Column]":
    from pyspark.sql import functions as F

    return [F.expr(f"{sql} AS {name}") for name, sql in columns.items()]
