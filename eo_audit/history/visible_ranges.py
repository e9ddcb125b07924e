"""Which existing record offsets a consumer gets of each replica log: maximal runs.

A batch holds every offset of its range unless the cleaner took some: then its record lines say which are left. Markers hold no records.
Two readers of the read_committed view: one starts at the log start and reads on; the other is one fetch from each segment's base, with
the index looked up to the end of the segment. Where an index was not dumped the view shows what a sound index would give.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.sql import columns_of

_TRANSACTIONAL = "coalesce(is_transactional, false)"
# As far as an index is not known, a sound one.
_SOUND = f"last_offset < lso AND (NOT {_TRANSACTIONAL} OR coalesce(span_outcome = 'committed', false))"
# view, reader, who sees a batch; the place in this list is the bit of `seen`.
_READS = (
    ("read_committed", "log_start", f"coalesce(returned, {_SOUND})"),
    ("read_uncommitted", "log_start", "last_offset < hw"),
    ("truth_committed", "log_start", "last_offset < hw AND truth IN ('committed', 'plain')"),
    ("read_committed", "segment", f"coalesce(returned_from_segment, {_SOUND})"),
)
# Bits, so that neighbours that the same readers see are found by comparing one number.
_SEEN = " + ".join(f"IF({sees}, {1 << bit}, 0)" for bit, (_, _, sees) in enumerate(_READS))
_READ = ", ".join(f"IF(seen & {1 << bit} > 0, {bit}, NULL)" for bit in range(len(_READS)))
_VIEWS, _READERS = (", ".join(f"'{names[place]}'" for names in _READS) for place in (0, 1))
_HAS_RECORDS = "row_kind IN ('data', 'plain') AND coalesce(count, 1) > 0"
_IS_COMPLETE = "coalesce(count > last_offset - base_offset, true)"
_SEGMENT_BASE = "get(filter(segments, s -> first >= s.base_offset AND first < s.end_offset), 0).base_offset"
_READER = f"array({_READERS})[read]"
# Where nobody knows where the log starts, what lies above the last place where it may is there.
_START = "coalesce(log_start, first_offset) AS log_start"
_COLUMNS = {"first_offset": "first", "last_offset": "last", "view": f"array({_VIEWS})[read]", "reader": _READER}


def visible_ranges(
    rows: DataFrame, records: DataFrame, visibility: DataFrame, *, section_status: DataFrame, chunk_bits: int | None = None
) -> DataFrame:
    """Maximal runs of the offsets that each view and reader gets.

    Args:
        rows: producer_history.
        records: the table; only those of sections that the cleaner has worked on are read.
        visibility: the table.
        section_status: the table, for sections that show cleaning.
        chunk_bits: None puts each log together in one piece; else runs are first made within 2**chunk_bits offsets of a segment.
    """
    pieces = _pieces(rows, records, visibility, section_status)
    if chunk_bits is not None:
        in_chunks = pieces.selectExpr("*", f"shiftright(first, {chunk_bits}) AS chunk")
        pieces = _merged(in_chunks, ["replica_log_id", "section_id", "chunk"], same="seen")
    reads = pieces.selectExpr("replica_log_id", "first", "last", f"explode(array_compact(array({_READ}))) AS read")
    starts = F.broadcast(visibility.selectExpr("replica_log_id", "segments", _START))
    reader_offset = f"IF({_READER} = 'segment', greatest({_SEGMENT_BASE}, log_start), log_start) AS reader_offset"
    placed = reads.join(starts, "replica_log_id").selectExpr("replica_log_id", "read", "first", "last", reader_offset)
    # Names of logs and reads only now: runs are found by numbers, which are quickly sorted.
    logs = F.broadcast(visibility.select("replica_log_id", "cluster", "broker", "topic", "partition"))
    runs = _merged(placed, ["replica_log_id", "read", "reader_offset"]).join(logs, "replica_log_id")
    return runs.selectExpr(*columns_of("visible_ranges", _COLUMNS))


def _pieces(rows: DataFrame, records: DataFrame, visibility: DataFrame, section_status: DataFrame) -> DataFrame:
    """Runs of existing offsets with the reads that see them: replica_log_id, section_id, first, last, seen (bits)."""
    bounds = F.broadcast(visibility.selectExpr("replica_log_id", _START, "lso", "hw"))
    held = rows.where(_HAS_RECORDS).join(bounds, "replica_log_id").where("last_offset >= log_start")
    kept = held.selectExpr("*", f"{_SEEN} AS seen").where("seen > 0")
    whole = kept.where(_IS_COMPLETE).selectExpr(
        "replica_log_id", "section_id", "greatest(base_offset, log_start) AS first", "last_offset AS last", "seen"
    )
    cleaned = F.broadcast(section_status.where("shows_cleaning AND is_read").select("section_id"))
    left = records.join(cleaned, "section_id", "left_semi").select("section_id", "base_offset", "offset")
    # Records of a batch that the cleaner thinned stand one by one; where its record lines were not printed it counts as whole.
    short = kept.where(f"NOT {_IS_COMPLETE}").join(left, ["section_id", "base_offset"], "left").where("coalesce(offset >= log_start, true)")
    return whole.union(
        short.selectExpr(
            "replica_log_id",
            "section_id",
            "coalesce(offset, greatest(base_offset, log_start)) AS first",
            "coalesce(offset, last_offset) AS last",
            "seen",
        )
    )


def _merged(pieces: DataFrame, within: list[str], *, same: str | None = None) -> DataFrame:
    """Pieces of equal `within` and `same`, where one ends right before the next begins, as one."""
    in_order = f"PARTITION BY {', '.join(within)} ORDER BY first"
    continues = f"lag(last) OVER ({in_order}) + 1 = first"
    if same is not None:
        continues = f"{continues} AND lag({same}) OVER ({in_order}) = {same}"
    starts = pieces.selectExpr("*", f"IF(coalesce({continues}, false), 0, 1) AS starts")
    # The number of starts so far names the run.
    runs = starts.selectExpr("*", f"sum(starts) OVER ({in_order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS run")
    keys = [*within, *([same] if same else []), "run"]
    return runs.groupBy(*keys).agg(F.min("first").alias("first"), F.max("last").alias("last"))
