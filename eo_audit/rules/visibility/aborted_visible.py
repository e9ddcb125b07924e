"""L02 aborted-visible: records of an aborted transaction are returned to read_committed consumers.

Proves: Records of a transaction that was aborted reach read_committed consumers of this replica.

Bad history: An ABORT marker without its .txnindex entry; aborted data that a later COMMIT closed.

Legal look-alike: Aborted data above the last stable offset; batches that the cleaner has emptied.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sidecars.words import rebuild_index
from eo_audit.rules.visibility.words import SEEN, writer
from eo_audit.rules.writers import ASKS, id_of
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# Two readers: one that reads from the log start on, and one whose fetch starts at the segment and looks further ahead in its index
# (`TransactionIndex.collectAbortedTxns`).
SOMEBODY_GETS = "(coalesce(returned, false) OR coalesce(returned_from_segment, false))"

RULE = Rule(
    code="L02",
    slug="aborted-visible",
    severity="critical",
    reads=("producer_history",),
    subject="transactional_batch",
    needs=("order", "past", "matched", "index"),
    # The ABORT of what a COMMIT closes behind a hole may stand in the hole, and its entry in an index that nobody dumped.
    where=f"{SEEN} AND truth = 'aborted' AND {SOMEBODY_GETS} AND NOT (end_unsure AND span_outcome = 'committed')",
    columns="span_outcome returned",
    # An entry that is there and yet not found (`TransactionIndex.collectAbortedTxns`) is another fault than one that is not there.
    asks=("missed_entries", *ASKS),
    caused_by=("T06", "T15", "S02", "S03", "S04"),
    cause="the aborted index does not know the transaction, or a COMMIT closed it",
    remedy=(
        "See the finding that is named as its incident; consumers may already have read these records: correct them downstream by offset."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Which of two reasons lets them through: a COMMIT that closed them, or an index that does not tell."""
    row = case.row
    closed, missed = row.text("span_outcome"), _missed_entry(case, context)
    if closed != "aborted":
        why = "a COMMIT closed them"
    elif missed is None:
        why = "the aborted index does not hide them"
    else:
        why = (
            f"{'its' if case.records == 1 else 'their'} entry is in the aborted index, but an entry before it, "
            f"of the ABORT at offset {missed.maybe('ends_at_offset')}, has a wrong lastStableOffset "
            f"({missed.maybe('ends_at_stable_offset')}): the broker's look-up ends there"
        )
    message = (
        f"{count(case.records, 'record')} of {'an aborted transaction' if case.hits == 1 else 'aborted transactions'} of "
        f"{writer(case, context)} at {offsets(case.first, case.last)} {'is' if case.records == 1 else 'are'} returned to read_committed "
        f"consumers: {why}"
    )
    details: dict[str, object] = {
        "batches": case.hits,
        "closed_by": closed,
        "records": case.records,
        "from_log_start": row.flag("returned"),
    }
    if missed is None:
        return Explanation(message, named=id_of(case, context), details=details)
    details |= {name: missed.maybe(name) for name in ("ends_at_offset", "ends_at_stable_offset")}
    cause = "an entry of the .txnindex has a wrong lastStableOffset"
    return Explanation(message, named=id_of(case, context), cause=cause, remedy=rebuild_index(case.log), details=details)


def _missed_entry(case: Case, context: "Context") -> "Row | None":
    """The first index entry of these records that a look-up may miss (`TransactionIndex.collectAbortedTxns`)."""
    missed = context.missed_entries.get((case.log.log_id, case.row.number("producer_id")), []) if case.log else []
    first, last = case.first or 0, case.last or 0
    return next((row for row in missed if row.number("entry_first_offset") <= last and row.number("marker_offset") > first), None)
