"""What is known of each replica log beside its batches: segments, log start, high watermark, cleaning, which sidecars were dumped.

1. log_start = max(checkpoint row if there is one, lowest segment base): a checkpoint without a row for the log does not say 0.
2. HW = checkpoint row, else the log end offset.
3. Cleaning: a row of the cleaner's checkpoint; a cleaner that is off; other checkpoints of the broker without such a row mean "never",
   unless batches have lost records (a log copied from a leader that cleans); else the topic's cleanup.policy; else lost records.
4. An index that was not dumped is known not to exist when a listing shows its directory without it, or when the log's snapshot and any
   index of the broker were dumped.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.history.sections import is_internal
from eo_audit.schemas import schema

BROKER_CHECKPOINTS = r"(?:\A|/)(?:replication|recovery-point|log-start)-offset-checkpoint[^/]*\z"
COMPACTED_INTERNAL = ("__transaction_state", "__consumer_offsets", "__share_group_state")
_LONGS = "array<bigint>"
_PLAIN = "plain"


def replica_logs(section_status: DataFrame, checkpoints: DataFrame, listed_files: DataFrame, manifest_entries: DataFrame) -> DataFrame:
    """One row per replica log with at least one log section, read or of an unsupported dialect.

    Args:
        section_status: the table.
        checkpoints: the table; only rows of sections that are read count.
        listed_files: the table; the same.
        manifest_entries: the table; the same.
    """
    read = F.broadcast(section_status.where("is_read").select("section_id"))
    sources = (
        _of_sections(section_status),
        _of_checkpoints(checkpoints.join(read, "section_id", "left_semi")),
        _of_listing(listed_files.join(read, "section_id", "left_semi")),
    )
    rows = sources[0].unionByName(sources[1], allowMissingColumns=True).unionByName(sources[2], allowMissingColumns=True)
    broker = Window.partitionBy("cluster", "broker")
    dumped = _gathered(rows).withColumns(
        {name: F.coalesce(F.bool_or(name).over(broker), F.lit(False)) for name in ("broker_has_checkpoints", "broker_has_index")}
    )
    manifest = manifest_values(manifest_entries.join(read, "section_id", "left_semi"))
    logs = dumped.where("is_log").join(F.broadcast(manifest), "cluster", "left")
    return _described(logs).select(*schema("replica_logs").columns)


def manifest_values(manifest_entries: DataFrame) -> DataFrame:
    """What each cluster's manifests say: (cluster, manifest), to be asked with `said`."""
    return manifest_entries.groupBy("cluster").agg(F.collect_list(F.struct("name", "value")).alias("manifest"))


def said(name: Column) -> Column:
    """The value that the column `manifest` holds under a name; null when it holds none."""
    return F.try_element_at(F.filter("manifest", lambda entry: entry["name"] == name), F.lit(1))["value"]


def _of_sections(section_status: DataFrame) -> DataFrame:
    def read(kind: str) -> Column:
        return F.col("is_read") & (F.col("kind") == kind)

    not_replaced = F.col("superseded_by").isNull() & (F.coalesce(F.col("dir_kind"), F.lit("normal")) == "normal")
    segment = F.struct(F.col("segment_base_offset").alias("base_offset"), "last_offset", "section_id", "tail_intact", "decoder")
    return section_status.select(
        "cluster",
        "broker",
        "replica_log_id",
        "topic",
        "partition",
        ((F.col("kind") == "log") & not_replaced & F.col("replica_log_id").isNotNull()).alias("is_log"),
        F.when(read("log"), segment).alias("segment"),
        F.when(read("txnindex"), F.col("segment_base_offset")).alias("index_base"),
        F.when(read("snapshot"), F.col("segment_base_offset")).alias("snapshot_offset"),
        (read("checkpoint") & F.col("path").rlike(BROKER_CHECKPOINTS)).alias("broker_has_checkpoints"),
        F.when(read("log"), F.col("newest_broker_clock_ms")).alias("newest_broker_clock_ms"),
        (read("log") & F.col("shows_cleaning")).alias("shows_cleaning"),
    )


