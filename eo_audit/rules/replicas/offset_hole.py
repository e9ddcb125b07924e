"""R04 offset-hole: offsets are missing in a topic that was never compacted.

Proves: Offsets are missing inside a log that was never compacted: records are lost, or a segment was not dumped.

Bad history: Batch 0 to 4, then batch 9 to 12; a segment named 0 whose first batch stands at 2.

Legal look-alike: A compacted topic, also one that only the leader's cleaner has worked on, where nothing says its policy; a head removed
by retention or DeleteRecords, also where nothing says which of two dumps is newer; markers, which take offsets too; a hole of which
nothing says whether the cleaner made it (R07).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="R04",
    slug="offset-hole",
    severity="error",
    reads=("coverage",),
    subject="batch",
    # Between two dumps that nothing puts in order it may be retention's work.
    needs=("ordered",),
    # Holes that the cleaner made, or may have made, are states of their own (history/coverage).
    where="state = 'hole'",
    by="state",
    # The largest hole first: it is a segment, or a batch.
    weight="last_offset - first_offset",
    columns="last_offset first_offset",
    cause="a segment that was not dumped or was lost",
    remedy=(
        "Dump the missing segment first (the finding names its offsets). If these are the files of two dumps in one folder, give each dump "
        "its own and say when it was made (dumped_at in its manifest.yaml). If it does not exist on this broker, dump the other replicas: "
        "the records may be there."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The largest hole speaks; all of them are summed."""
    row = case.row
    missing = sum(example.row.number("last_offset") - example.row.number("first_offset") + 1 for example in case.examples)
    message = (
        f"{count(missing, 'offset')} missing in {count(case.hits, 'hole')}, the largest at "
        f"{offsets(row.maybe('first_offset'), row.maybe('last_offset'))}, in a log that was never compacted"
    )
    return Explanation(message, details={"holes": case.hits, "missing_offsets": missing}, record_count=missing)
