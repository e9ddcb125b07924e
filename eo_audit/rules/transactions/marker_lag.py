"""T14 marker-lag: markers reached their partitions long after the decision.

Proves: From the decision to the last marker a transaction took seconds or minutes, and read_committed consumers waited for records whose
fate was known. Nothing is lost: it does not prove that delivery was wrong.

Bad history: PrepareCommit, and CompleteCommit nine seconds later under the same leader.

Legal look-alike: Two leaders with two clocks, of which the second is ahead; a decision of which no completion was dumped (C02); a few
seconds, as a busy broker takes; a clock that was set in between, as what stands before the decision or behind the completion shows (C05).
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.context import OTHER_MACHINE_MS
from eo_audit.rules.coordinator.prepare_stuck import PREPARE_WARNING_MS
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import whose
from eo_audit.words import count, duration, partitions

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

NEWS_MS = 5_000
LAG = "completed_at_ms - decided_at_ms"
# By how much the id's clock goes back before the decision, or behind the completion: so much of the lag nobody waited for.
WENT_BACK = "greatest(0L, start_ms - decided_at_ms, completed_at_ms - next_at_ms)"

RULE = Rule(
    code="T14",
    slug="marker-lag",
    # A warning where it is longer than a leader change takes.
    severity="info",
    reads=("transaction_instances",),
    subject="transaction",
    # Both times are the coordinator's own: CompleteX is appended when the last partition has acknowledged its marker.
    where=(
        f"{LAG} > {NEWS_MS} AND (complete_leader_epoch <=> coalesce(prepare_leader_epoch, complete_leader_epoch) "
        f"OR {LAG} > {2 * OTHER_MACHINE_MS}) AND {LAG} - {WENT_BACK} > {NEWS_MS}"
    ),
    # One slow partition delays the transactions of all ids.
    by="",
    weight=LAG,
    columns="completed_at_ms decided_at_ms partitions decision coordinator_partition",
    informs=True,
    proves_delivery_wrong=False,
    cause="a partition without a leader or with too few in-sync replicas, a broker that was restarted or slow, or a slow coordinator log",
    remedy="See the finding: look at the leaders of its partitions at that time.",
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The slowest one speaks: what it wrote to is where to look."""
    row = case.row
    lag_ms = row.number("completed_at_ms") - row.number("decided_at_ms")
    listed = row.partitions()
    where = f" in {partitions(listed)}" if listed else ""
    who = whose(row.text("transactional_id"), row.maybe("producer_id"))
    if case.hits == 1:
        message = f"The markers of a transaction of {who} took {duration(lag_ms)} after its {row.word('decision')}{where}"
    else:
        message = (
            f"The markers of {count(case.hits, 'transaction')} took more than {duration(NEWS_MS)} after the decision, the slowest "
            f"{duration(lag_ms)}: that of {who}{where}"
        )
    topics = sorted({topic for topic, _ in listed})[:3]
    look = f" ({'; '.join(commands.describe_topic(topic) for topic in topics)})" if topics else ""
    return Explanation(
        f"{message}: read_committed consumers waited that long",
        severity="warning" if lag_ms > PREPARE_WARNING_MS else None,
        remedy=(
            f"Nothing to repair; safe to leave. Look at the leaders and in-sync replicas of {partitions(listed) or 'its partitions'} and "
            f"of __transaction_state-{row.maybe('coordinator_partition')} at that time{look}."
        ),
        details={"longest_ms": lag_ms, "transactions": case.hits, "partitions": [f"{t}-{p}" for t, p in listed]},
        timestamp_ms=row.maybe("decided_at_ms"),
    )
