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
