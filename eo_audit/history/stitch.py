"""What a chunk of a replica log inherits from the other chunks, for each producer id and epoch that occur in it.

A first pass over narrow rows starts each chunk from nothing and sums it up, one row for each (chunk, producer id, epoch). In order of
chunks these sums give what a second pass starts from. The sums are associative: last row, highest epoch, newest marker or transactional
batch, circles of the sequence, front, count of batches; and, from the chunks behind, the next marker.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.history.sequence_columns import CIRCLE, CIRCLE_BITS, cycle_step

_KEYS = ["replica_log_id", "chunk", "actor", "producer_epoch"]
_SEQUENCED_AT = "IF(sequences IS NULL, NULL, position_in_log)"
_INHERITED = [
    *["previous", "max_epoch", "opened", "span_start", "next_marker"],
    *["epoch_known", "entered_at", "sequences", "cycles", "front", "batches", "fronts"],
]


def with_inheritance(rows: DataFrame, states: DataFrame) -> DataFrame:
    """Rows with what their chunk inherits, as the struct `inherited`.

    Args:
        rows: rows with replica_log_id, chunk, actor and producer_epoch.
        states: the same rows after a first pass in chunks (`sequences._producer_states`).
    """
    inherited = _sums(states).transform(_of_producers).transform(_of_epochs)
    packed = ", ".join(f"inherited_{name} AS {name}" for name in _INHERITED)
    # The first chunk of a log inherits nothing.
    return rows.join(inherited.selectExpr(*_KEYS, f"struct({packed}) AS inherited"), _KEYS, "left")


def _sums(states: DataFrame) -> DataFrame:
    """One row for each chunk, producer id and epoch."""
    event_at = "IF(transaction_event IS NULL, NULL, position_in_log)"
    sums = {
        "last_position": "max(position_in_log)",
        "last_row": "max_by(row, position_in_log)",
        "row_before": "min_by(previous.base_offset, position_in_log)",
        "event_position": f"max({event_at})",
        "event": f"max_by(transaction_event, {event_at})",
        "marker_position": "min(IF(marker IS NULL, NULL, position_in_log))",
        "first_marker": "min_by(marker, IF(marker IS NULL, NULL, position_in_log))",
        "start": "max_by(newest_start, position_in_log)",
        "batches": "count(sequences)",
        "first_base": f"min_by(sequences.base, {_SEQUENCED_AT})",
        "last_sequences": f"max_by(sequences, {_SEQUENCED_AT})",
        # How often the sequences went round within the chunk: the next one counts on from there.
        "cycles_inside": f"shiftright(max_by(first_unwrapped - sequences.base, {_SEQUENCED_AT}), {CIRCLE_BITS})",
        # Of fronts at one sequence the first of the log counts: its position is negated, for `max` keeps the largest.
        "front_inside": "max(IF(is_front, struct(last_unwrapped AS last, -position_in_log AS order, row.base_offset AS offset), NULL))",
    }
    # A row without a producer is a group of its own, and inherits nothing.
    return states.where("actor >= 0").groupBy(*_KEYS).agg(*[F.expr(f"{sql} AS {name}") for name, sql in sums.items()])


def _of_producers(sums: DataFrame) -> DataFrame:
    """Add what a producer id inherits: its rows are those of all its epochs."""
    # By range: the epochs of one chunk do not inherit from each other.
    by_chunk = Window.partitionBy("replica_log_id", "actor").orderBy("chunk")
    earlier = by_chunk.rangeBetween(Window.unboundedPreceding, -1)
    later = by_chunk.orderBy(F.desc("chunk")).rangeBetween(Window.unboundedPreceding, -1)
    # A span that seems to start with the chunk's first transactional batch does not, if one was open already.
    start = "IF(NOT start.certain AND coalesce(inherited_opened, false), NULL, start.offset)"
    start_position = f"IF({start} IS NULL, NULL, last_position)"
    return sums.withColumns(
        {
            "inherited_previous": F.expr("max_by(last_row, last_position)").over(earlier),
            "inherited_max_epoch": F.max("producer_epoch").over(earlier),
            "inherited_opened": F.expr("max_by(event, event_position)").over(earlier),
            # The marker that ends a span may stand chunks behind it.
            "inherited_next_marker": F.expr("min_by(first_marker, marker_position)").over(later),
        }
    ).withColumn("inherited_span_start", F.expr(f"max_by({start}, {start_position})").over(earlier))


def _of_epochs(sums: DataFrame) -> DataFrame:
    """Add what a producer id and epoch inherit."""
    by_chunk = Window.partitionBy("replica_log_id", "actor", "producer_epoch").orderBy("chunk")
    # One row a chunk here, so by rows; a producer above has one for each of its epochs.
    earlier = by_chunk.rowsBetween(Window.unboundedPreceding, -1)
    so_far = by_chunk.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    cycles_before = f"(cycles_after - cycles_inside) * {CIRCLE}"
    front = f"struct(front_inside.last + {cycles_before} AS last, front_inside.order AS order, front_inside.offset AS offset)"
    raised = "front_after.last > coalesce(inherited_front.last, front_after.last - 1)"
    return (
        sums.withColumns(
            {
                "inherited_epoch_known": F.expr("count(*)").over(earlier) > 0,
                "inherited_sequences": F.last("last_sequences", ignorenulls=True).over(earlier),
                "inherited_batches": F.sum("batches").over(earlier),
                "inherited_entered_at": F.expr("first(coalesce(row_before, inherited_previous.base_offset))").over(earlier),
            }
        )
        .withColumn("step", F.expr(cycle_step("inherited_sequences", "first_base")))
        .withColumn("cycles_after", F.expr("sum(step + cycles_inside)").over(so_far))
        .withColumn("front_after", F.expr(f"IF(front_inside IS NULL, NULL, {front})"))
        .withColumn("inherited_cycles", F.max_by("cycles_after", "chunk").over(earlier))
        .withColumn("inherited_front", F.max("front_after").over(earlier))
        # Only the chunks that raised it: a repeat goes to the one that passed its first sequence (`sequences._with_reaching_front`).
        .withColumn("inherited_fronts", F.expr(f"collect_list(IF({raised}, struct(front_after.last AS last, chunk), NULL))").over(earlier))
    )
