"""R03 offset-non-monotonic: offsets go back, or a segment holds offsets below its own name.

Proves: A batch starts at or below an offset that the log already has: two records share an offset.

Bad history: Batch 0 to 2, then a batch that starts at 2.

Legal look-alike: The same segment dumped twice, or segments dumped in any order: they are put in order first.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="R03",
    slug="offset-non-monotonic",
    severity="critical",
    reads=("coverage",),
    subject="batch",
    # `UnifiedLog.append` gives offsets on the leader and checks them on followers: no order but ascending is ever written.
    where="state = 'disorder'",
    by="state",
    columns="first_offset reason",
    cause="KAFKA-7866 (before 2.2.1), KAFKA-19407, or files of two histories in one directory",
    remedy=(
        "Take the partition's leader away from this broker, then delete this replica's directory and let it be fetched again. "
        "Safe while another replica is in sync."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first step back speaks."""
    message = (
        f"Offsets go back {count(case.hits, 'time')}, first at offset {case.row.maybe('first_offset')}: the log already had it, "
        "and nothing behind it is judged"
    )
    return Explanation(message, details={"batches": case.hits, "reason": case.row.text("reason")})
