"""P11 seq-arithmetic: a batch's offsets, its number of records, its producer and its sequences contradict each other.

Proves: The header of a batch does not fit itself: no producer sends such a batch, and no broker takes it.

Bad history: A batch at offsets 6 to 8 that holds two records, in a topic that was never compacted; a producer without a sequence.

Legal look-alike: A compacted topic, whose batches keep their header and lose records; offset commits, which all begin at sequence 0;
batches without a producer. The last sequence proves nothing: the tool itself reckons it from the first one and the offsets.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.producers.shapes import COLUMNS, misshapen
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P11",
    slug="seq-arithmetic",
    severity="error",
    reads=("producer_history", "visibility"),
    subject="batch",
    needs=("order",),
    find=misshapen,
    found=COLUMNS,
    asks=ASKS,
    cause="a segment that was changed after the broker wrote it (by hand, by a restore or by a disk), or a fault of the broker",
    remedy=(
        "Compare these offsets with another replica. If that one is sound, let it lead, stop this broker, delete this replica's directory "
        "and let it be fetched again. If all replicas say the same, ask the source for the records of these offsets: some may be missing."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The batch with most faults speaks."""
    row = case.row
    # Of a batch without a producer there is nobody to name.
    writer = f" of {who(case, context)}" if row.number("producer_id", -1) >= 0 else ""
    more = f" (the same holds for {count(case.hits - 1, 'more batch', 'more batches')})" if case.hits > 1 else ""
    message = (
        f"The batch{writer} at {offsets(row.maybe('base_offset'), row.maybe('last_offset'))} contradicts itself: "
        f"{'; '.join(_said(name, row) for name in row.texts('faults'))}{more}"
    )
    return Explanation(message, named=id_of(case, context), details={"faults": row.texts("faults"), "batches": case.hits})


def _said(fault: str, row: Row) -> str:
    claimed = row.number("last_offset") - row.number("base_offset") + 1
    return {
        "no_sequence": "it has a producer and no sequence",
        "no_producer": "it is of a transaction and has no producer",
        "too_many": f"it has {count(row.maybe('count'), 'record')} for {count(claimed, 'offset')}",
        "too_few": f"it has {count(row.maybe('count'), 'record')} for {count(claimed, 'offset')}, in a log that was never compacted",
    }[fault]
