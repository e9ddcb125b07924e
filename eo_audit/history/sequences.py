"""producer_history up to the span: what each batch is to the batches of its producer before it.

The law is `eo_audit.model.producer_history`; here it is windows, one shuffle for all of them:
1. per producer id: epochs (markers included), the open transaction, the span and the marker that ends it;
2. per producer id and epoch, over data batches with sequences: unwrapped sequences, and the front, their running maximum;
3. per identity (producer id, epoch, unwrapped sequences): the newest earlier batch that is the same;
4. per producer id and epoch in order of sequences: the front that first carried what a batch repeats in another shape.

Rows without a producer (plain batches, other control batches) are groups of their own: together they would be the biggest group of all.
In chunks, 1 and 2 start from what the other chunks hand on (`stitch`), 3 is spread by identity anyway, and for 4 a repeat goes to the
chunk where the front passed its first sequence.
"""

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from eo_audit.history.log_order import log_keys
from eo_audit.history.sequence_columns import (
    ACTOR,
    CIRCLE,
    HISTORY_COLUMNS,
    INSIDE,
    LAST_UNWRAPPED,
    ROW_KIND,
    SEQUENCES,
    TRANSACTION_EVENT,
    cycle_step,
)
from eo_audit.history.stitch import with_inheritance
from eo_audit.store.schemas import schema

# What the windows look at. All other columns travel as one, `facts`: each window copies its rows, and few columns are quickly copied.
_SEEN = ["replica_log_id", "chunk", "position_in_log", "producer_epoch"]
_OF_ROW = ["partition_leader_epoch", "max_timestamp_ms", "base_offset"]
_LAST_COLUMN = "span_outcome"


def producer_rows(ordered: DataFrame, *, chunked: bool = False) -> DataFrame:
    """The columns of producer_history up to span_outcome, one row for each batch.

    Args:
        ordered: what `in_log_order` returns.
        chunked: work in its chunks, and `ordered` was made with chunk_bits. The rows are the same.
    """
    rows = _events(ordered)
    if chunked:
        rows = with_inheritance(rows, _producer_states(rows, log_keys(chunked=True), inherits=False))
    compared = _producer_states(rows, log_keys(chunked=chunked), inherits=chunked).transform(_with_twin)
    made = HISTORY_COLUMNS | {name: f"facts.{name}" for name in _facts()} | {name: f"row.{name}" for name in _OF_ROW}
    labelled = _with_reaching_front(compared, chunked=chunked)
    return labelled.selectExpr(*[f"{made.get(name, name)} AS {name}" for name in _columns()])


def _columns() -> list[str]:
    columns = schema("producer_history").columns
    return columns[: columns.index(_LAST_COLUMN) + 1]


def _facts() -> list[str]:
    return [name for name in _columns() if name not in {*HISTORY_COLUMNS, *_SEEN, *_OF_ROW}]


def _events(ordered: DataFrame) -> DataFrame:
    """Rows with their kind, their group (`actor`), and what they do to the producer's transaction and sequences."""
    renamed = {"marker_coordinator_epoch": "coordinator_epoch AS marker_coordinator_epoch"}
    facts = ", ".join(renamed.get(name, name) for name in [*_facts(), "hole_at", "cleaned_at", "removed_behind"])
    return ordered.selectExpr("*", f"{ROW_KIND} AS row_kind").selectExpr(
        *_SEEN,
        f"struct({facts}) AS facts",
        f"struct(producer_epoch, {', '.join(_OF_ROW)}) AS row",
        f"{ACTOR} AS actor",
        f"{TRANSACTION_EVENT} AS transaction_event",
        # A struct, though its one field may be null: `IGNORE NULLS` below would pass over a marker of which nobody knows the type.
        "IF(row_kind = 'marker', struct(marker_type AS type), NULL) AS marker",
        f"{SEQUENCES} AS sequences",
    )


def _producer_states(rows: DataFrame, log: list[str], *, inherits: bool) -> DataFrame:
    """Steps 1 and 2, within a log or a chunk; `inherits` goes on from the inherited columns."""
    rows = _with_producer_before(rows, [*log, "actor"], inherits=inherits)
    return _with_sequences(rows, [*log, "actor", "producer_epoch"], inherits=inherits)


def _frames(keys: list[str]) -> tuple[WindowSpec, WindowSpec, WindowSpec]:
    """Within the keys, in order of the log: bare (for lag), before this row, up to this row."""
    # By place in the text, not by offset: a log out of order is judged as it stands.
    bare = Window.partitionBy(*keys).orderBy("position_in_log")
    start = Window.unboundedPreceding
    return bare, bare.rowsBetween(start, -1), bare.rowsBetween(start, Window.currentRow)


