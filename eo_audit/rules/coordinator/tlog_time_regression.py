"""C05 tlog-time-regression: the times of an id's entries go back further than clocks do.

Proves: The clock of a coordinator was set back, or something other than a coordinator wrote the entry. Timeouts are reckoned with this
clock. By itself it does not prove that delivery was wrong.

Bad history: CompleteCommit, then Ongoing of the same id with a last update 65 s earlier, under the same leader epoch.

Legal look-alike: A new leader whose clock is behind that of the one before; a clock that NTP sets back by seconds (info); a completion
whose last update is that of the decision, long before its append; a completion that was written twice, with the time of the first (C10).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.context import OTHER_MACHINE_MS
from eo_audit.rules.coordinator.words import name_of
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import duration, moment

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# NTP keeps clocks within this of each other (`clusters.skew_ms`); what a clock is set back by less than that is no news.
NO_NEWS_MS = 2_000
_BACK = (
    "greatest(0L, previous_last_update_ms - last_update_ms, last_update_ms - batch_timestamp_ms, "
    "IF(start_ms >= 0 AND previous_start_ms >= 0, previous_start_ms - start_ms, 0L))"
)
_APPEND = "append"

RULE = Rule(
    code="C05",
    slug="tlog-time-regression",
    severity="warning",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # KAFKA-5415, KAFKA-8803: coordinators do not ask for times that ascend. A second completion has the first one's time (C10).
    where=(
        f"coalesce(step_reason, '') <> 'double_complete' AND ({_BACK} > {NO_NEWS_MS} "
        # `prepareIncrementProducerEpoch` writes -1, `prepareAddPartitions` the time, and what follows carries it along.
        "OR (status = 'Empty' AND start_ms >= 0) OR (status IN ('CompleteCommit', 'CompleteAbort') AND start_ms < 0))"
    ),
    # One leader is one clock: what it did to all ids is one case.
    by="partition_leader_epoch",
    weight=_BACK,
    columns=(
        "entry_offset status last_update_ms batch_timestamp_ms start_ms partition_leader_epoch previous_offset previous_last_update_ms "
        "previous_start_ms previous_leader_epoch coordinator_partition"
    ),
    # Consumers may wait longer for a transaction, or a transaction end sooner than its producer thought.
    proves_delivery_wrong=False,
    cause="a broker's clock was set back (NTP step, a machine that was suspended), or entries that no coordinator wrote",
    remedy=(
        "Let the brokers' clocks be slewed, not stepped (chrony or ntpd -x), and compare the clock of this coordinator partition's leader "
        "with the others. If no clock moved, find out who may write to __transaction_state."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation | None:
    """The largest step back speaks. Seconds are news, a minute is a fault; what two leaders' wrong clocks explain says nothing."""
    steps = [example.row for example in case.examples if not _is_of_two_clocks(example.row)]
    if not steps:
        return None
    row, entries = steps[0], case.hits - (len(case.examples) - len(steps))
    what, back_ms = _largest(row)
    shape, changed = back_ms <= NO_NEWS_MS, _is_by_another_leader(row, what)
    of = f"{name_of(row)} ({row.text('status')} at offset {row.maybe('entry_offset')})"
    leader = "which another leader wrote" if changed else f"under the same leader epoch {row.maybe('partition_leader_epoch')}"
    if shape:
        message = f"The entry of {of} has the start {row.maybe('start_ms')}, which no coordinator writes with that state"
    elif what == _APPEND:
        message = f"The entry of {of} says {moment(row.maybe('last_update_ms'))}, {duration(back_ms)} after the time of its own append"
    else:
        message = f"The {what} of {of} lies {duration(back_ms)} before that at offset {row.maybe('previous_offset')}, {leader}"
    return Explanation(
        message if entries == 1 else f"{message} (the largest of {entries} such entries)",
        severity="warning" if shape or back_ms > OTHER_MACHINE_MS else "info",
        certainty="definite" if shape else "likely",
        details={"back_ms": back_ms, "entries": entries, "leader_changed": changed},
        producer_id=row.maybe("producer_id"),
        producer_epoch=row.maybe("producer_epoch"),
    )


def _is_by_another_leader(row: Row, what: str) -> bool:
    return what != _APPEND and row.maybe("previous_leader_epoch") not in (None, row.maybe("partition_leader_epoch"))


def _is_of_two_clocks(row: Row) -> bool:
    what, back_ms = _largest(row)
    return _is_by_another_leader(row, what) and NO_NEWS_MS < back_ms <= 2 * OTHER_MACHINE_MS


def _largest(row: Row) -> tuple[str, int]:
    """What goes back furthest, and by how much."""
    pairs = (
        ("last update", row.maybe("previous_last_update_ms"), row.maybe("last_update_ms")),
        ("start", row.maybe("previous_start_ms"), row.maybe("start_ms")),
        (_APPEND, row.maybe("last_update_ms"), row.maybe("batch_timestamp_ms")),
    )
    known = [(what, before, after) for what, before, after in pairs if before is not None and after is not None]
    steps = [(before - after, what) for what, before, after in known if min(before, after) >= 0]
    back_ms, what = max(steps, key=lambda step: step[0], default=(0, ""))
    return what, back_ms
