"""C11 transient-persisted: a state that is never written.

Proves: An entry carries a state that only exists in memory (Dead, PrepareEpochFence) or that no version knows. By itself it does not prove
that delivery was wrong.

Bad history: Status 7 in the log.

Legal look-alike: A tombstone, which is how Dead looks in the log.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import NEVER_WRITTEN, more, name_of, step_details
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C11",
    slug="transient-persisted",
    severity="error",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # Dead and PrepareEpochFence live in memory only: `TransactionLog.valueToBytes` never gets them, an expired id is a tombstone.
    where=f"step = 'illegal' AND step_reason IN {NEVER_WRITTEN}",
    by="transactional_id",
    columns="entry_offset status previous_status previous_epoch step_reason",
    proves_delivery_wrong=False,
    cause="something other than a coordinator wrote to __transaction_state, or the entry is corrupt",
    remedy="Check who may write to __transaction_state, and compare the replicas of this partition.",
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first such entry speaks."""
    row = case.row
    message = (
        f"The entry of {name_of(row)} at offset {row.maybe('entry_offset')} of the coordinator log has state {row.word('status')}, "
        f"which is never written{more(case)}"
    )
    return Explanation(message, details=step_details(case), producer_epoch=row.maybe("producer_epoch"))
