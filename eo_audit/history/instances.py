"""Transaction instances: the begin-to-complete runs of the coordinator log, each with its decision and, if aborted, the cause."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run
from eo_audit.model import abort_cause
from eo_audit.model import states as law


def transaction_instances(coordinator_history: DataFrame, clusters: DataFrame) -> DataFrame:
    """One row per run of a transactional id, from its first entry to its CompleteCommit or CompleteAbort.

    Args:
        coordinator_history: the table.
        clusters: one row per cluster, for kafka_version and abort_scan_interval_ms.

    Returns:
        Rows of the table `transaction_instances`.
    """
    return run(
        "transaction_instances",
        coordinator_history=coordinator_history,
        clusters=clusters,
        commit_states=_deciding(law.COMMIT),
        abort_states=_deciding(law.ABORT),
        expirable_states=tuple(sorted(law.EXPIRABLE)),
        restart_within_ms=abort_cause.RESTART_WITHIN_MS,
    )


def _deciding(decision: str) -> tuple[str, ...]:
    """The states that tell a decision."""
    return tuple(state for state, decided in law.DECISION_OF.items() if decided == decision)
