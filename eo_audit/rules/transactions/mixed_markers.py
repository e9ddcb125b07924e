"""T06 mixed-markers: one transaction was committed in one place and aborted in another.

Proves: One transaction ended with COMMIT in one place and ABORT in another: atomicity is broken.

Bad history: The coordinator decided ABORT; orders-0 has the ABORT, orders-1 a COMMIT of the same transaction. Or an operator aborted a
live transaction on orders-1, and the coordinator committed it.

Legal look-alike: PrepareCommit followed by PrepareAbort in the coordinator log alone (a ghost record): only markers count.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions.decisions import MARKER_COLUMNS, PARTITION_COLUMNS, contradictions
from eo_audit.rules.writers import ASKS, id_of, named, of_transactions
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T06",
    slug="mixed-markers",
    severity="critical",
    reads=("instance_partitions", "producer_history", "visibility", "transaction_instances"),
    subject="transactional_batch registered_partition",
    needs=("order", "past", "matched", "coordinator", "dumped"),
    # A marker of the coordinator's; `find` is for an operator's, and for producers of which no coordinator log was dumped.
    where="marker_match = 'contradictory'",
    find=contradictions,
    columns=PARTITION_COLUMNS,
    found=MARKER_COLUMNS,
    asks=ASKS,
    # Both would tell of the same data: here the transaction's own marker is wrong, there it is another's.
    silences=("T15",),
    speaks_for=("T05",),
    cause=(
        "an operator aborted a live transaction, a failover between two decisions, or a delayed EndTxn of an older transaction "
        "(KAFKA-17754)"
    ),
    remedy=(
        "Nothing to abort. List the records on both sides (offsets in this finding and in the other partitions of the transaction) and "
        "correct them downstream: a log cannot be changed."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Against the coordinator's decision, or, without it, against another marker."""
    row = case.row
    # Rows of two tables: a partition whose marker contradicts the decision, and a marker that contradicts another marker.
    if row.text("row_kind") == "marker":
        return _mixed_in_data(case, context)
    if row.text("marker_match") == "manual":
        return _by_hand(case, context)
    decision = context.decision(row.word("instance_id"))
    message = (
        f"The coordinator decided {decision} for a transaction of {of_transactions(case, context)}, "
        f"but offset {row.maybe('marker_offset')} of this partition says {row.word('marker_type')}: "
        f"{_records(case)} had the other fate"
    )
    details = {
        "decision": decision,
        "marker_type": row.text("marker_type"),
        "marker_offset": row.maybe("marker_offset"),
        "transactions": case.hits,
        "by_hand": False,
    }
    return Explanation(message, details=details, transactional_id=row.text("transactional_id"))


def _records(case: Case) -> str:
    first, last = case.row.maybe("data_first_offset"), case.row.maybe("data_last_offset")
    if first is None:
        return "its records, none of which the dumps show,"
    if case.hits > 1:
        # All have another fate, and the addresses are those of one.
        return f"{count(case.records, 'record')} of {case.hits} transactions, the first at {offsets(first, last)},"
    return f"{count(case.records, 'record')} at {offsets(first, last)}"


def _by_hand(case: Case, context: "Context") -> Explanation:
    """The operator's ABORT came first, so the coordinator's COMMIT found nothing left to commit here."""
    row = case.row
    epoch = row.maybe("marker_coordinator_epoch")
    message = (
        f"The ABORT at offset {row.maybe('marker_offset')} of this partition looks written by hand (coordinator epoch {epoch}), and the "
        f"coordinator committed that transaction of {of_transactions(case, context)}: "
        f"{_records(case)} had the other fate"
    )
    details = {
        "decision": "COMMIT",
        "marker_type": row.text("marker_type"),
        "marker_offset": row.maybe("marker_offset"),
        "coordinator_epoch": epoch,
        "transactions": case.hits,
        "by_hand": True,
    }
    return Explanation(
        message,
        cause=(
            "an operator aborted a live transaction on this partition (kafka-transactions.sh abort, Admin.abortTransaction): the "
            "coordinator does not learn of it, and committed the rest. Under transaction.version 2 the ABORT of the transaction before "
            "looks the same if it comes again (KAFKA-19446)"
        ),
        remedy=(
            "Nothing to abort. Publish the records at these offsets again: read_committed consumers never get them, while the other "
            "partitions of the transaction show theirs. Before the next abort by hand ask the coordinator: what "
            "kafka-transactions.sh describe calls Ongoing is live."
        ),
        details=details,
        transactional_id=row.text("transactional_id"),
    )


def _mixed_in_data(case: Case, context: "Context") -> Explanation:
    row = case.row
    message = (
        f"The {row.word('marker_type')} at offset {row.maybe('base_offset')} belongs to a transaction of "
        f"{named(case, context)} (marker epoch {row.maybe('producer_epoch')}) that ended the other way in another partition or "
        "replica: without __transaction_state nobody knows which is right"
    )
    return Explanation(
        message,
        named=id_of(case, context),
        details={"marker_type": row.text("marker_type"), "markers": case.hits, "mechanism": "data only"},
    )
