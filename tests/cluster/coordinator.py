"""The coordinator of one transactional id: its entries, its markers, its failovers, and the entries that nobody acknowledged."""

import json
import random
from dataclasses import dataclass, field, replace
from functools import cached_property

from eo_audit.model.states import STATE_OF_ID, partition_for
from tests.cluster.brokers import COORDINATOR, Log, Place, Record, Transaction, World, Write
from tests.cluster.shape import TV2

ID_OF_STATE = {name: number for number, name in STATE_OF_ID.items()}
TOMBSTONE = b"<DELETE>"  # its value, as it is printed
SCAN_MS = 1_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms of these clusters
_AT_LEAST = 0.999  # of the time that a clock shows, so much has gone by: none drifts by more than 200 ppm (`clock.py`)


@dataclass(frozen=True)
class Entry:
    """The value of one record of `__transaction_state`; `partitions` in the order in which they were added."""

    status: str
    producer_id: int
    epoch: int
    timeout_ms: int
    partitions: tuple[Place, ...] | None
    last_update_ms: int
    start_ms: int
    client_version: int | None = None


def printed_entry(transactional_id: str, entry: Entry | None, release: str) -> tuple[bytes, bytes, tuple[int, int]]:
    """Key and value as the tool prints them, and their bytes on disk; no entry: a tombstone."""
    key_size = 4 + len(transactional_id)
    if release >= "4.1":
        key = json.dumps({"type": "0", "data": {"transactionalId": transactional_id}}, separators=(",", ":"))
        value, size = (TOMBSTONE.decode(), -1) if entry is None else _json(entry)
    else:
        key = f"transaction_metadata::transactionalId={transactional_id}"
        value, size = (TOMBSTONE.decode(), -1) if entry is None else _text(entry)
    return key.encode(), value.encode(), (key_size, size)


def _topics(entry: Entry) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in entry.partitions or ():
        topics.setdefault(topic, []).append(partition)
    return topics


def _text(entry: Entry) -> tuple[str, int]:
    listed = ",".join(f"{topic}-{partition}" for topic, partition in entry.partitions or ())
    text = (
        f"producerId:{entry.producer_id},producerEpoch:{entry.epoch},state={entry.status},partitions=[{listed}],"
        f"txnLastUpdateTimestamp={entry.last_update_ms},txnTimeoutMs={entry.timeout_ms}"
    )
    return text, 37 + sum(6 + len(topic) + 4 * len(numbers) for topic, numbers in _topics(entry).items())


def _json(entry: Entry) -> tuple[str, int]:
    topics = [{"topic": topic, "partitionIds": numbers} for topic, numbers in _topics(entry).items()]
    data: dict[str, object] = {
        "producerId": entry.producer_id,
        "previousProducerId": entry.producer_id,
        "producerEpoch": entry.epoch,
        "transactionTimeoutMs": entry.timeout_ms,
        "transactionStatus": ID_OF_STATE[entry.status],
        "transactionPartitions": None if entry.partitions is None else topics,
        "transactionLastUpdateTimestampMs": entry.last_update_ms,
        "transactionStartTimestampMs": entry.start_ms,
    }
    size = 33 + 1 + 1 + 10 + sum(3 + len(topic) + 4 * len(numbers) for topic, numbers in _topics(entry).items())
    if entry.client_version:
        data["clientTransactionVersion"] = entry.client_version
        size += 4
    return json.dumps({"version": "1", "data": data}, separators=(",", ":")), size


