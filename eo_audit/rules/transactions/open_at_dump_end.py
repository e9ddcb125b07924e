"""T12 open-at-dump-end: a transaction is open at the end of the dump, and the coordinator knows it.

Proves: A transaction was open when the dump was made, and the coordinator knows it. Not a fault: it explains the LSO.

Bad history: Ongoing for 2 s of 60 s, data at offsets 2 to 3.

Legal look-alike: A hanging transaction (T01), which the coordinator does not list.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.owners import owner
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions import remedies
from eo_audit.rules.waiting import age, frees_at_ms, spent, whose
from eo_audit.words import NEVER_TIMES_OUT, count, moment

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T12",
    slug="open-at-dump-end",
    severity="info",
    reads=("transaction_spans",),
    subject="transactional_batch",
    needs=("order", "end", "coordinator"),
    # The same rows as T01: which of the two it is depends on whether anybody will end it, and that only the context knows.
    where="outcome = 'open'",
    columns="last_epoch first_offset",
    asks=("last_of_producer", "open_spans"),
    waiting="open",
    informs=True,
    cause="the dump was made while a transaction was running",
    remedy="Nothing to do: the client or the coordinator will end it. Do not abort it by hand.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Acquitted where the coordinator does not list the partition: then it is a hanging one."""
    if case.log is None or not case.log.ends_here or not context.lists(case.log, case.row.number("producer_id")):
        return None
    row, producer = case.row, case.row.number("producer_id")
    last = context.unfinished(case.log.cluster, producer)
    if last is None:
        return None
    now, name = context.now(case.log.cluster), last.text("transactional_id")
    # As the page says of the partition: it was seen open when the coordinator's log was dumped, not only when the collection began.
    old = age(case.log, context, producer_id=producer, first_offset=row.maybe("first_offset"), record_ms=None)
    open_for = old.ms if old.source == "coordinator" else None
    until = frees_at_ms(last, context.cluster(case.log.cluster))
    ends = f" and aborts it at {moment(until, now)} at the latest" if until is not None and now is not None and until >= now else ""
    message = (
        f"The transaction of {whose(name, producer, row.maybe('last_epoch'))} is open since offset {row.maybe('first_offset')} with "
        f"{count(case.records, 'record')}; the coordinator knows it ({last.word('last_status')}, "
        f"{spent(open_for, last.maybe('timeout_ms'))}){ends}"
    )
    details = {
        "coordinator_status": last.text("last_status"),
        "open_for_ms": open_for,
        "timeout_ms": last.maybe("timeout_ms"),
        "frees_at_ms": until,
    }
    # With nobody waiting there is nothing to do, and the rule's own remedy says so, unless no coordinator ends it by itself (KIP-939).
    waits = case.log.numbers.maybe("blocker_producer_id") == producer and case.log.numbers.number("held_back_committed_records") > 0
    says_how = waits or last.maybe("timeout_ms") == NEVER_TIMES_OUT
    return Explanation(
        message,
        remedy=remedies.wait(case.log, producer, context) if says_how else _of_flink(name, until, now),
        details=details,
        transactional_id=name,
        producer_epoch=row.maybe("last_epoch"),
    )


def _of_flink(name: str | None, until: int | None, now: int | None) -> str | None:
    """Flink's may wait for a commit that only the next start of its job brings, with nobody waiting behind it."""
    whose = owner(name or "")
    return f"{RULE.remedy} {remedies.by_flink(whose, until, now)}" if whose.family == "flink" else None
