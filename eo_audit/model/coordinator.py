"""Replay of one transactional id's entries in the coordinator log, as Kafka's TransactionMetadata moves (KIP-98, KIP-360, KIP-890).

Each entry is judged against the one before it. Compaction only removes the beginning of an id's story, so two surviving
neighbours really were neighbours; a missing segment is what breaks that, and there the replay starts afresh.

A neighbour need not have counted: an append that "fails" (too few replicas took it, or too late) stays in the log, and the coordinator's
memory stays where it was. So memory is, after each entry, that entry or what it was before. An entry that does not follow from its
neighbour is judged from the newest earlier one from which it and every entry between them can have come; those between did not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eo_audit.model.entries import Entry
from eo_audit.model.protocols import protocols_of
from eo_audit.model.states import (
    COMMIT_EPOCH_STEPS,
    COMPLETE,
    COMPLETE_COMMIT,
    CONTINUES_RUN,
    EMPTY,
    EXPIRABLE,
    EXPIRES_AFTER_MS,
    GHOSTS,
    GHOSTS_IN_SIGHT,
    KNOWN,
    LARGEST_EPOCH_STEP,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    TOMBSTONE,
    TRANSIENT,
    TV2,
    VALID_PREVIOUS,
    Ghost,
    ends_by_own_version,
    fence_may_jump,
)

UNSEEN = -1  # place of an entry before all that are in sight
FINE = ("ok", "not_judged")  # steps of the epoch that break nothing


@dataclass(frozen=True)
class Step:
    """What the replay says of one entry; names and values as in the table `coordinator_history`.

    `origin` is the entry it goes on from: the one before it, or an earlier one where those between (`uncounted`, by their offsets)
    were appended and never acknowledged; None where nothing in sight explains it.
    """

    entry: Entry
    previous: Entry | None
    origin: Entry | None
    uncounted: tuple[int, ...]
    protocol: str
    step: str
    step_reason: str | None
    epoch_step: str
    field_change: str | None
    run: int | None = None  # entry offset at which its transaction begins
    is_last: bool = False

    @property
    def head_known(self) -> bool:
        """No earlier entry of the id can be missing: something precedes it, or it is the id's birth."""
        born = self.entry.status == EMPTY and self.entry.epoch == 0
        return self.previous is not None or self.entry.nothing_before or born


def replay(
    entries: Sequence[Entry],
    transaction_version: int | None = None,
    *,
    kafka_version: str | None = None,
    id_expires_ms: int = EXPIRES_AFTER_MS,
) -> list[Step]:
    """Judge all entries of one id in offset order, each against its predecessor.

    `transaction_version` and `kafka_version` are the cluster's where they are known: they say which protocol to assume where
    neither the entry nor its neighbours tell, and whether a fence may jump. `id_expires_ms` is its transactional.id.expiration.ms.
    """
    law = _Law(fence_may_jump(kafka_version), id_expires_ms)
    own = ends_by_own_version(kafka_version, transaction_version)
    protocols = protocols_of(entries, transaction_version, by_own_version=own)
    steps: list[Step] = []
    run: int | None = None
    alive: Entry | None = None
    for entry, protocol in zip(entries, protocols, strict=True):
        # Behind a missing segment nothing is a neighbour: a step that looks illegal may have had its legal middle there.
        before = steps[-1].entry if steps and not entry.after_gap else None
        alive = None if before is None else alive
        step = law.judge(_in_sight(steps, entry), entry, alive=alive, protocol=protocol)
        if begins_run(before, entry) and begins_run(step.origin, entry):
            run = entry.offset
        steps.append(replace(step, run=run if entry.status in CONTINUES_RUN else None, is_last=entry is entries[-1]))
        alive = entry if entry.status != TOMBSTONE else alive
    return steps


@dataclass(frozen=True)
class _Sight:
    """The id's last entries since the last missing segment, each with its protocol; whether what precedes them may be lost."""

    entries: Sequence[tuple[Entry, str]] = ()
    head_lost: bool = False


