"""T04 marker-no-decision: a marker that no decision of the coordinator explains.

Proves: The coordinator's log tells of this time and this producer, and holds no decision that this marker could come from.

Bad history: COMMIT at offset 8 with an epoch that no transaction of the producer ever had.

Legal look-alike: A coordinator's log whose decision was compacted away, or that was dumped before the marker was written; an ABORT by
hand (T13); a marker that was sent twice (T09); a marker that contradicts its decision (T06). A coordinator that was killed before its
decision was replicated, and came back before it was missed, sends the markers of it: where its successor decides the same, that informs.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T04",
    slug="marker-no-decision",
    severity="error",
    reads=("producer_history",),
    subject="marker",
    needs=("order", "past", "coordinator", "assigned"),
    # `unexplained` is said only where the coordinator's log reaches back far enough, and on far enough (history/judged_events).
    where="row_kind = 'marker' AND marker_role IN ('unexplained', 'superseded')",
    # An epoch that no data before it had tells most, then one that ends data; one that was decided again tells least.
    weight=(
        "CASE WHEN marker_role = 'superseded' THEN 0 ELSE IF(previous_epoch <=> producer_epoch, 1, 3) + IF(in_open_transaction, 1, 0) END"
    ),
    columns="base_offset marker_type marker_coordinator_epoch marker_role in_open_transaction previous_epoch producer_epoch predecessor",
    asks=ASKS,
    caused_by=("T10", "T08"),
    cause=(
        "records of __transaction_state were lost (an unclean election, a restore), a coordinator that was no longer in charge wrote it, "
        "or somebody sent WriteTxnMarkers by hand"
    ),
    remedy=(
        "Ask who was working on the cluster at that time (kafka-transactions.sh abort, Admin.abortTransaction). Compare the replicas of "
        "__transaction_state, and the other partitions of the same transaction: if they ended otherwise, correct that downstream."
    ),
)


_REPLACED = (
    "a coordinator that was killed and came back before it was missed: it read its log up to the end, and sent the markers of a decision "
    "that no other broker had yet (`TransactionStateManager.loadTransactionMetadata`)"
)
_NOTHING = "Nothing to repair: the transaction ended as its coordinator says."


def explain(case: Case, context: "Context") -> Explanation:
    """An error only where no transaction of the producer had its epoch: such a marker speaks first, then one that ended data."""
    row = case.row
    is_superseded = row.text("marker_role") == "superseded"
    closes = "it ended data" if row.flag("in_open_transaction") else "it ended nothing"
    more = f", and {count(case.hits - 1, 'more marker')} of it" if case.hits > 1 else ""
    message = (
        f"No decision of the coordinator explains the {row.text('marker_type') or 'marker'} of {who(case, context)} at offset "
        f"{row.maybe('base_offset')} (coordinator epoch {row.maybe('marker_coordinator_epoch')}){more}: {closes}"
    )
    if is_superseded:
        message += "; the next coordinator decided the same, and its marker stands right behind"
    details = {
        "markers": case.hits,
        "marker_type": row.text("marker_type"),
        "marker_epoch": row.maybe("producer_epoch"),
        "coordinator_epoch": row.maybe("marker_coordinator_epoch"),
        "ended_data": row.flag("in_open_transaction"),
    }
    # With the epoch of the data before it a marker looks like any other: its decision may be one that the cleaner took. In a hole before it
    # there may be such data.
    usual = row.maybe("previous_epoch") == row.maybe("producer_epoch") or row.text("predecessor") in ("hole", "removed")
    severity, certainty = ("info", "likely") if is_superseded else ("info", "open") if usual else (None, "definite")
    cause, remedy = (_REPLACED, _NOTHING) if is_superseded else (None, None)
    return Explanation(
        message, named=id_of(case, context), severity=severity, certainty=certainty, cause=cause, remedy=remedy, details=details
    )
