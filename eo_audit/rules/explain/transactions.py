"""Words for the transaction rules (T), and the question whether anybody will end an open transaction."""

from typing import TYPE_CHECKING

from eo_audit.rules.explain import remedies
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.waiting import age, frees_at_ms, spent, whose
from eo_audit.rules.words import count, duration, moment, offsets, partitions, shown, some

if TYPE_CHECKING:
    from eo_audit.rules.context import Context


def age_ms(case: Case, context: "Context") -> int | None:
    """How long a transaction has been open (see `rules.waiting.age`)."""
    row, log = case.row, case.log
    if log is None:
        return None
    first, told = row.maybe("first_offset"), row.maybe("last_timestamp_ms")
    return age(log, context, producer_id=row.number("producer_id"), first_offset=first, record_ms=told).ms


def hanging(case: Case, context: "Context") -> Explanation | None:
    """T01: open, and nobody will end it."""
    if case.log is None or not context.hangs(case.log, case.row.number("producer_id")):
        return None
    row, age, now = case.row, age_ms(case, context), context.now(case.log.cluster)
    last = context.owner(case.log, row.number("producer_id"))
    limit = context.cluster(case.log.cluster).number("max_transaction_timeout_ms", 900_000)
    who = whose(last.text("transactional_id") if last else None, row.maybe("producer_id"), row.maybe("last_epoch"))
    status = f"the coordinator's last entry for it is {last.word('last_status')}" if last else "no coordinator entry names it"
    listed = f" for {partitions(last.partitions())}" if last and last.partitions() else ""
    if context.lost_commit(case.log, row.number("producer_id")):
        listed += ", and its COMMIT is not here (T05)"
    message = (
        f"The transaction of {who} has been open since offset "
        f"{row.maybe('first_offset')} with "
        f"{count(case.records, 'record')}, {duration(age)} old, and nobody will end it: {status}{listed}"
    )
    details = {
        "age_ms": age,
        "records": case.records,
        "max_transaction_timeout_ms": limit,
        "coordinator_status": last.text("last_status") if last else None,
        "coordinator_epoch": last.maybe("data_epoch") if last else None,
    }
    return Explanation(
        message,
        severity="critical" if age is not None and age > limit else "warning",
        remedy=remedies.abort(case.log, row.number("first_offset"), row.number("producer_id"), context, sure=True),
        details=details,
        transactional_id=last.text("transactional_id") if last else None,
        producer_epoch=row.maybe("last_epoch"),
        timestamp_ms=None if age is None or now is None else now - age,
    )


def open(case: Case, context: "Context") -> Explanation | None:
    """T12: open, and the coordinator knows it."""
    if case.log is None or not case.log.ends_here or not context.lists(case.log, case.row.number("producer_id")):
        return None
    row, producer = case.row, case.row.number("producer_id")
    last = context.unfinished(case.log.cluster, producer)
    if last is None:
        return None
    now, start, name = context.now(case.log.cluster), last.maybe("start_ms"), last.text("transactional_id")
    open_for = None if now is None or start is None or start < 0 else max(0, now - start)
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
    waits = case.log.numbers.maybe("blocker_producer_id") == producer and case.log.numbers.number("held_back_committed_records") > 0
    return Explanation(
        message,
        remedy=remedies.wait(case.log, producer, context) if waits else None,
        details=details,
        transactional_id=name,
        producer_epoch=row.maybe("last_epoch"),
    )


def _writer(row: Row, context: "Context") -> str:
    """Who wrote a row of producer_history."""
    instance = context.instances.get(row.word("instance_id"))
    return whose(instance.text("transactional_id") if instance else None, row.maybe("producer_id"), row.maybe("producer_epoch"))


def _has(case: Case) -> str:
    return "has" if case.records == 1 else "have"


