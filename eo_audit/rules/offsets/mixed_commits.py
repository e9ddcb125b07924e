"""O06 mixed-commits: a group commits offsets of one partition both in transactions and outside of them.

Proves: While its members were the same, a group went back and forth between commits in transactions and plain ones for one partition. A
plain commit stands although the transaction of the same input is aborted: that input is then never processed. It does not prove that
delivery was wrong.

Bad history: Transaction, plain commit, transaction, plain commit of payments-app for orders-0, without a rebalance between.

Legal look-alike: An application that was changed to transactions, or back: its group had other members before; a reset of the offsets, for
which the group must be empty; one plain commit, as at a shutdown (info).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.offsets.words import committed, group_of, place
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of
from eo_audit.words import count, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# To and fro and to again: a single plain commit between two transactions is twice.
ALTERNATES_FROM = 3

RULE = Rule(
    code="O06",
    slug="mixed-commits",
    severity="warning",
    reads=("group_offsets",),
    subject="group_offset undecoded_offsets",
    needs=("order", "past", "decoded"),
    where="kind_changes > 0",
    by="group",
    weight="kind_changes",
    columns="kind_changes",
    asks=ASKS,
    proves_delivery_wrong=False,
    cause="enable.auto.commit was left on, or the application calls commitSync() or commitAsync() beside sendOffsetsToTransaction()",
    remedy=(
        "Nothing to abort. Set enable.auto.commit=false, and commit offsets with sendOffsetsToTransaction() only: plain commits stay when "
        "a transaction is aborted, and its input is then skipped."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """A warning from three changes on: fewer may be a shutdown or a reset."""
    row, group = case.row, group_of(case)
    changes = row.number("kind_changes")
    message = (
        f"Group {shown(group)} commits offsets of {committed(row)} both in transactions and outside of them: it went from one to the "
        f"other {count(changes, 'time')} on {place(case)} while its members were the same. A plain commit stands although a transaction is "
        "aborted"
    )
    return Explanation(
        message,
        severity="warning" if changes >= ALTERNATES_FROM else "info",
        certainty="likely",
        details={"changes": changes},
        named=id_of(case, context),
        group=group,
    )
