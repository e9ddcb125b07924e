"""Transaction instances: the begin-to-complete runs of the coordinator log, each with its decision and, if aborted, the cause."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.history import abort_cause
from eo_audit.history.coordinator_law import among
from eo_audit.model import states as law
from eo_audit.store.schemas import schema

_KEY = ("cluster", "coordinator_partition", "replica_log_id", "transactional_id")
_ADDRESS = ("section_id", "byte_offset", "length")
_ENTRY = (
    *("entry_offset", "state", "producer_id", "producer_epoch", "partition_leader_epoch", "timeout_ms", "partitions", "last_update_ms"),
    *("batch_timestamp_ms", "log_previous_batch_ms", "went_on_from", "head_known", "protocol", "following", *_ADDRESS),
)
_NO_PARTITIONS = "cast(array() as array<struct<topic:string,partition:int>>)"


def transaction_instances(coordinator_history: DataFrame, clusters: DataFrame) -> DataFrame:
    """One row per run of a transactional id, from its first entry to its CompleteCommit or CompleteAbort.

    Args:
        coordinator_history: the table.
        clusters: one row per cluster, for kafka_version and abort_scan_interval_ms.

    Returns:
        Rows of the table `transaction_instances`.
    """
    # KAFKA-19367: under TV2 this release raises the epoch by two where it fences or times out.
    adds_two = F.coalesce(F.col("kafka_version").startswith("4.0.0"), F.lit(False)).alias("server_adds_two")
    known = clusters.select("cluster", "abort_scan_interval_ms", adds_two)
    runs = _runs(_linked(coordinator_history)).join(F.broadcast(known), "cluster", "left")
    return _explained(_described(runs)).select(*schema("transaction_instances").columns)


def _linked(history: DataFrame) -> DataFrame:
    """Each entry with the id's next one, and whether the transaction's time counts from it."""
    state = F.when(F.col("tombstone"), law.TOMBSTONE).otherwise(F.coalesce("status", F.lit("Unknown"))).alias("state")
    following = F.struct(state, "producer_epoch", "producer_id", "batch_timestamp_ms")
    went_on_from = F.coalesce("origin_status", "previous_status")
    before = F.when(F.col("origin_status").isNotNull(), F.col("origin_partitions")).otherwise(F.col("previous_partitions"))
    added = F.size(F.array_except("partitions", before))
    kept = F.size(F.array_except(before, "partitions")) == 0
    # An Ongoing that only adds partitions (AddPartitionsToTxn) goes on; the time counts from the one that added to nothing.
    extends = (went_on_from == law.ONGOING) & (added > 0) & kept
    return history.select(
        "*",
        state,
        went_on_from.alias("went_on_from"),
        F.lead(following).over(Window.partitionBy(*_KEY).orderBy("entry_offset")).alias("following"),
        ((F.col("status") == law.ONGOING) & ~F.coalesce(extends, F.lit(False))).alias("opens"),
    ).where(F.col("instance_id").isNotNull())


def _runs(linked: DataFrame) -> DataFrame:
    """One row per run, with its telling entries as structs."""
    entry, state, offset = F.struct(*_ENTRY), F.col("state"), F.col("entry_offset")
    at = {
        "ongoing": F.when(state == law.ONGOING, offset),
        "prepare": F.when(among(state, law.PREPARED), offset),
        "commit": F.when(state == law.PREPARE_COMMIT, offset),
        "abort": F.when(state == law.PREPARE_ABORT, offset),
        "complete": F.when(among(state, law.COMPLETE), offset),
    }
    # Telling entries are picked by their offsets in one pass; no entry is joined with another.
    return linked.groupBy(*_KEY, "instance_id").agg(
        F.min_by(entry, offset).alias("first"),
        F.max_by(entry, offset).alias("last"),
        F.max_by(entry, at["ongoing"]).alias("ongoing"),
        F.max_by(F.struct("state", "producer_epoch", "partitions"), at["prepare"]).alias("last_prepare"),
        # A PrepareX that was written again (its append seemed to fail) was decided when it was first written.
        F.min_by(entry, at["commit"]).alias("commit"),
        F.min_by(entry, at["abort"]).alias("abort"),
        F.min_by(entry, at["complete"]).alias("complete"),
        F.max_by("producer_epoch", at["complete"]).alias("complete_epoch"),
        F.max_by("start_ms", F.when(F.col("start_ms") >= 0, offset)).alias("printed_start_ms"),
        F.max_by("last_update_ms", F.when(F.col("opens"), offset)).alias("opened_ms"),
    )


def _described(runs: DataFrame) -> DataFrame:
    """The columns of the table but the cause, and what the cause is found by."""
    prepare = F.when(F.col("last_prepare.state") == law.PREPARE_COMMIT, F.col("commit")).when(
        F.col("last_prepare").isNotNull(), F.col("abort")
    )
    printed, opened = F.col("printed_start_ms"), F.col("opened_ms")
    # Compaction takes the beginning of a story first: the oldest Ongoing that is left may only have added partitions.
    bound = F.when(F.col("first.head_known"), "first_ongoing").otherwise("upper_bound")
    next_start = F.lead("start_ms").over(Window.partitionBy(*_KEY).orderBy("first.entry_offset"))
    return (
        runs.select(
            "*",
            prepare.alias("prepare"),
            F.coalesce(prepare, "complete").alias("end"),
            _listing().alias("listing"),
            F.coalesce(printed, opened).alias("start_ms"),
            F.when(printed.isNotNull(), "start_ms").when(opened.isNotNull(), bound).alias("start_source"),
            F.coalesce("last_prepare.producer_epoch", "complete_epoch").alias("marker_epoch"),
        )
        .select("*", _decision().alias("decision"), _data_epoch().alias("data_epoch"), next_start.alias("next_start_ms"))
        .select("*", *(F.col(source).alias(name) for name, source in _NAMED.items()), *_computed())
    )


_NAMED = {
    **{"producer_id": "first.producer_id", "protocol": "last.protocol", "last_status": "last.state"},
    **{"first_entry_offset": "first.entry_offset", "decided_at_ms": "end.last_update_ms"},
    **{"prepare_offset": "prepare.entry_offset", "prepare_leader_epoch": "prepare.partition_leader_epoch"},
    **{"completed_at_ms": "complete.batch_timestamp_ms", "complete_offset": "complete.entry_offset"},
    **{"complete_leader_epoch": "complete.partition_leader_epoch", "ongoing_epoch": "ongoing.producer_epoch"},
    **{"next_status": "last.following.state", "next_epoch": "last.following.producer_epoch"},
    **{"next_producer_id": "last.following.producer_id", "next_at_ms": "last.following.batch_timestamp_ms"},
    **{name: f"first.{name}" for name in _ADDRESS},
    **{f"last_{name}": f"last.{name}" for name in _ADDRESS},
    # for the cause
    **{"ongoing_leader_epoch": "ongoing.partition_leader_epoch", "prepare_epoch": "abort.producer_epoch"},
    **{"prepared_ms": "abort.last_update_ms", "abort_leader_epoch": "abort.partition_leader_epoch"},
    **{"log_previous_batch_ms": "abort.log_previous_batch_ms"},
}


def _computed() -> list[Column]:
    return [
        F.coalesce("listing.partitions", F.expr(_NO_PARTITIONS)).alias("partitions"),
        F.col("listing").isNotNull().alias("partitions_complete"),
        F.when(F.col("ongoing").isNotNull(), F.col("ongoing.timeout_ms")).otherwise(F.col("last.timeout_ms")).alias("timeout_ms"),
        F.col("last.following").isNull().alias("is_last"),
        # KIP-890: a client may abort where it has added nothing, and then PrepareAbort follows Empty or CompleteX.
        F.coalesce(among(F.col("abort.went_on_from"), law.EXPIRABLE), F.lit(False)).alias("nothing_open"),
    ]


def _listing() -> Column:
    """The list that counted: that of the last PrepareX, or while Ongoing, of the last entry; null where neither survived."""
    # CompleteX lists no partitions (`TransactionMetadata.prepareComplete`): where the cleaner took PrepareX, nobody knows them.
    entries = ("last_prepare", "ongoing")
    return F.coalesce(*(F.when(F.col(name).isNotNull(), F.struct(f"{name}.partitions")) for name in entries))


def _decision() -> Column:
    ended = {decision: [state for state, decided in law.DECISION_OF.items() if decided == decision] for decision in (law.COMMIT, law.ABORT)}
    return F.when(among(F.col("end.state"), ended[law.COMMIT]), law.COMMIT).when(among(F.col("end.state"), ended[law.ABORT]), law.ABORT)


def _data_epoch() -> Column:
    """The epoch of the data; where no Ongoing survived, read from the entry that ended the run, null where that cannot tell."""
    end, protocol = F.col("marker_epoch"), F.col("last.protocol")
    committed = F.col("end.state").isin(law.PREPARE_COMMIT, law.COMPLETE_COMMIT)
    return (
        F.when(F.col("ongoing").isNotNull(), F.col("ongoing.producer_epoch"))
        # KIP-890: every EndTxn raises the epoch by one. Before, a commit keeps it, and an abort may be a fence: nothing tells.
        .when((protocol == law.TV2) & (end > 0), end - 1)
        .when((protocol == law.TV0) & committed, end)
    )


def _explained(described: DataFrame) -> DataFrame:
    """Adds the cause of each abort."""
    # One text for three columns: apart, each of them would bring the whole decision into the plan.
    words = F.split("why", " ")
    return (
        described.withColumns(abort_cause.features())
        .withColumn("why", F.when(F.col("decision") == law.ABORT, abort_cause.abort_cause()))
        .select(
            "*",
            F.get(words, F.lit(0)).alias("abort_cause"),
            F.get(words, F.lit(1)).alias("abort_cause_certainty"),
            F.slice(words, 3, 9).alias("abort_cause_alternatives"),
        )
    )
