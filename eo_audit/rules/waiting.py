"""How long a transaction has been open, and when its coordinator ends it.

The coordinator's start counts where it lists the partition (`TransactionMetadata.txnStartTimestamp`). Else a broker's clock in the log
does: what a broker wrote behind the first open offset proves the least age, what it wrote before it the greatest. The time of a record
is its client's (CreateTime) and proves nothing by itself.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eo_audit.rules.row import Row
from eo_audit.words import NEVER_TIMES_OUT, duration, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

ONGOING = "Ongoing"
_SET_BACK = "; the times of its coordinator's log go back by as much, so it may only look so old by a clock that was set back"
_SILENCE = "; no broker wrote anything since it was overdue, so the brokers may have been stopped before"


@dataclass(frozen=True)
class Age:
    """How old an open transaction is.

    Attributes:
        ms: its age, as well as anybody tells; None where nothing does.
        source: coordinator (its start), broker_clock (it is at least so old), record_time (what the client says), or None.
        at_least_ms: the age that the coordinator or a broker's clock proves; None where neither does.
        at_most_ms: the greatest age that a broker's clock allows; None where none does.
        surely_ms: its age even if the machine that collected the dumps is ahead of the coordinator; None where `ms` does not rest on both.
    """

    ms: int | None = None
    source: str | None = None
    at_least_ms: int | None = None
    at_most_ms: int | None = None
    surely_ms: int | None = None

    @property
    def proved_ms(self) -> int | None:
        """The age that counts against it; None where nobody proves one."""
        return self.at_least_ms if self.surely_ms is None else self.surely_ms


def age(
    log: "Log", context: "Context", *, producer_id: int, first_offset: int | None, record_ms: int | None, epoch: int | None = None
) -> Age:
    """The age of what is open in a log.

    Args:
        log: the replica log.
        context: the audit's now, and what the coordinator holds open.
        producer_id: whose transaction.
        first_offset: where it begins; None where that is not known.
        record_ms: the time of its records, as the client gave it: it counts as far as brokers' clocks allow.
        epoch: that of its records; None where it is not known.
    """
    now = context.now(log.cluster)
    if now is None:
        return Age()
    last = context.unfinished(log.cluster, producer_id)
    start = last.maybe("start_ms") if last is not None and context.lists(log, producer_id) else None
    if start is not None and start >= 0:
        there, surely = _seen_open(log, context, now, coordinator=last.maybe("replica_log_id") if last is not None else None)
        return Age(max(0, there - start), "coordinator", max(0, there - start), surely_ms=max(0, surely - start))
    # Without the coordinator's start only what brokers wrote around the first open offset bounds the age, from both sides.
    numbers, blocker = log.numbers, log.numbers.maybe("blocker_first_offset")
    # The clocks of `visibility` are those around what holds the LSO; of another open transaction they say less.
    same = blocker is not None and blocker == first_offset and numbers.maybe("blocker_producer_id") == producer_id
    after = numbers.maybe("blocker_began_after_ms") if None not in (blocker, first_offset) else None
    by = numbers.maybe("blocker_open_by_ms") if same else None
    afters = [ms for ms in (after, _epoch_began_ms(log, context, producer_id, epoch)) if ms is not None]
    at_least, at_most = None if by is None else max(0, now - by), max(0, now - max(afters)) if afters else None
    told = None if record_ms is None else max(0, now - record_ms)
    if told is not None and at_most is not None:
        told = min(told, at_most)
    if at_least is not None and (told is None or told <= at_least):
        return Age(at_least, "broker_clock", at_least, at_most)
    return Age(told, "record_time" if told is not None else None, at_least, at_most)


def _epoch_began_ms(log: "Log", context: "Context", producer_id: int, epoch: int | None) -> int | None:
    """Before this nobody wrote with an epoch: the coordinator raised it when it decided the producer's last transaction, or later."""
    last = context.last_of_producer.get((log.cluster, producer_id))
    before, decided = (last.maybe("data_epoch"), last.maybe("decided_at_ms")) if last is not None else (None, None)
    if None in (epoch, before, decided) or epoch <= before:  # type: ignore[operator]
        return None
    return decided - context.farthest_ms.get(log.cluster, 0)  # type: ignore[operator]


def _seen_open(log: "Log", context: "Context", now: int, *, coordinator: int | None) -> tuple[int, int]:
    """When a transaction that a log of the coordinator holds open was last seen so, as well as anybody tells and at the earliest, in ms."""
    there = context.coordinator_now(log.cluster, coordinator) or now
    surely = context.coordinator_now_at_least(log.cluster, coordinator) or now
    of_coordinator = context.logs.get(coordinator) if coordinator is not None else None
    if of_coordinator is None or of_coordinator.ends_here:
        return there, surely
    # What the coordinator's dump lacks at its end may hold the decision. That the partition has no marker was seen when it was dumped, by
    # its own broker's clock, which may be another's.
    dumped = context.dumped_at_ms.get(log.log_id, now)
    apart = 0 if of_coordinator.broker == log.broker else context.farthest_ms.get(log.cluster, 0)
    return min(there, dumped), max(min(surely, dumped - apart), of_coordinator.newest_ms)