def late(case: Case, context: "Context") -> Explanation:
    """T02: proved by the coordinator log, or suspected from timestamps."""
    row = case.row
    proved = any(example.row.text("late") == "proved" for example in case.examples)
    instance = context.instances.get(row.word("instance_id"))
    decision = row.text("instance_decision") or "its marker"
    stand = "stands" if case.records == 1 else "stand"
    message = (
        f"{count(case.records, 'record')} of {_writer(row, context)} {stand} behind "
        f"the marker that ended their transaction "
        f"({decision}): {offsets(case.first, case.last)}, which no transaction of the coordinator covers"
    )
    if not proved:
        message = (
            f"{count(case.records, 'record')} of {_writer(row, context)} at {offsets(case.first, case.last)} {_has(case)} a time from "
            f"before the marker below {'it' if case.records == 1 else 'them'}: late data of the transaction before, or event time. "
            "Clients set that time"
        )
    return Explanation(
        message,
        severity="critical" if proved else "info",
        certainty="definite" if proved else "open",
        details={"batches": case.hits, "decision": row.text("instance_decision"), "closed_by": row.text("span_outcome")},
        transactional_id=instance.text("transactional_id") if instance else None,
    )


def missing(case: Case, context: "Context") -> Explanation | None:
    """A replica that is behind its siblings proves nothing about the end of its log."""
    if case.log is None or context.lags(case.log):
        return None
    row = case.row
    decisions = {context.decision(example.row.word("instance_id")) for example in case.examples}
    commit = "COMMIT" in decisions
    epochs = sorted({epoch for example in case.examples if (epoch := example.row.maybe("marker_epoch")) is not None})
    data = (
        f"its {count(case.records, 'record')} from offset {case.first} on "
        f"{'has' if case.records == 1 else 'have'} no end of {'its' if case.records == 1 else 'their'} own"
        if case.records
        else "no data of it is in the log either"
    )
    done = some(sorted(decision or "undecided" for decision in decisions))
    message = (
        f"The coordinator completed {count(case.hits, 'transaction')} of {shown(row.text('transactional_id'))} "
        f"(producer {row.maybe('producer_id')}, {done}), but the partition has no marker of {'it' if case.hits == 1 else 'them'}: {data}"
    )
    return Explanation(
        message,
        severity="critical" if commit else "error",
        remedy=_missing_remedy(case, commit=commit),
        details={
            "transactions": case.hits,
            "decisions": sorted(d or "undecided" for d in decisions),
            "marker_epochs": epochs,
            "records": case.records,
        },
        transactional_id=row.text("transactional_id"),
    )


def _missing_remedy(case: Case, *, commit: bool) -> str:
    if not case.records:
        return (
            "If the topic was deleted and created again, or its log truncated after an unclean election, the records are gone: "
            "publish them again. Nothing to abort."
        )
    if commit:
        return (
            "Do not abort: the records were promised as committed, no tool writes a COMMIT marker, and an abort would lose them. "
            "Publish them again first; "
            "if T01 reports this transaction as hanging, then follow its remedy."
        )
    return "Safe to leave if another ABORT of the producer follows; if T01 reports this transaction as hanging, follow its remedy."


def mixed(case: Case, context: "Context") -> Explanation:
    """T06: against the coordinator's decision, or, without it, against another marker."""
    row = case.row
    if row.text("row_kind") == "marker":
        return _mixed_in_data(case)
    decision = context.decision(row.word("instance_id"))
    message = (
        f"The coordinator decided {decision} for a transaction of {shown(row.text('transactional_id'))} (producer "
        f"{row.maybe('producer_id')}), but offset "
        f"{row.maybe('marker_offset')} of this partition says {row.word('marker_type')}: "
        f"{count(case.records, 'record')} at {offsets(row.maybe('data_first_offset'), row.maybe('data_last_offset'))} had the other fate"
    )
    details = {
        "decision": decision,
        "marker_type": row.text("marker_type"),
        "marker_offset": row.maybe("marker_offset"),
        "transactions": case.hits,
    }
    return Explanation(message, details=details, transactional_id=row.text("transactional_id"))


