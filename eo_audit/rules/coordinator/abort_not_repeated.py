"""C20 abort-not-repeated: a transaction timed out, and its job went on with the next number without writing it again.

Proves: Ids that count up (prefix, subtask, checkpoint: Flink's KafkaSink) went on behind a transaction that the coordinator had aborted
after its timeout, and no id of its number or of a lower one came back. A job that goes back to an earlier checkpoint takes these ids again;
one that goes on has a finished checkpoint that counts the aborted records as written. It does not prove whose the ids are.

Bad history: out-0-7 is aborted by timeout while its job is down; the job begins out-0-8 and out-0-9, and out-0-7 never comes back.

Legal look-alike: A job that goes back and begins out-0-7 again; one that was not started again yet; ids that are used again and again.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.numbers import MOST_NAMED, NUMBER, NUMBERED, PREFIX, written_by_instance
from eo_audit.rules.owners import owner
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.words import count, moment, shown, some, timeout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

_COLUMNS = ("ids", "prefix", "number", "places", "lost_records", "timeout_ms", "decided_at_ms", "went_on_at", "went_on_number")
_NAMED = ("cluster", f"{PREFIX} AS prefix")
_MOST_SKIPPED = 10  # numbers of checkpoints that failed, before the next one that wrote something
# Backwards: Spark takes time by the square of the rows for frames that end at UNBOUNDED FOLLOWING.
_AFTER = "OVER (PARTITION BY cluster, prefix ORDER BY at DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
_TIMED_OUT = "is_last AND last_status = 'CompleteAbort' AND abort_cause IN ('coordinator_timeout', 'timeout_or_fence')"


def not_repeated(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Checkpoints that were aborted by timeout and passed over, in the form of a hit: the row of the first of their transactions."""
    from pyspark.sql import functions as F  # late, for whoever reads the catalogue and needs no Spark

    from eo_audit.rules.cases import hits

    entries, instances = histories["coordinator_history"], histories["transaction_instances"]
    passed = _passed_over(entries.where(NUMBERED), instances.where(f"{_TIMED_OUT} AND {NUMBERED}"))
    # What was dumped before its job went on does not show whether the id came back.
    newest = entries.groupBy("replica_log_id").agg(F.expr("max(batch_timestamp_ms) AS newest_ms"))
    passed = passed.join(newest, "replica_log_id").where("newest_ms >= went_on.at")
    totals = {
        "ids": "array_sort(collect_set(transactional_id))",
        "places": "array_sort(array_distinct(flatten(collect_list(written))))",
        "lost_records": "sum(records)",
        "went_on_at": "min(went_on.at)",
        "went_on_number": "min(least(lowest, went_on.number))",
        "row": "min_by(struct(*), transactional_id)",
    }
    grouped = passed.join(written_by_instance(histories), "instance_id", "left").groupBy("cluster", "prefix", "number")
    rows = grouped.agg(*[F.expr(total).alias(name) for name, total in totals.items()])
    kept = [f"row.{name}" for name in instances.columns if name != "cluster"]
    found = rows.selectExpr("cluster", "prefix", "number", *kept, *[n for n in totals if n != "row"], "'C20' AS rule")
    return hits(SOURCES["transaction_instances"], found, key="concat_ws(' ', cluster, prefix, number)", weight="0", columns=_COLUMNS)


def _passed_over(entries: "DataFrame", dead: "DataFrame") -> "DataFrame":
    """Those of `dead` behind which a higher number was begun as a new id, and none of their number or a lower one was initialised."""
    told = entries.selectExpr(
        *_NAMED,
        "batch_timestamp_ms AS at",
        f"IF(status = 'Empty', {NUMBER}, NULL) AS initialised",
        # The first transaction of an id begins behind its birth: Empty with epoch 0 (`handleInitProducerId`).
        f"IF(status = 'Ongoing' AND previous_status = 'Empty' AND previous_epoch = 0, {NUMBER}, NULL) AS begun",
        "NULL AS dead",
    )
    ended = "coalesce(completed_at_ms, decided_at_ms) AS at"
    ends = dead.selectExpr(*_NAMED, ended, "NULL AS initialised", "NULL AS begun", f"struct(*, {NUMBER} AS number) AS dead")
    behind = told.unionByName(ends).selectExpr(
        "dead",
        "prefix",
        "dead.number",
        f"min(initialised) {_AFTER} AS lowest",
        f"min(IF(begun IS NOT NULL, struct(at, begun AS number), NULL)) {_AFTER} AS went_on",
    )
    # Numbers of checkpoints follow one another: a time or a process id at the end of an id does not.
    over = f"dead IS NOT NULL AND went_on.number - number BETWEEN 1 AND {_MOST_SKIPPED} AND coalesce(lowest > number, true)"
    return behind.where(over).selectExpr("dead.*", "prefix", "lowest", "went_on")


RULE = Rule(
    code="C20",
    slug="abort-not-repeated",
    severity="warning",
    reads=("transaction_instances", "coordinator_history", "instance_partitions"),
    subject="abort",
    find=not_repeated,
    by="",
    found=f"cluster transactional_id producer_id data_epoch {' '.join(_COLUMNS)}",
    informs=True,
    cause="the job was down, or a checkpoint took, longer than transaction.timeout.ms: the coordinator aborted what a finished checkpoint "
    "counts as written, and the job could not commit it any more",
    remedy="See the finding: compare with the log of the job, and start it from an earlier checkpoint where the records matter.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """What was passed over, when, and how many records; acquitted where the ids look like another owner's."""
    row = case.row
    ids, prefix, number = row.texts("ids"), shown(row.word("prefix")), row.number("number")
    if owner(ids[0]).family != "flink":
        return None
    now, behind = context.now(row.word("cluster")), row.number("went_on_number")
    aborted, went_on = moment(row.number("decided_at_ms"), now), moment(row.number("went_on_at"), now)
    named = some([shown(name) for name in ids], most=MOST_NAMED)
    records, places = row.maybe("lost_records"), row.texts("places")
    of_them = f"{count(records, 'record')} in {some([shown(place) for place in places])}" if records else "records"
    what = "1 transaction was" if len(ids) == 1 else f"{len(ids)} transactions were"
    message = (
        f"{what} aborted at {aborted}, after the timeout of {timeout(row.maybe('timeout_ms'))} ({named}), and {prefix} went on with "
        f"number {behind} at {went_on}, without writing {number} again. If this is Flink's KafkaSink, a finished checkpoint counts its "
        f"{of_them} as written, and no reader gets them"
    )
    return Explanation(
        message,
        certainty="likely",
        remedy=_remedy(number, went_on, row.maybe("timeout_ms")),
        details={"ids": ids, "partitions": places, "records": records, "number": number, "went_on_number": behind},
        transactional_id=ids[0],
        producer_epoch=row.maybe("data_epoch"),
        record_count=records,
    )


def _remedy(number: int, went_on: str, limit: int | None) -> str:
    now_is = "" if limit is None else f" (now {timeout(limit)})"
    return (
        f"Look into the log of the job around {went_on} for 'Unable to commit transaction': Flink says there which transactions it could "
        "not commit, and goes on. If these are among them, their records are lost unless the job is started from a checkpoint or "
        f"savepoint before number {number}; it then writes again what came later, too. Until retention takes them, the aborted records "
        "are in the log for readers with isolation.level=read_uncommitted. To prevent the next one, set transaction.timeout.ms of the "
        f"sink{now_is} above the checkpoint interval and the longest time that the job may be down together, and "
        "transaction.max.timeout.ms of the brokers not below it."
    )
