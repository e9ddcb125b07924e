"""Faults of identities: ids that are initialised again and again, made up anew at each start, given another producer id, or locked out."""

import random

from tests.cluster.clock import BEGIN_MS
from tests.cluster.coordinator import Entry
from tests.cluster.entries import Told, appended, last_entries
from tests.cluster.fault_coordinators import one_transaction
from tests.cluster.planting import NONE, Planted, pick, rules
from tests.cluster.truth import Scene, Truth

DEAD_IDS = 6  # more than half of all where a cluster has three others


def _ended_ids(scene: Scene, room_ms: int) -> list[tuple[str, Told]]:
    """Ids that are done with all of their transactions some time before the dumps."""
    found = []
    for name, told in last_entries(scene):
        room = min(scene.plan.moments(told.log.place)) - told.write.at
        if told.status in ("CompleteCommit", "CompleteAbort") and room > room_ms and told.epoch < 30_000:
            found.append((name, told))
    return found


def storm(scene: Scene, rng: random.Random) -> Planted | None:
    """Two instances with one id fence each other: it is initialised six times within a second."""
    chosen = pick(rng, _ended_ids(scene, 1_500))
    if chosen is None:
        return None
    name, told = chosen
    for number in range(6):
        at = told.write.at + 150 * (number + 1)
        _empty(scene, name, told, at, producer_id=told.producer_id, epoch=told.epoch + number + 1, timeout_ms=told.timeout_ms)
    return Planted(Truth("storm", rules("I05"), NONE, None, told.producer_id, name, why=f"{name} is initialised six times"))


def another_producer_id(scene: Scene, rng: random.Random) -> Planted | None:
    """The coordinator has forgotten an id that is in use, and gives it another producer id."""
    chosen = pick(rng, _ended_ids(scene, 500))
    if chosen is None:
        return None
    name, told = chosen
    _empty(scene, name, told, told.write.at + 275, producer_id=told.producer_id + 500_000, epoch=0, timeout_ms=told.timeout_ms)
    return Planted(Truth("another_producer_id", rules("I02"), NONE, None, told.producer_id, name, why=f"{name} gets another producer id"))


def locked_out(scene: Scene, rng: random.Random) -> Planted | None:
    """Admin.fenceProducers of a release up to 3.7.0 locks the producers of an id out."""
    chosen = pick(rng, _ended_ids(scene, 500))
    if chosen is None:
        return None
    name, told = chosen
    _empty(scene, name, told, told.write.at + 275, producer_id=told.producer_id, epoch=told.epoch + 1, timeout_ms=1)
    return Planted(Truth("locked_out", (), NONE, None, tells=rules("C18"), why=f"{name} is fenced by an administrator"))


def _empty(scene: Scene, name: str, told: Told, at: int, *, producer_id: int, epoch: int, timeout_ms: int) -> None:
    entry = Entry("Empty", producer_id, epoch, timeout_ms, None, scene.world.clock(told.log.place, at), -1)
    appended(scene, told.log, at, name, entry)


def churn(scene: Scene, rng: random.Random) -> Planted | None:
    """Ids are made up anew at each start: six of them die in their first transaction."""
    begins = BEGIN_MS + rng.randrange(500, 2_000)
    ends = [
        one_transaction(scene, rng, f"report-{rng.randrange(16**6):06x}", 500_000 + number, begins + 300 * number)
        for number in range(DEAD_IDS)
    ]
    if max(ends) >= min(copy.moment for copy in scene.plan.copies):
        return None
    return Planted(Truth("churn", rules("I07"), NONE, why=f"{DEAD_IDS} ids die in their first transaction"))
