"""Brokers: who leads what when, and the logs as sequences of writes that have no offsets yet."""

import bisect
from dataclasses import dataclass, field, replace

from tests.cluster.clock import BEGIN_MS, Clock, broker_clocks
from tests.cluster.shape import TV2, Shape

Place = tuple[str, int]
COORDINATOR = "__transaction_state"
OFFSETS = "__consumer_offsets"
INTERNAL = (COORDINATOR, OFFSETS)
MOVED_MS = 50  # more than a clock drifts while a cluster of ours lives


@dataclass(frozen=True)
class Term:
    """A broker leads from a true time on, under a leader epoch."""

    at: int
    broker: int
    epoch: int


@dataclass(frozen=True)
class Leadership:
    """Who led one partition, in order; `raised`: when the leader epoch went up without an election."""

    terms: tuple[Term, ...]
    raised: tuple[int, ...] = ()

    def term(self, at: int) -> Term:
        """The term at a true time, with the leader epoch of that time."""
        return self._since(self._begun(at), at)

    def elected(self, at: int) -> Term:
        """The term at a true time, with the leader epoch of its election."""
        return self._since(found := self._begun(at), found.at)

    def change_between(self, first: int, last: int) -> Term | None:
        """The first term that begins behind one true time and not behind another, with the leader epoch of its election."""
        return next((self._since(term, term.at) for term in self.terms if first < term.at <= last), None)

    def _begun(self, at: int) -> Term:
        return self.terms[max(bisect.bisect_right([term.at for term in self.terms], at) - 1, 0)]

    def _since(self, term: Term, at: int) -> Term:
        return replace(term, epoch=term.epoch + bisect.bisect_right(self.raised, at)) if self.raised else term


