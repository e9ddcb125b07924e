"""Aborted transactions replayed from the log beside the entries of the `.txnindex` files: what S02 and S03 judge.

An ABORT marker that closes data has an entry (producer id, first offset, marker offset) in the index of its segment, and every entry has
such a marker (`ProducerStateManager`, `TransactionIndex`). Where that cannot be said, the row is `not_judged`, with the reason:
index_not_dumped (or dumped before its log, which went on); compacted (entries outlive their data, and data its entries); below_start (the
transaction began before the first dumped offset, or ended before the log start); hole; uncovered (behind a bad checksum, or beyond the end
of the dump); empty_abort (before 2.8, KAFKA-10702, an ABORT that closes nothing has an entry too, with first = last).
A broker's look-up ends at an entry whose lastStableOffset is too high (`model.visibility.look_up_ends_before`): entries behind it are in
the file, and yet not found.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.history.index_view import BEHIND_INDEX, index_entries
from eo_audit.history.sql import columns_of, named

_KEYS = ["replica_log_id", "producer_id", "marker_offset"]
_MARKER = ["marker_type", "judged", "span_first_offset", "span_last_offset", "records", "marker_at"]
_CLOSING = {
    "span_first_offset": "first_offset",
    "span_last_offset": "last_offset",
    "marker_at": "struct(marker_section_id AS section_id, marker_byte_offset AS byte_offset, marker_length AS length)",
}
_EMPTY = {
    "marker_offset": "base_offset",
    "span_first_offset": "CAST(NULL AS BIGINT)",
    "span_last_offset": "CAST(NULL AS BIGINT)",
    "records": "CAST(NULL AS BIGINT)",
    "marker_at": "struct(section_id, byte_offset, length)",
}
_ENTRY = {
    "marker_offset": "last_offset",
    "entry_first_offset": "first_offset",
    "entry_last_stable_offset": "last_stable_offset",
    "entry_at": "struct(section_id, byte_offset, length)",
    "ends_at_offset": "IF(highest.last_stable_offset > first_offset, highest.last_offset, NULL)",
    "ends_at_stable_offset": "IF(highest.last_stable_offset > first_offset, highest.last_stable_offset, NULL)",
}
_TELLS = "entry_at IS NOT NULL OR (marker_type = 'ABORT' AND span_first_offset IS NOT NULL)"
_FIRST = "least(entry_first_offset, span_first_offset)"
# Compacted, and nobody knows how far: the cleaner may have been everywhere.
_CLEANED_BELOW = "IF(compacted, coalesce(uncleaned_from, 9223372036854775807L), 0L)"
# Nobody knows whether the cleaner works here, and the data that the ABORT ended is not in the log.
_MAY_BE_CLEANED = "uncleaned_from IS NULL AND marker_type = 'ABORT' AND span_first_offset IS NULL AND entry_at IS NOT NULL"
_IN_UNKNOWN = """
    exists(segments, s -> array_contains(unknown_indexes, s.base_offset)
           AND marker_offset >= s.base_offset AND marker_offset < s.end_offset)"""
_ACROSS = f"exists(holes, h -> h.first_offset <= marker_offset AND h.last_offset >= {_FIRST})"
# Why nothing can be said, were entry and marker not the same; null where it can.
_WHY_NOT = f"""
    CASE WHEN marker_at IS NOT NULL AND (NOT judged OR marker_type IS NULL) THEN 'uncovered'
         WHEN marker_offset >= leo OR coalesce(marker_offset >= unjudged_from, false) THEN 'uncovered'
         WHEN entry_at IS NULL AND ({_IN_UNKNOWN} OR ({BEHIND_INDEX.format(at="marker_offset")})) THEN 'index_not_dumped'
         WHEN marker_offset < coalesce(log_start, first_offset) OR coalesce(entry_first_offset < first_offset, false) THEN 'below_start'
         WHEN marker_type = 'ABORT' AND span_first_offset IS NULL AND entry_first_offset = marker_offset THEN 'empty_abort'
         WHEN {_ACROSS} THEN 'hole'
         WHEN {_FIRST} < {_CLEANED_BELOW} OR ({_MAY_BE_CLEANED}) THEN 'compacted' END"""
_STATE = """
    CASE WHEN marker_type = 'ABORT' AND judged AND span_first_offset = entry_first_offset THEN 'match'
         WHEN why_not IS NOT NULL THEN 'not_judged'
         WHEN entry_at IS NULL THEN 'missing'
         WHEN marker_at IS NULL THEN 'extra'
         WHEN marker_type = 'COMMIT' THEN 'marker_is_commit'
         ELSE 'wrong_first' END"""
_OF_LOG = [
    "log_start",
    "leo",
    "first_offset",
    "compacted",
    "uncleaned_from",
    "segments",
    "unknown_indexes",
    "holes",
    "unjudged_from",
    "index_may_lag",
]
_ADDRESS = {name: f"coalesce(marker_at, entry_at).{name}" for name in ("section_id", "byte_offset", "length")}


def aborted_index(
    rows: DataFrame, spans: DataFrame, aborted_transactions: DataFrame, *, visibility: DataFrame, section_status: DataFrame
) -> DataFrame:
    """One row per aborted transaction of the log and per index entry, joined where they are the same.

    Args:
        rows: producer_history up to span_id; only markers that close nothing are read.
        spans: transaction_spans.
        aborted_transactions: the table.
        visibility: the table.
        section_status: the table, for the index sections that are read.
    """
    columns = [*_KEYS, *_MARKER]
    # Spans first: their marker closed data, and so must have an entry.
    closing = spans.where("marker_offset IS NOT NULL").selectExpr(*[f"{_CLOSING.get(name, name)} AS {name}" for name in columns])
    empty = rows.where("row_kind = 'marker' AND span_id IS NULL").selectExpr(*[f"{_EMPTY.get(name, name)} AS {name}" for name in columns])
    # As `TransactionIndex.collectAbortedTxns` walks: file by file, entry by entry.
    walked = Window.partitionBy("replica_log_id").orderBy("segment_base_offset", "entry_index").rowsBetween(Window.unboundedPreceding, -1)
    highest = F.max(F.struct("last_stable_offset", "last_offset")).over(walked)
    found = index_entries(aborted_transactions, section_status).withColumn("highest", highest)
    entries = found.selectExpr(*_KEYS[:2], *named(_ENTRY))
    # A full join: an entry without a marker is a fault (S03), as is a marker without an entry (S02).
    told = closing.union(empty).join(entries, _KEYS, "full").where(_TELLS)
    ends = F.broadcast(found.groupBy("replica_log_id").agg(F.max("last_offset").alias("newest_entry")))
    known = told.join(F.broadcast(visibility.select("replica_log_id", *_OF_LOG)), "replica_log_id").join(ends, "replica_log_id", "left")
    judged = known.selectExpr("*", f"{_WHY_NOT} AS why_not").selectExpr("*", f"{_STATE} AS state")
    return judged.selectExpr(*columns_of("aborted_index", {"reason": "IF(state = 'not_judged', why_not, NULL)", **_ADDRESS}))
