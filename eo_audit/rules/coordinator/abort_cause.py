"""C12 abort-cause: why a transaction was aborted, where the client did not do it itself.

Proves: The server side ended a transaction: its timeout passed, a producer with the same id called initTransactions(), or somebody fenced
the id with Admin.fenceProducers.

Bad history: PrepareAbort at start + timeout, nobody called abortTransaction().

Legal look-alike: An abort by the client itself, which is no finding (it is listed in verdict.json).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import name_of
from eo_audit.rules.owners import owner
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, duration, timeout

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# What the client did not do itself; how the causes are told apart is in `eo_audit/model/abort_cause.py`.
SERVER_SIDE = "('fenced_by_init', 'coordinator_timeout', 'timeout_or_fence')"
CAUSES = {
    # `FenceProducersHandler` asks the same of the coordinator as a producer does, InitProducerId.
    "fenced_by_init": "initTransactions() of a producer with the same id ended it, or a fence (forceTerminateTransaction, Kafka Connect)",
    "coordinator_timeout": "the coordinator ended it after its timeout",
    "timeout_or_fence": "its timeout had passed, or initTransactions() of its id ended it: both look the same here",
}

RULE = Rule(
    code="C12",
    slug="abort-cause",
    severity="info",
    reads=("transaction_instances",),
    subject="abort",
    # What the client did itself is listed in verdict.json, and is nobody's finding.
    where=f"decision = 'ABORT' AND abort_cause IN {SERVER_SIDE}",
    by="transactional_id",
    columns="abort_cause start_ms decided_at_ms timeout_ms abort_cause_certainty abort_cause_alternatives data_epoch",
    # A timeout or a fence is Kafka at work: the records are gone for every reader, as promised.
    informs=True,
    cause="a producer that died, was too slow for transaction.timeout.ms, or was replaced by another with the same transactional.id, or "
    "was fenced by an operator or by Kafka Connect",
    remedy="Nothing to repair; safe to leave: the transaction is aborted everywhere.",
)


def explain(case: Case, _context: "Context") -> Explanation:
    """Aborts of one id by the server side, with the cause of the most recent ones."""
    row = case.row
    causes = [example.row.word("abort_cause") for example in case.examples]
    counted = {cause: causes.count(cause) for cause in sorted(set(causes))}
    cause = row.word("abort_cause")
    message = (
        f"{count(case.hits, 'transaction')} of {name_of(row)} {'was' if case.hits == 1 else 'were'} aborted by the server side: "
        f"{CAUSES.get(cause, cause)}"
    )
    start, decided = row.maybe("start_ms"), row.maybe("decided_at_ms")
    ran = None if start is None or decided is None else decided - start
    after = "" if ran is None or ran < 0 else f", {duration(ran)} after its start (timeout {timeout(row.maybe('timeout_ms'))})"
    return Explanation(
        f"{message}{after}",
        certainty=row.text("abort_cause_certainty") or "open",
        remedy=_of_flink(cause) if owner(row.text("transactional_id") or "").family == "flink" else _cause_remedy(cause),
        details={
            "causes": counted,
            "ran_ms": ran,
            "timeout_ms": row.maybe("timeout_ms"),
            "alternatives": row.texts("abort_cause_alternatives"),
        },
        producer_epoch=row.maybe("data_epoch"),
    )


def _cause_remedy(cause: str) -> str:
    if cause == "fenced_by_init":
        return (
            "Nothing to repair; safe to leave. If two live instances share the id, give each its own; a restart of one instance looks "
            "the same and is right."
        )
    return (
        "Nothing to repair; safe to leave. Set transaction.timeout.ms above the longest outage to ride out (at most "
        "transaction.max.timeout.ms) and delivery.timeout.ms below it, so that the client gives up first; "
        "on ProducerFencedException close the producer and create a new one."
    )


# Flink decides outside the transaction: what a finished checkpoint counts as written may still wait for its commit.
def _of_flink(cause: str) -> str:
    if cause == "fenced_by_init":
        return (
            "Nothing to repair; safe to leave, if a Flink job was started again: it ends what its last run left open, and writes it again. "
            "Two jobs with one transactionalIdPrefix end each other's transactions: give each its own."
        )
    return (
        "If it is Flink's, look into the log of the job, at its next start, for 'Unable to commit transaction': the records of an id that "
        "stands there are lost, because a finished checkpoint counts them as written (C20 tells it where ids count up). Else nothing to "
        "repair. Set transaction.timeout.ms of the sink above the checkpoint interval and the longest time that the job may be down "
        "together (at most transaction.max.timeout.ms)."
    )
