"""Producers whose COMMITs ended data more often in a log than their coordinator decided COMMIT (T11), where no clock tells which is which.

Only coordinators write COMMITs (KIP-664 lets an operator abort, and nothing else), one to each partition of the list, and the next
transaction of a producer is not decided before all of them stand (`TransactionMarkerChannelManager`). So up to a marker of a known
transaction there are no more that ended data than there were decisions: one too many came again, behind data of the next transaction.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMNS = "base_offset marker_type commits decisions known_at"
_CLOSING = "marker_type = 'COMMIT' AND in_open_transaction"
_PRODUCER = ["replica_log_id", "producer_id"]
# What was compacted away or is cut off of a list or of a log may have been another decision.
_LISTED = "NOT partitions_complete OR exists(partitions, p -> p.topic = topic AND p.partition = partition)"
_DECIDED = f"decision = 'COMMIT' AND ({_LISTED}) AND (coordinator_log_id <> last.coordinator_log_id OR first_entry_offset <= last.entry)"


def surplus(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Hits of T11, with the producer id as key: the COMMITs that cannot be matched, where there is one too many.

    Args:
        histories: history tables by name; producer_history, visibility, transaction_instances and coordinator_history are read.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    places = histories["visibility"].select("replica_log_id", "cluster", "topic", "partition")
    markers = histories["producer_history"].where("row_kind = 'marker' AND judged")
    # Few producers have any: all that follows is about those.
    doubtful = markers.where(f"marker_role = 'unknown' AND {_CLOSING}")
    of_those = markers.join(doubtful.select(*_PRODUCER).distinct(), _PRODUCER, "left_semi").join(places, "replica_log_id")
    last = _last_known(of_those, histories)
    closing = markers.where(_CLOSING).join(last.select(*_PRODUCER, "last"), _PRODUCER).where("base_offset <= last.at")
    seen = closing.groupBy(*_PRODUCER).agg(_expr("count(1) AS commits"))
    counted = last.join(_decisions(histories), ["cluster", "producer_id"], "left").groupBy(*_PRODUCER, "cluster", "last")
    wanted = counted.agg(_expr(f"count_if({_DECIDED}) AS decisions")).join(_whole(histories), ["cluster", "producer_id"], "left_semi")
    told = wanted.join(seen, _PRODUCER).where("commits > decisions").selectExpr(*_PRODUCER, "commits", "decisions", "last.at AS known_at")
    found = doubtful.join(told, _PRODUCER).where("base_offset < known_at").selectExpr("*", "'T11' AS rule")
    return hits(SOURCES["producer_history"], found, key="producer_id", weight="0", columns=COLUMNS.split())


def _expr(text: str) -> "Column":
    from pyspark.sql import functions as F

    return F.expr(text)


def _last_known(markers: "DataFrame", histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """The last marker of each producer in each log of which it is known whose it is."""
    columns = ("cluster", "instance_id", "replica_log_id AS coordinator_log_id", "first_entry_offset")
    instances = histories["transaction_instances"].selectExpr(*columns)
    known = markers.where("marker_role IN ('closing', 'empty')").join(instances, ["cluster", "instance_id"])
    newest = "max(struct(base_offset AS at, first_entry_offset AS entry, coordinator_log_id)) AS last"
    return known.groupBy(*_PRODUCER, "cluster", "topic", "partition").agg(_expr(newest))


def _decisions(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    return histories["transaction_instances"].selectExpr(
        *("cluster", "producer_id", "replica_log_id AS coordinator_log_id"),
        *("first_entry_offset", "decision", "partitions", "partitions_complete"),
    )


def _whole(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Producers of whose entries none can be missing before the last one."""
    entries = histories["coordinator_history"].where("producer_id IS NOT NULL")
    return entries.groupBy("cluster", "producer_id").agg(_expr("bool_and(head_known) AS whole")).where("whole")
