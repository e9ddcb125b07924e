"""The labelled history of one replica log: what each batch is to the batches of its producer before it.

1. Order is the order in the log. A hole lies before a batch that does not start right behind the one before it; below `cleaned_below`
   compaction explains it. From the first bad checksum, or the first offset that goes back, nothing in this log is judged any more.
2. The epoch history of a producer id holds its data and its markers; emptied control batches are in no history.
3. The sequence history is kept by (producer id, epoch): markers are skipped, and a lower epoch that comes back disturbs nothing.
   Its front is the highest unwrapped last sequence so far. A batch right behind the front is in sequence, one further on leaves a gap,
   one that starts at or below it repeats something: a batch with its own sequences (duplicate), parts of others (overlap), or nothing
   that is still in the log (out of order).
   Up to 2.3 a broker forgets a producer with the last of its records (KAFKA-7190). Its client is told UNKNOWN_PRODUCER_ID, and numbers
   from 0 again in the same epoch (`TransactionManager.startSequencesAtBeginning`): what is written then repeats nothing.
4. A new epoch starts at sequence 0. A producer's first batch may start anywhere: retention may have eaten its past.
5. What could lie in a hole is not called missing: gap and new epoch above 0 become after_hole.
6. A transactional batch opens a span where none is open, a marker of any epoch closes it.

Source: `ProducerStateManager`, `ProducerAppendInfo`; KIP-98, KIP-360.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.sequences import CIRCLE, unwrap

# Marker -> how a span ends; a shallow dump does not show which marker it was.
OUTCOMES: dict[str | None, str] = {COMMIT: "committed", ABORT: "aborted"}


@dataclass(slots=True)
class HistoryRow:
    """One row of producer_history; the columns are named and meant as in its schema."""

    row_kind: str
    base_offset: int
    label: str = ""
    judged: bool = True
    predecessor: str | None = None
    previous_epoch: int | None = None
    max_epoch_before: int | None = None
    expected_sequence: int | None = None
    skipped_sequences: int | None = None
    max_unwrapped_last_before: int | None = None
    same_identity_offset: int | None = None
    data_batches_since_same: int | None = None
    same_identity_timestamp_ms: int | None = None
    same_identity_leader_epoch: int | None = None
    overlaps_offset: int | None = None
    leader_epoch_before: int | None = None
    idle_ms: int | None = None
    epoch_regression: bool = False
    in_open_transaction: bool = False
    span_id: int | None = None
    span_outcome: str | None = None


@dataclass(slots=True)
class EpochHistory:
    """The sequences of one producer id and epoch.

    `fronts` are the batches that went past all before them, as (unwrapped last, unwrapped base, base offset), ascending;
    `entered_at` is the offset of the producer's last row before the epoch.
    """

    entered_at: int | None
    forgets_below: int | None = None
    before: Batch | None = None
    previous_last: int | None = None
    batches: int = 0
    fronts: list[tuple[int, int, int]] = field(default_factory=list)
    newest: dict[tuple[int, int], tuple[Batch, int]] = field(default_factory=dict)

    def add(self, batch: Batch, row: HistoryRow) -> None:
        """Compare a batch with the history, then let it enter."""
        if self.before is not None and self.previous_last is not None and begins_anew(batch, self.before, self.forgets_below):
            # On a circle of its own nothing of it looks like what was written before.
            first = (self.previous_last // CIRCLE + 1) * CIRCLE
            last = first + batch.last_sequence
        else:
            first, last = unwrap(batch.base_sequence, batch.last_sequence, previous_last=self.previous_last)
            self._expect(first, row)
        self._find_same(first, last, row)
        if row.same_identity_offset is None and row.skipped_sequences is not None and row.skipped_sequences < 0:
            row.overlaps_offset = self._overlapped(first, last)
        if not self.fronts or last > self.fronts[-1][0]:
            self.fronts.append((last, first, batch.base_offset))
        # By unwrapped sequences: after a full circle of 2^31 records the same printed numbers are another batch.
        self.newest[first, last] = (batch, self.batches)
        self.batches += 1
        self.previous_last, self.before = last, batch

    def _expect(self, first: int, row: HistoryRow) -> None:
        # The front, not the batch before: in a run of batches that were written twice each one follows its own predecessor, and only the
        # first would be seen.
        if self.fronts:
            front = self.fronts[-1][0]
            row.max_unwrapped_last_before, row.expected_sequence, row.skipped_sequences = front, (front + 1) % CIRCLE, first - front - 1
        # ProducerAppendInfo.checkSequence: a new epoch starts at 0. Where the producer was never seen before, nobody knows what came before
        # it.
        elif self.entered_at is not None:
            row.expected_sequence, row.skipped_sequences = 0, first

    def _find_same(self, first: int, last: int, row: HistoryRow) -> None:
        if (first, last) in self.newest:
            same, number = self.newest[first, last]
            row.same_identity_offset, row.data_batches_since_same = same.base_offset, self.batches - number - 1
            row.same_identity_timestamp_ms, row.same_identity_leader_epoch = same.max_timestamp_ms, same.partition_leader_epoch

    def _overlapped(self, first: int, last: int) -> int | None:
        """The front that first carried the batch's own first sequence, or the newest front for a batch that goes past it."""
        passes = last > self.fronts[-1][0]
        # Fronts ascend, so the first that reaches the batch's own first sequence is the one that carried it; a batch that goes past all of
        # them can only overlap the newest.
        reached = -1 if passes else bisect_left(self.fronts, first, key=lambda front: front[0])
        front_last, front_first, offset = self.fronts[reached]
        return offset if front_first <= last and first <= front_last else None


