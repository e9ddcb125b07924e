"""C09 ghost-record: an entry whose append failed but stayed in the log: legal, and the sign of an under-replicated coordinator log.

Proves: Entries were written but not acknowledged in time, and did not count: a later one was computed from the state before them. Legal,
but the log was under-replicated.

Bad history: Empty(e+1) twice; PrepareCommit(e) then PrepareAbort(e+1); Ongoing [a], Ongoing [a, b], PrepareAbort [a].

Legal look-alike: A normal retry of the client, which writes nothing.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import name_of, step_details
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, some

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C09",
    slug="ghost-record",
    severity="info",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # Whether a failed append explains it is the replay's word (`model.coordinator`), not this row's.
    where="step = 'ghost'",
    by="transactional_id",
    columns=(
        "entry_offset tombstone status origin_offset origin_status previous_offset uncounted previous_status previous_epoch step_reason"
    ),
    # The coordinator did nothing wrong: TransactionStateManager.appendTransactionToLog leaves memory as it was when an append fails.
    informs=True,
    cause="the coordinator partition lacked in-sync replicas or was slow at that moment",
    remedy=(
        "Nothing to repair; safe to leave. Check min.insync.replicas and the in-sync replicas of this partition of __transaction_state "
        "at that time."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """Names the entries that did not count, and where the coordinator really went on."""
    row = case.examples[-1].row
    lost = sorted({offset for example in case.examples for offset in _uncounted(example.row)})
    more = "at least " if case.hits > len(case.examples) else ""
    step = f"offset {row.maybe('entry_offset')} ({'tombstone' if row.flag('tombstone') else row.word('status')})"
    origin = row.maybe("origin_offset")
    before = "the state before them" if origin is None else f"offset {origin} ({row.word('origin_status')})"
    one = len(lost) == 1 and not more
    message = (
        f"{more}{count(len(lost), 'entry', 'entries')} of {name_of(row)} in the coordinator log {'was' if one else 'were'} written "
        f"without being acknowledged in time and did not count ({'offset' if one else 'offsets'} "
        f"{some([str(offset) for offset in lost])}): {step} goes on from {before}"
    )
    return Explanation(message, details={**step_details(case), "uncounted": lost}, producer_epoch=row.maybe("producer_epoch"))


def _uncounted(row: Row) -> list[int]:
    """The entries that did not count; without a better explanation, the one before."""
    before = row.maybe("previous_offset")
    return row.numbers("uncounted") or ([before] if before is not None else [])
