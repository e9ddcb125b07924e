"""Kafka's own client, in a Java process that is told line by line what to do."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from tests.broker.brokers import PATIENCE_S, class_path

_HERE = Path(__file__).parent


class Failed(Exception):
    """The client threw something; the first word is the name of its class."""


class JavaClient:
    """Kafka's own client: every method is a line to `Lab.java`, and its answer."""

    def __init__(self, asked: IO[str], answered: IO[str]) -> None:
        self._asked, self._answered = asked, answered

    def ask(self, *words: object) -> object:
        """What `Lab.java` answers to a line of words.

        Raises:
            Failed: the client threw.
        """
        self._asked.write(" ".join(map(str, words)) + "\n")
        self._asked.flush()
        line = self._answered.readline()
        answer = json.loads(line) if line else {"error": "Ended", "message": "the Java client ended: see client.err"}
        if isinstance(answer, dict) and "error" in answer:
            raise Failed(f"{answer['error']}: {answer['message']}")
        return answer

    def init(self, transactional_id: str, timeout_ms: int = 120_000) -> None:
        """A new client with this id, whoever has it now: that one is fenced."""
        self.ask("init", transactional_id, timeout_ms)

    def begin(self, transactional_id: str, *writes: tuple[str, int, int]) -> None:
        """Begin a transaction and write records: topic, partition, how many."""
        self.ask("begin", transactional_id)
        for topic, partition, records in writes:
            self.ask("send", transactional_id, topic, partition, records, "v")

    def commit(self, transactional_id: str, *writes: tuple[str, int, int]) -> None:
        """A whole transaction that is committed."""
        self.begin(transactional_id, *writes)
        self.ask("commit", transactional_id)

    def abort(self, transactional_id: str, *writes: tuple[str, int, int]) -> None:
        """A whole transaction that is aborted."""
        self.begin(transactional_id, *writes)
        self.ask("abort", transactional_id)

    def partitions(self) -> list[tuple[str, int]]:
        """Every partition of the broker, the internal ones too."""
        return [(str(topic), int(number)) for topic, number in cast(list[list[str]], self.ask("partitions"))]

    def offsets(self, topic: str, partition: int) -> dict[str, int]:
        """log_start, hw and lso, as ListOffsets answers."""
        return cast(dict[str, int], self.ask("offsets", topic, partition))

    def read(self, topic: str, partition: int, level: str) -> list[int]:
        """The offsets that a consumer of that isolation level gets."""
        return cast(list[int], self.ask("read", topic, partition, level))

    def open(self, topic: str, partition: int) -> list[list[int]]:
        """Producer id and first offset of each open transaction, as DescribeProducers answers."""
        return cast(list[list[int]], self.ask("open", topic, partition))

    def transactions(self) -> dict[str, dict[str, object]]:
        """Each transactional id, as DescribeTransactions answers."""
        return cast(dict[str, dict[str, object]], self.ask("transactions"))


def compile_clients(jars: Path, into: Path) -> None:
    """Compile `Lab.java` and `Load.java`; needs a JDK."""
    command = ["javac", "-Xlint:-removal", "-cp", class_path(jars), "-d", str(into), *map(str, sorted(_HERE.glob("*.java")))]
    subprocess.run(command, check=True, timeout=PATIENCE_S)


@contextmanager
def java_client(bootstrap: str, jars: Path, classes: Path, folder: Path) -> Iterator[JavaClient]:
    """The client, until the block is left; then it dies without a word to the broker, so that what is open stays open."""
    with _spoken_with(["Lab", bootstrap], [class_path(jars), str(classes)], folder / "client.err") as (asked, answered):
        yield JavaClient(asked, answered)


@contextmanager
def load(bootstrap: str, jars: Path, classes: Path, folder: Path) -> Iterator[Callable[[], dict[str, int]]]:
    """Clients that write until they are called off (`Load.java`); the call gives what they did, how often."""
    with _spoken_with(["Load", bootstrap, str(folder / "streams")], [class_path(jars), str(classes)], folder / "load.err") as (
        said,
        answered,
    ):

        def call_off() -> dict[str, int]:
            said.write("stop\n")
            said.flush()
            return cast(dict[str, int], json.loads(answered.readline()))

        yield call_off


@contextmanager
def _spoken_with(program: list[str], libraries: list[str], errors: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    """A Java program that is told line by line what to do: where to speak and where to listen. It ends when the block is left."""
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command = ["nice", "-n", "12", "java", *options, "-cp", os.pathsep.join(libraries), *program]
    with errors.open("ab") as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
    assert process.stdin and process.stdout
    try:
        yield process.stdin, process.stdout
    finally:
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()
        process.wait()
        process.stdout.close()


def librdkafka(packages: Path, *words: str) -> str:
    """What the second client prints (`librdkafka.py`).

    Args:
        packages: the folder where its package is installed.
        words: what it is told.
    """
    path = os.pathsep.join([str(packages), str(_HERE.parents[1])])
    command = ["nice", "-n", "12", sys.executable, "-m", "tests.broker.librdkafka", *words]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
