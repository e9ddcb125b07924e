"""S02 txnindex-missing: an ABORT marker that closes data has no entry: read_committed consumers get the aborted records.

Proves: An ABORT marker closes data, and the index of its segment has no entry for it.

Bad history: ABORT at offset 13 for data from offset 7 on; the .txnindex holds only other transactions.

Legal look-alike: A compacted transaction, whose entry goes with its data; an ABORT that closes nothing.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sidecars.words import rebuild_index
from eo_audit.rules.writers import ASKS, id_of, named
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="S02",
    slug="txnindex-missing",
    severity="critical",
    reads=("aborted_index",),
    # An ABORT that closes nothing has no entry since 2.8 (KAFKA-10702).
    subject="closing_abort",
    # `index`: a broker makes the file with its first entry, so a file that was not dumped looks like one that was never made.
    needs=("order", "past", "index"),
    where="state = 'missing'",
    columns="span_first_offset span_last_offset marker_offset",
    asks=ASKS,
    caused_by=("T06", "S03"),
    cause=(
        "the .txnindex file or an entry of it was lost (a partial copy, a restore without sidecars, a disk fault): a broker takes an "
        'absent file for "no aborts"'
    ),
    remedy="See the finding: the index is rebuilt from the log.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first transaction speaks."""
    row = case.row
    message = (
        f"{count(case.hits, 'aborted transaction')} of {named(case, context)} {'has' if case.hits == 1 else 'have'} no "
        f"entry in the aborted index: {count(case.records, 'record')}, the first at "
        f"{offsets(row.maybe('span_first_offset'), row.maybe('span_last_offset'))} with its ABORT at offset {row.maybe('marker_offset')}"
    )
    return Explanation(
        message,
        named=id_of(case, context),
        remedy=rebuild_index(case.log),
        details={"transactions": case.hits, "marker_offset": row.maybe("marker_offset")},
    )
