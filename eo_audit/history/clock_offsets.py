"""clock_offsets: how far the clock behind a log is ahead of the coordinator's, as the log's own markers tell.

A marker is written by the clock of the partition's leader, between the decision and the completion that the coordinator's clock wrote: each
matched pair bounds the distance of both clocks from two sides. The pairs of all producers together give it, as medians, so that a marker
that waited for its partition does not count; the newest pairs tell where the clocks stood when the dump was made.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run
from eo_audit.model.alignment.clocks import DRIFT, ROUNDING_MS

NEVER_MS = 2**60  # `until_ms` of what was not completed lies beyond this


def clock_offsets(matched: DataFrame) -> DataFrame:
    """The table clock_offsets: one row per replica log and coordinator's log that have a matched pair.

    Args:
        matched: what `marker_match.match_markers` returns.
    """
    return run("clock_offsets", matched=matched, never_ms=NEVER_MS, rounding_ms=ROUNDING_MS, drift=DRIFT)


def farthest_clocks(clock_offsets: DataFrame) -> DataFrame:
    """How far the clock of a log may be off of which no pair tells.

    Args:
        clock_offsets: the table.

    Returns:
        cluster, farthest_ms (so far the clocks of some log and of a coordinator lie apart at their newest pairs), moved_ms (by so much one
        of them was set between the pairs of a log).
    """
    return run("farthest_clocks", clock_offsets=clock_offsets)
