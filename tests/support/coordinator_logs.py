"""Generated coordinator logs: transactional ids that live, fail, ghost and break, printed as text or JSON, with gaps and missing heads."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from eo_audit.model.entries import Entry
from eo_audit.model.states import COMPLETE, EMPTY, EXPIRES_AFTER_MS, KNOWN, ONGOING, PREPARE_ABORT, PREPARE_COMMIT, PREPARED, TOMBSTONE, TV2

TOPICS = [("orders", 0), ("orders", 1), ("payments", 0)]
END_OF = {PREPARE_COMMIT: "CompleteCommit", PREPARE_ABORT: "CompleteAbort"}


@dataclass(frozen=True)
class Cluster:
    """How a cluster writes and its dump tool prints: `json` prints start and client version, text does not; `protocol` is its clients'."""

    name: str
    protocol: str
    json: bool
    transaction_version: int | None
    kafka_version: str | None
    scan_ms: int = 10_000
    id_expires_ms: int = EXPIRES_AFTER_MS

    @property
    def own_version(self) -> int | None:
        """What stands in entries that the coordinator writes for no client: a fence, a timeout."""
        return 2 if self.protocol == TV2 or self.transaction_version == 2 else None

    @property
    def fence_raises(self) -> int:
        """By how much its own aborts raise the epoch (KAFKA-19367)."""
        return 2 if self.kafka_version == "4.0.0" and self.own_version == 2 else 1


CLUSTERS = [
    Cluster("old-text", "tv0", False, 0, "3.9.1"),
    Cluster("old-json", "tv0", True, 1, "4.1.0", id_expires_ms=3_600_000),
    Cluster("ancient", "tv0", False, None, "2.3.1", 60_000),
    Cluster("new-json", TV2, True, 2, "4.3.1", 1_000),
    Cluster("new-text", TV2, False, 2, "4.0.0"),
    Cluster("nameless", TV2, False, None, None),
    Cluster("old-clients", "tv0", True, 2, "4.3.1"),
    Cluster("old-clients-of-4.0", "tv0", True, 2, "4.0.0"),
]


