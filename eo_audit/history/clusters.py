"""What an audit must know of a cluster before it judges: its now, its versions and timeouts, what was dumped of its coordinator log.

1. as_of: the argument, else the manifest's dump time, else the newest broker clock in the dumps. No rule knows another now.
2. Partition count of `__transaction_state`: the manifest, else the larger of 50 (Kafka's default) and highest partition + 1 under which
   nearly all transactional ids lie where `TransactionStateManager.partitionFor` puts them, else unknown.
3. The coordinator log is complete when every partition was dumped by some broker, decoded, from its log start to its end.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from eo_audit.history.replica_logs import manifest_values, said
from eo_audit.schemas import schema

COORDINATOR_TOPIC = "__transaction_state"
DEFAULT_PARTITIONS = 50
NEARLY_ALL = 0.9
SKEW_MS = 2_000


def clusters(
    manifest_entries: DataFrame,
    dump_files: DataFrame,
    *,
    section_status: DataFrame,
    replica_logs: DataFrame,
    coordinator_entries: DataFrame,
    as_of_ms: int | None = None,
) -> DataFrame:
    """One row per cluster.

    Args:
        manifest_entries: the table.
        dump_files: the table, for clusters and dump times.
        section_status: the table, for the manifests that are read.
        replica_logs: the table, for broker clocks and what was dumped of `__transaction_state`.
        coordinator_entries: the table, for transactional ids and client_transaction_version.
        as_of_ms: the audit's now for every cluster, as the user gave it.
    """
    manifest = section_status.where((F.col("kind") == "manifest") & F.col("is_read")).select("section_id")
    values = manifest_values(manifest_entries.join(F.broadcast(manifest), "section_id", "left_semi"))
    known = dump_files.groupBy("cluster").agg(F.max("dumped_at_ms").alias("dumped_at_ms"))
    for part in (values, _of_logs(replica_logs), _of_ids(coordinator_entries, replica_logs)):
        known = known.join(F.broadcast(part), "cluster", "left")
    return _described(known, as_of_ms).select(*schema("clusters").columns)


def java_hash(text: Column) -> Column:
    """`String.hashCode` of Java: over UTF-16 code units, 32 bits with sign, as a long."""
    digits = F.hex(F.encode(text, "UTF-16BE"))
    units = F.transform(
        F.filter(F.sequence(F.lit(1), F.greatest(F.length(digits), F.lit(1)), F.lit(4)), lambda at: at < F.length(digits)),
        lambda at: F.conv(F.substring(digits, at, F.lit(4)), 16, 10).cast("bigint"),
    )
    unsigned = F.aggregate(units, F.lit(0).cast("bigint"), lambda total, unit: (total * 31 + unit) % 2**32)
    return F.when(unsigned >= 2**31, unsigned - 2**32).otherwise(unsigned)


def partition_for(text: Column, partitions: Column) -> Column:
    """Partition of a transactional id or a group: `Utils.abs(hashCode) % n`, where abs of the smallest integer is 0."""
    hashed = java_hash(text)
    return F.when(hashed == -(2**31), 0).otherwise(F.abs(hashed)) % partitions


def _of_logs(replica_logs: DataFrame) -> DataFrame:
    """Per cluster: the newest broker clock, and the partitions of `__transaction_state` that some broker's dumps hold, or hold whole."""
    coordinator = F.col("supported") & (F.col("topic") == COORDINATOR_TOPIC)
    whole = coordinator & F.col("whole") & F.col("decoded")
    return replica_logs.groupBy("cluster").agg(
        F.max("newest_broker_clock_ms").alias("newest_broker_clock_ms"),
        F.array_sort(F.collect_set(F.when(coordinator, F.col("partition")))).alias("covered"),
        F.collect_set(F.when(whole, F.col("partition"))).alias("whole"),
    )


