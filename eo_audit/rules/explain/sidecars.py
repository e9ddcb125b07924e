"""Words for the sidecar rules (S)."""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.words import count, offsets, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context, Log


def rebuild_index(log: "Log | None") -> str:
    """How the aborted index of a partition is made anew from its segments."""
    folder = f"{shown(log.topic)}-{log.partition}" if log else "the partition"
    return (
        f"Stop this broker, delete the offset index (.index) of the segment in {folder} that holds the marker, and start it again: "
        f"the broker then rebuilds that segment's indexes, "
        "the aborted index with them. On a follower, delete the replica's directory instead and let it be fetched again. Safe "
        "while another replica leads; not an abort. "
        "Consumers may already have read wrongly: correct downstream by offset."
    )


def missing(case: Case, _context: "Context") -> Explanation:
    """S02."""
    row = case.row
    message = (
        f"{count(case.hits, 'aborted transaction')} of producer {row.maybe('producer_id')} {'has' if case.hits == 1 else 'have'} no "
        f"entry in the aborted index: "
        f"{count(case.records, 'record')}, the first at {offsets(row.maybe('span_first_offset'), row.maybe('span_last_offset'))} "
        f"with its ABORT at offset {row.maybe('marker_offset')}"
    )
    return Explanation(
        message, remedy=rebuild_index(case.log), details={"transactions": case.hits, "marker_offset": row.maybe("marker_offset")}
    )


def wrong(case: Case, _context: "Context") -> Explanation:
    """S03."""
    row = case.row
    what = {
        "extra": "where the log has no ABORT marker",
        "marker_is_commit": "where the log has a COMMIT marker",
        "wrong_first": f"but the transaction begins at offset {row.maybe('span_first_offset')}",
    }[row.word("state")]
    message = (
        f"The aborted index says that producer {row.maybe('producer_id')} aborted offsets {row.maybe('entry_first_offset')} to "
        f"{row.maybe('marker_offset')}, {what}"
        f"{'' if case.hits == 1 else f' (the first of {case.hits} such entries)'}"
    )
    details = {
        "entries": case.hits,
        "state": row.text("state"),
        "entry_first_offset": row.maybe("entry_first_offset"),
        "span_first_offset": row.maybe("span_first_offset"),
    }
    return Explanation(message, remedy=rebuild_index(case.log), details=details)
