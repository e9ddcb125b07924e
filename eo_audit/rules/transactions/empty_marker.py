"""T03 empty-marker: a producer commits again and again in a partition, and there is nothing to commit.

Proves: Many transactions registered the partition and ended with COMMIT, and no record of them is in the log: where the application was
told that they were written, they are lost, and this is the only trace of it.

Bad history: An idempotent client meets OUT_OF_ORDER_SEQUENCE, drops its records, and goes on to commit: 64 COMMIT markers without data.

Legal look-alike: A marker sent again after a failover; a partition that was registered and then not written; data that the cleaner removed.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# Real workloads of nine clients with kills had at most one in a partition (a marker sent again), the one that lost its records 64.
MANY = 10

RULE = Rule(
    code="T03",
    slug="empty-marker",
    severity="info",
    reads=("producer_history",),
    subject="marker",
    # `matched`: a marker that repeats another one is empty, too.
    needs=("order", "past", "matched"),
    # Only COMMIT: an ABORT of nothing is what a client sends that failed before its first record.
    where="row_kind = 'marker' AND marker_type = 'COMMIT' AND marker_role = 'empty' AND predecessor = 'observed'",
    columns="base_offset",
    asks=ASKS,
    informs=True,
    cause="partitions that are registered and not written, or records that the client gave up before it committed (OUT_OF_ORDER_SEQUENCE)",
    remedy=(
        "Ask the application what it sent in these transactions, and look for OutOfOrderSequenceException in its log: if it was told that "
        "records were written here, publish them again."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """A few are legal; so many are a habit of the client, or a loss."""
    if case.hits < MANY:
        return None
    message = (
        f"{count(case.hits, 'COMMIT marker')} of {who(case, context)} close nothing, from offset {case.first} on: "
        "these transactions registered the partition, and no record of them is here"
    )
    return Explanation(message, named=id_of(case, context), details={"markers": case.hits})
