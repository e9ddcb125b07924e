"""T13 manual-abort: an operator ended a hanging transaction on this partition by hand.

Proves: An ABORT without a coordinator decision, with the data's own epoch and an old coordinator epoch: kafka-transactions.sh or
Admin.abortTransaction.

Bad history: Data of a transaction that the coordinator does not list on this partition, and behind it an ABORT with coordinator epoch 0.

Legal look-alike: A coordinator's ABORT of a client that gave up: the coordinator log has its PrepareAbort. An ABORT by hand of a
transaction that the coordinator committed is no look-alike: it broke that transaction, and T06 tells of it.
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
    # Of a transaction that it committed all the same T06 tells.
    where="marker_role = 'manual' AND coalesce(instance_decision <> 'COMMIT', true)",
    columns="instance_decision base_offset marker_coordinator_epoch",
    asks=ASKS,
    informs=True,
    cause=(
        "an operator ended a hanging transaction on this partition; under transaction.version 2 the ABORT of the transaction before looks "
        "the same if it comes again (KAFKA-19446)"
    ),
    remedy="Nothing to abort. If its records should have been committed, publish them again.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """What was written, and how sure it is that a hand did it."""
    row = case.row
    decision = row.text("instance_decision")
    message = (
        f"The ABORT at offset {row.maybe('base_offset')} for {who(case, context)} was written by hand (coordinator epoch "
        f"{row.maybe('marker_coordinator_epoch')}): no coordinator decision explains it"
    )
    return Explanation(
        message,
        certainty="definite" if decision else "likely",
        named=id_of(case, context),
        details={"markers": case.hits, "decision": decision, "coordinator_epoch": row.maybe("marker_coordinator_epoch")},
    )
