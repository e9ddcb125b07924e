"""What explanations know of clocks and moments, out of the tables clock_offsets, clusters and replica_logs."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Clocks:
    """How far clocks lie apart in each cluster, which clusters and logs had stopped, when each log was dumped, and by how much its end is
    earlier than what was written before it."""

    farthest_ms: Mapping[str, int]
    stopped: frozenset[str]
    clean_ends: frozenset[int]
    dumped_at_ms: Mapping[int, int]
    set_back_ms: Mapping[int, int]


def clocks(read: "Callable[[str], pa.Table]") -> Clocks:
    """Clocks and moments of all clusters.

    Args:
        read: a table by its name.
    """
    by_brokers = {row["cluster"] for row in read("clusters").to_pylist() if row["as_of_source"] == "newest_broker_clock"}
    farthest: dict[str, int] = defaultdict(int)
    for row in read("clock_offsets").to_pylist():
        # As they stood at the end of the log: clocks that were mended count as mended, unless the audit's own time may be of before.
        apart = max(abs(row["newest_offset_ms"]), row["farthest_offset_ms"] if row["cluster"] in by_brokers else 0)
        farthest[row["cluster"]] = max(farthest[row["cluster"]], apart)
    logs = read("replica_logs").to_pylist()
    clocked = [log for log in logs if log["newest_broker_clock_ms"] is not None]
    set_back = {log["replica_log_id"]: log["latest_broker_clock_ms"] - log["newest_broker_clock_ms"] for log in clocked}
    # A log that nobody wrote to since its broker last started still ends at the snapshot of the stop before: another one may tell.
    running = {(row["cluster"], row["broker"]) for row in logs if _was_written_to(row)}
    stopped = frozenset(row["cluster"] for row in logs if row["clean_end"] and (row["cluster"], row["broker"]) not in running)
    clean_ends = frozenset(row["replica_log_id"] for row in logs if row["clean_end"])
    dumped = {row["replica_log_id"]: row["dumped_at_ms"] for row in logs if row["dumped_at_ms"] is not None}
    return Clocks(farthest, stopped, clean_ends, dumped, set_back)


def _was_written_to(log: Mapping[str, object]) -> bool:
    """A log goes on behind its newest snapshot: no stop of the broker (`UnifiedLog.close` takes one at the end) came after that."""
    snapshot, end = log["snapshot_offset"], log["leo"]
    return bool(log["listed"] and log["tail_intact"]) and isinstance(snapshot, int) and isinstance(end, int) and snapshot < end
