"""What kind of cluster a seed is: features, sizes and the way it is dumped. Later choices come from streams named after the seed."""

import random
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

TV0, TV2 = "tv0", "tv2"
DAY_MS = 86_400_000

# Feature -> how often a cluster has it. Each can be turned off without another choice of the seed changing.
FEATURES: Final[dict[str, float]] = {
    "clocks": 0.6,  # broker clocks differ: 0.3 s, 2.5 s or 30 s
    "drift": 0.2,  # up to 200 ppm
    "jumps": 0.1,  # one broker clock is set once
    "steps": 0.05,  # one broker clock is set back by a minute or a day: it had no NTP for long
    "leaps": 0.05,  # one is set on by as much: its coordinators end what is open
    "client_clocks": 0.3,  # each producer has a clock of its own
    "event_times": 0.3,  # record times are the application's: hours ago, ahead, or a few seconds late
    "append_time": 0.2,  # topics with message.timestamp.type=LogAppendTime
    "slow_markers": 0.3,  # some markers take seconds
    "marker_retries": 0.3,  # markers are sent twice
    "empty_partitions": 0.4,  # registered partitions without data
    "aborts": 0.8,
    "timeouts": 0.3,
    "fences": 0.3,
    "sessions": 0.3,
    "exhaustion": 0.05,
    "mixed_clients": 0.2,  # old clients on a cluster of transaction.version 2
    "lowered": 0.2,  # transaction.version 2 was taken back for some time, or for good
    "leader_changes": 0.3,
    "failovers": 0.25,  # of the coordinator
    "ghosts": 0.15,
    "unheard_ghosts": 0.1,  # ghosts after which the transaction ends from an older entry
    "segments": 0.4,
    "retention": 0.15,
    "delete_records": 0.1,
    "cleaned_data": 0.15,
    "cleaned_coordinator": 0.15,
    "open_at_end": 0.3,  # some transaction is still open at the stop
    "late_sidecars": 0.4,  # on a running broker: snapshots and indexes are dumped a little later than the log beside them
    "payloads": 0.7,
    "leaders_only": 0.3,  # of stopped brokers only one copy of each coordinator log was dumped
    "rolling_stop": 0.3,  # a broker that led nothing any more was stopped before the others, and its copies were dumped
    "group_offsets": 0.3,  # applications commit the offsets of their input in their transactions
    "raised_epochs": 0.3,  # of 3.9 with ZooKeeper: a follower that dies raises the leader epoch, no coordinator hears of it
    "night_before": 0.15,  # healthy ones were dumped by collect-dumps.sh before, and both dumps are audited together
    "expired_ids": 0.1,  # ids that pause for too long are forgotten, and come back with another producer id
    "expired_producers": 0.1,  # leaders forget producers soon, by the times of their records
    "recreated": 0.05,  # a topic was deleted, and created anew under its name
    "lost_decisions": 0.01,  # a coordinator that is killed has sent markers of a decision that its successor takes anew
    "coordinator_cut": 0.05,  # the text of the coordinator's logs ends between two records, and no other file says so
}

# How the logs were dumped -> how often. Each log has its own moment.
STOPPED, SCRIPT, APART, HAND_BEFORE, HAND_AFTER, MANIFEST_END = "stopped", "script", "apart", "hand_before", "hand_after", "manifest_end"
FOLLOWER_BESIDE, FOLLOWER_ALONE = "follower_beside", "follower_alone"
DUMPS: Final[dict[str, float]] = {
    STOPPED: 4,  # all brokers were stopped first
    SCRIPT: 3,  # collect-dumps.sh on running brokers: partitions first, the coordinator's log last
    APART: 1,  # the same, but on another broker the coordinator's log was dumped before some partition
    HAND_BEFORE: 1,  # by hand, without a manifest: the coordinator's log seconds before the partitions
    HAND_AFTER: 1,  # by hand, without a manifest: the coordinator's log seconds after the partitions
    MANIFEST_END: 1,  # by hand, with a manifest that was written at the end
    FOLLOWER_BESIDE: 1,  # a follower that is behind, beside the leader
    FOLLOWER_ALONE: 1,  # only the follower that is behind
}
BY_SCRIPT = frozenset({SCRIPT, FOLLOWER_BESIDE, FOLLOWER_ALONE})  # it may note when it dumped each file
COMPLETE = frozenset({STOPPED, SCRIPT})  # nothing is missing: such a dump of a healthy cluster leaves nothing unknown


