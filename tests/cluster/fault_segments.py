"""Faults of the log as a sequence of batches: bad checksums, offsets and leader epochs that go back, bytes that are no batch, headers that
do not fit themselves, segments that were not dumped, and keys that a cleaner takes for markers."""

import random
import re
from dataclasses import replace
from itertools import pairwise

from tests.cluster import printing
from tests.cluster.brokers import Log, Write
from tests.cluster.dumping import state_of
from tests.cluster.edits import Edit
from tests.cluster.listings import when_listed
from tests.cluster.planting import NONE, OPEN, VISIBLE, Planted, at_writes, edit_batch, index_of, pick, placed, rules, with_data
from tests.cluster.truth import Scene, Truth

# Where nothing behind an offset is judged its transactions are not either.
BEHIND = OPEN | VISIBLE | {"R04", "R07", "T02", "T07", "S01", "S04", "L04"}


def _pairs(scene: Scene) -> list[tuple[Log, Write, Write]]:
    """Two batches of a data log, one right behind the other, that all copies hold."""
    found = []
    for log in scene.world.data_logs:
        seen = [w for w in log.writes if scene.is_seen(log.place, w)]
        found += [(log, one, other) for one, other in pairwise(seen)]
    return found


def bad_checksum(scene: Scene, rng: random.Random) -> Planted | None:
    """A batch fails its checksum, and the log goes on behind it."""
    chosen = pick(rng, _pairs(scene))
    if chosen is None:
        return None
    log, write, _ = chosen
    edit_batch(scene, log, write, "isvalid: true", "isvalid: false")
    return at_writes(scene, Truth("bad_checksum", rules("R02"), BEHIND, log.place), [write], True, "a batch fails its checksum")


