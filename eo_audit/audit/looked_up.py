"""What rules ask of the context by id (`Rule.asks`), read out of the history tables; nothing where nobody asks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.rules.replica_log import Log, lack_alike
from eo_audit.rules.row import Row

# Markers of which no coordinator's log tells.
_UNTOLD = "row_kind = 'marker' AND marker_role = 'unknown'"


def instances(table: DataFrame, ids: set[str]) -> dict[str, Row]:
    """Transactions (rows of transaction_instances), by instance id."""
    if not ids:
        return {}
    rows = table.where(F.col("instance_id").isin(sorted(ids))).collect()
    return {row.instance_id: Row(row.asDict(recursive=True)) for row in rows}


def last_of_producers(table: DataFrame, producers: set[int]) -> dict[tuple[str, int], Row]:
    """The last transaction of each producer id, by (cluster, producer id)."""
    if not producers:
        return {}
    newest = F.max_by(F.struct("*"), "first_entry_offset").alias("last")
    rows = table.where(F.col("producer_id").isin(sorted(producers))).groupBy("cluster", "producer_id").agg(newest).collect()
    return {(row["cluster"], row.producer_id): Row(row["last"].asDict(recursive=True)) for row in rows}


def unmarked(partitions: DataFrame, ids: set[str], replicas: Iterable[Sequence[Log]]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Partitions in which some transactions lack their marker, by instance id."""
    if not ids:
        return {}
    alike = sorted(log.log_id for of_partition in replicas if lack_alike(of_partition) for log in of_partition)
    lost = (
        F.col("marker_match").isin("pending", "missing")
        | (F.col("coverage") == "led_on")
        | ((F.col("coverage") == "overdue") & F.col("replica_log_id").isin(alike))
    )
    lacking = partitions.where(F.col("instance_id").isin(sorted(ids)) & lost)
    found: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in lacking.select("instance_id", "topic", "partition").collect():
        found[row.instance_id].add((row.topic, row.partition))
    return {instance: tuple(sorted(places)) for instance, places in found.items()}


def data_of(partitions: DataFrame, ids: set[str], logs: Mapping[int, Log]) -> dict[str, dict[tuple[str, int], int | None]]:
    """Records of some transactions by partition, of the replica that shows most; None where no dump reaches the end of the log."""
    if not ids:
        return {}
    found: dict[str, dict[tuple[str, int], int | None]] = defaultdict(dict)
    columns = ("instance_id", "replica_log_id", "topic", "partition", "coverage", "data_records")
    for row in partitions.where(F.col("instance_id").isin(sorted(ids))).select(*columns).collect():
        log, of = logs.get(row.replica_log_id), found[row.instance_id]
        # No records is an answer only where the log was read up to its end; else they may stand behind the dump.
        known = row.data_records or (0 if log is not None and log.ends_here and row.coverage in ("covered", "tail") else None)
        of[row.topic, row.partition] = max((n for n in (known, of.get((row.topic, row.partition))) if n is not None), default=None)
    return dict(found)


def of_producers(table: DataFrame, pairs: Set[tuple[int, int]]) -> dict[tuple[int, int], list[Row]]:
    """Rows of some producers, by (replica log, producer id), in offset order."""
    if not pairs:
        return {}
    logs, producers = sorted({log for log, _ in pairs}), sorted({producer for _, producer in pairs})
    # A product of both lists is more than the pairs, but plain conditions that Delta can skip files by; what nobody asked for is not looked
    # up.
    rows = table.where(F.col("replica_log_id").isin(logs) & F.col("producer_id").isin(producers)).collect()
    found: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.first_offset):
        found[row.replica_log_id, row.producer_id].append(Row(row.asDict(recursive=True)))
    return found


def newest_markers(rows: DataFrame, pairs: Set[tuple[int, int]]) -> dict[tuple[int, int], Row]:
    """The newest marker of some producers (offset, coordinator epoch), by (replica log, producer id)."""
    if not pairs:
        return {}
    logs, producers = sorted({log for log, _ in pairs}), sorted({producer for _, producer in pairs})
    markers = rows.where("row_kind = 'marker'").where(F.col("replica_log_id").isin(logs) & F.col("producer_id").isin(producers))
    newest = F.max_by(F.struct("base_offset", "marker_coordinator_epoch"), "base_offset").alias("newest")
    found = markers.groupBy("replica_log_id", "producer_id").agg(newest).collect()
    return {(row.replica_log_id, row.producer_id): Row(row.newest.asDict()) for row in found}


def untold(partitions: DataFrame, rows: DataFrame, ids: Set[str]) -> dict[str, int]:
    """When the newest marker of its producer was written, in the partitions a transaction lists, that the coordinator's log does not
    tell of, by instance id."""
    if not ids:
        return {}
    listed = partitions.where(F.col("instance_id").isin(sorted(ids))).select("instance_id", "replica_log_id", "producer_id")
    markers = rows.where(_UNTOLD).select("replica_log_id", "producer_id", "max_timestamp_ms")
    newest = F.max("max_timestamp_ms").alias("newest_ms")
    found = markers.join(F.broadcast(listed), ["replica_log_id", "producer_id"]).groupBy("instance_id").agg(newest).collect()
    return {row.instance_id: row.newest_ms for row in found}


def went_on(instances: DataFrame, partitions: DataFrame, rows: DataFrame, coordinators: Mapping[int, Log]) -> dict[int, int]:
    """When the newest marker of any of its producers was written that a log of the coordinator does not tell of, by the id of that log;
    only markers that are newer than what its brokers wrote into one of these logs."""
    if not coordinators:
        return {}
    since_ms = min(log.newest_ms for log in coordinators.values())
    newest = F.max("max_timestamp_ms").alias("newest_ms")
    untold = rows.where(_UNTOLD).where(F.col("max_timestamp_ms") > since_ms)
    markers = untold.groupBy("replica_log_id", "producer_id").agg(newest)
    of_logs = instances.where(F.col("replica_log_id").isin(sorted(coordinators)))
    held = of_logs.select("instance_id", F.col("replica_log_id").alias("coordinator_log_id"))
    listed = partitions.select("instance_id", "replica_log_id", "producer_id").join(held, "instance_id")
    found = listed.join(markers, ["replica_log_id", "producer_id"]).groupBy("coordinator_log_id").agg(F.max("newest_ms").alias("newest_ms"))
    return {row.coordinator_log_id: row.newest_ms for row in found.collect()}