@dataclass
class Id:
    """One transactional id as its coordinator remembers it."""

    random: random.Random
    cluster: Cluster
    status: str = TOMBSTONE
    producer_id: int = 0
    epoch: int = 0
    timeout_ms: int = 60_000
    partitions: frozenset[tuple[str, int]] = frozenset()
    start_ms: int = -1
    version: int | None = None
    now: int = 1_700_000_000_000
    written: list[Entry] = field(default_factory=list)

    def write(self, status: str, **changed: object) -> None:
        """Move to a state and append its entry."""
        self.now += self.random.choice([1, 5, 200, 900, 5_000, 70_000])
        for name, value in changed.items():
            setattr(self, name, value)
        self.status = status
        self.written.append(self.entry())

    def entry(self) -> Entry:
        """The entry of the present state, with everything a v1 value has."""
        if self.status == TOMBSTONE:
            return Entry(0, TOMBSTONE, batch_ms=self.now)
        return Entry(
            0,
            self.status,
            producer_id=self.producer_id,
            epoch=self.epoch,
            timeout_ms=self.timeout_ms,
            partitions=self.partitions,
            last_update_ms=self.now - self.random.choice([0, 1]),
            start_ms=self.start_ms,
            client_version=self.version if self.status != EMPTY else None,
            batch_ms=self.now + self.random.choice([0, 3]),
        )

    def step(self) -> None:
        """One legal step of the protocol."""
        if self.status in PREPARED:
            return self.write(END_OF[self.status], partitions=frozenset())
        if self.status == ONGOING:
            ends = [self.end, self.end, self.fence, self.bump if self.cluster.protocol != TV2 else self.end]
            return self.random.choice([self.add, *ends])()
        if self.status == TOMBSTONE:
            return self.born()
        choices = [self.begin, self.begin, self.begin, self.initialise, self.initialise, self.expire]
        return self.random.choice([*choices, self.end_nothing] if self.cluster.protocol == TV2 else choices)()

    def born(self) -> None:
        version = 2 if self.cluster.protocol == TV2 else None
        self.write(EMPTY, producer_id=self.random.randrange(10_000), epoch=0, partitions=frozenset(), start_ms=-1, version=version)

    def initialise(self) -> None:
        timeout = self.random.choice([60_000, 2_500])
        self.write(EMPTY, epoch=self.epoch + self.random.choice([0, 1]), partitions=frozenset(), start_ms=-1, timeout_ms=timeout)

    def expire(self) -> None:
        self.write(TOMBSTONE)

    def begin(self) -> None:
        version = 2 if self.cluster.protocol == TV2 else None
        self.write(ONGOING, partitions=frozenset(self.random.sample(TOPICS, 1)), start_ms=self.now, version=version)

    def add(self) -> None:
        more = self.partitions | frozenset(self.random.sample(TOPICS, 2))
        if more != self.partitions:
            self.write(ONGOING, partitions=more)

    def end(self) -> None:
        raised = 1 if self.cluster.protocol == TV2 else 0
        self.write(self.random.choice([PREPARE_COMMIT, PREPARE_ABORT]), epoch=self.epoch + raised)

    def bump(self) -> None:
        """A client that hit an error it can abort: it ends its transaction and raises its epoch at once."""
        self.write(PREPARE_ABORT)
        self.write(END_OF[PREPARE_ABORT], partitions=frozenset())
        self.now -= self.now - self.written[-1].batch_ms - 2 if self.written[-1].batch_ms else 0
        self.status, self.epoch = EMPTY, self.epoch + 1
        self.partitions, self.start_ms = frozenset(), -1
        self.written.append(self.entry())

    def end_nothing(self) -> None:
        self.write(PREPARE_ABORT, epoch=self.epoch + 1, partitions=frozenset(), start_ms=self.now)

    def fence(self) -> None:
        if self.random.random() < 0.5:
            self.now = max(self.now, self.start_ms + self.timeout_ms + self.random.choice([0, 500, 20_000]))
        self.write(PREPARE_ABORT, epoch=self.epoch + self.cluster.fence_raises, version=self.cluster.own_version)

    def ghost(self) -> None:
        """The last append "failed": the next entry comes from the memory before it."""
        if self.status == ONGOING:
            self.write(ONGOING, partitions=frozenset(self.random.sample(TOPICS, 1)), start_ms=self.now)
        elif self.status in PREPARED:
            again = self.random.choice([self.status, PREPARE_ABORT])
            self.write(again, epoch=self.epoch + (self.random.choice([0, 1]) if again == PREPARE_ABORT else 0))
        elif self.status in COMPLETE and self.random.random() < 0.7:
            self.written.append(self.written[-1])
        elif self.written[-1].status != TOMBSTONE:
            remembered = self.status
            self.write(TOMBSTONE)
            self.status = remembered
        self.step()

    def fault(self) -> None:
        """Something no coordinator writes."""
        faults = [self.jump, self.leap, self.other_producer, self.other_timeout, self.other_start, self.other_partitions]
        if self.status in COMPLETE:
            faults += [self.again, self.leap]
        elif self.status in PREPARED:
            faults += [self.vanish, self.other_partitions, self.other_start, self.other_start]
        elif self.status == ONGOING:
            faults += [self.shrink, self.shrink, self.shrink, self.other_start, self.vanish, self.late_completion]
        self.random.choice([*faults, self.jump])()

    def jump(self) -> None:
        self.write(self.random.choice([*sorted(KNOWN), TOMBSTONE, "Unknown(9)", "Unknown(12)", self.status]))

    def leap(self) -> None:
        self.epoch += self.random.choice([-2, -1, 1, 1, 6, 6])
        self.step()

    def other_producer(self) -> None:
        self.producer_id += 7
        self.epoch += self.random.choice([0, -self.epoch])
        self.step()

    def other_timeout(self) -> None:
        self.timeout_ms += 17
        self.step()

    def other_start(self) -> None:
        self.start_ms += 17
        self.step()

    def again(self) -> None:
        self.write(self.status)

    def late_completion(self) -> None:
        """The completion before this transaction is written once more; the coordinator goes on with the transaction."""
        done = next((entry for entry in reversed(self.written) if entry.status in COMPLETE), None)
        if done is not None:
            self.written.append(replace(done, batch_ms=self.now))

    def vanish(self) -> None:
        self.write(TOMBSTONE)

    def shrink(self) -> None:
        self.write(ONGOING, partitions=frozenset(sorted(self.partitions)[:-1]))

    def other_partitions(self) -> None:
        if self.status == ONGOING:
            self.partitions = self.partitions | {("late", 3)}
            return self.end()
        if self.status in PREPARED:
            return self.write(END_OF[self.status])
        if self.status == EMPTY:
            return self.write(EMPTY, partitions=frozenset({("late", 3)}))
        return self.step()


