"""T10 marker-epoch-invalid: a marker whose epoch cannot belong to the data it closes; data of two epochs in one open interval.

Proves: A COMMIT has the epoch of its data (TV0/1) or one more (TV2), an ABORT up to two more; data of one open transaction has one epoch.

Bad history: Data of epoch 0, COMMIT of epoch 3.

Legal look-alike: A fence or a timeout: ABORT of epoch 1 for data of epoch 0; an operator's ABORT with the data's epoch. Brokers before 2.6
burn epochs where they fence (KAFKA-9666): what the coordinator's log tells nothing of may be such an ABORT.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions.words import DATA
from eo_audit.rules.writers import ASKS, id_of, named, who

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RAISED = "producer_epoch - previous_epoch"
# A coordinator's own ABORT may have any epoch that its PrepareAbort has: KAFKA-9666 burns epochs.
ODD_MARKER = f"""row_kind = 'marker' AND in_open_transaction AND NOT (marker_type = 'ABORT' AND coalesce(marker_role, '') = 'closing')
    AND NOT ({RAISED} BETWEEN 0 AND CASE marker_type WHEN 'COMMIT' THEN 1 ELSE 2 END)"""
# What the coordinator's log tells nothing of may be such an ABORT.
BURNED = f"coalesce(row_kind = 'marker' AND marker_type = 'ABORT' AND coalesce(marker_role, 'unknown') = 'unknown' AND {RAISED} > 0, false)"
# A coordinator ends what is open before it gives out a higher epoch (`TransactionCoordinator.handleInitProducerId`).
SECOND_EPOCH = f"{DATA} AND is_transactional AND in_open_transaction AND {RAISED} <> 0"

RULE = Rule(
    code="T10",
    slug="marker-epoch-invalid",
    severity="error",
    reads=("producer_history",),
    subject="marker",
    needs=("order", "epochs", "past"),
    where=f"(({ODD_MARKER}) OR ({SECOND_EPOCH})) AND predecessor = 'observed'",
    # Where one of them is odd for sure, that one speaks.
    weight=f"IF({BURNED}, 0, 1)",
    columns="row_kind base_offset previous_epoch marker_type marker_role",
    asks=ASKS,
    caused_by=("T15", "T05"),
    # An odd epoch may be why a marker was lost, or what a merged transaction shows of itself: never both.
    cause_above_info=True,
    cause="a corrupt or edited segment, or data that was left open and then continued by a newer epoch",
    remedy="Compare the segment with another replica. Do not abort anything on this evidence alone.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """An odd marker, or data of two epochs in one open transaction."""
    row = case.row
    burned = False
    if row.text("row_kind") == "data":
        message = (
            f"Data of {who(case, context)} at offset {row.maybe('base_offset')} continues an open transaction of epoch "
            f"{row.maybe('previous_epoch')}: one marker will decide both"
        )
    else:
        burned = _may_be_burned(case)
        message = (
            f"The {row.word('marker_type')} at offset {row.maybe('base_offset')} has epoch {row.maybe('producer_epoch')}, "
            f"the data of {named(case, context)} that it closes has epoch {row.maybe('previous_epoch')}: "
            + ("brokers before 2.6 write that where fences failed, and no dump shows what the coordinator decided" if burned else _NOBODY)
        )
    details = {
        "epoch": row.maybe("producer_epoch"),
        "data_epoch": row.maybe("previous_epoch"),
        "marker_type": row.text("marker_type"),
        "batches": case.hits,
    }
    # Two epochs in one span are what a lost or late marker leaves: where those rules speak, this one only adds to it.
    left_by = ("T05", "T15") if row.text("row_kind") == "data" else ()
    if burned:
        return Explanation(message, severity="info", certainty="open", named=id_of(case, context), details=details)
    return Explanation(message, named=id_of(case, context), details=details, left_by=left_by)


_NOBODY = "no protocol version writes that"


def _may_be_burned(case: Case) -> bool:
    """Whether the case is of such ABORTs only: the oddest one speaks for it."""
    row = case.row
    raised = (row.maybe("producer_epoch") or 0) > (row.maybe("previous_epoch") or 0)
    return row.text("marker_type") == "ABORT" and row.text("marker_role") in (None, "unknown") and raised
