"""T15 merged-txn: data that the coordinator aborted is closed by the COMMIT of a later transaction.

Proves: Records whose transaction was aborted are closed by the COMMIT of the producer's next transaction: consumers get aborted data.

Bad history: Data of transaction 1 (ABORT decided, marker lost), data of transaction 2, COMMIT.

Legal look-alike: Two transactions of one producer and epoch with a marker between them; in a log that was cleaned, without the ABORT, where
no marker between them shows that the data is older than the transaction that the COMMIT ends.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions.words import DATA
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T15",
    slug="merged-txn",
    severity="critical",
    reads=("producer_history",),
    subject="transactional_batch",
    needs=("order", "past", "assigned"),
    # By what the coordinator decided, against how the span ended in this log: the next COMMIT of a producer id takes whatever is open.
    where=f"{DATA} AND instance_decision = 'ABORT' AND span_outcome = 'committed' AND NOT end_unsure",
    columns="late span_id",
    asks=ASKS,
    caused_by=("X02",),
    # The ABORT is missing here (T05): that a COMMIT took its data says more.
    speaks_for=("T05",),
    cause=(
        "the ABORT marker was lost on this partition (where it is compacted, the cleaner may have taken it: KAFKA-14055, up to 3.2.0), or "
        "the data was written after it (late write)"
    ),
    remedy=(
        "Nothing to abort: the records are committed for every reader. Find them by the offsets, correct downstream, "
        "and compare the replicas of this partition for the lost marker."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Told apart by where the data stands: its ABORT was lost, or the data came after it."""
    row = case.row
    instance = context.instances.get(row.word("instance_id"))
    wrote = who(case, context)
    # Two ways to the same log: the marker was never written here (V4), or the data was written after it (V5).
    late = row.text("late") in ("proved", "suspected")
    message = (
        f"{count(case.records, 'record')} of an aborted transaction of {wrote} at {offsets(case.first, case.last)} "
        f"{_without_abort(case, late)} and are closed by a later COMMIT: "
        "aborted data counts as committed"
    )
    return Explanation(
        message,
        named=id_of(case, context),
        certainty="likely" if row.text("late") == "suspected" else "definite",
        details={"batches": case.hits, "mechanism": "V5" if late else "V4", "span": row.maybe("span_id")},
        transactional_id=instance.text("transactional_id") if instance else None,
    )


def _without_abort(case: Case, late: bool) -> str:
    """Of a log that was cleaned nobody knows whether its ABORT was there."""
    if late:
        return "came after their ABORT"
    return "have no ABORT any more" if case.log is not None and case.log.numbers.flag("compacted") else "never got their ABORT"