def life(source: random.Random, cluster: Cluster, length: int) -> list[Entry]:
    """All entries of one id, without offsets."""
    one = Id(source, cluster)
    one.now += source.randrange(1_000)
    one.born()
    while len(one.written) < length:
        source.choices([one.step, one.ghost, one.fault], weights=[40, 12, 48])[0]()
    return one.written if cluster.json else [replace(entry, start_ms=None, client_version=None) for entry in one.written]


@dataclass(frozen=True)
class Log:
    """One coordinator log: (id, entry, section number), in offset order; sections with their base offsets."""

    cluster: Cluster
    partition: int
    entries: list[tuple[str, Entry, int]]
    bases: list[int]


Life = Callable[[random.Random, Cluster, int], list[Entry]]


def log_of(source: random.Random, cluster: Cluster, partition: int, *, ids: int, length: int, lived: Life = life) -> Log:
    """Interleave the lives of some ids, then compact the head and lose a segment now and then."""
    lives = {f"{cluster.name}-{partition}-{n}": iter(lived(source, cluster, source.randrange(3, length))) for n in range(ids)}
    mixed = [(name, entry) for name, entry in _interleaved(source, lives)]
    cut = source.choice([0, 0, len(mixed) // 3])
    newest = {name: place for place, (name, _) in enumerate(mixed[:cut])}  # the cleaner keeps these
    segments, lost = source.choice([1, 3]), source.random() < 0.5
    rows: list[tuple[str, Entry, int]] = []
    bases: list[int] = []
    offset, before, stretches = 0, None, {}
    epoch: int | None = None
    for place, (name, entry) in enumerate(mixed):
        section = place * segments // len(mixed)
        if section == len(bases):
            offset += 10 if lost and section == 2 else 0
            bases.append(offset)
        if place < newest.get(name, 0):
            offset += 1  # compacted away
            continue
        stretch = 1 if lost and section == 2 else 0  # the cleaner was not there: before it ids stand more than once
        known = replace(
            entry,
            offset=offset,
            leader_epoch=section,
            log_previous_batch_ms=before,
            log_previous_leader_epoch=epoch,
            nothing_before=len(rows) == offset,
            after_gap=name in stretches and stretches[name] != stretch,
        )
        rows.append((name, known, section))
        offset, before, epoch, stretches[name] = offset + 1, entry.batch_ms, section, stretch
    return Log(cluster, partition, rows, bases)


def _interleaved(source: random.Random, lives: dict[str, Iterator[Entry]]) -> Iterator[tuple[str, Entry]]:
    while lives:
        name = source.choice(sorted(lives))
        entry = next(lives[name], None)
        if entry is None:
            del lives[name]
        else:
            yield name, entry
