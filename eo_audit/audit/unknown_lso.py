"""Why nobody knows how far consumers may read in some logs: the last stable offset (LSO) is null there, and what would tell."""

from collections.abc import Sequence

from eo_audit.rules.context import Log
from eo_audit.rules.reasons import REASONS, Reason
from eo_audit.rules.row import Row
from eo_audit.words import shown, some

# Where nobody knows the log start either, two dumps meet that nothing puts in order.
_TWO_DUMPS = REASONS["unordered_listings"]
_HIDDEN = Reason(
    "The coordinator holds transactions open on {places} whose data may lie below the first offset dumped: nobody knows the LSO",
    "Dump the newest .snapshot of {places}: collect-dumps.sh does so.",
)


def of_run(logs: Sequence[Log]) -> list[dict[str, str]]:
    """What leaves a run open where logs have no LSO: `lso_unknown`, once for each reason."""
    found = []
    for reason, is_its in ((_TWO_DUMPS, _is_unordered), (_HIDDEN, lambda row: not _is_unordered(row))):
        places = some([f"{shown(log.topic)}-{log.partition}" for log in logs if is_its(log.numbers)], most=4)
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
    if _is_unordered(row):
        return "two dumps leave a hole between them, and nothing says which one is newer: dumped_at in the manifest.yaml of each would tell"
    return (
        "the coordinator holds a transaction open here whose data may lie below the first offset dumped: then the last stable offset is "
        f"the log start, {row.maybe('log_start')}. The newest .snapshot of the partition would tell"
    )


def _is_unordered(row: Row) -> bool:
    return row.maybe("log_start") is None
