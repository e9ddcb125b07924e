"""I05 fencing-storm: one id is initialised again and again.

Proves: An id was initialised five times within five minutes: its producers fence each other, or one starts again and again. By itself it
does not prove that delivery was wrong.

Bad history: Seven entries Empty of one id within two seconds, each with the next epoch and without a commit between.

Legal look-alike: Producers that are made for one task each, and end their transaction themselves before the next begins (info; not if none
of them committed); Kafka Connect, which fences the id of a task before it starts it; one restart of many ids at a time; an Empty that was
written again because nobody acknowledged it; Flink's KafkaSink with pooled ids, which initialises one for each checkpoint.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import name_of
from eo_audit.rules.owners import owner
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.words import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

MANY, WITHIN_MS = 5, 300_000
DISTURBED = 2  # of the five whose producer had not ended its transaction itself: one may be a crash
_COLUMNS = ("entry_offset", "lasted_ms", "disturbed", "committed")
_OF_ID = "PARTITION BY replica_log_id, transactional_id ORDER BY entry_offset"
_IN_TURN = f"OVER ({_OF_ID})"


def storms(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """The last of each five InitProducerId of an id that lie within five minutes, in the form of a hit."""
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    # `handleInitProducerId` writes Empty. The same epoch twice is an entry that was written again (KIP-360, or its append failed).
    starts = histories["coordinator_history"].where(
        "status = 'Empty' AND previous_status <> 'Tombstone' AND NOT (previous_status = 'Empty' AND producer_epoch <=> previous_epoch)"
    )
    # An abort that a fence or the timeout caused has the next epoch (`TransactionMetadata.prepareFenceProducerEpoch`), one that the client
    # asked for the epoch of its session. With TV2 both have the next one (KIP-890): what may be the client's accuses nobody.
    own = f"(protocol = 'tv2' OR previous_epoch <=> lag(producer_epoch) {_IN_TURN})"
    ended = f"previous_status = 'CompleteAbort' AND {own}"
    # Kafka Connect fences the ids of a source connector and then starts its tasks (KIP-618): Empty with the timeout of that call
    # (`Worker.fenceZombies`), and behind it the Empty of the task. Both are one start; of a longer run of Empty each counts.
    fenced = f"previous_status = 'Empty' AND timeout_ms <> lag(timeout_ms) {_IN_TURN} AND lag(previous_status) {_IN_TURN} <> 'Empty'"
    told = starts.selectExpr("*", "previous_status = 'CompleteCommit' AS commits", f"{ended} AS aborts", f"{fenced} AS is_fenced")
    single = told.selectExpr(
        "*",
        f"commits OR coalesce(is_fenced AND lag(commits) {_IN_TURN}, false) AS has_committed",
        f"aborts OR coalesce(is_fenced AND lag(aborts) {_IN_TURN}, false) AS has_aborted",
        f"coalesce(lead(is_fenced) {_IN_TURN}, false) AS is_fence",
    ).where("NOT is_fence")
    of_five = f"OVER ({_OF_ID} ROWS BETWEEN {MANY - 1} PRECEDING AND CURRENT ROW)"
    steps = single.selectExpr(
        "*",
        f"batch_timestamp_ms - lag(batch_timestamp_ms, {MANY - 1}) {_IN_TURN} AS lasted_ms",
        f"sum(IF(has_committed OR has_aborted, 0, 1)) {of_five} AS disturbed",
        f"sum(IF(has_committed, 1, 0)) {of_five} AS committed",
    )
    # Less than nothing: a clock was set back, and nobody knows how long it took.
    found = steps.where(f"lasted_ms BETWEEN 0 AND {WITHIN_MS}").selectExpr("*", "'I05' AS rule")
    return hits(SOURCES["coordinator_history"], found, key="transactional_id", weight="disturbed", columns=_COLUMNS)


RULE = Rule(
    code="I05",
    slug="fencing-storm",
    severity="warning",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    find=storms,
    by="transactional_id",
    found=f"transactional_id producer_id producer_epoch {' '.join(_COLUMNS)}",
    informs=True,
    proves_delivery_wrong=False,
    cause="two live instances share the id (a constant in place of an instance's own number), or an instance that crashes and restarts",
    remedy=(
        "Give every live instance a transactional.id of its own that it keeps over restarts; never use one id as a fallback for several. "
        "If there is only one instance, its own log says why it starts again: after ProducerFencedException it must not simply create the "
        "next producer while another one lives."
    ),
)


# `TransactionNamingStrategy.POOLING`: a producer for each checkpoint, under the first id of the pool that is free.
_OF_FLINK = (
    "If it is Flink's: the job starts again and again, which its own log explains, or two jobs have one transactionalIdPrefix: give each "
    "its own. The starts behind a commit are right: with pooled ids each checkpoint begins with one."
)


def explain(case: Case, _context: "Context") -> Explanation | None:
    """How many, how fast; an info where nearly each of them followed a transaction that its producer ended, and some a commit."""
    row = case.row
    is_flink = owner(row.text("transactional_id") or "").family == "flink"
    uncommitted = MANY - row.number("committed")
    orderly = row.number("disturbed") < DISTURBED and uncommitted < MANY
    if orderly and is_flink:
        return None
    times = case.hits + MANY - 1
    of_them = "" if case.hits == 1 else f"at least {times} times, "
    ended = "a commit" if uncommitted <= 1 else "the end of a transaction"
    task = f"after {ended} each time, as producers do that are made for one task"
    between = task if orderly else f"{uncommitted} of {MANY} without a commit before"
    message = (
        f"{name_of(row)} (producer {row.maybe('producer_id')}) was initialised {of_them}{MANY} times within "
        f"{duration(row.maybe('lasted_ms'))}, {between}"
    )
    return Explanation(
        message,
        severity="info" if orderly else "warning",
        certainty="likely",
        remedy=_OF_FLINK if is_flink else None,
        details={"times": times, "within_ms": row.maybe("lasted_ms"), "without_commit": uncommitted},
        producer_epoch=row.maybe("producer_epoch"),
    )
