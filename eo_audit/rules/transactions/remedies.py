"""What to do about a transaction that is open at the end of a log: wait for its end, or end it by hand."""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.coordinator.words import asked
from eo_audit.rules.owners import Owner, owner
from eo_audit.rules.transactions.words import begins_behind
from eo_audit.rules.waiting import ONGOING, frees_at_ms, whose
from eo_audit.words import NEVER_TIMES_OUT, moment, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

VERIFIES_FROM = (3, 6)  # Leaders ask the coordinator before they take what begins a transaction (KIP-890, part 1).


def wait(log: "Log", producer_id: int, context: "Context") -> str:
    """What to do about a transaction that the coordinator still holds open for this partition: never an abort by hand."""
    last = context.unfinished(log.cluster, producer_id)
    name = last.text("transactional_id") if last is not None else None
    if last is None or name is None:
        return "Wait: its owner or the coordinator will end it."
    decided = last.text("last_status") != ONGOING
    until, now = frees_at_ms(last, context.cluster(log.cluster)), context.now(log.cluster)
    if decided:
        return f"Wait: it is decided ({last.word('last_status')}) and the markers are being written. If that takes minutes, see C02."
    ask = f"Ask the owner of {shown(name)} to end its transaction"
    ask_it = f"What the coordinator says now: {asked(last, context)}. Do not abort it by hand: the coordinator still lists the partition."
    if last.maybe("timeout_ms") == NEVER_TIMES_OUT:
        return (
            f"Ask the system that decides the transactions of {shown(name)} (Flink, an XA manager) whether it commits or aborts, and let "
            "it: no timeout ends this one. Neither abort it with Kafka's tools nor restart its producer before: initTransactions() aborts "
            f"what may have been promised already. What the coordinator says now: {asked(last, context)}."
        )
    holder = owner(name)
    if holder.family == "flink":
        return f"{by_flink(holder, until, now)} {ask_it}"
    if until is None:
        return f"{ask}, or restart it: initTransactions() aborts what is open. {ask_it}"
    if now is not None and until < now:
        late = f"The coordinator should have aborted it at {moment(until, now)} (C01)."
        return f"{ask}, or restart it: initTransactions() aborts what is open. {late} {ask_it}"
    return (
        f"{ask}, or restart it: initTransactions() aborts what is open, the records of this transaction with it. Or wait: "
        f"the coordinator aborts it at {moment(until, now)} at the latest. {ask_it}"
    )


def by_flink(holder: Owner, until: int | None, now: int | None) -> str:
    """What to do about an open transaction of Flink, which commits at its next start what waits for a commit: how long that is possible."""
    if until is not None and now is not None and until < now:
        return f"{holder.first}. The coordinator should have aborted it at {moment(until, now)} (C01)."
    first = f"If the Flink job is down: {holder.first[0].lower()}{holder.first[1:]}."
    return first if until is None or now is None else f"{first} The coordinator aborts it at {moment(until, now)}: then {holder.lost}."


def abort(log: "Log", row_offset: int, producer_id: int, context: "Context") -> str:
    """How to end a hanging transaction by hand. Only for one that hangs (`Context.hangs`).

    That is never said where the dumps of this log and of the coordinator's may end at different moments: `open_transactions` calls such a
    fate unknown, so no finding is made that this would have to hedge.
    """
    topic, partition, version = log.topic or "", log.partition or 0, context.version(log.cluster)
    start = began_at(log, row_offset, producer_id, context)
    hanging = _named(log, start, producer_id, context)
    check = f"{_keep_out(log, producer_id, context)} Check that it is still open: {commands.describe_producers(topic, partition, version)}."
    command = commands.abort_for(topic, partition, hanging, version)
    by_hand = f"Then abort it{_or_now(start, row_offset)}: {command}.{_blanks(hanging, log, context)}"
    if context.lost_commit(log, producer_id):
        late = "" if begins_behind(log, producer_id, context) is None else ", unless they came late (T02),"
        return (
            f"Not safe yet{late or ':'} the coordinator committed these records, and an abort loses them. {check} {_again('them', topic)} "
            f"{by_hand} Safe then: the coordinator has completed the transaction and will not send the lost COMMIT again."
        )
    if context.lost_marker(log, producer_id):
        return (
            f"{check} {by_hand} Safe now as far as the dumps show: that is what the coordinator decided, and it has completed the "
            "transaction and will not send the lost ABORT again."
        )
    return (
        f"{check} The abort loses what should have been committed. {_again('that', topic)} {by_hand} Safe then as far as the dumps "
        f"show: the coordinator does not list this partition, so it will not end it. {_prevents(log, context)}"
    )