def _in_sight(steps: Sequence[Step], entry: Entry) -> _Sight:
    if entry.after_gap or not steps:
        return _Sight()
    head = next((place for place in range(len(steps) - 1, -1, -1) if steps[place].entry.after_gap), 0)
    first = max(head, len(steps) - GHOSTS_IN_SIGHT)
    return _Sight([(step.entry, step.protocol) for step in steps[first:]], first == head and not steps[head].head_known)


@dataclass(frozen=True)
class _Law:
    """What a step may be on one cluster; `may_jump` as `fence_may_jump` says, `id_expires_ms` as of `replay`."""

    may_jump: bool
    id_expires_ms: int

    def judge(self, sight: _Sight, entry: Entry, *, alive: Entry | None, protocol: str) -> Step:
        """The step of an entry: from its neighbour, else from the entry it can have come from, else what is wrong with it."""
        before = sight.entries[-1][0] if sight.entries else None
        kind, reason = _step(before, entry, alive=alive, protocol=protocol)
        epoch_step = _epoch_step(before, entry, protocol=protocol, may_jump=self.may_jump)
        fine = kind == "legal" and epoch_step in FINE
        change = _field_change(before, entry) if before is not None and fine else None
        if before is None or kind == "first" or (fine and change is None):
            return Step(entry, before, before, (), protocol, kind, reason, epoch_step, change)
        place = self._origin(sight, entry, protocol)
        if place is None:
            neighbour = (before.offset,) if kind == "ghost" else ()
            reason = "double_complete" if reason == "not_in_table" and _completes_again(sight, entry) else reason
            return Step(entry, before, None, neighbour, protocol, kind, reason, epoch_step, change)
        start = sight.entries[place][0] if place != UNSEEN else None
        lost = tuple(between.offset for between, _ in sight.entries[place + 1 :])
        return Step(entry, before, start, lost, protocol, "ghost", None, "not_judged" if entry.epoch is None else "ok", None)

    def _origin(self, sight: _Sight, entry: Entry, protocol: str) -> int | None:
        """Place of the newest earlier entry from which this one and all between can have come, the neighbour apart.

        UNSEEN where all in sight can have come from one that was compacted away.
        """
        earlier = sight.entries
        if entry.status in COMPLETE and earlier[-1][0].status in COMPLETE:
            return None  # written again from its queue, unchanged; another one is no residue (KAFKA-10080)
        chain = [*earlier, (entry, protocol)]
        # The newest first: each append that failed is one more thing to believe.
        for place in range(len(earlier) - 2, -1, -1):
            if self._expired(earlier[place][0], entry) and self._all_follow(earlier[place][0], chain[place + 1 :]):
                return place
        unseen = _unseen([one for one, _ in chain]) if sight.head_lost and self._expired(earlier[0][0], entry) else []
        return UNSEEN if any(self._all_follow(start, chain) for start in unseen) else None

    def _expired(self, start: Entry, entry: Entry) -> bool:
        """A tombstone needs an id that was idle for transactional.id.expiration.ms; sooner, it removes what stands between."""
        if entry.status != TOMBSTONE:
            return True
        known = entry.batch_ms is not None and start.last_update_ms is not None
        return known and (entry.batch_ms or 0) - (start.last_update_ms or 0) >= self.id_expires_ms

    def _all_follow(self, start: Entry, chain: Sequence[tuple[Entry, str]]) -> bool:
        return all(self._follows(start, entry, protocol=protocol) for entry, protocol in chain)

    def _follows(self, start: Entry, entry: Entry, *, protocol: str) -> bool:
        """Whether a coordinator that remembers `start` writes this entry."""
        if start.status not in VALID_PREVIOUS[protocol].get(entry.status, ()) or _aborts_unbegun(start, entry):
            return False
        if start.producer_id != entry.producer_id and entry.status in (ONGOING, *PREPARED):
            return False
        begins = start.status in EXPIRABLE and entry.status in (ONGOING, PREPARE_ABORT)
        if begins and _both(entry.start_ms, entry.last_update_ms) and entry.start_ms != entry.last_update_ms:
            return False  # a transaction that begins starts at the time of the entry
        # Only a client commits (EndTxn): the epoch stays, or rises by one under KIP-890 (`prepareAbortOrCommit`).
        if entry.status == PREPARE_COMMIT and None not in (start.epoch, entry.epoch):
            raised = (entry.epoch or 0) - (start.epoch or 0)
            if raised not in COMMIT_EPOCH_STEPS[protocol]:
                return False
        epoch_step = _epoch_step(start, entry, protocol=protocol, may_jump=self.may_jump)
        return epoch_step in FINE and _field_change(start, entry) is None


