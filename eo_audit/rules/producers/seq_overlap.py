"""P03 seq-overlap: a batch repeats some sequences of an earlier one in another shape.

Proves: Two batches of one producer and epoch share some sequence numbers but not all: records were sent again in other batches.

Bad history: Sequences 0 to 4 at offset 0, then sequences 2 to 5 at offset 5.

Legal look-alike: A batch that straddles the wrap: base sequence 2147483646, last sequence 1; on brokers up to 2.3 a producer that
numbers anew because all its records were deleted (KAFKA-7190).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.producers.words import sequences
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P03",
    slug="seq-overlap",
    severity="critical",
    reads=("producer_history",),
    subject="sequenced_batch",
    # Two batches that are there prove it, whatever a hole hides.
    needs=("order", "epochs"),
    # The same records in other batches: the broker compares whole batches only (`ProducerStateEntry.findDuplicateBatch`).
    where="label = 'overlap'",
    columns="base_offset last_offset overlaps_offset base_sequence last_sequence",
    asks=ASKS,
    cause="a client re-batched its retry after the leader had lost the producer's state, or a client library numbers its retries wrongly",
    remedy=(
        "Nothing to repair in the log; safe to leave. De-duplicate downstream by sequence number per record, "
        "and find the client's library and version."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first such batch speaks, and the batch that it intersects."""
    row = case.row
    message = (
        f"Another batch of {who(case, context)} repeats sequences: {sequences(case)} at "
        f"{offsets(row.maybe('base_offset'), row.maybe('last_offset'))} intersect the batch at offset {row.maybe('overlaps_offset')}; "
        f"{count(case.hits, 'batch', 'batches')} in all"
    )
    return Explanation(message, named=id_of(case, context), details={"overlaps_offset": row.maybe("overlaps_offset"), "batches": case.hits})