def _of_ids(coordinator_entries: DataFrame, replica_logs: DataFrame) -> DataFrame:
    """Per cluster: how many transactional ids there are, and how many lie where each partition count puts them."""
    logs = replica_logs.where(F.col("topic") == COORDINATOR_TOPIC).select("cluster", "replica_log_id", "partition")
    highest = logs.groupBy("cluster").agg((F.max("partition") + 1).alias("counted"))
    ids = coordinator_entries.groupBy("replica_log_id", "transactional_id").agg(F.max("client_transaction_version").alias("version"))
    placed = ids.join(F.broadcast(logs.join(highest, "cluster")), "replica_log_id")

    def fits(partitions: Column) -> Column:
        return F.count(F.when(partition_for(F.col("transactional_id"), partitions) == F.col("partition"), 1))

    return placed.groupBy("cluster").agg(
        F.max("version").alias("newest_version"),
        F.first("counted").alias("counted"),
        F.count("*").alias("ids"),
        fits(F.col("counted")).alias("fit_counted"),
        fits(F.lit(DEFAULT_PARTITIONS)).alias("fit_default"),
    )


def _described(known: DataFrame, as_of_ms: int | None) -> DataFrame:
    asked = F.lit(as_of_ms).cast("bigint")
    now = F.coalesce(asked, F.col("dumped_at_ms"), F.col("newest_broker_clock_ms"))
    source = F.when(asked.isNotNull(), "argument").when(F.col("dumped_at_ms").isNotNull(), "manifest")
    told = said(F.lit("transaction_state_partitions")).try_cast("int")
    return known.withColumns(
        {
            "as_of_ms": now,
            "as_of_source": source.when(now.isNotNull(), "newest_broker_clock"),
            "kafka_version": said(F.lit("kafka_version")),
            "transaction_version": _transaction_version(),
            "coordinator_partitions": F.coalesce(told, _inferred_partitions()),
            "coordinator_partitions_source": F.when(told.isNotNull(), "manifest").when(_inferred_partitions().isNotNull(), "inferred"),
            "coordinator_partitions_covered": F.coalesce("covered", F.array().cast("array<int>")),
            "offsets_partitions": said(F.lit("consumer_offsets_partitions")).try_cast("int"),
            **_timeouts(),
        }
    ).withColumn("coordinator_complete", F.coalesce(_all_partitions_whole(), F.lit(False)))


def _transaction_version() -> Column:
    return F.coalesce(said(F.lit("transaction_version")).try_cast("int"), F.when(F.col("newest_version") >= 2, 2))


def _inferred_partitions() -> Column:
    enough = F.col("ids") * NEARLY_ALL
    larger_default = F.col("counted") <= DEFAULT_PARTITIONS
    return F.when(larger_default & (F.col("fit_default") >= enough), DEFAULT_PARTITIONS).when(
        F.col("fit_counted") >= enough, F.col("counted")
    )


def _all_partitions_whole() -> Column:
    every = F.sequence(F.lit(0), F.col("coordinator_partitions") - 1)
    return (F.col("coordinator_partitions") > 0) & (F.size(F.array_except(every, "whole")) == 0)


def _timeouts() -> dict[str, Column]:
    """Broker settings that matter, with Kafka's defaults of the release."""
    version = F.split(said(F.lit("kafka_version")), r"\.")
    release = F.get(version, F.lit(0)).try_cast("int") * 100 + F.get(version, F.lit(1)).try_cast("int")
    expiration = _setting("transactional.id.expiration.ms", F.lit(604_800_000))
    return {
        "max_transaction_timeout_ms": _setting("transaction.max.timeout.ms", F.lit(900_000)),
        "transactional_id_expiration_ms": expiration,
        # Before 3.4 producer ids lived as long as transactional ids.
        "producer_id_expiration_ms": _setting("producer.id.expiration.ms", F.when(release < 304, expiration).otherwise(86_400_000)),
        "abort_scan_interval_ms": _setting(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms", F.when(release <= 204, 60_000).otherwise(10_000)
        ),
        "skew_ms": F.lit(SKEW_MS).cast("bigint"),
    }


def _setting(name: str, default: Column) -> Column:
    return F.coalesce(said(F.lit(f"broker_config.{name}")).try_cast("bigint"), default.cast("bigint"))
