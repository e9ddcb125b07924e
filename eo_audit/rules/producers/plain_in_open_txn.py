"""P08 plain-in-open-txn: a plain batch inside the producer's own open transaction: no broker appends that.

Proves: A batch without the transactional flag lies between the producer's transactional data and its marker.

Bad history: Transactional batch at offset 6, plain batch of the same producer at offset 8, COMMIT at offset 10.

Legal look-alike: A plain batch after the marker (the client is used in two modes); a marker that lies in a segment that was not dumped.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, named
from eo_audit.words import offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P08",
    slug="plain-in-open-txn",
    severity="critical",
    reads=("producer_history",),
    # Without transactional batches nothing can be open.
    subject="transactional_batch",
    needs=("order", "past"),
    # No broker appends it, in any origin (ProducerAppendInfo throws InvalidTxnStateException): where a hole lies between, the marker is in
    # the hole.
    where="row_kind = 'data' AND NOT is_transactional AND in_open_transaction AND predecessor = 'observed'",
    columns="base_offset last_offset",
    asks=(*ASKS, "spans"),
    cause="nearly always a marker that is missing from the dump; else a corrupt segment, or files of two histories put together",
    remedy=(
        "Dump all segments of the partition again. If it is real, this replica can neither be replicated nor recovered: "
        "do not restart its broker before another replica leads; then delete this replica's directory and let it be fetched again."
    ),
)


# What of a log may hide a marker between batches that were dumped.
_HOLES = {"hole", "unexplained", "lines_missing", "segment_missing", "not_observed", "unordered"}


def explain(case: Case, context: "Context") -> Explanation | None:
    """Likely at most: one marker that was not dumped makes a legal batch look like this."""
    inside = [example.row for example in case.examples if not _may_have_ended(case, example.row, context)]
    if not inside:
        return None
    row, is_all = inside[0], len(inside) == len(case.examples)
    message = (
        f"A batch without the transactional flag stands at {offsets(row.maybe('base_offset'), row.maybe('last_offset'))} inside the open "
        f"transaction of {named(case, context, row.maybe('producer_epoch'))}: no broker appends, replicates or recovers that"
    )
    return Explanation(
        message,
        named=id_of(case, context),
        certainty="likely",
        producer_epoch=row.maybe("producer_epoch"),
        details={"batches": case.hits if is_all else len(inside)},
        # Of those in doubt nothing is said.
        first_offset=None if is_all else row.maybe("base_offset"),
        last_offset=None if is_all else inside[-1].maybe("last_offset"),
        record_count=None if is_all else sum(one.number("last_offset") - one.number("base_offset") + 1 for one in inside),
    )


def _may_have_ended(case: Case, row: Row, context: "Context") -> bool:
    """Whether something is missing between the first batch of its transaction and this one: the first plain batch behind a hole is told by
    its predecessor, and each later one has that batch before it."""
    log, offset = case.log, row.number("base_offset")
    if log is None:
        return False
    begun = [
        first for span in context.spans.get((log.log_id, row.number("producer_id")), []) if (first := span.number("first_offset")) < offset
    ]
    begins = begun[-1] if begun else log.starts_at or 0
    return any(part.text("state") in _HOLES and begins <= part.number("first_offset", -1) < offset for part in log.breaks)