def began_at(log: "Log", row_offset: int, producer_id: int, context: "Context") -> int:
    """Where the broker says that it began, which its tool finds it by (`open_transactions`)."""
    fate = context.fates.get((log.log_id, producer_id))
    return row_offset if fate is None else fate.number("began_at", row_offset)


def _or_now(start: int, row_offset: int) -> str:
    """A broker that has rebuilt its producers from what is left of the log since says where that begins."""
    if start == row_offset:
        return ""
    return f" (it began at offset {start}, before the dumps begin; if the broker prints another start offset, type that)"


def _again(what: str, topic: str) -> str:
    """How to save what an abort loses: with the same id the COMMIT of the new copies would end the hanging records, too."""
    if topic == "__consumer_offsets":
        return "Write those offsets down, and set them after the abort, before the group starts."
    return f"Publish {what} again first, with another transactional.id (or copy now, and publish the copy with any id after the abort)."


def _keep_out(log: "Log", producer_id: int, context: "Context") -> str:
    """Why its producer must not go on before the abort: the next marker of any epoch ends all that is open of it in a partition (T15)."""
    last = context.last_of_producer.get((log.cluster, producer_id))
    who = whose(last.text("transactional_id") if last is not None else None, producer_id)
    return f"Keep {who} stopped until the abort: its next marker here ends these records too, and a COMMIT makes them visible."


def _prevents(log: "Log", context: "Context") -> str:
    """What keeps the next late write out: a leader that asks the coordinator first (KIP-890, from 3.6), or an epoch of its own for each
    transaction (transaction.version=2)."""
    version = context.version(log.cluster)
    if version is None or version < VERIFIES_FROM:
        return "Upgrade brokers to 3.6 or later, or use transaction.version=2, to prevent the next one."
    first = "" if version >= (4, 0) else "upgrade to 4.0 or later and "
    more = "" if context.cluster(log.cluster).maybe("transaction_version") == 2 else f", or {first}use transaction.version=2"
    return f"To prevent the next one see that `transaction.partition.verification.enable` is true on all brokers{more}."


def _named(log: "Log", row_offset: int, producer_id: int, context: "Context") -> commands.Hanging:
    """The transaction as an old broker wants it named: from transaction_spans (or visibility), and from the coordinator's newest decision,
    else the producer's newest marker here."""
    span = context.open_spans.get((log.log_id, producer_id))
    holds = log.numbers.maybe("blocker_producer_id") == producer_id
    epoch = span.maybe("last_epoch") if span else log.numbers.maybe("blocker_epoch") if holds else None
    return commands.Hanging(row_offset, producer_id, epoch, _coordinator_epoch(log, producer_id, context)[0])


def _coordinator_epoch(log: "Log", producer_id: int, context: "Context") -> tuple[int | None, str]:
    """The newest epoch of a coordinator of this producer that the tables hold, and where it stands."""
    last, marker = context.last_of_producer.get((log.cluster, producer_id)), context.newest_markers.get((log.log_id, producer_id))
    epochs = [last.maybe(f"{end}_leader_epoch") for end in ("prepare", "complete")] if last else []
    decided = max((epoch for epoch in epochs if epoch is not None), default=None)
    if decided is not None or marker is None:
        return decided, "the leader epoch of the producer's newest decision (table transaction_instances)"
    # A leader takes a marker of the same coordinator epoch again (`ProducerAppendInfo.checkCoordinatorEpoch`).
    return marker.maybe("marker_coordinator_epoch"), f"that of the producer's newest marker here, at offset {marker.maybe('base_offset')}"


# A variable of the shell that is empty would be a command without its argument.
def _blanks(hanging: commands.Hanging, log: "Log", context: "Context") -> str:
    """Where the coordinator epoch of the command comes from, or where to read what the tables do not tell."""
    if not commands.names_producer(context.version(log.cluster)):
        return ""
    producer_id = hanging.producer_id
    words = (
        f" The coordinator epoch is {_coordinator_epoch(log, producer_id, context)[1]}."
        if hanging.coordinator_epoch is not None
        else f" $COORDINATOR_EPOCH is the coordinatorEpoch of the newest marker of producer {producer_id} in the dump of this partition, "
        "0 if it has none."
    )
    epoch = f" $PRODUCER_EPOCH is that of the newest batch of producer {producer_id}." if hanging.producer_epoch is None else ""
    return words + epoch
