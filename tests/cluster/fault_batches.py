"""Faults of batches: lost, repeated, of a fenced epoch, different on two replicas, unknown to the aborted index."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from tests.cluster.brokers import Log, Write
from tests.cluster.dumping import MOST_OF_A_SEGMENT
from tests.cluster.planting import NONE, Planted, at_writes, index_of, pick, rules, with_data
from tests.cluster.truth import Scene, Truth


def _numbered(scene: Scene) -> Iterator[tuple[Log, Write, list[Write]]]:
    """Data batches with sequence numbers, with those of the same producer and epoch behind them in the log."""
    for log in scene.world.data_logs:
        for write in log.writes:
            if write.marker is None and write.producer_id >= 0 and scene.is_seen(log.place, write):
                same = [w for w in log.writes if (w.producer_id, w.epoch) == (write.producer_id, write.epoch) and w.marker is None]
                at = next(n for n, w in enumerate(same) if w is write)
                yield log, write, [w for w in same[at + 1 :] if scene.is_seen(log.place, w)]


def lost_batch(scene: Scene, rng: random.Random) -> Planted | None:
    """A batch that a leader accepted is gone, and the next ones took its offsets (unclean election)."""
    return _lost(scene, rng, hole=False)


def hole(scene: Scene, rng: random.Random) -> Planted | None:
    """A batch is gone, and its offsets with it."""
    return _lost(scene, rng, hole=True)


def _lost(scene: Scene, rng: random.Random, *, hole: bool) -> Planted | None:
    found = [
        (log, write, after)
        for log, write, after in _numbered(scene)
        if after and write.base_sequence > 0 and not log.compacted and _has_predecessor(scene, log, write)
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write, after = chosen
    at = index_of(log, write)
    log.writes[at : at + 1] = [replace(write, lost=True)] if hole else []
    # In the only segment of a log the cleaner of a leader before it may have taken a batch: the newest segment is never cleaned again.
    is_rolled = scene.world.shape.has("segments") and sum(scene.is_seen(log.place, one) for one in log.writes) > MOST_OF_A_SEGMENT
    must, decidable = (rules("R04"), scene.plan.checkpoints and is_rolled) if hole else (rules("P04"), True)
    name = "hole" if hole else "lost_batch"
    truth = Truth(name, must, frozenset({"P04", "R04", "R07"}), log.place, None if hole else write.producer_id)
    planted = at_writes(
        scene, truth, after[:1], decidable, f"sequences from {write.base_sequence} of producer {write.producer_id} are lost"
    )
    return replace(planted, truth=replace(planted.truth, offsets=None)) if hole else planted


def lost_head(scene: Scene, rng: random.Random) -> Planted | None:
    """The first batch of a log is gone from its first segment, which has the name of that batch's first offset all the same."""
    found = [
        (log, write)
        for log in scene.world.data_logs
        for write in log.writes[:1]
        if write.marker is None and not log.compacted and scene.whole_head(log.place) and scene.is_seen(log.place, write)
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write = chosen
    log.writes[0] = replace(write, lost=True)
    # Of the aborted index and the snapshots nobody can tell then what they should be.
    truth = Truth("hole:head", rules("R04"), frozenset({"R04", "R07", "P07", "P04"}), log.place)
    return Planted(replace(truth, decidable=scene.plan.checkpoints, why=f"the batch of producer {write.producer_id} at offset 0 is lost"))


def _has_predecessor(scene: Scene, log: Log, write: Write) -> bool:
    same = [w for w in log.writes if (w.producer_id, w.epoch) == (write.producer_id, write.epoch) and w.marker is None]
    before = same[: next(n for n, w in enumerate(same) if w is write)]
    return bool(before) and scene.is_seen(log.place, before[-1])


def duplicate(scene: Scene, rng: random.Random) -> Planted | None:
    """A retry is appended a second time at once: the leader had forgotten the producer."""
    chosen = pick(rng, list(_numbered(scene)))
    if chosen is None:
        return None
    log, write, _ = chosen
    copy = replace(write)
    at = index_of(log, write)
    log.writes.insert(at + 1, copy)
    truth = Truth("duplicate:in_window", rules("P01"), frozenset({"P12"}), log.place, write.producer_id)
    return at_writes(scene, truth, [write, copy], True, f"sequences from {write.base_sequence} stand twice")


def old_duplicate(scene: Scene, rng: random.Random) -> Planted | None:
    """A batch is appended again five batches later or more, as the last one of its epoch."""
    found = [(log, write, after) for log, write, after in _numbered(scene) if len(after) >= 5 and _is_last(log, after[-1])]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write, after = chosen
    copy = replace(
        write, at=after[-1].at, broker_ms=after[-1].broker_ms, leader_epoch=after[-1].leader_epoch, transaction=after[-1].transaction
    )
    at = index_of(log, after[-1])
    log.writes.insert(at + 1, copy)
    truth = Truth("duplicate:late", rules("P02"), frozenset({"P12", "P04"}), log.place, write.producer_id)
    return at_writes(scene, truth, [write, copy], True, f"sequences from {write.base_sequence} come back")


def _is_last(log: Log, write: Write) -> bool:
    """No batch of its producer and epoch follows in the log, whether dumped or not."""
    same = [w for w in log.writes if (w.producer_id, w.epoch) == (write.producer_id, write.epoch) and w.marker is None]
    return same[-1] is write


def zombie(scene: Scene, rng: random.Random) -> Planted | None:
    """A fenced producer's batch is accepted behind one of the newer epoch."""
    found = []
    for log, write, _ in _numbered(scene):
        older = [
            w
            for w in log.writes
            if w.producer_id == write.producer_id and w.epoch < write.epoch and w.marker is None and scene.is_seen(log.place, w)
        ]
        found += [(log, write, older[-1])] if older else []
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write, stale = chosen
    late = replace(
        stale,
        at=write.at,
        broker_ms=write.broker_ms,
        leader_epoch=write.leader_epoch,
        base_sequence=stale.base_sequence + len(stale.records),
        records=tuple(replace(r, value=b"zombie", timestamp_ms=write.records[-1].timestamp_ms) for r in stale.records),
    )
    at = index_of(log, write)
    log.writes.insert(at + 1, late)
    # A marker that is sent again behind it ends it (T11).
    may = frozenset({"T10", "T11", "P04", "P06", "P07", "T02", "T07", "T15", "L02", "L03", "P03", "I05"})
    truth = Truth("zombie", rules("P05"), may, log.place, write.producer_id)
    return at_writes(scene, truth, [late], True, f"epoch {stale.epoch} behind epoch {write.epoch}")


def lost_index_entry(scene: Scene, rng: random.Random) -> Planted | None:
    """The aborted index of a segment lacks one transaction."""
    found = [(log, t) for log, t in with_data(scene) if t.decision == "ABORT"] if scene.plan.sidecars else []
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t = chosen
    entry = next((e for e in scene.states[log.place].aborted if e.last == scene.offsets(log.place, scene.markers(log, t)[:1])[0]), None)
    if entry is None:
        return None
    others = any(e.segment == entry.segment and e is not entry for e in scene.states[log.place].aborted)
    must = rules("S02", "L02") if scene.plan.stopped and entry.last < scene.states[log.place].lso else rules("S02")
    truth = Truth("lost_index_entry", must, frozenset({"L02", "S03"}), log.place, t.producer_id)
    why = f"no entry for the ABORT of transaction {t.number}"
    # An index that was dumped before its log lacks the newest entries as well.
    later = any(e.last > entry.last for e in scene.states[log.place].aborted)
    as_new = scene.plan.stopped or scene.plan.times or later
    cleaned = log.compacted and not scene.plan.checkpoints  # how far nobody knows, and data outlives its entries
    planted = at_writes(scene, truth, scene.data(log, t), as_new and not cleaned and (others or scene.plan.listing), why)
    return replace(planted, lost_index=frozenset({(log.place, t.number)}))


def fork(scene: Scene, rng: random.Random) -> Planted | None:
    """Two replicas have other records at the same offsets."""
    logs = [log for log in scene.world.data_logs if len(scene.copies(log.place)) > 1 and not log.compacted]
    found = [(log, w) for log in logs for w in log.writes if w.producer_id < 0]
    chosen = pick(rng, [(log, w) for log, w in found if scene.is_seen(log.place, w)])
    if chosen is None:
        return None
    log, write = chosen
    other = replace(write, records=tuple(replace(r, key=b"fork", value=b"of another leader") for r in write.records))
    copy = scene.copies(log.place)[-1]
    forked = replace(log, writes=[other if w is write else w for w in log.writes])
    scene.plan.forked[copy.place, copy.broker] = forked
    # Else nothing tells it from the end of a dead leader's log, which it cuts off when it comes back.
    settled = scene.plan.checkpoints or any(scene.is_seen(log.place, later) for later in log.writes[index_of(log, write) + 1 :])
    truth = Truth("fork", rules("R01"), NONE, log.place)
    return at_writes(scene, truth, [write], settled, f"the replica on broker {copy.broker} differs")


def wrong_stable_offset(scene: Scene, rng: random.Random) -> Planted | None:
    """An entry of the aborted index says that all was stable further on than it was: look-ups end at it, and miss the entry behind."""
    found = []
    for log in scene.world.data_logs if scene.plan.sidecars else []:
        state = scene.states[log.place]
        kept = max(state.log_start, state.cleaned_to or 0)
        entries = [entry for entry in state.aborted if entry.first >= kept]
        found += [(log, entry, other) for entry, other in pairwise(entries)]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, entry, missed = chosen
    scene.plan.stable[log.place, entry.last] = missed.last + 1
    truth = Truth("wrong_stable_offset", rules("S04"), frozenset({"L02"}), log.place)
    why = f"the entry of the ABORT at {entry.last} ends look-ups before {missed.last + 1}"
    # A follower that fetched all of it at once passes over what is the producer's own, up to where another one begins a transaction.
    behind = [batch.write for batch in scene.states[log.place].batches if batch.base == missed.last + 1]
    begins = any(write.transaction and scene.data(log, write.transaction)[:1] == [write] for write in behind)
    alike = entry.producer_id == missed.producer_id and (begins or not behind)
    return Planted(replace(truth, decidable=not alike, why=why))
