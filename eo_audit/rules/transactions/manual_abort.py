"""T13 manual-abort: an operator aborted the transaction on this partition by hand.

Proves: An ABORT without a coordinator decision, with the data's own epoch and an old coordinator epoch: kafka-transactions.sh or
Admin.abortTransaction.

Bad history: Coordinator says CompleteCommit, the partition shows an ABORT with coordinator epoch 0.

Legal look-alike: A coordinator's ABORT of a client that gave up: the coordinator log has its PrepareAbort.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T13",
    slug="manual-abort",
    severity="info",
    reads=("producer_history",),
    subject="marker",
    needs=("order", "assigned"),
    # The coordinator log has no trace of it: kafka-transactions.sh sends WriteTxnMarkers to the partition leader itself.
    where="marker_role = 'manual'",
    columns="instance_decision base_offset marker_coordinator_epoch",
    asks=ASKS,
    informs=True,
    cause="an operator ended a hanging transaction on this partition",
    remedy="Nothing to abort. If the transaction was committed elsewhere, publish the records of this partition again.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """Worse when the coordinator committed."""
    row = case.row
    decision = row.text("instance_decision")
    message = (
        f"The ABORT at offset {row.maybe('base_offset')} for {who(case, context)} was written by hand (coordinator epoch "
        f"{row.maybe('marker_coordinator_epoch')}): no coordinator decision explains it"
    )
    if decision == "COMMIT":
        message += ", and the coordinator committed that transaction"
    return Explanation(
        message,
        severity="critical" if decision == "COMMIT" else "info",
        certainty="definite" if decision else "likely",
        named=id_of(case, context),
        details={"markers": case.hits, "decision": decision, "coordinator_epoch": row.maybe("marker_coordinator_epoch")},
    )
