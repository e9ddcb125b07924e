"""open_transactions: what is open at the end of each log, and whether anybody will end it (KIP-664 calls it hanging if nobody does).

Not the producer's last transaction is asked but the one that order gives the span: a producer may be busy elsewhere while its data hangs
here, and a transaction that ended after the dump of this partition hangs nowhere.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.store.schemas import schema

_RUNNING = "exists(allowed, c -> c.decision IS NULL)"
_FATE = f"""CASE WHEN is_ambiguous THEN 'unknown' WHEN {_RUNNING} THEN 'running' WHEN size(allowed) > 0 THEN 'decided'
    WHEN known_to_the_end THEN 'nobody' ELSE 'unknown' END"""
_MADE = {
    "first_offset": "span.span_id",
    "fate": _FATE,
    "why_unknown": f"IF(({_FATE}) = 'unknown', why_unknown, NULL)",
    # The one that is not decided will end all that is open; else the last one would have.
    "instance_id": """IF(is_ambiguous, NULL,
        coalesce(try_element_at(filter(allowed, c -> c.decision IS NULL), -1), try_element_at(allowed, -1)).instance_id)""",
}
_OF_OPEN = f"span IS NOT NULL AND closer IS NULL AND ({_FATE}) <> 'unknown'"


def open_transactions(events: DataFrame) -> DataFrame:
    """The table open_transactions: one row per span without a marker.

    Args:
        events: what `assignment.judged_events` returns.
    """
    still_open = events.where("span IS NOT NULL AND closer IS NULL")
    return still_open.selectExpr(*(f"{_MADE.get(name, name)} AS {name}" for name in schema("open_transactions").columns))


def unmatched(events: DataFrame) -> DataFrame:
    """The table unmatched: what of each log cannot be told by the coordinator's log, by reason.

    Args:
        events: what `assignment.judged_events` returns.
    """
    # What is open has no marker to tell of: where its fate is known, nothing about it is left untold.
    untold = events.where(f"why_unknown IS NOT NULL AND NOT ({_OF_OPEN}) AND coalesce(marker_role, 'unknown') = 'unknown'")
    return (
        untold.groupBy("cluster", "replica_log_id", "why_unknown")
        .agg(
            F.expr("count(marker) AS markers"), F.expr("count(span) AS spans"), F.expr("min(coalesce(span.span_id, place)) AS first_offset")
        )
        .selectExpr("cluster", "replica_log_id", "why_unknown AS why", "markers", "spans", "first_offset")
    )
