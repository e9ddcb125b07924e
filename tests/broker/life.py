"""What happens on every broker of the lab, and what the broker says about it afterwards."""

import json
import time
from dataclasses import dataclass

from tests.broker.brokers import ADDRESS, Broker, until
from tests.broker.clients import Failed, JavaClient, librdkafka
from tests.broker.fetched import PACKAGES
from tests.broker.wire import Writer

Place = tuple[str, int]
HANGING = (("late", 0), ("stray", 0))  # where `live` leaves transactions that nobody will end
LOST_INDEX = (("orders", 0), ("orders", 1))  # aborted records lie there
LEVELS = ("read_committed", "read_uncommitted")
_SHORT = ("segment.ms=400", "file.delete.delay.ms=100")
_TOPICS = {
    "orders": (3, ()),
    "late": (1, ()),
    "stray": (1, ()),
    "pending": (1, ()),
    "pinned": (1, ()),
    "payments": (2, ()),
    "cut": (1, _SHORT),
    "old": (1, (*_SHORT, "retention.ms=1000")),
    "table": (
        1,
        (*_SHORT, "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.01", "delete.retention.ms=100", "min.compaction.lag.ms=0"),
    ),
}


@dataclass(frozen=True)
class Answer:
    """What a broker answers about one partition.

    Args:
        log_start, hw, lso: ListOffsets, in both isolation levels.
        read: isolation level -> the offsets that a consumer gets.
        open: producer id and first offset of each open transaction (DescribeProducers); None where the broker does not answer.
    """

    log_start: int
    hw: int
    lso: int
    read: dict[str, list[int]]
    open: list[list[int]] | None


@dataclass(frozen=True)
class Answers:
    """What a broker answers: of each partition, and of each transactional id (None where it does not answer)."""

    partitions: dict[Place, Answer]
    transactions: dict[str, dict[str, object]] | None


def live(broker: Broker, client: JavaClient) -> None:
    """Commits, aborts, fencing, a timeout, retention, compaction, a second client library, and transactions that hang."""
    for topic, (partitions, settings) in _TOPICS.items():
        client.ask("topic", topic, partitions, 1, *settings)
    client.init("app")
    client.commit("app", ("orders", 0, 3), ("orders", 1, 2))
    client.abort("app", ("orders", 0, 2), ("orders", 2, 1))
    client.begin("app", ("orders", 0, 1))
    client.ask("group", "app", "billing", "orders", 0, 3)
    client.ask("commit", "app")
    client.begin("app")
    client.ask("group", "app", "billing", "orders", 0, 9)
    client.ask("abort", "app")
    client.ask("send", "-", "orders", 2, 3, "plain")
    _fence(client)
    _time_out(client)
    # librdkafka waits for ever for a coordinator of offsets that knows no TxnOffsetCommit of version 3 (KIP-447, brokers from 2.5).
    librdkafka(PACKAGES, "live", broker.bootstrap, "payments", "settlement" if broker.release.describes else "")
    _compact(client)
    _shorten(client)
    _hang(broker.port, client)
    client.init("patient", 3_600_000)
    client.begin("patient", ("pending", 0, 2))
    client.commit("app", ("pending", 0, 2), ("late", 0, 2))


def ask(broker: Broker, client: JavaClient) -> Answers:
    """Everything that is asked of a broker; both client libraries must read the same."""
    places = client.partitions()
    found = {}
    second = {level: _read_by_librdkafka(broker, level, {place: client.offsets(*place) for place in places}) for level in LEVELS}
    for topic, number in places:
        read = {level: client.read(topic, number, level) for level in LEVELS}
        opened = client.open(topic, number) if broker.release.describes else None
        found[topic, number] = Answer(**client.offsets(topic, number), read=read, open=opened)
        assert read == {level: second[level].get(f"{topic}:{number}", []) for level in LEVELS}, (
            f"the two clients differ on {topic}-{number}"
        )
    return Answers(found, client.transactions() if broker.release.describes else None)


def _read_by_librdkafka(broker: Broker, level: str, offsets: dict[Place, dict[str, int]]) -> dict[str, list[int]]:
    """What librdkafka reads where there is something: it does not tell the end of a partition whose LSO is its log start."""
    end = "lso" if level == "read_committed" else "hw"
    names = [f"{topic}:{number}" for (topic, number), one in offsets.items() if one[end] > one["log_start"]]
    found: dict[str, list[int]] = json.loads(librdkafka(PACKAGES, "read", broker.bootstrap, level, *names))
    return found


def _fence(client: JavaClient) -> None:
    """Two clients with one id: the second one fences the first, whose commit must fail."""
    client.init("twin")
    client.begin("twin", ("orders", 1, 2))
    client.ask("rename", "twin", "fenced")
    client.init("twin")
    try:
        client.ask("commit", "fenced")
    except Failed as why:
        assert "Fenced" in str(why) or "Epoch" in str(why), why
    else:
        raise AssertionError("a fenced producer has committed")
    client.commit("twin", ("orders", 1, 1))


def _time_out(client: JavaClient) -> None:
    """A client that goes away in the middle of a transaction: its coordinator aborts it."""
    client.init("slow", 1500)
    client.begin("slow", ("orders", 2, 2))
    until("the timed out transaction is aborted", lambda: _ended(client, "orders", 2))


def _ended(client: JavaClient, topic: str, partition: int) -> bool:
    """Whether nothing is open; the markers of a transaction come after its end."""
    offsets = client.offsets(topic, partition)
    return offsets["lso"] == offsets["hw"]


def _compact(client: JavaClient) -> None:
    """The same keys over and over, in segments that the cleaner may take."""
    for _ in range(3):
        client.commit("app", ("table", 0, 5))
        client.abort("app", ("table", 0, 2))
        time.sleep(0.5)  # older than segment.ms: the next batch begins a segment
    client.commit("app", ("table", 0, 1))
    until("the cleaner has removed records", lambda: len(client.read("table", 0, "read_uncommitted")) < 10)


def _shorten(client: JavaClient) -> None:
    """Retention, records deleted on request, and those of an open transaction among them."""
    for end in (client.commit, client.abort):
        end("app", ("old", 0, 3), ("cut", 0, 3))
        time.sleep(0.5)
    client.commit("app", ("cut", 0, 4))
    client.ask("delete", "cut", 0, 6)
    client.init("pinned-writer", 3_600_000)
    client.begin("pinned-writer", ("pinned", 0, 3))
    client.commit("app", ("pinned", 0, 2))
    client.ask("delete", "pinned", 0, 2)
    until("retention has removed records", lambda: client.offsets("old", 0)["log_start"] >= 8)


def _hang(port: int, client: JavaClient) -> None:
    """A write after the marker of its transaction, and one into a partition that its transaction never registered."""
    writer = Writer(ADDRESS, port)
    late = writer.init("late-writer", 120_000)
    writer.register(late, "late", 0)
    writer.write(late, "late", 0, 0, [b"in time", b"in time"])
    writer.end(late, commit=False)
    until("the marker is there", lambda: client.offsets("late", 0)["lso"] == 3)
    writer.write(late, "late", 0, 2, [b"late"] * 3)
    stray = writer.init("stray-writer", 120_000)
    writer.register(stray, "orders", 0)
    writer.write(stray, "orders", 0, 0, [b"registered"])
    writer.write(stray, "stray", 0, 0, [b"unregistered"] * 2)
    writer.end(stray, commit=True)
    until("the registered partition has its marker", lambda: _ended(client, "orders", 0))
    writer.close()
