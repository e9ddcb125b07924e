"""Up to where each replica log may be read, what holds it back there, and what a read_committed consumer gets of it.

The law is `eo_audit.model.lso`. What is open at the log's end comes from
1. the `.snapshot` at LEO where there is one: up to 2.3 a broker forgets producers whose data is gone, which no replay can know;
2. else the spans without a marker, and open transactions of the newest snapshot that began below the first dumped offset, unless a
   marker of their producer follows.
A closed transaction holds the LSO too while its marker is not below the high watermark. Where the coordinator holds a transaction open
whose data may lie below the dump, nobody knows the LSO (`unseen_transactions`), of a log that was not read neither, nor of one whose dumps
nothing puts in order: it is null.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.index_view import view_differences, with_difference
from eo_audit.history.sections import IS_INTERNAL
from eo_audit.history.sql import columns_of, expressions, named
from eo_audit.history.unseen_transactions import unseen_transactions
from eo_audit.store.schemas import schema

# Behind any of these an open transaction, or the marker that ended one, may be unseen: then coverage is partial.
BROKEN = (
    *("hole", "unexplained", "segment_missing", "head_missing", "disorder", "crc_invalid", "not_judged"),
    *("truncated", "shallow", "not_supported", "unordered"),
)
_OF_COVERAGE = {
    "broken": f"state IN {BROKEN}",
    "hole": "IF(state IN ('hole', 'unexplained', 'segment_missing', 'not_observed', 'unordered'), struct(first_offset, last_offset), NULL)",
    "unjudged_at": "IF(state = 'not_judged', first_offset, NULL)",
}
_OF_LOG = {
    "told": "collect_list(txn)",
    "broken": "bool_or(broken)",
    "missing": "collect_list(hole)",
    "unjudged_from": "min(unjudged_at)",
}
# What may hold the LSO of a log, and markers that closed what a snapshot calls open.
_TRANSACTION = """struct({first} AS first_offset, producer_id, '{source}' AS source, {epoch} AS epoch, {clock} AS last_timestamp_ms,
    {marker} AS marker_offset, {address}section_id AS section_id, {address}byte_offset AS byte_offset, {address}length AS length) AS txn"""
_OF_SPAN = _TRANSACTION.format(
    first="first_offset", source="span", epoch="last_epoch", clock="last_timestamp_ms", marker="marker_offset", address="data_"
)
_OF_SNAPSHOT = _TRANSACTION.format(
    first="current_txn_first_offset", source="snapshot", epoch="producer_epoch", clock="last_timestamp_ms", marker="NULL", address=""
)
_OF_MARKER = _TRANSACTION.format(
    first="base_offset", source="marker", epoch="producer_epoch", clock="max_timestamp_ms", marker="base_offset", address=""
)
# The first field of each is `first_offset`, so the least of such structs (`array_min`) is the oldest transaction.
_OF_SPANS = "filter(transactions, t -> t.source = 'span' AND t.marker_offset IS NULL)"
_SAME = "get(filter(of_spans, s -> s.producer_id = t.producer_id AND s.first_offset = t.first_offset), 0)"
_CLOSED = "exists(transactions, m -> m.source = 'marker' AND m.producer_id = t.producer_id AND m.marker_offset >= snapshot_offset)"
# A snapshot only knows that a transaction is open, its span knows its first batch.
_OPEN_NOW = f"""
    IF(by_snapshot, transform(filter(transactions, t -> t.source = 'snapshot'), t -> coalesce({_SAME}, t)),
       array_sort(concat(of_spans, filter(transactions, t -> t.source = 'snapshot' AND NOT {_CLOSED}))))"""
# `ProducerStateManager.unreplicatedTxns`: what has ended holds the LSO until its marker is below the high watermark.
_UNREPLICATED = "filter(transactions, t -> t.source = 'span' AND t.marker_offset IS NOT NULL)"
# `UnifiedLog.maybeIncrementFirstUnstableOffset`: retention does not wait for open transactions, so one may begin below the log start; then
# the log start itself is the first unstable offset.
_STABLE = "least({hw}, greatest(array_min({transactions}).first_offset, log_start))"
# Within one SELECT a replaced column is still the old one, so each step takes what the step before it made: `lso` is first what the log
# shows, then what may be believed of that.
_LSO = (
    {"transactions": "coalesce(told, array())"},
    {"of_spans": _OF_SPANS, "by_snapshot": "coalesce(snapshot_offset = leo, false)"},
    {"open_now": _OPEN_NOW, "unreplicated": _UNREPLICATED},
    {
        "blocker": "array_min(open_now)",
        "lso": f"IF(size(open_now) + size(unreplicated) > 0, {_STABLE.format(hw='hw', transactions='concat(open_now, unreplicated)')}, hw)",
        "lso_if_hw_is_leo": f"IF(size(open_now) > 0, {_STABLE.format(hw='leo', transactions='open_now')}, leo)",
    },
    # `pinned` is null where nothing older can be open, false where it may be: then only a snapshot at LEO tells, or an LSO that lies at the
    # log start already and cannot be lower.
    {
        "unknown": """NOT supported OR coalesce(size(unordered_before) > 0 AND NOT (by_snapshot AND lso >= first_offset), false)
            OR coalesce(NOT by_snapshot AND NOT pinned AND lso > log_start, false)""",
        "held": "coalesce(pinned, false)",
    },
    {
        "lso": "CASE WHEN unknown THEN NULL WHEN held THEN least(hw, log_start) ELSE lso END",
        "lso_if_hw_is_leo": "CASE WHEN unknown THEN NULL WHEN held THEN log_start ELSE lso_if_hw_is_leo END",
    },
    {"lso_source": "CASE WHEN lso IS NULL THEN NULL WHEN by_snapshot THEN 'snapshot' WHEN held THEN 'coordinator' ELSE 'replay' END"},
)


def truth(believed: str) -> str:
    """SQL of what was decided about a data or plain row: the coordinator's word on its instance, else the marker that closes its span.

    `believed` says whether that marker is really the one.
    """
    return f"""
    CASE WHEN row_kind NOT IN ('data', 'plain') THEN NULL
         WHEN NOT coalesce(is_transactional, false) THEN 'plain'
         WHEN instance_decision = 'COMMIT' THEN 'committed'
         WHEN instance_decision = 'ABORT' THEN 'aborted'
         WHEN {believed} THEN coalesce(span_outcome, 'unknown')
         ELSE 'unknown' END"""


_RECORDS = "coalesce(count, last_offset - base_offset + 1)"
# The client gives data its time (CreateTime); markers, LogAppendTime and batches of internal topics have the broker's.
_BROKER_MS = "IF(judged AND (row_kind = 'marker' OR timestamp_type = 'LogAppendTime' OR internal), max_timestamp_ms, NULL)"
_IS_ITS_FIRST = "producer_id = blocker.producer_id AND base_offset = blocker.first_offset"
_HELD_BACK = {
    "held_back_records": f"sum(IF(behind AND truth IN ('committed', 'aborted', 'plain'), {_RECORDS}, 0L))",
    "held_back_committed_records": f"sum(IF(behind AND truth IN ('committed', 'plain'), {_RECORDS}, 0L))",
    "blocker_instance_id": f"max(IF(behind AND {_IS_ITS_FIRST}, instance_id, NULL))",
    # Brokers' clocks on both sides of the first open offset bound the age of what is open; the client's own time proves nothing.
    "blocker_began_after_ms": f"max(IF(base_offset < blocker.first_offset, {_BROKER_MS}, NULL))",
    "blocker_open_by_ms": f"min(IF(base_offset >= blocker.first_offset, {_BROKER_MS}, NULL))",
}
_UNKNOWN_ENDS = "transform(filter(segments, s -> array_contains(unknown_indexes, s.base_offset)), s -> s.end_offset)"
_COLUMNS = {
    "blocker_producer_id": "blocker.producer_id",
    "blocker_epoch": "blocker.epoch",
    "blocker_first_offset": "blocker.first_offset",
    "blocker_last_timestamp_ms": "blocker.last_timestamp_ms",
    **{f"blocker_{name}": f"blocker.{name}" for name in ("section_id", "byte_offset", "length")},
    "open_transactions": "size(array_distinct(transform(open_now, t -> t.producer_id)))",
    "held_back_offsets": "coalesce(hw - lso, 0L)",
    "held_back_records": "coalesce(held_back_records, 0L)",
    "held_back_committed_records": "coalesce(held_back_committed_records, 0L)",
    "index_known_from": f"coalesce(array_max({_UNKNOWN_ENDS}), 0L)",
    "coverage": "CASE WHEN NOT supported THEN 'none' WHEN coalesce(broken, false) OR NOT whole THEN 'partial' ELSE 'full' END",
    "holes": "coalesce(missing, array())",
}


def visibility(
    rows: DataFrame,
    spans: DataFrame,
    producer_snapshots: DataFrame,
    *,
    replica_logs: DataFrame,
    coverage: DataFrame,
    clusters: DataFrame,
    instances: DataFrame | None = None,
) -> DataFrame:
    """One row per replica log: log start, high watermark, LEO, LSO, and what is held back.

    Args:
        rows: producer_history up to marker_role.
        spans: transaction_spans.
        producer_snapshots: the table.
        replica_logs: the table.
        coverage: the table.
        clusters: the table, for the audit's now.
        instances: transaction_instances; without them nothing is known of transactions that no batch shows.
    """
    opened = _transactions(rows, spans, producer_snapshots, replica_logs)
    broken = coverage.selectExpr("replica_log_id", *named(_OF_COVERAGE))
    seen = opened.unionByName(broken, allowMissingColumns=True).groupBy("replica_log_id").agg(*expressions(_OF_LOG))
    stable = replica_logs.join(F.broadcast(seen), "replica_log_id", "left")
    if instances is None:
        # Without a coordinator log nobody tells of transactions that no batch shows: null, not false.
        stable = stable.withColumn("pinned", F.lit(None).cast("boolean"))
    else:
        unseen = unseen_transactions(instances, rows, replica_logs, clusters)
        stable = stable.join(F.broadcast(unseen), "replica_log_id", "left")
    for step in _LSO:
        stable = stable.selectExpr(*[name for name in stable.columns if name not in step], *named(step))
    # Most logs hold nothing back: batches are counted for those only that do.
    stuck = F.broadcast(stable.where("lso < hw").selectExpr("replica_log_id", "lso", "hw", "blocker", f"{IS_INTERNAL} AS internal"))
    of_stuck = rows.join(stuck, "replica_log_id").selectExpr(
        "*", f"{truth('judged')} AS truth", "base_offset >= lso AND last_offset < hw AS behind"
    )
    held = of_stuck.groupBy("replica_log_id").agg(*expressions(_HELD_BACK))
    now = F.broadcast(clusters.select("cluster", "as_of_ms", "as_of_source"))
    known = stable.join(F.broadcast(held), "replica_log_id", "left").join(now, "cluster", "left")
    return known.selectExpr(*columns_of("visibility", _COLUMNS))


def _transactions(rows: DataFrame, spans: DataFrame, producer_snapshots: DataFrame, replica_logs: DataFrame) -> DataFrame:
    """What may hold the LSO of each log, as `txn`."""
    bounds = F.broadcast(replica_logs.select("replica_log_id", "hw"))
    of_spans = spans.join(bounds, "replica_log_id").where("outcome = 'open' OR marker_offset >= hw")
    newest = F.broadcast(replica_logs.selectExpr("snapshot_section_id AS section_id", "leo", "first_offset AS log_first_offset"))
    opened = producer_snapshots.where("current_txn_first_offset IS NOT NULL").join(newest, "section_id")
    # A snapshot that is older than LEO is believed where it speaks of offsets below the first dumped one: no span can show those.
    told = opened.where("snapshot_offset = leo OR current_txn_first_offset < log_first_offset")
    unseen = F.broadcast(told.where("snapshot_offset <> leo").select("replica_log_id", "producer_id"))
    markers = rows.where("row_kind = 'marker'").join(unseen, ["replica_log_id", "producer_id"], "left_semi")
    parts = [(of_spans, _OF_SPAN), (told, _OF_SNAPSHOT), (markers, _OF_MARKER)]
    first, second, third = (part.selectExpr("replica_log_id", txn) for part, txn in parts)
    return first.union(second).union(third)


_IS_READ = "row_kind IN ('data', 'plain') AND judged AND last_offset < lso AND last_offset >= log_start"
# Null outside of what a consumer reads, and where the index is not known.
_RETURNED = f"""
    CASE WHEN NOT coalesce({_IS_READ}, false) THEN NULL
         WHEN NOT coalesce(is_transactional, false) THEN true
         WHEN base_offset >= index_known_from THEN coalesce(span_outcome = 'aborted', false) = {{differs}} END"""
_MARKED = {
    "truth": truth("judged AND NOT unsure"),
    "returned": _RETURNED.format(differs="bounded"),
    "returned_from_segment": _RETURNED.format(differs="unbounded"),
    "below_lso": "coalesce(last_offset < lso, false)",
}


def mark_visibility(rows: DataFrame, visibility: DataFrame, aborted_transactions: DataFrame, *, section_status: DataFrame) -> DataFrame:
    """The table producer_history: rows with truth, returned, returned_from_segment and below_lso.

    Args:
        rows: producer_history up to marker_role.
        visibility: the table.
        aborted_transactions: the table.
        section_status: the table, for the index sections that are read.
    """
    differences = view_differences(rows, aborted_transactions, visibility, section_status)
    bounds = F.broadcast(visibility.select("replica_log_id", "log_start", "lso", "index_known_from"))
    placed = with_difference(rows, differences).join(bounds, "replica_log_id", "left")
    return placed.selectExpr(*[f"{_MARKED.get(name, name)} AS {name}" for name in schema("producer_history").columns])
