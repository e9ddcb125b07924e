"""What a broker knows of a producer in one partition, and what it accepts from it.

1. State is kept by producer id. A batch or marker of another epoch empties the window of cached batches and takes the epoch over;
   coordinator epoch and open transaction survive it.
2. A leader answers a client's batch that equals a cached one as a duplicate and appends nothing. Else the epoch must not fall, a new
   epoch starts at sequence 0, and the same epoch goes on at last + 1. What an unknown producer may start with depends on the release.
3. A marker closes whatever is open, at any epoch. It must not carry an older epoch or coordinator epoch.
4. A transactional batch opens a transaction where none is open; a plain batch inside one cannot be appended by anyone.
5. Replicas and log recovery take what the leader wrote: they check nothing but 4, and up to 2.4 the epochs of markers.
6. An emptied control batch (count 0) changes nothing; an emptied data batch counts like a full one.

No history is made of this: tests let a `Partition` accept random logs, and what it accepted must give no finding.

Source: `ProducerStateManager`, `ProducerAppendInfo`, `ProducerStateEntry`; releases as in `GENERATIONS`.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from eo_audit.model.batches import Batch
from eo_audit.model.sequences import dec, inc


class Answer(StrEnum):
    """What a broker says to an append."""

    APPENDED = "appended"
    DUPLICATE = "duplicate"
    OUT_OF_ORDER_SEQUENCE = "out of order sequence"
    UNKNOWN_PRODUCER = "unknown producer id"
    INVALID_EPOCH = "invalid producer epoch"
    COORDINATOR_FENCED = "transaction coordinator fenced"
    INVALID_TRANSACTION = "invalid transaction state"


@dataclass(frozen=True, slots=True)
class Generation:
    """The law of some releases: how many batches are remembered, how an unknown producer may start, what markers need."""

    window: int
    unknown_producer: Answer
    unknown_transactional: Answer
    markers_raise_the_epoch: bool = False
    replicas_check_markers: bool = False


_UNORDERED, _UNKNOWN = Answer.OUT_OF_ORDER_SEQUENCE, Answer.UNKNOWN_PRODUCER
# Oldest release -> its law; 4.0 and 4.2 for clients and markers of transaction.version 2, all others keep the law of 2.5 there.
GENERATIONS = {
    "0.11": Generation(1, _UNORDERED, _UNORDERED, replicas_check_markers=True),
    "1.0": Generation(5, _UNKNOWN, _UNKNOWN, replicas_check_markers=True),  # KAFKA-5494: five in flight
    "2.5": Generation(5, Answer.APPENDED, Answer.APPENDED),  # KIP-360: whoever is unknown may start anywhere
    "4.0": Generation(5, Answer.APPENDED, _UNORDERED),  # KIP-890: but not in a transaction (run against 4.3.1)
    "4.2": Generation(5, Answer.APPENDED, _UNORDERED, markers_raise_the_epoch=True),  # KIP-1228
}


@dataclass(frozen=True, slots=True)
class CachedBatch:
    """What is remembered of a batch: its last sequence and offset, and how many offsets it spans less one."""

    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def base_sequence(self) -> int:
        """Reckoned from offsets, so that compaction does not change a batch's identity."""
        return dec(self.last_sequence, self.offset_delta)


@dataclass(slots=True)
class ProducerEntry:
    """The state of one producer id in one partition; epoch -1 means unknown."""

    window: int = 5
    epoch: int = -1
    coordinator_epoch: int = -1
    open_since: int | None = None
    cached: deque[CachedBatch] = field(default_factory=deque)

    @property
    def last_sequence(self) -> int:
        """Of the newest cached batch; -1 when nothing is cached."""
        return self.cached[-1].last_sequence if self.cached else -1

    def find_duplicate(self, batch: Batch) -> CachedBatch | None:
        """The cached batch with the same epoch and sequences."""
        wanted = (batch.base_sequence, batch.last_sequence)
        # By first and last sequence of whole batches (`ProducerStateEntry.findDuplicateBatch`): a batch that was cut anew is none of these.
        same = (known for known in self.cached if (known.base_sequence, known.last_sequence) == wanted)
        return next(same, None) if batch.producer_epoch == self.epoch else None

    def take(self, batch: Batch) -> Answer:
        """Append a batch or marker without checks, as replicas and log recovery do."""
        # The cleaner leaves empty control batches; ProducerStateManager skips them in every replay.
        if batch.kind == "control":
            return Answer.APPENDED
        if batch.kind == "data" and self.open_since is not None and not batch.is_transactional:
            return Answer.INVALID_TRANSACTION
        self._enter(batch.producer_epoch)
        if batch.kind == "marker":
            self.coordinator_epoch = -1 if batch.coordinator_epoch is None else batch.coordinator_epoch
            self.open_since = None
        else:
            self.cached.append(CachedBatch(batch.last_sequence, batch.last_offset, batch.last_offset - batch.base_offset))
            if batch.is_transactional and self.open_since is None:
                self.open_since = batch.base_offset
        # `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`: a client that is idempotent may have so many in flight, and may send each again.
        while len(self.cached) > self.window:
            self.cached.popleft()
        return Answer.APPENDED

    def _enter(self, epoch: int) -> None:
        # `ProducerStateEntry.maybeUpdateProducerEpoch`: sequences start anew with an epoch; what is open stays open.
        if epoch != self.epoch:
            self.cached.clear()
            self.epoch = epoch


