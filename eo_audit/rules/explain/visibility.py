"""Words for the visibility rules (L)."""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.explain import sidecars, transactions
from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.words import count, offsets, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context, Log
    from eo_audit.rules.row import Row

GRACE_MS = 300_000  # the broker's own metric of late transactions counts from the maximum timeout + 5 min


def stuck(case: Case, context: "Context") -> Explanation | None:
    """L01: info while the blocker is open within its timeout, critical at any age when it hangs."""
    row, log = case.row, case.log
    if log is None or not log.ends_here:
        return None
    producer = row.number("blocker_producer_id")
    hanging = context.hangs(log, producer)
    if not hanging and context.ended_elsewhere(log, producer):
        return None
    last = context.unfinished(log.cluster, producer)
    known = last or context.last_of_producer.get((log.cluster, producer))
    severity = "critical" if hanging else _severity(case, context)
    held = f"{count(row.number('held_back_committed_records'), 'committed or plain record')} behind it"
    why, sure = _why(log, context, producer), row.text("hw_source") == "checkpoint"
    who = f" ({shown(known.text('transactional_id'))})" if known else ""
    message = (
        f"The last stable offset stands at {row.maybe('lso')} of {row.maybe('hw')}: {held} "
        f"{'is' if row.number('held_back_committed_records') == 1 else 'are'} held back by the open "
        f"transaction of producer {producer}{who}, {why}{'' if sure else ' (the high watermark is assumed)'}"
    )
    details = {
        "lso": row.maybe("lso"),
        "hw": row.maybe("hw"),
        "hw_source": row.text("hw_source"),
        "lso_source": row.text("lso_source"),
        "held_back_offsets": row.maybe("held_back_offsets"),
        "held_back_committed_records": row.maybe("held_back_committed_records"),
        "open_transactions": row.maybe("open_transactions"),
        "age_ms": _age(case, context),
    }
    return Explanation(
        message,
        severity=severity,
        certainty="definite" if sure else "likely",
        remedy=_remedy(case, context, hanging=hanging),
        details=details,
        transactional_id=known.text("transactional_id") if known else None,
        producer_id=producer,
        producer_epoch=row.maybe("blocker_epoch"),
        record_count=row.maybe("held_back_committed_records"),
    )


def _why(log: "Log", context: "Context", producer_id: int) -> str:
    last = context.unfinished(log.cluster, producer_id)
    if context.hangs(log, producer_id):
        return "which nobody will end (T01)"
    if last is not None:
        return f"which the coordinator knows ({last.word('last_status')})"
    if (log.log_id, producer_id) not in context.open_spans:
        return "which only the producer snapshot shows as open"
    return "of which the dumps show no decision"


def _age(case: Case, context: "Context") -> int | None:
    now, last = context.now(case.log.cluster) if case.log else None, case.row.maybe("blocker_last_timestamp_ms")
    return None if now is None or last is None else max(0, now - last)


def _severity(case: Case, context: "Context") -> str:
    cluster = case.log.cluster if case.log else ""
    age, last = _age(case, context), context.unfinished(cluster, case.row.number("blocker_producer_id"))
    limit = context.cluster(cluster).number("max_transaction_timeout_ms", 900_000)
    timeout = last.number("timeout_ms", limit) if last else limit
    if age is None or age <= timeout + context.cluster(cluster).number("skew_ms", 2_000):
        return "info"
    return "critical" if age > limit + GRACE_MS else "warning"


def _remedy(case: Case, context: "Context", *, hanging: bool) -> str:
    log, row = case.log, case.row
    if log is None:
        return ""
    if hanging:
        return transactions.abort_remedy(log, row.number("blocker_first_offset"), row.number("blocker_producer_id"), context)
    if context.lists(log, row.number("blocker_producer_id")):
        return (
            "Nothing to do while it is within its timeout; past it, follow C01 (initTransactions() with the same id) or C02. Do not "
            "abort it by hand: the coordinator still lists it."
        )
    if (log.log_id, row.number("blocker_producer_id")) not in context.open_spans:
        asked = commands.describe_producers(log.topic or "", log.partition or 0)
        return f"Ask the broker whether it is still open, before anything is aborted: {asked}."
    return "Dump __transaction_state to learn whether the coordinator still knows this transaction, before anything is aborted."


def aborted_visible(case: Case, context: "Context") -> Explanation:
    """L02."""
    row = case.row
    closed, missed = row.text("span_outcome"), _missed_entry(case, context)
    if closed != "aborted":
        why = "a COMMIT closed them"
    elif missed is None:
        why = "the aborted index does not hide them"
    else:
        why = (
            f"{'its' if case.records == 1 else 'their'} entry is in the aborted index, but an entry before it, of the ABORT at offset "
            f"{missed.maybe('ends_at_offset')}, has a wrong lastStableOffset ({missed.maybe('ends_at_stable_offset')}): "
            "the broker's look-up ends there"
        )
    message = (
        f"{count(case.records, 'record')} of {'an aborted transaction' if case.hits == 1 else 'aborted transactions'} of producer "
        f"{row.maybe('producer_id')} at "
        f"{offsets(case.first, case.last)} {'is' if case.records == 1 else 'are'} returned to read_committed consumers: {why}"
    )
    details: dict[str, object] = {
        "batches": case.hits,
        "closed_by": closed,
        "records": case.records,
        "from_log_start": row.flag("returned"),
    }
    if missed is None:
        return Explanation(message, details=details)
    details |= {name: missed.maybe(name) for name in ("ends_at_offset", "ends_at_stable_offset")}
    cause = "an entry of the .txnindex has a wrong lastStableOffset"
    return Explanation(message, cause=cause, remedy=sidecars.rebuild_index(case.log), details=details)


def _missed_entry(case: Case, context: "Context") -> "Row | None":
    """The first index entry of these records that a look-up may miss (`TransactionIndex.collectAbortedTxns`)."""
    missed = context.missed_entries.get((case.log.log_id, case.row.number("producer_id")), []) if case.log else []
    first, last = case.first or 0, case.last or 0
    return next((row for row in missed if row.number("entry_first_offset") <= last and row.number("marker_offset") > first), None)


def committed_hidden(case: Case, _context: "Context") -> Explanation:
    """L03."""
    row = case.row
    message = (
        f"{count(case.records, 'committed record')} of producer {row.maybe('producer_id')} at {offsets(case.first, case.last)} "
        f"{'is' if case.records == 1 else 'are'} hidden from read_committed consumers"
    )
    return Explanation(message, details={"batches": case.hits, "records": case.records})
