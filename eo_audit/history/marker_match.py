"""Which marker ended which transaction instance, in each replica log: `model.alignment`, and the windows that spare most logs the asking.

Under TV2 the producer id and the marker's epoch name the instance. Under TV0 and TV1 many instances share them, and order decides:
1. By place, where the log and the coordinator's story are known from their beginnings: the n-th marker belongs to the n-th instance, if all
   their types and epochs agree and the clocks of both brokers lie the same distance apart from each marker to the next.
2. By time, where a beginning is missing: each marker lies between the decision and the completion of one instance, and none is left out.
3. All others are aligned by the law itself (`doubtful_markers`), all producers of the log together: they have seen the same clocks.
What can be aligned in two ways is ambiguous, and nothing is said of it.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame

from eo_audit.history.clock_offsets import NEVER_MS, farthest_clocks
from eo_audit.history.clusters import SKEW_MS
from eo_audit.history.doubtful_markers import aligned
from eo_audit.history.text import run
from eo_audit.model.alignment.clocks import DRIFT, ROUNDING_MS
from eo_audit.model.alignment.prices import FAR_MS


def match_markers(
    rows: DataFrame,
    spans: DataFrame,
    instances: DataFrame,
    *,
    reach: DataFrame,
    coverage: DataFrame,
    replica_logs: DataFrame,
    clusters: DataFrame,
    keep: Callable[[DataFrame], DataFrame] = lambda frame: frame,
) -> DataFrame:
    """The markers of each producer in each replica log, and the instances that list its partition, each matched with the other.

    Args:
        rows: what `sequences.producer_rows` returns.
        spans: the table transaction_spans, for holes before markers and what is open behind the last one.
        instances: the table transaction_instances.
        reach: what `reach.reach` returns.
        coverage: the table, for offsets that are missing.
        replica_logs: the table, for topic, partition, first offset and cleaning of each log, and when it was dumped.
        clusters: the table, for skew_ms.
        keep: makes rows that are read several times once.

    Returns:
        replica_log_id, producer_id, cluster, kind (0 an instance, 2 a marker), place (offset of the first entry, or of the marker), own
        (the instance), marker; found (the instance of a marker, or null), match (closing, duplicate, contradictory or null), claims (the
        place of the marker that ended an instance, on both), ambiguous (the producer's markers in this log can be told in more than one
        way), legal (and nothing is wrong in any of them), lost_among (of an instance: at least one of so many of the producer lacks its
        marker in this log, and nothing tells which), unseen (of an instance: `below_start`, `tail`, `hole` or `last_hole`, where its
        marker is held to be).
    """
    paired = run(
        "paired_markers",
        rows=rows,
        spans=spans,
        instances=instances,
        reach=reach,
        coverage=coverage,
        replica_logs=replica_logs,
        clusters=clusters,
        far_ms=FAR_MS,
        skew_ms=SKEW_MS,
        rounding_ms=ROUNDING_MS,
        drift=DRIFT,
        never_ms=NEVER_MS,
    )
    # Kept, because three plans read the rows: which logs are doubtful, what the law is asked about, and where its answers are joined.
    paired = keep(paired)
    return run("matched_markers", paired=paired, answers=aligned(paired))


def with_markers_below_start(
    matched: DataFrame,
    *,
    rows: DataFrame,
    reach: DataFrame,
    clock_offsets: DataFrame,
    producer_snapshots: DataFrame,
    section_status: DataFrame,
    coverage: DataFrame,
    replica_logs: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """The same, with the markers that no dump shows and snapshots tell of (`ProducerStateEntry.coordinatorEpoch`): below the log's start.

    Args:
        matched: what `match_markers` returns.
        rows: what `sequences.producer_rows` returns.
        reach: what `reach.reach` returns.
        clock_offsets, producer_snapshots, section_status, coverage, replica_logs, clusters: the tables.
    """
    return run(
        "markers_below_start",
        matched=matched,
        rows=rows,
        reach=reach,
        farthest_clocks=farthest_clocks(clock_offsets),
        producer_snapshots=producer_snapshots,
        section_status=section_status,
        coverage=coverage,
        replica_logs=replica_logs,
        clusters=clusters,
        never_ms=NEVER_MS,
    )
