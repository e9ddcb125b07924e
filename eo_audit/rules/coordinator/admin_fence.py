"""C18 admin-fence: an id was fenced by an administrator, not initialised by a producer.

Proves: The last entry of an id is Empty with a timeout of 1 ms: Admin.fenceProducers wrote it (up to 3.7.0), to lock its producers out.

Bad history: CompleteCommit, then Empty with the next epoch and timeout 1, and nothing more; no fault.

Legal look-alike: Empty of a producer, which has its transaction.timeout.ms; later releases fence with the timeout of the call, and look
like one.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import ids_of
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C18",
    slug="admin-fence",
    severity="info",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # `FenceProducersHandler` asks InitProducerId with a transaction timeout of 1 ms: no producer does.
    where="is_last AND status = 'Empty' AND timeout_ms = 1",
    by="timeout_ms",
    columns="entry_offset",
    informs=True,
    cause="Admin.fenceProducers: Kafka Connect before it starts the tasks of a source connector, or an operator's program",
    remedy="Nothing to repair: what the id had open was aborted. Its next producer takes over with initTransactions().",
)


def explain(case: Case, _context: "Context") -> Explanation:
    """Names the ids that were locked out and not used since."""
    row = case.row
    one = case.hits == 1
    return Explanation(
        f"{ids_of(case)} {'was' if one else 'were'} fenced with Admin.fenceProducers (timeout 1 ms) and not used since",
        certainty="likely",
        producer_id=row.maybe("producer_id") if one else None,
        producer_epoch=row.maybe("producer_epoch") if one else None,
    )
