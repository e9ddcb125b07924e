"""Consumer groups: what applications that consume, transform and produce commit to `__consumer_offsets` in their transactions."""

import json
import random
from dataclasses import dataclass, field

from tests.cluster.brokers import OFFSETS, Place, Record, Transaction, World, Write

INPUT = "input"  # nobody dumps it
PLACE: Place = (OFFSETS, 0)


def key_of(group: str, partition: int) -> bytes:
    """The key of a commit as `OffsetsMessageFormatter` and the dump tool of 3.8 and later print it."""
    data = {"group": group, "topic": INPUT, "partition": partition}
    return json.dumps({"type": "1", "data": data}, separators=(",", ":")).encode()


@dataclass
class Group:
    """The group of one application: a position for each input partition, and what of it was committed.

    Attributes:
        world: gets the commits.
        name: its id.
        rng: a stream of its own.
        position: where the application reads on.
        committed: what the group coordinator knows.
    """

    world: World
    name: str
    rng: random.Random
    position: dict[int, int] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)

    def join(self, at: int) -> int:
        """A rebalance: new members begin at what was committed. A member that leaves may commit once more, without a transaction."""
        if self.committed and self.rng.random() < 0.3:
            partition = self.rng.choice(sorted(self.committed))
            self._append(at, [(partition, self.committed[partition])])
            at += 1
        self.position = dict(self.committed)
        value = {"version": "3", "data": {"protocolType": "consumer", "generation": 1, "protocol": "range", "leader": None, "members": []}}
        key = json.dumps({"type": "2", "data": {"group": self.name}}, separators=(",", ":"))
        self._write(at, ((key.encode(), json.dumps(value, separators=(",", ":")).encode()),), (4 + len(self.name), 60))
        return at + 2

    def commit(self, at: int, transaction: Transaction) -> int:
        """TxnOffsetCommit of some of its input; returns the true time of the append."""
        for partition in self.rng.sample((0, 1), self.rng.choice((1, 1, 2))):
            self.position[partition] = self.position.get(partition, 0) + self.rng.randrange(1, 9)
        self._append(at, sorted(self.position.items()), transaction)
        return at

    def ended(self, transaction: Transaction) -> None:
        """The application goes on behind a commit, and reads again behind an abort."""
        if transaction.decision == "COMMIT":
            self.committed = dict(self.position)
        self.position = dict(self.committed)

    def _append(self, at: int, offsets: list[tuple[int, int]], transaction: Transaction | None = None) -> None:
        version = "4" if self.world.shape.release >= "4.1" else "3"
        told = self.world.clock(PLACE, at)
        rows = []
        for partition, offset in offsets:
            data = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": told}
            value = json.dumps({"version": version, "data": data}, separators=(",", ":"))
            rows.append((key_of(self.name, partition), value.encode()))
        # `OffsetCommitKey` has 10 bytes beside group and topic, `OffsetCommitValue` 24 in version 3, and as many in 4.
        self._write(at, tuple(rows), (10 + len(self.name) + len(INPUT), 24), transaction)

    def _write(
        self, at: int, rows: tuple[tuple[bytes, bytes], ...], sizes: tuple[int, int], transaction: Transaction | None = None
    ) -> None:
        log = self.world.logs[PLACE]
        stamp, term = self.world.clock(PLACE, at), log.leadership.term(at)
        records = tuple(Record(key, value, stamp) for key, value in rows)
        of_batch = (-1, -1) if transaction is None else (transaction.producer_id, transaction.epoch)
        # The group coordinator begins each transactional batch at sequence 0.
        first = -1 if transaction is None else 0
        log.writes.append(Write(at, stamp, term.epoch, records, *of_batch, first, transaction=transaction, entry_sizes=sizes))
