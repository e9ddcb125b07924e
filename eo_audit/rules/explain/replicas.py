"""Words for the replica rules (R)."""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.words import count, offsets, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

STATES = {
    "head_missing": "The beginning of the log is not in the dumps",
    "segment_missing": "A segment that a listing shows was not dumped",
    "not_observed": "Offsets were deleted before they were ever dumped, which breaks no promise",
    "unexplained": "Offsets are missing, and nothing says whether the cleaner works on this topic",
    "truncated": "The dump stops before the log does",
    "count_short": "Batches claim more offsets than they hold records",
    "not_supported": "The dump was printed by a kafka-dump-log older than 2.2, which this release does not read",
    "shallow": "The dump has no record lines (printed without --deep-iteration)",
}


def checksum(case: Case, context: "Context") -> Explanation:
    """R02: only likely when it is the very end of the log, which a broker may be writing."""
    end = case.log.numbers.maybe("leo") if case.log else None
    last = end is not None and case.row.maybe("last_offset") is not None and case.row.number("last_offset") >= end - 1
    message = (
        f"{count(case.hits, 'batch', 'batches')} {'fails' if case.hits == 1 else 'fail'} the checksum, the first at "
        f"{offsets(case.row.maybe('first_offset'), case.row.maybe('last_offset'))}: "
        "nothing behind it is judged"
    )
    if last:
        message += "; it is the last batch of the log, which may have been caught half written"
    return Explanation(
        message, severity="warning" if last else "critical", certainty="likely" if last else "definite", details={"batches": case.hits}
    )


def disorder(case: Case, _context: "Context") -> Explanation:
    """R03."""
    message = (
        f"Offsets go back {count(case.hits, 'time')}, first at offset {case.row.maybe('first_offset')}: the log already had it, and "
        f"nothing behind it is judged"
    )
    return Explanation(message, details={"batches": case.hits, "reason": case.row.text("reason")})


def hole(case: Case, _context: "Context") -> Explanation:
    """R04."""
    row = case.row
    missing = sum(example.row.number("last_offset") - example.row.number("first_offset") + 1 for example in case.examples)
    message = (
        f"{count(missing, 'offset')} missing in {count(case.hits, 'hole')}, the largest at "
        f"{offsets(row.maybe('first_offset'), row.maybe('last_offset'))}, in a log that was never compacted"
    )
    return Explanation(message, details={"holes": case.hits, "missing_offsets": missing}, record_count=missing)


def coverage(case: Case, _context: "Context") -> Explanation:
    """R07."""
    row = case.row
    reason = row.text("reason")
    said = STATES.get(row.word("state"), "Part of the log is not in the dumps")
    if reason is not None and reason.startswith("unread text"):
        said = "The text that may hold these offsets was not understood"
    message = f"{said}: {offsets(row.maybe('first_offset'), row.maybe('last_offset'))}{f' ({shown(reason)})' if reason else ''}"
    return Explanation(message, details={"state": row.text("state"), "parts": case.hits})
