"""C19 two-pc: transactions that never time out, because another system decides them.

Proves: An id has the timeout 2147483647: its transactions are prepared in two phases (KIP-939), and the coordinator never ends them by
itself.

Bad history: Empty with timeout 2147483647, which is no fault.

Legal look-alike: A long timeout within transaction.max.timeout.ms.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import ids_of
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import NEVER_TIMES_OUT

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C19",
    slug="two-pc",
    severity="info",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # `TransactionMetadata.isDistributedTwoPhaseCommitTxn`; the entry with which the timeout comes.
    where=f"timeout_ms = {NEVER_TIMES_OUT} AND NOT (timeout_ms <=> previous_timeout_ms)",
    by="timeout_ms",
    columns="entry_offset",
    informs=True,
    cause="transaction.two.phase.commit.enable of the producer",
    remedy=(
        "Nothing to repair. Where such a transaction stays open, ask the system that coordinates it (Flink, an XA manager) whether it "
        "commits or aborts; never abort it with Kafka's tools before."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """Names the ids: nobody but their own system ends what they leave open."""
    row = case.row
    return Explanation(
        f"{ids_of(case)} {'has' if case.hits == 1 else 'have'} transactions that never time out (KIP-939): another system decides them, "
        "and what it forgets stays open",
        producer_id=row.maybe("producer_id") if case.hits == 1 else None,
        producer_epoch=row.maybe("producer_epoch") if case.hits == 1 else None,
    )
