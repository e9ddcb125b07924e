"""C02 prepare-stuck: the last entry of an id is PrepareCommit or PrepareAbort for too long: some partition never took its marker.

Proves: A decision was written, but not all partitions took their marker, for longer than a leader change lasts.

Bad history: PrepareCommit two hours before the dump, no CompleteCommit.

Legal look-alike: PrepareCommit seconds before the dump: markers are on their way; a little longer, where the clock of the machine that
collected the dumps may be ahead; a log of the coordinator that was dumped before the partitions, none of which lacks the marker, as markers
of its other producers tell; a replica of the coordinator's log of which another one goes further, or has a newer leader.
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.coordinator.words import asked, last_heard_ms
from eo_audit.rules.owners import owner as owner_of
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import doubt, whose
from eo_audit.words import duration, partitions

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# A leader change takes seconds, and markers are sent again and again (`TransactionMarkerChannelManager`): minutes are no delay any more.
PREPARE_WARNING_MS, PREPARE_ERROR_MS = 60_000, 300_000

RULE = Rule(
    code="C02",
    slug="prepare-stuck",
    severity="error",
    reads=("transaction_instances",),
    subject="transaction",
    needs=("end",),
    # Decided, and not complete: PrepareX is written before the first marker is sent, CompleteX after the last is acknowledged.
    where="is_last AND last_status IN ('PrepareCommit', 'PrepareAbort')",
    by="transactional_id",
    columns="decided_at_ms last_status partitions data_epoch marker_epoch coordinator_partition",
    asks=("unmarked", "went_on_ms"),
    waiting="overdue",
    cause="a partition without a leader, or a marker that was given up (KAFKA-9777, KAFKA-16352, KAFKA-19999)",
    remedy="See the finding: fix the partitions it names, then let the coordinator load again. Never abort by tool.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """A decision without its completion for more than a minute."""
    if case.log is not None and (not case.log.ends_here or context.is_outdated(case.log)):
        return None
    row = case.row
    lacking = context.unmarked.get(row.word("instance_id"), ())
    (now, surely), decided = last_heard_ms(case, context, is_seen=bool(lacking)), row.maybe("decided_at_ms")
    if now is None or surely is None or decided is None or surely - decided <= PREPARE_WARNING_MS:
        return None
    waiting = now - decided
    owner = owner_of(row.text("transactional_id") or "")
    lacks = f"; {partitions(lacking)} {'lacks' if len(lacking) == 1 else 'lack'} the marker" if lacking else ""
    who = whose(row.text("transactional_id"), row.maybe("producer_id"), row.maybe("data_epoch"), hint=owner.hint)
    due = decided + PREPARE_WARNING_MS
    unsure, why = doubt(context, row.word("cluster"), case.log.log_id if case.log else None, due_ms=due, over_ms=surely - due)
    message = f"The transaction of {who} was decided ({row.word('last_status')}) {duration(waiting)} ago and never completed{lacks}{why}"
    return Explanation(
        message,
        severity="error" if surely - decided > PREPARE_ERROR_MS else "warning",
        certainty="likely" if unsure else "definite",
        remedy=_stuck_remedy(row, lacking or tuple(row.partitions()), context),
        details={
            "waiting_ms": waiting,
            "lacking": [f"{t}-{p}" for t, p in lacking],
            "partitions": [f"{t}-{p}" for t, p in row.partitions()],
        },
        producer_epoch=row.maybe("marker_epoch"),
    )


def _stuck_remedy(row: Row, lacking: tuple[tuple[str, int], ...], context: "Context") -> str:
    topics = "; ".join(commands.describe_topic(topic) for topic in sorted({topic for topic, _ in lacking})[:3])
    return (
        f"Check first that it is still {row.word('last_status')}: {asked(row, context)}. Then make the partitions {partitions(lacking)} "
        f"available again ({topics}), and let the coordinator load the transaction again: restart or move the leader of "
        f"__transaction_state-{row.maybe('coordinator_partition')}. It sends the markers by itself; the decision stands, "
        "no record is lost by waiting, and the owner's next initTransactions() waits for it. Not safe: kafka-transactions.sh abort, "
        "because the decision is taken and the coordinator still lists these partitions."
    )
