"""Faults between decisions and markers: commits of nothing, markers that nobody decided or an old coordinator sent, epochs that no protocol
gives, an operator's abort, and a hanging transaction of which DeleteRecords took the beginning."""

import random
from collections.abc import Iterator
from dataclasses import replace

from tests.cluster.brokers import Log, Record, Transaction, Write
from tests.cluster.planting import (
    HIGHEST_EPOCH,
    NONE,
    OPEN,
    VISIBLE,
    Planted,
    at_writes,
    index_of,
    insert,
    leader,
    move,
    pick,
    placed,
    rules,
    stamped,
    with_data,
)
from tests.cluster.truth import Scene, Truth

MANY = 10  # commits of nothing, before anybody is told


def _last_in_log(scene: Scene) -> Iterator[tuple[Log, Transaction, Write]]:
    """Transactions behind whose only marker the producer writes nothing more to the log."""
    for log, t in with_data(scene):
        mine = [w for w in log.writes if w.producer_id == t.producer_id]
        if len(scene.markers(log, t)) == 1 and mine[-1] is scene.markers(log, t)[0] and scene.listing(log.place, t.producer_id)[-1] is t:
            yield log, t, mine[-1]


def empty_commits(scene: Scene, rng: random.Random) -> Planted | None:
    """A client gives its records up and commits all the same, again and again: from some transaction on nothing of it stands in the log."""
    found = []
    for log, t in with_data(scene):
        row = scene.listing(log.place, t.producer_id)
        after = [other for other in row[row.index(t) + 1 :] if other.decision == "COMMIT" and scene.is_told(other)]
        once = [other for other in after if len(scene.markers(log, other)) == 1 and scene.is_seen(log.place, scene.markers(log, other)[0])]
        if len(once) > MANY:
            found.append((log, t, row[row.index(t) + 1 :], once))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, after, once = chosen
    gone = {id(w) for other in after for w in scene.data(log, other)}
    log.writes = [w for w in log.writes if id(w) not in gone]
    truth = Truth("empty_commits", (), NONE, log.place, t.producer_id, tells=rules("T03"))
    decidable = all(scene.is_named_by_epoch(other) for other in once) or scene.can_count(log, t)
    return at_writes(scene, truth, [scene.markers(log, other)[0] for other in once], decidable, f"no data behind transaction {t.number}")


def invented_marker(scene: Scene, rng: random.Random) -> Planted | None:
    """Behind a producer's last marker stands one with an epoch that no transaction of it ever had."""
    chosen = pick(rng, list(_last_in_log(scene)))
    if chosen is None:
        return None
    log, t, marker = chosen
    # With transaction.version 2 each transaction has an epoch of its own.
    highest = max(other.marker_epoch or other.epoch for other in scene.world.transactions if other.producer_id == t.producer_id)
    if highest + 7 > HIGHEST_EPOCH:
        return None
    planted = replace(marker, epoch=highest + 7, marker="COMMIT")
    log.writes.insert(index_of(log, marker) + 1, planted)
    truth = Truth("invented_marker", rules("T04"), frozenset({"T10"}), log.place, t.producer_id)
    decidable = scene.is_followed(log, marker.at, t)
    return at_writes(scene, truth, [planted], decidable, f"a COMMIT of epoch {planted.epoch} behind transaction {t.number}")


def old_coordinator(scene: Scene, rng: random.Random) -> Planted | None:
    """A marker was sent by a coordinator that had been replaced."""
    found = []
    for log, t in with_data(scene):
        markers = [w for w in log.writes if w.marker and w.producer_id == t.producer_id and scene.is_seen(log.place, w)]
        mine = scene.markers(log, t)
        before = [w.coordinator_epoch for w in markers[: next((n for n, w in enumerate(markers) if w is mine[0]), 0)]]
        if before and max(before) > 0 and len(mine) == 1:
            found.append((log, t, mine[0], max(before)))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, marker, highest = chosen
    planted = replace(marker, coordinator_epoch=highest - 1)
    log.writes[index_of(log, marker)] = planted
    truth = Truth("old_coordinator", rules("T08"), NONE, log.place, t.producer_id)
    return at_writes(scene, truth, [planted], True, f"coordinator epoch {highest - 1} ends transaction {t.number}, behind {highest}")


def far_epoch(scene: Scene, rng: random.Random) -> Planted | None:
    """A COMMIT has an epoch that lies three above that of its data."""
    found = [(log, t, marker) for log, t, marker in _last_in_log(scene) if t.decision == "COMMIT" and t.epoch + 3 <= HIGHEST_EPOCH]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, marker = chosen
    planted = replace(marker, epoch=t.epoch + 3)
    log.writes[index_of(log, marker)] = planted
    # Whose marker it is nobody knows: the transaction has none, and this one no decision.
    may = frozenset({"T04", "T05"}) | OPEN
    truth = Truth("far_epoch", rules("T10"), may, log.place, t.producer_id, t.transactional_id)
    return at_writes(scene, truth, [*scene.data(log, t), planted], True, f"the COMMIT of transaction {t.number} has epoch {t.epoch + 3}")


