"""A log as it stands at some moment: offsets, segments, producer states, aborted index, leader epochs, and what the cleaner left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tests.cluster.brokers import Log, Record, Write
from tests.cluster.shape import DAY_MS
from tests.support.dump_text import varint

FORGETS_EACH_MS = 10_000  # producer.id.expiration.check.interval.ms of these clusters


@dataclass(frozen=True)
class Placed:
    """A batch with its offsets; `records` are (offset, record) of those that the cleaner left."""

    write: Write
    base: int
    last: int
    segment: int
    records: tuple[tuple[int, Record], ...]
    horizon_ms: int | None = None

    @cached_property
    def size(self) -> int:
        """Bytes of the batch on disk."""
        if not self.records:
            return 61
        sizes, first = self.write.entry_sizes or (0, 0), self.horizon_ms or self.records[0][1].timestamp_ms
        total = 61
        for offset, record in self.records:
            key = 4 if self.write.marker else sizes[0] or (-1 if record.key is None else len(record.key))
            value = 6 if self.write.marker else sizes[1] or (-1 if record.value is None else len(record.value))
            body = 2 + varint(record.timestamp_ms - first) + varint(offset - self.base)
            body += sum(varint(part) + max(part, 0) for part in (key, value))
            total += varint(body) + body
        return total


@dataclass
class Producer:
    """What a leader knows of a producer id (`ProducerStateEntry`)."""

    epoch: int
    coordinator_epoch: int = -1
    open_from: int | None = None
    last_ms: int = -1
    batch: Placed | None = None


@dataclass(frozen=True)
class Aborted:
    """One entry of the aborted index, and the segment whose index it is in."""

    producer_id: int
    first: int
    last: int
    stable: int
    segment: int


@dataclass
class State:
    """One log at one moment.

    Attributes:
        batches: in offset order.
        bases: first offset of each segment.
        snapshots: producer states at the offset of each snapshot file.
        epochs: (leader epoch, its first offset).
        log_start: first offset that a consumer may read.
        cleaned_to: where the cleaner will go on; None: it was never here.
    """

    log: Log
    batches: list[Placed] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    snapshots: dict[int, dict[int, Producer]] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    producers: dict[int, Producer] = field(default_factory=dict)
    leo: int = 0
    log_start: int = 0
    checkpointed_start: int | None = None
    cleaned_to: int | None = None

    @property
    def lso(self) -> int:
        """The last stable offset, with the high watermark at the end."""
        return max(min((p.open_from for p in self.producers.values() if p.open_from is not None), default=self.leo), self.log_start)


def replay(log: Log, moment: int, *, per_segment: int, lost_index: frozenset[int] = frozenset()) -> State:
    """What stands in a log at a true time.

    Args:
        log: settled.
        moment: nothing younger is there.
        per_segment: batches of a segment.
        lost_index: numbers of transactions whose index entry is lost.
    """
    state, ahead_ms = State(log, bases=[0], leo=log.first_offset), 0
    for number, write in enumerate(write for write in log.writes if write.at <= moment):
        _forget(state, write.broker_ms)
        if number and number % per_segment == 0:
            state.bases.append(state.leo)
            state.snapshots[state.leo] = {pid: replace(producer) for pid, producer in state.producers.items()}
        _append(state, write, lost_index)
        ahead_ms = write.broker_ms - write.at
    _forget(state, moment + ahead_ms)
    return state


def _forget(state: State, broker_ms: int) -> None:
    """Producers whose newest time is too old are looked for at each full ten seconds of the leader's clock
    (`ProducerStateManager.isProducerExpired`)."""
    expires_ms = state.log.producer_expires_ms
    if expires_ms is not None:
        oldest = broker_ms // FORGETS_EACH_MS * FORGETS_EACH_MS - expires_ms
        state.producers = {pid: known for pid, known in state.producers.items() if known.open_from is not None or known.last_ms > oldest}


def _append(state: State, write: Write, lost_index: frozenset[int]) -> None:
    base = state.leo
    state.leo += len(write.records)
    if write.lost:
        return
    if not state.epochs or state.epochs[-1][0] != write.leader_epoch:
        state.epochs.append((write.leader_epoch, base))
    records = tuple((base + n, record) for n, record in enumerate(write.records))
    placed = Placed(write, base, state.leo - 1, len(state.bases) - 1, records)
    state.batches.append(placed)
    if write.producer_id < 0:
        return
    known = state.producers.get(write.producer_id)
    if known is None or known.epoch != write.epoch:
        before = known or Producer(write.epoch)
        known = state.producers[write.producer_id] = Producer(write.epoch, before.coordinator_epoch, before.open_from)
    known.last_ms = max(record.timestamp_ms for record in write.records)
    if write.marker is None:
        known.batch = placed
        if write.is_transactional and known.open_from is None:
            known.open_from = base
        return
    known.coordinator_epoch = write.coordinator_epoch
    first, known.open_from = known.open_from, None
    lost = write.transaction is not None and write.transaction.number in lost_index
    if write.marker == "ABORT" and first is not None and not lost:
        others = (producer.open_from for producer in state.producers.values() if producer.open_from is not None)
        state.aborted.append(Aborted(write.producer_id, first, base, min(others, default=base + 1), placed.segment))


def cut_head(state: State, start: int, *, checkpointed: bool) -> None:
    """Retention or DeleteRecords: segments wholly below an offset go, with their sidecars."""
    first = max((n for n, base in enumerate(state.bases) if base <= start), default=0)
    state.log_start = start
    state.checkpointed_start = start if checkpointed and start > state.bases[first] else None
    state.batches = [replace(batch, segment=batch.segment - first) for batch in state.batches if batch.segment >= first]
    state.aborted = [replace(entry, segment=entry.segment - first) for entry in state.aborted if entry.segment >= first]
    state.bases = state.bases[first:]
    state.snapshots = {offset: known for offset, known in state.snapshots.items() if offset >= state.bases[0]}
    kept = [(epoch, max(at, start)) for epoch, at in state.epochs]
    state.epochs = [item for n, item in enumerate(kept) if n + 1 == len(kept) or kept[n + 1][1] > start]


def clean(state: State, dirty: int, now_ms: int, active: Mapping[int, Producer]) -> None:
    """A round of the cleaner: the newest record of each key stays, aborted data goes, markers without data get a horizon."""
    below = [batch for batch in state.batches if batch.base < dirty]
    aborted = _aborted_bases(below)
    newest = {
        record.key: offset
        for batch in below
        if batch.write.marker is None and batch.base not in aborted
        for offset, record in batch.records
    }
    last_of = {producer.batch.base for producer in active.values() if producer.batch is not None}
    cleaned: list[Placed] = []
    for batch in below:
        if batch.write.marker is not None:
            cleaned.append(batch if _has_data(below, batch) else replace(batch, horizon_ms=now_ms + DAY_MS))
            continue
        gone = batch.base in aborted
        kept = tuple(item for item in batch.records if not gone and (item[1].key is None or newest.get(item[1].key) == item[0]))
        if kept or batch.base in last_of:
            cleaned.append(replace(batch, records=kept))
    state.batches = cleaned + [batch for batch in state.batches if batch.base >= dirty]
    state.cleaned_to = dirty


def _closed_by(batches: Sequence[Placed], marker: Placed) -> list[Placed]:
    """The data that a marker closes, before the cleaner came."""
    mine = [b for b in batches if b.write.producer_id == marker.write.producer_id and b.base < marker.base and b.write.is_transactional]
    before = max((b.base for b in mine if b.write.marker is not None), default=-1)
    return [b for b in mine if b.base > before]


def _aborted_bases(batches: Sequence[Placed]) -> set[int]:
    return {b.base for marker in batches if marker.write.marker == "ABORT" for b in _closed_by(batches, marker)}


def _has_data(batches: Sequence[Placed], marker: Placed) -> bool:
    return bool(_closed_by(batches, marker))
