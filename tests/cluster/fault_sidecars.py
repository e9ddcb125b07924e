"""Faults of the files beside a log: an aborted index and producer snapshots that say something else than the log, or are damaged."""

import random
import re
from dataclasses import replace

from tests.cluster import printing
from tests.cluster.brokers import Log
from tests.cluster.edits import Edit
from tests.cluster.planting import NONE, Planted, edit_file, pick, placed, rules, with_data
from tests.cluster.replay import Aborted, Producer, State
from tests.cluster.truth import Scene, Truth


def _indexed(scene: Scene) -> list[tuple[Log, State, Aborted]]:
    """Entries of aborted indexes whose transactions stand in the log."""
    found = []
    for log in scene.world.data_logs if scene.plan.sidecars else []:
        state = scene.states[log.place]
        kept = max(state.log_start, state.cleaned_to or 0)
        found += [(log, state, entry) for entry in state.aborted if entry.first >= kept]
    return found


def _entry(entry: Aborted) -> str:
    return f"producerId: {entry.producer_id} firstOffset: {entry.first} lastOffset: {entry.last} lastStableOffset: {entry.stable}"


def damaged_index(scene: Scene, rng: random.Random) -> Planted | None:
    """An entry of the aborted index has an unknown version, or begins behind its end."""
    chosen = pick(rng, _indexed(scene))
    if chosen is None:
        return None
    log, state, entry = chosen
    version = rng.random() < 0.5
    changed = f"version: 3 {_entry(entry)}" if version else f"version: 0 {_entry(replace(entry, first=entry.last + 4))}"
    text = printing.index_text(state, entry.segment) or ""
    name = f"{state.bases[entry.segment]:020d}.txnindex"
    edit_file(scene, state, name, text, re.compile(re.escape(f"version: 0 {_entry(entry)}")), changed)
    # What nobody can read hides nothing, and misses nothing surely.
    may = frozenset({"S02", "S03", "S04", "L02", "L03"})
    return Planted(Truth("damaged_index", rules("S05"), may, log.place, why=f"the entry of the ABORT at {entry.last} is damaged"))


def wrong_index_entry(scene: Scene, rng: random.Random) -> Planted | None:
    """The aborted index calls a committed transaction aborted."""
    found = []
    for log, t in with_data(scene):
        state, marker = scene.states[log.place], scene.markers(log, t)[0]
        batch = placed(scene, log, marker)
        mine = [entry for entry in state.aborted if entry.segment == batch.segment]
        if scene.plan.sidecars and t.decision == "COMMIT" and mine and len(scene.markers(log, t)) == 1:
            found.append((log, state, t, batch, mine))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, state, t, batch, mine = chosen
    first, last = scene.offsets(log.place, scene.data(log, t))
    line = f"version: 0 {_entry(Aborted(t.producer_id, first, batch.base, first, batch.segment))}\n"
    before = max((entry for entry in mine if entry.last < batch.base), key=lambda entry: entry.last, default=None)
    where = r"\.txnindex\n" if before is None else re.escape(_entry(before)) + "\n"
    name, text = f"{state.bases[batch.segment]:020d}.txnindex", printing.index_text(state, batch.segment) or ""
    edit_file(scene, state, name, text, re.compile(f"({where})"), rf"\g<1>{line}")
    truth = Truth("wrong_index_entry", rules("S03", "L03"), frozenset({"S04", "L02"}), log.place, t.producer_id)
    why = f"an entry for the COMMIT of transaction {t.number} at {batch.base}"
    # Above the last stable offset nobody reads yet, and the high watermark that a running broker noted is behind.
    sure = scene.plan.stopped or not scene.plan.checkpoints
    return Planted(replace(truth, offsets=(first, max(last, batch.base)), decidable=sure and batch.base < state.lso, why=why))


