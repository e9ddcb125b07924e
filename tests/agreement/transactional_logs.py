"""Random transactional logs with their sidecars, the same for the same seed: everything that happens to a log and its aborted index."""

import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.lso import OpenTransaction, Snapshot, replay
from eo_audit.model.visibility import IndexedLog, IndexEntry, index_of


@dataclass
class TransactionalLog:
    """One replica log as dumped, and what lies beside it.

    `dumped_index` is what the index held when it was dumped, if that was before the log; nothing notes then when each was.
    `kept` are the record offsets of batches that the cleaner has worked on, by base offset; `decisions` what the coordinator says of a
    span, by (producer id, first offset).
    """

    random: random.Random
    start: int = 0
    batches: list[Batch] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    index: dict[int, list[IndexEntry]] = field(default_factory=dict)
    log_start: int = 0
    hw: int | None = None
    uncleaned_from: int = 0
    kept: dict[int, list[int]] = field(default_factory=dict)
    holes: list[tuple[int, int]] = field(default_factory=list)
    unknown_indexes: list[int] = field(default_factory=list)
    dumped_index: dict[int, list[IndexEntry]] | None = None
    snapshot: Snapshot | None = None
    unjudged_from: int | None = None
    next_offset: int = 0

    @property
    def end_offset(self) -> int:
        """One past the last batch, or the newest segment's base."""
        return max([batch.last_offset + 1 for batch in self.batches] + [self.segments[-1]])

    @property
    def is_sound(self) -> bool:
        """Nothing but its end and its head is missing, and it has not stopped."""
        stopped = self.snapshot is not None and self.snapshot.offset >= self.end_offset
        shallow = any(batch.kind == "marker" and batch.marker_type is None for batch in self.batches)
        return not (stopped or shallow or self.holes or self.unknown_indexes or self.uncleaned_from or self.unjudged_from is not None)

    @property
    def indexed(self) -> IndexedLog:
        """The log for the model."""
        return IndexedLog(self.batches, self.segments, self.index, self.uncleaned_from)

    def end_of(self, segment: int) -> int:
        """Where a segment ends."""
        at = bisect_right(self.segments, segment)
        return self.segments[at] if at < len(self.segments) else self.end_offset

    def append(self, batch: Batch) -> None:
        """Give a batch its place; its offsets so far say only how many it spans."""
        span = batch.last_offset - batch.base_offset
        placed = {"base_offset": self.next_offset, "last_offset": self.next_offset + span}
        self.batches.append(replace(batch, **placed, segment_base_offset=self.segments[-1], max_timestamp_ms=1_000 + self.next_offset))
        self.next_offset += span + 1


def _data(log: TransactionalLog) -> None:
    records = log.random.randint(1, 3)
    producer = log.random.choice([1, 1, 2, 3, 4, -1, 9])
    transactional = producer not in (-1, 9)
    log.append(Batch(0, records - 1, producer, 0 if producer > 0 else -1, is_transactional=transactional, count=records))


def _marker(log: TransactionalLog) -> None:
    _end(log, log.random.choice(list(replay(log.batches).open) * 4 + [1, 2, 3, 4]))


def _end(log: TransactionalLog, producer: int) -> None:
    kind = log.random.choice([COMMIT, ABORT, ABORT])
    log.append(Batch(0, 0, producer, 0, is_transactional=True, is_control=True, marker_type=kind, coordinator_epoch=0))


def _roll(log: TransactionalLog) -> None:
    if log.batches and log.next_offset > log.segments[-1]:
        log.segments.append(log.next_offset)


STEPS = [_data] * 20 + [_marker] * 12 + [_roll] * 2


def _cleaned(log: TransactionalLog) -> None:
    """The cleaner takes records and whole batches below an offset; markers too, or only what they say."""
    log.uncleaned_from = log.random.choice(log.batches).base_offset
    left = []
    for batch in log.batches:
        gone = batch.base_offset < log.uncleaned_from and log.random.random() < 0.4
        if gone and not batch.is_control and log.random.random() < 0.5:
            offsets = sorted(log.random.sample(range(batch.base_offset, batch.last_offset + 1), log.random.randrange(batch.count)))
            log.kept[batch.base_offset] = offsets
            left.append(replace(batch, count=len(offsets)))
        elif gone and batch.is_control and log.random.random() < 0.5:
            left.append(replace(batch, marker_type=None, count=0))
        elif not gone or batch is log.batches[-1]:
            left.append(batch)
    log.batches = left


def _torn(log: TransactionalLog) -> None:
    """A few batches in the middle were not dumped; in a log that the cleaner works on nobody could tell."""
    if len(log.batches) > 8 and not log.uncleaned_from:
        first = log.random.randrange(1, len(log.batches) - 4)
        lost = log.batches[first : first + log.random.randint(1, 3)]
        gone, end = lost[0].base_offset, lost[-1].last_offset + 1
        if any(gone < base <= min(end, log.log_start) for base in log.segments):
            return  # between two segments below the log start: those the broker deleted, and nobody lost them
        log.holes = [(gone, end - 1)]
        log.batches = [batch for batch in log.batches if batch not in lost]


def _broken(log: TransactionalLog) -> None:
    """A bad checksum."""
    at = log.random.randrange(len(log.batches))
    log.batches[at] = replace(log.batches[at], crc_valid=False)
    log.unjudged_from = log.batches[at].base_offset


