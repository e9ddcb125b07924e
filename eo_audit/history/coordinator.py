"""What the transaction coordinator wrote, id by id: every entry with its predecessor, its legality and its transaction.

`__transaction_state` is replicated like any log, and one replica of each partition is enough: the authority is the one whose
dumps cover the longest stretch of offsets without a missing segment. The others are compared with it elsewhere, never merged.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from eo_audit.history import coordinator_law as law_of
from eo_audit.model import states as law
from eo_audit.schemas import schema

TOPIC = "__transaction_state"

_PARTITION = ("cluster", "coordinator_partition")
_ORDER = ("entry_offset", "section_id", "byte_offset")
_SO_FAR = (Window.unboundedPreceding, Window.currentRow)
_BEFORE = (Window.unboundedPreceding, -1)
_FROM_HERE = (Window.currentRow, Window.unboundedFollowing)
_WHOLE = (Window.unboundedPreceding, Window.unboundedFollowing)


def coordinator_history(coordinator_entries: DataFrame, section_status: DataFrame, clusters: DataFrame) -> DataFrame:
    """Coordinator entries of the authority replicas, each judged against the id's previous entry.

    Args:
        coordinator_entries: the fact table, all replicas.
        section_status: which sections count, and where they lie.
        clusters: one row per cluster, for transaction_version and kafka_version.

    Returns:
        Rows of the table `coordinator_history`.
    """
    entries = _authority(_with_place(coordinator_entries, section_status))
    known = clusters.select("cluster", "transaction_version", may_jump(F.col("kafka_version")).alias("may_jump"))
    linked = _with_predecessor(entries.join(F.broadcast(known), "cluster", "left"))
    return _judged(_with_protocol(linked)).select(*schema("coordinator_history").columns)


def may_jump(kafka_version: Column) -> Column:
    """Whether a fence of the old protocol may raise the epoch by more than one on this release (KAFKA-9666); unknown counts as maybe."""
    parts = F.split(kafka_version, r"\.")
    major, minor = (F.get(parts, F.lit(i)).try_cast("int") for i in (0, 1))
    first, second = law.FENCE_JUMPS_BELOW
    return F.coalesce((major < first) | ((major == first) & (minor < second)), F.lit(True))


def _in_log() -> WindowSpec:
    return Window.partitionBy(*_PARTITION, "replica_log_id").orderBy(*_ORDER)


def _in_id() -> WindowSpec:
    return Window.partitionBy(*_PARTITION, "replica_log_id", "transactional_id").orderBy(*_ORDER)


def _with_place(entries: DataFrame, section_status: DataFrame) -> DataFrame:
    """The entries of sections that count, with cluster, partition, and whether a segment is missing right before them."""
    counts = (F.col("topic") == TOPIC) & (F.col("kind") == "log") & F.col("is_read")
    sections = section_status.where(counts & F.col("partition").isNotNull()).select(
        "section_id",
        "cluster",
        F.col("partition").alias("coordinator_partition"),
        "segment_base_offset",
        F.col("end_reason").isin("truncated", "exception").alias("cut_off"),
    )
    return entries.join(F.broadcast(sections), "section_id").withColumn(
        "state", F.when(F.col("tombstone"), law.TOMBSTONE).otherwise(F.coalesce("status", F.lit("Unknown")))
    )


def _authority(placed: DataFrame) -> DataFrame:
    """Only the entries of the authority replica of each coordinator partition, with what the log as a whole tells.

    Offsets missing between two segments are a missing segment where nothing shows the cleaner at work before, else its work.
    """
    stretch = Window.partitionBy(*_PARTITION, "replica_log_id", "stretch").rowsBetween(*_WHOLE)
    log = Window.partitionBy(*_PARTITION, "replica_log_id").rowsBetween(*_WHOLE)
    replicas = Window.partitionBy(*_PARTITION).rowsBetween(*_WHOLE)
    before = F.lag("entry_offset").over(_in_log())
    starts_section = ~F.col("section_id").eqNullSafe(F.lag("section_id").over(_in_log()))
    hole = F.col("entry_offset") > F.when(starts_section, F.col("segment_base_offset")).otherwise(before + 1)
    missing = starts_section & (F.col("segment_base_offset") > before + 1)
    return (
        placed.repartition(*_PARTITION)
        .select(
            *placed.columns,
            F.lag("batch_timestamp_ms").over(_in_log()).alias("log_previous_batch_ms"),
            F.row_number().over(_in_log()).alias("place"),
            F.coalesce(missing, F.lit(False)).alias("missing"),
            F.coalesce(hole, F.lit(False)).alias("hole"),
        )
        .withColumn("gap", (F.col("missing") & ~F.coalesce(F.max("hole").over(_in_log().rowsBetween(*_BEFORE)), F.lit(False))).cast("int"))
        .withColumn("stretch", F.sum("gap").over(_in_log().rowsBetween(*_SO_FAR)))
        .withColumn("covered", F.max("entry_offset").over(stretch) - F.min("entry_offset").over(stretch) + 1)
        .withColumn("rank", F.struct("covered", F.count("*").over(log).alias("entries"), (-F.col("replica_log_id")).alias("smallest_id")))
        .withColumn("log_contiguous", F.max("entry_offset").over(log) + 1 == F.count("*").over(log))
        .withColumn("tail_known", ~F.max_by("cut_off", "entry_offset").over(log))
        .withColumn("best", F.max("rank").over(replicas))
        .withColumn("own_best", F.max("rank").over(log))
        .where(F.col("own_best") == F.col("best"))
    )


def _with_predecessor(entries: DataFrame) -> DataFrame:
    """Adds `previous` (null after a missing segment), `alive` (the newest earlier entry with a value), `is_last`, `head_known`."""
    entry = F.struct(*law_of.ENTRY)
    earlier = F.when(F.col("previous.stretch") == F.col("stretch"), F.col("previous"))
    alive = F.when(F.col("alive.stretch") == F.col("stretch"), F.col("alive"))
    born = (F.col("state") == law.EMPTY) & (F.col("producer_epoch") == 0)
    whole = F.col("entry_offset") == F.col("place") - 1
    with_value = F.when(~F.col("tombstone"), F.struct("state", "producer_id", "stretch"))
    return (
        entries.select(
            "*",
            entry.alias("entry"),
            F.lag(entry).over(_in_id()).alias("previous"),
            F.lead(F.lit(False), 1, True).over(_in_id()).alias("is_last"),
            F.last(with_value, ignorenulls=True).over(_in_id().rowsBetween(*_BEFORE)).alias("alive"),
        )
        .withColumn("previous", earlier)
        .withColumn("alive", alive)
        .withColumn("head_known", F.coalesce(F.col("previous").isNotNull() | whole | born, F.lit(False)))
    )


def _with_protocol(linked: DataFrame) -> DataFrame:
    """Adds `protocol`: the entry's own evidence, else that of the nearest earlier, else later entry, else the cluster's."""
    version = F.col("transaction_version")
    evidence = law_of.protocol_evidence(
        F.col("previous"), F.col("entry"), client_version=F.col("client_transaction_version"), transaction_version=version
    )
    assumed = F.when(version.isin(0, 1), law.TV0).when(version == 2, law.TV2).otherwise(law.UNKNOWN)
    earlier = F.last("evidence", ignorenulls=True).over(_in_id().rowsBetween(*_SO_FAR))
    later = F.first("evidence", ignorenulls=True).over(_in_id().rowsBetween(*_FROM_HERE))
    return linked.withColumn("evidence", evidence).withColumn("protocol", F.coalesce(earlier, later, assumed))


def _judged(entries: DataFrame) -> DataFrame:
    """Adds the columns that judge each entry, its instance, and the predecessor's columns."""
    before, entry, protocol = F.col("previous"), F.col("entry"), F.col("protocol")
    fine = (F.col("judged.step") == "legal") & F.col("epoch_step").isin("ok", "not_judged")
    begin = F.last(F.when(F.col("begins"), F.col("entry_offset")), ignorenulls=True).over(_in_id().rowsBetween(*_SO_FAR))
    in_run = law_of.one_of(F.col("state"), frozenset(law.CONTINUES_RUN))
    name = F.concat_ws("/", "cluster", F.col("coordinator_partition").cast("string"), "transactional_id", begin.cast("string"))
    return (
        entries.withColumn("judged", law_of.step(before, entry, alive=F.col("alive"), protocol=protocol))
        .withColumn("epoch_step", law_of.epoch_step(before, entry, protocol=protocol, may_jump=F.coalesce("may_jump", F.lit(True))))
        .withColumn("begins", law_of.begins_run(before, entry))
        .select(
            "*",
            F.col("judged.step").alias("step"),
            F.col("judged.step_reason").alias("step_reason"),
            F.when(fine, law_of.field_change(before, entry)).alias("field_change"),
            F.when(in_run, name).alias("instance_id"),
            F.col("previous.entry_offset").alias("previous_offset"),
            F.col("previous.state").alias("previous_status"),
            F.col("previous.producer_id").alias("previous_pid"),
            F.col("previous.producer_epoch").alias("previous_epoch"),
            *(F.col(f"previous.{name}").alias(f"previous_{name}") for name in ("last_update_ms", "start_ms", "timeout_ms", "partitions")),
            *(F.col(f"previous.{name}").alias(f"previous_{name}") for name in ("section_id", "byte_offset", "length")),
        )
    )
