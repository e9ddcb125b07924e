"""Brokers on loopback, alone or three together, started from the jars of a release and ended by their own process id."""

import os
import secrets
import socket
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

ADDRESS = "127.0.0.1"
PATIENCE_S = 900  # other work may hold the machine; nothing here waits this long unless something is broken
_SMALL = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
# Few and small internal topics, timers short enough to see: timeouts, retention and the cleaner in seconds.
_SETTINGS = {
    "num.network.threads": "2",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.enable": "false",
    "transaction.max.timeout.ms": "3600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.segment.delete.delay.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    # A minute by default: until then no file tells of a DeleteRecords, and a dump cannot.
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    # Without it a producer may write into a partition that its transaction did not register (KIP-890).
    "transaction.partition.verification.enable": "false",
}
# What three brokers need so that no acknowledged record is lost, whichever of them dies, and elections that take seconds.
_OF_THREE = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "controlled.shutdown.enable": "true",
    "transaction.partition.verification.enable": "true",
    "replica.lag.time.max.ms": "8000",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
}


@dataclass(frozen=True)
class Release:
    """A release of Kafka as this target runs it.

    Args:
        version: of the broker and its own tools.
        transaction_version: what the storage is formatted with; None where the release knows no such feature.
        zookeeper: whether the broker needs one.
        describes: whether it answers DescribeProducers and DescribeTransactions (KIP-664).
        tools: the release whose kafka-transactions.sh an operator of it has.
    """

    version: str
    transaction_version: int | None = None
    zookeeper: bool = False
    describes: bool = True
    tools: str = "4.3.1"

    @property
    def dump_tool(self) -> str:
        """The class behind kafka-dump-log.sh."""
        return "kafka.tools.DumpLogSegments" if self.version < "4.3" else "org.apache.kafka.tools.DumpLogSegments"


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as one:
        one.bind((ADDRESS, 0))
        port: int = one.getsockname()[1]
        return port


