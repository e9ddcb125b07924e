"""How long an outage was, after which coordinators aborted transactions by timeout: as far as the coordinators' own logs show one.

An outage is a stretch in which no coordinator of the cluster wrote anything, and at whose end a log of theirs goes on under a higher
leader epoch. Its length is an upper bound: nobody had to write while all was well.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from eo_audit.rules.row import Row

CAUSE = "coordinator_timeout"
_IN_LOG = "PARTITION BY replica_log_id ORDER BY entry_offset"
_IN_CLUSTER = "PARTITION BY cluster ORDER BY batch_timestamp_ms, entry_offset, replica_log_id"
_STEPS = (
    f"lag(partition_leader_epoch) OVER ({_IN_LOG}) AS epoch_before",
    f"lag(batch_timestamp_ms) OVER ({_IN_CLUSTER}) AS silent_from_ms",
)


def outage_ms(histories: Mapping[str, DataFrame], transactions: Sequence[Row]) -> int | None:
    """The longest outage that a transaction lived through which its coordinator then aborted by timeout.

    Args:
        histories: history tables by name; coordinator_history and transaction_instances are read.
        transactions: what did not commit (`Collected.transactions`): without an abort by timeout nothing is asked.

    Returns:
        Milliseconds; None where no outage shows.
    """
    if not any(row.text("abort_cause") == CAUSE for row in transactions):
        return None
    entries = histories["coordinator_history"].selectExpr("cluster", "batch_timestamp_ms AS on_again_ms", "partition_leader_epoch", *_STEPS)
    # A higher leader epoch alone is an election that took milliseconds; silence alone is a quiet night. Both together are an outage.
    outages = entries.where("partition_leader_epoch > epoch_before").drop("partition_leader_epoch", "epoch_before")
    timed_out = histories["transaction_instances"].where(f"abort_cause = '{CAUSE}'").select("cluster", "start_ms", "decided_at_ms")
    # Only what was open before the silence and aborted behind it: other timeouts have other causes.
    lived_through = timed_out.join(outages, "cluster").where("start_ms <= silent_from_ms AND on_again_ms <= decided_at_ms")
    longest = lived_through.selectExpr("max(on_again_ms - silent_from_ms) AS longest").first()
    return None if longest is None or not longest.longest else int(longest.longest)
