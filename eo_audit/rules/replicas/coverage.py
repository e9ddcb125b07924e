"""R07 coverage: what the dumps do not show. Not a fault: every rule judges only what is covered.

Proves: Part of a log is not in the dumps, and is not judged.

Bad history: The first segment dumped starts at offset 5, the log at 0; the text stops inside a record line.

Legal look-alike: A log that starts at the first segment dumped.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from eo_audit.rules.needs import REMOTE
from eo_audit.rules.reasons import ENDS, REASONS
from eo_audit.rules.replica_log import COORDINATOR_TOPIC, UNREAD
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import offsets, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context


class _Part(NamedTuple):
    """What a part of a log that the dumps do not show is, why they do not, and what to do."""

    said: str
    cause: str
    remedy: str


def _bring(reason: str) -> str:
    return REASONS[reason].bring.format(places="the log")


_OLD_TOOL = "a kafka-dump-log older than 2.2 printed it"
_STILL_THERE = "Dump the missing part, if it still exists."
STATES: Mapping[str, _Part] = {
    "head_missing": _Part("The beginning of the log is not in the dumps", "its older segments were not dumped", _STILL_THERE),
    "lines_missing": _Part("Lines of a dump are missing", "the text was cut, or filtered", "Dump it again, with every line."),
    "segment_missing": _Part("A segment that a listing shows was not dumped", "not every segment was dumped", _STILL_THERE),
    "not_observed": _Part(
        "Offsets were deleted before they were ever dumped, which breaks no promise",
        "retention or DeleteRecords removed them between two dumps",
        "Nothing to do. Dumps made more often than retention deletes would show them.",
    ),
    "unordered": _Part(
        "Offsets are missing between two dumps: deleted by the broker, or lost",
        "nothing says which of two dumps is the newer one",
        _bring("unordered_dumps"),
    ),
    "unexplained": _Part(
        "Offsets are missing, and nothing says whether the cleaner works on this topic",
        "the cleaner removed them, or they were lost",
        _bring("unexplained_gaps"),
    ),
    "truncated": _Part("The dump stops before the log does", "the dump was cut off, or the log went on", "Dump it again, to its end."),
    "count_short": _Part(
        "Batches claim more offsets than they hold records",
        "the cleaner worked on them, or their records were lost",
        _bring("unexplained_gaps"),
    ),
    "not_supported": _Part("The dump is not read", _OLD_TOOL, _bring("unsupported_dialect")),
    "no_checksums": _Part("The dump shows neither checksums nor leader epochs", _OLD_TOOL, _bring("no_checksums")),
    "no_epochs": _Part("The dump shows no epochs of producers", _OLD_TOOL, _bring("no_producer_epochs")),
    "shallow": _Part(
        "The dump has no record lines (printed without --deep-iteration)", "it was made without --deep-iteration", _bring("shallow")
    ),
}
_UNREAD = _Part("The text that may hold these offsets was not understood", "lines of it are damaged or missing", _bring("unread_text"))
_AMBIGUOUS = _UNREAD._replace(cause="keys, values or ids of records look like lines of the tool")
# Of a topic with tiered storage nothing was left out: the broker itself has no more.
_TIERED = _Part(
    "Older segments lie in remote storage (KIP-405), where kafka-dump-log does not look",
    "tiered storage: the broker moved the segments to remote storage, and keeps the newest ones only",
    "What the broker still has is judged. To have the older records judged as well, fetch their segments from remote storage, name each "
    "file by its base offset as a broker does, and add their dumps.",
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
    reason, part = row.text("reason"), _part(case)
    return Explanation(
        f"{part.said}: {offsets(row.maybe('first_offset'), row.maybe('last_offset'))}{f' ({shown(reason)})' if reason else ''}",
        cause=part.cause,
        remedy=part.remedy,
        details={"state": row.text("state"), "parts": case.hits},
    )


def _part(case: Case) -> _Part:
    reason = case.row.text("reason") or ""
    if reason.startswith(REMOTE):
        return _TIERED
    if reason == UNREAD + "ambiguous":
        is_coordinator = case.log is not None and case.log.topic == COORDINATOR_TOPIC
        return _AMBIGUOUS._replace(remedy=_bring("ambiguous_ids" if is_coordinator else "ambiguous"))
    if reason in ENDS:
        return STATES["truncated"]._replace(remedy=_bring(ENDS[reason]))
    return _UNREAD if reason.startswith(UNREAD) else STATES[case.row.word("state")]
