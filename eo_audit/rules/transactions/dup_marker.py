"""T09 dup-marker: a marker was written twice: harmless.

Proves: A second marker of the same producer, epoch and kind follows the first, and no data lies between them.

Bad history: COMMIT at offset 5 with coordinator epoch 3, COMMIT at offset 6 with coordinator epoch 4.

Legal look-alike: Two transactions in a row that registered the partition and did not write there: each has its own marker. A second
marker of the other kind is T06.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T09",
    slug="dup-marker",
    severity="info",
    reads=("producer_history",),
    subject="marker",
    # `matched`: without the coordinator's log the marker of an empty transaction looks like a repeat.
    needs=("order", "past", "matched"),
    where=(
        "row_kind = 'marker' AND marker_role = 'duplicate' AND label = 'empty_marker' AND predecessor = 'observed' "
        "AND producer_epoch = previous_epoch"
    ),
    columns="base_offset marker_type marker_coordinator_epoch",
    asks=ASKS,
    informs=True,
    cause=(
        "the coordinator sent it again: its request timed out, or a new coordinator found PrepareCommit or PrepareAbort and sent all "
        "markers anew (`TransactionStateManager.loadTransactionMetadata`)"
    ),
    remedy="Nothing to repair: the second marker closes nothing. Many of them at one time tell of a failover or of slow partition leaders.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first repeat speaks; only a matched one is surely a repeat."""
    row = case.row
    kind = row.word("marker_type")
    message = (
        f"{count(case.hits, 'marker')} of {who(case, context)} {'repeats' if case.hits == 1 else 'repeat'} the one before, the first the "
        f"{kind} at offset {row.maybe('base_offset')} (coordinator epoch {row.maybe('marker_coordinator_epoch')})"
    )
    return Explanation(
        message,
        certainty="definite" if row.text("instance_id") else "likely",
        named=id_of(case, context),
        details={"markers": case.hits, "coordinator_epoch": row.maybe("marker_coordinator_epoch")},
    )
