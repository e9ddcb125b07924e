"""S03 txnindex-extra-or-wrong: an entry has no ABORT marker, or begins elsewhere than its transaction: read_committed consumers lose or get
records wrongly.

Proves: An index entry has no ABORT marker at its last offset, or another first offset than the transaction that the marker closes. Behind
the end of a log it has none where the broker had been stopped, and both were dumped in one go.

Bad history: An entry for offsets 3 to 5, where offset 5 is a COMMIT.

Legal look-alike: An entry of a transaction whose data was compacted away or lies below the log start; an entry whose first and last offset
are equal (an empty abort before 2.8); an entry behind the end of the log, where the broker ran and its index was dumped later.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sidecars.words import rebuild_index
from eo_audit.rules.writers import ASKS, id_of, named

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="S03",
    slug="txnindex-extra-or-wrong",
    severity="error",
    reads=("aborted_index",),
    subject="index_entry",
    needs=("order", "past"),
    # Not `empty_abort`: brokers before 2.8 wrote those (KAFKA-10702), and they hide nothing.
    where="state IN ('extra', 'wrong_first', 'marker_is_commit')",
    columns="span_first_offset state entry_first_offset marker_offset",
    asks=ASKS,
    caused_by=("T06",),
    cause="an index of another history, or an entry that survived while the log was changed",
    remedy="See the finding: the index is rebuilt from the log.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first such entry speaks."""
    row = case.row
    end = case.log.numbers.maybe("leo") if case.log else None
    is_behind = end is not None and row.number("marker_offset") >= end
    what = {
        "extra": f"and the log of the stopped broker ends before offset {end}" if is_behind else "where the log has no ABORT marker",
        "marker_is_commit": "where the log has a COMMIT marker",
        "wrong_first": f"but the transaction begins at offset {row.maybe('span_first_offset')}",
    }[row.word("state")]
    message = (
        f"The aborted index says that {named(case, context)} aborted offsets {row.maybe('entry_first_offset')} to "
        f"{row.maybe('marker_offset')}, {what}{'' if case.hits == 1 else f' (the first of {case.hits} such entries)'}"
    )
    details = {
        "entries": case.hits,
        "state": row.text("state"),
        "entry_first_offset": row.maybe("entry_first_offset"),
        "span_first_offset": row.maybe("span_first_offset"),
    }
    return Explanation(message, named=id_of(case, context), remedy=rebuild_index(case.log), details=details)