@dataclass(frozen=True)
class Record:
    """One record of a batch."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass
class Transaction:
    """One transaction, as it really went. Times are true ones; `ended_at` is when its CompleteCommit or CompleteAbort was written."""

    number: int
    transactional_id: str
    producer_id: int
    epoch: int
    is_tv2: bool
    began_at: int
    partitions: list[Place] = field(default_factory=list)
    marker_epoch: int | None = None
    decision: str | None = None
    decided_at: int | None = None
    ended_at: int | None = None


@dataclass(frozen=True)
class Write:
    """One batch on its way into a log.

    Attributes:
        at: true time of the append.
        broker_ms: the leader's clock then.
        leader_epoch: of the term.
        marker: COMMIT or ABORT of a control batch.
        transaction: the one it belongs to.
        entry_sizes: key and value bytes, where the text of a record is not its bytes (coordinator entries).
        lost: its offsets are taken, and nothing stands there.
    """

    at: int
    broker_ms: int
    leader_epoch: int
    records: tuple[Record, ...]
    producer_id: int = -1
    epoch: int = -1
    base_sequence: int = -1
    marker: str | None = None
    coordinator_epoch: int = -1
    transaction: Transaction | None = None
    entry_sizes: tuple[int, int] | None = None
    lost: bool = False

    @property
    def is_transactional(self) -> bool:
        """Data or marker of a transaction."""
        return self.transaction is not None or self.marker is not None


@dataclass
class Log:
    """One partition: what was written to it, in any order until `settle`."""

    topic: str
    partition: int
    leadership: Leadership
    append_time: bool = False
    compacted: bool = False
    first_offset: int = 0
    producer_expires_ms: int | None = None
    writes: list[Write] = field(default_factory=list)

    @property
    def place(self) -> Place:
        """Topic and partition."""
        return self.topic, self.partition

    def settle(self) -> None:
        """Put the writes in the order in which they reached the log."""
        self.writes.sort(key=lambda write: write.at)


@dataclass
class World:
    """Everything that happened."""

    shape: Shape
    length_ms: int
    clocks: dict[int, Clock]
    logs: dict[Place, Log]
    transactions: list[Transaction] = field(default_factory=list)
    lowered: range = range(0)
    away: range = range(0)

    @property
    def end(self) -> int:
        """True time at which producers begin nothing new."""
        return BEGIN_MS + self.length_ms

    def clock(self, place: Place, at: int) -> int:
        """The clock of the leader of a partition."""
        return self.clocks[self.logs[place].leadership.term(at).broker].read(at)

    def clock_moved(self, log: Log) -> bool:
        """Whether the clock that wrote a log is not the same from its first write to its last: it was set, or another broker leads."""
        ahead = [write.broker_ms - write.at for write in log.writes]
        return bool(ahead) and max(ahead) - min(ahead) > MOVED_MS

    @property
    def data_logs(self) -> list[Log]:
        """Those of topics that clients write."""
        return [log for log in self.logs.values() if log.topic not in INTERNAL]

    @property
    def marked_logs(self) -> list[Log]:
        """Those that get markers: the same, and the offsets of groups."""
        return [log for log in self.logs.values() if log.topic != COORDINATOR]

    @property
    def coordinator_logs(self) -> list[Log]:
        """The partitions of `__transaction_state`."""
        return [log for log in self.logs.values() if log.topic == COORDINATOR]


def _lowered(shape: Shape, length_ms: int) -> range:
    """When transaction.version is below 2 in a cluster that had it."""
    rng = shape.stream("lowered")
    begin = BEGIN_MS + round(length_ms * rng.uniform(0.1, 0.7))
    lasts = round(length_ms * rng.choice((0.1, 0.3, 1.0)))
    return range(begin, begin + lasts) if shape.has("lowered") and shape.protocol == TV2 else range(0)


def _away(shape: Shape, length_ms: int) -> range:
    """When all producers are stopped, because a topic is deleted and created anew."""
    rng = shape.stream("away")
    begin = BEGIN_MS + round(length_ms * rng.uniform(0.2, 0.7))
    lasts = rng.choice((3_000, 10_000, 30_000, 120_000))
    return range(begin, begin + lasts) if shape.has("recreated") else range(0)


def empty_world(shape: Shape) -> World:
    """Brokers, partitions and their leaders, before any producer comes."""
    rng = shape.stream("topics")
    length = shape.transactions * shape.period_ms + 4_000 + (4 * shape.id_expires_ms if shape.has("expired_ids") else 0)
    two_topics = rng.random() < 0.5
    places = [("orders" if not two_topics or n % 2 == 0 else "payments", n // 2 if two_topics else n) for n in range(shape.partitions)]
    append_time = {topic: shape.has("append_time") and rng.random() < 0.6 for topic in ("orders", "payments")}
    compacted = {topic: shape.has("cleaned_data") and rng.random() < 0.6 for topic in ("orders", "payments")}
    world = World(shape, length, broker_clocks(shape, length), {}, lowered=_lowered(shape, length), away=_away(shape, length))
    for topic, partition in places:
        leaders = _leadership(shape, (topic, partition), length, shape.has("leader_changes"))
        log = Log(topic, partition, leaders, append_time[topic], compacted[topic], producer_expires_ms=shape.producer_expires_ms)
        world.logs[log.place] = log
    if shape.has("group_offsets"):
        leaders = _leadership(shape, (OFFSETS, 0), length, shape.has("leader_changes"))
        world.logs[OFFSETS, 0] = Log(OFFSETS, 0, leaders, compacted=shape.has("cleaned_data"))
    for partition in range(shape.coordinators):
        leaders = _leadership(shape, (COORDINATOR, partition), length, shape.has("failovers"))
        first = 40_000 + partition if shape.has("exhaustion") else 0  # epochs that high have a long story, and it is compacted
        world.logs[COORDINATOR, partition] = Log(COORDINATOR, partition, leaders, compacted=True, first_offset=first)
    return world


def _leadership(shape: Shape, place: Place, length_ms: int, changes: bool) -> Leadership:
    rng = shape.stream("leaders", *place)
    epoch = rng.choice((0, 0, 0, 3))
    terms = [Term(BEGIN_MS - 60_000, rng.randrange(1, shape.brokers + 1), epoch)]
    if changes and shape.brokers > 1:
        for at in sorted(rng.randrange(BEGIN_MS, BEGIN_MS + length_ms) for _ in range(rng.choice((1, 1, 2)))):
            others = [broker for broker in range(1, shape.brokers + 1) if broker != terms[-1].broker]
            terms.append(Term(at, rng.choice(others), terms[-1].epoch + rng.choice((1, 1, 2))))
    elected = Leadership(tuple(terms))
    return replace(elected, raised=tuple(at for at, broker in _followers_lost(shape, length_ms) if elected.term(at).broker != broker))


def _followers_lost(shape: Shape, length_ms: int) -> list[tuple[int, int]]:
    """When a broker fell out of the replicas that are in sync, and which one: where it does not lead, the epoch is raised all the same
    (`PartitionStateMachine`, `KafkaController.removeReplicasFromIsr`)."""
    rng = shape.stream("followers")
    if not shape.has("raised_epochs") or shape.release != "3.9" or shape.brokers == 1:
        return []
    return sorted(
        (rng.randrange(BEGIN_MS, BEGIN_MS + length_ms), rng.randrange(1, shape.brokers + 1)) for _ in range(rng.choice((1, 2, 4)))
    )
