"""What the transaction coordinator wrote, id by id: every entry with its predecessor, its legality and its transaction.

`__transaction_state` is replicated like any log, and one replica of each partition is enough: the authority is the one whose
dumps cover most offsets without a missing segment. The others are compared with it elsewhere, never merged.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from eo_audit.history import coordinator_ghosts, coordinator_law
from eo_audit.model import states as law
from eo_audit.store.schemas import schema

TOPIC = "__transaction_state"

_PARTITION = ("cluster", "coordinator_partition")
_LOG = (*_PARTITION, "replica_log_id")
_NO_PARTITIONS = "cast(array() as array<struct<topic:string,partition:int>>)"


def coordinator_history(coordinator_entries: DataFrame, section_status: DataFrame, clusters: DataFrame) -> DataFrame:
    """Coordinator entries of the authority replicas, each judged against the id's previous entry.

    Args:
        coordinator_entries: the fact table, all replicas.
        section_status: which sections are read, and where they lie.
        clusters: one row per cluster, for transaction_version and kafka_version.

    Returns:
        Rows of the table `coordinator_history`.
    """
    known = clusters.select("cluster", "transaction_version", may_jump(F.col("kafka_version")).alias("may_jump"))
    entries = _authority(_with_place(coordinator_entries, section_status)).join(F.broadcast(known), "cluster", "left")
    judged = coordinator_ghosts.with_origin(_judged(_with_predecessor(entries)), _ordered(*_LOG, "transactional_id"))
    return _named(judged).select(*schema("coordinator_history").columns)


def may_jump(kafka_version: Column) -> Column:
    """Whether a fence of the old protocol may raise the epoch by more than one on this release (KAFKA-9666); unknown counts as maybe."""
    parts = F.split(kafka_version, r"\.")
    major, minor = (F.get(parts, F.lit(i)).try_cast("int") for i in (0, 1))
    first, second = law.FENCE_JUMPS_BELOW
    return F.coalesce((major < first) | ((major == first) & (minor < second)), F.lit(True))


def _ordered(*keys: str) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy("entry_offset", "section_id", "byte_offset")


def _up_to_here(window: WindowSpec) -> WindowSpec:
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _before(window: WindowSpec) -> WindowSpec:
    return window.rowsBetween(Window.unboundedPreceding, -1)


def _with_place(entries: DataFrame, section_status: DataFrame) -> DataFrame:
    """The entries of sections that are read, with cluster, partition and segment."""
    counts = (F.col("topic") == TOPIC) & (F.col("kind") == "log") & F.col("is_read") & F.col("partition").isNotNull()
    sections = section_status.where(counts).select(
        "section_id",
        "cluster",
        F.col("partition").alias("coordinator_partition"),
        "segment_base_offset",
        # Up to 2.4.0 the dump tool dies at the first tombstone (KAFKA-9293): what follows was never printed.
        F.col("end_reason").isin("truncated", "exception").alias("cut_off"),
    )
    return entries.join(F.broadcast(sections), "section_id").select(
        *(column for column in entries.columns if column not in ("value_version", "size_identity_ok")),
        *(column for column in sections.columns if column != "section_id"),
        # An expired id is written without a value (`TransactionStateManager.removeExpiredTransactionalIds`); here that is a state of its
        # own.
        F.when(F.col("tombstone"), law.TOMBSTONE).otherwise(F.coalesce("status", F.lit("Unknown"))).alias("state"),
        F.coalesce("partitions", F.expr(_NO_PARTITIONS)).alias("listed"),
    )


def _authority(placed: DataFrame) -> DataFrame:
    """Only the entries of the authority replica of each coordinator partition, with what the log as a whole tells.

    Offsets missing between two segments are a missing segment where nothing shows the cleaner at work before, else its work.
    """
    in_log, log, replicas = _ordered(*_LOG), Window.partitionBy(*_LOG), Window.partitionBy(*_PARTITION)
    offset, base, before = F.col("entry_offset"), F.col("segment_base_offset"), F.col("log_previous.entry_offset")
    begins_section = ~F.col("section_id").eqNullSafe(F.col("log_previous.section_id"))
    hole = F.coalesce(offset > F.when(begins_section, base).otherwise(before + 1), F.lit(False))
    cleaned = F.coalesce(F.max("hole").over(_before(in_log)), F.lit(False))
    skipped = F.when(begins_section & (base > before + 1) & ~cleaned, base - before - 1).otherwise(0)
    covered = F.max("entry_offset").over(log) - F.min("entry_offset").over(log) - F.sum("skipped").over(log)
    # The last field decides nothing but ties, so that every run chooses the same replica.
    rank = F.struct(covered, F.count("*").over(log), -F.col("replica_log_id"))
    last_of_log = F.max_by("cut_off", "entry_offset").over(log)
    return (
        # One shuffle: every window from here on is partitioned by these columns, and more.
        placed.repartition(*_PARTITION)
        .select(
            "*",
            F.lag(F.struct("entry_offset", "section_id", "batch_timestamp_ms")).over(in_log).alias("log_previous"),
            F.row_number().over(in_log).alias("place"),
            hole.alias("hole"),
            F.col("log_previous.batch_timestamp_ms").alias("log_previous_batch_ms"),
        )
        .select("*", skipped.alias("skipped"))
        .select(
            "*",
            # Behind a missing segment a new stretch begins: a step across it is none, and is not judged.
            F.sum(F.signum("skipped")).over(_up_to_here(in_log)).alias("stretch"),
            rank.alias("rank"),
            (F.max("entry_offset").over(log) + 1 == F.count("*").over(log)).alias("log_contiguous"),
            (~last_of_log).alias("tail_known"),
        )
        .select("*", F.max("rank").over(replicas).alias("best"))
        .where(F.col("rank") == F.col("best"))
    )


def _with_predecessor(entries: DataFrame) -> DataFrame:
    """Adds `previous` (null after a missing segment), `alive` (the newest earlier entry with a value), and what the law asks of both."""
    in_id = _ordered(*_LOG, "transactional_id")
    # Windows, and no replay of each id in Python: 5 million entries of 100,000 ids took 5 s with `lag`, 78 s with `applyInPandas` (two
    # cores).
    same_stretch = {"previous": "entry_before", "alive": "value_before"}
    with_value = F.when(~F.col("tombstone"), F.struct("state", "producer_id", "stretch"))
    return entries.select(
        "*",
        F.lag(F.struct(*coordinator_law.PREVIOUS)).over(in_id).alias("entry_before"),
        F.lead(F.lit(False), 1, True).over(in_id).alias("is_last"),
        # Where the append of a tombstone failed the id is still in memory, and goes on from here.
        F.last(with_value, ignorenulls=True).over(_before(in_id)).alias("value_before"),
        *(F.when(F.col(f"{raw}.stretch") == F.col("stretch"), F.col(raw)).alias(name) for name, raw in same_stretch.items()),
        *(feature.alias(name) for name, feature in coordinator_law.features().items()),
        coordinator_law.protocol_evidence().alias("evidence"),
        coordinator_law.begins_run().alias("begins"),
    )


def _judged(entries: DataFrame) -> DataFrame:
    """Adds the protocol, and what each entry is beside its neighbour."""
    in_id = _ordered(*_LOG, "transactional_id")
    # A client is upgraded between two transactions: what an entry tells counts from there on, and the first that tells anything counts for
    # those before it.
    earlier = F.last("evidence", ignorenulls=True).over(_up_to_here(in_id))
    later = F.first("evidence", ignorenulls=True).over(in_id.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing))
    version = F.col("transaction_version")
    assumed = F.when(version < 2, law.TV0).when(version == 2, law.TV2).otherwise(law.UNKNOWN)
    # `TransactionCoordinator.handleInitProducerId`: an id that it does not know begins Empty, with a new producer id and epoch 0.
    born = (F.col("state") == law.EMPTY) & (F.col("producer_epoch") == 0)
    # Every offset from 0 to here holds an entry: no cleaner has taken one of this id.
    whole = F.col("entry_offset") == F.col("place") - 1
    fine = (F.col("judged") == "legal") & F.col("epoch_step").isin("ok", "not_judged")
    return entries.select(
        "*",
        F.coalesce(earlier, later, assumed).alias("protocol"),
        coordinator_law.step().alias("judged"),
        coordinator_law.epoch_step().alias("epoch_step"),
        F.when(fine, coordinator_law.field_change()).alias("field_change"),
        F.coalesce(F.col("previous").isNotNull() | whole | born, F.lit(False)).alias("head_known"),
    )


def _named(judged: DataFrame) -> DataFrame:
    """Adds the words of the step, the entry's instance, and the columns of the entries before it."""
    begin = F.last(F.when(F.col("begins"), F.col("entry_offset")), ignorenulls=True)
    name = F.concat_ws("/", "cluster", F.col("coordinator_partition").cast("string"), "transactional_id", F.col("begin").cast("string"))
    renamed = {"offset": "entry_offset", "status": "state", "pid": "producer_id", "epoch": "producer_epoch", "partitions": "listed"}
    kept = ("last_update_ms", "start_ms", "timeout_ms", "section_id", "byte_offset", "length")
    return judged.select(
        "*",
        begin.over(_up_to_here(_ordered(*_LOG, "transactional_id"))).alias("begin"),
        F.substring_index("judged", " ", 1).alias("step"),
        F.get(F.split("judged", " "), F.lit(1)).alias("step_reason"),
        F.when(coordinator_law.in_run(), name).alias("instance_id"),
        *(F.col(f"previous.{field}").alias(f"previous_{column}") for column, field in renamed.items()),
        *(F.col(f"previous.{field}").alias(f"previous_{field}") for field in kept),
        *(F.col(f"origin.{renamed[column]}").alias(f"origin_{column}") for column in ("offset", "status", "partitions")),
    )
