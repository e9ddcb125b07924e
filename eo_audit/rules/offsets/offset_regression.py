"""O02 offset-regression: the committed offset of a group goes back.

Proves: A commit that came to count is lower than the one before it: the input between is processed again, and what was written for it
stands twice if nobody meant it so. It does not prove that delivery was wrong.

Bad history: One producer and epoch commits offset 100 for orders-0, and 60 in its next transaction.

Legal look-alike: An offset that an operator reset, and an application that seeks (both are told, and break no promise); a tombstone between
(expiry, topic created anew); a commit of -1; two commits of one transaction, of which the newer counts; a hole between.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.offsets.words import committed, group_of, place, times
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import whose
from eo_audit.rules.writers import ASKS, id_of, id_of_producer, who
from eo_audit.words import count, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.row import Row

_BOTH = "is_transactional AND counted_is_transactional"
# Under transaction.version 2 the end of each transaction raises the epoch by one, an initTransactions() between by one more.
_ONE_OWNER = f"{_BOTH} AND producer_id = counted_producer_id AND producer_epoch - counted_producer_epoch IN (0, 1)"

RULE = Rule(
    code="O02",
    slug="offset-regression",
    severity="warning",
    reads=("group_offsets",),
    subject="group_offset undecoded_offsets",
    needs=("order", "epochs", "past", "decoded"),
    where="goes_back",
    by="group",
    # The gravest speaks.
    weight=f"CASE WHEN {_ONE_OWNER} THEN 2 WHEN {_BOTH} THEN 1 ELSE 0 END",
    columns=(
        "committed_offset is_transactional effective_offset counted_committed_offset counted_is_transactional counted_producer_id "
        "counted_producer_epoch"
    ),
    asks=ASKS,
    producers=("producer_id", "counted_producer_id"),
    proves_delivery_wrong=False,
    cause="the application went back (seek, a restored state), or an owner that had lost the partition committed once more",
    remedy=(
        "Ask the owners of the group whether they went back on purpose (seek, restored state). If not, look for output that stands twice "
        "(P12) and for a second owner of the partition (O03, I06)."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """An error of one producer that was not initialised between, an info where one of the two was no commit in a transaction: that is how a
    reset looks."""
    row, group = case.row, group_of(case)
    both = row.flag("is_transactional") and row.flag("counted_is_transactional")
    epochs = row.maybe("producer_epoch"), row.maybe("counted_producer_epoch")
    same = both and row.maybe("producer_id") == row.maybe("counted_producer_id") and _is_one_life(row, context)
    before, now = row.number("counted_committed_offset"), row.number("committed_offset")
    if not both:
        how = "by a commit outside of transactions, as a reset does" if not row.flag("is_transactional") else "behind a plain commit"
    elif same:
        how = f"by {who(case, context)}, which had committed the greater one itself"
    else:
        other = row.number("counted_producer_id")
        how = f"by {who(case, context)}, behind a commit of {whose(id_of_producer(case, context, other), other, epochs[1])}"
    message = (
        f"The offset of group {shown(group)} for {committed(row)} went back from {before} to {now} at offset "
        f"{row.maybe('effective_offset')} of {place(case)}{times(case)}, {how}: {count(before - now, 'offset')} are read again"
    )
    reset = (
        "A reset with kafka-consumer-groups.sh looks like this, and so do applications that also commit outside of transactions: ask who "
        "did it. Nothing to repair if it was meant."
    )
    return Explanation(
        message,
        severity="error" if same else "warning" if both else "info",
        certainty="likely" if both else "open",
        cause=None if both else "an operator reset the offsets, or the application commits outside of transactions, too",
        remedy=None if both else reset,
        details={"from": before, "to": now, "times": case.hits, "same_producer_and_epoch": same},
        named=id_of(case, context),
        group=group,
    )


def _is_one_life(row: "Row", context: "Context") -> bool:
    """Whether the producer was not initialised between: the same epoch, or under transaction.version 2 that of its next transaction."""
    instance = context.instances.get(row.word("instance_id"))
    raised = row.number("producer_epoch", -1) - row.number("counted_producer_epoch", -1)
    return raised == 0 or (raised == 1 and instance is not None and instance.text("protocol") == "tv2")
