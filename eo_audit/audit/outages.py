"""How long an outage was, after which coordinators aborted transactions by timeout: as far as the coordinators' own logs show one.

An outage is a stretch in which no coordinator of the cluster wrote anything, and at whose end a log of theirs goes on under a higher
leader epoch. Its length is an upper bound: nobody had to write while all was well.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame

from eo_audit.rules.row import Row

CAUSE = "coordinator_timeout"
_IN_LOG = "PARTITION BY replica_log_id ORDER BY entry_offset"
_IN_CLUSTER = "PARTITION BY cluster ORDER BY batch_timestamp_ms, entry_offset, replica_log_id"
_STEPS = (
    f"lag(partition_leader_epoch) OVER ({_IN_LOG}) AS epoch_before",
    f"lag(batch_timestamp_ms) OVER ({_IN_CLUSTER}) AS silent_from_ms",
)
# Only what was open before the silence, ran out of time in it, and was aborted behind it: of a transaction with time left the client could
# still have ended it, and a rolling restart with elections of milliseconds is no outage.
_RAN_OUT = """
    start_ms <= silent_from_ms AND on_again_ms <= decided_at_ms
    AND start_ms + timeout_ms BETWEEN silent_from_ms AND on_again_ms
"""


class Outage(NamedTuple):
    """Outages behind which coordinators aborted by timeout.

    Args:
        transactions: how many ran out of time within one.
        longest_ms: the longest of them.
    """

    transactions: int
    longest_ms: int


def outage(histories: Mapping[str, DataFrame], transactions: Sequence[Row]) -> Outage | None:
    """The outages in which transactions ran out of time that their coordinators then aborted.

    Args:
        histories: history tables by name; coordinator_history and transaction_instances are read.
        transactions: what did not commit (`Collected.transactions`): without an abort by timeout nothing is asked.

    Returns:
        None where no such outage shows.
    """
    if not any(row.text("abort_cause") == CAUSE for row in transactions):
        return None
    entries = histories["coordinator_history"].selectExpr("cluster", "batch_timestamp_ms AS on_again_ms", "partition_leader_epoch", *_STEPS)
    # A higher leader epoch alone is an election that took milliseconds; silence alone is a quiet night. Both together are an outage.
    outages = entries.where("partition_leader_epoch > epoch_before").drop("partition_leader_epoch", "epoch_before")
    timed_out = histories["transaction_instances"].where(f"abort_cause = '{CAUSE}'")
    lived_through = (
        timed_out.select("instance_id", "cluster", "start_ms", "decided_at_ms", "timeout_ms").join(outages, "cluster").where(_RAN_OUT)
    )
    first = lived_through.selectExpr(
        "count(DISTINCT instance_id) AS transactions", "max(on_again_ms - silent_from_ms) AS longest_ms"
    ).first()
    return Outage(first.transactions, first.longest_ms) if first and first.longest_ms else None
