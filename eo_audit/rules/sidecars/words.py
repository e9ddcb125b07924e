"""Sentences that several rules of this family share."""

from typing import TYPE_CHECKING

from eo_audit.words import shown

if TYPE_CHECKING:
    from eo_audit.rules.replica_log import Log


def rebuild_index(log: "Log | None") -> str:
    """How the aborted index of a partition is made anew from its segments."""
    folder = f"{shown(log.topic)}-{log.partition}" if log else "the partition"
    return (
        f"Stop this broker, delete the offset index (.index) of the segment in {folder} that holds the marker, and start it again: "
        "the broker then rebuilds that segment's indexes, the aborted index with them. On a follower, "
        "delete the replica's directory instead and let it be fetched again. Safe while another replica leads; not an abort. "
        "Consumers may already have read wrongly: correct downstream by offset."
    )