def doubt(context: "Context", cluster: str, coordinator: int | None, *, due_ms: int, over_ms: int) -> tuple[bool, str]:
    """Whether what a coordinator left undone past its time may not have been its fault, and why, as the end of a sentence.

    Args:
        context: clocks, and what brokers wrote last.
        cluster: whose.
        coordinator: the log that holds the transaction; None where it was not dumped.
        due_ms: when the coordinator should have done it, at the latest.
        over_ms: how long that is over, surely.
    """
    if over_ms <= 0:
        return False, ""
    if context.is_set_back(coordinator, over_ms):
        return True, _SET_BACK
    if 0 < context.newest_ms.get(cluster, 0) < due_ms:
        return True, _SILENCE
    return context.cluster(cluster).text("as_of_source") == "newest_broker_clock", ""


def frees_at_ms(last: Row | None, cluster: Row) -> int | None:
    """When the coordinator has aborted an Ongoing transaction at the latest: its start, its timeout and one scan for timed-out ones.

    Args:
        last: its row of transaction_instances.
        cluster: its row of clusters.

    Returns:
        Milliseconds since the epoch, be they over already or not; None for one that is decided, or that never times out (KIP-939).
    """
    if last is None or last.text("last_status") != ONGOING:
        return None
    start, timeout = last.maybe("start_ms"), last.maybe("timeout_ms")
    if start is None or start < 0 or timeout is None or timeout == NEVER_TIMES_OUT:
        return None
    # `TransactionCoordinator.abortTimedOutTransactions` runs once an interval, so it may come by that much late.
    return start + timeout + cluster.number("abort_scan_interval_ms", 10_000)


def blocker(log: "Log", context: "Context") -> dict[str, object] | None:
    """What holds the last stable offset of a log back, as verdict.json says it; None where nothing does, or where a replica of a newer
    leader epoch stands beside it: then nobody waits here.

    `held_back_seconds` is how long it has been open as far as a coordinator or a broker tells, else null; `as_of_ms` is the now of its own
    cluster, where several are audited at once.
    """
    row = log.numbers
    producer = row.maybe("blocker_producer_id")
    if producer is None or context.is_superseded(log):
        return None
    first, listed = row.maybe("blocker_first_offset"), context.lists(log, producer)
    known = context.last_of_producer.get((log.cluster, producer))
    last = context.unfinished(log.cluster, producer) if listed else None
    old = age(log, context, producer_id=producer, first_offset=first, record_ms=None)
    return {
        "producer_id": producer,
        "first_offset": first,
        "transactional_id": known.text("transactional_id") if known else None,
        "producer_epoch": row.maybe("blocker_epoch"),
        "coordinator_status": last.text("last_status") if last else None,
        "timeout_ms": last.maybe("timeout_ms") if last else None,
        "held_back_records": row.maybe("held_back_committed_records"),
        "held_back_seconds": None if old.at_least_ms is None else old.at_least_ms // 1_000,
        "frees_at_ms": frees_at_ms(last, context.cluster(log.cluster)),
        "as_of_ms": context.now(log.cluster),
    }


def whose(transactional_id: str | None, producer_id: int | None, epoch: int | None = None, *, hint: str = "") -> str:
    """Who wrote, the name that people know first: `late-writer-0 (producer 1, epoch 0)`, `producer 1 (epoch 0)`.

    `hint` is said with the name: what its owner looks like (`Owner.hint`).
    """
    if transactional_id is None:
        return f"producer {producer_id}" + ("" if epoch is None else f" (epoch {epoch})")
    return f"{shown(transactional_id)} (producer {producer_id}" + ("" if epoch is None else f", epoch {epoch}") + f"{hint})"


def spent(ms: int | None, timeout_ms: int | None) -> str:
    """How much of a timeout is over: `40 of 60 min`, `12 s of 15 min`, `an unknown time of 60 s`, `12 s without a timeout`."""
    if timeout_ms == NEVER_TIMES_OUT:
        return f"{duration(ms)} without a timeout"
    if ms is not None and timeout_ms is not None:
        unit, size = ("min", 60_000) if timeout_ms >= 120_000 else ("s", 1_000)
        # `70691 of 60 s` says less than `19 h 38 min of 1 min`.
        if size <= ms < max(120 * size, 2 * timeout_ms) and timeout_ms >= size and timeout_ms % size == 0:
            return f"{ms // size} of {timeout_ms // size} {unit}"
    return f"{duration(ms)} of {duration(timeout_ms)}"
