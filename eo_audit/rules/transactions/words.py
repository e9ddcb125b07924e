"""Sentences that several rules of this family share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

# Leaders ask the coordinator only from 3.6 on (KIP-890, transaction.partition.verification.enable).
UNVERIFIED = "the partition leader took a transactional write without asking the coordinator (KAFKA-12671, KAFKA-14402)"
# The last of it: `TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue`; a single broker of 4.3.1 that was restarted does so.
LOST = (
    "the log lost its end (unclean election, truncation), the topic was created again, or the coordinator dropped the marker (KAFKA-10080, "
    "KAFKA-9777; its log says `likely deleted already and hence can be skipped` where it knew no leader of the partition)"
)
DATA = "row_kind = 'data'"


def begins_behind(log: "Log | None", producer_id: int, context: "Context") -> int | None:
    """Where a log begins that lacks its head and shows no marker of the producer: nothing tells by order what went with the head."""
    if log is None or not log.starts_at or (log.log_id, producer_id) in context.newest_markers:
        return None
    return log.starts_at


def unless_below(begins: int | None) -> str:
    """That a marker which is not seen may stand where the dumps do not reach; empty where they do."""
    return "" if begins is None else f", unless it stands before offset {begins}, where the dumps begin"
