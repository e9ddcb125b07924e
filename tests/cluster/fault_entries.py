"""Faults of the coordinator's log: steps and values that no coordinator writes."""

import random
import re
from dataclasses import replace

from eo_audit.model.states import partition_for
from tests.cluster.brokers import COORDINATOR, Log, Record, Transaction, Write
from tests.cluster.coordinator import Entry, printed_entry
from tests.cluster.entries import appended, ended, entries_of, rewritten
from tests.cluster.planting import NONE, Planted, index_of, leader, pick, rules
from tests.cluster.truth import Scene, Truth


def skipped_entry(scene: Scene, rng: random.Random) -> Planted | None:
    """The Prepare entry is missing: Ongoing is followed by Complete."""
    chosen = pick(rng, list(ended(scene)))
    if chosen is None:
        return None
    log, t, write = chosen
    log.writes = [w for w in log.writes if w is not write]
    truth = Truth(
        "coordinator:skipped", rules("C03"), frozenset({"T05"}), None, None, t.transactional_id, why=f"no Prepare of transaction {t.number}"
    )
    return Planted(truth)


def changed_field(scene: Scene, rng: random.Random) -> Planted | None:
    """The Prepare entry has another timeout than the transaction."""
    chosen = pick(rng, list(ended(scene)))
    if chosen is None:
        return None
    log, t, write = chosen
    rewritten(log, write, r'(txnTimeoutMs=|"transactionTimeoutMs":)\d+', r"\g<1>61234")
    truth = Truth("coordinator:timeout", rules("C08"), NONE, None, None, t.transactional_id, why=f"timeout of transaction {t.number}")
    return Planted(truth)


def entry_epoch(scene: Scene, rng: random.Random) -> Planted | None:
    """The first Ongoing entry of a transaction has an epoch that lies below the one before it."""
    found = [(log, t) for log, t, _ in ended(scene) if t.epoch >= 2 and entries_of(scene, t, "Ongoing")]
    chosen = pick(rng, [(log, t) for log, t in found if _is_preceded(scene, log, t)])
    if chosen is None:
        return None
    log, t = chosen
    rewritten(log, entries_of(scene, t, "Ongoing")[0], r'(producerEpoch:|"producerEpoch":)\d+', rf"\g<1>{t.epoch - 2}")
    may = frozenset({"C08", "C03", "T01", "L01", "T02", "T05", "T06", "T07", "T13", "T15", "T10", "L02", "L03"})
    truth = Truth("coordinator:epoch", rules("C04"), may, None, t.producer_id, t.transactional_id, why=f"Ongoing of transaction {t.number}")
    return Planted(truth)


def _is_preceded(scene: Scene, log: Log, t: Transaction) -> bool:
    name = t.transactional_id.encode()
    mine = [w for w in log.writes if w.at < t.began_at and name in (w.records[0].key or b"")]
    # Where the head of the log is gone, an entry right behind what is left of it may go on from one that nobody sees (C09).
    least = 4 if log.first_offset or scene.world.shape.has("cleaned_coordinator") else 1
    return len(mine) >= least and all(scene.is_seen(log.place, entry) for entry in mine[-least:])


def second_completion(scene: Scene, rng: random.Random) -> Planted | None:
    """A transaction is completed once more, with another time."""
    found = [
        (log, t, w)
        for log, t, _ in ended(scene)
        for w in entries_of(scene, t, f"Complete{'Commit' if t.decision == 'COMMIT' else 'Abort'}")
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, write = chosen
    again = replace(write)
    log.writes.insert(index_of(log, write) + 1, again)
    rewritten(log, again, r'((?:txnLastUpdateTimestamp=|"transactionLastUpdateTimestampMs":)\d+)\d', rf"\g<1>{_last_digit(again, 7)}")
    scene.offsets(log.place, [log.writes[index_of(log, write) + 1]])
    return Planted(
        Truth("coordinator:twice", rules("C10"), NONE, None, t.producer_id, t.transactional_id, why=f"completion of transaction {t.number}")
    )


def _last_digit(write: Write, added: int) -> int:
    """Another last digit for the last update of an entry."""
    found = re.search(rb'(?:txnLastUpdateTimestamp=|"transactionLastUpdateTimestampMs":)\d*(\d)', write.records[0].value or b"")
    assert found is not None
    return (int(found[1]) + added) % 10


def deleted_id(scene: Scene, rng: random.Random) -> Planted | None:
    """A tombstone behind the first entry of an open transaction, with which the coordinator goes on all the same."""
    chosen = pick(rng, [(log, t, entries[-1]) for log, t, _ in ended(scene) if (entries := entries_of(scene, t, "Ongoing"))])
    if chosen is None:
        return None
    log, t, write = chosen
    key, value, sizes = printed_entry(t.transactional_id, None, scene.world.shape.release)
    tombstone = replace(write, records=(Record(key, value, write.records[0].timestamp_ms),), entry_sizes=sizes)
    log.writes.insert(index_of(log, write) + 1, tombstone)
    scene.offsets(log.place, [write, tombstone])
    # Nobody knows any more which partitions were listed, nor whose the markers are.
    may = frozenset({"C01", "T01", "L01", "T02", "T05", "T06", "T07", "T13", "T15", "T10", "L02", "L03"})
    return Planted(
        Truth("coordinator:deleted", rules("C14"), may, None, t.producer_id, t.transactional_id, why=f"tombstone in transaction {t.number}")
    )


def foreign_id(scene: Scene, rng: random.Random) -> Planted | None:
    """An entry of an id stands in another partition of the coordinator's log, too."""
    others = {log.place: [other for other in scene.world.coordinator_logs if other is not log] for log in scene.world.coordinator_logs}
    chosen = pick(rng, [(log, t) for log, t, _ in ended(scene) if others[log.place]])
    if chosen is None:
        return None
    home, t = chosen
    log = rng.choice(others[home.place])
    entry = Entry("Empty", t.producer_id, t.epoch, 60_000, None, leader(scene, log, t.began_at)[0], -1)
    appended(scene, log, t.began_at, t.transactional_id, entry)
    return Planted(Truth("coordinator:foreign", rules("C06"), NONE, None, t.producer_id, t.transactional_id, why=f"Empty in {log.place}"))


def twin(scene: Scene, rng: random.Random) -> Planted | None:
    """Another id gets a producer id that is in use."""
    chosen = pick(rng, [t for _, t, _ in ended(scene)])
    if chosen is None:
        return None
    name = f"twin-{rng.randrange(100)}"
    log = scene.world.logs[COORDINATOR, partition_for(name, scene.world.shape.coordinators)]
    entry = Entry("Empty", chosen.producer_id, 0, 60_000, None, leader(scene, log, chosen.began_at)[0], -1)
    appended(scene, log, chosen.began_at, name, entry)
    return Planted(Truth("coordinator:twin", rules("I01"), NONE, None, chosen.producer_id, why=f"{name} beside {chosen.transactional_id}"))


def foreign_batch(scene: Scene, rng: random.Random) -> Planted | None:
    """A tool that restores topics writes an entry of the coordinator's log once more, as an idempotent producer does."""
    found = [(log, write) for log in scene.world.coordinator_logs for write in log.writes if scene.is_seen(log.place, write)]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write = chosen
    copy = replace(write, producer_id=77_777, epoch=0, base_sequence=0)
    log.writes.insert(index_of(log, write) + 1, copy)
    truth = Truth("foreign_batch", rules("C15"), frozenset({"C03", "C08", "C10"}), log.place)
    return Planted(replace(truth, why="an entry stands there again, with a producer id"))
