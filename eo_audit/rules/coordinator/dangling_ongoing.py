"""C01 dangling-ongoing: the last entry of an id is Ongoing, long past its timeout: the coordinator's scan does not reach it.

Proves: A transaction is Ongoing although its timeout and two scans have passed: the coordinator does not work for this id.

Bad history: Ongoing for two hours with a timeout of 60 s.

Legal look-alike: A transaction inside its timeout; a two-phase transaction (timeout 2147483647), which never times out; an entry whose
append failed, of which no partition holds data (info); a clock that was set back since, where nothing tells when the log was dumped
(likely); a log of the coordinator that was dumped before the partitions, as markers of its other producers tell; a replica of the
coordinator's log of which another one goes further, or has a newer leader; one that was dumped before the transaction ended, as a marker in
a partition it lists tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.coordinator.words import asked, last_heard_ms
from eo_audit.rules.owners import Owner
from eo_audit.rules.owners import owner as owner_of
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import doubt, whose
from eo_audit.words import NEVER_TIMES_OUT, count, duration, partitions

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C01",
    slug="dangling-ongoing",
    severity="error",
    reads=("transaction_instances",),
    subject="transaction",
    # A dump that stops before the log does may lack the PrepareX.
    needs=("end",),
    # Within its timeout this is every transaction at work: `explain` asks the coordinator's clock.
    where="is_last AND last_status = 'Ongoing'",
    by="transactional_id",
    columns="start_ms timeout_ms partitions data_epoch coordinator_partition protocol",
    asks=("data_of", "untold_ms", "went_on_ms"),
    waiting="overdue",
    cause="the coordinator partition has no leader or too few in-sync replicas, its thread died, an epoch overflow (4.0 at epoch 32766), "
    "or transaction.version was lowered to 0 while the transaction ran",
    remedy="See the finding: restart the owner of the id first; its initTransactions() ends the transaction cleanly.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Open past the timeout, two scans and the tolerance for clocks; never for a two-phase transaction.

    An Ongoing entry need not have counted: where the partitions it lists hold no data of it, nobody waits for it.
    """
    if case.log is not None and (not case.log.ends_here or context.is_outdated(case.log)):
        return None
    row = case.row
    cluster = context.cluster(row.word("cluster"))
    blocks = context.blocks(row.word("cluster"), row.number("producer_id"))
    data = _Data.of(row, context, blocks=blocks)
    now, at_least = last_heard_ms(case, context, is_seen=bool(blocks or data.records))
    start, timeout = row.maybe("start_ms"), row.maybe("timeout_ms")
    if now is None or at_least is None or start is None or start < 0 or timeout is None or timeout == NEVER_TIMES_OUT:
        return None
    # Two scans: one may have begun just before the timeout passed (`TransactionStateManager.timedOutTransactions`).
    over = at_least - start - timeout - 2 * cluster.number("abort_scan_interval_ms", 10_000) - cluster.number("skew_ms", 2_000)
    if over <= 0 or _went_on(row, context):
        return None
    unsure, why = doubt(context, row.word("cluster"), case.log.log_id if case.log else None, due_ms=at_least - over, over_ms=over)
    owner = owner_of(row.text("transactional_id") or "")
    holds_back = f": it holds back {partitions(blocks)}" if blocks else ""
    who = whose(row.text("transactional_id"), row.maybe("producer_id"), row.maybe("data_epoch"), hint=owner.hint)
    message = (
        f"The transaction of {who} has been Ongoing for "
        f"{duration(now - start)} with a timeout of {duration(timeout)}{holds_back}{data.words}{why}"
    )
    return Explanation(
        message,
        severity="critical" if blocks else "info" if data.is_none else "error",
        certainty="likely" if unsure or not (data.records or blocks) else "definite",
        remedy=_leave_it(row, context) if data.is_none else _restart_owner(row, context, owner, data),
        details={
            "open_for_ms": now - start,
            "timeout_ms": timeout,
            "partitions": [f"{t}-{p}" for t, p in row.partitions()],
            "records": data.records,
            "owner": owner.family,
        },
        producer_epoch=row.maybe("data_epoch"),
    )


