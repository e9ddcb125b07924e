"""C21 number-repeated: ids that count up went back to a number that was committed.

Proves: Ids of which each is for one number (prefix, subtask, checkpoint: Flink's KafkaSink) were initialised again after their transaction
had been committed. A Flink job does that when it starts from an earlier checkpoint, or without one, and what it reads again it writes
again. It does not prove whose the ids are, nor that the same records were read again.

Bad history: out-0-5 and out-0-6 are committed; the job is started from checkpoint 4, and initialises both again.

Legal look-alike: Ids that one producer uses for many transactions; pooled ids of Flink, which begin with number 0; a job that goes back to
its newest checkpoint, behind which nothing is committed.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.numbers import MOST_NAMED, NUMBER, NUMBERED, PREFIX, written_by_instance
from eo_audit.rules.owners import owner
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.words import count, moment, shown, some

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

_COLUMNS = ("ids", "prefix", "lowest", "places", "written_records", "went_back_at")


def repeated(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Prefixes that went back behind what was committed, in the form of a hit: the row of the first id that was initialised again."""
    from pyspark.sql import functions as F  # late, for whoever reads the catalogue and needs no Spark

    from eo_audit.rules.cases import hits

    entries = histories["coordinator_history"].where(NUMBERED).selectExpr("*", f"{PREFIX} AS prefix", f"{NUMBER} AS number")
    # `TransactionNamingStrategy.POOLING` counts from 0, checkpoints from 1. An id of a checkpoint is initialised before each transaction.
    used_again = "number = 0 OR (status = 'Ongoing' AND previous_status IN ('CompleteCommit', 'CompleteAbort'))"
    beside = entries.withColumn("is_used_again", F.expr(f"coalesce(bool_or({used_again}) OVER (PARTITION BY cluster, prefix), false)"))
    alone = beside.where("status = 'Empty' AND previous_status = 'CompleteCommit' AND NOT is_used_again")
    ends = histories["transaction_instances"].where("decision = 'COMMIT'").select("instance_id", "replica_log_id", "complete_offset")
    of_instance = written_by_instance(histories)
    # The entry before is the CompleteCommit of what was written first.
    before = ends.withColumnsRenamed({"complete_offset": "previous_offset", "instance_id": "first_instance"})
    told = alone.join(before, ["replica_log_id", "previous_offset"], "left")
    told = told.join(of_instance.withColumnRenamed("instance_id", "first_instance"), "first_instance", "left")
    totals = {
        "ids": "array_sort(collect_set(transactional_id))",
        "lowest": "min(number)",
        "places": "array_sort(array_distinct(flatten(collect_list(written))))",
        "written_records": "sum(records)",
        "went_back_at": "min(batch_timestamp_ms)",
        "row": "min_by(struct(*), struct(number, transactional_id, entry_offset))",
    }
    grouped = told.groupBy("cluster", "prefix").agg(*[F.expr(total).alias(name) for name, total in totals.items()])
    kept = [f"row.{name}" for name in entries.columns if name not in ("cluster", "prefix")]
    found = grouped.selectExpr("cluster", "prefix", *kept, *[n for n in totals if n != "row"], "'C21' AS rule")
    columns = ("cluster", *_COLUMNS)
    return hits(SOURCES["coordinator_history"], found, key="concat_ws(' ', cluster, prefix)", weight="0", columns=columns)


RULE = Rule(
    code="C21",
    slug="number-repeated",
    severity="info",
    reads=("coordinator_history", "transaction_instances", "instance_partitions"),
    subject="coordinator_entry",
    find=repeated,
    by="",
    found=f"cluster transactional_id producer_epoch {' '.join(_COLUMNS)}",
    informs=True,
    cause="a Flink job was started from a checkpoint or savepoint before its newest one, or without any",
    remedy=(
        "If the job was started so on purpose: tell who reads its topics, or let them de-duplicate by business key. If not: start it from "
        "its newest checkpoint, or from a savepoint behind which it did not run any more."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """How far back, and how much had been committed there; acquitted where the ids look like another owner's."""
    row = case.row
    ids, prefix, lowest = row.texts("ids"), shown(row.word("prefix")), row.number("lowest")
    if owner(ids[0]).family != "flink":
        return None
    at, records, places = (
        moment(row.number("went_back_at"), context.now(row.word("cluster"))),
        row.maybe("written_records"),
        row.texts("places"),
    )
    of_them = f"{count(records, 'committed record')} in {some([shown(place) for place in places])}" if records else "its committed records"
    what = "1 id whose transaction was committed was" if len(ids) == 1 else f"{len(ids)} ids whose transactions were committed were"
    named = some([shown(name) for name in ids], most=MOST_NAMED)
    message = (
        f"{prefix} went back to number {lowest} at {at}: {what} initialised again ({named}). If this is Flink's KafkaSink, its job was "
        f"started from an earlier checkpoint, or without one, and writes again what it reads again: {of_them} may stand twice"
    )
    return Explanation(
        message,
        certainty="likely",
        details={"ids": ids, "lowest": lowest, "partitions": places, "records": records},
        transactional_id=row.text("transactional_id"),
        producer_epoch=row.maybe("producer_epoch"),
        record_count=records,
    )