def _completes_again(sight: _Sight, entry: Entry) -> bool:
    """A completion that was written once more, unchanged, when the id's next transaction had begun (KAFKA-10080)."""
    if entry.status not in COMPLETE or sight.entries[-1][0].status in COMPLETE:
        return False
    mine = (entry.status, entry.producer_id, entry.epoch, entry.last_update_ms)
    return any((one.status, one.producer_id, one.epoch, one.last_update_ms) == mine for one, _ in sight.entries)


def _unseen(entries: Sequence[Entry]) -> list[Entry]:
    """What a coordinator may have remembered that wrote all of these: an open transaction, or none."""
    one = next((entry for entry in entries if entry.status in (ONGOING, *PREPARED)), entries[0])
    lowest = min((entry.epoch for entry in entries if entry.epoch is not None), default=0)
    common = frozenset.intersection(*(entry.partitions for entry in entries))
    starts = (replace(one, status=ONGOING, partitions=common), replace(one, status=COMPLETE_COMMIT, partitions=frozenset()))
    steps = range(min(lowest, max(LARGEST_EPOCH_STEP.values())) + 1)
    return [replace(start, epoch=lowest - raised) for start in starts for raised in steps]


def begins_run(before: Entry | None, entry: Entry) -> bool:
    """Whether a transaction begins with this entry: nothing it could continue precedes it."""
    if entry.status not in CONTINUES_RUN:
        return False
    if before is None or before.status not in CONTINUES_RUN[entry.status]:
        return True
    return entry.status not in COMPLETE and entry.producer_id != before.producer_id


def _step(before: Entry | None, entry: Entry, *, alive: Entry | None, protocol: str) -> tuple[str, str | None]:
    if entry.status in TRANSIENT:
        return "illegal", "transient_state"
    if entry.status not in KNOWN and entry.status != TOMBSTONE:
        return "illegal", "unknown_state"
    if before is None or (before.status not in KNOWN and before.status != TOMBSTONE):
        return "first", None
    valid = VALID_PREVIOUS[protocol][entry.status]
    if before.status == TOMBSTONE and entry.status != TOMBSTONE:
        return _after_tombstone(entry, alive=alive, valid=valid)
    if any(_is_ghost(ghost, before, entry, protocol=protocol) for ghost in GHOSTS):
        return "ghost", None
    if before.status in valid and not _aborts_unbegun(before, entry):
        return "legal", None
    return "illegal", _reason(before, entry)


def _aborts_unbegun(before: Entry, entry: Entry) -> bool:
    """An abort with partitions where no transaction was open: EndTxn(ABORT) of nothing has none (`prepareAbortOrCommit`, KIP-890)."""
    return entry.status == PREPARE_ABORT and before.status in EXPIRABLE and bool(entry.partitions)


def _after_tombstone(entry: Entry, *, alive: Entry | None, valid: frozenset[str]) -> tuple[str, str | None]:
    # The tombstone's append failed, so the id never left the coordinator's memory and goes on under its old producer id.
    survived = alive is not None and alive.producer_id == entry.producer_id and alive.status in valid
    if survived or (alive is None and entry.status != EMPTY):
        return "ghost", None
    return ("legal", None) if entry.status == EMPTY else ("illegal", "not_in_table")


