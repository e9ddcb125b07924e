"""Faults of coordinators: transactions that they forget or never complete, clocks and leaders that go back, states that nobody writes,
timeouts that nobody may have, and outages that outlast the timeouts."""

import random
import re
from dataclasses import replace
from itertools import pairwise

from eo_audit.model.states import partition_for
from tests.cluster.brokers import Transaction, Write
from tests.cluster.clock import BEGIN_MS
from tests.cluster.coordinator import Coordinated
from tests.cluster.entries import cut_life, ended, entries_of, entries_with, rewritten
from tests.cluster.planting import HIGHEST_EPOCH, NONE, OPEN, Planted, edit_batch, index_of, pick, rules
from tests.cluster.producers import Client
from tests.cluster.truth import Scene, Truth

GONE = OPEN | {"O05", "T12"}  # what waits for a transaction that does not end
TIMEOUT = r'(txnTimeoutMs=|"transactionTimeoutMs":)\d+'
UPDATED = r'(txnLastUpdateTimestamp=|"transactionLastUpdateTimestampMs":)(\d+)'


def _waited(scene: Scene, t: Transaction, since: int) -> int:
    """How long before the dump of its coordinator's log something of a transaction was, in true time."""
    return min(scene.plan.moments(scene.coordinator(t))) - since


def _goes_on(scene: Scene, t: Transaction, until: int) -> bool:
    """Its coordinator still wrote entries of other ids then, and nobody's clock says otherwise: it was not stopped before."""
    log = scene.world.logs[scene.coordinator(t)]
    own = {id(write) for _, write in entries_with(scene, t.transactional_id)}
    agreed = not any(scene.world.shape.has(feature) for feature in ("clocks", "jumps", "steps", "leaps")) and scene.world.shape.is_complete
    return agreed and any(w.at > until for w in log.writes if id(w) not in own and scene.is_seen(log.place, w))


def forgotten(scene: Scene, rng: random.Random) -> Planted | None:
    """A coordinator does not look at a transaction any more: its producer died, and nobody ends it after its timeout."""
    found = []
    for _, t, _ in ended(scene):
        entry = entries_of(scene, t, "Ongoing")
        timeout = int(re.search(TIMEOUT.replace(r"\d+", r"(\d+)").encode(), entry[-1].records[0].value or b"")[2]) if entry else 0  # type: ignore[index]
        if entry and _waited(scene, t, t.began_at) > timeout + 15_000:
            found.append((t, timeout))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    t, timeout = chosen
    cut_life(scene, t.transactional_id, (t.decided_at or 0) - 1)
    for log in scene.world.logs.values():
        log.writes = [w for w in log.writes if not (w.transaction is t and w.marker)]
    for log, write in entries_with(scene, t.transactional_id):
        if write.at >= t.began_at and re.search(rb'state=Prepare|"transactionStatus":[23],', write.records[0].value or b""):
            log.writes = [w for w in log.writes if w is not write]
    truth = Truth("forgotten", rules("C01"), GONE, None, t.producer_id, t.transactional_id)
    return Planted(replace(truth, decidable=_goes_on(scene, t, t.began_at + timeout + 10_000), why=f"nobody ends transaction {t.number}"))


def never_completed(scene: Scene, rng: random.Random) -> Planted | None:
    """A partition never takes its marker: the transaction is decided and not completed, for more than a minute."""
    found = [(t, w) for _, t, w in ended(scene) if _waited(scene, t, t.decided_at or 0) > 75_000]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    t, _ = chosen
    cut_life(scene, t.transactional_id, t.decided_at or 0)
    truth = Truth("never_completed", rules("C02"), GONE | {"T05"}, None, t.producer_id, t.transactional_id)
    return Planted(
        replace(
            truth,
            decidable=_goes_on(scene, t, (t.decided_at or 0) + 70_000),
            why=f"the {t.decision} of transaction {t.number} never comes to an end",
        )
    )


def clock_set_back(scene: Scene, rng: random.Random) -> Planted | None:
    """The clock of a coordinator is minutes behind for one entry."""
    found = [(log, t, w[0]) for log, t, _ in ended(scene) if t.decision == "COMMIT" and (w := entries_of(scene, t, "CompleteCommit"))]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, write = chosen
    told = re.search(UPDATED.encode(), write.records[0].value or b"")
    assert told is not None
    changed = rewritten(log, write, UPDATED, rf"\g<1>{int(told[2]) - 400_000}")
    scene.offsets(log.place, [changed])
    # One leader is one clock: what it did to all ids is one case, and any of them speaks.
    return Planted(Truth("clock_set_back", rules("C05"), NONE, log.place, why=f"completion of transaction {t.number}"))


def long_timeout(scene: Scene, rng: random.Random) -> Planted | None:
    """The timeout of an id is two hours, where brokers allow 15 minutes."""
    name = _with_minute(scene, rng)
    if name is None:
        return None
    for log, write in entries_with(scene, name):
        rewritten(log, write, TIMEOUT, r"\g<1>7200000")
    # Only a manifest with the brokers' settings tells that nobody raised the limit.
    known = scene.plan.dumped_at is not None and scene.world.shape.dump != "manifest_end"
    truth = Truth("long_timeout", rules("C07") if known else (), NONE, None, tells=() if known else rules("C07"))
    return Planted(replace(truth, why=f"the timeout of {name}"))