@dataclass(slots=True)
class ProducerHistory:
    """What is known of one producer id in one replica log."""

    previous: Batch | None = None
    max_epoch: int | None = None
    open_since: int | None = None
    span: list[HistoryRow] = field(default_factory=list)
    epochs: dict[int, EpochHistory] = field(default_factory=dict)

    def compare(self, batch: Batch, row: HistoryRow) -> None:
        """Fill what follows from the producer's rows before this one, markers included."""
        row.in_open_transaction = self.open_since is not None
        row.max_epoch_before = self.max_epoch
        if self.previous is None or self.max_epoch is None:
            return
        # Against the highest epoch so far, not the last one: a zombie may write more than one batch.
        row.epoch_regression = batch.producer_epoch < self.max_epoch
        row.previous_epoch = self.previous.producer_epoch
        row.leader_epoch_before = self.previous.partition_leader_epoch
        row.idle_ms = batch.max_timestamp_ms - self.previous.max_timestamp_ms

    def take(self, batch: Batch, row: HistoryRow) -> None:
        """Let the batch enter: it opens, continues or closes a span, and is what the next one follows."""
        if batch.kind == "marker":
            # ProducerAppendInfo.appendEndTxnMarker closes what is open by producer id alone; the epoch of the data is not compared.
            row.span_id, self.open_since = self.open_since, None
            self._end_span(OUTCOMES.get(batch.marker_type, "unknown"))
        elif batch.is_transactional:
            self.open_since = batch.base_offset if self.open_since is None else self.open_since
            row.span_id, row.span_outcome = self.open_since, "open"
            self.span.append(row)
        # Markers count: a fence raises the epoch by its ABORT before the new owner writes anything.
        self.max_epoch = batch.producer_epoch if self.max_epoch is None else max(self.max_epoch, batch.producer_epoch)
        self.previous = batch

    def _end_span(self, outcome: str) -> None:
        for row in self.span:
            row.span_outcome = outcome
        self.span.clear()