@dataclass(frozen=True)
class Shape:
    """A kind of cluster.

    Attributes:
        seed: names all random streams.
        protocol: tv0 (3.9 or 4.3) or tv2 (4.3).
        release: of the brokers and of their dump tool, "3.9" or "4.3".
        brokers, coordinators, partitions, ids, idempotent, plain: how many.
        transactions: of each transactional id.
        period_ms: from one transaction of an id to the next, about.
        features: those it has.
        dump: how it was dumped.
    """

    seed: int
    protocol: str
    release: str
    brokers: int
    coordinators: int
    partitions: int
    ids: int
    idempotent: int
    plain: int
    transactions: int
    period_ms: int
    features: frozenset[str]
    dump: str

    def has(self, feature: str) -> bool:
        """Whether the cluster has a feature."""
        return feature in self.features

    @property
    def has_clocks_apart(self) -> bool:
        """Brokers' clocks may differ, now or later."""
        return not self.features.isdisjoint(("clocks", "drift", "jumps", "steps", "leaps"))

    def stream(self, *names: object) -> random.Random:
        """A random stream of its own for one purpose."""
        return random.Random(":".join(map(str, (self.seed, *names))))

    @property
    def id_expires_ms(self) -> int:
        """transactional.id.expiration.ms."""
        return self.stream("expired_ids").choice((30_000, 900_000)) if self.has("expired_ids") else 7 * DAY_MS

    @property
    def producer_expires_ms(self) -> int:
        """producer.id.expiration.ms."""
        return self.stream("expired_producers").choice((600_000, 3_600_000)) if self.has("expired_producers") else DAY_MS

    @property
    def tells_settings(self) -> bool:
        """Whether a manifest tells the version and the settings of the brokers."""
        return self.dump not in (HAND_BEFORE, HAND_AFTER, MANIFEST_END)

    @property
    def is_complete(self) -> bool:
        """Nothing is missing in the dumps."""
        return self.dump in COMPLETE and not self.has("coordinator_cut") and not self.has("rolling_stop")


def draw(seed: int, *, features: Collection[str] = tuple(FEATURES), dumps: Collection[str] = tuple(DUMPS)) -> Shape:
    """The shape of a seed.

    Args:
        seed: any whole number.
        features: those that it may have.
        dumps: ways of dumping that it may have.
    """
    rng = random.Random(f"{seed}:shape")
    protocol, release = rng.choice(((TV0, "3.9"), (TV0, "3.9"), (TV0, "4.3"), (TV2, "4.3"), (TV2, "4.3")))
    shape = Shape(
        seed=seed,
        protocol=protocol,
        release=release,
        brokers=rng.choice((1, 2, 3, 3)),
        coordinators=rng.choice((1, 1, 2, 3)),
        partitions=rng.choice((2, 2, 3, 4)),
        ids=rng.choice((1, 1, 2, 3)),
        idempotent=rng.choice((0, 0, 1)),
        plain=rng.choice((0, 0, 1)),
        transactions=rng.choice((2, 4, 8, 12, 20)),
        period_ms=rng.choice((50, 100, 200, 500, 1_000, 2_000, 5_000)),
        features=frozenset(),
        dump=rng.choices([name for name in DUMPS if name in dumps], [DUMPS[name] for name in DUMPS if name in dumps])[0],
    )
    had = {name for name, often in FEATURES.items() if random.Random(f"{seed}:{name}").random() < often}
    return replace(shape, features=frozenset(had & set(features)))
