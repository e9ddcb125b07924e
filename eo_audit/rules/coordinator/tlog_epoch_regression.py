"""C04 tlog-epoch-regression: an epoch that goes back, jumps, or does not start at 0 with a new producer id.

Proves: The epoch of an id fell, rose by more than any step does, or did not restart at 0 with a new producer id: fencing cannot be relied
on. By itself it does not prove that delivery was wrong.

Bad history: Epoch 5, then epoch 3, for the same id and producer id.

Legal look-alike: A new producer id with epoch 0 after exhaustion or expiry; PrepareAbort(e+2) on 4.0; burned epochs before 2.6
(KAFKA-9666).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import more, name_of, step_details
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C04",
    slug="tlog-epoch-regression",
    severity="critical",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # The producer's epoch in the entries of one id only rises, by the steps of its protocol (`TransactionMetadata.prepareTransitionTo`).
    where="epoch_step IN ('regression', 'jump', 'pid_change_epoch_not_zero')",
    by="transactional_id",
    columns="epoch_step previous_pid previous_epoch entry_offset previous_status status step_reason",
    # Fencing is in danger, no record is shown to be wrong: P05 shows those.
    proves_delivery_wrong=False,
    cause="a truncated or forked coordinator log (unclean election on __transaction_state), or entries that no coordinator wrote",
    remedy=(
        "Stop the producers of this id, compare the replicas of this coordinator partition, then restart one producer: "
        "initTransactions() fences the rest."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first such entry speaks."""
    row = case.row
    if row.text("epoch_step") == "pid_change_epoch_not_zero":
        what = (
            f"changes from producer {row.maybe('previous_pid')} to {row.maybe('producer_id')} with epoch {row.maybe('producer_epoch')} "
            "instead of 0"
        )
    else:
        verb = "falls" if row.text("epoch_step") == "regression" else "jumps"
        what = f"{verb} from epoch {row.maybe('previous_epoch')} to {row.maybe('producer_epoch')} for producer {row.maybe('producer_id')}"
    message = f"The coordinator log of {name_of(row)} {what} at offset {row.maybe('entry_offset')}{more(case)}"
    return Explanation(
        message, details={**step_details(case), "epoch_step": row.text("epoch_step")}, producer_epoch=row.maybe("producer_epoch")
    )