def two_phase(scene: Scene, rng: random.Random) -> Planted | None:
    """An id whose transactions never time out (KIP-939)."""
    name = _with_minute(scene, rng)
    if name is None:
        return None
    for log, write in entries_with(scene, name):
        rewritten(log, write, TIMEOUT, r"\g<1>2147483647")
    return Planted(Truth("two_phase", (), NONE, tells=rules("C19"), why=f"the timeout of {name}"))


def _with_minute(scene: Scene, rng: random.Random) -> str | None:
    """An id with a timeout of a minute, of which the dump holds an entry."""
    names = sorted({t.transactional_id for t in scene.world.transactions})
    found = [n for n in names if any(scene.is_seen(log.place, w) and _is_minute(w) for log, w in entries_with(scene, n))]
    return pick(rng, found)


def _is_minute(write: Write) -> bool:
    return re.search(rb'txnTimeoutMs=60000|"transactionTimeoutMs":60000,', write.records[0].value or b"") is not None


def unknown_state(scene: Scene, rng: random.Random) -> Planted | None:
    """An entry with a state that only lives in memory, behind a completion."""
    found = [
        (log, t, w[-1])
        for log, t, _ in ended(scene)
        if (w := [*entries_of(scene, t, "CompleteCommit"), *entries_of(scene, t, "CompleteAbort")])
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, write = chosen
    again = replace(write)
    log.writes.insert(index_of(log, write) + 1, again)
    changed = rewritten(
        log, again, r"(state=|\"transactionStatus\":)(\w+)", lambda found: found[1] + ("Dead" if found[2].isalpha() else "6")
    )
    scene.offsets(log.place, [changed])
    truth = Truth("unknown_state", rules("C11"), frozenset({"C03", "C08", "C10"}), None, t.producer_id, t.transactional_id)
    return Planted(replace(truth, why=f"Dead behind transaction {t.number}"))


def older_coordinator(scene: Scene, rng: random.Random) -> Planted | None:
    """Behind an entry of a newer leader the coordinator's log goes on under older ones."""
    found = []
    for log in scene.world.coordinator_logs:
        seen = [w for w in log.writes if scene.is_seen(log.place, w)]
        found += [(log, w, other) for w, other in pairwise(seen)]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write, _ = chosen
    epoch = max(w.leader_epoch for w in log.writes) + 3
    edit_batch(scene, log, write, r"partitionLeaderEpoch: \d+", f"partitionLeaderEpoch: {epoch}")
    return Planted(Truth("older_coordinator", rules("C16"), frozenset({"R05", "R01"}), log.place, why=f"an entry of leader epoch {epoch}"))


def burned_epochs(scene: Scene, rng: random.Random) -> Planted | None:
    """A broker of 2.5 fences a producer with an epoch that lies four above (KAFKA-9666), and the producer never comes back."""
    found = [
        (log, t, w)
        for log, t, w in ended(scene)
        if t.decision == "ABORT"
        and not t.is_tv2
        and t.marker_epoch == t.epoch + 1
        and t.epoch + 4 < HIGHEST_EPOCH
        and entries_of(scene, t, "CompleteAbort")
    ]
    chosen = pick(rng, found if scene.world.shape.release == "3.9" and scene.plan.dumped_at else [])
    if chosen is None or scene.world.shape.dump == "manifest_end":
        return None
    log, t, prepare = chosen
    cut_life(scene, t.transactional_id, t.ended_at or 0)
    for write in (prepare, *entries_of(scene, t, "CompleteAbort")):
        rewritten(log, write, r"producerEpoch:\d+", f"producerEpoch:{t.epoch + 4}")
    for other in scene.world.marked_logs:
        other.writes = [replace(w, epoch=t.epoch + 4) if w.transaction is t and w.marker else w for w in other.writes]
    scene.plan.version = "2.5.1"
    return Planted(
        Truth("burned_epochs", rules("C13"), NONE, None, t.producer_id, t.transactional_id, why=f"fence of transaction {t.number}")
    )


def outage(scene: Scene, rng: random.Random) -> Planted | None:
    """A partition of the coordinator gets a leader again when the transactions of three ids have run out."""
    found = [(log, term.at) for log in scene.world.coordinator_logs for term in log.leadership.terms[1:] if term.at > BEGIN_MS + 2_000]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, back = chosen
    ends = []
    for number in range(3):
        name = next(n for k in range(1_000) if partition_for(n := f"batch-{number}-{k}", scene.world.shape.coordinators) == log.partition)
        ends.append(one_transaction(scene, rng, name, 600_000 + number, back - 1_500 + 20 * number))
    if max(ends) >= min(scene.plan.moments(log.place)):
        return None
    return Planted(Truth("outage", (), NONE, tells=rules("C17"), why=f"{log.place} has a new leader at {back}"))


def one_transaction(scene: Scene, rng: random.Random, name: str, producer_id: int, at: int) -> int:
    """A producer is born, writes a batch in its first transaction, and dies: the coordinator aborts it. Returns the end."""
    world = scene.world
    coordinator, client = Coordinated(world, name, False, 2_000, producer_id, rng), Client(world, name)
    place = rng.choice([log.place for log in world.data_logs])
    at = coordinator.empty(at) + 3
    transaction = Transaction(len(world.transactions), name, producer_id, 0, False, at)
    world.transactions.append(transaction)
    transaction.began_at = coordinator.ongoing(at, transaction, (place,))
    client.produce(transaction.began_at + 2, place, producer_id=producer_id, epoch=0, transaction=transaction)
    end = coordinator.end(coordinator.expires(transaction.began_at), transaction, "ABORT", raised=1)
    for log in world.logs.values():
        log.settle()
    return end
