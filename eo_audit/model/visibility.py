"""What a read_committed consumer gets, from the log and its `.txnindex` files.

1. A fetch reads one segment. The broker sends the batches below its upper bound with the aborted transactions it finds by walking
   the index entries from that segment's file on: those with lastOffset >= fetch offset and firstOffset < upper bound, up to and with
   the first entry whose lastStableOffset >= upper bound.
2. The client holds these in a queue by firstOffset and a set of aborted producer ids, empty at the start of each fetch. Before each
   batch with a producer id it moves entries with firstOffset <= the batch's last offset into the set. An ABORT marker takes its id out;
   other transactional batches of an id in the set are dropped. COMMIT does not touch the set, the epoch is never looked at.
3. Control batches are never returned; batches without a transaction always are.
4. Where a shallow dump does not show what a marker says, it is taken for what the index says: an ABORT if its producer is in the set.

Source: `TransactionIndex.collectAbortedTxns`, `LocalLog.read`, the Java client's `CompletedFetch.nextFetchedRecord`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eo_audit.model.batches import ABORT, COMMIT, NO_PRODUCER, Batch
from eo_audit.model.lso import EndedTransaction, replay


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry of a `.txnindex` file."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True)
class IndexedLog:
    """The batches of one replica log in offset order, its segments' base offsets, and the index entries of each segment.

    `cleaned_below`: up to here the cleaner may have taken batches.
    """

    batches: Sequence[Batch]
    segments: Sequence[int]
    index: Mapping[int, Sequence[IndexEntry]]
    cleaned_below: int = 0

    @property
    def end_offset(self) -> int:
        """One past the last batch; the newest segment's base when there is none."""
        # A segment is named by the next offset at the time it was begun: so retention may take every batch, and the end is still known.
        return max([batch.last_offset + 1 for batch in self.batches] + [self.segments[-1]])


def index_of(ended: Iterable[EndedTransaction], segments: Sequence[int], *, empty_aborts: bool = False) -> dict[int, list[IndexEntry]]:
    """The index a correct broker writes: each entry lies in the segment of its marker.

    Args:
        ended: the ended transactions of the log, in marker order.
        segments: base offsets of the segments, ascending.
        empty_aborts: an ABORT that closes nothing has an entry too (before 2.8).
    """
    index: dict[int, list[IndexEntry]] = {base: [] for base in segments}
    for txn in ended:
        if txn.marker == ABORT and (empty_aborts or txn.first_offset < txn.marker_offset):
            # LogSegment.updateTxnIndex of the segment that gets the marker: a transaction over many segments has its entry in the last one.
            segment = segments[bisect_right(segments, txn.marker_offset) - 1]
            index[segment].append(IndexEntry(txn.producer_id, txn.first_offset, txn.marker_offset, txn.stable_offset))
    return index


def look_up(log: IndexedLog, *, segment: int, fetch_offset: int, upper_bound: int) -> list[IndexEntry]:
    """The aborted transactions that a broker sends with a fetch from one segment."""
    found: list[IndexEntry] = []
    for base in (base for base in log.segments if base >= segment):
        for entry in log.index.get(base, ()):
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
                found.append(entry)
            # TransactionIndex.collectAbortedTxns stops here: every later entry belongs to a transaction that began at or above this bound.
            # An entry whose bound is too high ends the walk too soon, and then aborted records are handed out.
            if entry.last_stable_offset >= upper_bound:
                return found
    return found


def look_up_ends_before(log: IndexedLog) -> dict[IndexEntry, IndexEntry]:
    """Entries that a look-up may miss, with the entry it ends at: one walked before, whose lastStableOffset lies above their first offset.

    A leader writes no such entry: what is still to be aborted bounds the last stable offset. Of several the one with the highest counts.
    """
    missed: dict[IndexEntry, IndexEntry] = {}
    highest: IndexEntry | None = None
    for base in log.segments:
        for entry in log.index.get(base, ()):
            # A fetch whose bound lies in (first offset, that last stable offset] meets the earlier entry first and ends there.
            if highest is not None and highest.last_stable_offset > entry.first_offset:
                missed[entry] = highest
            if highest is None or _stable(entry) > _stable(highest):
                highest = entry
    return missed


