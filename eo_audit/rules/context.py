"""What `explain` may ask beyond its own case: logs, clusters, transactions by id, and who still lists a partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Never

from eo_audit.rules.replica_log import Log, lack_alike
from eo_audit.rules.row import Row

# A coordinator that holds one of these will still write markers (TransactionMarkerChannelManager), or end it after its timeout.
UNFINISHED = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
# How far a machine that wrote none of the logs may be ahead: healthy clusters were seen 30 s apart, and nothing here tells of its clock.
OTHER_MACHINE_MS = 60_000
# What the context holds only of those cases whose rules ask for it (`Rule.asks`): fields of `Context`.
ASKED = (
    *("last_of_producer", "open_spans", "unmarked", "data_of", "untold_ms", "went_on_ms"),
    *("edges", "spans", "missed_entries", "newest_markers"),
)


class NotAsked(LookupError):
    """A rule's words looked into a part of the context that the rule did not ask for: it knows nothing of the rule's cases."""


class _Closed(Mapping[object, Never]):
    """A part of the context that a rule did not ask for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, key: object) -> Never:
        raise NotAsked(f"the rule looks into {self._name} and does not ask for it")

    def __iter__(self) -> Iterator[object]:
        raise NotAsked(f"the rule looks into {self._name} and does not ask for it")

    def __len__(self) -> int:
        raise NotAsked(f"the rule looks into {self._name} and does not ask for it")


