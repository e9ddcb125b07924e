"""Sentences that several rules of this family share."""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case
from eo_audit.words import shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# Why `coordinator_history` calls a step illegal when the entry itself, not the step, is what no coordinator writes (C11).
NEVER_WRITTEN = "('transient_state', 'unknown_state')"


def name_of(row: Row) -> str:
    """The transactional id of an entry or a transaction."""
    return shown(row.text("transactional_id"))


def ids_of(case: Case) -> str:
    """The transactional ids of a case of a whole log: the only one by its name, else how many, and the first of them."""
    names = list(dict.fromkeys(name_of(example.row) for example in case.examples))
    if len(names) == 1 and len(case.examples) == case.hits:
        return names[0]
    number = len(names) if len(case.examples) == case.hits else case.hits
    listed = ", ".join(names[:3]) + (" ..." if number > 3 else "")
    return f"{number} transactional ids ({listed})"


def asked(row: Row, context: "Context") -> str:
    """What to ask the coordinator before anything is done."""
    version = context.version(row.word("cluster"))
    # DescribeTransactions (KIP-664) came with 3.0: the log itself is all that older brokers can be asked.
    if version is not None and version < commands.FIRST_TOOL:
        return "dump the end of its partition of __transaction_state again (brokers before 3.0 do not answer describe)"
    return commands.describe(row.text("transactional_id") or "") + (" (brokers from 3.0)" if version is None else "")


def last_heard_ms(case: Case, context: "Context", *, is_seen: bool) -> tuple[int | None, int | None]:
    """When a transaction was seen as the coordinator's log shows it at its end: as well as anybody tells, and at the earliest, in ms.

    Args:
        case: one transaction, in a log of the coordinator.
        context: asked for `went_on_ms`.
        is_seen: partitions that it lists show it as it is, at their own ends, which may have been dumped later.
    """
    cluster, log = case.row.word("cluster"), case.log
    of_log = cluster, log.log_id if log else None
    now, at_least = context.coordinator_now(*of_log), context.coordinator_now_at_least(*of_log)
    if log is None or is_seen or log.log_id in context.dumped_at_ms:
        return now, at_least
    # Markers of its other producers that it does not tell of came after its dump: the audit's now is no time of it.
    apart_ms = context.farthest_ms.get(cluster, 0) + context.cluster(cluster).number("skew_ms", 2_000)
    went_on = context.went_on_ms.get(log.log_id, 0) > log.newest_ms + apart_ms
    return (log.newest_ms, log.newest_ms) if went_on else (now, at_least)


def more(case: Case) -> str:
    """That there are more of the kind; empty for one."""
    return "" if case.hits == 1 else f" (the first of {case.hits})"


def step_details(case: Case) -> dict[str, object]:
    """The step of the first entry, for the details of a finding."""
    row = case.row
    return {
        "from": row.text("previous_status"),
        "to": row.text("status"),
        "previous_epoch": row.maybe("previous_epoch"),
        "epoch": row.maybe("producer_epoch"),
        "reason": row.text("step_reason"),
        "entries": case.hits,
    }
