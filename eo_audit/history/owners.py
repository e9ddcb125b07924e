"""Whose each row of data is, and what each marker did: the answers of `assignment`, brought to the rows of producer_history.

The client's time (CreateTime) proves nothing: it chooses between instances that order allows, and where it alone speaks the answer is
`suspected`.
"""

from pyspark.sql import DataFrame

from eo_audit.history.clock_offsets import NEVER_MS
from eo_audit.history.text import run


def assign_instances(rows: DataFrame, events: DataFrame, instances: DataFrame, *, cleaned: bool = True) -> DataFrame:
    """The rows with instance_id, instance_source, instance_decision, registration, late and marker_role.

    Args:
        rows: what `sequences.producer_rows` returns.
        events: what `judged_events` returns.
        instances: the table transaction_instances.
        cleaned: some log is; else two joins are spared.
    """
    of_cleaned = events if cleaned else events.where("false")
    return run("assigned_rows", rows=rows, events=events, cleaned=of_cleaned, instances=instances, never_ms=NEVER_MS)
