"""Random logs of which a leader accepted every batch: clients, coordinators and zombies send what they like, and it appends what it must.

The leader is `eo_audit.model.producer_state`. What is sent is often wrong: sent again, out of order, with an old epoch, by a fenced client.
The same seed gives the same log. Only a leader that forgets its producers (`forgetful`) lets wrong batches in.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eo_audit.model.batches import ABORT, COMMIT, NO_PRODUCER, Batch
from eo_audit.model.producer_state import GENERATIONS, Answer, Partition
from eo_audit.model.sequences import CIRCLE, inc

# How much EndTxn raises the epoch, and how much a fence or a timeout does: 0.11 not at all (KAFKA-6119), 4.0 twice (KAFKA-19367).
RAISES = {"0.11": (0, (0,)), "1.0": (0, (1,)), "2.5": (0, (1,)), "4.0": (1, (1, 2)), "4.2": (1, (1,))}


@dataclass
class Client:
    """A producer as it sees itself: its epoch, its next sequence, and what it has sent and still remembers."""

    producer_id: int
    transactional: bool
    epoch: int = 0
    next_sequence: int = 0
    sent: list[Batch] = field(default_factory=list)

    def begins_epoch(self, epoch: int) -> None:
        """A new epoch starts at sequence 0."""
        self.epoch, self.next_sequence = epoch, 0


@dataclass
class AcceptedLog:
    """One log in the making, and what its leader answered."""

    random: random.Random
    release: str
    partition: Partition
    clients: list[Client]
    answers: Counter[Answer] = field(default_factory=Counter)
    segments: list[int] = field(default_factory=lambda: [0])
    coordinator_epoch: int = 0
    started_anywhere: set[int] = field(default_factory=set)
    """Producers whose first batch here was not at sequence 0."""

    @property
    def end_offset(self) -> int:
        """The offset that the next batch gets."""
        return self.partition.log[-1].last_offset + 1 if self.partition.log else 0

    def send(self, batch: Batch) -> Answer:
        """Let the leader give a batch its offsets and answer; its own only say how many it spans."""
        span = batch.last_offset - batch.base_offset
        placed = replace(
            batch,
            base_offset=self.end_offset,
            last_offset=self.end_offset + span,
            segment_base_offset=self.segments[-1],
            max_timestamp_ms=0,
        )
        if batch.producer_id == NO_PRODUCER:
            self.partition.log.append(placed)
            return Answer.APPENDED
        unknown = self.partition.entry(batch.producer_id).epoch == -1
        answer = self.partition.produce(placed)
        self.answers[answer] += 1
        if answer is Answer.APPENDED and unknown and batch.base_sequence > 0:
            self.started_anywhere.add(batch.producer_id)
        return answer

    def data(self, client: Client, base: int, records: int, *, epoch: int | None = None, transactional: bool | None = None) -> None:
        """A client's batch. It goes on behind it when the leader has it."""
        batch = Batch(
            base_offset=0,
            last_offset=records - 1,
            producer_id=client.producer_id,
            producer_epoch=client.epoch if epoch is None else epoch,
            base_sequence=base,
            last_sequence=inc(base, records - 1),
            is_transactional=client.transactional if transactional is None else transactional,
            count=records,
        )
        if self.send(batch) is Answer.APPENDED and batch.producer_epoch == client.epoch:
            client.next_sequence = inc(base, records)
            client.sent.append(batch)

    def marker(self, client: Client, kind: str, raised: int, *, coordinators_before: int = 0) -> None:
        """A marker of the coordinator, or of one before it, in an epoch so much above the client's, which then goes on in that one."""
        marker = Batch(
            *(0, 0, client.producer_id, client.epoch + raised),
            is_transactional=True,
            is_control=True,
            marker_type=kind,
            coordinator_epoch=self.coordinator_epoch - coordinators_before,
        )
        if self.send(marker) is Answer.APPENDED and raised:
            client.begins_epoch(marker.producer_epoch)


def goes_on(log: AcceptedLog, client: Client) -> None:
    # Few batches go round the circle of sequences when some are as large as an int allows.
    records = log.random.randint(1, 5) if log.random.random() < 0.97 else log.random.choice([2**29, 2**30, CIRCLE - 1])
    log.data(client, client.next_sequence, records)


def sends_again(log: AcceptedLog, client: Client) -> None:
    if client.sent:
        start = log.random.randrange(max(len(client.sent) - 9, 0), len(client.sent))
        for old in client.sent[start : start + log.random.choice([1, 1, 3])]:
            log.send(old)


