"""O05 pending-offsets-stuck: a consumer group cannot fetch its offsets, because a transaction that committed some is open for too long.

Proves: Offsets of a group are parked in a transaction that nobody ends, or that its coordinator should have ended: whoever asks for stable
offsets (read_committed consumers from 2.5 on, Kafka Streams) gets UNSTABLE_OFFSET_COMMIT and cannot start on these partitions.

Bad history: A commit of payments-app for orders-0 in a transaction that is Ongoing for two hours with a timeout of 60 s.

Legal look-alike: A transaction inside its timeout; one that has ended after this dump was made; a dump that stops before the log does; a
replica that a newer leader left behind.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eo_audit.rules.offsets.words import committed_partitions, group_of, groups, place
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions import remedies
from eo_audit.rules.waiting import ONGOING, Age, age, doubt, whose
from eo_audit.words import NEVER_TIMES_OUT, duration, moment

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

RULE = Rule(
    code="O05",
    slug="pending-offsets-stuck",
    severity="error",
    reads=("group_offsets",),
    subject="group_offset undecoded_offsets",
    # The same as T01: where the dump stops too soon, or the coordinator's word is missing, what is open may be healthy.
    needs=("order", "past", "end", "coordinator", "decoded"),
    where="outcome = 'pending'",
    asks=("last_of_producer", "open_spans", "unmarked", "newest_markers"),
    caused_by=("T01", "C01"),
    cause="the transaction that holds these offsets was not ended: see T01 (nobody will end it) or C01 (its coordinator should have)",
    remedy="See the finding: it is that of the open transaction. Do not reset the group's offsets before.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Only past the thresholds of T01 and C01, and only where the dump or the coordinator proves them."""
    log = case.log
    if log is None or not log.ends_here or context.is_superseded(log):
        return None
    wait = _Wait.of(case, log, context)
    if wait is None:
        return None
    producer, now = case.row.number("producer_id"), context.now(log.cluster)
    known = context.owner(log, producer)
    name = known.text("transactional_id") if known else None
    since = (
        f"since {moment(now - wait.age.ms, now)}" if now is not None and wait.age.ms is not None else f"since offset {wait.first_offset}"
    )
    message = (
        f"{groups(case)} cannot fetch {'its' if len({e.row.word('group') for e in case.examples}) == 1 else 'their'} offsets for "
        f"{committed_partitions(case)}: {whose(name, producer, case.row.maybe('producer_epoch'))} is open on {place(case)} {since} "
        f"({duration(wait.age.ms)}), {wait.why}"
    )
    return Explanation(
        message[:1].upper() + message[1:],
        severity=wait.severity,
        certainty=wait.certainty,
        remedy=_remedy(case, log, context, wait),
        details={"age_ms": wait.age.ms, "age_source": wait.age.source, "offsets": case.hits, "hangs": wait.hangs},
        transactional_id=name,
        group=group_of(case),
    )


@dataclass(frozen=True)
class _Wait:
    """How long offsets have been parked, whether anybody will end it, and how bad and how sure that is."""

    age: Age
    first_offset: int
    hangs: bool
    severity: str
    certainty: str
    why: str

    @classmethod
    def of(cls, case: Case, log: "Log", context: "Context") -> "_Wait | None":
        """None where nobody proves that the wait is too long."""
        producer, cluster = case.row.number("producer_id"), context.cluster(log.cluster)
        fate = context.fates.get((log.log_id, producer))
        first = case.first or 0 if fate is None else fate.number("first_offset")
        old = age(log, context, producer_id=producer, first_offset=first, record_ms=case.timestamp_ms)
        if context.hangs(log, producer):
            limit = cluster.number("max_transaction_timeout_ms", 900_000)
            grave = old.ms is not None and old.ms > limit
            sure = context.how_sure(log, producer)
            return cls(old, first, True, "error" if grave else "warning", sure, "and nobody will end it (T01)")
        over = _over_ms(log, producer, old, context)
        if over is None or over <= 0 or context.ended_elsewhere(log, producer):
            return None
        last, surely = context.unfinished(log.cluster, producer), old.proved_ms
        assert last is not None and surely is not None
        due = last.number("start_ms") + surely - over
        unsure, why = doubt(context, log.cluster, last.maybe("replica_log_id"), due_ms=due, over_ms=over)
        return cls(old, first, False, "error", "likely" if unsure else "definite", f"long past its timeout (C01){why}")


def _over_ms(log: "Log", producer_id: int, old: Age, context: "Context") -> int | None:
    """How long the coordinator should have ended it: its timeout, two scans and the tolerance for clocks are over (C01)."""
    last, cluster = context.unfinished(log.cluster, producer_id), context.cluster(log.cluster)
    if last is None or last.text("last_status") != ONGOING or not context.lists(log, producer_id):
        return None
    timeout, surely = last.maybe("timeout_ms"), old.proved_ms
    if timeout is None or timeout == NEVER_TIMES_OUT or surely is None or old.source != "coordinator":
        return None
    return surely - timeout - 2 * cluster.number("abort_scan_interval_ms", 10_000) - cluster.number("skew_ms", 2_000)


def _remedy(case: Case, log: "Log", context: "Context", wait: _Wait) -> str:
    producer = case.row.number("producer_id")
    if wait.hangs:
        return remedies.abort(log, wait.first_offset, producer, context)
    return f"{remedies.wait(log, producer, context)} Do not reset the group's offsets before."
