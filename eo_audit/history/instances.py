"""Transaction instances: the begin-to-complete runs of the coordinator log, each with its decision and, if aborted, the cause."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.history import coordinator_law as law_of
from eo_audit.history.abort_cause import abort_cause
from eo_audit.model import states as law
from eo_audit.schemas import schema

_KEY = ("cluster", "coordinator_partition", "replica_log_id", "transactional_id")
_ADDRESS = ("section_id", "byte_offset", "length")


def transaction_instances(coordinator_history: DataFrame, clusters: DataFrame) -> DataFrame:
    """One row per run of a transactional id, from its first entry to its CompleteCommit or CompleteAbort.

    Args:
        coordinator_history: the table.
        clusters: one row per cluster, for kafka_version and abort_scan_interval_ms.

    Returns:
        Rows of the table `transaction_instances`.
    """
    known = clusters.select("cluster", "kafka_version", "abort_scan_interval_ms")
    runs = _runs(_linked(coordinator_history)).join(F.broadcast(known), "cluster", "left")
    return _described(runs).select(*schema("transaction_instances").columns)


def _linked(history: DataFrame) -> DataFrame:
    """Each entry with the id's next one, and whether the transaction's time counts from it."""
    following = F.struct(
        F.col("state"), "producer_epoch", "producer_id", F.col("batch_timestamp_ms").alias("at_ms"), F.lit(True).alias("exists")
    )
    previous = F.struct(F.col("previous_partitions").alias("partitions"))
    extends = (F.col("previous_status") == law.ONGOING) & law_of.extends(previous, F.struct("partitions"))
    opens = (F.col("state") == law.ONGOING) & ~F.coalesce(extends, F.lit(False))
    return (
        history.withColumn("state", F.when(F.col("tombstone"), law.TOMBSTONE).otherwise(F.coalesce("status", F.lit("Unknown"))))
        .withColumn("following", F.lead(following).over(Window.partitionBy(*_KEY).orderBy("entry_offset")))
        .withColumn("opens", opens)
        .where(F.col("instance_id").isNotNull())
    )


def _runs(linked: DataFrame) -> DataFrame:
    """One row per run, with its telling entries as structs."""
    entry = F.struct(
        *("entry_offset", "state", "producer_id", "producer_epoch", "partition_leader_epoch", "timeout_ms", "partitions"),
        *("last_update_ms", "batch_timestamp_ms", "log_previous_batch_ms", "previous_status", "head_known", "protocol", "following"),
        *_ADDRESS,
    )
    state = F.col("state")

    def first(where: Column) -> Column:
        return F.min_by(entry, F.when(where, F.col("entry_offset")))

    def last(where: Column) -> Column:
        return F.max_by(entry, F.when(where, F.col("entry_offset")))

    return linked.groupBy(*_KEY, "instance_id").agg(
        first(F.lit(True)).alias("first"),
        last(F.lit(True)).alias("last"),
        last(state == law.ONGOING).alias("ongoing"),
        last(law_of.one_of(state, law.PREPARED)).alias("last_prepare"),
        first(state == law.PREPARE_COMMIT).alias("commit"),
        first(state == law.PREPARE_ABORT).alias("abort"),
        first(law_of.one_of(state, law.COMPLETE)).alias("complete"),
        last(law_of.one_of(state, law.COMPLETE)).alias("last_complete"),
        F.max_by("start_ms", F.when(F.col("start_ms") >= 0, F.col("entry_offset"))).alias("printed_start_ms"),
        F.max_by("last_update_ms", F.when(F.col("opens"), F.col("entry_offset"))).alias("opened_ms"),
    )


def _described(runs: DataFrame) -> DataFrame:
    prepare = F.when(F.col("last_prepare.state") == law.PREPARE_COMMIT, F.col("commit")).otherwise(F.col("abort"))
    bound = F.when(F.col("first.head_known"), "first_ongoing").otherwise("upper_bound")
    printed, opened = F.col("printed_start_ms"), F.col("opened_ms")
    return (
        runs.withColumn("prepare", F.when(F.col("last_prepare").isNotNull(), prepare))
        .withColumn("end", F.coalesce("prepare", "complete"))
        .withColumn("listing", F.coalesce("prepare", "ongoing"))
        .withColumn("start_ms", F.coalesce(printed, opened))
        .withColumn("start_source", F.when(printed.isNotNull(), "start_ms").when(opened.isNotNull(), bound))
        .withColumn("marker_epoch", F.coalesce("last_prepare.producer_epoch", "last_complete.producer_epoch"))
        .withColumn("timeout_ms", F.when(F.col("ongoing").isNotNull(), F.col("ongoing.timeout_ms")).otherwise(F.col("last.timeout_ms")))
        .withColumn("protocol", F.col("last.protocol"))
        .withColumn("decision", _decision(F.col("end.state")))
        .withColumn("why", F.when(F.col("decision") == law.ABORT, abort_cause(_abort())))
        .withColumns(_named())
    )


def _decision(state: Column) -> Column:
    decision = F.lit(None).cast("string")
    for name, decided in law.DECISION_OF.items():
        decision = F.when(state == name, decided).otherwise(decision)
    return decision


def _data_epoch() -> Column:
    """The epoch of the data where no Ongoing survived: read from the entry that ended the run, null where that cannot tell."""
    end, protocol = F.col("marker_epoch"), F.col("protocol")
    committed = F.col("end.state").isin(law.PREPARE_COMMIT, law.COMPLETE_COMMIT)
    inferred = F.when((protocol == law.TV2) & (end > 0), end - 1).when((protocol == law.TV0) & committed, end)
    return F.when(F.col("ongoing").isNotNull(), F.col("ongoing.producer_epoch")).otherwise(inferred)


def _named() -> dict[str, Column]:
    """The columns of the table that are plain parts of the run's entries."""
    following = F.col("last.following")
    next_start = F.lead("start_ms").over(Window.partitionBy(*_KEY).orderBy("first.entry_offset"))
    return {
        "producer_id": F.col("first.producer_id"),
        "data_epoch": _data_epoch(),
        "partitions": law_of.listed(F.col("listing.partitions")),
        "partitions_complete": F.col("listing").isNotNull(),
        "first_entry_offset": F.col("first.entry_offset"),
        "last_status": F.col("last.state"),
        "decided_at_ms": F.col("end.last_update_ms"),
        "prepare_offset": F.col("prepare.entry_offset"),
        "prepare_leader_epoch": F.col("prepare.partition_leader_epoch"),
        "completed_at_ms": F.col("complete.batch_timestamp_ms"),
        "complete_offset": F.col("complete.entry_offset"),
        "complete_leader_epoch": F.col("complete.partition_leader_epoch"),
        "next_status": following["state"],
        "next_epoch": following["producer_epoch"],
        "next_producer_id": following["producer_id"],
        "next_at_ms": following["at_ms"],
        "next_start_ms": next_start,
        "is_last": following.isNull(),
        "ongoing_epoch": F.col("ongoing.producer_epoch"),
        "abort_cause": F.col("why.cause"),
        "abort_cause_certainty": F.col("why.certainty"),
        "abort_cause_alternatives": F.col("why.alternatives"),
        **{name: F.col(f"first.{name}") for name in _ADDRESS},
        **{f"last_{name}": F.col(f"last.{name}") for name in _ADDRESS},
    }


