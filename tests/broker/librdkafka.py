"""The second client library, librdkafka: a process of its own, because a call into it that waits cannot be ended from Python.

`python -m tests.broker.librdkafka live BOOTSTRAP TOPIC GROUP` or `... read BOOTSTRAP LEVEL TOPIC:PARTITION ...`.
"""

import json
import sys
from collections.abc import Sequence

from confluent_kafka import (  # type: ignore[import-not-found]
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

_WAIT_S = 100


def live(bootstrap: str, topic: str, group: str) -> None:
    """What applications in other languages do: commits with the offsets they consumed, an abort, and a take-over.

    Args:
        bootstrap: where the broker is.
        topic: with two partitions.
        group: whose offsets are committed; empty for none.
    """

    def producer() -> Producer:
        started = Producer({"bootstrap.servers": bootstrap, "transactional.id": "rdkafka-1", "transaction.timeout.ms": 120_000})
        started.init_transactions(_WAIT_S)
        return started

    first = producer()
    for number, ends in enumerate(("commit", "abort", "commit")):
        first.begin_transaction()
        for record in range(3):
            first.produce(topic, partition=record % 2, key=f"k{record}", value=f"{number}-{record}")
        first.flush(_WAIT_S)
        if group:
            consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
            consumed = [TopicPartition("orders", 0, 10 * number + 1)]
            first.send_offsets_to_transaction(consumed, consumer.consumer_group_metadata(), _WAIT_S)
            consumer.close()
        getattr(first, f"{ends}_transaction")(_WAIT_S)
    first.begin_transaction()
    first.produce(topic, partition=0, value="of the fenced one")
    first.flush(_WAIT_S)
    second = producer()
    try:
        first.commit_transaction(_WAIT_S)
    except KafkaException:
        pass
    else:
        raise AssertionError("a fenced producer has committed")
    second.begin_transaction()
    second.produce(topic, partition=1, value="of the second one")
    second.commit_transaction(_WAIT_S)


def read(bootstrap: str, level: str, places: Sequence[str]) -> dict[str, list[int]]:
    """The offsets that a consumer gets from each TOPIC:PARTITION, from the first to the last that its isolation level allows."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "isolation.level": level}
    consumer = Consumer({**settings, "enable.partition.eof": True, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(one.split(":")[0], int(one.split(":")[1]), OFFSET_BEGINNING) for one in places])
    found: dict[str, list[int]] = {one: [] for one in places}
    left = set(places)
    while left:
        message = consumer.poll(_WAIT_S)
        if message is None:
            raise TimeoutError(f"nothing more of {sorted(left)}")
        place = f"{message.topic()}:{message.partition()}"
        if message.error() is None:
            found[place].append(message.offset())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            left.discard(place)
        else:
            raise KafkaException(message.error())
    consumer.close()
    return found


if __name__ == "__main__":
    task, server, *rest = sys.argv[1:]
    if task == "live":
        live(server, *rest)
    else:
        json.dump(read(server, rest[0], rest[1:]), sys.stdout)