def _of_checkpoints(checkpoints: DataFrame) -> DataFrame:
    def row(kind: str) -> Column:
        return F.when(F.col("checkpoint_kind") == kind, F.col("offset"))

    return checkpoints.select(
        "cluster",
        "broker",
        "replica_log_id",
        "topic",
        "partition",
        row("log-start-offset").alias("start_row"),
        row("replication-offset").alias("hw_row"),
        row("cleaner-offset").alias("cleaner_row"),
        row("leader-epoch").alias("epoch_start"),
    )


def _of_listing(listed_files: DataFrame) -> DataFrame:
    base = F.regexp_extract("file_name", r"\A(\d{20})\.(?:log|txnindex)\z", 1).try_cast("bigint")
    in_place = ~F.col("folder").rlike(r"-(?:delete|future|stray)\z")
    return listed_files.where(F.col("replica_log_id").isNotNull() & in_place).select(
        "cluster",
        "broker",
        "replica_log_id",
        "topic",
        "partition",
        F.lit(True).alias("listed"),
        F.when(F.col("file_name").endswith(".log"), base).alias("listed_log"),
        F.when(F.col("file_name").endswith(".txnindex") & (F.col("file_bytes") > 0), base).alias("listed_index"),
    )


def _gathered(rows: DataFrame) -> DataFrame:
    """Everything said of one log in one row; what is said of no log (a broker's checkpoint files) in one row of the broker."""
    return rows.groupBy("cluster", "broker", "replica_log_id").agg(
        F.max("topic").alias("topic"),
        F.max("partition").alias("partition"),
        F.coalesce(F.bool_or("is_log"), F.lit(False)).alias("is_log"),
        F.array_sort(F.collect_list("segment")).alias("read_segments"),
        F.collect_set("index_base").alias("indexes"),
        F.max("snapshot_offset").alias("snapshot_offset"),
        F.bool_or("broker_has_checkpoints").alias("broker_has_checkpoints"),
        F.bool_or(F.col("index_base").isNotNull()).alias("broker_has_index"),
        F.max("newest_broker_clock_ms").alias("newest_broker_clock_ms"),
        F.coalesce(F.bool_or("shows_cleaning"), F.lit(False)).alias("shows_cleaning"),
        F.max("start_row").alias("start_row"),
        F.max("hw_row").alias("hw_row"),
        F.max("cleaner_row").alias("cleaner_row"),
        F.min("epoch_start").alias("epoch_start"),
        F.coalesce(F.bool_or("listed"), F.lit(False)).alias("listed"),
        F.collect_set("listed_log").alias("listed_logs"),
        F.collect_set("listed_index").alias("listed_indexes"),
    )


def _described(logs: DataFrame) -> DataFrame:
    bases = F.transform("read_segments", lambda segment: segment["base_offset"])
    ends = F.transform("read_segments", lambda segment: segment["last_offset"] + 1)
    last = F.try_element_at("read_segments", F.lit(-1))
    first = F.array_min(bases)
    return (
        logs.withColumns(
            {
                "is_internal": is_internal(F.col("topic")),
                "supported": F.size("read_segments") > 0,
                "first_offset": first,
                "leo": F.coalesce(F.greatest(F.array_max(ends), F.array_max(bases)), F.lit(0)),
                "log_start": F.coalesce(F.greatest(F.col("start_row"), first), F.lit(0)),
                "log_start_source": F.when(F.col("start_row") >= F.coalesce(first, F.lit(0)), "checkpoint").otherwise("segment_base"),
                "cleanup_policy": _cleanup_policy(),
            }
        )
        .withColumns(
            {
                "hw": F.when(F.col("hw_row").isNotNull(), F.greatest("hw_row", "log_start")).otherwise(F.col("leo")),
                "hw_source": F.when(F.col("hw_row").isNotNull(), "checkpoint").otherwise("leo"),
                "segments": _segments(),
                "missing_head_from": _missing_head(),
                "tail_intact": F.coalesce(last["tail_intact"], F.lit(False)) & ~_more_was_there(last["base_offset"]),
                "unknown_indexes": _unknown_indexes(),
                "compacted": _compacted(),
                "decoded": _decoded(),
            }
        )
        .withColumns({"index_state": _index_state(), "uncleaned_from": _uncleaned_from(), "whole": _whole(bases)})
    )


