"""Candidates for a resend under another identity: two producers of one log that wrote the same keys one after the other.

The first and last records of each producer are enough: a resend repeats what one wrote last at the beginning of what the other writes.
The records of one key stand in offset order; each is paired with the one before it. So a key that a thousand producers write gives a
thousand pairs, not a million. A record with a key of which no hash is known (it is no text, or was not printed) equals no other. What a
pair really repeats is compared on the driver, from the same few records.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EDGE_ROWS = 16  # epochs of one producer looked at, at each end; under TV2 each transaction is an epoch of its own
NOBODY = -1  # records without a producer id are compared with each other, not with those of producers


def candidates(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Pairs that may be a resend (P12) or two unfenced writers of one logical job (I06), in the form of a hit.

    Args:
        histories: history tables by name; producer_edges is read.

    Returns:
        Hits with key `<producer>/<producer>` and a row of earlier, later, common (keys), repeated (records with equal key
        and value).
    """
    pairs = _pairs(_paired(_records(histories["producer_edges"])))
    resend, siblings = "IF(repeated > 0, 'P12', NULL)", "IF(transactional AND earlier <> later, 'I06', NULL)"
    return pairs.selectExpr("*", f"explode(array_compact(array({resend}, {siblings}))) AS rule").selectExpr(
        "rule",
        # Siblings are a pair without order: both may follow each other.
        "IF(rule = 'I06', concat_ws('/', least(earlier, later), greatest(earlier, later)), concat_ws('/', earlier, later)) AS key",
        "replica_log_id",
        "'producer_edges' AS table",
        "first_offset",
        "last_offset",
        "repeated AS records",
        "timestamp_ms",
        "0L AS weight",
        "place.section_id AS section_id",
        "place.byte_offset AS byte_offset",
        "to_json(struct(earlier, later, common, repeated, first_offset, place.*)) AS row",
    )


def _records(edges: "DataFrame") -> "DataFrame":
    """The first and last records of each producer, once each."""
    of_producer = "OVER (PARTITION BY replica_log_id, producer_id ORDER BY first_offset"
    # An epoch may be a transaction of three records: under transaction.version 2 the ends of a producer are spread over many rows.
    ends = edges.selectExpr("*", f"row_number() {of_producer}) AS near_start", f"row_number() {of_producer} DESC) AS near_end")
    records = ends.where(f"near_start <= {EDGE_ROWS} OR near_end <= {EDGE_ROWS}").selectExpr(
        "replica_log_id",
        "producer_id",
        "is_transactional",
        "struct(section_id, byte_offset, length) AS place",
        "explode(array_distinct(concat(head, tail))) AS record",
    )
    return records.where("record.key_hash IS NOT NULL OR (NOT record.keyed AND record.value_hash IS NOT NULL)")


def _paired(records: "DataFrame") -> "DataFrame":
    """Each record with the record of the same key (or, without a key, of the same value) before it."""
    # By the record before, never by all: a key that every producer writes (a heartbeat, an empty key) would pair all of them with each
    # other.
    same_key = "PARTITION BY replica_log_id, record.keyed, coalesce(record.key_hash, record.value_hash) ORDER BY record.offset"
    return records.selectExpr("*", f"lag(struct(producer_id, is_transactional, record.value_hash)) OVER ({same_key}) AS before")


def _pairs(paired: "DataFrame") -> "DataFrame":
    """One row for each ordered pair of producers."""
    from pyspark.sql import functions as F  # late, for whoever reads the catalogue and needs no Spark

    wanted = (
        f"CASE WHEN before.producer_id = producer_id THEN producer_id = {NOBODY} ELSE {NOBODY} NOT IN (producer_id, before.producer_id) END"
    )
    pairs = paired.where(f"before IS NOT NULL AND {wanted}").selectExpr("*", "before.producer_id AS earlier", "producer_id AS later")
    totals = {
        "common": "size(collect_set(coalesce(record.key_hash, record.value_hash)))",
        "repeated": "count_if(record.value_hash = before.value_hash)",
        "transactional": "bool_and(is_transactional AND before.is_transactional)",
        "first_offset": "min(record.offset)",
        "last_offset": "max(record.offset)",
        "timestamp_ms": "min(record.timestamp_ms)",
        "place": "min_by(place, record.offset)",
    }
    return pairs.groupBy("replica_log_id", "earlier", "later").agg(*[F.expr(total).alias(name) for name, total in totals.items()])
