"""L03 committed-hidden: committed records are hidden from read_committed consumers.

Proves: Committed records are dropped by the read_committed filter of this replica.

Bad history: An index entry whose marker says COMMIT: the producer stays in the consumer's aborted set and its next transaction is hidden
too.

Legal look-alike: Records above the last stable offset: not hidden, only not yet returned.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.visibility.words import SEEN, writer
from eo_audit.rules.writers import ASKS, id_of
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# The same two readers as in L02: what a fetch drops depends on which index files it looks into.
SOMEBODY_MISSES = "(NOT coalesce(returned, true) OR NOT coalesce(returned_from_segment, true))"

RULE = Rule(
    code="L03",
    slug="committed-hidden",
    severity="critical",
    reads=("producer_history",),
    subject="transactional_batch",
    needs=("order", "epochs", "past", "index", "unbroken"),
    where=f"{SEEN} AND truth IN ('committed', 'plain') AND {SOMEBODY_MISSES}",
    asks=ASKS,
    # A producer id is dropped from an entry's first offset to its next ABORT: a false entry hides what lies between.
    caused_by=("T06", "S03"),
    cause="a wrong or superfluous entry in the .txnindex, or an ABORT on one partition of a committed transaction",
    remedy="See the finding that is named as its incident. A read_uncommitted consumer still gets the records.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """All such batches of one producer are one case."""
    message = (
        f"{count(case.records, 'committed record')} of {writer(case, context)} at {offsets(case.first, case.last)} "
        f"{'is' if case.records == 1 else 'are'} hidden from read_committed consumers"
    )
    return Explanation(message, named=id_of(case, context), details={"batches": case.hits, "records": case.records})
