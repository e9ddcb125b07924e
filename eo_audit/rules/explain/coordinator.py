"""Words for the coordinator rules (C)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.owners import Owner
from eo_audit.rules.owners import owner as owner_of
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.words import count, duration, partitions, shown, some

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

NEVER_TIMES_OUT = 2_147_483_647  # KIP-939
PREPARE_WARNING_MS, PREPARE_ERROR_MS = 60_000, 300_000
CAUSES = {
    "fenced_by_init": "a new producer with the same id took over (initTransactions)",
    "coordinator_timeout": "the coordinator ended it after its timeout",
    "timeout_or_fence": "its timeout had passed, or a new producer took over: both look the same here",
}


def _id(row: Row) -> str:
    return shown(row.text("transactional_id"))


def dangling(case: Case, context: "Context") -> Explanation | None:
    """C01: open past the timeout, two scans and the tolerance for clocks; never for a two-phase transaction.

    An Ongoing entry need not have counted: where the partitions it lists hold no data of it, nobody waits for it.
    """
    if case.log is not None and not case.log.ends_here:
        return None
    row = case.row
    cluster = context.cluster(row.word("cluster"))
    now = context.coordinator_now(row.word("cluster"), case.log.log_id if case.log else None)
    start, timeout = row.maybe("start_ms"), row.maybe("timeout_ms")
    if now is None or start is None or start < 0 or timeout is None or timeout == NEVER_TIMES_OUT:
        return None
    over = now - start - timeout - 2 * cluster.number("abort_scan_interval_ms", 10_000) - cluster.number("skew_ms", 2_000)
    if over <= 0:
        return None
    blocks = context.blocks(row.word("cluster"), row.number("producer_id"))
    stopped = 0 < context.newest_ms(row.word("cluster")) < now - over
    data = _Data.of(row, context, blocks=blocks)
    owner = owner_of(row.text("transactional_id") or "")
    message = (
        f"The transaction of {_id(row)} (producer {row.maybe('producer_id')}{owner.hint}) has been Ongoing for {duration(now - start)} "
        f"with a timeout of {duration(timeout)}"
        f"{f': it holds back {partitions(blocks)}' if blocks else ''}{data.words}"
        f"{'; no broker wrote anything after its deadline, so the brokers may have been stopped before it' if stopped else ''}"
    )
    unsure = stopped or not (data.records or blocks) or cluster.text("as_of_source") == "newest_broker_clock"
    return Explanation(
        message,
        severity="critical" if blocks else "info" if data.is_none else "error",
        certainty="likely" if unsure else "definite",
        remedy=_unheld_remedy(row, context) if data.is_none else _init_remedy(row, context, owner, data),
        details={
            "open_for_ms": now - start,
            "timeout_ms": timeout,
            "partitions": [f"{t}-{p}" for t, p in row.partitions()],
            "records": data.records,
            "owner": owner.family,
        },
        producer_epoch=row.maybe("data_epoch"),
    )


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


def _asked(row: Row, context: "Context") -> str:
    """What to ask the coordinator before anything is done."""
    version = context.version(row.word("cluster"))
    if version is not None and version < commands.FIRST_TOOL:
        return "dump the end of its partition of __transaction_state again (brokers before 3.0 do not answer describe)"
    return commands.describe(row.text("transactional_id") or "") + (" (brokers from 3.0)" if version is None else "")


def _unheld_remedy(row: Row, context: "Context") -> str:
    return (
        f"Nothing to repair; safe to leave. What the coordinator remembers: {_asked(row, context)}. If that is Ongoing, it ends the "
        "transaction itself, at the latest when another broker leads its partition."
    )


def _init_remedy(row: Row, context: "Context", owner: Owner, data: _Data) -> str:
    coordinator = f"__transaction_state-{row.maybe('coordinator_partition')}"
    records = count(data.records, "record") if data.records and not data.unknown else "records"
    return (
        f"Check first that it is still Ongoing with producer {row.maybe('producer_id')}: {_asked(row, context)}. If nobody answers, "
        f"move the leader of {coordinator}: {commands.describe_topic('__transaction_state')}. {owner.first}. "
        f"Only if the owner is gone for good: {commands.fence(row.text('transactional_id') or '', context.version(row.word('cluster')))}. "
        f"That aborts the {records} of this transaction in {partitions(row.partitions())}; what it costs: {owner.lost}. "
        "Do not use the abort tool: the coordinator still lists the partitions."
    )


def stuck(case: Case, context: "Context") -> Explanation | None:
    """C02: a decision without its completion for more than a minute."""
    if case.log is not None and not case.log.ends_here:
        return None
    row = case.row
    cluster = context.cluster(row.word("cluster"))
    now, decided = context.coordinator_now(row.word("cluster"), case.log.log_id if case.log else None), row.maybe("decided_at_ms")
    waiting = None if now is None or decided is None else now - decided
    if waiting is None or waiting <= PREPARE_WARNING_MS:
        return None
    lacking = context.unmarked.get(row.word("instance_id"), ())
    owner = owner_of(row.text("transactional_id") or "")
    lacks = f"; {partitions(lacking)} {'lacks' if len(lacking) == 1 else 'lack'} the marker" if lacking else ""
    message = (
        f"The transaction of {_id(row)} (producer {row.maybe('producer_id')}{owner.hint}) was decided ({row.word('last_status')}) "
        f"{duration(waiting)} ago and never completed{lacks}"
    )
    return Explanation(
        message,
        severity="error" if waiting > PREPARE_ERROR_MS else "warning",
        certainty="likely" if cluster.text("as_of_source") == "newest_broker_clock" else "definite",
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
        f"Check first that it is still {row.word('last_status')}: {_asked(row, context)}. Then make the partitions {partitions(lacking)} "
        f"available again ({topics}), and let the coordinator load the transaction again: restart or move the leader of "
        f"__transaction_state-{row.maybe('coordinator_partition')}. It sends the markers by itself; the decision stands, no record is lost "
        "by waiting, and the owner's next initTransactions() waits for it. "
        "Not safe: kafka-transactions.sh abort, because the decision is taken and the coordinator still lists these partitions."
    )


def illegal(case: Case, _context: "Context") -> Explanation:
    """C03."""
    row = case.row
    before, after = row.maybe("previous_epoch"), row.maybe("producer_epoch")
    step = f"{row.text('previous_status') or 'nothing'} to {'a tombstone' if row.flag('tombstone') else row.word('status')}"
    epochs = f"epoch {before} to {after}" if None not in (before, after) else f"epoch {after if before is None else before}"
    message = (
        f"The coordinator log of {_id(row)} goes from {step} ({epochs}) "
        f"at offset {row.maybe('entry_offset')}: "
        f"no coordinator takes that step{_more(case)}"
    )
    return Explanation(message, details=_step_details(case), producer_epoch=row.maybe("producer_epoch"))


def _more(case: Case) -> str:
    return "" if case.hits == 1 else f" (the first of {case.hits})"


def _step_details(case: Case) -> dict[str, object]:
    row = case.row
    return {
        "from": row.text("previous_status"),
        "to": row.text("status"),
        "previous_epoch": row.maybe("previous_epoch"),
        "epoch": row.maybe("producer_epoch"),
        "reason": row.text("step_reason"),
        "entries": case.hits,
    }


def epoch(case: Case, _context: "Context") -> Explanation:
    """C04."""
    row = case.row
    if row.text("epoch_step") == "pid_change_epoch_not_zero":
        what = (
            f"changes from producer {row.maybe('previous_pid')} to {row.maybe('producer_id')} with epoch "
            f"{row.maybe('producer_epoch')} instead of 0"
        )
    else:
        verb = "falls" if row.text("epoch_step") == "regression" else "jumps"
        what = f"{verb} from epoch {row.maybe('previous_epoch')} to {row.maybe('producer_epoch')} for producer {row.maybe('producer_id')}"
    message = f"The coordinator log of {_id(row)} {what} at offset {row.maybe('entry_offset')}{_more(case)}"
    return Explanation(
        message, details={**_step_details(case), "epoch_step": row.text("epoch_step")}, producer_epoch=row.maybe("producer_epoch")
    )


def field(case: Case, _context: "Context") -> Explanation:
    """C08."""
    row = case.row
    changed = row.word("field_change")
    before, after = _field_values(row, changed)
    message = (
        f"The coordinator log of {_id(row)} changes {changed.replace('_', ' ')} from {before} to {after} at offset "
        f"{row.maybe('entry_offset')} ({row.text('previous_status')} to "
        f"{row.text('status')}), which that step must keep{_more(case)}"
    )
    return Explanation(message, details={**_step_details(case), "field": changed}, producer_epoch=row.maybe("producer_epoch"))


def _field_values(row: Row, changed: str) -> tuple[str, str]:
    if "partitions" in changed:
        return f"[{partitions(row.partitions('previous_partitions'))}]", f"[{partitions(row.partitions())}]"
    column = {"timeout": "timeout_ms", "start": "start_ms", "epoch": "producer_epoch"}.get(changed, changed)
    previous = {"producer_epoch": "previous_epoch"}.get(column, f"previous_{column}")
    return str(row.maybe(previous)), str(row.maybe(column))


def ghost(case: Case, _context: "Context") -> Explanation:
    """C09: names the entries that did not count, and where the coordinator really went on."""
    row = case.examples[-1].row
    lost = sorted({offset for example in case.examples for offset in _uncounted(example.row)})
    more = "at least " if case.hits > len(case.examples) else ""
    step = f"offset {row.maybe('entry_offset')} ({'tombstone' if row.flag('tombstone') else row.word('status')})"
    origin = row.maybe("origin_offset")
    before = "the state before them" if origin is None else f"offset {origin} ({row.word('origin_status')})"
    one = len(lost) == 1 and not more
    message = (
        f"{more}{count(len(lost), 'entry', 'entries')} of {_id(row)} in the coordinator log {'was' if one else 'were'} written "
        f"without being acknowledged in time and did not count "
        f"({'offset' if one else 'offsets'} {some([str(offset) for offset in lost])}): {step} goes on from {before}"
    )
    return Explanation(message, details={**_step_details(case), "uncounted": lost}, producer_epoch=row.maybe("producer_epoch"))


def _uncounted(row: Row) -> list[int]:
    """The entries that did not count; without a better explanation, the one before."""
    before = row.maybe("previous_offset")
    return row.numbers("uncounted") or ([before] if before is not None else [])


def transient(case: Case, _context: "Context") -> Explanation:
    """C11."""
    row = case.row
    message = (
        f"The entry of {_id(row)} at offset {row.maybe('entry_offset')} of the coordinator log has state {row.word('status')}, which "
        f"is never written{_more(case)}"
    )
    return Explanation(message, details=_step_details(case), producer_epoch=row.maybe("producer_epoch"))


def abort_cause(case: Case, _context: "Context") -> Explanation:
    """C12: aborts of one id by the server side, with the cause of the most recent ones."""
    row = case.row
    causes = [example.row.word("abort_cause") for example in case.examples]
    counted = {cause: causes.count(cause) for cause in sorted(set(causes))}
    cause = row.word("abort_cause")
    message = (
        f"{count(case.hits, 'transaction')} of {_id(row)} {'was' if case.hits == 1 else 'were'} aborted by the server side: "
        f"{CAUSES.get(cause, cause)}"
    )
    start, decided = row.maybe("start_ms"), row.maybe("decided_at_ms")
    ran = None if start is None or decided is None else decided - start
    return Explanation(
        f"{message}, {duration(ran)} after its start (timeout {duration(row.maybe('timeout_ms'))})",
        certainty=row.text("abort_cause_certainty") or "open",
        remedy=_cause_remedy(cause),
        details={
            "causes": counted,
            "ran_ms": ran,
            "timeout_ms": row.maybe("timeout_ms"),
            "alternatives": row.texts("abort_cause_alternatives"),
        },
        producer_epoch=row.maybe("data_epoch"),
    )


def _cause_remedy(cause: str) -> str:
    if cause == "fenced_by_init":
        return (
            "Nothing to repair; safe to leave. If two live instances share the id, give each its own; a restart of one instance "
            "looks the same and is right."
        )
    return (
        "Nothing to repair; safe to leave. Set transaction.timeout.ms above the longest outage to ride out (at most "
        "transaction.max.timeout.ms) and delivery.timeout.ms below it, "
        "so that the client gives up first; on ProducerFencedException close the producer and create a new one."
    )
