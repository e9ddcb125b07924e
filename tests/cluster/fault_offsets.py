"""Faults of the offsets that groups commit in transactions: two owners of one partition, an aborted offset that was applied, one that goes
back, one that is parked for ever, plain commits between those of transactions, and a transaction without offsets."""

import random
import re
from dataclasses import replace
from itertools import pairwise

from tests.cluster.brokers import OFFSETS, Log, Transaction, Write
from tests.cluster.entries import entries_of, rewritten
from tests.cluster.groups import PLACE
from tests.cluster.planting import NONE, OPEN, VISIBLE, Planted, at_writes, index_of, move, pick, rules, stamped
from tests.cluster.truth import Scene, Truth


def _commits(scene: Scene) -> list[tuple[Log, Transaction]]:
    """Ended transactions with a commit and markers that all copies of the log of offsets hold."""
    log = scene.world.logs.get(PLACE)
    if log is None:
        return []
    found = []
    for t in scene.world.transactions:
        writes = (*scene.data(log, t), *scene.markers(log, t))
        if scene.data(log, t) and scene.markers(log, t) and all(scene.is_seen(PLACE, w) for w in writes) and scene.is_told(t):
            found.append((log, t))
    return found


def unfenced_owner(scene: Scene, rng: random.Random) -> Planted | None:
    """Two producers process the same input of one group at the same time, and both commit it."""
    found = []
    committed = [(log, t) for log, t in _commits(scene) if t.decision == "COMMIT"]
    for log, one in committed:
        for _, other in committed:
            first, second, until = scene.data(log, one)[0], scene.data(log, other)[0], scene.markers(log, one)[0]
            at = [w for w in log.writes if w is first or w is second or w is until]
            if one.producer_id != other.producer_id and at == [first, second, until]:
                found.append((log, one, first, other, second))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, one, first, other, second = chosen
    # The group, the partition and the offset of the first one; what else the batch commits is no matter of two owners.
    record = replace(second.records[0], key=first.records[0].key, value=first.records[0].value)
    planted = replace(second, records=(record,), entry_sizes=first.entry_sizes)
    log.writes[next(n for n, w in enumerate(log.writes) if w is second)] = planted
    # Whose offset it was may have been further on already.
    truth = Truth("unfenced_owner", rules("O03"), frozenset({"O02"}), PLACE)
    return at_writes(scene, truth, [planted], True, f"transactions {one.number} and {other.number} commit {record.key!r} at the same time")


def applied_abort(scene: Scene, rng: random.Random) -> Planted | None:
    """The marker of an aborted transaction reads COMMIT where the group's offsets are."""
    chosen = pick(rng, [(log, t) for log, t in _commits(scene) if t.decision == "ABORT"])
    if chosen is None:
        return None
    log, t = chosen
    decidable = scene.can_count(log, t) and (scene.is_named_by_epoch(t) or scene.is_stopped(log, t))
    log.writes = [replace(w, marker="COMMIT") if w.transaction is t and w.marker else w for w in log.writes]
    truth = Truth("applied_abort", rules("T06", "O01"), VISIBLE | {"T10", "O02"}, PLACE, t.producer_id, t.transactional_id)
    writes = [w for w in log.writes if w.transaction is t]
    return at_writes(scene, truth, writes, decidable, f"COMMIT where transaction {t.number} was decided ABORT")


def _offset(write: Write) -> int:
    """What the first record of a batch of offsets commits."""
    found = re.search(rb'"offset":(\d+)', write.records[0].value or b"")
    assert found is not None
    return int(found[1])


def _neighbours(scene: Scene) -> list[tuple[Log, Transaction, Transaction]]:
    """Two committed transactions of a group, one right after the other: between them nobody joined it, and nobody committed plainly."""
    found = []
    committed = [(log, t) for log, t in _commits(scene) if t.decision == "COMMIT"]
    for name in sorted({t.transactional_id for _, t in committed}):
        mine = [(log, t) for log, t in committed if t.transactional_id == name]
        for (log, one), (_, other) in pairwise(mine):
            group = f'"group":"{name}-app"'.encode()
            between = log.writes[index_of(log, scene.markers(log, one)[0]) : index_of(log, scene.markers(log, other)[-1]) + 1]
            if not any(w.producer_id < 0 and group in (w.records[0].key or b"") for w in between):
                found.append((log, one, other))
    return found


