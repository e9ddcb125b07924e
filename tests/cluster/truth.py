"""What is true of a cluster with one planted fault, and whether its dumps can show it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from eo_audit.model.states import partition_for
from eo_audit.rules.catalogue import BY_CODE
from tests.cluster.brokers import COORDINATOR, Log, Place, Transaction, World, Write
from tests.cluster.dumping import Copy, Plan, housekeeping, state_of
from tests.cluster.replay import State


@dataclass(frozen=True)
class Truth:
    """One planted fault.

    Attributes:
        kind: its name, with the variant.
        must: of each set one rule must name it, above info; rules that the catalogue does not have yet are left out.
        may: rules that may speak of the same producer or id, or of the same partition, as collateral.
        place: where it is; None: in the coordinator's log only.
        producer_id, transactional_id: whose it is, where that matters.
        offsets: first and last, where they are certain.
        decidable: the dumps can show it by order, types and epochs; else nothing must be found.
        why: what was done.
        tells: as `must`, of rules that inform: that they speak is enough.
    """

    kind: str
    must: tuple[frozenset[str], ...]
    may: frozenset[str]
    place: Place | None = None
    producer_id: int | None = None
    transactional_id: str | None = None
    offsets: tuple[int, int] | None = None
    decidable: bool = True
    why: str = ""
    tells: tuple[frozenset[str], ...] = ()

    @property
    def demands(self) -> list[frozenset[str]]:
        """The sets of `must` and of `tells` as far as the catalogue goes."""
        known = [rules & BY_CODE.keys() for rules in (*self.must, *self.tells)]
        return [rules for rules in known if rules] if self.decidable else []

    @property
    def allowed(self) -> frozenset[str]:
        """Everything that may be said at the place of the fault."""
        return self.may.union(*self.must, *self.tells)


class NoPlace(Exception):
    """A fault cannot be planted here."""


class Scene:
    """A world and its dump plan, with what a planter asks of them."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world, self.plan = world, plan

    @cached_property
    def states(self) -> dict[Place, State]:
        """Of the shortest copy of each log."""
        return {place: self.state(place) for place in self.world.logs}

    def state(self, place: Place) -> State:
        """The shortest copy of a log, as the log is now."""
        shortest = min((copy for copy in self.plan.copies if copy.place == place), key=lambda copy: copy.moment)
        return state_of(self.world, self.plan, shortest)

    @cached_property
    def seen(self) -> dict[Place, set[int]]:
        """Identities of the writes that all copies hold, untouched by the cleaner and above the log start."""
        return {
            place: {id(batch.write) for batch in state.batches if batch.base >= max(state.log_start, state.cleaned_to or 0)}
            for place, state in self.states.items()
        }

    def is_seen(self, place: Place, write: Write) -> bool:
        """Every copy holds it as it was written."""
        return id(write) in self.seen[place]

    def whole_head(self, place: Place) -> bool:
        """The log was dumped from its first offset on, and the cleaner was never there."""
        kept = housekeeping(self.world, self.plan, place)
        return not kept.dirty and kept.cut is None and kept.deleted_to is None and self.world.logs[place].first_offset == 0

    def coordinator(self, transaction: Transaction) -> Place:
        """The partition of `__transaction_state` that tells of a transaction."""
        return COORDINATOR, partition_for(transaction.transactional_id, self.world.shape.coordinators)

    def is_told(self, transaction: Transaction) -> bool:
        """The dump of the coordinator's log holds all of its entries."""
        place = self.coordinator(transaction)
        moment = min(self.plan.moments(place))
        if transaction.ended_at is None or transaction.ended_at > moment:
            return False
        mine = [w for w in self.world.logs[place].writes if transaction.began_at <= w.at <= transaction.ended_at]
        return all(self.is_seen(place, write) for write in mine)

    def data(self, log: Log, transaction: Transaction) -> list[Write]:
        """Its batches in a log."""
        return [w for w in log.writes if w.transaction is transaction and w.marker is None]

    def markers(self, log: Log, transaction: Transaction) -> list[Write]:
        """Its markers in a log, with those sent again."""
        return [w for w in log.writes if w.transaction is transaction and w.marker is not None]

    def listing(self, place: Place, producer_id: int) -> list[Transaction]:
        """The transactions of a producer id that list a partition, in order."""
        return [t for t in self.world.transactions if t.producer_id == producer_id and place in t.partitions]

    def is_followed(self, log: Log, at: int, transaction: Transaction) -> bool:
        """Order alone tells that the dump of a log goes on behind a true time and the end of a transaction.

        A marker stands there, of a transaction that the same coordinator's log holds and that it decided after the given one had ended.
        Or both logs ended with their brokers: then nothing is younger.
        """
        if self.is_stopped(log, transaction):
            return True
        return any(
            w.at > at
            and self.is_seen(log.place, w)
            and self.coordinator(w.transaction) == self.coordinator(transaction)
            and self.is_told(w.transaction)
            and (w.transaction.decided_at or 0) > (transaction.ended_at or 0)
            for w in log.writes
            if w.marker is not None and w.transaction is not None
        )

    def is_stopped(self, log: Log, transaction: Transaction) -> bool:
        """All copies of a log ended with brokers that have a copy of the coordinator's log, which ends where the longest one does."""
        copies = self.copies(self.coordinator(transaction))
        last = max(copy.moment for copy in copies)
        ended = {copy.broker for copy in copies if copy.moment == last and not copy.lost_ms}
        return self.plan.stopped and all(copy.broker in ended for copy in self.copies(log.place))

    def is_named_by_epoch(self, transaction: Transaction) -> bool:
        """Under TV2 the epoch of a marker names its transaction, where no transaction of TV1 went on with that epoch."""
        rivals = [other for other in self.world.transactions if not other.is_tv2 and other.producer_id == transaction.producer_id]
        return transaction.is_tv2 and all(other.marker_epoch != transaction.marker_epoch for other in rivals)

    def can_count(self, log: Log, transaction: Transaction) -> bool:
        """The producer's markers in this log can be counted against its transactions: none was sent twice, and no head is missing.

        A marker that was sent again looks like that of a transaction without data, and so may stand for one that is missing. Under TV2
        epochs tell.
        """
        if self.is_named_by_epoch(transaction):
            return True
        row = self.listing(log.place, transaction.producer_id)
        once = all(len(self.markers(log, other)) <= 1 for other in row)
        return once and self.whole_head(log.place) and self.whole_head(self.coordinator(transaction))

    def has_empty(self, log: Log, transaction: Transaction) -> bool:
        """Some transaction of the producer has no data in this log."""
        return any(not self.data(log, other) for other in self.listing(log.place, transaction.producer_id))

    def offsets(self, place: Place, writes: Iterable[Write]) -> tuple[int, int]:
        """First and last offset of some writes, as the log is now.

        Raises:
            NoPlace: with the fault the log has other segments, and retention or the cleaner took one of the writes.
        """
        wanted, state = {id(write) for write in writes}, self.state(place)
        kept = max(state.log_start, state.cleaned_to or 0)
        placed = [batch for batch in state.batches if id(batch.write) in wanted and batch.base >= kept]
        if len(placed) < len(wanted):
            raise NoPlace
        return min(batch.base for batch in placed), max(batch.last for batch in placed)

    def copies(self, place: Place) -> list[Copy]:
        """The dumps of a log."""
        return [copy for copy in self.plan.copies if copy.place == place]