def _went_on(row: Row, context: "Context") -> bool:
    """Whether a partition it lists shows a marker, of its producer, that was written while it ran and of which the coordinator's log does
    not tell: that log was dumped before, and the audit's now is no time of it."""
    written_ms, name = context.untold_ms.get(row.word("instance_id")), row.word("cluster")
    apart_ms = context.farthest_ms.get(name, 0) + context.cluster(name).number("skew_ms", 2_000)
    return written_ms is not None and written_ms > row.number("start_ms") + apart_ms


@dataclass(frozen=True)
class _Data:
    """What stands of an open transaction in the partitions it lists: its records, and the partitions that the dumps do not show."""

    records: int
    unknown: tuple[tuple[str, int], ...]
    blocks: bool

    @classmethod
    def of(cls, row: Row, context: "Context", *, blocks: Sequence[tuple[str, int]]) -> "_Data":
        seen = context.data_of.get(row.word("instance_id"), {})
        unknown = tuple(place for place in row.partitions() if seen.get(place) is None)
        return cls(sum(records or 0 for records in seen.values()), unknown, bool(blocks))

    @property
    def is_none(self) -> bool:
        """Known: no record of it stands anywhere."""
        return not (self.records or self.unknown or self.blocks)

    @property
    def words(self) -> str:
        """What a message says of it."""
        if self.records or self.blocks:
            return ""
        if self.unknown:
            return f"; no data of it was seen, but the dumps do not show {partitions(self.unknown)} to the end"
        return "; no data of it was seen in the partitions it lists, so nobody waits for it: perhaps its entry was never acknowledged"


def _leave_it(row: Row, context: "Context") -> str:
    """The remedy where nobody waits for it."""
    return (
        f"Nothing to repair; safe to leave. What the coordinator remembers: {asked(row, context)}. If that is Ongoing, "
        "it ends the transaction itself, at the latest when another broker leads its partition."
    )


def _restart_owner(row: Row, context: "Context", owner: Owner, data: _Data) -> str:
    """The remedy where somebody may wait: its owner first, then the coordinator; never the abort tool."""
    coordinator = f"__transaction_state-{row.maybe('coordinator_partition')}"
    fence = commands.fence(row.text("transactional_id") or "", context.version(row.word("cluster")))
    records = count(data.records, "record") if data.records and not data.unknown else "records"
    return (
        f"Check first that it is still Ongoing with producer {row.maybe('producer_id')}: {asked(row, context)}. If nobody answers, "
        f"move the leader of {coordinator}: {commands.describe_topic('__transaction_state')}. "
        f"{_raise_first(row, coordinator)}{owner.first}. "
        f"Only if the owner is gone for good: {fence}. That aborts the {records} of this transaction in {partitions(row.partitions())}; "
        f"what it costs: {owner.lost}. Do not use the abort tool: the coordinator still lists the partitions."
    )


def _raise_first(row: Row, coordinator: str) -> str:
    """Of a transaction of TV2, what its end may wait for: nothing where the feature was not lowered."""
    if row.text("protocol") != "tv2":
        return ""
    # Version 0 of the value has no clientTransactionVersion, so each write of such an entry fails (`TransactionLogValue.write`, 4.3.1).
    # What was to be written stays the pending state of the id, and the coordinator ends nothing that has one (CONCURRENT_TRANSACTIONS;
    # `TransactionStateManager.timedOutTransactions`). Only the next leader reads the log anew.
    return (
        f"If transaction.version was lowered to 0 while this transaction ran ({commands.describe_features()} says what it is now), raise "
        f"it again first, and then move the leader of {coordinator} or restart the broker that leads it: an end that was tried meanwhile "
        "stays pending, and until then neither the timeout, nor initTransactions(), nor forceTerminateTransaction ends it. "
    )