def rewound(scene: Scene, rng: random.Random) -> Planted | None:
    """A transaction commits less of its input than the one before it had."""
    found = []
    for log, one, other in _neighbours(scene):
        last, later = scene.data(log, one)[-1], scene.data(log, other)
        if all(w.records[0].key == last.records[0].key for w in later):
            found.append((log, one, other, _offset(last)))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, one, other, reached = chosen
    again = rng.randrange(reached)
    changed = []
    for write in scene.data(log, other):
        value = re.sub(rb'"offset":\d+', b'"offset":%d' % again, write.records[0].value or b"")
        changed.append(replace(write, records=(replace(write.records[0], value=value), *write.records[1:])))
        log.writes[index_of(log, write)] = changed[-1]
    truth = Truth("rewound", rules("O02"), NONE, PLACE, other.producer_id, other.transactional_id)
    why = f"transaction {other.number} commits {again}, where transaction {one.number} had committed {reached}"
    return at_writes(scene, truth, changed, True, why)


def forgotten_offsets(scene: Scene, rng: random.Random) -> Planted | None:
    """Of many transactions with output and offsets one has no offsets: the application did not send them."""
    found = []
    for log, t in _commits(scene):
        mine = [other for other in scene.world.transactions if other.transactional_id == t.transactional_id and scene.is_told(other)]
        both = [other for other in mine if other.decision == "COMMIT" and PLACE in other.partitions]
        if t.decision == "COMMIT" and len(both) > 10:
            found.append((log, t))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t = chosen
    log.writes = [w for w in log.writes if w.transaction is not t]
    coordinator = scene.world.logs[scene.coordinator(t)]
    listed, size = (
        (r',\{"topic":"__consumer_offsets","partitionIds":\[0\]\}', 7)
        if scene.world.shape.release >= "4.1"
        else (",__consumer_offsets-0", 10)
    )
    for status in ("Ongoing", "PrepareCommit"):
        for write in entries_of(scene, t, status):
            if re.search(listed.encode(), write.records[0].value or b""):
                changed = rewritten(coordinator, write, listed, "")
                key, value = write.entry_sizes or (0, 0)
                fewer = replace(changed, entry_sizes=(key, value - size - len(OFFSETS)))
                at = index_of(coordinator, changed)
                coordinator.writes[at : at + 1] = [] if status == "Ongoing" else [fewer]
    truth = Truth("forgotten_offsets", (), NONE, None, t.producer_id, t.transactional_id, tells=rules("O04"))
    return Planted(replace(truth, why=f"transaction {t.number} commits no offsets"))


def parked_offsets(scene: Scene, rng: random.Random) -> Planted | None:
    """A TxnOffsetCommit of an old client arrives behind the marker of its last transaction: its offsets are parked for ever."""
    found = [
        (log, t)
        for log, t in _commits(scene)
        if not t.is_tv2 and t.marker_epoch == t.epoch and scene.listing(PLACE, t.producer_id)[-1] is t
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t = chosen
    at = scene.markers(log, t)[-1].at + rng.randrange(1, 40)
    if at > min(scene.plan.moments(PLACE)):
        return None
    write = stamped(scene, log, move(log, scene.data(log, t)[-1], at))
    truth = Truth("parked_offsets", rules("T01", "O05"), OPEN | {"T02", "T07"}, PLACE, t.producer_id, t.transactional_id)
    return at_writes(scene, truth, [write], scene.is_followed(log, at, t), f"offsets of transaction {t.number} stand behind its marker")


def plain_between(scene: Scene, rng: random.Random) -> Planted | None:
    """enable.auto.commit was left on: behind two transactions of a group the same offsets are committed plainly as well."""
    chosen = pick(rng, _neighbours(scene))
    if chosen is None:
        return None
    log, one, other = chosen
    planted = []
    for t in (one, other):
        marker, commit = scene.markers(log, t)[-1], scene.data(log, t)[-1]
        plain = replace(
            commit,
            **{name: getattr(marker, name) for name in ("at", "broker_ms", "leader_epoch")},
            producer_id=-1,
            epoch=-1,
            base_sequence=-1,
            transaction=None,
        )
        log.writes.insert(index_of(log, marker) + 1, plain)
        planted.append(plain)
    # The count goes on with each commit behind them, and the highest one speaks.
    truth = Truth("plain_between", rules("O06"), NONE, PLACE, why=f"plain commits behind transactions {one.number} and {other.number}")
    scene.offsets(PLACE, planted)
    return Planted(truth)