def until(what: str, holds: Callable[[], bool]) -> None:
    """Ask until it holds.

    Raises:
        TimeoutError: it does not.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.2)


def class_path(*folders: Path) -> str:
    """Every jar of the folders, slf4j-simple first: of two bindings the first one counts."""
    jars = [str(jar) for folder in folders for jar in sorted(folder.glob("*.jar"))]
    return os.pathsep.join(sorted(jars, key=lambda jar: "slf4j-simple" not in jar))


@contextmanager
def java(arguments: list[str], folder: Path, name: str, heap: str = "256m") -> Iterator[subprocess.Popen[bytes]]:
    """A Java process at low priority, that says what it says into FOLDER/NAME.out, and is ended however the block is left."""
    with (folder / f"{name}.out").open("ab") as said:
        command = ["nice", "-n", "12", "java", f"-Xmx{heap}", *_SMALL, *arguments]
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(120)
        process.kill()
        process.wait()


@dataclass
class Broker:
    """One broker and its files; `running` starts it, as often as one likes.

    Args:
        release: which Kafka.
        folder: for all its files.
        jars: folder with a folder of jars for each release.
        node: its id.
        voters: port of the controller of each node of its cluster, by node (ZooKeeper's port, where it has one).
        settings: beside those that all brokers have, and instead of them.
        cluster: the id of its cluster, one word for every shell.
    """

    release: Release
    folder: Path
    jars: Path
    node: int = 1
    voters: Mapping[int, int] = field(default_factory=lambda: {1: free_port()})
    settings: Mapping[str, str] = field(default_factory=dict)
    cluster: str = field(default_factory=lambda: urlsafe_b64encode(b"\0" + secrets.token_bytes(15)).decode().rstrip("="))
    port: int = field(default_factory=free_port)

    @property
    def bootstrap(self) -> str:
        """Where clients reach it."""
        return f"{ADDRESS}:{self.port}"

    @property
    def config(self) -> Path:
        """Its server.properties."""
        return self.folder / "server.properties"

    @property
    def logs(self) -> Path:
        """Its log directory."""
        return self.folder / "logs"

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The broker, from the moment it answers until the block is left: then it is shut down as an operator does (SIGTERM)."""
        self._prepare()
        libraries = class_path(*([self.jars / "zookeeper"] if self.release.zookeeper else []), self.jars / self.release.version)
        with self._zookeeper(), java(["-cp", libraries, "kafka.Kafka", str(self.config)], self.folder, "broker", "512m") as process:
            until("the broker answers", lambda: _answers(self.port, process))
            yield process

    def programs(self) -> Path:
        """A folder with kafka-dump-log.sh of this release, and the kafka-transactions.sh that fits it."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        own = class_path(self.jars / self.release.version)
        _program(folder / "kafka-dump-log.sh", own, self.release.dump_tool)
        _program(folder / "kafka-transactions.sh", class_path(self.jars / self.release.tools), "org.apache.kafka.tools.TransactionsCommand")
        return folder

    def _prepare(self) -> None:
        if self.config.exists():
            return
        self.logs.mkdir(parents=True)
        own = self._of_zookeeper() if self.release.zookeeper else self._of_kraft()
        settings = {
            **_SETTINGS,
            **own,
            "log.dirs": str(self.logs),
            "listeners": own.get("listeners", f"PLAINTEXT://{self.bootstrap}"),
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            **self.settings,
        }
        self.config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        if not self.release.zookeeper:
            self._format()

    def _of_kraft(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.node),
            "controller.quorum.voters": ",".join(f"{node}@{ADDRESS}:{port}" for node, port in self.voters.items()),
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{ADDRESS}:{self.voters[self.node]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }

    def _of_zookeeper(self) -> dict[str, str]:
        return {
            "broker.id": str(self.node),
            "zookeeper.connect": f"{ADDRESS}:{self.voters[self.node]}",
            "zookeeper.connection.timeout.ms": "120000",
        }

    def _format(self) -> None:
        """What kafka-storage.sh format does."""
        wanted = self.release.transaction_version
        feature = [] if wanted is None else ["--feature", f"transaction.version={wanted}"]
        arguments = ["-cp", class_path(self.jars / self.release.version), "kafka.tools.StorageTool"]
        with java([*arguments, "format", "-t", self.cluster, "-c", str(self.config), *feature], self.folder, "format") as process:
            assert process.wait(PATIENCE_S) == 0, (self.folder / "format.out").read_text()

    @contextmanager
    def _zookeeper(self) -> Iterator[None]:
        if not self.release.zookeeper:
            yield
            return
        config = self.folder / "zookeeper.properties"
        place = f"clientPort={self.voters[self.node]}\nclientPortAddress={ADDRESS}\n"
        config.write_text(f"dataDir={self.folder / 'zookeeper'}\n{place}admin.enableServer=false\n")
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        with java(["-cp", class_path(self.jars / "zookeeper"), main, str(config)], self.folder, "zookeeper") as process:
            until("ZooKeeper answers", lambda: _answers(self.voters[self.node], process))
            yield


def three(release: Release, folder: Path, jars: Path) -> list[Broker]:
    """Three brokers of one cluster, each a controller too; nothing of it is started yet."""
    voters = {node: free_port() for node in (1, 2, 3)}
    first = Broker(release, folder / "1", jars, voters=voters, settings=_OF_THREE)
    return [first, *(replace(first, folder=folder / str(node), node=node, port=free_port()) for node in (2, 3))]


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "it ended by itself: see its .out"
    try:
        socket.create_connection((ADDRESS, port), timeout=5).close()
    except OSError:
        return False
    return True


def _program(path: Path, libraries: str, main: str) -> None:
    path.write_text(f"#!/bin/sh\nexec java -Xmx256m {' '.join(_SMALL)} {_QUIET} $KAFKA_OPTS -cp '{libraries}' {main} \"$@\"\n")
    path.chmod(0o755)