def _abort() -> Column:
    """The fields of `model.abort_cause.Abort`."""
    following = F.col("last.following")
    expired = F.coalesce(F.col("abort.previous_status").isin(sorted(law.EXPIRABLE)), F.lit(False))
    return F.struct(
        F.col("protocol").alias("protocol"),
        expired.alias("nothing_open"),
        F.col("ongoing.producer_epoch").alias("ongoing_epoch"),
        F.col("ongoing.partition_leader_epoch").alias("ongoing_leader_epoch"),
        F.col("start_ms").alias("start_ms"),
        F.coalesce(F.col("start_source") == "upper_bound", F.lit(False)).alias("start_is_bound"),
        F.col("timeout_ms").alias("timeout_ms"),
        F.col("abort.producer_epoch").alias("prepare_epoch"),
        F.col("abort.last_update_ms").alias("prepared_ms"),
        F.col("abort.partition_leader_epoch").alias("prepare_leader_epoch"),
        F.col("abort.log_previous_batch_ms").alias("log_previous_batch_ms"),
        F.col("complete.batch_timestamp_ms").alias("completed_batch_ms"),
        following["state"].alias("next_status"),
        following["producer_epoch"].alias("next_epoch"),
        following["at_ms"].alias("next_at_ms"),
        F.coalesce("abort_scan_interval_ms", F.lit(10_000)).alias("scan_ms"),
        F.coalesce(F.col("kafka_version").startswith("4.0.0"), F.lit(False)).alias("server_adds_two"),
    )
