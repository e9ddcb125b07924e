"""A coordinator with a memory and appends that fail: what it logs is legal, whatever the log looks like.

An append that fails for want of in-sync replicas, or in time, stays in the log while the memory stays where it was, so the next entry is
computed from an older state. A coordinator that loads the partition again takes the last entry of the log for its memory.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eo_audit.model.entries import Entry, Partitions
from eo_audit.model.states import COMPLETE, EMPTY, ONGOING, PREPARE_ABORT, PREPARE_COMMIT, PREPARED, TOMBSTONE, TV2, fence_may_jump
from tests.support.coordinator_logs import END_OF, TOPICS, Cluster

HOUR_MS = 3_600_000  # from one look for expired ids to the next
NOTHING = Entry(-1, TOMBSTONE)


@dataclass
class Coordinator:
    """One transactional id: `memory` is its last acknowledged entry, `log` everything appended; offsets count up from 0.

    `counted` holds the offsets that were acknowledged, or loaded.
    """

    random: random.Random
    cluster: Cluster
    failing: float = 0.3
    memory: Entry = NOTHING
    log: list[Entry] = field(default_factory=list)
    counted: set[int] = field(default_factory=set)
    now: int = 1_700_000_000_000
    burned: int = 0  # epochs raised by fences that failed (before 2.6)
    epoch_of_fence: int | None = None

    def append(self, entry: Entry) -> bool:
        """Append an entry; whether it was acknowledged."""
        self.now += self.random.choice([1, 5, 200, 900, 5_000])
        written = replace(entry, offset=len(self.log), last_update_ms=entry.last_update_ms or self.now, batch_ms=self.now + 1)
        self.log.append(written)
        if self.random.random() < self.failing:
            return False
        self._remember(written)
        return True

    def _remember(self, entry: Entry) -> None:
        self.memory, self.burned = entry, 0
        self.counted.add(entry.offset)

    def next(self, status: str, *, epoch: int, partitions: Partitions = frozenset(), start_ms: int | None = None, **more: int) -> Entry:
        """The entry that goes on from memory."""
        version = 2 if self.cluster.protocol == TV2 and status != EMPTY else None
        kept = self.memory.start_ms if start_ms is None else start_ms
        fields = {"epoch": epoch, "partitions": partitions, "start_ms": kept, "client_version": version, "last_update_ms": None, **more}
        return replace(self.memory, status=status, **fields)  # type: ignore[arg-type]

    def step(self) -> None:
        """One thing that a client, a timer or a failover does."""
        self.now += self.random.choice([1, 50, 3_000])
        if self.log and self.random.random() < 0.05:
            return self.load()
        status = self.memory.status
        if status in PREPARED:
            return self.complete()
        if status == ONGOING:
            return self.random.choice([self.add, self.end, self.end, self.fence])()
        if status == TOMBSTONE:
            return self.init_unknown()
        choices: list[Callable[[], None]] = [self.begin, self.begin, self.begin, self.init, self.expire]
        return self.random.choice([*choices, self.end_nothing] if self.cluster.protocol == TV2 else choices)()

    def load(self) -> None:
        """Another broker takes over: what was appended counts, acknowledged or not."""
        last = self.log[-1]
        self._remember(last)

    def init_unknown(self) -> None:
        timeout = self.random.choice([60_000, 2_500])
        identity = {"producer_id": self.random.randrange(10_000), "timeout_ms": timeout}
        self.append(self.next(EMPTY, epoch=0, start_ms=-1, **identity))

    def init(self) -> None:
        self.append(self.next(EMPTY, epoch=self._epoch() + 1, start_ms=-1, timeout_ms=self.random.choice([60_000, 2_500])))

    def begin(self) -> None:
        partition = frozenset(self.random.sample(TOPICS, 1))
        self.append(self.next(ONGOING, epoch=self._epoch(), partitions=partition, start_ms=self.now, last_update_ms=self.now))

    def add(self) -> None:
        more = self.memory.partitions | frozenset(self.random.sample(TOPICS, 2))
        if more != self.memory.partitions:
            self.append(self.next(ONGOING, epoch=self._epoch(), partitions=more))

    def end(self) -> None:
        raised = 1 if self.cluster.protocol == TV2 else 0
        status = self.random.choice([PREPARE_COMMIT, PREPARE_ABORT])
        self.append(self.next(status, epoch=self._epoch() + raised, partitions=self.memory.partitions))

    def end_nothing(self) -> None:
        self.append(self.next(PREPARE_ABORT, epoch=self._epoch() + 1, start_ms=self.now, last_update_ms=self.now))

    def fence(self) -> None:
        fenced = self.next(PREPARE_ABORT, epoch=self._epoch() + self.cluster.fence_raises + self.burned, partitions=self.memory.partitions)
        fenced = replace(fenced, client_version=self.cluster.own_version)
        if not self.append(fenced) and self.cluster.protocol != TV2 and fence_may_jump(self.cluster.kafka_version):
            self.burned += 1

    def complete(self) -> None:
        """All markers are written; a failed append is sent again from a queue, unchanged."""
        done = self.next(END_OF[self.memory.status], epoch=self._epoch(), last_update_ms=self.now)
        done = replace(done, client_version=self.memory.client_version)
        while not self.append(done):
            pass

    def expire(self) -> None:
        if self.memory.status in (EMPTY, *COMPLETE):
            self.now += self.cluster.id_expires_ms + HOUR_MS
            self.append(Entry(0, TOMBSTONE))

    def _epoch(self) -> int:
        return self.memory.epoch or 0


def ghost_life(source: random.Random, cluster: Cluster, length: int, *, failing: float = 0.3) -> Coordinator:
    """A coordinator after so many entries of one id; its log as the cluster's dump tool prints it."""
    one = Coordinator(source, cluster, failing)
    while len(one.log) < length:
        one.step()
    if not cluster.json:
        one.log = [replace(entry, start_ms=None, client_version=None) for entry in one.log]
    return one
