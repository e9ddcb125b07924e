"""Candidates for a resend under the next epoch of the same producer (P13), in the form of a hit.

An idempotent client that got no answer raises its epoch by itself and sends what was in flight again, from sequence 0 on (KIP-360,
`TransactionManager.bumpIdempotentProducerEpoch`). The broker cannot know the records: it removes duplicates within one epoch only.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HASHES = "filter(transform({}, r -> r.value_hash), h -> h IS NOT NULL)"


def next_epochs(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Hits of P13, with the producer id as key: epochs that begin with a record that the epoch before ended with.

    Args:
        histories: history tables by name; producer_edges is read.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    in_order = "PARTITION BY replica_log_id, producer_id ORDER BY first_offset"
    before = "struct(producer_epoch, is_transactional, tail, last_offset, last_timestamp_ms)"
    epochs = histories["producer_edges"].where("producer_id >= 0").selectExpr("*", f"lag({before}) OVER ({in_order}) AS before")
    found = epochs.where(
        "NOT is_transactional AND NOT before.is_transactional AND producer_epoch = before.producer_epoch + 1 "
        f"AND first_base_sequence = 0 AND arrays_overlap({_HASHES.format('before.tail')}, {_HASHES.format('head')})"
    )
    told = found.selectExpr("*", "'P13' AS rule")
    return hits(SOURCES["producer_edges"], told, key="producer_id", weight="0", columns=("producer_id", "producer_epoch"))
