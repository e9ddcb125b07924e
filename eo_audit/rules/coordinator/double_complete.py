"""C10 double-complete: a transaction was completed twice.

Proves: The completion of a transaction was written again with other content, or when the id's next transaction had begun: the coordinator's
memory and its log differ. By itself it does not prove that delivery was wrong.

Bad history: CompleteCommit, then CompleteCommit with another time; CompleteCommit, Ongoing, and the same CompleteCommit once more.

Legal look-alike: CompleteCommit twice, unchanged, with nothing between: its append seemed to fail and was tried again (C09).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import asked, more, name_of, step_details
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

FIXED = (2, 6)  # the first release with KAFKA-10080
_FIELDS = (
    ("producer id", "previous_pid", "producer_id"),
    ("epoch", "previous_epoch", "producer_epoch"),
    ("timeout", "previous_timeout_ms", "timeout_ms"),
    ("last update", "previous_last_update_ms", "last_update_ms"),
)

RULE = Rule(
    code="C10",
    slug="double-complete",
    severity="error",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # `TransactionMarkerChannelManager.tryAppendToLog` tries again from its queue, with the same value: any other is not from there.
    where="step = 'illegal' AND step_reason = 'double_complete'",
    by="transactional_id",
    columns=(
        "cluster entry_offset status previous_status previous_offset previous_epoch previous_pid previous_last_update_ms last_update_ms "
        "previous_partitions partitions previous_timeout_ms timeout_ms step_reason"
    ),
    # The markers were written before the first completion, and nothing follows from the second one: T05 and T06 say whether.
    proves_delivery_wrong=False,
    cause="KAFKA-10080 (before 2.6), or something other than a coordinator wrote to __transaction_state",
    remedy="See the finding: ask the coordinator, then let it load the id again; upgrade to 2.6 or later.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first of them speaks, with what is not the same."""
    row = case.row
    before, status = row.text("previous_status"), row.word("status")
    again = f"{status} of {name_of(row)} was written again at offset {row.maybe('entry_offset')}"
    if before == status:
        message = f"{again}, behind the one at offset {row.maybe('previous_offset')} and with {_difference(row)}{more(case)}"
    else:
        message = f"{again}, when its next transaction was {before} (offset {row.maybe('previous_offset')}){more(case)}"
    version = context.version(case.log.cluster) if case.log else None
    upgrade = (
        "Upgrade to 2.6 or later (KAFKA-10080)" if version is None or version < FIXED else "Check who may write to __transaction_state"
    )
    remedy = (
        f"See what the coordinator remembers: {asked(row, context)}. If it answers with an error or CONCURRENT_TRANSACTIONS for ever, "
        f"move the leader of its partition of __transaction_state: it loads what the log says. Verify the markers of the "
        f"transaction (T05, T06). {upgrade}."
    )
    return Explanation(message, remedy=remedy, details=step_details(case), producer_epoch=row.maybe("producer_epoch"))


def _difference(row: Row) -> str:
    for name, before, after in _FIELDS:
        was, now = row.maybe(before), row.maybe(after)
        if was != now:
            return f"another {name} ({now} instead of {was})" if was is not None else f"{name} {now}"
    return "other partitions" if row.partitions("previous_partitions") != row.partitions() else "other content"