def puts_it_into_other_batches(log: AcceptedLog, client: Client) -> None:
    if client.sent:
        old = log.random.choice(client.sent[-4:])
        log.data(client, (old.base_sequence + log.random.randint(-3, 3)) % CIRCLE, log.random.randint(1, 6), epoch=old.producer_epoch)


def leaves_a_gap(log: AcceptedLog, client: Client) -> None:
    log.data(client, inc(client.next_sequence, log.random.choice([1, 2, 7, 2**29, 2**30])), log.random.randint(1, 3))


def is_a_zombie(log: AcceptedLog, client: Client) -> None:
    log.data(client, log.random.choice([0, client.next_sequence]), 2, epoch=max(0, client.epoch - log.random.choice([1, 2])))


def ends_a_transaction(log: AcceptedLog, client: Client) -> None:
    if client.transactional:
        log.marker(client, log.random.choice([COMMIT, ABORT]), RAISES[log.release][0])


def starts_again(log: AcceptedLog, client: Client) -> None:
    """InitProducerId: what is open is aborted, and the new instance has an epoch of its own (idempotent clients bump theirs, KIP-360)."""
    if client.transactional:
        log.marker(client, ABORT, log.random.choice(RAISES[log.release][1]))
    client.begins_epoch(client.epoch + 1)


def times_out(log: AcceptedLog, client: Client) -> None:
    """The coordinator aborts; the client does not know it, and sends on."""
    if client.transactional:
        known = client.epoch, client.next_sequence
        log.marker(client, ABORT, log.random.choice(RAISES[log.release][1]))
        fenced = client.epoch
        client.epoch, client.next_sequence = known
        goes_on(log, client)
        client.begins_epoch(max(fenced, client.epoch) + 1)


def is_told_again(log: AcceptedLog, client: Client) -> None:
    """A coordinator sends a marker a second time; or one that lost its place sends an old one."""
    markers = [batch for batch in log.partition.log[-30:] if batch.kind == "marker" and batch.producer_id == client.producer_id]
    if markers:
        log.send(log.random.choice(markers))


def is_told_by_an_old_coordinator(log: AcceptedLog, client: Client) -> None:
    if client.transactional and log.coordinator_epoch:
        log.marker(client, log.random.choice([COMMIT, ABORT]), RAISES[log.release][0], coordinators_before=1)


def is_coordinated_anew(log: AcceptedLog, _: Client) -> None:
    log.coordinator_epoch += 1


def leaves_the_transaction(log: AcceptedLog, client: Client) -> None:
    log.data(client, client.next_sequence, 1, transactional=not client.transactional)


def is_nobody(log: AcceptedLog, _: Client) -> None:
    log.send(Batch(0, log.random.randrange(3)))


def rolls(log: AcceptedLog, _: Client) -> None:
    if log.end_offset > log.segments[-1]:
        log.segments.append(log.end_offset)


def is_forgotten(log: AcceptedLog, client: Client) -> None:
    """The leader lost its state: expiry, or an unclean election. What the client sent before is news to it."""
    log.partition.forget(client.producer_id)
    if client.sent and log.random.random() < 0.7:
        log.send(log.random.choice(client.sent[-8:]))
    else:
        client.begins_epoch(client.epoch + 1)
        log.data(client, 3, 2)  # its first batch of the epoch was lost with the state


Deed = Callable[[AcceptedLog, Client], None]
DEEDS: dict[Deed, int] = {
    goes_on: 30,
    sends_again: 5,
    puts_it_into_other_batches: 4,
    leaves_a_gap: 3,
    is_a_zombie: 4,
    ends_a_transaction: 10,
    starts_again: 3,
    times_out: 2,
    is_told_again: 3,
    is_told_by_an_old_coordinator: 2,
    is_coordinated_anew: 2,
    leaves_the_transaction: 2,
    is_nobody: 2,
    rolls: 2,
}
FORGETFUL: dict[Deed, int] = DEEDS | {is_forgotten: 4}


def accepted_log(seed: int, *, deeds: int, forgetful: bool = False) -> AcceptedLog:
    """A log that a leader of some release accepted; seeds take the releases in turn."""
    chance = random.Random(seed)
    release = list(GENERATIONS)[seed % len(GENERATIONS)]
    clients = [
        Client(producer_id, chance.random() < 0.6, next_sequence=chance.choice([0, 0, 0, 7, CIRCLE - 3])) for producer_id in range(3)
    ]
    log = AcceptedLog(chance, release, Partition(GENERATIONS[release]), clients)
    done = FORGETFUL if forgetful else DEEDS
    for deed in chance.choices(list(done), weights=list(done.values()), k=deeds):
        deed(log, chance.choice(clients))
    return log
