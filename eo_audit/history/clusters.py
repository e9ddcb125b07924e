"""What an audit must know of a cluster before it judges: its now, its versions and timeouts, what was dumped of its coordinator log.

1. as_of: the argument, else the manifest's dump time, else the newest broker clock in the dumps. No rule knows another now.
2. Partition count of `__transaction_state`: the manifest, else the larger of 50 (Kafka's default) and highest partition + 1 under which
   nearly all coordinator entries lie where `TransactionStateManager.partitionFor` puts their ids, else unknown.
3. The coordinator log is complete when every partition was dumped by some broker, decoded, from its log start to its end.
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.replica_logs import said
from eo_audit.history.sql import columns_of, expressions, named

COORDINATOR_TOPIC = "__transaction_state"
# transaction.state.log.num.partitions.
DEFAULT_PARTITIONS = 50
# Some entries in a wrong partition are what C06 is there to find: they must not hide the count that all others tell.
NEARLY_ALL = 0.9
# How far clocks lie apart that NTP keeps. What pairs of a decision and its marker tell of two brokers is added to it.
SKEW_MS = 2_000


def java_hash(text: str) -> str:
    """SQL of Java's `String.hashCode` of a text: over UTF-16 code units, 32 bits with sign, as a long."""
    # Java's char is a UTF-16 code unit: a character outside the first plane counts as two.
    unit = "CAST(conv(substring(digits, 4 * i + 1, 4), 16, 10) AS BIGINT)"
    units = f"transform(slice(sequence(0, length(digits) DIV 4), 1, length(digits) DIV 4), i -> {unit})"
    hashed = f"aggregate({units}, 0L, (h, unit) -> pmod(h * 31 + unit, 4294967296L), h -> IF(h < 2147483648, h, h - 4294967296L))"
    return f"transform(array(hex(encode({text}, 'UTF-16BE'))), digits -> {hashed})[0]"


def partition_for(text: str, partitions: str | int) -> str:
    """SQL of the partition of a transactional id or a group: `Utils.abs(hashCode) % n`, where abs of the smallest integer is 0."""
    return f"mod(transform(array({java_hash(text)}), h -> IF(h = -2147483648, 0L, abs(h)))[0], {partitions})"


def _setting(name: str, default: str) -> str:
    said_so = said(f"broker_config.{name}")
    return f"coalesce(try_cast({said_so} AS BIGINT), CAST({default} AS BIGINT))"


_OF_COLLECTION = "NOT dumped_at_source <=> 'dumped-at'"  # else it is the time of one file
_COORDINATOR_LOG = f"topic = '{COORDINATOR_TOPIC}' AND supported"
_OF_LOG = {
    "newest_broker_clock_ms": "newest_broker_clock_ms",
    "covered": f"IF({_COORDINATOR_LOG}, partition, NULL)",
    "whole": f"IF({_COORDINATOR_LOG} AND whole AND decoded, partition, NULL)",
}
_OF_ID = {
    "version": "version",
    "fits_counted": f"{partition_for('transactional_id', 'counted')} = partition",
    "fits_default": f"{partition_for('transactional_id', DEFAULT_PARTITIONS)} = partition",
}
_GATHERED = {
    "dumped_at_ms": "max(dumped_at_ms)",
    "manifest": "collect_list(said)",
    "newest_broker_clock_ms": "max(newest_broker_clock_ms)",
    "covered": "array_sort(collect_set(covered))",
    "whole": "collect_set(whole)",
    "newest_version": "max(version)",
    "enough": f"{NEARLY_ALL} * count(fits_default)",
    "fit_counted": "count_if(fits_counted)",
    "fit_default": "count_if(fits_default)",
}
_RELEASE = "try_cast(get(split(kafka_version, '\\\\.'), {part}) AS INT)"
_STEPS = (
    {
        "kafka_version": said("kafka_version"),
        "told": f"try_cast({said('transaction_state_partitions')} AS INT)",
        # Kafka's default first: where few ids were seen they may fit a smaller number by chance.
        "inferred": f"""CASE WHEN enough = 0 THEN NULL
            WHEN array_max(covered) < {DEFAULT_PARTITIONS} AND fit_default >= enough THEN {DEFAULT_PARTITIONS}
            WHEN fit_counted >= enough THEN array_max(covered) + 1 END""",
        "transactional_id_expiration_ms": _setting("transactional.id.expiration.ms", "604800000"),
    },
    {
        "coordinator_partitions": "coalesce(told, inferred)",
        "release": f"{_RELEASE.format(part=0)} * 100 + {_RELEASE.format(part=1)}",
        "now": "coalesce(asked_ms, dumped_at_ms, newest_broker_clock_ms)",
    },
    {
        "as_of_ms": "now",
        "as_of_source": """CASE WHEN asked_ms IS NOT NULL THEN 'argument' WHEN dumped_at_ms IS NOT NULL THEN 'manifest'
            WHEN now IS NOT NULL THEN 'newest_broker_clock' END""",
        "transaction_version": f"coalesce(try_cast({said('transaction_version')} AS INT), IF(newest_version >= 2, 2, NULL))",
        "coordinator_partitions_source": "CASE WHEN told IS NOT NULL THEN 'manifest' WHEN inferred IS NOT NULL THEN 'inferred' END",
        "coordinator_partitions_covered": "covered",
        # Only a log that is complete proves by its silence that no coordinator knows of a transaction.
        "coordinator_complete": """coalesce(coordinator_partitions > 0
            AND size(array_except(sequence(0, coordinator_partitions - 1), whole)) = 0, false)""",
        "offsets_partitions": f"try_cast({said('consumer_offsets_partitions')} AS INT)",
        "max_transaction_timeout_ms": _setting("transaction.max.timeout.ms", "900000"),
        # Before 3.4 producer ids lived as long as transactional ids.
        "producer_id_expiration_ms": _setting("producer.id.expiration.ms", "IF(release < 304, transactional_id_expiration_ms, 86400000)"),
        # Up to 2.4 the coordinator looked for timeouts each minute, since then every ten seconds.
        "abort_scan_interval_ms": _setting(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms", "IF(release <= 204, 60000, 10000)"
        ),
        "skew_ms": f"CAST({SKEW_MS} AS BIGINT)",
    },
)


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
    read = F.broadcast(section_status.where("kind = 'manifest' AND is_read").select("section_id"))
    coordinator = "max(partition) OVER (PARTITION BY cluster) + 1 AS counted"
    places = replica_logs.where(_COORDINATOR_LOG).selectExpr("cluster", "replica_log_id", "partition", coordinator)
    # An id has many entries, and its hash costs more than all else of them.
    ids = coordinator_entries.groupBy("replica_log_id", "transactional_id").agg(F.max("client_transaction_version").alias("version"))
    parts = (
        dump_files.selectExpr("cluster", f"IF({_OF_COLLECTION}, dumped_at_ms, NULL) AS dumped_at_ms"),
        manifest_entries.join(read, "section_id", "left_semi").selectExpr("cluster", "struct(name, value) AS said"),
        replica_logs.selectExpr("cluster", *named(_OF_LOG)),
        ids.join(F.broadcast(places), "replica_log_id").selectExpr("cluster", *named(_OF_ID)),
    )
    gathered = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    known = gathered.groupBy("cluster").agg(*expressions(_GATHERED)).withColumn("asked_ms", F.lit(as_of_ms).cast("bigint"))
    for step in _STEPS[:-1]:
        known = known.selectExpr("*", *named(step))
    return known.selectExpr(*columns_of("clusters", _STEPS[-1]))
