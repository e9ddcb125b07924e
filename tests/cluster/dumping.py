"""The dumps of a cluster: each log at its own moment, with or without manifest, listing, checkpoints and sidecars."""

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.cluster import printing
from tests.cluster import shape as shapes
from tests.cluster.brokers import COORDINATOR, INTERNAL, Log, Place, World
from tests.cluster.clock import BEGIN_MS
from tests.cluster.edits import Edit, write
from tests.cluster.listings import listed_sizes, snapshots_of, when_listed
from tests.cluster.replay import Producer, State, clean, cut_head, replay

MOST_OF_A_SEGMENT = 20  # batches, where segments are rolled


@dataclass(frozen=True)
class Copy:
    """One dump of one log: on which broker, of which true time; `lost_ms`: its text ends so long before; `late_ms`: the log itself had
    stood there for so long, as that of a follower that lags does."""

    place: Place
    broker: int
    moment: int
    lost_ms: int = 0
    late_ms: int = 0


@dataclass
class Plan:
    """When and how a cluster is dumped. `listed_at` is when listing and checkpoints are copied; `times`: the script notes when each file
    was dumped, snapshots before their log and indexes behind it."""

    begins: int
    copies: list[Copy] = field(default_factory=list)
    dumped_at: int | None = None
    listing: bool = True
    checkpoints: bool = True
    sidecars: bool = True
    stopped: bool = False
    times: bool = False
    forked: dict[tuple[Place, int], Log] = field(default_factory=dict)
    cleaned_markers: set[int] = field(default_factory=set)  # identities of markers that the cleaner took with their data still there
    cleaned_before: set[int] = field(default_factory=set)  # of those that it took before it looked whose data they end
    stable: dict[tuple[Place, int], int] = field(default_factory=dict)  # lastStableOffset of the entry of a marker, by place and offset
    edits: list[Edit] = field(default_factory=list)
    printed: set[str] = field(default_factory=set)  # files of logs that were dumped, such as those of `edits`
    deleted_to: dict[Place, int] = field(default_factory=dict)  # where DeleteRecords was called at last
    version: str | None = None  # of the brokers, where it is not that of their dump tool
    later: "Plan | None" = None  # how the same cluster is dumped in the night after

    @property
    def listed_at(self) -> int:
        """All is as it will stay when the brokers are stopped."""
        return max(copy.moment for copy in self.copies) if self.stopped else self.begins

    def moments(self, place: Place) -> list[int]:
        """When a log was dumped, on each broker."""
        return [copy.moment for copy in self.copies if copy.place == place]