def check_sequence(entry: ProducerEntry, batch: Batch, law: Generation) -> Answer:
    """Whether a leader finds a client's batch in sequence."""
    # A release's answer is data: 0.11 refused, 1.0 had an error of its own, and since KIP-360 (2.5) an unknown producer may start anywhere.
    if entry.epoch == -1:
        unknown = law.unknown_transactional if batch.is_transactional else law.unknown_producer
        return Answer.APPENDED if batch.base_sequence == 0 else unknown
    same_epoch = batch.producer_epoch == entry.epoch
    # A marker alone makes the epoch known but caches nothing: then, and in a new epoch, the first sequence is 0.
    expected = inc(entry.last_sequence, 1) if same_epoch and entry.cached else 0
    return Answer.APPENDED if batch.base_sequence == expected else Answer.OUT_OF_ORDER_SEQUENCE


def answer_produce(entry: ProducerEntry, batch: Batch, law: Generation) -> Answer:
    """What a leader says to a client's data batch; the entry is unchanged."""
    # In the order of `UnifiedLog.analyzeAndValidateProducerState`: a repeat is answered before epoch and sequence are looked at, so a
    # resend that is handled well leaves no trace in the log.
    if entry.find_duplicate(batch):
        return Answer.DUPLICATE
    if batch.producer_epoch < entry.epoch:
        return Answer.INVALID_EPOCH
    if entry.open_since is not None and not batch.is_transactional:
        return Answer.INVALID_TRANSACTION
    return check_sequence(entry, batch, law)


def answer_marker(entry: ProducerEntry, marker: Batch, law: Generation) -> Answer:
    """What a leader says to a coordinator's marker; the entry is unchanged.

    From 4.2 on the marker's epoch is above the entry's; an equal one is a retry, and accepted only when nothing is open (KIP-1228).
    """
    too_low = marker.producer_epoch < entry.epoch
    stale = law.markers_raise_the_epoch and marker.producer_epoch == entry.epoch and entry.open_since is not None
    if too_low or stale:
        return Answer.INVALID_EPOCH
    fenced = (marker.coordinator_epoch or 0) < entry.coordinator_epoch
    return Answer.COORDINATOR_FENCED if fenced else Answer.APPENDED


def answer_replica(entry: ProducerEntry, batch: Batch, law: Generation) -> Answer:
    """What a follower, or a broker that recovers its log, says to a batch of the leader's log; the entry is unchanged."""
    # AppendOrigin.REPLICATION: an epoch that falls is logged and appended all the same; up to 2.4 a marker's made the replica fail.
    if batch.kind == "marker" and law.replicas_check_markers:
        return answer_marker(entry, batch, law)
    plain_inside = batch.kind == "data" and entry.open_since is not None and not batch.is_transactional
    return Answer.INVALID_TRANSACTION if plain_inside else Answer.APPENDED


@dataclass
class Partition:
    """A partition's leader: the entries of all producers, and the batches that it appended."""

    law: Generation
    entries: dict[int, ProducerEntry] = field(default_factory=dict)
    log: list[Batch] = field(default_factory=list)

    def entry(self, producer_id: int) -> ProducerEntry:
        """The entry of a producer; a new one is unknown."""
        return self.entries.setdefault(producer_id, ProducerEntry(self.law.window))

    def produce(self, batch: Batch) -> Answer:
        """Take a client's batch or a coordinator's marker if it is acceptable."""
        entry = self.entry(batch.producer_id)
        answer = (answer_marker if batch.kind == "marker" else answer_produce)(entry, batch, self.law)
        return self._append(entry, batch) if answer is Answer.APPENDED else answer

    def replicate(self, batch: Batch) -> Answer:
        """Take a batch of the leader's log."""
        entry = self.entry(batch.producer_id)
        answer = answer_replica(entry, batch, self.law)
        return self._append(entry, batch) if answer is Answer.APPENDED else answer

    def forget(self, producer_id: int) -> None:
        """Lose a producer's state, as by expiry, or by a leader that never had it."""
        # producer.id.expiration.ms goes by the timestamps that clients set: one that writes old records is forgotten while it writes.
        self.entries.pop(producer_id, None)

    def _append(self, entry: ProducerEntry, batch: Batch) -> Answer:
        answer = entry.take(batch) if batch.producer_id >= 0 else Answer.APPENDED
        self.log.append(batch)
        return answer