def is_of_one_fetch(log: IndexedLog, missed: IndexEntry, ends_at: IndexEntry) -> bool:
    """Whether an entry that a look-up may miss, and the one it ends at, are as a follower writes them.

    A follower appends all that it fetched at once: what begins in any of these batches is open before the first of their markers is noted
    (`UnifiedLog.append`), and `ProducerStateManager.lastStableOffset` passes over all transactions of the producer that ends, not only over
    the one that ends. So an entry may name the beginning of another producer's next transaction, above a later one of its own producer.
    What begins at the end of the log or behind it may be that, and so may what the cleaner took. Before 2.8 a marker that closes nothing
    begins a transaction, and ends it (`ProducerAppendInfo.appendEndTxnMarker`).
    """
    opened = replay(log.batches)
    starts = {(txn.producer_id, txn.first_offset) for txn in opened.ended} | {
        (txn.producer_id, txn.first_offset) for txn in opened.open.values()
    }
    named = {producer for producer, first in starts if first == ends_at.last_stable_offset}
    is_unseen = ends_at.last_stable_offset >= log.end_offset or ends_at.last_stable_offset < log.cleaned_below
    return missed.producer_id == ends_at.producer_id and (is_unseen or bool(named - {missed.producer_id}))


def _stable(entry: IndexEntry) -> tuple[int, int, int]:
    return entry.last_stable_offset, entry.last_offset, entry.producer_id


def keep_committed(batches: Iterable[Batch], aborted: Iterable[IndexEntry]) -> list[Batch]:
    """The batches that the client hands out of one fetch."""
    queue = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
    dropped: set[int] = set()
    returned = []
    for batch in batches:
        # CompletedFetch.consumeAbortedTransactionsUpTo, for every batch with a producer id, markers included.
        if batch.producer_id != NO_PRODUCER:
            while queue and queue[-1].first_offset <= batch.last_offset:
                dropped.add(queue.pop().producer_id)
        if batch.is_control:
            # containsAbortMarker takes its producer out; a COMMIT does not, so with an ABORT lost the id stays dropped until the next one.
            if batch.kind == "marker" and batch.marker_type != COMMIT:
                dropped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in dropped):
            returned.append(batch)
    return returned


def fetch(log: IndexedLog, *, segment: int, fetch_offset: int, lso: int, bounded: bool = True) -> list[Batch]:
    """The batches that one fetch returns, from an offset to the end of its segment or the LSO.

    Args:
        log: the replica log.
        segment: base offset of the segment that holds the fetch offset.
        fetch_offset: where the fetch starts.
        lso: the last stable offset.
        bounded: the index is looked up to min(LSO, end of the segment), else to the end of the segment: a broker takes the next entry
            of the sparse offset index, which lies anywhere between.
    """
    # A fetch never crosses a segment (LocalLog.read), and the client forgets its aborted producers with each one.
    end = next((base for base in log.segments if base > segment), log.end_offset)
    # LocalLog.addAbortedTransactions looks the index up to LogSegment.fetchUpperBoundOffset, the next entry of the sparse offset index,
    # else to the end of the segment: both readers are possible.
    upper = min(lso, end) if bounded else end
    aborted = look_up(log, segment=segment, fetch_offset=fetch_offset, upper_bound=upper)
    sent = (b for b in log.batches if b.last_offset >= fetch_offset and segment <= b.base_offset < end and b.last_offset < lso)
    return keep_committed(sent, aborted)


def read_committed(log: IndexedLog, *, log_start: int, lso: int, bounded: bool = True) -> list[Batch]:
    """The batches that a consumer gets that starts at the log start and fetches segment by segment (`bounded`: as in `fetch`)."""
    reached = max(bisect_right(log.segments, log_start) - 1, 0)
    returned = []
    for segment in log.segments[reached:]:
        returned += fetch(log, segment=segment, fetch_offset=max(segment, log_start), lso=lso, bounded=bounded)
    return returned


def read_uncommitted(log: IndexedLog, *, log_start: int, hw: int) -> list[Batch]:
    """The batches that a read_uncommitted consumer gets: all data below the high watermark."""
    return [batch for batch in log.batches if not batch.is_control and batch.last_offset >= log_start and batch.last_offset < hw]