def _with_producer_before(rows: DataFrame, keys: list[str], *, inherits: bool) -> DataFrame:
    """Add what the producer's other rows say: previous (row), next_marker, opened (null: unknown), max_epoch, newest_start, span_start."""
    bare, before, so_far = _frames(keys)
    start = "IF(transaction_event AND NOT coalesce(opened, false), struct(row.base_offset AS offset, opened IS NOT NULL AS certain), NULL)"
    newest_start = F.last(F.expr(start), ignorenulls=True).over(so_far)
    known = {
        "previous": F.lag("row").over(bare),
        "next_marker": F.expr("lead(marker) IGNORE NULLS").over(bare),
        "opened": F.last("transaction_event", ignorenulls=True).over(before),
        "max_epoch": F.max("producer_epoch").over(before),
    }
    if inherits:
        known = {name: F.coalesce(found, F.col(f"inherited.{name}")) for name, found in known.items()}
        # `coalesce` would take what the chunk itself has seen for all there is.
        known["max_epoch"] = F.greatest(known["max_epoch"], F.col("inherited.max_epoch"))
    span_start = "coalesce(newest_start.offset, inherited.span_start)" if inherits else "newest_start.offset"
    return rows.withColumns(known).withColumn("newest_start", newest_start).withColumn("span_start", F.expr(span_start))


def _with_sequences(rows: DataFrame, keys: list[str], *, inherits: bool) -> DataFrame:
    """Add unwrapped sequences, and what the epoch's earlier batches reached: entered_at, batches_before, front, is_front."""
    _, before, so_far = _frames(keys)
    found = {
        "before": F.last("sequences", ignorenulls=True).over(before),
        "entered_at": F.expr("first(previous.base_offset)").over(so_far),
        "batches_before": F.count("sequences").over(before),
    }
    # Sequences begin again at 0 after 2^31 - 1 (`DefaultRecordBatch.incrementSequence`): counted on, what comes round again is no repeat.
    cycles = F.sum(F.expr(cycle_step("before", "sequences.base"))).over(so_far)
    # Of batches that reach the same sequence the first counts: positions are negated, for `max` keeps the largest.
    reached = F.expr(f"IF(sequences IS NULL, NULL, struct({LAST_UNWRAPPED} AS last, -position_in_log AS order, row.base_offset AS offset))")
    front = F.max(reached).over(before)
    if inherits:
        found["before"] = F.coalesce(found["before"], F.col("inherited.sequences"))
        found["entered_at"] = F.when(F.col("inherited.epoch_known"), F.col("inherited.entered_at")).otherwise(found["entered_at"])
        found["batches_before"] += F.expr("coalesce(inherited.batches, 0)")
        cycles += F.expr("coalesce(inherited.cycles, 0)")
        front = F.greatest(front, F.col("inherited.front"))
    return (
        rows.withColumns(found)
        .withColumn("first_unwrapped", F.col("sequences.base") + cycles * CIRCLE)
        .withColumns({"last_unwrapped": F.expr(LAST_UNWRAPPED), "front": front})
        .withColumn("is_front", F.expr("coalesce(last_unwrapped > coalesce(front.last, last_unwrapped - 1), false)"))
    )


def _with_twin(rows: DataFrame) -> DataFrame:
    """Add `twin`: the newest earlier batch with the same epoch and unwrapped sequences."""
    # Rows without sequences would all have one identity, and be one group and one task: each gets a key of its own.
    alone = F.expr("IF(sequences IS NULL, position_in_log, NULL)")
    identity = Window.partitionBy("replica_log_id", "actor", "producer_epoch", "first_unwrapped", "last_unwrapped", alone)
    known = F.expr("struct(row, batches_before)")
    return rows.withColumn("twin", F.lag(known).over(identity.orderBy("position_in_log")))


def _with_reaching_front(rows: DataFrame, *, chunked: bool) -> DataFrame:
    """Add `reaching` to repeats without a twin that do not go past the front: the front that first reached their first sequence.

    In order of sequences, downwards, fronts stand at their last sequence and repeats at their first; so the newest front above a repeat
    is the one that reached it first.
    """
    reached_in = f"coalesce(IF({INSIDE}, get(filter(inherited.fronts, f -> f.last >= first_unwrapped), 0).chunk, NULL), chunk)"
    place = f"CASE WHEN is_front THEN last_unwrapped WHEN {INSIDE} THEN first_unwrapped END"
    where = [F.expr(reached_in)] if chunked else []
    downwards = Window.partitionBy("replica_log_id", "actor", "producer_epoch", *where).orderBy(
        F.expr(place).desc(), F.desc("is_front"), "position_in_log"
    )
    front = F.last(F.expr("IF(is_front, struct(first_unwrapped, row.base_offset), NULL)"), ignorenulls=True)
    return rows.withColumn("reaching", front.over(downwards.rowsBetween(Window.unboundedPreceding, -1)))
