"""Faults of the offsets that groups commit in transactions: two owners of one partition, and an aborted offset that was applied."""

import random
from dataclasses import replace

from tests.cluster.brokers import Log, Transaction
from tests.cluster.groups import PLACE
from tests.cluster.planting import VISIBLE, Planted, at_writes, pick, rules
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
    # The group and the partition of the first one; what else the batch commits is no matter of two owners.
    record = replace(second.records[0], key=first.records[0].key)
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
    decidable = scene.can_count(log, t) and (t.is_tv2 or scene.is_stopped(log, t))
    log.writes = [replace(w, marker="COMMIT") if w.transaction is t and w.marker else w for w in log.writes]
    truth = Truth("applied_abort", rules("T06", "O01"), VISIBLE | {"T10", "O02"}, PLACE, t.producer_id, t.transactional_id)
    writes = [w for w in log.writes if w.transaction is t]
    return at_writes(scene, truth, writes, decidable, f"COMMIT where transaction {t.number} was decided ABORT")
