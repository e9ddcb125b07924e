"""P15 state-fragile: records so old that a broker may forget their producer while it writes.

Proves: Brokers forget a producer id when its newest time is older than producer.id.expiration.ms, and on topics with CreateTime that is the
client's word: between such batches a retry is not recognised, and a fenced producer not refused. It proves no duplicate.

Bad history: A producer without transactions writes records of last year between those of today.

Legal look-alike: Topics with LogAppendTime; a producer that comes back after a pause with its next epoch, and begins anew; a transaction of
old records: nothing is forgotten while it is open, and since 2.4.1 its marker's time counts, which is the leader's (KAFKA-9144). A producer
without transactions that only writes old records is not seen: no broker's clock stands beside its batches.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.producers.words import EXPIRATION
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.rules.writers import ASKS, id_of, named
from eo_audit.words import count, duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

_COLUMNS = ("base_offset", "row_kind", "idle_ms", "limit_ms", "remembers_by_batches")


def forgettable(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Batches and markers whose time lies too far from that of the producer's row before, in the form of a hit."""
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    limits = histories["clusters"].selectExpr("cluster", "producer_id_expiration_ms AS limit_ms", "remembers_by_batches")
    logs = histories["visibility"].where("NOT is_internal").select("replica_log_id", "cluster").join(limits.hint("broadcast"), "cluster")
    # Another epoch begins anew, whatever the broker remembers. What is open is never forgotten (`ProducerStateManager.isProducerExpired`):
    # data of a transaction tells of a pause before it, and its own age counts from its marker on, where markers bring no time.
    odd = """judged AND idle_ms IS NOT NULL AND (
        (row_kind = 'data' AND timestamp_type = 'CreateTime' AND base_sequence >= 0 AND NOT coalesce(in_open_transaction, false)
            AND IF(idle_ms < 0, NOT is_transactional, previous_epoch = producer_epoch))
        OR (row_kind = 'marker' AND in_open_transaction))"""
    rows = histories["producer_history"].where(odd).where("abs(idle_ms) >= 1000")  # nearly all are less, and are not joined
    found = rows.join(logs.hint("broadcast"), "replica_log_id").where("abs(idle_ms) >= limit_ms")
    told = found.where("row_kind <> 'marker' OR coalesce(remembers_by_batches, true)").selectExpr("*", "'P15' AS rule")
    # What any release forgets speaks first.
    weight = "IF(row_kind = 'marker' AND remembers_by_batches IS NULL, 0, abs(idle_ms))"
    return hits(SOURCES["producer_history"], told, key="producer_id", weight=weight, columns=_COLUMNS)


RULE = Rule(
    code="P15",
    slug="state-fragile",
    severity="info",
    reads=("producer_history",),
    subject="sequenced_batch",
    needs=("order", "epochs"),
    find=forgettable,
    found=f"producer_id producer_epoch {' '.join(_COLUMNS)}",
    asks=ASKS,
    # Event times are an application's own affair: nothing is broken before a retry comes (P01, P02 tell of that).
    informs=True,
    cause="the application sets the times of its records (a backfill, a replay, event times), or the producer pauses for long",
    remedy=(
        f"Raise {EXPIRATION} above the age of the records, or set message.timestamp.type=LogAppendTime for backfills. Whether a retry was "
        "written twice P01 and P02 tell."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The widest gap, and how many there are."""
    row = case.row
    gap, limit = abs(row.number("idle_ms")), duration(row.maybe("limit_ms"))
    of_marker = row.text("row_kind") == "marker"
    beside = "the marker at" if of_marker else "the batch at"
    of_them = "" if case.hits == 1 else f", the widest of {count(case.hits, 'gap')}"
    brokers = "brokers up to 2.4.0" if of_marker else "brokers"
    message = (
        f"{named(case, context)} wrote with times that lie {duration(gap)} apart ({beside} offset {row.maybe('base_offset')}{of_them}): "
        f"{brokers} forget a producer after {limit}, and a retry is not recognised then"
    )
    return Explanation(
        message,
        certainty="likely" if not of_marker or row.flag("remembers_by_batches") else "open",
        named=id_of(case, context),
        details={"gap_ms": gap, "limit_ms": row.maybe("limit_ms"), "batches": case.hits},
    )
