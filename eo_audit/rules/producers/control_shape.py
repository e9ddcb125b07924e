"""P10 control-shape: a control batch that no coordinator writes.

Proves: A control batch is not what a broker makes of a marker: one record, transactional, with a producer and without a sequence.

Bad history: A COMMIT at offset 8 with sequence 3; a control batch without the transactional flag; LEADER_CHANGE in place of a COMMIT.

Legal look-alike: A marker that the cleaner emptied in a compacted topic; Raft's control batches in __cluster_metadata; a dump without
record lines, which does not show the marker's type.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.producers.shapes import COLUMNS, misshapen
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P10",
    slug="control-shape",
    severity="error",
    reads=("producer_history", "visibility"),
    subject="marker",
    needs=("order",),
    find=misshapen,
    found=COLUMNS,
    asks=ASKS,
    cause=(
        "a segment that was changed after the broker wrote it: clients cannot write control batches (`LogValidator` refuses them), and "
        "coordinators write no others"
    ),
    remedy=(
        "Compare this offset with another replica. If that one is sound, let it lead, stop this broker, delete this replica's directory "
        "and let it be fetched again. How the transaction ended is not certain until then: see T05 and T06 of the same producer."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The batch with most faults speaks."""
    row = case.row
    writer = f" of {who(case, context)}" if row.number("producer_id", -1) >= 0 else ""
    more = f" (the same holds for {count(case.hits - 1, 'more batch', 'more batches')})" if case.hits > 1 else ""
    kind = f"The {row.word('marker_type')}" if row.text("marker_type") else "The control batch"
    message = f"{kind}{writer} at offset {row.maybe('base_offset')} {', '.join(_said(name, row) for name in row.texts('faults'))}{more}"
    # A later release may have a kind of control record that the dump tool does not know.
    is_sure = row.texts("faults") != ["no_end"] or row.text("control_type") != "UNKNOWN"
    message += ": no broker writes that" if is_sure else ": no broker of the dump tool's release writes that"
    return Explanation(
        message,
        certainty="definite" if is_sure else "likely",
        named=id_of(case, context),
        details={"faults": row.texts("faults"), "batches": case.hits},
    )


def _said(fault: str, row: Row) -> str:
    return {
        "sequence": f"has sequences {row.maybe('base_sequence')} to {row.maybe('last_sequence')}",
        "not_transactional": "lacks the transactional flag",
        "no_producer": "has no producer",
        "too_many": f"holds {count(row.maybe('count'), 'record')}",
        "empty": "holds no record in a log that was never compacted",
        "no_end": f"holds neither COMMIT nor ABORT but {row.word('control_type')}",
    }[fault]
