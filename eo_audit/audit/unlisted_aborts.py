"""Aborts that no dumped coordinator log tells of: found by their markers in data partitions, their causes guessed from epochs alone."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from eo_audit.model.abort_in_data import cause_from_epochs
from eo_audit.rules.replica_log import Log
from eo_audit.rules.row import Row

_FOLLOWING = "lead(first_epoch) OVER (PARTITION BY replica_log_id, producer_id ORDER BY span_id) AS next_epoch"
_KEY = ["replica_log_id", "producer_id", "last_epoch", "marker_epoch", "next_epoch"]


def unlisted_aborts(histories: Mapping[str, DataFrame], logs: Mapping[int, Log]) -> tuple[Row, ...]:
    """One row per cluster, producer id, data epoch and cause, with the columns of verdict.json's `transactions`.

    Under transaction versions 0 and 1 many transactions share an epoch: they are one row here.

    Args:
        histories: producer_history and transaction_spans.
        logs: every replica log, for its cluster.
    """
    # `in_open_transaction`: an ABORT that ended nothing has no data, and so no epochs to compare.
    untold = histories["producer_history"].where("marker_role = 'unknown' AND marker_type = 'ABORT' AND in_open_transaction")
    markers = untold.selectExpr("replica_log_id", "base_offset AS marker_offset")
    spans = histories["transaction_spans"].selectExpr("*", _FOLLOWING).join(markers, ["replica_log_id", "marker_offset"], "left_semi")
    # Distinct before they are collected: under TV0 and TV1 a producer may have aborted a million times in one epoch.
    found = spans.select(*_KEY).distinct().collect()
    rows = {
        (
            logs[row.replica_log_id].cluster,
            row.producer_id,
            row.last_epoch,
            *cause_from_epochs(row.last_epoch, row.marker_epoch, row.next_epoch),
        )
        for row in found
        if row.replica_log_id in logs
    }
    names = ("cluster", "producer_id", "data_epoch", "abort_cause", "abort_cause_certainty")
    return tuple(Row({**dict(zip(names, row, strict=True)), "transactional_id": None, "decision": "ABORT"}) for row in sorted(rows))
