"""Whose transaction each batch belongs to, and what each marker did (KIP-98, KIP-890).

The instance is assigned per batch: one span can hold late data of an earlier instance beside genuine data. Data between two markers of a
producer belongs to the instance that the second one ends, or, where a marker is missing, to one that lists the partition and ended
between them: the first in whose time it was made, up to the decision, because a client begins anew only after its last one. Data that no
listed instance can own was written late (behind the marker of its own instance) or on a partition that was never registered.
Where the coordinator log was not dumped, its head compacted away, or its dump may be older than the data, the answer is unknown, never a
guess. The client's time (CreateTime) proves nothing: it chooses between instances that order allows, and where it alone speaks the answer
is `suspected`.
"""

from pyspark.sql import DataFrame

from eo_audit.history.clock_offsets import farthest_clocks
from eo_audit.history.text import run
from eo_audit.model.alignment.clocks import ROUNDING_MS
from eo_audit.model.alignment.prices import FAR_MS

OPEN_END = 2**62  # the place of what no marker has ended yet


def judged_events(
    rows: DataFrame,
    spans: DataFrame,
    matched: DataFrame,
    *,
    reach: DataFrame,
    whole_logs: DataFrame,
    clock_offsets: DataFrame,
    replica_logs: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """Markers and spans of each producer in each replica log, and what can be said of them.

    Args:
        rows: what `sequences.producer_rows` returns, for the broker clocks behind open spans.
        spans: the table transaction_spans.
        matched: what `marker_match.match_markers` returns.
        reach, whole_logs: what `reach` returns.
        clock_offsets: the table.
        replica_logs: the table, for topic, partition, first offset, and how and when each log was dumped.
        clusters: the table, for skew_ms.

    Returns:
        replica_log_id, producer_id, cluster, log (topic and partition), skew_ms, ahead_ms (of the log's clock before the coordinator's),
        tolerance_ms (how exactly that is known), place (in the log), removed_at (where segments were deleted behind it),
        ended_unseen_at (up to where offsets are missing behind a span that no marker ended);
        marker (null on a span), span (null on a marker);
        match of the marker, on a span that of the marker that closes it, which is `closer` (null while is_open); matched_until_ms: when
        the instance that it is matched with was completed, or null; marker_before: the producer's previous marker; listing: how many
        instances list the partition, from the last one that some marker ended before (`before`) up to the one that the next marker ends,
        without those that under TV2 have another epoch than the span;
        is_ambiguous: the marker cannot be matched, of_doubtful: some marker of the producer cannot; clocklike: the producer's timestamps
        follow its transactions;
        why_unknown: why the coordinator log does not tell of it (see the table unmatched); null where it does; end_is_told: whether its
        end would be told;
        known_to_the_end: whether the coordinator log tells what became of it, be its transaction still in that log or not;
        known: whether it tells about the time of the marker, or of the end of the span; allowed: those of the listed instances that time
        and epoch allow; marker_role and marker_instance of markers; coordinator_log_id: the log that tells of the producer;
        aborted_before: of a span that a COMMIT ends in a cleaned log, the transaction before that one, if it was aborted and has no marker
        left;
        began_after_ms and sealed_ms of an open span: the times of the broker before and behind its beginning.
    """
    return run(
        "judged_events",
        rows=rows,
        spans=spans,
        matched=matched,
        reach=reach,
        whole_logs=whole_logs,
        clock_offsets=clock_offsets,
        farthest_clocks=farthest_clocks(clock_offsets),
        replica_logs=replica_logs,
        clusters=clusters,
        open_end=OPEN_END,
        rounding_ms=ROUNDING_MS,
        far_ms=FAR_MS,
    )
