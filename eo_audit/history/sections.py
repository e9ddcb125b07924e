"""Which dump sections are read: each segment, index, snapshot and checkpoint once, however often it was dumped.

Per (replica log, kind, segment base) one section is read: one that this release understands, then deep before shallow, then the newer
dump, then the longer text. An older dump of a segment that a newer dump's segment covers is not read either: the cleaner merges segments.
Files about a broker (checkpoints, listings, manifests) give way to a newer file of the same name only: a broker has checkpoints in each of
its log directories. `-future`, `-delete` and `-stray` directories and sections of an unknown log are not read.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.schemas import schema

SEGMENT_KINDS = ("log", "snapshot", "txnindex")
BROKER_KINDS = ("checkpoint", "listing", "manifest")
UNSUPPORTED_DIALECT = "0.11-2.1"
INTERNAL_TOPICS = ("__transaction_state", "__consumer_offsets", "__cluster_metadata", "__share_group_state", "__remote_log_metadata")


def section_status(dump_sections: DataFrame, dump_files: DataFrame, batches: DataFrame) -> DataFrame:
    """One row per dump section: is it read, and if not, which section is read instead of it.

    Args:
        dump_sections: the table.
        dump_files: the table, for paths, digests and dump times.
        batches: the table, for the offsets and clocks of each log section.
    """
    files = dump_files.select("dump_file_id", "path", "digest", "dumped_at_ms")
    sections = dump_sections.join(F.broadcast(files), "dump_file_id").join(_extents(batches), "section_id", "left")
    same_kind = Window.partitionBy("cluster", "broker", "replica_log_id", "kind", "competes")
    competing = sections.withColumns({"competes": _competes(), "candidate": _candidate()})
    judged = competing.withColumn("rivals", F.collect_list("candidate").over(same_kind))
    better = judged.withColumn("better", F.when(F.col("competes"), _best_rival()))
    broker_clock = F.when(is_internal(F.col("topic")), F.col("newest_batch_ms")).otherwise(F.col("newest_broker_batch_ms"))
    return better.withColumns(
        {
            "supported": _supported(),
            "superseded_by": F.col("better.section_id"),
            "supersession_reason": _reason(),
            "is_read": _is_read(),
            "newest_broker_clock_ms": broker_clock,
            "shows_cleaning": F.coalesce(F.col("cleaned"), F.lit(False)),
            "tail_intact": F.col("end_reason").isin("eof", "next") & (F.coalesce(F.col("invalid_tail_bytes"), F.lit(0)) == 0),
        }
    ).select(*schema("section_status").columns)


def is_internal(topic: Column) -> Column:
    """True for topics that brokers write themselves."""
    return F.coalesce(topic.isin(*INTERNAL_TOPICS), F.lit(False))


def _extents(batches: DataFrame) -> DataFrame:
    intact = F.coalesce(F.col("crc_valid"), F.lit(True))
    lost_records = F.col("count") < F.col("last_offset") - F.col("base_offset") + 1
    broker_clock = F.col("marker_type").isNotNull() | (F.col("timestamp_type") == "LogAppendTime")
    return batches.groupBy("section_id").agg(
        F.min("base_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
        F.max(F.when(intact, F.col("max_timestamp_ms"))).alias("newest_batch_ms"),
        F.max(F.when(intact & broker_clock, F.col("max_timestamp_ms"))).alias("newest_broker_batch_ms"),
        F.bool_or(intact & (lost_records | F.col("delete_horizon_ms").isNotNull())).alias("cleaned"),
    )


def _supported() -> Column:
    return ~F.col("dialect").eqNullSafe(UNSUPPORTED_DIALECT)


def _competes() -> Column:
    """Sections of which one per file on the broker is read."""
    of_a_log = F.col("kind").isin(*SEGMENT_KINDS) & F.col("replica_log_id").isNotNull()
    return (of_a_log & (F.coalesce(F.col("dir_kind"), F.lit("normal")) == "normal")) | F.col("kind").isin(*BROKER_KINDS)


def _candidate() -> Column:
    """What decides between two sections of the same file on the broker; the greatest of `rank` wins."""
    file_name = F.regexp_extract("path", r"[^/]*\z", 0)
    of_segment = F.col("kind").isin(*SEGMENT_KINDS)
    rank = F.struct(
        _supported().alias("supported"),
        F.coalesce(F.col("deep"), F.lit(False)).alias("deep"),
        F.coalesce(F.col("dumped_at_ms"), F.lit(-1)).alias("dumped_at_ms"),
        F.col("length").alias("length"),
        F.col("path").alias("path"),
        (-F.col("byte_offset")).alias("order"),
    )
    return F.struct(
        F.when(of_segment, F.col("segment_base_offset").cast("string")).otherwise(file_name).alias("file"),
        F.col("segment_base_offset").alias("base"),
        F.col("last_offset").alias("last_offset"),
        F.col("digest").alias("digest"),
        F.col("section_id").alias("section_id"),
        rank.alias("rank"),
    )


def _best_rival() -> Column:
    """The section that is read instead of this one; null when this one is read."""
    better = F.filter("rivals", lambda rival: _replaces(rival, F.col("candidate")))
    return F.array_max(F.transform(better, lambda rival: F.struct(rival["rank"], rival["section_id"].alias("section_id"), rival["digest"])))


def _replaces(rival: Column, own: Column) -> Column:
    same_file = rival["file"] == own["file"]
    newer = rival["rank"]["dumped_at_ms"] > own["rank"]["dumped_at_ms"]
    better = F.when(F.col("kind").isin(*BROKER_KINDS), newer | (rival["digest"] == own["digest"])).otherwise(F.lit(True))
    covers = newer & (rival["base"] < own["base"]) & (rival["last_offset"] >= own["base"]) & (F.col("kind") == "log")
    return (same_file & better & (rival["rank"] > own["rank"])) | F.coalesce(covers, F.lit(False))


def _reason() -> Column:
    winner, own = F.col("better.rank"), F.col("candidate.rank")
    return F.when(
        F.col("better").isNotNull(),
        F.when(F.col("better.digest") == F.col("digest"), "same_text")
        .when(winner["supported"] & ~own["supported"], "supported_dialect")
        .when(winner["deep"] & ~own["deep"], "deep_beats_shallow")
        .when(winner["dumped_at_ms"] > own["dumped_at_ms"], "newer_dump")
        .otherwise("longer_dump"),
    )


def _is_read() -> Column:
    competing = F.col("competes") & F.col("better").isNull()
    return _supported() & (competing | ~F.col("kind").isin(*SEGMENT_KINDS, *BROKER_KINDS))