@dataclass(slots=True)
class LogHistory:
    """The rows of one replica log so far, batch by batch.

    `sequenced` is false for `__consumer_offsets` and `__transaction_state`, whose batches all start at sequence 0 or have none;
    compaction explains the holes before batches that start at or below `cleaned_below` (None: nowhere); a producer whose data all lie below
    `forgets_below` the broker may have forgotten (None: none).
    """

    sequenced: bool = True
    cleaned_below: int | None = None
    forgets_below: int | None = None
    rows: list[HistoryRow] = field(default_factory=list)
    judged: bool = True
    last_offset: int | None = None
    hole_at: int | None = None
    cleaned_at: int | None = None
    producers: dict[int, ProducerHistory] = field(default_factory=dict)

    def append(self, batch: Batch) -> None:
        """Add the row of the next batch."""
        self._follow(batch)
        row = HistoryRow(batch.kind, batch.base_offset, label=batch.kind, judged=self.judged)
        # ProducerStateManager keeps nothing of batches without a producer id, and skips control batches that were emptied.
        if batch.kind in ("data", "marker"):
            self._compare(batch, row, self.producers.setdefault(batch.producer_id, ProducerHistory()))
        self.rows.append(row)

    def _follow(self, batch: Batch) -> None:
        before, base = self.last_offset, batch.base_offset
        # UnifiedLog.append lets no offset go back: from here on it is a broker's bug (KAFKA-7866), a damaged disk or a mixed-up dump, and
        # no rule may build on it.
        disordered = batch.last_offset < base or base < batch.segment_base_offset or (before is not None and base <= before)
        self.judged = self.judged and batch.crc_valid and not disordered
        if before is not None and base > before + 1:
            # The cleaner leaves holes wherever a key was written again; below its checkpoint they say nothing.
            if self.cleaned_below is not None and base <= self.cleaned_below:
                self.cleaned_at = base
            else:
                self.hole_at = base
        self.last_offset = batch.last_offset

    def _compare(self, batch: Batch, row: HistoryRow, producer: ProducerHistory) -> None:
        previous_offset = None if producer.previous is None else producer.previous.base_offset
        row.predecessor = self._between(previous_offset)
        producer.compare(batch, row)
        epoch = producer.epochs.setdefault(batch.producer_epoch, EpochHistory(previous_offset, self.forgets_below))
        if batch.kind == "marker":
            row.label = "marker" if row.in_open_transaction else "empty_marker"
        # The group coordinator writes every offset batch with sequence 0, and appends as AppendOrigin.COORDINATOR, which checks none.
        elif not self.sequenced or batch.base_sequence < 0 or batch.last_sequence < 0:
            row.label = "not_sequenced"
        else:
            # Asked from the batch that set the front on: a hole before it was accounted for then.
            anchor = epoch.fronts[-1][2] if epoch.fronts else epoch.entered_at
            epoch.add(batch, row)
            row.label = label(row, starts_at_zero=batch.base_sequence == 0, interrupted=self._between(anchor) in ("hole", "compacted"))
        producer.take(batch, row)

    def _between(self, offset: int | None) -> str:
        """What lies between an earlier row and this one."""
        if offset is None:
            return "not_observed" if self.hole_at is None else "hole"
        if self.hole_at is not None and self.hole_at > offset:
            return "hole"
        return "compacted" if self.cleaned_at is not None and self.cleaned_at > offset else "observed"


def begins_anew(batch: Batch, before: Batch, forgets_below: int | None) -> bool:
    """Whether a producer's sequences begin anew within its epoch.

    Args:
        batch: data of the producer.
        before: its data before that, of the same epoch.
        forgets_below: the log start of a broker up to 2.3, which forgets a producer with the last of its records; None for later ones.
    """
    if forgets_below is None or batch.base_sequence != 0 or before.last_offset >= forgets_below:
        return False
    # A client that is not answered sends the very same batch once more.
    same = (before.base_sequence, before.last_sequence, before.max_timestamp_ms)
    return (batch.base_sequence, batch.last_sequence, batch.max_timestamp_ms) != same


def label(row: HistoryRow, *, starts_at_zero: bool, interrupted: bool) -> str:
    """The label of a data batch with sequences.

    Args:
        row: its comparisons with the rows before it.
        starts_at_zero: its base sequence is 0.
        interrupted: something may have been lost or cleaned since the batch that it is measured against.
    """
    # The order decides: a batch that came back whole is a duplicate, whatever else is wrong with it; an older epoch is named only where its
    # sequences say nothing.
    if row.same_identity_offset is not None:
        return "duplicate"
    if row.overlaps_offset is not None:
        return "overlap"
    if row.max_unwrapped_last_before is not None and (row.skipped_sequences or 0) < 0:
        return "out_of_order"
    if row.epoch_regression:
        return "epoch_regression"
    if row.skipped_sequences is None:
        return "first_zero" if starts_at_zero else "first_nonzero"
    known = row.max_unwrapped_last_before is not None
    if row.skipped_sequences == 0:
        return "in_sequence" if known else "new_epoch"
    if interrupted:
        return "after_hole"
    return "gap" if known else "new_epoch_nonzero"


def histories(
    batches: Iterable[Batch], *, sequenced: bool = True, cleaned_below: int | None = None, forgets_below: int | None = None
) -> list[HistoryRow]:
    """The history rows of one replica log, from its batches in the order of the log; the parameters are `LogHistory`'s."""
    log = LogHistory(sequenced=sequenced, cleaned_below=cleaned_below, forgets_below=forgets_below)
    for batch in batches:
        log.append(batch)
    return log.rows