@dataclass(frozen=True)
class Context:
    """The small tables of one audit, by key.

    Attributes:
        logs: replica logs by id.
        clusters: rows of `clusters` by cluster.
        instances: transactions that cases speak of, by instance id.
        last_of_producer: the last transaction of each producer id that is open somewhere, by (cluster, producer id).
        open_spans: what is open at the end of a log (rows of transaction_spans), by (replica log, producer id).
        farthest_ms: how far apart the brokers' clocks lie, as matched markers tell, by cluster.
        stopped, clean_ends: clusters of which a log shows that its broker had been stopped when it was dumped, and those logs.
        dumped_at_ms: when the dump of a log began, by its own broker's clock, by log id.
        set_back_ms: how much earlier than the latest time in it a log ends, by log id: its clock was set back, or another one's was ahead.
        fates: whether anybody will end what is open (rows of open_transactions), by (replica log, producer id).
        unmarked: partitions that still lack a marker, by instance id.
        data_of: records of an open transaction (C01) in each partition it lists, by instance id; None where the dumps do not show it.
        untold_ms: when the newest marker of its producer was written that the coordinator's log does not tell of, by instance id (C01).
        went_on_ms: when the newest marker of any of its producers was written that a log of the coordinator does not tell of, by the id of
            that log (C01, C02).
        edges, spans: edge rows and transaction spans of producers that cases compare, by (replica log, producer id), in offset order.
        missed_entries: index entries that a look-up may miss (rows of aborted_index), by (replica log, producer id), in offset order.
        newest_markers: the newest marker (offset, coordinator epoch) of producers that hang, by (replica log, producer id).
        siblings: for each partition its replica logs.
    """

    logs: Mapping[int, Log]
    clusters: Mapping[str, Row]
    instances: Mapping[str, Row] = field(default_factory=dict)
    last_of_producer: Mapping[tuple[str, int], Row] = field(default_factory=dict)
    open_spans: Mapping[tuple[int, int], Row] = field(default_factory=dict)
    fates: Mapping[tuple[int, int], Row] = field(default_factory=dict)
    farthest_ms: Mapping[str, int] = field(default_factory=dict)
    stopped: frozenset[str] = frozenset()
    clean_ends: frozenset[int] = frozenset()
    dumped_at_ms: Mapping[int, int] = field(default_factory=dict)
    set_back_ms: Mapping[int, int] = field(default_factory=dict)
    unmarked: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    data_of: Mapping[str, Mapping[tuple[str, int], int | None]] = field(default_factory=dict)
    untold_ms: Mapping[str, int] = field(default_factory=dict)
    went_on_ms: Mapping[int, int] = field(default_factory=dict)
    edges: Mapping[tuple[int, int], list[Row]] = field(default_factory=dict)
    spans: Mapping[tuple[int, int], list[Row]] = field(default_factory=dict)
    missed_entries: Mapping[tuple[int, int], list[Row]] = field(default_factory=dict)
    newest_markers: Mapping[tuple[int, int], Row] = field(default_factory=dict)
    siblings: Mapping[tuple[str, str | None, int | None], list[Log]] = field(default_factory=dict)

    @cached_property
    def half_read(self) -> Mapping[str, frozenset[int | None]]:
        """Partitions of the coordinator's log of which some entries are hidden, by cluster: no replica shows them all."""
        hidden = [log for log in self.logs.values() if log.hides_entries and not any(one.shows_all_of(log) for one in self.replicas(log))]
        hiding = {(log.cluster, log.partition) for log in hidden}
        return {name: frozenset(number for cluster, number in hiding if cluster == name) for name, _ in hiding}

    def limited_to(self, asks: tuple[str, ...]) -> "Context":
        """The context as a rule sees it: what it did not ask for raises `NotAsked`."""
        # Closed, not empty: an empty table would acquit every case in silence.
        return replace(self, **{name: _Closed(name) for name in ASKED if name not in asks})  # type: ignore[arg-type]

    def cluster(self, name: str) -> Row:
        """What is known of a cluster; an empty row for one that is not known."""
        return self.clusters.get(name, Row({}))

    def now(self, cluster: str) -> int | None:
        """The as-of time of a cluster, in ms."""
        return self.cluster(cluster).maybe("as_of_ms")

    def coordinator_now(self, cluster: str, log_id: int | None) -> int | None:
        """The as-of time on the clock of a coordinator's log, in ms: where the audit's now is another machine's, it may be ahead by as much
        as any two brokers' clocks here are."""
        now = self.now(cluster)
        if now is None or self.cluster(cluster).text("as_of_source") == "argument":
            return now
        dumped = self.dumped_at_ms.get(log_id) if log_id is not None else None
        log = None if log_id is None else self.logs.get(log_id)
        return max(now - self.farthest_ms.get(cluster, 0) if dumped is None else dumped, 0 if log is None else log.newest_ms)

    def coordinator_now_at_least(self, cluster: str, log_id: int | None) -> int | None:
        """The same, and surely not later: its own newest entry tells for certain, but the broker that was dumped need not be the one that
        wrote the entries, and the manifest's machine may be ahead by more than anybody can measure here."""
        now, source = self.coordinator_now(cluster, log_id), self.cluster(cluster).text("as_of_source")
        log = None if log_id is None else self.logs.get(log_id)
        if now is None or source == "argument":
            return now
        if log_id in self.dumped_at_ms:
            least = now - self.farthest_ms.get(cluster, 0)
        elif source == "manifest":
            least = min(now, (self.now(cluster) or 0) - OTHER_MACHINE_MS)
        else:
            return now
        return max(least, 0 if log is None else log.newest_ms)

    def is_set_back(self, log_id: int | None, over_ms: int) -> bool:
        """Whether what is overdue by so much in a log of the coordinator may be so only by a clock that was set back: the log's times go
        back by as much, and its own broker does not tell when it was dumped."""
        return log_id is not None and log_id not in self.dumped_at_ms and 0 < over_ms <= self.set_back_ms.get(log_id, 0)

    def how_sure(self, log: Log, producer_id: int) -> str:
        """The certainty that what is open here hangs: likely, where only the dump's time tells that its marker is overdue."""
        return "likely" if log.is_overdue and self.has_ended(log, producer_id) else "definite"

    def lost_commit(self, log: Log, producer_id: int) -> bool:
        """Whether the coordinator committed what is open here, and its marker is missing in this partition (T05)."""
        owner = self.owner(log, producer_id)
        return self.lost_marker(log, producer_id) and owner is not None and owner.text("decision") == "COMMIT"

    def unfinished(self, cluster: str, producer_id: int) -> Row | None:
        """The transaction that the coordinator still holds open for a producer id."""
        last = self.last_of_producer.get((cluster, producer_id))
        return last if last is not None and last.flag("is_last") and last.text("last_status") in UNFINISHED else None

    def lists(self, log: Log, producer_id: int) -> bool:
        """The coordinator still lists this partition for this producer id: it will end what is open here."""
        last, row = self.unfinished(log.cluster, producer_id), self.fates.get((log.log_id, producer_id))
        # Where nothing tells whose the open data is, it may be a later transaction's, of which the coordinator's dump does not tell yet.
        is_told = row is None or row.text("instance_id") is not None
        return last is not None and is_told and (log.topic, log.partition) in last.partitions()

    def version(self, cluster: str) -> tuple[int, ...] | None:
        """The broker version (major, minor), where the manifest says it."""
        # `3.9.1`, and `4.0` as well; what is written in another way is not guessed at.
        parts = (self.cluster(cluster).text("kafka_version") or "").split(".")[:2]
        return tuple(int(part) for part in parts) if len(parts) == 2 and all(part.isdigit() for part in parts) else None

    def keeps_markers(self, cluster: str) -> bool | None:
        """The brokers' cleaner never looks for markers among the keys of records (KAFKA-14055: 3.3.0, 3.2.1, 3.1.2, 3.0.2); None where the
        manifest does not say their version, or only `3.2`."""
        version, parts = self.version(cluster), (self.cluster(cluster).text("kafka_version") or "").split(".")
        if version is None:
            return None
        if version >= (3, 3) or version < (3, 0):
            return version >= (3, 3)
        return int(parts[2]) >= (2, 2, 1)[version[1]] if len(parts) > 2 and parts[2].isdigit() else None

    def decision(self, instance_id: str) -> str | None:
        """COMMIT or ABORT, as the coordinator decided it."""
        instance = self.instances.get(instance_id)
        return instance.text("decision") if instance else None

    def replicas(self, log: Log) -> list[Log]:
        """The dumped replicas of the partition of `log`, itself included."""
        return self.siblings.get(log.place, [log])

    def is_superseded(self, log: Log) -> bool:
        """Another dumped replica of the partition has a newer leader epoch: nobody reads this one, and what it has more will be cut off.

        So is a follower that nothing was replicated to since the leader changed. The leader's own log is judged in place of both.
        """
        return any(other.supersedes(log) for other in self.replicas(log))

    def lags(self, log: Log) -> bool:
        """Another dumped replica of the partition reaches further: what this one lacks at its end may only be late."""
        return any(other.is_further(log) for other in self.replicas(log))

    def is_outdated(self, log: Log) -> bool:
        """Another dumped replica of the partition goes on behind this one, or its leader is newer and cuts off what this one has more."""
        # A leader notes its epoch where its log ends: until it writes, the others are as good.
        return any(other.is_further(log) and other.numbers.maybe("leo") != log.numbers.maybe("leo") for other in self.replicas(log))

    def may_be_left_behind(self, log: Log) -> bool:
        """A marker was overdue when this log was dumped, and no dumped replica tells: the log lost it, or is a follower's that lags."""
        return log.is_overdue and not log.is_led_on and not self.lags(log) and not lack_alike(self.replicas(log))

    def may_lack_marker(self, log: Log) -> bool:
        """The same, where a marker was overdue at the manifest's time, which may be that of the collection's end."""
        return "perhaps_overdue_marker" in log.subjects and not log.is_overdue and not self.lags(log)

    def ended_elsewhere(self, log: Log, producer_id: int) -> bool:
        """A replica that reaches further shows that what is open here has ended."""
        # Replicas are prefixes of one log, but for its end above the high watermark: the one that reaches further knows what came.
        further = [other for other in self.replicas(log) if other.is_further(log)]
        # Open here and not there: a marker lies between the two ends, or no leader has what is open here any more.
        return not all(self._is_open_too(log, other, producer_id) for other in further)

    def _is_open_too(self, log: Log, other: Log, producer_id: int) -> bool:
        here, there = self.open_spans.get((log.log_id, producer_id)), self.open_spans.get((other.log_id, producer_id))
        # What began there behind it is another transaction.
        return there is not None and (here is None or there.number("first_offset") <= here.number("first_offset"))

    def fate(self, log: Log, producer_id: int) -> str | None:
        """running, decided, nobody or unknown (`open_transactions`); None where nothing of this producer is open here."""
        row = self.fates.get((log.log_id, producer_id))
        return row.text("fate") if row is not None else None

    def hangs(self, log: Log, producer_id: int) -> bool:
        """Nobody will end what is open here: no transaction lists it, or its own is complete and its marker was lost (T05); and no replica
        that reaches further shows an end. A superseded replica tells of nothing that consumers wait for."""
        if not log.ends_here or self.is_superseded(log) or self.ended_elsewhere(log, producer_id):
            return False
        fate = self.fate(log, producer_id)
        return not self.may_have_ended(log, producer_id) and (
            fate == "nobody" or (fate == "decided" and self.lost_marker(log, producer_id))
        )

    def may_have_ended(self, log: Log, producer_id: int) -> bool:
        """Offsets are missing behind the beginning of what is open: its marker may stand there."""
        row = self.fates.get((log.log_id, producer_id))
        begins = None if row is None else row.maybe("first_offset")
        return begins is not None and any(hole.number("last_offset") > begins for hole in log.numbers.rows("holes"))

    def owner(self, log: Log, producer_id: int) -> Row | None:
        """The transaction of what is open here, whatever its producer did since; the producer's last one where none is known."""
        row = self.fates.get((log.log_id, producer_id))
        # A producer may have begun another transaction elsewhere since: the one that order gives this span counts.
        own = self.instances.get(row.word("instance_id")) if row is not None else None
        return own if own is not None else self.last_of_producer.get((log.cluster, producer_id))

    def lost_marker(self, log: Log, producer_id: int) -> bool:
        """The transaction of what is open here is complete, and its marker should stand in this log and does not."""
        row = self.fates.get((log.log_id, producer_id))
        instance = self.instances.get(row.word("instance_id")) if row is not None else None
        # While PrepareX stands the marker may still be on its way (`TransactionMarkerChannelManager` tries again for ever).
        if instance is None or instance.text("last_status") in UNFINISHED:
            return False
        return (log.topic, log.partition) in self.unmarked.get(instance.word("instance_id"), ())

    def has_ended(self, log: Log, producer_id: int) -> bool:
        """The coordinator has decided what is open here: its marker came after this dump was made, or was lost."""
        return self.fate(log, producer_id) == "decided"

    @cached_property
    def newest_ms(self) -> Mapping[str, int]:
        """The newest time that a broker wrote into any dumped log, in ms, by cluster; 0 where none did."""
        newest: dict[str, int] = {}
        for log in self.logs.values():
            newest[log.cluster] = max(newest.get(log.cluster, 0), log.newest_ms)
        return newest

    def blocks(self, cluster: str, producer_id: int) -> list[tuple[str, int]]:
        """The partitions whose last stable offset a producer id holds back."""
        return sorted(self._blocked.get((cluster, producer_id), ()))

    @cached_property
    def _blocked(self) -> Mapping[tuple[str, int], set[tuple[str, int]]]:
        held: dict[tuple[str, int], set[tuple[str, int]]] = {}
        for log in self.logs.values():
            producer = log.numbers.maybe("blocker_producer_id")
            if producer is not None and log.topic is not None and log.partition is not None:
                held.setdefault((log.cluster, producer), set()).add((log.topic, log.partition))
        return held
