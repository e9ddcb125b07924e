"""Where what a read_committed consumer gets differs from what the markers say: the simulated fetches of each segment.

The law is `eo_audit.model.visibility`. A fetch finds an index entry when it lies in its segment's file or a later one, reaches into what
the fetch covers, and no entry walked before it has a lastStableOffset at or beyond the upper bound. From the entry's first offset on its
producer id is dropped, until an ABORT marker of the id or the end of the fetch. A sound index drops exactly the aborted transactions, so
only the differences are kept: few rows, that any number of batches can be compared with.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.sql import named

# A join by range would hold every batch against every interval of its producer; by buckets of 4096 offsets it is a join by equality.
BUCKET_BITS = 12
# An index that may be older than its log tells nothing of what stands behind its newest entry.
BEHIND_INDEX = "index_may_lag AND {at} > coalesce(newest_entry, -1L)"
_KEYS = ("replica_log_id", "producer_id", "leo")
# One fetch for each segment, from its start: `LocalLog.collectAbortedTransactions` walks from the file of the segment that is read, so
# where a fetch starts decides which entries it meets.
_FETCHES = """
    transform(filter(segments, s -> s.end_offset > log_start), s -> struct(
        s.base_offset, greatest(s.base_offset, log_start) AS start, s.end_offset AS end, least(s.end_offset, lso) AS upper))"""
# An entry lies in the fetch's file or a later one, and its transaction reaches into what the fetch covers.
_REACHES = "f.base_offset <= segment_base_offset AND first_offset < f.end AND last_offset >= f.start"
# The walk from the fetch's file gets as far as the entry, which begins below the upper bound.
# `TransactionIndex.collectAbortedTxns` ends the walk at the first entry whose lastStableOffset is at or beyond the upper bound: one that is
# too high hides all behind it.
_FINDS = """
    first_offset < {upper} AND NOT coalesce(stable_before >= {upper}, false)
    AND NOT exists(files, x -> x.file >= fetch.base_offset AND x.file < segment_base_offset AND x.highest >= {upper})"""
_EVENT_FIELDS = {
    "marker_offset": "BIGINT",
    "clears": "BOOLEAN",
    "until": "BIGINT",
    "bounded": "BOOLEAN",
    "unbounded": "BOOLEAN",
    "unsure_until": "BIGINT",
}


def _event(at: str, **more: str) -> str:
    """SQL of what happens at an offset."""
    fields = (f"CAST({more.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind in _EVENT_FIELDS.items())
    return f"struct({at} AS at, {', '.join(fields)})"


def _events(*parts: tuple[str, str]) -> str:
    """SQL that gives one row for each of the (condition, event) that holds."""
    each = ", ".join(f"IF(coalesce({when}, false), {event}, NULL)" for when, event in parts)
    return f"inline(filter(array({each}), event -> event IS NOT NULL))"


_IS_ABORT = "marker_type = 'ABORT'"
_IN_DOUBT = "((predecessor = 'hole' AND base_offset > span_id) OR (row_kind = 'marker' AND span_id IS NOT NULL AND NOT judged))"
# Where an aborted transaction starts, where an ABORT takes its producer out of the aborted set, and up to where a span ends in doubt:
# behind a hole, or at a marker that is not judged.
_OF_ROW = _events(
    (f"{_IS_ABORT} AND span_id IS NOT NULL AND index_is_known", _event("span_id", marker_offset="base_offset")),
    # What a marker of a shallow dump says is not shown: an ABORT, if the index says so.
    # It clears what an older entry dropped also where the index is not known any more.
    ("row_kind = 'marker' AND coalesce(marker_type, 'ABORT') = 'ABORT' AND index_is_begun", _event("base_offset", clears="true")),
    (_IN_DOUBT, _event("span_id", unsure_until="base_offset")),
    (_IN_DOUBT, _event("base_offset")),
)
# Where a fetch starts to drop a producer, and where it ends. The consumer met a marker in a hole, though the dumps do not show it.
# `CompletedFetch`: each response brings its own aborted transactions, and its set of aborted producer ids begins empty.
_OF_ENTRY = _events(
    ("true", _event("greatest(first_offset, fetch.start)", until="fetch.end", bounded="bounded", unbounded="unbounded")),
    ("true", _event("fetch.end")),
    ("exists(holes, h -> last_offset BETWEEN h.first_offset AND h.last_offset)", _event("last_offset", clears="true")),
)
_IN_ORDER = "(PARTITION BY replica_log_id, producer_id ORDER BY at)"
# By range: all that happens at one offset has happened there, in whatever order the rows come.
_UP_TO_HERE = "(PARTITION BY replica_log_id, producer_id ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
_SO_FAR = {
    "cleared": f"coalesce(max(IF(clears, at, NULL)) OVER {_UP_TO_HERE}, -1L)",
    "span": f"max(IF(marker_offset IS NOT NULL, struct(at, marker_offset), NULL)) OVER {_UP_TO_HERE}",
    "drop": f"max(IF(bounded, struct(at, until), NULL)) OVER {_UP_TO_HERE}",
    "drop_unbounded": f"max(IF(unbounded, struct(at, until), NULL)) OVER {_UP_TO_HERE}",
    "unsure_so_far": f"max(unsure_until) OVER {_UP_TO_HERE}",
    "to_offset": f"coalesce(lead(at) OVER {_IN_ORDER}, leo)",
}
# Dropped where no aborted span is, or not dropped where one is.
_DIFFERS = "coalesce({drop}.at > cleared AND at < {drop}.until, false) <> coalesce(at < span.marker_offset, false)"
_DIFFERENCE = {
    "from_offset": "at",
    "bounded": _DIFFERS.format(drop="drop"),
    "unbounded": _DIFFERS.format(drop="drop_unbounded"),
    "unsure": "coalesce(at < unsure_so_far, false)",
}


def index_entries(aborted_transactions: DataFrame, section_status: DataFrame) -> DataFrame:
    """The entries of the index sections that are read."""
    read = section_status.where("kind = 'txnindex' AND is_read").select("section_id")
    return aborted_transactions.join(F.broadcast(read), "section_id", "left_semi")


def view_differences(rows: DataFrame, aborted_transactions: DataFrame, visibility: DataFrame, section_status: DataFrame) -> DataFrame:
    """Offsets whose batches a consumer gets although an ABORT closed them, or does not get although none did.

    Args:
        rows: producer_history up to span_id; only markers, and rows of a span behind a hole, are read.
        aborted_transactions: the table.
        visibility: the table, for segments, log start, LSO, holes, and from where on the index is known.
        section_status: the table, for the index sections that are read.

    Returns:
        replica_log_id, producer_id, bucket (last offset of a batch without its lowest BUCKET_BITS), from_offset and to_offset (exclusive,
        of last offsets), bounded and unbounded: it is so when the index is looked up to min(LSO, end of segment), or to the end of the
        segment; unsure: a hole lies before the marker that seems to close it, or that marker is not judged. Intervals of one producer do
        not overlap.
    """
    entries = index_entries(aborted_transactions, section_status)
    logs = F.broadcast(
        visibility.selectExpr("replica_log_id", "leo", "holes", "index_known_from", "index_may_lag", f"{_FETCHES} AS fetches")
    )
    ends = F.broadcast(entries.groupBy("replica_log_id").agg(F.max("last_offset").alias("newest_entry")))
    telling = rows.where(f"row_kind = 'marker' OR {_IN_DOUBT}").join(logs, "replica_log_id")
    begun = "base_offset >= index_known_from"
    known = f"{begun} AND NOT ({BEHIND_INDEX.format(at='base_offset')})"
    told = telling.join(ends, "replica_log_id", "left").selectExpr("*", f"{begun} AS index_is_begun", f"{known} AS index_is_known")
    of_rows = told.selectExpr(*_KEYS, _OF_ROW)
    events = of_rows.union(_walked(entries).join(logs, "replica_log_id").transform(_found))
    told = events.selectExpr("*", *named(_SO_FAR)).selectExpr("replica_log_id", "producer_id", "to_offset", *named(_DIFFERENCE))
    # Of a sound index nothing is left here: the join with all batches is then one with an empty table.
    differing = told.where("(bounded OR unbounded OR unsure) AND from_offset < to_offset")
    buckets = f"explode(sequence(shiftright(from_offset, {BUCKET_BITS}), shiftright(to_offset - 1, {BUCKET_BITS}))) AS bucket"
    return differing.selectExpr("*", buckets)


def with_difference(rows: DataFrame, differences: DataFrame) -> DataFrame:
    """Rows with bounded, unbounded and unsure of `view_differences`; all false where nothing is told."""
    found = differences.withColumnsRenamed({"replica_log_id": "log", "producer_id": "producer"})
    here = F.expr(
        f"""replica_log_id = log AND producer_id = producer AND shiftright(last_offset, {BUCKET_BITS}) = bucket
            AND last_offset >= from_offset AND last_offset < to_offset"""
    )
    flags = [f"coalesce({name}, false) AS {name}" for name in ("bounded", "unbounded", "unsure")]
    return rows.join(F.broadcast(found), here, "left").selectExpr(*rows.columns, *flags)


def _walked(entries: DataFrame) -> DataFrame:
    """Entries with what the walk meets before them: in their own file (stable_before), and at most in each file (files)."""
    # In the order of the file, not of offsets: so the broker reads it, and a damaged index is out of order.
    before = "max(last_stable_offset) OVER (PARTITION BY section_id ORDER BY entry_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    highest = entries.groupBy("replica_log_id", F.col("segment_base_offset").alias("file")).agg(
        F.max("last_stable_offset").alias("highest")
    )
    # A log has few segments with an index: what they reach fits into one array, which every entry carries.
    files = highest.groupBy("replica_log_id").agg(F.collect_list(F.struct("file", "highest")).alias("files"))
    return entries.selectExpr("*", f"{before} AS stable_before").join(F.broadcast(files), "replica_log_id")


def _found(walked: DataFrame) -> DataFrame:
    """Entries with logs, as the events of each fetch they reach into."""
    pairs = walked.selectExpr("*", f"explode(filter(fetches, f -> {_REACHES})) AS fetch")
    found = {"bounded": _FINDS.format(upper="fetch.upper"), "unbounded": _FINDS.format(upper="fetch.end")}
    return pairs.selectExpr("*", *named(found)).selectExpr(*_KEYS, _OF_ENTRY)
