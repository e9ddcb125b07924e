"""C03 illegal-transition: a step that no coordinator takes.

Proves: Two neighbouring entries of an id are a step that no coordinator takes. Compaction cannot fake it: it only removes the beginning of
a story. By itself it does not prove that delivery was wrong.

Bad history: Ongoing is followed by CompleteCommit; an id begins with Ongoing in a log that holds all its entries from offset 0 on.

Legal look-alike: PrepareCommit(e) then PrepareAbort(e+1), or PrepareAbort(e+1) then PrepareCommit(e): the first did not count (C09); TV2:
Empty then PrepareAbort; whatever state compaction left as the first. A completion that was written twice is C10, a tombstone behind an open
transaction C14.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import more, name_of, step_details
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C03",
    slug="illegal-transition",
    severity="error",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # What no coordinator writes in any step is C11's, a second completion C10's, a tombstone C14's; what a failed append explains is a
    # ghost, C09.
    # `TransactionCoordinator.handleInitProducerId` begins each id with Empty, and nobody has cleaned what is whole from offset 0 on.
    where=(
        "(step = 'illegal' AND step_reason = 'not_in_table') "
        "OR (step = 'first' AND previous_offset IS NULL AND head_known AND status <> 'Empty')"
    ),
    by="transactional_id",
    columns="previous_epoch previous_status status entry_offset step_reason",
    proves_delivery_wrong=False,
    cause="a segment of the coordinator log is missing, the log was truncated or forked, or something else wrote to it",
    remedy=(
        "Compare the replicas of this coordinator partition; check who may write to __transaction_state. "
        "Verify the markers of the transaction (T05, T06)."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first such step speaks."""
    row = case.row
    before, after = row.maybe("previous_epoch"), row.maybe("producer_epoch")
    step = f"{row.text('previous_status') or 'nothing'} to {row.word('status')}"
    epochs = f"epoch {after}" if before is None else f"epoch {before} to {after}"
    message = (
        f"The coordinator log of {name_of(row)} goes from {step} ({epochs}) at offset {row.maybe('entry_offset')}: "
        f"no coordinator takes that step{more(case)}"
    )
    return Explanation(message, details=step_details(case), producer_epoch=row.maybe("producer_epoch"))
