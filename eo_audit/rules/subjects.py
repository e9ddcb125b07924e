"""Which facts could break which rule: a promise about transactions says nothing about a log without any.

Every history row is asked which subjects it is an example of; per replica log the answers are put together as bits.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.rules.cases import united
from eo_audit.rules.sources import GARBLED

# Subject -> the history table, and which of its rows (SQL) are an example of it. The order gives each subject its bit.
SUBJECTS: Mapping[str, tuple[str, str]] = {
    "batch": ("producer_history", "true"),
    "unjudged_batch": ("producer_history", "NOT judged"),
    "producer_batch": ("producer_history", "row_kind = 'data'"),
    # Without the epoch of the producer nobody can look at its sequences.
    "sequenced_batch": (
        "producer_history",
        "row_kind = 'data' AND (label <> 'not_sequenced' OR (producer_epoch IS NULL AND base_sequence >= 0))",
    ),
    # Records without the epoch of their producer are nobody's first or last ones.
    "epochless_batch": ("producer_history", "row_kind = 'data' AND producer_epoch IS NULL"),
    "transactional_batch": ("producer_history", "row_kind = 'data' AND is_transactional"),
    # The cleaner leaves batches without records, so that a producer's last sequence stays known.
    "transactional_record": ("producer_history", "row_kind = 'data' AND is_transactional AND coalesce(count, 1) > 0"),
    "unassigned_batch": ("producer_history", "row_kind = 'data' AND is_transactional AND coalesce(registration, 'unknown') = 'unknown'"),
    "marker": ("producer_history", "row_kind = 'marker'"),
    # A marker without a record line may be one.
    "closing_abort": ("producer_history", "coalesce(marker_type, 'ABORT') = 'ABORT' AND label = 'marker'"),
    "coordinator_entry": ("coordinator_history", "true"),
    # Nothing tells where its hash puts it.
    "unplaced_id": (
        "coordinator_history",
        f"previous_offset IS NULL AND (home_partition IS NULL OR (home_partition <> coordinator_partition AND {GARBLED}))",
    ),
    "transaction": ("transaction_instances", "true"),
    "abort": ("transaction_instances", "decision = 'ABORT'"),
    "registered_partition": ("instance_partitions", "marker_match <> 'pending'"),
    "overdue_marker": ("instance_partitions", "coverage IN ('overdue', 'led_on')"),
    "perhaps_overdue_marker": ("instance_partitions", "coverage = 'perhaps_overdue'"),
    "led_on": ("instance_partitions", "coverage = 'led_on'"),
    "index_entry": ("aborted_index", "entry_first_offset IS NOT NULL"),
    "payload_edge": ("producer_edges", "exists(head, r -> r.value_hash IS NOT NULL) OR exists(tail, r -> r.value_hash IS NOT NULL)"),
    "producer_edge": ("producer_edges", "true"),
    "snapshot": ("snapshot_states", "true"),
    "half_read_snapshot": ("snapshot_states", "reason <=> 'half_read'"),
    # Missing in a snapshot, and it depends on the release whether it may be.
    "untold_producer": ("snapshot_states", "reason <=> 'untold'"),
    # Missing there, and it depends on a setting that nothing tells.
    "idle_producer": ("snapshot_states", "reason <=> 'unsure'"),
    "group_offset": ("group_offsets", "true"),
    "id_block": ("id_allocation", "row_kind = 'block'"),
    "id_user": ("id_allocation", "row_kind = 'user'"),
    # It may have been given out after the dump of the metadata log.
    "unplaced_producer": ("id_allocation", "is_beyond AND NOT is_proved"),
    # Whether a group committed in transactions there is not known.
    "undecoded_offsets": ("replica_logs", "topic = '__consumer_offsets' AND NOT decoded"),
    "unread_offsets": ("replica_logs", "topic = '__consumer_offsets' AND lacks_records"),
    "replica": ("visibility", "count(1) OVER (PARTITION BY cluster, topic, partition) > 1"),
}
# One `bit_or` over all histories, where a set of names would be collected and united row by row.
_BIT = {name: 1 << position for position, name in enumerate(SUBJECTS)}
# A partition of which no replica was dumped has no log: it is named by its cluster, topic and partition.
_NOT_DUMPED = "CASE WHEN replica_log_id IS NULL THEN to_json(struct(cluster, topic, partition)) END"

# Whose clock stamped a batch: the leader stamps control batches and LogAppendTime, and all else is a client's word. -1: without a time.
_OF_BROKER = "coalesce(row_kind IN ('marker', 'control') OR timestamp_type = 'LogAppendTime', false)"
_TIMES = {
    whose: f"CASE WHEN judged AND max_timestamp_ms >= 0 AND {of} THEN max_timestamp_ms END"
    for whose, of in (("broker", _OF_BROKER), ("client", f"NOT {_OF_BROKER}"))
}


def subjects(histories: Mapping[str, DataFrame], empty: frozenset[str] = frozenset()) -> DataFrame:
    """Which subjects each replica log has.

    Args:
        histories: history tables by name.
        empty: those of them that have no rows, which are not scanned.

    Returns:
        replica_log_id, not_dumped (JSON of cluster, topic and partition where there is no log), bits (see `names_of`), and the first and
        last timestamp of judged batches by clocks: broker_first_ms, broker_last_ms, client_first_ms, client_last_ms; one row each.
    """
    tables = sorted({table for table, _ in SUBJECTS.values()} - empty) or ["visibility"]
    # One scan of each history, for all subjects that are about it.
    rows = united([_bits_of(table, histories[table]) for table in tables])
    ends = [which(f"{whose}_ms").alias(f"{whose}_{name}_ms") for whose in _TIMES for name, which in (("first", F.min), ("last", F.max))]
    return rows.groupBy("replica_log_id", "not_dumped").agg(F.bit_or("bits").alias("bits"), *ends)


def names_of(bits: int) -> frozenset[str]:
    """The subjects behind a number of bits."""
    return frozenset(name for name, bit in _BIT.items() if bits & bit)


def _bits_of(table: str, rows: DataFrame) -> DataFrame:
    not_dumped = _NOT_DUMPED if table == "instance_partitions" else "CAST(NULL AS string)"
    bits = [f"CASE WHEN {condition} THEN {_BIT[name]} ELSE 0 END" for name, (of, condition) in SUBJECTS.items() if of == table]
    times = [f"{_TIMES[whose] if table == 'producer_history' else 'CAST(NULL AS bigint)'} AS {whose}_ms" for whose in _TIMES]
    return rows.selectExpr("replica_log_id", f"{not_dumped} AS not_dumped", f"{' | '.join(bits)} AS bits", *times)