def lost_end(scene: Scene, rng: random.Random) -> Planted | None:
    """The last marker of a producer in a log is lost."""
    chosen = pick(rng, list(_last_in_log(scene)))
    if chosen is None:
        return None
    log, t, marker = chosen
    decidable = scene.can_count(log, t) and scene.is_stopped(log, t)
    log.writes = [w for w in log.writes if w is not marker]
    truth = Truth("lost_end", rules("T05"), OPEN | VISIBLE, log.place, t.producer_id, t.transactional_id)
    return at_writes(scene, truth, scene.data(log, t), decidable, f"the {t.decision} of transaction {t.number} is missing")


def lost_abort(scene: Scene, rng: random.Random) -> Planted | None:
    """An ABORT is lost, and the COMMIT of the next transaction takes its data along."""
    found = []
    for log, t in with_data(scene):
        row = scene.listing(log.place, t.producer_id)
        after = row[row.index(t) + 1 :][:1]
        taken = after and after[0].decision == "COMMIT" and after[0].epoch == t.epoch and scene.data(log, after[0])
        if t.decision == "ABORT" and taken and t.marker_epoch == t.epoch and scene.is_told(after[0]):
            found.append((log, t))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t = chosen
    decidable = scene.can_count(log, t) and scene.is_stopped(log, t) and not scene.has_empty(log, t)
    writes, markers = scene.data(log, t), {id(w) for w in scene.markers(log, t)}
    log.writes = [w for w in log.writes if id(w) not in markers]
    # Where the records have times of their own, or the coordinator's clock is another, nothing but the count of markers tells: its
    # data may all be the next transaction's.
    shape = scene.world.shape
    own_times = shape.has_clocks_apart or shape.has("client_clocks") or shape.has("event_times")
    found_by = rules("T15|T05") if own_times else rules("T15")
    truth = Truth("lost_abort", found_by, OPEN | VISIBLE | {"T02"}, log.place, t.producer_id, t.transactional_id)
    planted = at_writes(scene, truth, writes, decidable, f"the ABORT of transaction {t.number} is missing")
    # Of equal ABORTs in a row any may be the one that is missing.
    return replace(planted, truth=replace(planted.truth, offsets=None))


def _hanging(scene: Scene, rng: random.Random) -> tuple[Log, Transaction, Write] | None:
    """A produce request of an old client that arrived behind the last marker of its producer in the log (KAFKA-14402)."""
    found = [
        (log, t, marker)
        for log, t, marker in _last_in_log(scene)
        if not t.is_tv2 and t.marker_epoch == t.epoch and len(scene.data(log, t)) > 1
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, marker = chosen
    at = marker.at + rng.randrange(1, 40)
    if at + 500 > min(scene.plan.moments(log.place)):
        return None
    return log, t, stamped(scene, log, move(log, scene.data(log, t)[-1], at))


def ended_by_hand(scene: Scene, rng: random.Random) -> Planted | None:
    """A write that came late hung, and an operator aborted it with kafka-transactions.sh."""
    hanging = _hanging(scene, rng)
    if hanging is None:
        return None
    log, t, write = hanging
    at = write.at + 400
    stamp, leader_epoch = leader(scene, log, at)
    marker = Write(
        at, stamp, leader_epoch, (Record(None, None, stamp),), t.producer_id, t.epoch, marker="ABORT", coordinator_epoch=0, transaction=t
    )
    insert(log, marker)
    # The write was late, whatever became of it, and where its transaction was committed it is hidden now.
    truth = Truth("ended_by_hand", (), frozenset({"T02", "T04", "T07", "T08", "L03"}), log.place, t.producer_id, tells=rules("T13"))
    return at_writes(scene, truth, [write, marker], scene.is_followed(log, at, t), f"a late write of transaction {t.number} was aborted")


def deleted_head(scene: Scene, rng: random.Random) -> Planted | None:
    """DeleteRecords took the first records of a transaction that hangs: the last stable offset stands at the log start."""
    hanging = _hanging(scene, rng)
    if hanging is None:
        return None
    log, t, write = hanging
    batch = placed(scene, log, write)
    later = [w for w in log.writes if w.at > write.at and scene.is_seen(log.place, w)]
    if not later or not scene.plan.checkpoints:
        return None
    scene.plan.deleted_to[log.place] = batch.last + 1
    may = OPEN | VISIBLE | {"T02", "T07", "P07"}
    # Of several whose heads are deleted the oldest one speaks, whose that may be.
    truth = Truth("deleted_head", rules("L04"), may, log.place)
    # What is deleted tells no more how many markers there were.
    decidable = scene.is_stopped(log, t)
    return Planted(replace(truth, decidable=decidable, why=f"the late write of transaction {t.number} lies below the log start"))
