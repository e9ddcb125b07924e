"""The batches of each replica log in the order of the log, with what breaks that order.

A log is worked on in one piece, or in chunks of dump text whose ends are stitched, so that one huge log is many tasks.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from eo_audit.history.text import no_rows, run
from eo_audit.store import frames

_ONE_PIECE = 63  # bits: no position is so large
# What a chunk may inherit from those before it.
_INHERITED = (
    StructType()
    .add("replica_log_id", "long")
    .add("chunk", "long")
    .add("last_offset", "long")
    .add("broken", "boolean")
    .add("hole_at", "long")
    .add("cleaned_at", "long")
)


def in_log_order(
    batches: DataFrame,
    replica_logs: DataFrame,
    clusters: DataFrame,
    *,
    unread_spans: DataFrame | None = None,
    chunk_bits: int | None = None,
) -> DataFrame:
    """Batches of the sections that are read, placed in their replica logs.

    Args:
        batches: the batches table.
        replica_logs: the replica_logs table.
        clusters: the clusters table.
        unread_spans: the table; without it, all text was understood.
        chunk_bits: None works on each log in one piece; else a log is cut where 2**chunk_bits bytes of a section's text are full.

    Returns:
        The columns of batches that histories ask for, and
        segment_base_offset; sequenced (the topic's batches carry producer sequences); cleaned_below (null: nowhere);
        forgets_below (a producer whose data all lie below it the broker may have forgotten; null: none);
        era (removals before this segment), behind_removal (one lies right before it), removed_behind (one lies behind it);
        position_in_log (ascending, without ties; not consecutive), chunk (of the log; 0 in one piece);
        previous_last_offset (of the first batch of a log null, or right below what is missing before it);
        gap (null, hole, removed, compacted: before this batch);
        disorder (the batch starts at or below the one before it, ends before it starts, or lies below its segment's base);
        crc_invalid; count_short (fewer records than offsets where nothing was compacted); judged;
        hole_at, cleaned_at (base offset of the newest batch up to this one that has a hole or removal, or a compacted one, before it).
    """
    bits = _ONE_PIECE if chunk_bits is None else chunk_bits
    unread = no_rows(batches.sparkSession, "unread_spans") if unread_spans is None else unread_spans
    placed = run("placed_batches", batches=batches, replica_logs=replica_logs, clusters=clusters, unread_spans=unread, chunk_bits=bits)
    nothing = frames.no_rows(placed.sparkSession, _INHERITED)
    if chunk_bits is None:
        return run("ordered_batches", placed=placed, inherited=nothing, chunk=0)
    # The rows are read twice: the price for no task that has all of one huge log.
    alone = run("ordered_batches", step="with_breaks", placed=placed, inherited=nothing, chunk=chunk_of(chunked=True))
    return run("ordered_batches", placed=placed, inherited=run("inherited_order", alone=alone), chunk=chunk_of(chunked=True))


def checked_batches(batches: DataFrame, section_status: DataFrame) -> DataFrame:
    """The batches, with checksums that were found bad where a segment was printed without --deep-iteration as well.

    Args:
        batches, section_status: the tables.
    """
    return run("checked_batches", batches=batches, section_status=section_status)


def chunk_of(*, chunked: bool) -> Column | int:
    """The column that cuts a log, for a text; a number where each log is one piece."""
    return F.col("chunk") if chunked else 0
