"""Complete commands for remedies, between back quotes: everything is filled in but $BOOTSTRAP, and what the text beside them says."""

from collections.abc import Iterable
from dataclasses import dataclass

from eo_audit.words import shell

# The address stays a variable: nobody but the reader knows from where brokers can be reached.
TOOL = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP"
# What stands once beside all of them. `--command-config` is an option of the whole tool, so it may stand behind the address.
ADDRESS = (
    "First say where brokers can be reached: `BOOTSTRAP=host:9092`, or where TLS or SASL is asked for "
    "`BOOTSTRAP='host:9093 --command-config client.properties'`"
)


def address_for(remedies: Iterable[object]) -> str | None:
    """What to set before any of these remedies can be typed; None where none asks for it."""
    return ADDRESS if any("$BOOTSTRAP" in str(remedy) for remedy in remedies) else None


DESCRIBES_PRODUCERS = (2, 8)  # brokers that answer DescribeProducers (KIP-664)
FIRST_TOOL = (3, 0)  # kafka-transactions.sh; brokers that answer DescribeTransactions, and find a transaction by its start offset
# KIP-896: clients from 4.0 on know no WriteTxnMarkers of version 0, the only one of old brokers; asked of 2.3.1 they fail.
_OF_OLD_BROKERS = "run the tool from a distribution of 3.0 to 3.9: it comes with 3.0, and that of 4.0 no longer speaks to old brokers"
TERMINATES = (4, 1)  # the tool's forceTerminateTransaction (KIP-939), which is Admin.fenceProducers

Version = tuple[int, ...] | None  # of the brokers (major, minor); None where it is not known

# Before 4.1 no tool that comes with Kafka calls `Admin.fenceProducers`; a Java program of one file does. Its arguments are those of Kafka's
# tools as $BOOTSTRAP has them, and the id last: `HOST:PORT [--command-config FILE] ID`.
_FENCE = (
    "import java.io.*; import java.util.*; import org.apache.kafka.clients.admin.*; "
    "class Fence { public static void main(String[] a) throws Exception { Properties config = new Properties(); "
    'if (a.length > 2) config.load(new FileInputStream(a[2])); config.put("bootstrap.servers", a[0]); '
    "try (Admin admin = Admin.create(config)) { admin.fenceProducers(List.of(a[a.length - 1])).all().get(); } } }"
)
# kafka-topics.sh is on the PATH wherever Kafka's tools are, and its libraries lie beside it.
_LIBS = '"$(dirname "$(command -v kafka-topics.sh)")/../libs/*"'


@dataclass(frozen=True)
class Hanging:
    """An open transaction of one partition as brokers before 3.0 want it named; `coordinator_epoch` is None where no table tells it."""

    start_offset: int
    producer_id: int
    producer_epoch: int | None
    coordinator_epoch: int | None


def abort(topic: str, partition: int, start_offset: int) -> str:
    """Abort one hanging transaction on one partition (KIP-664). Only for a partition that the coordinator does not list."""
    return f"`{TOOL} abort --topic {shell(topic)} --partition {partition} --start-offset {start_offset}`"


def abort_by_producer(topic: str, partition: int, hanging: Hanging) -> str:
    """The same for brokers before 3.0, which do not look the transaction up: the marker is written as it is named."""
    epoch = "$PRODUCER_EPOCH" if hanging.producer_epoch is None else hanging.producer_epoch
    coordinator = "$COORDINATOR_EPOCH" if hanging.coordinator_epoch is None else hanging.coordinator_epoch
    return (
        f"`{TOOL} abort --topic {shell(topic)} --partition {partition} --producer-id {hanging.producer_id} --producer-epoch {epoch} "
        f"--coordinator-epoch {coordinator}`"
    )


def abort_for(topic: str, partition: int, hanging: Hanging, version: Version) -> str:
    """The command that fits the brokers; both, each with its range, where their version is not known."""
    new, old = abort(topic, partition, hanging.start_offset), abort_by_producer(topic, partition, hanging)
    if version is None:
        return f"{new} (brokers from 3.0), {old} (older brokers; {_OF_OLD_BROKERS})"
    return new if version >= FIRST_TOOL else f"{old} ({_OF_OLD_BROKERS})"


def names_producer(version: Version) -> bool:
    """Whether `abort_for` prints a command that names producer, epoch and coordinator epoch."""
    return version is None or version < FIRST_TOOL


def describe(transactional_id: str) -> str:
    """What the coordinator knows of a transactional id now. Brokers from 3.0 answer."""
    return f"`{TOOL} describe --transactional-id {shell(transactional_id)}`"


def describe_producers(topic: str, partition: int, version: Version = (3, 0)) -> str:
    """How to see what is open in a partition now; brokers before 2.8 do not tell, so the end of the log must be dumped again."""
    asked = f"`{TOOL} describe-producers --topic {shell(topic)} --partition {partition}`"
    again = f"dump the end of {topic}-{partition} on its leader again and look for the producer's marker"
    if version is None:
        return f"{asked} (brokers from 2.8; for older ones {again})"
    return asked if version >= DESCRIBES_PRODUCERS else f"{again} (brokers before 2.8 do not answer describe-producers)"


def fence(transactional_id: str, version: Version) -> str:
    """Fence the producers of an id and abort what it has open, on every partition: the coordinator does it (`Admin.fenceProducers`)."""
    terminate = f"`{TOOL} forceTerminateTransaction --transactionalId {shell(transactional_id)}`"
    if version is not None and version >= TERMINATES:
        return terminate
    program = f"`echo '{_FENCE}' > Fence.java && java -cp {_LIBS} Fence.java $BOOTSTRAP {shell(transactional_id)}`"
    needs = "with Java 11 and a Kafka distribution of 3.2 or later"
    return f"{program} ({needs})" if version is not None else f"{terminate} (from Kafka 4.1 on), {program} (before, {needs})"


def describe_topic(topic: str) -> str:
    """Leader, replicas and in-sync replicas of a topic now."""
    return f"`kafka-topics.sh --bootstrap-server $BOOTSTRAP --describe --topic {shell(topic)}`"


def describe_features() -> str:
    """The levels of a cluster's features now, transaction.version among them (KIP-584)."""
    return "`kafka-features.sh --bootstrap-server $BOOTSTRAP describe`"


def describe_group(group: str) -> str:
    """What offsets a consumer group has now, and how far behind it is."""
    return f"`kafka-consumer-groups.sh --bootstrap-server $BOOTSTRAP --describe --group {shell(group)}`"


def reset_offset(group: str, topic: str, partition: int) -> str:
    """Set the offset of a group, which must have no running members, to $OFFSET."""
    of_partition = shell(f"{topic}:{partition}")
    return (
        f"`kafka-consumer-groups.sh --bootstrap-server $BOOTSTRAP --reset-offsets --group {shell(group)} --topic {of_partition} "
        "--to-offset $OFFSET --execute`"
    )
