"""Why nobody knows how far consumers may read in some logs: the last stable offset (LSO) is null there, and what would tell."""

from collections.abc import Sequence

from eo_audit.rules.reasons import REASONS, Reason
from eo_audit.rules.replica_log import Log
from eo_audit.rules.row import Row
from eo_audit.words import shown, some

# Where nobody knows the log start either, two dumps meet that nothing puts in order.
_TWO_DUMPS = REASONS["unordered_listings"]
_HIDDEN = Reason(
    "The coordinator holds transactions open on {places} whose data may lie below the first offset dumped: nobody knows the LSO",
    "Dump the newest .snapshot of {places}: collect-dumps.sh does so.",
)
_MAY_HAVE_ENDED = Reason(
    "What is missing or not judged in {places} may hold the markers of transactions that no marker seems to end: nobody knows the LSO",
    "Dump {places} again, whole, and the newest .snapshot: collect-dumps.sh does so.",
)
_START_UNTOLD = Reason(
    "What is open on {places} began before the oldest segment that was dumped, and nothing says whether the broker still has older ones: "
    "the LSO lies where that began, or at the log start",
    "Dump {places} with all segments, and the listing of its directory (collect-dumps.sh makes it).",
)
_HEAD_NOT_DUMPED = Reason(
    "The high watermark of {places} lies below the first offset dumped, and what was open there stands in older segments: "
    "nobody knows the LSO",
    "Dump {places} with all segments: collect-dumps.sh does so.",
)


def is_at_least(hw: object, source: object, *, tail_intact: bool) -> bool:
    """Whether the high watermark may lie further: without a checkpoint the end of the dump stands for it, and behind a cut the log goes on.

    Args:
        hw, source: `hw` and `hw_source` of the table visibility, null where nobody knows.
        tail_intact: the dump reaches the end of the log.
    """
    return hw is not None and source == "leo" and not tail_intact


def of_run(logs: Sequence[Log]) -> list[dict[str, str]]:
    """What leaves a run open where logs have no LSO: `lso_unknown`, once for each reason."""
    found = []
    for reason in (_TWO_DUMPS, _HIDDEN, _START_UNTOLD, _HEAD_NOT_DUMPED, _MAY_HAVE_ENDED):
        places = some([f"{shown(log.topic)}-{log.partition}" for log in logs if _reason(log.numbers) is reason], most=4)
        if places:
            why = reason.why.format(places=places)
            found.append({"because": "lso_unknown", "why": why[:1].upper() + why[1:], "bring": reason.bring.format(places=places)})
    return found


def why(row: Row, *, is_read: bool) -> str:
    """Why the LSO of one log is null.

    Args:
        row: its row of `visibility`.
        is_read: something of its text was read.
    """
    if not is_read:
        return "nothing of the log was read"
    reason = _reason(row)
    if reason is _MAY_HAVE_ENDED:
        return (
            f"what seems to hold it at offset {row.maybe('lso_at_least')} may have ended in what is missing or not judged behind: it "
            "lies there or above. The newest .snapshot of the partition would tell"
        )
    if reason is _START_UNTOLD:
        return (
            f"what holds it began at offset {row.maybe('lso_at_least')}, before the oldest segment that was dumped: it lies there, or at "
            f"{row.maybe('log_start')} where the broker has deleted what is missing. A listing of the directory would tell"
        )
    if reason is _HEAD_NOT_DUMPED:
        return (
            f"the high watermark, {row.maybe('hw')}, lies below the first offset dumped, {row.maybe('first_offset')}, and older segments, "
            "which were not dumped, hold what was open there"
        )
    if reason is _TWO_DUMPS:
        return "two dumps leave a hole between them, and nothing says which one is newer: dumped_at in the manifest.yaml of each would tell"
    return (
        "the coordinator holds a transaction open here whose data may lie below the first offset dumped: then the last stable offset is "
        f"the log start, {row.maybe('log_start')}. The newest .snapshot of the partition would tell"
    )


def _reason(row: Row) -> Reason:
    """Which of them it is, of a log whose LSO is null though something of it was read."""
    if row.maybe("log_start") is None:
        return _TWO_DUMPS
    if row.maybe("lso_at_least") is None:
        return _HIDDEN
    if row.number("hw") < row.number("first_offset", 0):
        return _HEAD_NOT_DUMPED
    return _START_UNTOLD if row.number("lso_at_least") < row.number("log_start") else _MAY_HAVE_ENDED
