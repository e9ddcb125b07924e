"""The last stable offset of one replica log, as Kafka keeps it: open transactions, ended ones not yet replicated, and the LSO.

1. A transactional batch of a producer id with nothing open opens a transaction at its base offset; the epoch does not matter.
2. A marker closes whatever is open for its producer id; an emptied control batch (count 0) does nothing.
3. A closed transaction holds the LSO until its marker is below the high watermark.
4. First unstable offset: the lowest first offset of 1 and 3, never below the log start. LSO: that, or the high watermark if lower.
5. Every ABORT that closes something becomes an entry of the `.txnindex`; before 2.8 (KAFKA-10702) an ABORT that closes nothing did too.
6. Up to 2.3 (KAFKA-7190) a log start beyond a producer's last data record takes its state away, its open transaction included.
7. A snapshot is the state below its offset: at the log's end it is what the broker knows, and an older one knows what began before the
   first batch that is left.
8. Where offsets are missing behind the beginning of what holds the LSO, the marker that ended it may have stood there.

Source: `ProducerStateManager`, `ProducerAppendInfo.appendEndTxnMarker`, `UnifiedLog.fetchLastStableOffsetMetadata`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eo_audit.model.batches import NO_PRODUCER, Batch


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without marker: where it starts, and the offset of its producer's newest data record."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction closed by a marker; `first_offset` equals `marker_offset` when the marker closed nothing.

    `marker` is COMMIT or ABORT, or None where a shallow dump does not show which.
    """

    producer_id: int
    first_offset: int
    marker_offset: int
    marker: str | None
    stable_offset: int
    """The LSO right after the marker, ignoring the high watermark: what an index entry calls lastStableOffset."""


@dataclass
class TransactionState:
    """The transactions of one replica log after some of its batches."""

    open: dict[int, OpenTransaction] = field(default_factory=dict)
    ended: list[EndedTransaction] = field(default_factory=list)

    def append(self, batch: Batch) -> None:
        """Take the next batch of the log."""
        if batch.is_control:
            self._end(batch)
        elif batch.is_transactional and batch.producer_id != NO_PRODUCER:
            # ProducerAppendInfo.appendDataBatch sets currentTxnFirstOffset with the first transactional batch of a producer id; later ones,
            # of whatever epoch, leave it where it is.
            known = self.open.get(batch.producer_id)
            first = batch.base_offset if known is None else known.first_offset
            self.open[batch.producer_id] = OpenTransaction(batch.producer_id, batch.producer_epoch, first, batch.last_offset)

    def _end(self, batch: Batch) -> None:
        # ProducerAppendInfo.append does nothing for an emptied control batch: its whole transaction was cleaned away.
        if batch.kind != "marker":
            return
        closed = self.open.pop(batch.producer_id, None)
        first = batch.last_offset if closed is None else closed.first_offset
        # ProducerStateManager.lastStableOffset leaves the producer's own transaction out, and knows nothing of the high watermark.
        stable = min((other.first_offset for other in self.open.values()), default=batch.last_offset + 1)
        self.ended.append(EndedTransaction(batch.producer_id, first, batch.last_offset, batch.marker_type, stable))

    def forget_below(self, log_start: int) -> None:
        """What a broker up to 2.3 does when its log start moves: producers whose last data record is gone are forgotten."""
        # truncateHead of those releases; since KAFKA-7190 (2.4) a producer's state outlives its records until it expires.
        self.open = {producer: txn for producer, txn in self.open.items() if txn.last_offset >= log_start}

    def holder(self, *, hw: int) -> OpenTransaction | EndedTransaction | None:
        """The oldest transaction that is not yet decided and replicated, and so holds the LSO; None when there is none."""
        # A marker that is not replicated yet may still be lost with its leader (ProducerStateManager.unreplicatedTxns).
        holders: list[OpenTransaction | EndedTransaction] = [*self.open.values(), *(txn for txn in self.ended if txn.marker_offset >= hw)]
        return min(holders, key=lambda txn: txn.first_offset, default=None)

    def first_unstable_offset(self, *, hw: int, log_start: int) -> int | None:
        """The lowest offset that is not yet decided and replicated; None when there is none."""
        holder = self.holder(hw=hw)
        # Retention does not look at the LSO: the beginning of an open transaction may be deleted, and then the log start is as far as
        # anybody reads.
        return None if holder is None else max(holder.first_offset, log_start)

    def last_stable_offset(self, *, hw: int, log_start: int) -> int:
        """The offset below which a read_committed consumer may read."""
        unstable = self.first_unstable_offset(hw=hw, log_start=log_start)
        return hw if unstable is None else min(unstable, hw)


def may_have_ended(transaction: OpenTransaction | EndedTransaction, unseen: Iterable[tuple[int, int]]) -> bool:
    """Whether a marker that no dump shows may have ended what holds the LSO: then that is a bound, and the LSO lies there or above.

    Args:
        transaction: what is open, or has a marker that is not replicated yet.
        unseen: first and last of the offsets that should be there and were not seen, or are not believed.
    """
    marker = transaction.marker_offset if isinstance(transaction, EndedTransaction) else None
    return any(last >= transaction.first_offset and (marker is None or first < marker) for first, last in unseen)


@dataclass(frozen=True)
class Snapshot:
    """The open transactions that a `.snapshot` file names; `offset` is the number in its name."""

    offset: int
    open: tuple[OpenTransaction, ...] = ()


def replay(batches: Iterable[Batch]) -> TransactionState:
    """The transactions of a log after its batches, which come in offset order."""
    state = TransactionState()
    for batch in batches:
        state.append(batch)
    return state


def state_at_end(batches: Sequence[Batch], *, end_offset: int, snapshot: Snapshot | None = None) -> TransactionState:
    """The transactions of a log at its end, as far as its batches and its newest snapshot tell.

    Args:
        batches: the batches of one replica log, in offset order.
        end_offset: the log end offset.
        snapshot: the newest one.
    """
    if snapshot is None or (snapshot.offset != end_offset and not batches):
        return replay(batches)
    if snapshot.offset == end_offset:
        state = replay(batches)
        # Better than the replay: up to 2.3 the broker had forgotten what the log still shows, and no dump tells its release.
        state.open = {txn.producer_id: txn for txn in snapshot.open}
        return state
    # What began in sight is in the replay already, with its first batch: a snapshot adds what lies below, for markers behind it to end.
    state = replay(batch for batch in batches if batch.base_offset < snapshot.offset)
    state.open |= {txn.producer_id: txn for txn in snapshot.open if txn.first_offset < batches[0].base_offset}
    for batch in batches:
        if batch.base_offset >= snapshot.offset:
            state.append(batch)
    return state
