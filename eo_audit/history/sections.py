"""Which dump sections are read: each segment, index, snapshot and checkpoint once, however often it was dumped.

Per (replica log, kind, segment base) one section is read: one that this release understands, then deep before shallow, then the newer
dump, then the longer text. An older dump of a segment that a newer dump's segment covers is not read either: the cleaner merges segments.
Files about a broker (checkpoints, listings, manifests) give way to a newer file of the same name only: a broker has checkpoints in each of
its log directories. Dump times of older collections stay: the newer one may be of other topics. `-future`, `-delete` and `-stray`
directories and sections of an unknown log are not read.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.history.sql import columns_of, expressions

# KAFKA-7687 (2.2): before, a deep dump printed record lines without the batches they are in.
UNSUPPORTED_DIALECT = "0.11-2.1"
INTERNAL_TOPICS = ("__transaction_state", "__consumer_offsets", "__cluster_metadata", "__share_group_state", "__remote_log_metadata")
IS_INTERNAL = f"coalesce(topic IN {INTERNAL_TOPICS}, false)"

_INTACT = "coalesce(crc_valid, true)"
# CreateTime is the client's word. Markers are stamped by the leader that appends them, and so is LogAppendTime.
_BROKER_CLOCK = "(marker_type IS NOT NULL OR timestamp_type = 'LogAppendTime')"
# The leader before may have had a clock far ahead: its newest time says nothing of the one that wrote the end of the log.
_LED = "struct(coalesce(partition_leader_epoch, -1) AS leader_epoch, max_timestamp_ms AS at_ms)"
_EXTENTS = {
    "first_offset": "min(base_offset)",
    "last_offset": "max(last_offset)",
    "newest_batch_ms": f"max(IF({_INTACT}, {_LED}, NULL)).at_ms",
    "newest_broker_batch_ms": f"max(IF({_INTACT} AND {_BROKER_CLOCK}, {_LED}, NULL)).at_ms",
    "cleaned": f"bool_or({_INTACT} AND (count < last_offset - base_offset + 1 OR delete_horizon_ms IS NOT NULL))",
    "first_leader_epoch": f"min(IF({_INTACT} AND base_offset = 0 AND partition_leader_epoch >= 0, partition_leader_epoch, NULL))",
    "last_leader_epoch": f"max(IF({_INTACT} AND partition_leader_epoch >= 0, partition_leader_epoch, NULL))",
    "end_position": "max(position + size_bytes)",
    "incomplete_from": "min(IF(records_seen < count, base_offset, NULL))",
}
_OF_LOG = "kind IN ('log', 'snapshot', 'txnindex')"
_OF_BROKER = "kind IN ('checkpoint', 'listing', 'manifest')"
_IN_PLACE = "coalesce(dir_kind, 'normal') = 'normal'"
_SUPPORTED = f"NOT dialect <=> '{UNSUPPORTED_DIALECT}'"
# Sections of which one per file on the broker is read, and what decides between two of them: the greatest rank wins.
_COMPETES = f"({_OF_LOG} AND replica_log_id IS NOT NULL AND {_IN_PLACE}) OR {_OF_BROKER}"
_RANK = f"""
    struct({_SUPPORTED} AS supported, coalesce(deep, false) AS deep, coalesce(dumped_at_ms, -1L) AS dumped_at_ms, length, path,
           -byte_offset AS place)"""
_FILE_OF_BROKER = r"IF(path RLIKE 'dumped-at[.]txt', string(section_id), regexp_extract(path, '[^/]*\\z', 0))"
_CANDIDATE = rf"""
    struct({_RANK} AS rank, IF({_OF_LOG}, string(segment_base_offset), {_FILE_OF_BROKER}) AS file,
           segment_base_offset AS base, last_offset, digest, section_id)"""
_NEWER = "rival.rank.dumped_at_ms > candidate.rank.dumped_at_ms"
_REPLACES = f"""
    (rival.file = candidate.file AND rival.rank > candidate.rank AND ({_OF_LOG} OR {_NEWER} OR rival.digest = digest))
    OR coalesce(kind = 'log' AND {_NEWER} AND rival.base < candidate.base AND rival.last_offset >= candidate.base, false)"""
_REASON = """
    CASE WHEN better IS NULL THEN NULL
         WHEN better.digest = digest THEN 'same_text'
         WHEN better.rank.supported AND NOT candidate.rank.supported THEN 'supported_dialect'
         WHEN better.rank.deep AND NOT candidate.rank.deep THEN 'deep_beats_shallow'
         WHEN better.rank.dumped_at_ms > candidate.rank.dumped_at_ms THEN 'newer_dump'
         ELSE 'longer_dump' END"""
# What was dumped in one go. A folder that is filled anew each night is told by its manifest. Where nothing says when, only folders tell
# dumps of one log apart: two in one folder look like one.
_PLACE = "IF(endswith(input_path, path), input_path, concat(input_path, '/', path))"
_FOLDER = rf"regexp_extract({_PLACE}, '\\A(.*)/[^/]*\\z', 1)"
_DUMP_SET = f"""IF(dumped_at_ms IS NULL, {_FOLDER},
    concat_ws(' ', input_path, dump_set, IF(dumped_at_source = 'manifest', string(dumped_at_ms), NULL)))"""
_SEEN_IN = "concat_ws(' ', input_path, dump_set, string(dumped_at_ms))"
_TOLD = {
    "header_length": "coalesce(octet_length(dumped_path) + 9L, 0L)",  # "Dumping ", the path, the line end
    "supported": _SUPPORTED,
    "superseded_by": "better.section_id",
    "supersession_reason": _REASON,
    "is_read": f"{_SUPPORTED} AND ((competes AND better IS NULL) OR NOT ({_OF_LOG} OR {_OF_BROKER}))",
    "newest_broker_clock_ms": f"IF({IS_INTERNAL}, newest_batch_ms, newest_broker_batch_ms)",
    "shows_cleaning": "coalesce(cleaned, false)",
    "tail_intact": "end_reason IN ('eof', 'next') AND coalesce(invalid_tail_bytes, 0L) = 0",
}


def section_status(
    dump_sections: DataFrame, dump_files: DataFrame, batches: DataFrame, *, dump_sightings: DataFrame | None = None
) -> DataFrame:
    """One row per dump section: is it read, and if not, which section is read instead of it.

    Args:
        dump_sections: the table.
        dump_files: the table, for paths, digests and dump times.
        batches: the table, for the offsets and clocks of each log section.
        dump_sightings: the table; a file is of the newest dump in which its text was met.
    """
    files = dump_files.selectExpr("dump_file_id", "path", "digest", "dumped_at_ms", f"{_DUMP_SET} AS dump_set")
    if dump_sightings is not None:
        newest = dump_sightings.groupBy("dump_file_id").agg(
            F.expr(f"max_by(struct(dumped_at_ms, {_SEEN_IN} AS dump_set), dumped_at_ms) AS again")
        )
        newer = "coalesce(again.dumped_at_ms > coalesce(dumped_at_ms, -1L), false)"
        met = [f"IF({newer}, again.{name}, {name}) AS {name}" for name in ("dumped_at_ms", "dump_set")]
        files = files.join(F.broadcast(newest), "dump_file_id", "left").selectExpr("dump_file_id", "path", "digest", *met)
    extents = batches.groupBy("section_id").agg(*expressions(_EXTENTS))
    sections = dump_sections.join(F.broadcast(files), "dump_file_id").join(extents, "section_id", "left")
    same_kind = Window.partitionBy("cluster", "broker", "replica_log_id", "kind", "competes")
    competing = sections.selectExpr("*", f"{_COMPETES} AS competes", f"{_CANDIDATE} AS candidate")
    judged = competing.withColumn("rivals", F.collect_list("candidate").over(same_kind)).selectExpr(
        "*", f"IF(competes, array_max(filter(rivals, rival -> {_REPLACES})), NULL) AS better"
    )
    return judged.selectExpr(*columns_of("section_status", _TOLD))
