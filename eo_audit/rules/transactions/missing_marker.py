"""T05 missing-marker: a completed transaction left a partition without its marker.

Proves: The coordinator completed a transaction, the partition was registered in it, the dump reaches past its completion, and there is no
marker.

Bad history: CompleteCommit lists orders-1; orders-1 has the data and no COMMIT. Two transactions of one type, and one marker that either
of them may have written: one of them has none.

Legal look-alike: A transaction whose last entry is PrepareCommit (C02); a partition whose topic was deleted; a removed log head; a cleaned
marker; a replica that is behind a newer leader, however long it is; a follower that lags, where the leader was not dumped.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eo_audit.rules.rule import Address, Case, Explanation, Rule
from eo_audit.rules.transactions.words import LOST, begins_behind, unless_below
from eo_audit.rules.writers import of_transactions
from eo_audit.words import count, some

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

RULE = Rule(
    code="T05",
    slug="missing-marker",
    severity="critical",
    reads=("instance_partitions",),
    subject="transactional_batch registered_partition",
    needs=("order", "past", "end", "matched", "coordinator", "dumped"),
    # `covered`: the dump reaches past the time at which the coordinator had all markers acknowledged (CompleteX). `overdue`: by the time of
    # the dump it should; a follower that lags does not. `led_on`: it is no such follower.
    where="(coverage = 'covered' AND marker_match IN ('missing', 'missing_among')) OR coverage IN ('overdue', 'led_on')",
    # Of a log that may lag the first are told, and the others are not.
    by="producer_id coverage",
    # One COMMIT among many ABORTs makes the case: it speaks.
    weight="IF(decision = 'COMMIT', 1, 0)",
    columns="coverage marker_epoch marker_match",
    # The first for T01 and L01 too, which ask whether the marker of what is open was lost.
    asks=("unmarked", "newest_markers"),
    caused_by=("T06", "T15", "T01", "T10"),
    cause=LOST,
    remedy="See the finding: it depends on whether the decision was COMMIT and whether data is there.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """A replica that is behind its siblings, by leader epoch and offset, proves nothing about the end of its log."""
    if case.log is None or context.lags(case.log):
        return None
    row = case.row
    overdue = row.text("coverage") in ("overdue", "led_on")
    if overdue and context.may_be_left_behind(case.log):
        return None
    decisions = {context.decision(example.row.word("instance_id")) for example in case.examples}
    commit = "COMMIT" in decisions
    epochs = sorted({epoch for example in case.examples if (epoch := example.row.maybe("marker_epoch")) is not None})
    data = (
        f"its {count(case.records, 'record')} from offset {case.first} on {'has' if case.records == 1 else 'have'} no end of "
        f"{'its' if case.records == 1 else 'their'} own"
        if case.records
        else "no data in the log is known to be its"
    )
    done = some(sorted(decision or "undecided" for decision in decisions))
    among = any(example.row.text("marker_match") == "missing_among" for example in case.examples)
    lacking = (
        "at least one of them has no marker in the partition, and the dumps do not tell which"
        if among
        else (f"the partition has no marker of {'it' if case.hits == 1 else 'them'}: {data}")
    )
    begins = begins_behind(case.log, row.number("producer_id"), context)
    unless = unless_below(begins)
    if begins is not None and case.records:
        unless += ", and the records came late (T02)"
    alike = _why_lost(case.log, context) if overdue else ""
    completed = f"{count(case.hits, 'transaction')} of {of_transactions(case, context)}, {done}"
    message = f"The coordinator completed {completed}, but {lacking}{unless}{alike}"
    return Explanation(
        message,
        severity="critical" if commit else "error",
        certainty="likely" if among or overdue or begins is not None else "definite",
        remedy=_REMEDY_AMONG if among else _missing_remedy(case, commit=commit),
        details={
            "transactions": case.hits,
            "decisions": sorted(d or "undecided" for d in decisions),
            "marker_epochs": epochs,
            "records": case.records,
        },
        evidence=tuple(_ends(case, context)),
        transactional_id=row.text("transactional_id"),
    )


def _ends(case: Case, context: "Context") -> Iterator[Address]:
    """Where the coordinator's log says that those are complete of which the partition shows nothing."""
    for example in case.examples:
        instance = None if example.addresses else context.instances.get(example.row.word("instance_id"))
        section = instance.maybe("last_section_id") if instance else None
        if instance is not None and section is not None:
            yield Address(section, instance.number("last_byte_offset"), instance.number("last_length"), instance.maybe("complete_offset"))


def _why_lost(log: "Log", context: "Context") -> str:
    """Why a log that ends before an overdue marker is no follower's that lags, as the end of a message."""
    if log.is_led_on:
        return f". Broker {log.broker} led the partition when the log ended here, wrote on long after that, and was dumped then"
    return f". The replicas of {some(_brokers(log, context))} all end at one offset, and were dumped after that"


def _brokers(log: "Log", context: "Context") -> list[str]:
    return [f"broker {broker}" for broker in sorted({one.broker for one in context.replicas(log) if one.broker is not None})]


_REMEDY_AMONG = (
    "Do not abort. Read the partition around the markers of this producer: data of two transactions that one marker ended was ended by the "
    "wrong one. Dump the other replicas of the partition; one of them may still have the marker."
)


def _missing_remedy(case: Case, *, commit: bool) -> str:
    if not case.records and not commit:
        return (
            "Nothing to abort, and nothing to publish again. Where a COMMIT of the producer follows, compare the data below it with what "
            "the application sent: records whose ABORT is lost are committed by the next COMMIT (T15), and neither epochs nor times tell "
            "whose they are."
        )
    if not case.records:
        return (
            "If the topic was deleted and created again, or its log truncated after an unclean election, the records are gone: "
            "publish them again. Nothing to abort."
        )
    if commit:
        return (
            "Do not abort: the records were promised as committed, no tool writes a COMMIT marker, and an abort would lose them. Where a "
            "COMMIT of the producer follows them here, they are visible: publish nothing. Where an ABORT does, publish them again. Where "
            "neither does and T01 reports this transaction as hanging, follow its remedy: the producer's next COMMIT here makes them "
            "visible, so publish them again with another transactional.id only."
        )
    return "Safe to leave if another ABORT of the producer follows; if T01 reports this transaction as hanging, follow its remedy."