def other_epochs(scene: Scene, rng: random.Random) -> Planted | None:
    """leader-epoch-checkpoint gives a stretch of the log to the leader behind the one that wrote it."""
    found = []
    for log in scene.world.data_logs:
        state = scene.states[log.place]
        # The batches that every reader sees: below the log start the checkpoint was cut.
        stretches = {batch.write.leader_epoch: batch for batch in reversed(state.batches) if batch.base >= state.log_start}
        found += [(log, state, epoch, offset, stretches[epoch]) for epoch, offset in state.epochs if epoch in stretches]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, state, epoch, offset, batch = chosen
    row = re.compile(rf"(?m)^{epoch} {offset}$")
    scene.plan.edits.append(
        Edit(f"{printing.name_of(state)}/leader-epoch-checkpoint", lambda text: row.sub(f"{epoch + 1} {offset}", text, count=1))
    )
    why = f"the checkpoint calls leader epoch {epoch}, which wrote the batch at {batch.base}, {epoch + 1}"
    # The high watermark that a running broker noted may lie below that batch.
    sure = scene.plan.stopped or not scene.plan.checkpoints
    return Planted(Truth("other_epochs", rules("R05"), NONE, log.place, decidable=sure, why=why))


def _snapshots(scene: Scene) -> list[tuple[Log, State, int, dict[int, Producer]]]:
    """Producer snapshots that are dumped, of logs that nobody cleaned."""
    found = []
    for log in scene.world.data_logs if scene.plan.sidecars else []:
        state = scene.states[log.place]
        at_stop = {state.leo: state.producers} if scene.plan.stopped and state.leo else {}
        if state.cleaned_to is None:
            found += [(log, state, offset, known) for offset, known in {**state.snapshots, **at_stop}.items() if known]
    return found


def wrong_snapshot(scene: Scene, rng: random.Random) -> Planted | None:
    """A producer snapshot says another last sequence than the log below it."""
    found = []
    snapshots = _snapshots(scene)
    newest = {log.place: max(offset for other, _, offset, _ in snapshots if other is log) for log, *_ in snapshots}
    for log, state, offset, known in snapshots:
        for producer_id, producer in sorted(known.items()):
            batch = producer.batch
            # A broker starts from its newest snapshot; the ones before it tell nothing more.
            if offset == newest[log.place] and batch is not None and scene.is_seen(log.place, batch.write):
                found.append((log, state, offset, known, producer_id))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, state, offset, known, producer_id = chosen
    text = printing.snapshot_text(state, offset, known, scene.world.shape.release)
    line = rf"^(producerId: {producer_id} .*) firstSequence: (\d+) lastSequence: (\d+)"
    told = re.search(line, text, re.MULTILINE)
    if told is None:
        return None
    # A snapshot holds the last sequence and the number of records; the tool reckons the first one.
    changed = rf"\g<1> firstSequence: {int(told[2]) + 90} lastSequence: {int(told[3]) + 90}"
    edit_file(scene, state, f"{offset:020d}.snapshot", text, re.compile(line, re.MULTILINE), changed)
    truth = Truth("wrong_snapshot", rules("S01"), NONE, log.place, producer_id)
    return Planted(replace(truth, why=f"the last sequence of producer {producer_id} at offset {offset}"))


def damaged_snapshot(scene: Scene, rng: random.Random) -> Planted | None:
    """A producer snapshot does not fit its checksum: the dump tool says so, and prints nothing of it."""
    chosen = pick(rng, _snapshots(scene))
    if chosen is None:
        return None
    log, state, offset, _ = chosen
    said = "Snapshot is corrupt (CRC is no longer valid). Stored crc: 11. Computed crc: 12"
    file = f"{printing.name_of(state)}/{offset:020d}.snapshot.txt"
    scene.plan.edits.append(Edit(file, lambda text: f"{text.splitlines()[0]}\n{said}\n"))
    return Planted(Truth("damaged_snapshot", rules("S05"), frozenset({"S01"}), log.place, why=f"the snapshot at offset {offset}"))