def plan_of(world: World) -> Plan:
    """How a cluster is dumped, as its shape says."""
    shape = world.shape
    rng = shape.stream("dump")
    last = max((write.at for log in world.logs.values() for write in log.writes), default=world.end)
    if shape.dump == shapes.STOPPED:
        plan = Plan(last + 10, stopped=True)
        copy_all(plan, world, dict.fromkeys(world.logs, last + 10))
        plan.dumped_at = world.clocks[1].read(last + rng.randrange(2_000, 40_000))
    else:
        begins = BEGIN_MS + round((last - BEGIN_MS) * rng.uniform(0.4, 1.05))
        plan = Plan(begins, dumped_at=world.clocks[1].read(begins) // 1000 * 1000)
        copy_all(plan, world, moments_of(world, begins, rng))
        _by_hand(plan, world, rng)
        plan.times = shape.dump in shapes.BY_SCRIPT and shape.stream("times").random() < 0.6
    _replicas(plan, world, rng)
    _copies_of_coordinators(plan, world)
    if shape.has("coordinator_cut"):
        _cut_coordinators(plan, world)
    return plan


def _copies_of_coordinators(plan: Plan, world: World) -> None:
    """Of stopped brokers, all copies of the coordinator's logs; a broker that led nothing may have been stopped before the others."""
    if not plan.stopped:
        return
    rng = world.shape.stream("stop")
    idle = sorted(world.clocks.keys() - {copy.broker for copy in plan.copies})
    first = rng.choice(idle) if idle and world.shape.has("rolling_stop") else None
    early = plan.copies[0].moment - rng.randrange(300, 30_000)
    of_coordinators = [copy for copy in plan.copies if copy.place[0] == COORDINATOR]
    for number, copy in enumerate(plan.copies):
        if first is not None and copy.place[0] != COORDINATOR and rng.random() < 0.6:
            plan.copies[number] = Copy(copy.place, first, early)
    if not world.shape.has("leaders_only"):
        for copy in of_coordinators:
            others = [broker for broker in world.clocks if broker != copy.broker]
            plan.copies += [Copy(copy.place, broker, early if broker == first else copy.moment) for broker in others]


def _cut_coordinators(plan: Plan, world: World) -> None:
    rng = world.shape.stream("cut")
    # The script, which notes its times, writes a listing, too.
    plan.listing, plan.checkpoints = plan.listing and plan.times, False
    lost_ms = rng.randrange(10, 20_000)
    for number, copy in enumerate(plan.copies):
        if copy.place[0] == COORDINATOR:
            plan.copies[number] = replace(copy, moment=copy.moment - lost_ms, lost_ms=lost_ms)


def copy_all(plan: Plan, world: World, moments: dict[Place, int]) -> None:
    """Every log of its leader, each at its own moment."""
    for place, moment in moments.items():
        plan.copies.append(Copy(place, world.logs[place].leadership.term(plan.begins).broker, moment))


def moments_of(world: World, begins: int, rng: random.Random) -> dict[Place, int]:
    """When each log is dumped, one after the other."""
    data, coordinators = [log.place for log in world.marked_logs], [log.place for log in world.coordinator_logs]
    apart = {shapes.HAND_BEFORE: rng.randrange(1_000, 15_000), shapes.HAND_AFTER: rng.randrange(1_000, 15_000)}.get(world.shape.dump, 0)
    order = [*coordinators, *data] if world.shape.dump == shapes.HAND_BEFORE else [*data, *coordinators]
    if world.shape.dump == shapes.MANIFEST_END:
        rng.shuffle(order)
    if world.shape.dump == shapes.APART:
        order.append(order.pop(order.index(rng.choice(data))))
    moments, at, half = {}, begins, len(coordinators) if world.shape.dump == shapes.HAND_BEFORE else len(data)
    for number, place in enumerate(order):
        slow = world.shape.dump == shapes.MANIFEST_END and rng.random() < 0.3
        at += rng.randrange(2_000, 20_000) if slow else rng.randrange(30, 900)
        at += apart if number == half else 0
        moments[place] = at
    return moments


def _by_hand(plan: Plan, world: World, rng: random.Random) -> None:
    if world.shape.dump in (shapes.HAND_BEFORE, shapes.HAND_AFTER):
        plan.dumped_at = None
    if world.shape.dump == shapes.MANIFEST_END:
        plan.dumped_at = world.clocks[1].read(max(copy.moment for copy in plan.copies) + rng.randrange(200, 5_000))
    if world.shape.dump in (shapes.HAND_BEFORE, shapes.HAND_AFTER, shapes.MANIFEST_END):
        plan.listing, plan.checkpoints = rng.random() < 0.3, rng.random() < 0.3
        plan.sidecars = rng.random() < 0.8


def _replicas(plan: Plan, world: World, rng: random.Random) -> None:
    """Followers beside the leader or in its place; one that is out of the ISR is behind."""
    for number, copy in enumerate(list(plan.copies)):
        others = [broker for broker in world.clocks if broker != copy.broker]
        if not others or copy.place[0] == COORDINATOR:
            continue
        broker, late_ms = rng.choice(others), rng.randrange(300, 30_000)
        behind = Copy(copy.place, broker, copy.moment - late_ms, late_ms=late_ms)
        chosen = rng.random() < 0.6
        if world.shape.dump == shapes.STOPPED and world.shape.has("replicas") and chosen:
            plan.copies.append(Copy(copy.place, behind.broker, copy.moment))
        elif world.shape.dump == shapes.FOLLOWER_BESIDE and chosen:
            plan.copies.append(behind)
        elif world.shape.dump == shapes.FOLLOWER_ALONE and chosen:
            plan.copies[number] = behind


@dataclass(frozen=True)
class Housekeeping:
    """What retention, DeleteRecords and the cleaner had done to a log before anybody dumped it."""

    per_segment: int
    dirty: tuple[int, ...]
    cut: int | None
    deleted_to: int | None
    active: dict[int, Producer]


def housekeeping(world: World, plan: Plan, place: Place) -> Housekeeping:
    """The same for all copies of a log: it was done before the first of them was made."""
    if plan.later is not None:
        return _begun(world, plan, plan.later, place)
    log = world.logs[place]
    rng = world.shape.stream("housekeeping", *place)
    cleans = world.shape.has("cleaned_coordinator") if log.topic == COORDINATOR else log.compacted
    per_segment = rng.choice((7, 12, MOST_OF_A_SEGMENT)) if world.shape.has("segments") or cleans else 10**9
    oldest = replay(log, min([plan.begins, *plan.moments(place)]), per_segment=per_segment)
    borders = [base for base in oldest.bases[1:] if base <= oldest.lso]
    dirty = tuple(sorted({rng.choice(borders), rng.choice(borders)})) if cleans and borders else ()
    retained = log.topic not in INTERNAL and not cleans and world.shape.has("retention") and borders
    deletes = log.topic not in INTERNAL and world.shape.has("delete_records") and oldest.lso > log.first_offset and rng.random() < 0.5
    cut = rng.choice(borders) if retained else None
    deleted = rng.randrange(log.first_offset, oldest.lso + 1) if deletes else None
    return Housekeeping(
        per_segment,
        dirty,
        cut,
        plan.deleted_to.get(place, deleted),
        oldest.producers,
    )


def _begun(world: World, plan: Plan, later: Plan, place: Place) -> Housekeeping:
    """What had been done already of that which was done to a log by the night after."""
    rng = world.shape.stream("housekeeping", "before", *place)
    kept = housekeeping(world, later, place)
    oldest = replay(world.logs[place], min([plan.begins, *plan.moments(place)]), per_segment=kept.per_segment)
    borders = {base for base in oldest.bases[1:] if base <= oldest.lso}
    dirty = tuple(base for base in kept.dirty if base in borders) if rng.random() < 0.6 else ()
    cut = kept.cut if kept.cut in borders and rng.random() < 0.4 else None
    deleted = kept.deleted_to if kept.deleted_to is not None and kept.deleted_to <= oldest.lso and rng.random() < 0.4 else None
    return Housekeeping(kept.per_segment, dirty, cut, deleted, oldest.producers)


def state_of(world: World, plan: Plan, copy: Copy, lost_index: frozenset[tuple[Place, int]] = frozenset()) -> State:
    """What a copy holds, after retention and the cleaner."""
    log = plan.forked.get((copy.place, copy.broker), world.logs[copy.place])
    kept = housekeeping(world, plan, copy.place)
    lost = frozenset(number for place, number in lost_index if place == copy.place)
    state = replay(log, copy.moment, per_segment=kept.per_segment, lost_index=lost)
    state.batches = [batch for batch in state.batches if id(batch.write) not in plan.cleaned_before]
    for dirty in kept.dirty:
        clean(state, dirty, BEGIN_MS, kept.active)
    state.batches = [batch for batch in state.batches if id(batch.write) not in plan.cleaned_markers]
    place = copy.place
    state.aborted = [replace(entry, stable=plan.stable.get((place, entry.last), entry.stable)) for entry in state.aborted]
    if log.first_offset:
        state.cleaned_to = max(state.cleaned_to or 0, log.first_offset)
    if kept.cut is not None:
        cut_head(state, kept.cut, checkpointed=False)
    if kept.deleted_to is not None and kept.deleted_to > state.log_start:
        cut_head(state, kept.deleted_to, checkpointed=True)
    return state


def write_dumps(
    world: World, plan: Plan, folder: Path, lost_index: frozenset[tuple[Place, int]] = frozenset(), *, cluster: str | None = None
) -> None:
    """Write all dump files of a cluster below a folder.

    Args:
        world: what happened.
        plan: how it is dumped.
        folder: made here.
        lost_index: (partition, transaction number) whose index entry is lost.
        cluster: its name; that of the folder without one.
    """
    files: dict[int, dict[str, int]] = defaultdict(dict)
    # One after the other, as their times are noted.
    for copy in sorted(plan.copies, key=_dumped_at):
        state = state_of(world, plan, copy, lost_index)
        into = folder / f"broker-{copy.broker}"
        name = printing.name_of(state)
        (into / name).mkdir(parents=True, exist_ok=True)
        listed = state_of(world, plan, Copy(copy.place, copy.broker, when_listed(world, plan, copy)), lost_index)
        _write_log(world, plan, into, state)
        if plan.sidecars:
            late = (world.shape.has("late_sidecars") or plan.times) and not plan.stopped
            behind = replace(copy, moment=copy.moment + world.shape.stream("sidecars", *copy.place).randrange(5, 300))
            _write_sidecars(world, plan, into, state_of(world, plan, behind, lost_index) if late else state, listed if plan.times else None)
        files[copy.broker] |= listed_sizes(world, plan, listed, state)
        if plan.times:
            _note_times(world, into, name, copy)
    for broker, listed_files in files.items():
        into = folder / f"broker-{broker}"
        if plan.listing:
            (into / "listing.txt").write_text("".join(f"{size} {path}\n" for path, size in sorted(listed_files.items())))
        if plan.checkpoints:
            _write_checkpoints(world, plan, into, broker)
    if plan.dumped_at is not None:
        (folder / "manifest.yaml").write_text(_manifest(world, plan, cluster or folder.name))


def _print(plan: Plan, path: Path, text: str) -> None:
    plan.printed.add(f"{path.parent.name}/{path.name}")
    write(plan.edits, path, text)


def gone_since_listed(world: World, plan: Plan) -> frozenset[str]:
    """The logs of which a segment was deleted between a listing made by hand and the dump: nothing tells it from one that was left out."""
    if plan.times or not plan.listing:
        return frozenset()
    moments = ((copy, Copy(copy.place, copy.broker, when_listed(world, plan, copy))) for copy in plan.copies)
    states = ((state_of(world, plan, copy), state_of(world, plan, listed)) for copy, listed in moments)
    return frozenset(printing.name_of(dumped) for dumped, listed in states if not set(listed.bases) <= set(dumped.bases))


def _write_log(world: World, plan: Plan, into: Path, state: State) -> None:
    folder = into / printing.name_of(state)
    for number, base in enumerate(state.bases):
        text, _ = printing.segment_text(state, number, payloads=world.shape.has("payloads"))
        _print(plan, folder / f"{base:020d}.log.txt", text)
    _print(plan, folder / "leader-epoch-checkpoint", printing.epochs_text(state))


def _dumped_at(copy: Copy) -> int:
    """When a dump was made, which may hold less than was written by then."""
    return copy.moment + copy.lost_ms + copy.late_ms


def _note_times(world: World, into: Path, name: str, copy: Copy) -> None:
    """A time at which the dump of none of the partition's files had begun, by the clock of its broker, in whole seconds."""
    at = world.clocks[copy.broker].read(_dumped_at(copy)) // 1_000 * 1_000
    with (into / "dumped-at.txt").open("a") as noted:
        noted.writelines(f"{at} {name}/{path.name.removesuffix('.txt')}\n" for path in sorted((into / name).glob("*.txt")))


def _write_sidecars(world: World, plan: Plan, into: Path, state: State, before: State | None = None) -> None:
    """Indexes and snapshots of a state; the snapshots of the one `before` if they were dumped before the log."""
    folder = into / printing.name_of(state)
    for number, base in enumerate(state.bases):
        index = printing.index_text(state, number)
        if index is not None:
            _print(plan, folder / f"{base:020d}.txnindex.txt", index)
    for offset, known in snapshots_of(plan, before or state).items():
        text = printing.snapshot_text(state, offset, known, world.shape.release)
        _print(plan, folder / f"{offset:020d}.snapshot.txt", text)


def _write_checkpoints(world: World, plan: Plan, into: Path, broker: int) -> None:
    ends, starts, cleaned = [], [], []
    behind = 0 if plan.stopped else world.shape.stream("hw", broker).randrange(5_000)
    for copy in plan.copies:
        if copy.broker == broker:
            state = state_of(world, plan, copy)
            at = Copy(copy.place, broker, min(plan.listed_at, copy.moment) - behind)
            place = f"{copy.place[0]} {copy.place[1]}"
            ends.append(f"{place} {max(high_watermark(world.logs[copy.place], at), state.log_start)}")
            starts += [] if state.checkpointed_start is None else [f"{place} {state.checkpointed_start}"]
            cleaned += [] if state.cleaned_to is None else [f"{place} {state.cleaned_to}"]
    (into / "replication-offset-checkpoint").write_text(printing.checkpoint_text(ends))
    (into / "log-start-offset-checkpoint").write_text(printing.checkpoint_text(starts))
    if cleaned:
        (into / "cleaner-offset-checkpoint").write_text(printing.checkpoint_text(cleaned))


def high_watermark(log: Log, copy: Copy) -> int:
    """The end of the log at a moment: its high watermark then, or a little later."""
    return log.first_offset + sum(len(write.records) for write in log.writes if write.at <= copy.moment)


def _manifest(world: World, plan: Plan, cluster: str) -> str:
    version = plan.version or {"3.9": "3.9.1", "4.3": "4.3.1"}[world.shape.release]
    lines = [f'cluster: "{cluster}"', f"dumped_at: {plan.dumped_at}"]
    if world.shape.tells_settings:
        lines += [f'kafka_version: "{version}"', f"transaction_state_partitions: {world.shape.coordinators}", "broker_config:"]
        lines.append(f'  "transaction.state.log.num.partitions": "{world.shape.coordinators}"')
        lines.append('  "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"')
        lines.append(f'  "transactional.id.expiration.ms": "{world.shape.id_expires_ms}"')
        lines.append(f'  "producer.id.expiration.ms": "{world.shape.producer_expires_ms}"')
    return "\n".join(lines) + "\n"
