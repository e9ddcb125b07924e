"""Words for the visibility rules (L)."""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.explain import remedies, sidecars
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.waiting import Age, age, whose
from eo_audit.rules.words import count, duration, offsets

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
    if not hanging and (context.ended_elsewhere(log, producer) or context.has_ended(log, producer)):
        return None  # its marker came after this dump was made
    known = context.unfinished(log.cluster, producer) or context.last_of_producer.get((log.cluster, producer))
    name = known.text("transactional_id") if known else None
    old = _age(row, log, context)
    severity = "critical" if hanging else _severity(log, context, producer, old)
    if severity == "info" and not row.number("held_back_committed_records"):
        return None  # nobody waits, and T12 tells of the transaction
    sure = row.text("hw_source") == "checkpoint"
    is_proved = hanging or severity == "info" or old.source != "record_time"
    return Explanation(
        _message(row, log, context, name=name, old=old) + ("" if sure else " (the high watermark is assumed)"),
        severity=severity,
        certainty="definite" if sure and is_proved else "likely",
        remedy=_remedy(case, context, hanging=hanging),
        details=_details(row, old),
        transactional_id=name,
        producer_id=producer,
        producer_epoch=row.maybe("blocker_epoch"),
        record_count=row.maybe("held_back_committed_records"),
    )


def _message(row: Row, log: "Log", context: "Context", *, name: str | None, old: Age) -> str:
    records, producer = row.number("held_back_committed_records"), row.number("blocker_producer_id")
    told = old.source == "record_time" and not context.hangs(log, producer)
    only_told = f"; it is {duration(old.ms)} old by its records' own time, which proves nothing" if told else ""
    return (
        f"The last stable offset stands at {row.maybe('lso')} of {row.maybe('hw')}: "
        f"{count(records, 'committed or plain record')} behind it "
        f"{'is' if records == 1 else 'are'} held back by the open transaction of "
        f"{whose(name, producer, row.maybe('blocker_epoch'))}, {_why(log, context, producer)}{only_told}"
    )


def _details(row: Row, old: Age) -> dict[str, object]:
    names = ("lso", "hw", "hw_source", "lso_source", "held_back_offsets", "held_back_committed_records", "open_transactions")
    values: dict[str, object] = {name: row.text(name) if name.endswith("_source") else row.maybe(name) for name in names}
    return values | {
        "age_ms": old.ms,
        "age_source": old.source,
        "age_at_least_ms": old.at_least_ms,
        "age_at_most_ms": old.at_most_ms,
    }


def _why(log: "Log", context: "Context", producer_id: int) -> str:
    last = context.unfinished(log.cluster, producer_id)
    if context.hangs(log, producer_id):
        return "which nobody will end (T01)"
    if last is not None:
        return f"which the coordinator knows ({last.word('last_status')})"
    if (log.log_id, producer_id) not in context.open_spans:
        return "which only the producer snapshot shows as open"
    return "of which the dumps show no decision"


def _age(row: Row, log: "Log", context: "Context") -> Age:
    first, told = row.maybe("blocker_first_offset"), row.maybe("blocker_last_timestamp_ms")
    return age(log, context, producer_id=row.number("blocker_producer_id"), first_offset=first, record_ms=told)


def _severity(log: "Log", context: "Context", producer_id: int, old: Age) -> str:
    """By age: past its timeout, and past any timeout that the broker allows. What only the client's clock says is never critical."""
    cluster, last = context.cluster(log.cluster), context.unfinished(log.cluster, producer_id)
    limit = cluster.number("max_transaction_timeout_ms", 900_000)
    timeout = last.number("timeout_ms", limit) if last and context.lists(log, producer_id) else limit
    grace = cluster.number("abort_scan_interval_ms", 10_000) + cluster.number("skew_ms", 2_000)
    if old.ms is None or old.ms <= timeout + grace:
        return "info"
    proved = old.at_least_ms is not None and old.at_least_ms > max(limit, timeout) + GRACE_MS
    return "critical" if proved else "warning"


def _remedy(case: Case, context: "Context", *, hanging: bool) -> str:
    log, row = case.log, case.row
    if log is None:
        return ""
    producer = row.number("blocker_producer_id")
    if hanging:
        return remedies.abort(log, row.number("blocker_first_offset"), producer, context, sure=True)
    if context.lists(log, producer):
        return remedies.wait(log, producer, context)
    if (log.log_id, producer) not in context.open_spans:
        asked = commands.describe_producers(log.topic or "", log.partition or 0, context.version(log.cluster))
        return f"Ask the broker whether it is still open, before anything is aborted: {asked}."
    return "Dump __transaction_state to learn whether the coordinator still knows this transaction, before anything is aborted."


def _writer(case: Case, context: "Context") -> str:
    """Whose records a case is about."""
    instance = context.instances.get(case.row.word("instance_id"))
    return whose(instance.text("transactional_id") if instance else None, case.row.maybe("producer_id"))


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
        f"{count(case.records, 'record')} of {'an aborted transaction' if case.hits == 1 else 'aborted transactions'} "
        f"of {_writer(case, context)} at "
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


def committed_hidden(case: Case, context: "Context") -> Explanation:
    """L03."""
    message = (
        f"{count(case.records, 'committed record')} of {_writer(case, context)} at {offsets(case.first, case.last)} "
        f"{'is' if case.records == 1 else 'are'} hidden from read_committed consumers"
    )
    return Explanation(message, details={"batches": case.hits, "records": case.records})
