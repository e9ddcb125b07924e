"""Did every partition of a transaction get its marker? Transaction instance x registered partition x replica log.

A missing marker says something only where the dump shows the place at which it should stand: past the completion of the transaction,
above the log's start, not in a hole, and not where the cleaner may have removed it (which it does only after the transaction's data).
"""

from pyspark.sql import DataFrame

from eo_audit.history.clock_offsets import farthest_clocks
from eo_audit.history.reach import coordinator_logs
from eo_audit.history.text import run
from eo_audit.model.alignment.prices import FAR_MS

LAG_MS = 30_000  # the default of replica.lag.time.max.ms


def instance_partitions(
    instances: DataFrame,
    rows: DataFrame,
    *,
    events: DataFrame,
    matched: DataFrame,
    reach: DataFrame,
    coverage: DataFrame,
    replica_logs: DataFrame,
    clock_offsets: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """One row per instance, partition in its list, and dumped replica log of that partition (one without a log where none was dumped).

    Args:
        instances: the table transaction_instances.
        rows: what `assign_instances` returns (the table producer_history will do).
        events: what `judged_events` returns, for the producers whose markers can be told in more than one way.
        matched: what `match_markers` returns, for the transactions of which one lacks its marker.
        reach: what `reach.reach` returns.
        coverage: the table.
        replica_logs: the table.
        clock_offsets: the table.
        clusters: the table, for skew_ms.

    Returns:
        Rows of the table `instance_partitions`.
    """
    return run(
        "instance_partitions",
        instances=instances,
        rows=rows,
        events=events,
        matched=matched,
        reach=reach,
        coordinator_logs=coordinator_logs(replica_logs, clusters),
        coverage=coverage,
        replica_logs=replica_logs,
        clock_offsets=clock_offsets,
        farthest_clocks=farthest_clocks(clock_offsets),
        clusters=clusters,
        lag_ms=LAG_MS,
        far_ms=FAR_MS,
    )