@dataclass
class Coordinated:
    """One transactional id in its coordinator's memory. `seen` is the last acknowledged entry."""

    world: World
    transactional_id: str
    is_tv2: bool
    timeout_ms: int
    producer_id: int
    rng: random.Random
    epoch: int = 0
    seen: Entry | None = None
    history: list[tuple[int, Entry]] = field(default_factory=list)

    @cached_property
    def log(self) -> Log:
        """The partition of `__transaction_state` that holds this id."""
        return self.world.logs[COORDINATOR, partition_for(self.transactional_id, self.world.shape.coordinators)]

    @cached_property
    def _clock_moves(self) -> list[int]:
        """True times from which on the coordinator's clock may be another one, or is set."""
        jumps = [clock.jump_at for clock in self.world.clocks.values() if clock.jump_at is not None]
        return [term.at for term in self.log.leadership.terms] + jumps

    def now(self, at: int) -> int:
        """The coordinator's clock."""
        return self.world.clock(self.log.place, at)

    def write(self, at: int, entry: Entry | None, *, acknowledged: bool = True) -> int:
        """Append an entry, or the tombstone of the id; an unavailable coordinator takes it later. Returns the true time of the append."""
        at = self.available(at) + self.rng.choice((0, 0, 1, 2))
        term = self.log.leadership.term(at)
        key, value, sizes = printed_entry(self.transactional_id, entry, self.world.shape.release)
        record = Record(key, value, self.now(at))
        self.log.writes.append(Write(at, record.timestamp_ms, term.epoch, (record,), entry_sizes=sizes))
        if acknowledged:
            self.seen = entry
            self.history += [] if entry is None else [(at, entry)]
        return at

    def available(self, at: int) -> int:
        """The first time from then on at which a coordinator has loaded the partition."""
        began = self.log.leadership.elected(at).at
        return max(at, began + 150) if began != self.log.leadership.terms[0].at else at

    def empty(self, at: int) -> int:
        """InitProducerId with nothing open."""
        at = self.available(at)
        version = self.seen.client_version if self.seen and self.history else None  # carried over, whoever ended the last transaction
        return self.write(at, Entry("Empty", self.producer_id, self.epoch, self.timeout_ms, None, self.now(at), -1, version))

    def ongoing(self, at: int, transaction: Transaction, added: tuple[Place, ...]) -> int:
        """AddPartitionsToTxn, of a client or (TV2) of a partition's leader."""
        at = self.available(at)
        running = self.seen is not None and self.seen.status == "Ongoing"
        partitions = ((self.seen.partitions or ()) if self.seen and running else ()) + added
        start = self.seen.start_ms if self.seen and running else self.now(at)
        entry = Entry("Ongoing", self.producer_id, self.epoch, self.timeout_ms, partitions, self.now(at), start, self._version())
        if self.world.shape.has("ghosts") and self.rng.random() < 0.08:
            at = self.write(at, entry, acknowledged=False) + 2_600
            at = self.available(at)
            entry = replace(entry, last_update_ms=self.now(at), start_ms=entry.start_ms if running else self.now(at))
        at = self.write(at, entry)
        transaction.partitions = list(partitions)
        return at

    def expires(self, at: int) -> int:
        """When the scan finds the running transaction too old, by the clocks of whoever coordinates then."""
        assert self.seen is not None
        return self._scanned(at, self.seen.start_ms + self.timeout_ms)

    def forgets(self, at: int) -> int:
        """The id was idle for too long: its tombstone. Returns the true time of it; whoever comes then gets another producer id."""
        assert self.seen is not None
        shape, ghosts = self.world.shape, self.world.shape.has("ghosts")
        # Where nobody tells how long ids live, or what it was before, an id that was deleted by hand looks the same.
        if ghosts and shape.tells_settings and not shape.has("cleaned_coordinator") and self.rng.random() < 0.2:
            begun = replace(self.seen, status="Ongoing", partitions=(self.world.data_logs[0].place,), client_version=self._version())
            at = self.available(at + 500)
            at = self.write(at, replace(begun, last_update_ms=self.now(at), start_ms=self.now(at)), acknowledged=False)
        at = self._scanned(at, self.seen.last_update_ms + shape.id_expires_ms)
        if ghosts and self.rng.random() < 0.3:
            at = self._scanned(self.write(at, None, acknowledged=False) + 2_600, 0)
        at = self.write(at, None)
        self.history.clear()
        self.producer_id, self.epoch = self.producer_id + 1_000, 0
        return at

    def _scanned(self, at: int, until_ms: int) -> int:
        """The first scan that finds that a time is over."""
        tick = at + self.rng.randrange(SCAN_MS)
        while (left := until_ms - self.now(tick)) >= 0:
            # As many scans at once as find nothing, for sure: before the clock can be there, and before it is another one or is set.
            moves = min((moved for moved in self._clock_moves if moved > tick), default=tick + left + 1)
            tick += (min(int(left * _AT_LEAST), moves - tick - 1) // SCAN_MS + 1) * SCAN_MS
        return self.available(tick)

    def end(self, at: int, transaction: Transaction, decision: str, *, raised: int, by_server: bool = False) -> int:
        """Decide a transaction, write its markers and its last entry. Returns the true time at which the client may begin anew.

        `by_server`: no client asked for it (a fence, a timeout), so its entries have the cluster's transaction.version, not the client's.
        """
        assert self.seen is not None
        at = self.available(at)
        self.epoch += raised
        status = "PrepareCommit" if decision == "COMMIT" else "PrepareAbort"
        transaction.decision, transaction.marker_epoch = decision, self.epoch
        at = self._lost(self._unheard(at, raised), transaction)
        entry = replace(self.seen, status=status, epoch=self.epoch, last_update_ms=self.now(at))
        entry = replace(entry, client_version=self._cluster_version(at) if by_server else self._version())
        if self.world.shape.has("ghosts") and self.rng.random() < 0.08:
            at = self.available(self.write(at, entry, acknowledged=False) + 2_600)
            entry = replace(entry, last_update_ms=self.now(at))
        at = self.write(at, entry)
        transaction.decided_at = at
        done, reloaded = self._mark(at, transaction)
        complete = replace(entry, status="Complete" + status.removeprefix("Prepare"), partitions=())
        updated = self.now(reloaded) if reloaded else min(self.now(at) + 1, self.now(done))
        transaction.ended_at = self.write(done, replace(complete, last_update_ms=updated))
        if self.world.shape.has("ghosts") and self.rng.random() < 0.05:
            transaction.ended_at = self.write(transaction.ended_at + 40, replace(complete, last_update_ms=updated))
        return transaction.ended_at

    def _lost(self, at: int, transaction: Transaction) -> int:
        """A decision that no other broker has: its coordinator is killed, comes back before it is missed, and sends the markers of what its
        own log ends with; its successor decides the same anew. Returns the true time at which it does."""
        change = self.log.leadership.change_between(at, at + 8_000)
        if change is None or not (self.world.shape.has("lost_decisions") and self.rng.random() < 0.6):
            return at
        epoch = self.log.leadership.elected(at).epoch
        # The controller takes the partition from a broker that registers anew (KRaft before 4.0) as soon as it has begun to lead again.
        back = max(at, change.at - self.rng.randrange(50, 1_500))
        for place in transaction.partitions:
            if (when := back + self._delay(place)) < change.at:
                self._marker(when, place, transaction, epoch)
        return self.available(change.at)

    def _unheard(self, at: int, raised: int) -> int:
        """An entry that nobody acknowledged: the end of the transaction does not go on from its partitions or its epoch."""
        assert self.seen is not None
        if not (self.world.shape.has("unheard_ghosts") and self.rng.random() < 0.15):
            return at
        others = [place for place in self.world.logs if place[0] != COORDINATOR and place not in (self.seen.partitions or ())]
        if raised == 0 and self.timeout_ms < 20_000 and self.rng.random() < 0.6:
            at = max(at, self.expires(at))
            entry = replace(self.seen, status="PrepareAbort", epoch=self.seen.epoch + 1, last_update_ms=self.now(at))
            entry = replace(entry, client_version=self._cluster_version(at))
        elif others:
            entry = replace(self.seen, partitions=(*(self.seen.partitions or ()), self.rng.choice(others)), last_update_ms=self.now(at))
        else:
            return at
        return self.available(self.write(at, entry, acknowledged=False) + 2_600)

    def _version(self) -> int | None:
        return 2 if self.is_tv2 else None

    def _cluster_version(self, at: int) -> int | None:
        return 2 if self.world.shape.protocol == TV2 and at not in self.world.lowered else None

    def _mark(self, at: int, transaction: Transaction) -> tuple[int, int | None]:
        """Markers to all partitions; a new coordinator sends them all again. Returns when all had them, and the time of the reload."""
        term = self.log.leadership.elected(at)
        planned = [(at + self._delay(place), place) for place in transaction.partitions]
        done = max(when for when, _ in planned) + self.rng.randrange(1, 4)
        change = self.log.leadership.change_between(at, done)
        for when, place in planned:
            if change is None or when < change.at:
                self._marker(when, place, transaction, term.epoch)
                done = max(done, self._again(when, place, transaction, term.epoch))
        if change is None or change.at > done:
            return done, None
        reloaded = self.available(change.at)
        again = [(reloaded + self._delay(place), place) for place in transaction.partitions]
        for when, place in again:
            self._marker(when, place, transaction, change.epoch)
        return max(when for when, _ in again) + 2, reloaded

    def _delay(self, place: Place) -> int:
        slow = self.world.shape.has("slow_markers") and self.rng.random() < 0.06
        return self.rng.randrange(500, 7_000) if slow else self.rng.choice((1, 2, 3, 5, 8, 20, 60))

    def _again(self, when: int, place: Place, transaction: Transaction, epoch: int) -> int:
        """A marker whose answer was lost is sent again, above all while the partition's leader changes."""
        changed = self.world.logs[place].leadership.change_between(when - 300, when + 300)
        if not (self.world.shape.has("marker_retries") and self.rng.random() < (0.6 if changed else 0.06)):
            return when
        later = when + self.rng.choice((30, 100, 400))
        if self.log.leadership.change_between(when, later):
            return when
        self._marker(later, place, transaction, epoch)
        return later + 1

    def _marker(self, when: int, place: Place, transaction: Transaction, coordinator_epoch: int) -> None:
        log = self.world.logs[place]
        stamp = self.world.clock(place, when)
        log.writes.append(
            Write(
                when,
                stamp,
                log.leadership.term(when).epoch,
                (Record(None, None, stamp),),
                producer_id=transaction.producer_id,
                epoch=transaction.marker_epoch or 0,
                marker=transaction.decision,
                coordinator_epoch=coordinator_epoch,
                transaction=transaction,
            )
        )