def offsets_back(scene: Scene, rng: random.Random) -> Planted | None:
    """A batch has the offsets of the one before it."""
    found = [
        (log, one, other)
        for log, one, other in _pairs(scene)
        if len(one.records) == len(other.records) and placed(scene, log, one).segment == placed(scene, log, other).segment
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, one, other = chosen
    back, batch = placed(scene, log, one).base, placed(scene, log, other)
    first = rf"^baseOffset: {batch.base} lastOffset: {batch.last}(?= )"
    ahead = batch.base - back

    def printed(text: str) -> str:
        text = re.sub(first, f"baseOffset: {back} lastOffset: {batch.last - ahead}", text, flags=re.MULTILINE)
        for offset in range(batch.base, batch.last + 1):
            text = re.sub(rf"^\| offset: {offset} ", f"| offset: {offset - ahead} ", text, flags=re.MULTILINE)
        return text

    state = scene.state(log.place)
    scene.plan.edits.append(Edit(f"{printing.name_of(state)}/{state.bases[batch.segment]:020d}.log.txt", printed))
    truth = Truth("offsets_back", rules("R03"), BEHIND, log.place, why=f"offset {back} stands twice")
    return Planted(replace(truth, offsets=(back, batch.last)))


def older_leader(scene: Scene, rng: random.Random) -> Planted | None:
    """Behind a batch of a newer leader the log goes on under older ones."""
    chosen = pick(rng, _pairs(scene))
    if chosen is None:
        return None
    log, write, other = chosen
    epoch = max(w.leader_epoch for w in log.writes) + 3
    edit_batch(scene, log, write, r"partitionLeaderEpoch: \d+", f"partitionLeaderEpoch: {epoch}")
    truth = Truth("older_leader", rules("R05"), frozenset({"R01"}), log.place)
    return at_writes(scene, truth, [write, other], True, f"a batch of leader epoch {epoch}")


def bytes_at_end(scene: Scene, rng: random.Random) -> Planted | None:
    """A closed segment ends with bytes that are no batch."""
    found = [(log, n) for log in scene.world.data_logs for n, _ in enumerate(scene.states[log.place].bases[:-1])]
    chosen = pick(rng, [(log, n) for log, n in found if any(batch.segment == n for batch in scene.states[log.place].batches)])
    if chosen is None:
        return None
    log, number = chosen
    state, more = scene.states[log.place], rng.randrange(1, 300)
    name = f"{state.bases[number]:020d}.log"
    said = f"Found {more} invalid bytes at the end of {name}\n"
    scene.plan.edits.append(Edit(f"{printing.name_of(state)}/{name}.txt", lambda text: text + said, more))
    # Of a running broker offsets may stand in them that the next segment does not go on from; where nobody cleans none are missing here.
    truth = Truth("bytes_at_end", rules("R06"), NONE, log.place, why=f"{more} bytes at the end of segment {state.bases[number]}")
    return Planted(replace(truth, decidable=state.cleaned_to is None))


def _listed(scene: Scene, log: Log) -> set[int]:
    """The bases of the segments that every listing of the log shows: it may be older than the dump."""
    copies = [copy for copy in scene.plan.copies if copy.place == log.place]
    listed = (replace(copy, moment=when_listed(scene.world, scene.plan, copy), lost_ms=0) for copy in copies)
    return set.intersection(*(set(state_of(scene.world, scene.plan, copy).bases) for copy in listed)) if copies else set()


def segment_left_out(scene: Scene, rng: random.Random) -> Planted | None:
    """A segment that the listing shows was not dumped."""
    found = [
        (log, number)
        for log in scene.world.data_logs
        for number, base in enumerate(scene.states[log.place].bases[:-1])
        if base in _listed(scene, log)
    ]
    chosen = pick(rng, found if scene.plan.listing else [])
    if chosen is None:
        return None
    log, number = chosen
    state = scene.states[log.place]
    scene.plan.edits.append(Edit(f"{printing.name_of(state)}/{state.bases[number]:020d}.log.txt", lambda _: None))
    truth = Truth("segment_left_out", (), BEHIND, log.place, why=f"segment {state.bases[number]}", tells=rules("R07"))
    return Planted(replace(truth, offsets=(state.bases[number], state.bases[number + 1] - 1)))


def odd_marker(scene: Scene, rng: random.Random) -> Planted | None:
    """A marker has sequence numbers."""
    chosen = pick(rng, list(with_data(scene)))
    if chosen is None:
        return None
    log, t = chosen
    marker = scene.markers(log, t)[0]
    edit_batch(scene, log, marker, "baseSequence: -1 lastSequence: -1", "baseSequence: 3 lastSequence: 3")
    truth = Truth("odd_marker", rules("P10"), frozenset({"S01"}), log.place, t.producer_id)
    return at_writes(scene, truth, [marker], True, f"sequences in the {t.decision} of transaction {t.number}")


def odd_batch(scene: Scene, rng: random.Random) -> Planted | None:
    """A batch has a producer and no sequence."""
    found = [
        (log, w)
        for log in scene.world.data_logs
        for w in log.writes
        if w.base_sequence >= 0 and w.marker is None and scene.is_seen(log.place, w)
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write = chosen
    odd = replace(write, base_sequence=-1)
    log.writes[index_of(log, write)] = odd
    # What it took of the sequences is missing behind it.
    may = frozenset({"P01", "P02", "P03", "P04", "P06", "P07", "S01"})
    return at_writes(
        scene, Truth("odd_batch", rules("P11"), may, log.place, write.producer_id), [odd], True, "a producer without a sequence"
    )


def marker_keys(scene: Scene, rng: random.Random) -> Planted | None:
    """Records of a compacted topic have the keys that the cleaner of 3.0 asks for when it looks for a marker (KAFKA-14055)."""
    found = []
    for log in scene.world.data_logs:
        if scene.states[log.place].cleaned_to is not None and any(w.is_transactional and scene.is_seen(log.place, w) for w in log.writes):
            found += [(log, w) for w in log.writes if w.marker is None and scene.is_seen(log.place, w)]
    # KIP-890 came with 4.0: no cluster with transaction.version 2 has brokers of 3.0.
    chosen = pick(rng, found if scene.world.shape.release == "3.9" else [])
    if chosen is None:
        return None
    log, write = chosen
    key = bytes((0, 0, 0, rng.randrange(2)))
    planted = replace(write, records=(replace(write.records[0], key=key), *write.records[1:]))
    log.writes[index_of(log, write)] = planted
    scene.plan.version = "3.0.1"
    manifest = scene.plan.dumped_at is not None and scene.world.shape.dump != "manifest_end"  # else nobody tells the version
    truth = (
        Truth("marker_keys", rules("X01"), NONE, log.place) if manifest else Truth("marker_keys", (), NONE, log.place, tells=rules("X01"))
    )
    # How far the cleaner came tells that there is one.
    return at_writes(scene, truth, [planted], scene.plan.checkpoints, f"a record with the key {key.hex()}")
