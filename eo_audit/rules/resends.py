"""Candidates for a resend under another identity: two producers of one log that wrote the same keys one after the other.

The first and last records of each producer are enough: a resend repeats what one wrote last at the beginning of what the other writes.
The records
of one key stand in offset order; each is paired with the one before it. So a key that a thousand producers write gives a thousand
pairs, not a
million. What the pair really repeats is compared on the driver, from the same few records.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

EDGE_ROWS = 16  # epochs of one producer looked at, at each end; under TV2 each transaction is an epoch of its own


def candidates(histories: Mapping[str, DataFrame]) -> DataFrame:
    """Pairs that may be a resend (P12) or two unfenced writers of one logical job (I06), in the form of a hit.

    Args:
        histories: history tables by name; producer_edges is read.

    Returns:
        Hits with key `<earlier producer>/<later producer>` and a row of earlier, later, common (keys), repeated (records with equal key
        and value).
    """
    pairs = _pairs(_paired(_records(histories["producer_edges"])))
    resend = F.col("repeated") > 0
    siblings = F.col("transactional") & (F.col("earlier") != F.col("later"))
    rules = F.array_compact(F.array(F.when(resend, F.lit("P12")), F.when(siblings, F.lit("I06"))))
    return pairs.select("*", F.explode(rules).alias("rule")).select(
        "rule",
        F.concat_ws("/", F.col("earlier").cast("string"), F.col("later").cast("string")).alias("key"),
        "replica_log_id",
        F.lit("producer_edges").alias("table"),
        "first_offset",
        "last_offset",
        F.col("repeated").alias("records"),
        "timestamp_ms",
        F.lit(0).cast("long").alias("weight"),
        F.col("place.section_id").alias("section_id"),
        F.col("place.byte_offset").alias("byte_offset"),
        F.to_json(F.struct("earlier", "later", "common", "repeated", "place.*")).alias("row"),
    )


def _records(edges: DataFrame) -> DataFrame:
    """The first and last records of each producer, once each."""
    of_producer = Window.partitionBy("replica_log_id", "producer_id")
    near_start = F.row_number().over(of_producer.orderBy("first_offset"))
    near_end = F.row_number().over(of_producer.orderBy(F.desc("first_offset")))
    ends = edges.select("*", near_start.alias("near_start"), near_end.alias("near_end")).where(
        (F.col("near_start") <= EDGE_ROWS) | (F.col("near_end") <= EDGE_ROWS)
    )
    place = F.struct("section_id", "byte_offset", "length")
    return ends.select(
        "replica_log_id",
        "producer_id",
        "is_transactional",
        place.alias("place"),
        F.explode(F.array_distinct(F.concat("head", "tail"))).alias("record"),
    ).where("record.key_hash IS NOT NULL OR record.value_hash IS NOT NULL")


def _paired(records: DataFrame) -> DataFrame:
    """Each record with the record of the same key (or, without a key, of the same value) before it."""
    identity = F.coalesce("record.key_hash", "record.value_hash")
    of_key = Window.partitionBy("replica_log_id", "identity").orderBy("record.offset")
    before = F.lag(F.struct("producer_id", "is_transactional", "record.value_hash")).over(of_key)
    return records.withColumn("identity", identity).withColumn("before", before)


def _pairs(paired: DataFrame) -> DataFrame:
    """One row for each ordered pair of producers; producer id -1 is paired with itself only."""
    same = F.col("before.producer_id") == F.col("producer_id")
    nobody = F.col("producer_id") == -1
    wanted = F.col("before").isNotNull() & F.when(same, nobody).otherwise(~nobody & (F.col("before.producer_id") != -1))
    equal = F.col("record.value_hash") == F.col("before.value_hash")
    return (
        paired.where(wanted)
        .groupBy("replica_log_id", F.col("before.producer_id").alias("earlier"), F.col("producer_id").alias("later"))
        .agg(
            F.size(F.collect_set("identity")).alias("common"),
            F.sum(F.when(equal, 1).otherwise(0)).cast("long").alias("repeated"),
            F.bool_and(F.col("is_transactional") & F.col("before.is_transactional")).alias("transactional"),
            F.min("record.offset").alias("first_offset"),
            F.max("record.offset").alias("last_offset"),
            F.min("record.timestamp_ms").alias("timestamp_ms"),
            F.min_by("place", "record.offset").alias("place"),
        )
    )
