"""Whose transactional id is it? Families of ids by their shape, and what an abort by hand costs each of them.

An id is free text, so no shape proves an owner: all but `PLAIN` only "look like" theirs. The shapes are those of Flink's
`TransactionalIdFactory` and `TransactionalIdsGenerator`, Kafka Streams' `StreamsProducer`, Kafka Connect's
`Worker.taskTransactionalId` and `DistributedConfig.transactionalProducerId`, and Spring Kafka's `DefaultKafkaProducerFactory`.
"""

import re
from dataclasses import dataclass

from eo_audit.words import shown

_HASH = 32  # hexadecimal digits of the hash of an operator of Flink
# As `java.util.UUID` prints it: Kafka Streams names its process so.
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True)
class Owner:
    """Who seems to own an id.

    Attributes:
        family: flink, streams, connect, spring or plain.
        name: its name and the parts of the id, as it stands behind "looks like"; empty for plain.
        first: what to do first, and why.
        lost: what an abort by hand loses.
    """

    family: str
    name: str
    first: str
    lost: str

    @property
    def hint(self) -> str:
        """`, which looks like ...` for a message; empty for a plain id."""
        return f", which looks like {self.name}" if self.name else ""


@dataclass(frozen=True)
class _Shape:
    """A family: its pattern, and texts with the pattern's groups as fields."""

    family: str
    pattern: re.Pattern[str]
    name: str
    first: str
    lost: str


# Flink keeps the transactions of a checkpoint in its state and commits them after a restart (`KafkaCommitter`): an abort by hand takes
# records away that it counts as written.
_FLINK_FIRST = (
    "Restart the Flink job first, from its newest checkpoint or savepoint: it commits what a finished checkpoint promised and aborts the "
    "rest"
)
_FLINK_LOST = "records that a finished checkpoint promised are lost for good, because Flink does not write them again"
_STREAMS_FIRST = (
    "Restart the Kafka Streams application {app} first, with its state directory: it ends the transaction itself and processes the input "
    "again"
)
# KIP-129 (exactly_once) and KIP-447 (exactly_once_v2): input offsets are committed in the transaction itself.
_STREAMS_LOST = (
    "nothing, if the application runs again: output, state and input offsets are one transaction, so the input is processed again"
)
_SPRING_FIRST = "Restart the Spring application first: its initTransactions() ends the transaction on every partition"
_OWN_LOST = "its records are lost, unless the application sends them again"

# The first that fits wins, so the most particular come first: a Streams id of a UUID would also pass for many others.
_SHAPES = (
    _Shape(
        "streams",
        re.compile(rf"(?P<app>.+)-{_UUID}-(?P<thread>\d+)"),
        "Kafka Streams (exactly_once_v2): application.id {app}, thread {thread}",
        _STREAMS_FIRST,
        _STREAMS_LOST,
    ),
    _Shape(
        "streams",
        re.compile(r"(?P<app>.+)-(?P<task>\d+_\d+)"),
        "Kafka Streams (exactly_once): application.id {app}, task {task}",
        _STREAMS_FIRST,
        _STREAMS_LOST,
    ),
    _Shape(
        "flink",
        re.compile(rf"(?P<task>.+)-[0-9a-f]{{{_HASH}}}-(?P<number>\d+)"),
        "Flink's FlinkKafkaProducer: task {task}, number {number}",
        _FLINK_FIRST,
        _FLINK_LOST,
    ),
    _Shape(
        "connect",
        # KIP-618: group id, connector and task; only a `connect` somewhere in it tells it from any other id with two dashes.
        re.compile(r"(?P<group>(?=.*connect).+?)-(?P<connector>[^-].*)-(?P<task>\d+)", re.IGNORECASE),
        "a Kafka Connect source task (group.id, connector and task {task})",
        "Restart that connector first: the workers fence the old task, and the new one reads the same records from the source again",
        "what the source no longer has is lost; the rest is read again, because the source offsets are in the same transaction",
    ),
    _Shape(
        "connect",
        re.compile(r"connect-cluster-(?P<group>.+)"),
        "the leader of the Kafka Connect cluster {group}",
        "Restart the workers of that Connect cluster first: the new leader ends the transaction and writes its configuration again",
        "a change of a connector's configuration that was under way",
    ),
    _Shape(
        "flink",
        re.compile(r"(?P<prefix>.+)-(?P<subtask>\d+)-(?P<checkpoint>\d+)"),
        # Flink's `TransactionNamingStrategy`: INCREMENTING counts checkpoints, POOLING the ids of a subtask.
        "Flink's KafkaSink: prefix {prefix}, subtask {subtask}, checkpoint (or number in its pool) {checkpoint}",
        _FLINK_FIRST,
        _FLINK_LOST,
    ),
    _Shape(
        "spring",
        re.compile(r"(?P<group>[^.]+)\.(?P<topic>.+)\.(?P<partition>\d+)"),
        "Spring Kafka: prefix and group {group}, input {topic}-{partition}",
        _SPRING_FIRST + ", and its listener gets the input again",
        "nothing, if its listener runs again: the input offsets are in the same transaction",
    ),
    _Shape(
        "spring",
        re.compile(r"(?P<prefix>(?:.*[-_.])?tx[-_.]?)(?P<number>\d+)", re.IGNORECASE),
        "Spring Kafka: transactionIdPrefix {prefix}, number {number}",
        _SPRING_FIRST,
        _OWN_LOST,
    ),
)
PLAIN = Owner(
    "plain",
    "",
    "Restart the application that owns this id first: its initTransactions() ends the transaction on every partition",
    _OWN_LOST,
)


# Checkpoints of one job that may have transactions open at once: one is written, the last ones wait for their commit.
_NEAR = 10


def is_one_flink_job(one: str, other: str) -> bool:
    """Whether two ids look like those of one run of a Flink job, which needs an id for each subtask and for each transaction that waits for
    its commit. Numbers far apart are no such run: one began anew, or they are no checkpoints."""
    if owner(one).family != "flink" or owner(other).family != "flink":
        return False
    parts = [name.rsplit("-", 2) for name in (one, other)]
    # `FlinkKafkaProducer` numbers the pool of an operator, which its hash names.
    if any(len(middle) == _HASH for _, middle, _ in parts):
        return parts[0][:2] == parts[1][:2]
    return parts[0][0] == parts[1][0] and abs(int(parts[0][2]) - int(parts[1][2])) <= _NEAR


def owner(transactional_id: str) -> Owner:
    """The family that an id looks like; `PLAIN` where it looks like none."""
    for shape in _SHAPES:
        found = shape.pattern.fullmatch(transactional_id)
        if found:
            parts = {name: shown(part) for name, part in found.groupdict().items()}
            return Owner(shape.family, shape.name.format(**parts), shape.first.format(**parts), shape.lost)
    return PLAIN
