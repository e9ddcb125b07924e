"""S04 txnindex-lso: an entry of the aborted index has a last stable offset that its broker cannot have had.

Proves: An entry's lastStableOffset lies above the first offset of a transaction that was aborted later: a broker's look-up ends at it and
misses that transaction's entry. Or it lies below all that was open: the index is of another history. By itself it does not prove that
delivery was wrong.

Bad history: The entry of the ABORT at offset 20 says lastStableOffset 90, and offsets 40 to 44 were aborted, too.

Legal look-alike: A lastStableOffset above the marker: a follower that gets several batches at once counts what begins in them as open, but
for what is of the same producer: an entry of that one may be missed by a fetch that ends just there, which is told as an info. A
transaction open at the marker that began below the first offset dumped, or that the cleaner took; one that the follower counted as open,
and of which the cleaner took the beginning since.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sidecars.words import rebuild_index
from eo_audit.rules.writers import ASKS, id_of, named

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.row import Row

RULE = Rule(
    code="S04",
    slug="txnindex-lso",
    severity="error",
    reads=("aborted_index",),
    subject="index_entry",
    needs=("order", "past"),
    # `TransactionIndex.collectAbortedTxns` ends at the first entry whose lastStableOffset reaches the end of the fetch.
    where="""ends_at_offset IS NOT NULL OR entry_last_stable_offset < expected_stable_offset
        OR entry_last_stable_offset > marker_offset + 1""",
    weight="coalesce(ends_at_stable_offset, entry_last_stable_offset)",
    columns=(
        "entry_first_offset marker_offset entry_last_stable_offset expected_stable_offset "
        "ends_at_offset ends_at_stable_offset ends_in_one_fetch"
    ),
    asks=ASKS,
    # Whether anybody got aborted records for it, L02 tells.
    proves_delivery_wrong=False,
    cause="an index of another history, an entry that was changed, or a log that was cut below it (an election) and written anew",
    remedy="See the finding: the index is rebuilt from the log.",
)

_OF_FOLLOWER = (
    "this replica was a follower when it wrote the entry: of the batches that it got in one fetch it counts what begins there as open, "
    "all but what is of the same producer (`UnifiedLog.append`, `ProducerStateManager.lastStableOffset`)"
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """What it hides, the first of it; else what it says wrongly."""
    rows = [example.row for example in case.examples]
    hidden = [row for row in rows if row.maybe("ends_at_offset") is not None]
    if hidden:
        # What no broker writes speaks first.
        row = min(hidden, key=lambda row: (_is_of_follower(row, case, context), row.number("marker_offset")))
        of_follower = _is_of_follower(row, case, context)
        message = (
            f"The aborted index has an entry of {named(case, context)} for offsets {row.maybe('entry_first_offset')} to "
            f"{row.maybe('marker_offset')}, but an entry before it, of the ABORT at offset {row.maybe('ends_at_offset')}, has "
            f"lastStableOffset {row.maybe('ends_at_stable_offset')}: a look-up of a fetch that ends up to there does not find it"
        )
        details = {name: row.maybe(name) for name in ("ends_at_offset", "ends_at_stable_offset")}
        return Explanation(
            message,
            severity="info" if of_follower else None,
            cause=_OF_FOLLOWER if of_follower else None,
            named=id_of(case, context),
            remedy=rebuild_index(case.log),
            details={"state": "of_one_fetch" if of_follower else "too_high", **details},
            first_offset=row.maybe("entry_first_offset"),
            last_offset=row.maybe("marker_offset"),
        )
    leo, log = case.log.numbers.maybe("leo") if case.log else None, case.log
    for row in rows:
        said, expected = row.number("entry_last_stable_offset"), row.maybe("expected_stable_offset")
        # Above what a log holds that has ended: whatever is aborted there next will not be found.
        ahead = log is not None and leo is not None and said > leo and log.ends_here and log.log_id in context.clean_ends
        if ahead or (expected is not None and said < expected):
            return _wrong(case, context, row.number("marker_offset"), said=said, expected=None if ahead else expected)
    return None


def _is_of_follower(row: "Row", case: Case, context: "Context") -> bool:
    """Whether a follower writes such an entry: it names what the log shows, or what a log that went on may hold."""
    log = case.log
    is_behind_the_end = log is not None and row.number("ends_at_stable_offset") >= log.numbers.number("leo")
    went_on = log is None or not (log.ends_here and log.log_id in context.clean_ends)
    return row.flag("ends_in_one_fetch") and (went_on or not is_behind_the_end)


def _wrong(case: Case, context: "Context", marker: int, *, said: int, expected: int | None) -> Explanation:
    entry = f"The entry of the ABORT at offset {marker} of {named(case, context)} in the aborted index has lastStableOffset {said}"
    if expected is None:
        message = f"{entry}, beyond the end of the log: what is aborted below that will not be found"
    else:
        message = f"{entry}, where the log says {expected}: nothing was open from there on. Consumers lose nothing by it"
    return Explanation(
        message,
        severity="error" if expected is None else "warning",
        certainty="definite" if expected is None else "likely",
        named=id_of(case, context),
        remedy=rebuild_index(case.log),
        details={"state": "too_high" if expected is None else "too_low", "last_stable_offset": said, "expected": expected},
        first_offset=marker,
        last_offset=marker,
    )
