"""No faults: what Kafka does by itself and an audit tells as news. Nothing is changed; the life of the cluster has it, and it is told."""

import random
from dataclasses import replace

from tests.cluster.entries import ended, entries_of
from tests.cluster.planting import NONE, Planted, at_writes, index_of, pick, rules, with_data
from tests.cluster.truth import Scene, Truth


def repeated(scene: Scene, rng: random.Random) -> Planted | None:
    """A marker was sent twice, and nothing of its producer lies between."""
    found = []
    for log, t in with_data(scene):
        markers = scene.markers(log, t)
        if len(markers) > 1 and scene.is_named_by_epoch(t):
            between = log.writes[index_of(log, markers[0]) + 1 : index_of(log, markers[1])]
            if not any(w.producer_id == t.producer_id for w in between):
                found.append((log, t, markers))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, markers = chosen
    truth = Truth("repeated", (), NONE, log.place, t.producer_id, tells=rules("T09"))
    return at_writes(scene, truth, markers[1:2], True, f"the marker of transaction {t.number} was sent twice")


def running(scene: Scene, rng: random.Random) -> Planted | None:
    """A transaction is open when the brokers stop."""
    found = []
    for log in scene.world.data_logs:
        for t in scene.world.transactions:
            data = scene.data(log, t)
            if t.decision is None and data and all(scene.is_seen(log.place, w) for w in data) and scene.is_stopped(log, t):
                found.append((log, t))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t = chosen
    truth = Truth("running", (), NONE, log.place, t.producer_id, t.transactional_id, tells=rules("T12"))
    return at_writes(scene, truth, scene.data(log, t), True, f"transaction {t.number} is open")


def fenced(scene: Scene, rng: random.Random) -> Planted | None:
    """A transaction was ended by the server side: its timeout, or the next producer with its id."""
    found = [t for _, t, _ in ended(scene) if t.decision == "ABORT" and not t.is_tv2 and t.marker_epoch == t.epoch + 1]
    t = pick(rng, found)
    if t is None:
        return None
    truth = Truth("fenced", (), NONE, None, t.producer_id, t.transactional_id, tells=rules("C12"))
    return Planted(replace(truth, why=f"transaction {t.number} was not aborted by its client"))


def unacknowledged(scene: Scene, rng: random.Random) -> Planted | None:
    """A Prepare entry was written twice: the first append seemed to have failed."""
    found = []
    for t in scene.world.transactions:
        twice = scene.is_told(t) and any(len(entries_of(scene, t, status)) > 1 for status in ("PrepareCommit", "PrepareAbort"))
        if twice and not scene.world.shape.has("unheard_ghosts"):
            found.append(t)
    t = pick(rng, found)
    if t is None:
        return None
    truth = Truth("unacknowledged", (), NONE, None, t.producer_id, t.transactional_id, tells=rules("C09"))
    return Planted(replace(truth, why=f"two Prepare entries of transaction {t.number}"))


def slow(scene: Scene, rng: random.Random) -> Planted | None:
    """Markers reach their partitions more than five seconds behind the decision."""
    found = []
    for log, t, prepare in ended(scene):
        complete = [*entries_of(scene, t, "CompleteCommit"), *entries_of(scene, t, "CompleteAbort")][:1]
        same = complete and complete[0].leader_epoch == prepare.leader_epoch
        if same and complete[0].broker_ms - prepare.broker_ms > 5_200:
            found.append((log, t))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t = chosen
    # One slow partition delays all ids: the slowest transaction speaks for them.
    return Planted(Truth("slow", (), NONE, log.place, tells=rules("T14"), why=f"the markers of transaction {t.number} took seconds"))