def _segments() -> Column:
    bases = F.transform("read_segments", lambda segment: segment["base_offset"])
    ends = F.concat(F.slice(bases, 2, F.size(bases)), F.array("leo"))
    return F.transform(
        "read_segments",
        lambda segment, at: F.struct(
            segment["base_offset"].alias("base_offset"), F.get(ends, at).alias("end_offset"), segment["section_id"].alias("section_id")
        ),
    )


def _missing_head() -> Column:
    """Kafka's leader epoch cache is cut at the log start, so its first entry is not below it."""
    started = F.least(F.col("start_row"), F.col("epoch_start"), F.array_min("listed_logs"))
    return F.when(started < F.col("first_offset"), started)


def _more_was_there(last_base: Column) -> Column:
    """A snapshot or a listed segment beyond the log end offset of the dump."""
    later = (F.col("snapshot_offset") > F.col("leo"), F.array_max("listed_logs") > last_base)
    return F.coalesce(later[0], F.lit(False)) | F.coalesce(later[1], F.lit(False))


def _decoded() -> Column:
    def plain(segment: Column) -> Column:
        return segment["last_offset"].isNotNull() & (F.coalesce(segment["decoder"], F.lit(_PLAIN)) == _PLAIN)

    return ~F.exists("read_segments", plain)


def _whole(bases: Column) -> Column:
    cut = F.exists("read_segments", lambda segment: ~segment["tail_intact"])
    nexts = F.slice(bases, 2, F.size(bases))
    ends = F.transform("read_segments", lambda segment: segment["last_offset"] + 1)
    jumps = F.exists(F.arrays_zip(ends.alias("end"), nexts.alias("next")), lambda pair: pair["end"] < pair["next"])
    missing = F.size(F.array_except("listed_logs", bases)) > 0
    jumped = F.coalesce(jumps, F.lit(False)) & ~F.col("compacted")
    return F.col("supported") & F.col("tail_intact") & F.col("missing_head_from").isNull() & ~cut & ~missing & ~jumped


def _unknown_indexes() -> Column:
    bases = F.transform("read_segments", lambda segment: segment["base_offset"])
    known_absent = F.col("snapshot_offset").isNotNull() & F.col("broker_has_index")
    none = F.array().cast(_LONGS)
    may_exist = F.when(F.col("listed"), F.array_intersect(bases, "listed_indexes")).when(known_absent, none).otherwise(bases)
    return F.array_sort(F.array_except(may_exist, "indexes"))


def _index_state() -> Column:
    return F.when(F.size("unknown_indexes") > 0, "not_dumped").when(F.size("indexes") > 0, "dumped").otherwise("absent")


def _cleanup_policy() -> Column:
    prefix = F.concat(F.lit("topics."), F.col("topic"))
    mentioned = F.exists("manifest", lambda entry: (entry["name"] == prefix) | entry["name"].startswith(F.concat(prefix, F.lit("."))))
    brokers_default = F.coalesce(said(F.lit("broker_config.log.cleanup.policy")), F.lit("delete"))
    return F.coalesce(
        said(F.concat(prefix, F.lit(".cleanup.policy"))),
        F.when(F.col("topic").isin(*COMPACTED_INTERNAL), "compact"),
        F.when(F.coalesce(mentioned, F.lit(False)), brokers_default),
    )


def _compacting() -> Column:
    return F.col("cleanup_policy").contains("compact")


def _cleaner_is_off() -> Column:
    return F.coalesce(said(F.lit("broker_config.log.cleaner.enable")) == "false", F.lit(False))


def _compacted() -> Column:
    never = F.col("broker_has_checkpoints") & ~F.col("shows_cleaning")
    return (
        F.when(F.col("cleaner_row").isNotNull(), True)
        .when(_cleaner_is_off() | never, False)
        .otherwise(F.coalesce(_compacting(), F.col("shows_cleaning")))
    )


def _uncleaned_from() -> Column:
    known = _cleaner_is_off() | F.col("broker_has_checkpoints") | F.col("cleanup_policy").isNotNull()
    return F.coalesce(F.col("cleaner_row"), F.when(~F.col("compacted") & known, F.lit(0).cast("bigint")))
