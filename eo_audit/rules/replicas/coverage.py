"""R07 coverage: what the dumps do not show. Not a fault: every rule judges only what is covered.

Proves: Part of a log is not in the dumps, and is not judged.

Bad history: The first segment dumped starts at offset 5, the log at 0; the text stops inside a record line.

Legal look-alike: A log that starts at the first segment dumped.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.context import UNREAD
from eo_audit.rules.needs import REMOTE
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import offsets, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

STATES = {
    "head_missing": "The beginning of the log is not in the dumps",
    "lines_missing": "Lines of a dump are missing",
    "segment_missing": "A segment that a listing shows was not dumped",
    "not_observed": "Offsets were deleted before they were ever dumped, which breaks no promise",
    "unordered": "Offsets are missing between two dumps: deleted by the broker, or lost",
    "unexplained": "Offsets are missing, and nothing says whether the cleaner works on this topic",
    "truncated": "The dump stops before the log does",
    "count_short": "Batches claim more offsets than they hold records",
    "not_supported": "The dump is not read",
    "no_checksums": "The dump shows neither checksums nor leader epochs",
    "no_epochs": "The dump shows no epochs of producers",
    "shallow": "The dump has no record lines (printed without --deep-iteration)",
}
# Of a topic with tiered storage nothing was left out: the broker itself has no more.
_TIERED = "tiered storage: the broker moved the segments to remote storage, and keeps the newest ones only"
_FETCH = (
    "What the broker still has is judged. To have the older records judged as well, fetch their segments from remote storage, name each "
    "file by its base offset as a broker does, and add their dumps."
)

RULE = Rule(
    code="R07",
    slug="coverage",
    severity="info",
    reads=("coverage",),
    subject="batch",
    # What is missing by a fault is R02, R03 and R04; what lies behind it is theirs, too.
    where="state NOT IN ('covered', 'compacted', 'hole', 'disorder', 'crc_invalid', 'not_judged')",
    # One case for each kind of gap of a log, not for each gap.
    by="state",
    columns="state reason first_offset last_offset",
    informs=True,
    cause="not every segment was dumped, or the dump was cut off",
    remedy="Dump the missing part, if it still exists.",
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first part speaks: why it is not judged, and what the listing or the tool said."""
    row = case.row
    said = STATES.get(row.word("state"), "Part of the log is not in the dumps")
    reason = row.text("reason")
    if reason is not None and reason.startswith(UNREAD):
        said = "The text that may hold these offsets was not understood"
    is_moved = reason is not None and reason.startswith(REMOTE)
    if is_moved:
        said = "Older segments lie in remote storage (KIP-405), where kafka-dump-log does not look"
    message = f"{said}: {offsets(row.maybe('first_offset'), row.maybe('last_offset'))}{f' ({shown(reason)})' if reason else ''}"
    return Explanation(
        message,
        cause=_TIERED if is_moved else None,
        remedy=_FETCH if is_moved else None,
        details={"state": row.text("state"), "parts": case.hits},
    )
