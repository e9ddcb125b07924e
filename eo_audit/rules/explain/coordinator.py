"""Words for the coordinator rules (C)."""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.words import count, duration, partitions, shown

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
    """C01: open past the timeout, two scans and the tolerance for clocks; never for a two-phase transaction."""
    if case.log is not None and not case.log.ends_here:
        return None
    row = case.row
    cluster = context.cluster(row.word("cluster"))
    now, start, timeout = cluster.maybe("as_of_ms"), row.maybe("start_ms"), row.maybe("timeout_ms")
    if now is None or start is None or start < 0 or timeout is None or timeout == NEVER_TIMES_OUT:
        return None
    over = now - start - timeout - 2 * cluster.number("abort_scan_interval_ms", 10_000) - cluster.number("skew_ms", 2_000)
    if over <= 0:
        return None
    blocks = context.blocks(row.word("cluster"), row.number("producer_id"))
    stopped = 0 < context.newest_ms(row.word("cluster")) < now - over
    message = (
        f"The transaction of {_id(row)} (producer {row.maybe('producer_id')}) has been Ongoing for {duration(now - start)} with a "
        f"timeout of {duration(timeout)}"
        f"{f': it holds back {partitions(blocks)}' if blocks else ''}"
        f"{'; no broker wrote anything after its deadline, so the brokers may have been stopped before it' if stopped else ''}"
    )
    return Explanation(
        message,
        severity="critical" if blocks else "error",
        certainty="likely" if stopped or cluster.text("as_of_source") == "newest_broker_clock" else "definite",
        remedy=_init_remedy(row),
        details={"open_for_ms": now - start, "timeout_ms": timeout, "partitions": [f"{t}-{p}" for t, p in row.partitions()]},
        producer_epoch=row.maybe("data_epoch"),
    )


def _init_remedy(row: Row) -> str:
    return (
        f"Start a producer with transactional.id {_id(row)} and call initTransactions(): the coordinator then aborts the "
        f"transaction on every partition. Safe now. "
        f"See first what the coordinator says: {commands.describe(row.text('transactional_id') or '')}. If it does not answer, move "
        f"the leader of "
        f"__transaction_state-{row.maybe('coordinator_partition')}: {commands.describe_topic('__transaction_state')}. "
        "Do not use the abort tool: the coordinator still lists the partitions."
    )


def stuck(case: Case, context: "Context") -> Explanation | None:
    """C02: a decision without its completion for more than a minute."""
    if case.log is not None and not case.log.ends_here:
        return None
    row = case.row
    cluster = context.cluster(row.word("cluster"))
    now, decided = cluster.maybe("as_of_ms"), row.maybe("decided_at_ms")
    waiting = None if now is None or decided is None else now - decided
    if waiting is None or waiting <= PREPARE_WARNING_MS:
        return None
    lacking = context.unmarked.get(row.word("instance_id"), ())
    lacks = f"; {partitions(lacking)} {'lacks' if len(lacking) == 1 else 'lack'} the marker" if lacking else ""
    message = (
        f"The transaction of {_id(row)} (producer {row.maybe('producer_id')}) was decided ({row.word('last_status')}) "
        f"{duration(waiting)} ago and never completed{lacks}"
    )
    return Explanation(
        message,
        severity="error" if waiting > PREPARE_ERROR_MS else "warning",
        certainty="likely" if cluster.text("as_of_source") == "newest_broker_clock" else "definite",
        remedy=_stuck_remedy(row, lacking or tuple(row.partitions())),
        details={
            "waiting_ms": waiting,
            "lacking": [f"{t}-{p}" for t, p in lacking],
            "partitions": [f"{t}-{p}" for t, p in row.partitions()],
        },
        producer_epoch=row.maybe("marker_epoch"),
    )


def _stuck_remedy(row: Row, lacking: tuple[tuple[str, int], ...]) -> str:
    topics = "; ".join(commands.describe_topic(topic) for topic in sorted({topic for topic, _ in lacking})[:3])
    return (
        f"Make the partitions {partitions(lacking)} available again ({topics}), then let the coordinator load the transaction "
        f"again: restart or move the leader of "
        f"__transaction_state-{row.maybe('coordinator_partition')}. It sends the markers by itself. "
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
    """C09."""
    row = case.row
    message = (
        f"{count(case.hits, 'entry', 'entries')} of {_id(row)} in the coordinator log {'was' if case.hits == 1 else 'were'} written "
        f"without being acknowledged in time "
        f"({row.text('previous_status')} then {row.text('status')} at offset {row.maybe('entry_offset')}): only the last of such a "
        f"run counts"
    )
    return Explanation(message, details=_step_details(case), producer_epoch=row.maybe("producer_epoch"))


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
