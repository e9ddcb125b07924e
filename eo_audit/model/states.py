"""The coordinator's law as data: which state may follow which, per protocol, and where an id lives.

Kafka's `TransactionState.validPreviousStates` (KIP-98, KIP-890), its residues of failed appends, and
`TransactionStateManager.partitionFor`. The histories turn these tables into literals; nothing here is computed from dumps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

EMPTY = "Empty"
ONGOING = "Ongoing"
PREPARE_COMMIT = "PrepareCommit"
PREPARE_ABORT = "PrepareAbort"
COMPLETE_COMMIT = "CompleteCommit"
COMPLETE_ABORT = "CompleteAbort"
DEAD = "Dead"
PREPARE_EPOCH_FENCE = "PrepareEpochFence"

# The ids of `TransactionLogValue`: 4.1 to 4.3 print these, all other releases the names (KAFKA-20712).
STATE_OF_ID: Mapping[int, str] = MappingProxyType(
    {0: EMPTY, 1: ONGOING, 2: PREPARE_COMMIT, 3: PREPARE_ABORT, 4: COMPLETE_COMMIT, 5: COMPLETE_ABORT, 6: DEAD, 7: PREPARE_EPOCH_FENCE}
)
TOMBSTONE = "Tombstone"  # no state of Kafka's: our name for a record without a value

PREPARED = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
COMPLETE = frozenset({COMPLETE_COMMIT, COMPLETE_ABORT})
EXPIRABLE = frozenset({EMPTY, *COMPLETE})  # `TransactionState.isExpirationAllowed`
TRANSIENT = frozenset({DEAD, PREPARE_EPOCH_FENCE})  # live in the coordinator's memory only
KNOWN = frozenset(STATE_OF_ID.values())

TV0, TV2, UNKNOWN = "tv0", "tv2", "unknown"  # transaction versions 0 and 1 differ in the format of the value only
PROTOCOLS = (TV0, TV2, UNKNOWN)

COMMIT, ABORT = "COMMIT", "ABORT"
DECISION_OF: Mapping[str, str] = MappingProxyType(
    {PREPARE_COMMIT: COMMIT, COMPLETE_COMMIT: COMMIT, PREPARE_ABORT: ABORT, COMPLETE_ABORT: ABORT}
)

# As in TransactionState.validPreviousStates, and beside it what a coordinator does with an id that expired: its tombstone, and its second
# birth as Empty with a new producer id.
_PREVIOUS = {
    # Empty after Empty: InitProducerId again, with nothing begun between (prepareIncrementProducerEpoch).
    EMPTY: frozenset({EMPTY, *COMPLETE, TOMBSTONE, DEAD}),
    ONGOING: frozenset({EMPTY, ONGOING, *COMPLETE}),
    PREPARE_COMMIT: frozenset({ONGOING}),
    # PrepareEpochFence is never written: a fence goes through it in memory and appends PrepareAbort at once (prepareFenceProducerEpoch).
    PREPARE_ABORT: frozenset({ONGOING, PREPARE_EPOCH_FENCE}),
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    # Ids expire only where nothing is open (TransactionState.isExpirationAllowed).
    TOMBSTONE: frozenset({*EXPIRABLE, TOMBSTONE, DEAD}),
}
_PREVIOUS_TV2 = _PREVIOUS | {PREPARE_ABORT: _PREVIOUS[PREPARE_ABORT] | EXPIRABLE}  # EndTxn(ABORT) with nothing open

VALID_PREVIOUS: Mapping[str, Mapping[str, frozenset[str]]] = MappingProxyType(
    # Where nobody knows the protocol, the wider law: what either of them allows accuses nobody.
    {TV0: MappingProxyType(_PREVIOUS), TV2: MappingProxyType(_PREVIOUS_TV2), UNKNOWN: MappingProxyType(_PREVIOUS_TV2)}
)

# State of an entry -> states of the previous entry after which it belongs to the same transaction.
CONTINUES_RUN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        ONGOING: frozenset({ONGOING}),
        PREPARE_EPOCH_FENCE: frozenset({ONGOING, PREPARE_EPOCH_FENCE}),
        PREPARE_COMMIT: frozenset({ONGOING, PREPARE_EPOCH_FENCE, *PREPARED}),
        PREPARE_ABORT: frozenset({ONGOING, PREPARE_EPOCH_FENCE, *PREPARED}),
        # Wider than the law on purpose: an illegal step still belongs to the transaction that it went wrong in.
        COMPLETE_COMMIT: frozenset({ONGOING, PREPARE_EPOCH_FENCE, *PREPARED, *COMPLETE}),
        COMPLETE_ABORT: frozenset({ONGOING, PREPARE_EPOCH_FENCE, *PREPARED, *COMPLETE}),
    }
)


@dataclass(frozen=True)
class Ghost:
    """A pair that is legal although the table forbids it: the append of the first entry "failed" and yet stayed in the log.

    The coordinator computes the next entry from its memory, which still holds the state before the failed append.
    `epoch_steps` are the steps of the epoch from the first entry to the second; `condition` is one more thing to ask:
    `any`, `restarted` (Ongoing again, but not as a mere extension), `same_payload`, `forgotten` (an empty partition list).
    """

    previous: str
    current: str
    protocols: frozenset[str]
    epoch_steps: frozenset[int]
    condition: str = "any"


_ANY_PROTOCOL = frozenset(PROTOCOLS)
_NEW_PROTOCOL = frozenset({TV2, UNKNOWN})

GHOSTS: tuple[Ghost, ...] = (
    Ghost(ONGOING, ONGOING, _ANY_PROTOCOL, frozenset({0}), "restarted"),
    Ghost(PREPARE_COMMIT, PREPARE_COMMIT, _ANY_PROTOCOL, frozenset({0})),
    # The client was never told of its commit, and the timeout found the transaction still open in memory. No marker of the commit was sent,
    # as markers wait for the append.
    Ghost(PREPARE_COMMIT, PREPARE_ABORT, _ANY_PROTOCOL, frozenset({0, 1})),
    # From 2.6 on a fence that failed is tried again at the same epoch (hasFailedEpochFence, KAFKA-9666); before, one higher.
    Ghost(PREPARE_ABORT, PREPARE_ABORT, _ANY_PROTOCOL, frozenset({0, 1})),
    # An AddPartitions that failed, and then an abort of nothing: EndTxn(ABORT) with an empty list, from the state before it.
    Ghost(ONGOING, PREPARE_ABORT, _NEW_PROTOCOL, frozenset({1}), "forgotten"),
    # TransactionMarkerChannelManager appends CompleteX from its retry queue, unchanged; with other content it would be KAFKA-10080.
    Ghost(COMPLETE_COMMIT, COMPLETE_COMMIT, _ANY_PROTOCOL, frozenset({0}), "same_payload"),
    Ghost(COMPLETE_ABORT, COMPLETE_ABORT, _ANY_PROTOCOL, frozenset({0}), "same_payload"),
)
# These pairs are what is left of a failed append where the entry it went on from is not in sight. Where it is, the replay finds it.
# So many of an id's entries are searched for it. A failed append waits for its timeout or for a change of the in-sync replicas, so a
# transaction has room for a few (three were seen); and what a row carries along must have a bound.
GHOSTS_IN_SIGHT = 16
EXPIRES_AFTER_MS = 604_800_000  # default of transactional.id.expiration.ms
# A tombstone whose append failed leaves the id in memory: its next entry has the old producer id and continues the old state.

LARGEST_EPOCH_STEP: Mapping[str, int] = MappingProxyType({TV0: 1, TV2: 2, UNKNOWN: 2})  # 2: a fence by 4.0.0 (KAFKA-19367)
COMMIT_EPOCH_STEPS: Mapping[str, frozenset[int]] = MappingProxyType({TV0: frozenset({0}), TV2: frozenset({1}), UNKNOWN: frozenset({0, 1})})
FENCE_JUMPS_BELOW = (2, 6)  # before this release every failed fence attempt raised the epoch once more (KAFKA-9666)
OWN_VERSION_FROM = (4, 0)  # from this release on a coordinator may end a transaction by another version than its client's (KIP-890)


def java_hash(text: str) -> int:
    """`String.hashCode` of a text: 32-bit signed, over UTF-16 code units."""
    # Java counts code units: a character beyond the BMP is two of them, and a lone surrogate is one.
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(text: str, partitions: int) -> int:
    """Partition of a transactional id (or group) among so many: `Utils.abs(hashCode) % n`, where abs of the smallest int is 0."""
    value = java_hash(text)
    # Not the sign bit masked off, as in many reimplementations: that sends every id with a negative hash elsewhere.
    return 0 if value == -(1 << 31) else abs(value) % partitions


def fence_may_jump(kafka_version: str | None) -> bool:
    """Whether a PrepareAbort may raise the epoch by more than one under the old protocol (KAFKA-9666; unknown counts as maybe)."""
    release = _release(kafka_version)
    return release is None or release < FENCE_JUMPS_BELOW


def ends_by_own_version(kafka_version: str | None, transaction_version: int | None) -> bool:
    """Whether a coordinator may end by transaction.version 2 what a client of an older protocol began: a fence or a timeout is written by
    the version of the cluster (`TransactionCoordinator.endTransaction`), so 4.0.0 raises the epoch by two there, too (KAFKA-19367)."""
    release = _release(kafka_version)
    return release is not None and release >= OWN_VERSION_FROM and transaction_version not in (0, 1)


def _release(kafka_version: str | None) -> tuple[int, int] | None:
    parts = (kafka_version or "").split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return int(parts[0]), int(parts[1])