def _mixed_in_data(case: Case) -> Explanation:
    row = case.row
    message = (
        f"The {row.word('marker_type')} at offset {row.maybe('base_offset')} belongs to a transaction of producer "
        f"{row.maybe('producer_id')} (marker epoch "
        f"{row.maybe('producer_epoch')}) that ended the other way in another partition or replica: without __transaction_state "
        f"nobody knows which is right"
    )
    return Explanation(message, details={"marker_type": row.text("marker_type"), "markers": case.hits, "mechanism": "data only"})


def unregistered(case: Case, context: "Context") -> Explanation:
    """T07: worse when another transaction's COMMIT made it visible."""
    row = case.row
    committed = any(example.row.text("span_outcome") == "committed" for example in case.examples)
    instance = context.instances.get(row.word("instance_id"))
    fate = {"committed": "and another transaction's COMMIT closed it", "aborted": "and an ABORT closed it"}.get(
        row.word("span_outcome"), "and it is still open"
    )
    who = _writer(row, context)
    message = (
        f"{who[0].upper() + who[1:] if instance is None else who} wrote {count(case.records, 'record')} at "
        f"{offsets(case.first, case.last)} in a transaction "
        f"that the coordinator never extended to this partition, {fate}"
    )
    return Explanation(
        message,
        severity="critical" if committed else "error",
        details={"batches": case.hits, "closed_by": row.text("span_outcome")},
        transactional_id=instance.text("transactional_id") if instance else None,
    )


def epoch(case: Case, context: "Context") -> Explanation | None:
    """T10: an odd marker, or data of two epochs in one open transaction."""
    row = case.row
    if row.text("row_kind") == "data":
        message = (
            f"Data of {_writer(row, context)} at offset {row.maybe('base_offset')} continues an open transaction of "
            f"epoch {row.maybe('previous_epoch')}: one marker will decide both"
        )
    else:
        message = (
            f"The {row.word('marker_type')} at offset {row.maybe('base_offset')} has epoch {row.maybe('producer_epoch')}, the data "
            f"of producer "
            f"{row.maybe('producer_id')} that it closes has epoch {row.maybe('previous_epoch')}: no protocol version writes that"
        )
    details = {
        "epoch": row.maybe("producer_epoch"),
        "data_epoch": row.maybe("previous_epoch"),
        "marker_type": row.text("marker_type"),
        "batches": case.hits,
    }
    return Explanation(message, details=details)


def manual(case: Case, context: "Context") -> Explanation:
    """T13: worse when the coordinator committed."""
    row = case.row
    decision = row.text("instance_decision")
    message = (
        f"The ABORT at offset {row.maybe('base_offset')} for {_writer(row, context)} was written by hand (coordinator epoch "
        f"{row.maybe('marker_coordinator_epoch')}): no coordinator decision explains it"
    )
    if decision == "COMMIT":
        message += ", and the coordinator committed that transaction"
    return Explanation(
        message,
        severity="critical" if decision == "COMMIT" else "info",
        certainty="definite" if decision else "likely",
        details={"markers": case.hits, "decision": decision, "coordinator_epoch": row.maybe("marker_coordinator_epoch")},
    )


def merged(case: Case, context: "Context") -> Explanation:
    """T15: lost marker (V4) or late write (V5)."""
    row = case.row
    instance = context.instances.get(row.word("instance_id"))
    who = shown(instance.text("transactional_id")) if instance else f"producer {row.maybe('producer_id')}"
    late = row.text("late") in ("proved", "suspected")
    message = (
        f"{count(case.records, 'record')} of an aborted transaction of {who} at {offsets(case.first, case.last)} "
        f"{'came after their ABORT' if late else 'never got their ABORT'} and are closed by a later COMMIT: aborted data counts as "
        f"committed"
    )
    return Explanation(
        message,
        certainty="likely" if row.text("late") == "suspected" else "definite",
        details={"batches": case.hits, "mechanism": "V5" if late else "V4", "span": row.maybe("span_id")},
        transactional_id=instance.text("transactional_id") if instance else None,
    )
