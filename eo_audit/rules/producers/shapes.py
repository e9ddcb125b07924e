"""Batches whose header does not fit itself (P10, P11): one scan serves both rules.

A header stores the first sequence of a batch and no last one: the tool reckons that from the offsets (`DefaultRecordBatch.lastSequence`,
in all releases), so it fits always. A marker is one record without a sequence (`MemoryRecords.writeEndTransactionalMarker`). The cleaner
takes records and keeps the header (`MemoryRecords.filterTo`), so how many there are says something only in a log that was never compacted.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = "producer_id base_offset last_offset count base_sequence last_sequence is_transactional marker_type control_type faults"
_OFFSETS = "(last_offset - base_offset + 1)"
# By what a fault is called: which rows have it. Old tools print no counts, and neither do batches of magic 0 and 1: null is no fault.
MARKER_FAULTS = {
    "sequence": "base_sequence <> -1 OR last_sequence <> -1",
    "not_transactional": "NOT is_transactional",
    "no_producer": "producer_id < 0",
    "too_many": "count > 1",
    "empty": "count = 0 AND NOT compacted",
    # What is no end of a transaction a broker cannot take into a producer's state, and its log cannot be recovered
    # (`EndTransactionMarker.deserialize`).
    "no_end": "control_type IS NOT NULL",
}
DATA_FAULTS = {
    "no_sequence": "producer_id >= 0 AND base_sequence = -1 AND last_sequence = -1",
    # A transaction is a producer's (`MemoryRecordsBuilder.validateProducerState`).
    "no_producer": "is_transactional AND producer_id < 0",
    "too_many": f"count > {_OFFSETS}",
    "too_few": f"count < {_OFFSETS} AND NOT compacted",
}
# Raft writes control batches of its own there, without producers (KIP-595: LeaderChangeMessage).
_RAFT = "topic = '__cluster_metadata'"


def misshapen(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Hits of P10 and P11, with the producer id as key and what is wrong as `faults`.

    Args:
        histories: history tables by name; producer_history and visibility are read.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    logs = histories["visibility"].select("replica_log_id", "topic", "compacted")
    rows = histories["producer_history"].where("judged").join(logs, "replica_log_id")
    of_marker, of_data = _faults(MARKER_FAULTS), _faults(DATA_FAULTS)
    is_marker = "row_kind IN ('marker', 'control')"
    found = rows.selectExpr(
        "*", f"IF({is_marker}, IF({_RAFT}, array(), {of_marker}), {of_data}) AS faults", f"IF({is_marker}, 'P10', 'P11') AS rule"
    ).where("size(faults) > 0")
    return hits(SOURCES["producer_history"], found, key="producer_id", weight="size(faults)", columns=COLUMNS.split())


def _faults(conditions: Mapping[str, str]) -> str:
    named = ", ".join(f"IF({condition}, '{name}', NULL)" for name, condition in conditions.items())
    return f"array_compact(array({named}))"