def _is_ghost(ghost: Ghost, before: Entry, entry: Entry, *, protocol: str) -> bool:
    if (ghost.previous, ghost.current) != (before.status, entry.status) or protocol not in ghost.protocols:
        return False
    if before.producer_id != entry.producer_id or before.epoch is None or entry.epoch is None:
        return False
    if entry.epoch - before.epoch not in ghost.epoch_steps:
        return False
    if ghost.condition == "restarted":
        return _restarted(before, entry)
    if ghost.condition == "same_payload":
        return _payload(before) == _payload(entry)
    return ghost.condition == "any" or not entry.partitions


def _restarted(before: Entry, entry: Entry) -> bool:
    """Ongoing again, but no mere extension. Only a shorter list with the very same start has no failed append behind it."""
    if _both(before.start_ms, entry.start_ms) and before.start_ms != entry.start_ms:
        return True
    shrank = entry.partitions < before.partitions
    return not entry.partitions > before.partitions and not (shrank and _both(before.start_ms, entry.start_ms))


def _payload(entry: Entry) -> tuple[object, ...]:
    return (entry.producer_id, entry.epoch, entry.timeout_ms, entry.partitions, entry.last_update_ms, entry.start_ms)


def _reason(before: Entry, entry: Entry) -> str:
    if entry.status == TOMBSTONE:
        return "tombstone_while_open"
    same = entry.status in COMPLETE and entry.status == before.status
    return "double_complete" if same else "not_in_table"


def _epoch_step(before: Entry | None, entry: Entry, *, protocol: str, may_jump: bool) -> str:
    if before is None or before.epoch is None or entry.epoch is None:
        return "not_judged"
    if before.producer_id != entry.producer_id:
        # prepareProducerIdRotation and a new id both begin at 0; that the old epochs were used up (32766) is not asked here.
        return "ok" if entry.epoch == 0 else "pid_change_epoch_not_zero"
    raised = entry.epoch - before.epoch
    if raised < 0:
        return "regression"
    if entry.status == PREPARE_COMMIT and raised > max(COMMIT_EPOCH_STEPS[protocol]):
        return "jump"  # only a fence raises it further
    # KAFKA-9666, before 2.6: while the log could not be written, each attempt to fence burned an epoch of the memory.
    burned = may_jump and protocol != TV2 and entry.status == PREPARE_ABORT
    return "ok" if raised <= LARGEST_EPOCH_STEP[protocol] or burned else "jump"


def _field_change(before: Entry, entry: Entry) -> str | None:
    """The first field that changed and may not, for a step that is legal by its states."""
    # `TransactionLog.valueToBytes` refuses to write one.
    if entry.status == EMPTY and entry.partitions:
        return "empty_partitions"
    if entry.status in (EMPTY, TOMBSTONE) or before.status == TOMBSTONE:
        return None
    continues = before.status in CONTINUES_RUN[entry.status] if entry.status in CONTINUES_RUN else False
    # Only InitProducerId brings a timeout, and it writes Empty.
    if before.timeout_ms != entry.timeout_ms:
        return "timeout"
    # prepareAddPartitions unites the lists; nothing takes a partition out while a transaction is open.
    if entry.status == before.status == ONGOING and not entry.partitions >= before.partitions:
        return "partitions_shrank"
    # EndTxn takes the list over as it is: it is where the markers go.
    if entry.status in PREPARED and continues and entry.partitions != before.partitions:
        return "prepare_partitions"
    # prepareAddPartitions sets it where a transaction begins; what follows carries it along.
    if continues and _both(before.start_ms, entry.start_ms) and before.start_ms != entry.start_ms:
        return "start"
    # prepareComplete writes an empty list: no marker is owed any more.
    if entry.status in COMPLETE and entry.partitions:
        return "complete_partitions"
    # Only InitProducerId and the end of a transaction move the epoch: AddPartitions and the last marker do not.
    keeps_epoch = entry.status == ONGOING or entry.status in COMPLETE
    return "epoch" if keeps_epoch and before.producer_id == entry.producer_id and before.epoch != entry.epoch else None


def _both(first: int | None, second: int | None) -> bool:
    return first is not None and second is not None
