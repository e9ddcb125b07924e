"""The batches of each replica log in the order of the log, with what breaks that order.

1. Order is where the text stands: segments by base offset, batches by byte offset. Offsets are what is checked against it (R03, R04).
2. Of several dumps of one segment only the one that replica_logs names is read.
3. Nothing is judged from the first bad checksum or offset disorder of a replica log onward (R02, R03).
4. A hole is legal below the offset up to which the log may have been compacted, and where the broker deleted segments between two dumps
   (replica_logs.removed_before); it is a hole in any other case. Behind such a removal the log begins anew, as at its start: `era`.
5. A shallow dump prints only the last offset of a compressed batch of magic 0 or 1: it begins where the batch before it ends.

Source: `UnifiedLog.append` (offsets go up), `Cleaner` (holes, emptied batches). A log is worked on in one piece, or in chunks of dump
text whose ends are stitched, so that one huge log is many tasks.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.store.schemas import schema

# A position is the number of the section within its log, then the byte offset within the section: room for 16 TiB of text.
BYTE_BITS = 44
_POSITION = f"shiftleft(CAST(section_number AS BIGINT), {BYTE_BITS}) + byte_offset"
# A compacted log of which nobody knows how far the cleaner came may have been cleaned everywhere.
_CLEANED_BELOW = f"IF(compacted, coalesce(uncleaned_from, {2**63 - 1}), NULL)"
# What no history asks for.
_LEFT_OUT = {"records_seen", "control_type", "delete_horizon_ms", "position", "size_bytes", "codec", "magic", "payload_verified"}
_BASE_UNKNOWN = "coalesce(magic < 2 AND codec <> 'none' AND coalesce(records_seen, 0) = 0, false)"
_OF_SECTION = ["segment_base_offset", "sequenced", "cleaned_below", "era", "behind_removal", "removed_behind"]
_PLACE = [*_OF_SECTION, "position_in_log", "chunk"]
_INHERITED = {"last_offset": "BIGINT", "broken": "BOOLEAN", "hole_at": "BIGINT", "cleaned_at": "BIGINT"}

_GAP = """
    CASE WHEN base_unknown OR NOT coalesce(base_offset > previous_last_offset + 1, false) THEN NULL
         WHEN base_offset <= cleaned_below THEN 'compacted'
         WHEN behind_removal AND base_offset = segment_base_offset THEN 'removed' ELSE 'hole' END"""
_BASE = "IF(base_unknown, least(coalesce(previous_last_offset + 1, segment_base_offset), base_offset), base_offset)"
# A segment's name is the lowest offset it can hold: a batch below it was written into another file.
_DISORDER = "coalesce(base_offset <= previous_last_offset OR base_offset < segment_base_offset, false) OR last_offset < base_offset"
_CRC_INVALID = "coalesce(NOT crc_valid, false)"
# The cleaner keeps a batch's first and last offset and takes records between them (`MemoryRecords.filterTo`); elsewhere a producer leaves
# no gaps.
_COUNT_SHORT = "coalesce(last_offset >= cleaned_below, true) AND coalesce(count < last_offset - base_offset + 1, false)"
_SO_FAR = {
    "broken": f"max(({_DISORDER}) OR {_CRC_INVALID})",
    "hole_at": f"last(IF(({_GAP}) IN ('hole', 'removed'), base_offset, NULL), true)",
    "cleaned_at": f"last(IF(({_GAP}) = 'compacted', base_offset, NULL), true)",
}
_FLAGS = [
    *[
        "previous_last_offset",
        f"{_GAP} AS gap",
        f"{_DISORDER} AS disorder",
        f"{_CRC_INVALID} AS crc_invalid",
        f"{_COUNT_SHORT} AS count_short",
    ],
    *["NOT broken AS judged", "hole_at", "cleaned_at"],
]


def in_log_order(batches: DataFrame, replica_logs: DataFrame, *, chunk_bits: int | None = None) -> DataFrame:
    """Batches of the sections that are read, placed in their replica logs.

    Args:
        batches: the batches table.
        replica_logs: the replica_logs table.
        chunk_bits: None works on each log in one piece; else a log is cut where 2**chunk_bits bytes of a section's text are full.

    Returns:
        The columns of batches that histories ask for, and
        segment_base_offset; sequenced (the topic's batches carry producer sequences); cleaned_below (null: nowhere);
        era (removals before this segment), behind_removal (one lies right before it), removed_behind (one lies behind it);
        position_in_log (ascending, without ties; not consecutive), chunk (of the log; 0 in one piece);
        previous_last_offset (null on the first batch of a log); gap (null, hole, removed, compacted: before this batch);
        disorder (the batch starts at or below the one before it, ends before it starts, or lies below its segment's base);
        crc_invalid; count_short (fewer records than offsets where nothing was compacted); judged;
        hole_at, cleaned_at (base offset of the newest batch up to this one that has a hole or removal, or a compacted one, before it).
    """
    facts = [name for name in schema("batches").columns if name not in _LEFT_OUT]
    chunk = "0L" if chunk_bits is None else f"shiftright({_POSITION}, {chunk_bits})"
    placed = batches.join(F.broadcast(_sections_read(replica_logs)), "section_id").selectExpr(
        *facts, *_PLACE[:-2], f"{_BASE_UNKNOWN} AS base_unknown", f"{_POSITION} AS position_in_log", f"{chunk} AS chunk"
    )
    if chunk_bits is None:
        started = _starting_from_nothing(placed)
    else:
        started = placed.join(F.broadcast(_inherited(placed)), ["replica_log_id", "chunk"], "left")
    return _checked(started, chunked=chunk_bits is not None).selectExpr(
        *(f"{_BASE} AS base_offset" if name == "base_offset" else name for name in facts), *_PLACE, *_FLAGS
    )


def log_keys(*, chunked: bool) -> list[str]:
    """The columns within which rows are in order: a replica log, or a chunk of one."""
    return ["replica_log_id", "chunk"] if chunked else ["replica_log_id"]


def _sections_read(replica_logs: DataFrame) -> DataFrame:
    """Per section: its number within the log, and what its log is like."""
    logs = replica_logs.selectExpr(
        # The group coordinator gives every offset batch sequence 0, and entries of `__transaction_state` have no producer id at all.
        "NOT is_internal AS sequenced",
        f"{_CLEANED_BELOW} AS cleaned_below",
        "removed_before",
        "posexplode(segments) AS (number, segment)",
    )
    of_removals = {
        "era": "size(filter(removed_before, base -> base <= segment.base_offset))",
        "behind_removal": "array_contains(removed_before, segment.base_offset)",
        "removed_behind": "exists(removed_before, base -> base > segment.base_offset)",
    }
    names = ("segment.section_id", "segment.base_offset AS segment_base_offset", "number AS section_number", "sequenced", "cleaned_below")
    return logs.selectExpr(*names, *[f"{sql} AS {name}" for name, sql in of_removals.items()])


def _starting_from_nothing(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("*", *[f"CAST(NULL AS {kind}) AS inherited_{name}" for name, kind in _INHERITED.items()])


def _checked(rows: DataFrame, *, chunked: bool) -> DataFrame:
    """Add previous_last_offset, and up to each row: broken, hole_at, cleaned_at; rows have the inherited columns."""
    in_order = Window.partitionBy(*log_keys(chunked=chunked)).orderBy("position_in_log")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    found = {name: F.expr(newest).over(so_far) for name, newest in _SO_FAR.items()}
    return rows.withColumn(
        # Only the first row of a chunk has none before it there: what it follows is inherited.
        "previous_last_offset",
        F.coalesce(F.lag("last_offset").over(in_order), F.col("inherited_last_offset")),
    ).withColumns(
        {
            "broken": found["broken"] | F.expr("coalesce(inherited_broken, false)"),
            "hole_at": F.coalesce(found["hole_at"], F.col("inherited_hole_at")),
            "cleaned_at": F.coalesce(found["cleaned_at"], F.col("inherited_cleaned_at")),
        }
    )


def _inherited(placed: DataFrame) -> DataFrame:
    """What each chunk inherits from the chunks before it, one row a chunk.

    The chunks are summed up as if each were a log of its own; then each chunk's first batch is held against the end of the one before.
    """
    # The rows are read twice: the price for no task that has all of one huge log.
    rows = _checked(_starting_from_nothing(placed), chunked=True)
    edge = "struct(base_offset, last_offset, segment_base_offset, cleaned_below, base_unknown, behind_removal)"
    first = F.expr(f"min_by({edge}, position_in_log) AS first")
    newest = [F.expr(f"max_by({name}, position_in_log) AS {name}_inside") for name in _INHERITED]
    by_chunk = Window.partitionBy("replica_log_id").orderBy("chunk")
    earlier = by_chunk.rowsBetween(Window.unboundedPreceding, -1)
    first_rows = (
        rows.groupBy("replica_log_id", "chunk")
        .agg(first, *newest)
        .withColumn("previous_last_offset", F.lag("last_offset_inside").over(by_chunk))
        .select("*", "first.*")
    )
    found = {
        "last_offset": F.col("last_offset_inside"),
        "broken": F.expr(f"broken_inside OR {_DISORDER}"),
        "hole_at": F.expr(f"coalesce(hole_at_inside, IF(({_GAP}) IN ('hole', 'removed'), base_offset, NULL))"),
        "cleaned_at": F.expr(f"coalesce(cleaned_at_inside, IF(({_GAP}) = 'compacted', base_offset, NULL))"),
    }
    return first_rows.select(
        "replica_log_id",
        "chunk",
        F.col("previous_last_offset").alias("inherited_last_offset"),
        F.max(found["broken"]).over(earlier).alias("inherited_broken"),
        *[F.last(found[name], ignorenulls=True).over(earlier).alias(f"inherited_{name}") for name in ("hole_at", "cleaned_at")],
    )
