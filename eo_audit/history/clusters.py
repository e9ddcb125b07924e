"""What an audit must know of a cluster before it judges: its now, its versions and timeouts, what was dumped of its coordinator log.

1. as_of: the argument, else the manifest's dump time, else the newest broker clock in the dumps. No rule knows another now.
2. Partition count of `__transaction_state`: the manifest, else the larger of 50 (Kafka's default) and highest partition + 1 under which
   nearly all coordinator entries lie where `TransactionStateManager.partitionFor` puts their ids, else unknown.
3. The coordinator log is complete when every partition was dumped by some broker, decoded, from its log start to its end.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run
from eo_audit.model.states import EXPIRES_AFTER_MS

# transaction.state.log.num.partitions.
DEFAULT_PARTITIONS = 50
# Some entries in a wrong partition are what C06 is there to find: they must not hide the count that all others tell.
NEARLY_ALL = 0.9
# So many ids do not fit a wrong count by chance: each has one chance in as many as there are partitions.
FEWEST_IDS = 4
# How far clocks lie apart that NTP keeps. What pairs of a decision and its marker tell of two brokers is added to it.
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
    return run(
        "clusters",
        manifest_entries=manifest_entries,
        dump_files=dump_files,
        section_status=section_status,
        replica_logs=replica_logs,
        coordinator_entries=coordinator_entries,
        as_of_ms=as_of_ms,
        default_partitions=DEFAULT_PARTITIONS,
        nearly_all=NEARLY_ALL,
        fewest_ids=FEWEST_IDS,
        skew_ms=SKEW_MS,
        id_expires_ms=EXPIRES_AFTER_MS,
    )