def _shallow(log: TransactionalLog) -> None:
    """Printed without record lines: no marker says what it is."""
    log.batches = [replace(batch, marker_type=None) for batch in log.batches]


def _headless(log: TransactionalLog) -> None:
    """The first segments are gone; a snapshot may know what was open."""
    if len(log.segments) > 1:
        log.segments = log.segments[1:]
        log.log_start = log.segments[0]
        seen = [batch for batch in log.batches if batch.base_offset < log.segments[0]]
        log.batches = [batch for batch in log.batches if batch not in seen]
        log.index = {base: log.index[base] for base in log.segments}
        if log.random.random() < 0.7:
            log.snapshot = Snapshot(log.segments[0], tuple(replay(seen).open.values()))


def _cut_by_records(log: TransactionalLog) -> None:
    """DeleteRecords moves the log start into the first segments."""
    log.log_start = log.random.choice(log.batches).last_offset


def _stopped(log: TransactionalLog) -> None:
    """A snapshot at the end; an old broker has forgotten what lies below the log start, a broken one knows what nobody wrote."""
    state = replay(log.batches)
    state.forget_below(log.log_start)
    invented = [OpenTransaction(7, 0, log.random.randrange(log.end_offset), 0)] if log.random.random() < 0.2 else []
    log.snapshot = Snapshot(log.end_offset, (*state.open.values(), *invented))


def _wrong_index(log: TransactionalLog) -> None:
    for base, entries in log.index.items():
        log.index[base] = [wrong for entry in entries for wrong in _mutated(log, entry)]
        if log.random.random() < 0.8:
            log.index[base].append(_invented(log, base))


def _mutated(log: TransactionalLog, entry: IndexEntry) -> list[IndexEntry]:
    return log.random.choice(
        [
            *[[entry]] * 3,
            [],
            [replace(entry, first_offset=log.random.randint(entry.first_offset, entry.last_offset))],
            [replace(entry, first_offset=log.random.randint(0, entry.first_offset))],
            [replace(entry, last_stable_offset=log.random.randint(entry.last_offset, log.end_offset + 1))],
        ]
    )


def _invented(log: TransactionalLog, base: int) -> IndexEntry:
    """An entry that no transaction explains: at a COMMIT, at an offset without marker, beyond the end."""
    commits = [batch for batch in log.batches if batch.marker_type == COMMIT and base <= batch.base_offset < log.end_of(base)]
    if commits and log.random.random() < 0.7:
        at = log.random.choice(commits)
        return IndexEntry(at.producer_id, log.random.randint(base, at.base_offset), at.base_offset, at.base_offset + 1)
    last = log.random.randint(base, log.end_offset + 2)
    return IndexEntry(log.random.randint(1, 4), log.random.randint(base, last), last, last + 1)


def _missing_index(log: TransactionalLog) -> None:
    log.unknown_indexes = sorted(log.random.sample(log.segments, log.random.randint(1, len(log.segments))))
    log.index |= {base: [] for base in log.unknown_indexes}


def _lagging_index(log: TransactionalLog) -> None:
    """The indexes were dumped first, and the log went on."""
    entries = sorted(entry.last_offset for own in log.index.values() for entry in own)
    sound = {(txn.producer_id, txn.first_offset, txn.marker_offset) for txn in replay(log.batches).ended if txn.marker == ABORT}
    named = {(entry.producer_id, entry.first_offset, entry.last_offset) for own in log.index.values() for entry in own}
    if entries and log.is_sound and log.log_start == 0 and named == {key for key in sound if key[1] < key[2]}:
        end = log.random.choice([0, *entries])
        log.dumped_index = {base: [entry for entry in own if entry.last_offset < end] for base, own in log.index.items()}


def _late_checkpoint(log: TransactionalLog) -> None:
    log.hw = log.random.choice(log.batches).last_offset + 1


# In the order in which they happen to a log: each with its probability.
EVENTS: list[tuple[Callable[[TransactionalLog], None], float]] = [
    (_headless, 0.4),
    (_cut_by_records, 0.15),
    (_wrong_index, 0.75),
    (_cleaned, 0.25),
    (_torn, 0.35),
    (_broken, 0.08),
    (_shallow, 0.05),
    (_missing_index, 0.2),
    (_stopped, 0.3),
    (_late_checkpoint, 0.25),
    (_lagging_index, 0.9),
]


def transactional_logs(number: int, *, seed: int) -> list[TransactionalLog]:
    """So many random logs."""
    return [_log(random.Random(seed * 1_000_003 + at)) for at in range(number)]


def _log(shuffled: random.Random) -> TransactionalLog:
    log = TransactionalLog(shuffled, segments=[0])
    for _ in range(shuffled.randint(10, 50)):
        shuffled.choice(STEPS)(log)
    while not log.batches:
        _data(log)
    if shuffled.random() < 0.6:
        for producer in list(replay(log.batches).open):
            _end(log, producer)
    log.index = index_of(replay(log.batches).ended, log.segments, empty_aborts=shuffled.random() < 0.3)
    for happen, probability in EVENTS:
        if shuffled.random() < probability and log.batches:
            happen(log)
    return log
