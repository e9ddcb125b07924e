"""P08 plain-in-open-txn: a plain batch inside the producer's own open transaction: no broker appends that.

Proves: A batch without the transactional flag lies between the producer's transactional data and its marker.

Bad history: Transactional batch at offset 6, plain batch of the same producer at offset 8, COMMIT at offset 10.

Legal look-alike: A plain batch after the marker (the client is used in two modes); a marker that lies in a segment that was not dumped.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context, Log

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
    asks=ASKS,
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
    row = case.row
    if case.log is not None and _may_have_ended(case.log, row.number("base_offset")):
        return None
    message = (
        f"A batch without the transactional flag stands at {offsets(row.maybe('base_offset'), row.maybe('last_offset'))} inside the open "
        f"transaction of {who(case, context)}: no broker appends, replicates or recovers that"
    )
    return Explanation(message, named=id_of(case, context), certainty="likely", details={"batches": case.hits})


def _may_have_ended(log: "Log", offset: int) -> bool:
    """Whether something is missing between the first batch of the log and this one: the first plain batch behind a hole is told by its
    predecessor, and each later one has that batch before it."""
    return any(part.text("state") in _HOLES and (log.starts_at or 0) <= part.number("first_offset", -1) < offset for part in log.breaks)
