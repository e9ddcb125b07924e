"""Producers: what clients do, from initTransactions to the last marker, and what the partition leaders append of it."""

import random
import zlib
from dataclasses import dataclass, field

from tests.cluster.brokers import Place, Record, Transaction, World, Write, empty_world
from tests.cluster.clock import BEGIN_MS, Clock, client_clock
from tests.cluster.coordinator import Coordinated
from tests.cluster.groups import PLACE, Group
from tests.cluster.recreated import create_anew
from tests.cluster.shape import TV2, Shape

LAST_EPOCH = 32_766
STEMS = ("payments-writer", "orders-app-7f3a21c4-0b1e-4c55-9d3f-2f6f0c1d9e11", "fraud-sink", "settlement", "enrich", "audit-copy")


@dataclass
class Sequences:
    """Next sequence numbers of one producer id, by partition; a new epoch starts at 0."""

    epoch: int = -1
    next: dict[Place, int] = field(default_factory=dict)

    def take(self, place: Place, epoch: int, count: int) -> int:
        """The first of some numbers."""
        if epoch != self.epoch:
            self.epoch, self.next = epoch, {}
        first = self.next.get(place, 0)
        self.next[place] = first + count
        return first


class Client:
    """One producer process: its clock, its record times and its payloads."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.rng = world.shape.stream("client", name)
        self.clock: Clock = client_clock(world.shape, name)
        self.sequences = Sequences()
        self.records = 0
        self.prefix = f"{zlib.crc32(name.encode()) % 0xFFFF:04x}"
        modes = ("now", "hours_ago", "ahead", "late", "mixed")
        self.mode = self.rng.choice(modes) if world.shape.has("event_times") else "now"

    def time(self, at: int) -> int:
        """The time that the application gives a record."""
        shown, mode = self.clock.read(at), self.mode
        if mode == "mixed":
            mode = self.rng.choice(("now", "hours_ago", "late"))
        if mode == "hours_ago":
            return shown - 7 * 3_600_000 - self.rng.randrange(3_600_000)
        if mode == "ahead":
            return shown + self.rng.randrange(3_600_000)
        return shown - self.rng.randrange(9_000) if mode == "late" else shown

    def produce(self, at: int, place: Place, *, producer_id: int, epoch: int, transaction: Transaction | None = None) -> int:
        """A batch of some records; returns the true time of the append."""
        log = self.world.logs[place]
        count = self.rng.choice((1, 1, 2, 3))
        stamp = self.world.clock(place, at)
        records = tuple(self._record(stamp if log.append_time else self.time(at - 1), log.compacted) for _ in range(count))
        base = -1 if producer_id < 0 else self.sequences.take(place, epoch, count)
        term = log.leadership.term(at)
        log.writes.append(Write(at, stamp, term.epoch, records, producer_id, epoch, base, transaction=transaction))
        return at

    def _record(self, timestamp_ms: int, compacted: bool) -> Record:
        self.records += 1
        key = f"{self.prefix}{self.rng.randrange(5) if compacted else self.records}"
        tombstone = compacted and self.rng.random() < 0.1
        return Record(key.encode(), None if tombstone else f"{self.prefix}-v{self.records}".encode(), timestamp_ms)


class Transactional(Client):
    """A producer with a transactional id, from its birth to the end of the world."""

    def __init__(self, world: World, name: str, producer_id: int) -> None:
        super().__init__(world, name)
        shape = world.shape
        self.knows_tv2 = self.is_tv2 = shape.protocol == TV2 and not (shape.has("mixed_clients") and self.rng.random() < 0.5)
        timeout = self.rng.choice((2_000, 5_000, 10_000)) if shape.has("timeouts") and self.rng.random() < 0.5 else 60_000
        self.coordinator = Coordinated(world, name, self.is_tv2, timeout, producer_id, shape.stream("coordinator", name))
        if shape.has("exhaustion") and not self.is_tv2 and self.rng.random() < 0.7:
            self.coordinator.epoch = LAST_EPOCH - self.rng.randrange(4)
        self.dead = False
        self.group = Group(world, f"{name}-app", shape.stream("group", name)) if shape.has("group_offsets") else None

    def live(self) -> None:
        """All of its life."""
        at = BEGIN_MS + self.rng.randrange(self.world.shape.period_ms)
        at = self.coordinator.empty(at) + 3
        at = self.group.join(at) if self.group else at
        for _ in range(self.world.shape.transactions):
            if self.dead or at > self.world.end:
                return
            at = self.transact(self.world.away.stop + self.rng.randrange(500) if at in self.world.away else at)
            if self.group and not self.dead:
                self.group.ended(self.world.transactions[-1])
            at += round(self.world.shape.period_ms * self.rng.uniform(0.3, 0.9))
            if self.world.shape.has("sessions") and self.rng.random() < 0.1 and not self.dead:
                at = self.restart(at)
            elif self._may_pause(at) and self.rng.random() < 0.25 and not self.dead:
                at = self.forgotten(at)

    def _may_pause(self, at: int) -> bool:
        """Long enough for its id to be forgotten, and to be back before the end."""
        return self.world.shape.has("expired_ids") and at + self.world.shape.id_expires_ms + 65_000 < self.world.end

    def forgotten(self, at: int) -> int:
        """A pause so long that the coordinator forgets the id; its next transaction is refused (INVALID_PRODUCER_ID_MAPPING), so it begins
        anew, or it never comes back."""
        at = self.coordinator.forgets(at)
        self.dead, self.sequences = self.rng.random() < 0.2, Sequences()
        if self.dead:
            return at
        at = self.coordinator.empty(at + self.rng.choice((20, 2_000, 60_000))) + 3
        return self.group.join(at) if self.group else at

    def restart(self, at: int) -> int:
        """InitProducerId of a new session with nothing open."""
        coordinator = self.coordinator
        if coordinator.epoch >= LAST_EPOCH:
            coordinator.producer_id, coordinator.epoch = coordinator.producer_id + 1_000, 0
            self.sequences = Sequences()
        else:
            coordinator.epoch += 1
        at = coordinator.empty(at + 100) + 3
        return self.group.join(at) if self.group else at

    def transact(self, at: int) -> int:
        """One transaction; returns when the client goes on."""
        world, coordinator = self.world, self.coordinator
        # A client looks what the coordinator's broker speaks when it begins (`TransactionManager.maybeUpdateTransactionV2Enabled`).
        self.is_tv2 = coordinator.is_tv2 = self.knows_tv2 and at not in world.lowered
        transaction = Transaction(len(world.transactions), self.name, coordinator.producer_id, coordinator.epoch, self.is_tv2, at)
        world.transactions.append(transaction)
        at = self._write_data(at, transaction)
        at = self._commit_offsets(at, transaction)
        expired = coordinator.expires(transaction.began_at)
        chance = self.rng.random()
        if world.shape.has("timeouts") and coordinator.timeout_ms < 20_000 and chance < 0.15:
            return self._time_out(max(expired, at), transaction)
        if expired <= at + 300:
            return self._time_out(max(expired, at), transaction)
        if world.shape.has("fences") and chance < 0.25:
            return self._fence(at + 200, transaction)
        is_late = coordinator.timeout_ms >= 20_000 and at > world.end - world.length_ms // 3
        is_left = not (world.shape.has("leaps") or world.shape.has("expired_ids")) or expired > world.end
        if world.shape.has("open_at_end") and is_late and chance < 0.3 and is_left:
            self.dead = True
            return at
        aborts = world.shape.has("aborts") and self.rng.random() < 0.25
        raised = 1 if self.is_tv2 else 0
        return coordinator.end(at + 2, transaction, "ABORT" if aborts else "COMMIT", raised=raised) + 2

    def _write_data(self, at: int, transaction: Transaction) -> int:
        """Registers partitions and writes to them, for a part of the period."""
        places = [log.place for log in self.world.data_logs]
        chosen = self.rng.sample(places, self.rng.randint(1, min(3, len(places))))
        empty = {place for place in chosen[1:] if self.world.shape.has("empty_partitions") and self.rng.random() < 0.2}
        length = max(round(self.world.shape.period_ms * self.rng.uniform(0.05, 0.5)), 8)
        known: list[Place] = []
        first = at
        if not self.is_tv2:
            cut = self.rng.choice((len(chosen), len(chosen), 1))
            known = chosen[:cut]
            at = self.coordinator.ongoing(at, transaction, tuple(known))
            transaction.began_at = at
        for place in chosen:
            if place not in known:
                at = self.coordinator.ongoing(at + 1, transaction, (place,))
                transaction.began_at = at if not known else transaction.began_at
                known.append(place)
            for _ in range(0 if place in empty else self.rng.choice((1, 1, 2))):
                at = max(at, first) + self.rng.choice((1, 2, 5)) + self.rng.randrange(1 + length // (2 * len(chosen)))
                epoch = transaction.epoch
                self.produce(at, place, producer_id=transaction.producer_id, epoch=epoch, transaction=transaction)
        return at + 2

    def _commit_offsets(self, at: int, transaction: Transaction) -> int:
        """sendOffsetsToTransaction(), once or twice."""
        if self.group is None:
            return at
        at = self.coordinator.ongoing(at, transaction, (PLACE,))
        for _ in range(self.group.rng.choice((1, 1, 1, 2))):
            at = self.group.commit(at + self.group.rng.choice((1, 2, 9)), transaction)
        return at + 2

    def _time_out(self, at: int, transaction: Transaction) -> int:
        at = self.coordinator.end(at, transaction, "ABORT", raised=1, by_server=True)
        if self.rng.random() < 0.2:
            self.dead = True
            return at
        if self.is_tv2 and self.rng.random() < 0.5:
            return at + 50  # abortTransaction() after the timeout: the client goes on with the new epoch
        return self.restart(at + self.rng.choice((20, 500, 2_000)))

    def _fence(self, at: int, transaction: Transaction) -> int:
        at = self.coordinator.end(at, transaction, "ABORT", raised=1, by_server=True)
        return self.restart(at)


def idempotent_life(world: World, name: str, producer_id: int) -> None:
    """A producer without a transactional id; its epoch rises when the client gives batches up, its id when it restarts."""
    client, epoch, at = Client(world, name), 0, BEGIN_MS
    places = [log.place for log in world.data_logs]
    for _ in range(world.shape.transactions):
        at += round(world.shape.period_ms * client.rng.uniform(0.2, 1.5)) + 1
        if at > world.end:
            return
        if client.rng.random() < 0.05:
            producer_id, epoch, client.sequences = producer_id + 100, 0, Sequences()
        elif client.rng.random() < 0.05:
            epoch += 1
        client.produce(at, client.rng.choice(places), producer_id=producer_id, epoch=epoch)


def plain_life(world: World, name: str) -> None:
    """A producer with enable.idempotence=false."""
    client, at = Client(world, name), BEGIN_MS
    places = [log.place for log in world.data_logs]
    for _ in range(world.shape.transactions):
        at += round(world.shape.period_ms * client.rng.uniform(0.2, 1.5)) + 1
        if at <= world.end:
            client.produce(at, client.rng.choice(places), producer_id=-1, epoch=-1)


def names(shape: Shape) -> list[str]:
    """Transactional ids, of one family or of several."""
    rng = shape.stream("names")
    stems = rng.sample(STEMS, min(shape.ids, len(STEMS)))
    numbered = rng.random() < 0.3
    return [f"{stems[0]}-{n}" if numbered else f"{stems[n % len(stems)]}-{rng.randrange(3)}" for n in range(shape.ids)]


def live(shape: Shape) -> World:
    """The whole life of a cluster."""
    world = empty_world(shape)
    ids: random.Random = shape.stream("ids")
    first = ids.choice((0, 0, 1_000, 7_000))
    for number, name in enumerate(names(shape)):
        Transactional(world, name, first + number).live()
    for number in range(shape.idempotent):
        idempotent_life(world, f"idem{number}", first + shape.ids + number)
    for number in range(shape.plain):
        plain_life(world, f"plain{number}")
    for log in world.logs.values():
        log.settle()
    if shape.has("recreated"):
        create_anew(world)
    for log in world.coordinator_logs:
        log.first_offset = log.first_offset if log.writes else 0
    return world
