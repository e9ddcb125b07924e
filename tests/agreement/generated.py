"""Random logs, the same for the same seed: everything a producer, a broker or a copying hand can do to the order of batches."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.sequences import CIRCLE, inc


@dataclass
class Producer:
    """A producer as the generator plays it: its epoch, the next sequence of each epoch, and what it has written."""

    producer_id: int
    transactional: bool
    epoch: int = 0
    next_sequence: dict[int, int] = field(default_factory=dict)
    written: list[Batch] = field(default_factory=list)


@dataclass
class LogWriter:
    """One replica log in the making; `topic`, `compacted` and `cleaned_below` are what an audit would know of it."""

    random: random.Random
    topic: str
    producers: list[Producer]
    compacted: bool = False
    cleaned_below: int | None = None
    log_start: int | None = None
    batches: list[Batch] = field(default_factory=list)
    next_offset: int = 0
    segment: int = 0
    clock: int = 1_700_000_000_000
    leader_epoch: int = 0

    def write(self, batch: Batch) -> Batch:
        """Give a batch its place, and append it; its offsets so far say only how many it spans."""
        span = batch.last_offset - batch.base_offset
        self.clock += self.random.randrange(1000)
        placed = replace(
            batch,
            base_offset=self.next_offset,
            last_offset=self.next_offset + span,
            max_timestamp_ms=self.clock - self.random.randrange(3000),
            partition_leader_epoch=self.leader_epoch,
            segment_base_offset=self.segment,
        )
        self.batches.append(placed)
        self.next_offset += span + 1
        return placed

    def data(self, producer: Producer, *, base: int, records: int, epoch: int | None = None, count: int | None = None) -> None:
        """A data batch of a producer."""
        epoch = producer.epoch if epoch is None else epoch
        batch = Batch(
            base_offset=0,
            last_offset=records - 1,
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            base_sequence=base,
            last_sequence=inc(base, records - 1),
            is_transactional=producer.transactional,
            count=records if count is None else count,
        )
        producer.written.append(self.write(batch))
        producer.next_sequence[epoch] = inc(base, records)


def goes_on(log: LogWriter, producer: Producer) -> None:
    first = log.random.choice([0, 0, 7, CIRCLE - 3])
    base = producer.next_sequence.get(producer.epoch, first if not producer.written else 0)
    log.data(producer, base=base, records=log.random.randint(1, 5), count=0 if log.random.random() < 0.05 else None)


def leaves_a_gap(log: LogWriter, producer: Producer) -> None:
    step = log.random.choice([1, 2, 5, 2**29, 2**30 - 1])
    log.data(producer, base=inc(producer.next_sequence.get(producer.epoch, 0), step), records=log.random.randint(1, 5))


def goes_round(log: LogWriter, producer: Producer) -> None:
    """A whole circle of sequences in three jumps: what was written before comes again, legally."""
    for _ in range(3):
        log.data(producer, base=inc(producer.next_sequence.get(producer.epoch, 0), CIRCLE // 3), records=1)


def sends_again(log: LogWriter, producer: Producer) -> None:
    if producer.written:
        start = log.random.randrange(len(producer.written))
        for old in producer.written[start : start + log.random.choice([1, 1, 2, 8])]:
            producer.written.append(log.write(old))
            producer.next_sequence[old.producer_epoch] = inc(old.last_sequence, 1)


def goes_back(log: LogWriter, producer: Producer) -> None:
    """The same sequences in other batches, or some that a gap left out."""
    if producer.written:
        old = log.random.choice(producer.written[-12:])
        base = (old.base_sequence + log.random.randint(-6, 4)) % CIRCLE
        log.data(producer, base=base, records=log.random.randint(1, 9), epoch=old.producer_epoch)


def numbers_anew(log: LogWriter, producer: Producer) -> None:
    """From 0 again in the same epoch, as a client does that was forgotten with its last record; sometimes one that was not."""
    for _ in range(log.random.choice([1, 1, 3])):
        log.data(producer, base=0, records=log.random.randint(1, 2))
        if log.random.random() < 0.3:
            log.batches[-1] = replace(log.batches[-1], max_timestamp_ms=log.batches[-2].max_timestamp_ms if len(log.batches) > 1 else 0)


def raises_the_epoch(log: LogWriter, producer: Producer) -> None:
    producer.epoch += log.random.choice([1, 1, 2])
    log.data(producer, base=log.random.choice([0, 0, 4]), records=log.random.randint(1, 4))


def is_a_zombie(log: LogWriter, producer: Producer) -> None:
    old = max(0, producer.epoch - log.random.choice([1, 2]))
    log.data(producer, base=producer.next_sequence.get(old, log.random.choice([0, 9])), records=2, epoch=old)


def ends_a_transaction(log: LogWriter, producer: Producer) -> None:
    raised = producer.epoch + log.random.choice([0, 0, 0, 1])
    kind = log.random.choice([COMMIT, ABORT, None])
    marker = Batch(0, 0, producer.producer_id, raised, is_transactional=True, is_control=True, marker_type=kind, coordinator_epoch=3)
    log.write(marker if log.random.random() < 0.9 else replace(marker, count=0, marker_type=None))
    producer.epoch = raised


def has_no_sequence(log: LogWriter, producer: Producer) -> None:
    log.write(Batch(0, 1, producer.producer_id, producer.epoch, is_transactional=producer.transactional, count=2))


def changes_its_mode(log: LogWriter, producer: Producer) -> None:
    producer.transactional = not producer.transactional
    goes_on(log, producer)


def is_nobody(log: LogWriter, _: Producer) -> None:
    log.write(Batch(0, log.random.randrange(3)))


def is_a_leader_change(log: LogWriter, _: Producer) -> None:
    log.leader_epoch += 1
    log.write(Batch(0, 0, is_control=True))


def rolls(log: LogWriter, _: Producer) -> None:
    log.segment = log.next_offset


def loses_offsets(log: LogWriter, _: Producer) -> None:
    log.next_offset += log.random.randint(1, 4)


def breaks(log: LogWriter, producer: Producer) -> None:
    """The last fifth of some logs is unreadable, in one of the three ways."""
    if log.next_offset > 80 and log.random.random() < 0.4:
        goes_on(log, producer)
        broken = log.batches[-1]
        log.batches[-1] = log.random.choice(
            [
                replace(broken, crc_valid=False),
                replace(broken, base_offset=broken.base_offset - 3, last_offset=broken.last_offset - 3),
                replace(broken, segment_base_offset=broken.base_offset + 1),
            ]
        )
        log.segment = log.batches[-1].segment_base_offset


DEEDS: dict[Callable[[LogWriter, Producer], None], int] = {
    goes_on: 24,
    leaves_a_gap: 3,
    goes_round: 1,
    sends_again: 2,
    goes_back: 6,
    numbers_anew: 3,
    raises_the_epoch: 6,
    is_a_zombie: 3,
    ends_a_transaction: 9,
    has_no_sequence: 1,
    changes_its_mode: 1,
    is_nobody: 2,
    is_a_leader_change: 2,
    rolls: 2,
    loses_offsets: 6,
    breaks: 2,
}


def logs(seed: int, *, count: int, deeds: int) -> list[LogWriter]:
    """So many random logs; every tenth is of an internal topic, every third compacted."""
    chance = random.Random(seed)
    return [_log(chance, number, deeds) for number in range(count)]


def _log(chance: random.Random, number: int, deeds: int) -> LogWriter:
    topic = "__consumer_offsets" if number % 10 == 9 else "orders"
    log = LogWriter(chance, topic, [Producer(pid, chance.random() < 0.5) for pid in range(chance.randint(1, 5))])
    log.compacted = number % 3 == 0
    log.cleaned_below = chance.choice([None, 60, 150]) if log.compacted else chance.choice([None, 0])
    for deed in chance.choices(list(DEEDS), weights=list(DEEDS.values()), k=deeds):
        deed(log, chance.choice(log.producers))
    log.log_start = chance.randrange(10, log.next_offset) if number % 2 else None
    return log
