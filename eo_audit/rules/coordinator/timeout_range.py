"""C07 timeout-range: a transaction timeout that no coordinator accepts.

Proves: The timeout of an id is not above 0, or above transaction.max.timeout.ms: consumers may wait for its transactions longer than the
brokers' own limit. By itself it does not prove that delivery was wrong.

Bad history: An id with a timeout of 2 h, where transaction.max.timeout.ms is 15 min.

Legal look-alike: A two-phase transaction (timeout 2147483647, KIP-939), which is C19; a limit that the brokers' settings raise; one that
nobody told (info).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import ids_of
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import NEVER_TIMES_OUT, duration

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

DEFAULT_MAX_MS = 900_000  # transaction.max.timeout.ms

RULE = Rule(
    code="C07",
    slug="timeout-range",
    severity="warning",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # `TransactionStateManager.validateTransactionTimeoutMs`, asked in InitProducerId only: the entry with which the timeout comes.
    where=(
        f"(timeout_ms <= 0 OR (timeout_ms > {DEFAULT_MAX_MS} AND timeout_ms <> {NEVER_TIMES_OUT})) "
        "AND NOT (timeout_ms <=> previous_timeout_ms)"
    ),
    # All ids of one setting are one case.
    by="timeout_ms",
    columns="timeout_ms entry_offset",
    proves_delivery_wrong=False,
    cause="transaction.max.timeout.ms was lowered after the producer had started, or entries that no coordinator wrote",
    remedy=(
        "If transaction.max.timeout.ms was lowered: set transaction.timeout.ms of these producers below it and restart them. Until then a "
        "transaction of theirs that nobody ends keeps read_committed consumers waiting for this long. If it was not, find out who may "
        "write to __transaction_state."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Above the brokers' limit; an info where only the default of the limit is known."""
    row = case.row
    cluster = context.cluster(case.log.cluster) if case.log else context.cluster("")
    limit, timeout = cluster.number("max_transaction_timeout_ms", DEFAULT_MAX_MS), row.number("timeout_ms")
    if 0 < timeout <= limit:
        return None
    is_known = cluster.flag("settings_known") or timeout <= 0
    told = "" if is_known else ", unless the brokers' settings raise it (no manifest tells them)"
    above = f"above transaction.max.timeout.ms ({duration(limit)}{told})" if timeout > 0 else "which no coordinator accepts"
    return Explanation(
        f"The transaction timeout of {ids_of(case)} is {duration(timeout) if timeout > 0 else f'{timeout} ms'}, {above}",
        severity="warning" if is_known else "info",
        certainty="definite" if timeout <= 0 else "likely" if is_known else "open",
        details={"timeout_ms": timeout, "max_timeout_ms": limit, "entries": case.hits},
        producer_id=row.maybe("producer_id") if case.hits == 1 else None,
        producer_epoch=row.maybe("producer_epoch") if case.hits == 1 else None,
    )
