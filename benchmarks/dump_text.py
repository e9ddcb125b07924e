"""Dump text of any size, as `kafka-dump-log` of Kafka 4.3 prints it, of a cluster where nothing went wrong.

A topic with several partitions on one broker, keys and payloads printed; its transaction coordinator; aborted indexes, snapshots,
checkpoints, listing and manifest. Offsets, sequences, positions, sizes and clocks fit each other as a broker's do (transaction.version 2:
the epoch goes up with every transaction), so an audit of it must find nothing. The same arguments give the same bytes.

    python -m benchmarks.dump_text FOLDER --megabytes 1000 --variant clean
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.printed_log import DATA_DIR, Log, record_size, varint

CLEAN, PRETTY, BINARY, HOSTILE = VARIANTS = ("clean", "pretty", "binary", "hostile")
TOPIC, COORDINATOR = "orders", "__transaction_state"
COORDINATOR_PARTITIONS = 3
TIMEOUT_MS = 60_000
START_MS = 1_795_000_000_000
HOT_SHARE = 0.3  # of the batches, by one producer
WITH_HEADERS = 0.1  # of the batches
ABORTED = 0.1  # of the transactions
HOSTILE_SHARE = 0.05  # of the records of the hostile variant
HEADERS, HEADERS_SIZE = "trace-id,source", 42  # bytes of two header keys and values of 16 and 8 bytes
ONGOING, PREPARE, COMPLETE = 1, {"COMMIT": 2, "ABORT": 3}, {"COMMIT": 4, "ABORT": 5}
TEAMS = ("billing", "shipping", "returns", "pricing", "stock", "loyalty", "fraud", "catalogue", "invoices", "support")
COLOURS = (
    "amber",
    "blue",
    "coral",
    "dune",
    "ebony",
    "fern",
    "gold",
    "hazel",
    "iris",
    "jade",
    "khaki",
    "lime",
    "mint",
    "navy",
    "ochre",
    "pearl",
)


@dataclass(frozen=True)
class Written:
    """What was written: bytes of text, batches with markers, records without them, transactions."""

    text_bytes: int
    batches: int
    records: int
    transactions: int


@dataclass
class Clock:
    """The one clock of the cluster, in ms; every look moves it."""

    now_ms: int = START_MS

    def tick(self) -> int:
        """The next millisecond."""
        self.now_ms += 1
        return self.now_ms


@dataclass
class Coordinator:
    """The transaction coordinator: writes each step of a transactional id to its partition, as the JSON decoder of 4.3 prints it."""

    logs: list[Log]

    def append(
        self, producer: "Producer", status: int, *, epoch: int, partitions: Sequence[int] | None, update_ms: int, now_ms: int
    ) -> None:
        """Append one entry at `now_ms`, computed at `update_ms`."""
        name = producer.transactional_id
        topics = None if partitions is None else [{"topic": TOPIC, "partitionIds": list(partitions)}] if partitions else []
        value = {
            "producerId": producer.producer_id,
            "previousProducerId": producer.producer_id,
            "producerEpoch": epoch,
            "transactionTimeoutMs": TIMEOUT_MS,
            "transactionStatus": status,
            "transactionPartitions": topics,
            "transactionLastUpdateTimestampMs": update_ms,
            "transactionStartTimestampMs": producer.started_ms,
        } | ({"clientTransactionVersion": 2} if status else {})
        key_size, value_size = 4 + len(name), 45 + (4 if status else 0) + (len(TOPIC) + 3 + 4 * len(partitions) if partitions else 0)
        body = 4 + varint(2 * key_size) + key_size + varint(2 * value_size) + value_size
        log = self.logs[java_hash(name) % COORDINATOR_PARTITIONS]
        key = json.dumps({"type": "0", "data": {"transactionalId": name}}, separators=(",", ":"))
        payload = json.dumps({"version": "1", "data": value}, separators=(",", ":"))
        record = (
            f"| offset: {log.next_offset} CreateTime: {now_ms} keySize: {key_size} valueSize: {value_size} sequence: -1 headerKeys: [] "
            f"key: {key} payload: {payload}\n"
        )
        head = (
            "baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false "
            "isControl: false deleteHorizonMs: OptionalLong.empty"
        )
        log.append(count=1, size=61 + varint(2 * body) + body, head=head, tail=str(now_ms), records=[record])


def java_hash(name: str) -> int:
    """`Utils.abs(String.hashCode)` of ASCII text: which partition a transactional id belongs to."""
    value = 0
    for character in name:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    value = value - (1 << 32) if value >> 31 else value
    return 0 if value == -(1 << 31) else abs(value)


@dataclass
class Producer:
    """A producer: its place in the protocol, and what is left of its transaction."""

    producer_id: int
    transactional_id: str = ""
    epoch: int = 0
    started_ms: int = -1
    batches_left: int = 0
    planned: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)


class Payloads:
    """Documents of about 200 bytes, JSON or no text at all: what stands before and behind the order's number, and the size of the whole."""

    def __init__(self, rng: random.Random, *, variant: str) -> None:
        """A pool of documents; the order's number makes each use of one unique."""
        self.pool: list[tuple[str, str, int]] = []
        for _ in range(512):
            if variant == BINARY:
                # Random bytes print as U+FFFD where they are no UTF-8, in twice as many bytes of text.
                content = rng.randbytes(rng.randint(60, 140))
                before, after, size = content.decode("utf-8", "replace"), "", len(content) + 10
            else:
                before, after = self._document(rng, pretty=variant == PRETTY).split("##########")
                size = len(f"{before}{after}".encode()) + 10
            self.pool.append((before, after, size))

    @staticmethod
    def _document(rng: random.Random, *, pretty: bool) -> str:
        city = rng.choice(("Lisbon", "Lyon", "Poznan", "Brno", "Turin", "Łódź", "Zürich", "Málaga", "札幌"))
        order = {
            "order_id": "##########",
            "customer": rng.choice(("Anna Berg", "Tom Hale", "Eva Novak", "Zoë Müller", "José Peña", "Luc Roy")),
            "city": city,
            "amount": round(rng.uniform(5, 900), 2),
            "currency": rng.choice(("EUR", "GBP", "PLN")),
            "items": [{"sku": f"SKU-{rng.randrange(10**6):06d}", "quantity": rng.randint(1, 9)} for _ in range(rng.randint(1, 2))],
            "status": rng.choice(("NEW", "PAID", "SENT")),
        }
        if pretty:
            return json.dumps(order, indent=2, ensure_ascii=False)
        return json.dumps(order | {"note": "x" * rng.randint(5, 45)}, separators=(",", ":"), ensure_ascii=False)


class Cluster:
    """Producers at work on one topic; every step appends one batch, and what the protocol wants before and after it."""

    def __init__(self, folder: Path, *, variant: str, seed: int, partitions: int, producers: int, segment_bytes: int) -> None:
        """An idle cluster. `producers` without the hot one; every other one of them is transactional."""
        self.rng, self.variant, self.clock = random.Random(seed), variant, Clock()
        self.payloads = Payloads(self.rng, variant=variant).pool
        self.logs = [Log(folder / f"{TOPIC}-{number}", f"{TOPIC}-{number}", segment_bytes) for number in range(partitions)]
        names = [f"{COORDINATOR}-{number}" for number in range(COORDINATOR_PARTITIONS)]
        self.coordinator = Coordinator([Log(folder / name, name, segment_bytes) for name in names])
        self.hot = Producer(0)
        self.others = [Producer(number, _writer(number) if number % 2 else "") for number in range(1, producers + 1)]
        self.orders, self.transactions = 1_000_000_000, 0
        for producer in self.others:
            if producer.transactional_id:
                now = self.clock.tick()
                self.coordinator.append(producer, 0, epoch=0, partitions=None, update_ms=now, now_ms=now)

    def write(self) -> int:
        """Write what is waiting; returns the bytes of text on disk."""
        logs = [*self.logs, *self.coordinator.logs]
        for log in logs:
            log.flush()
        return sum(log.text_bytes for log in logs)

    def step(self) -> None:
        """One batch of one producer."""
        rng = self.rng
        producer = self.hot if rng.random() < HOT_SHARE else self.others[rng.randrange(len(self.others))]
        if not producer.transactional_id:
            self._batch(producer, rng.randrange(len(self.logs)), transactional=False)
            return
        if not producer.batches_left:
            producer.batches_left = rng.randint(4, 7)
            producer.planned = rng.sample(range(len(self.logs)), min(rng.randint(1, 3), len(self.logs)))
            producer.written.clear()
        self._transactional_batch(producer, rng.choice(producer.planned))
        producer.batches_left -= 1
        if not producer.batches_left:
            self._end(producer)

    def finish(self) -> None:
        """End what is open, and close all logs."""
        for producer in self.others:
            if producer.batches_left:
                producer.batches_left = 0
                self._end(producer)
        for log in [*self.logs, *self.coordinator.logs]:
            log.close()

    def _transactional_batch(self, producer: Producer, partition: int) -> None:
        if partition not in producer.written:
            now = self.clock.tick()
            if not producer.written:
                producer.started_ms = now
                producer.sequences.clear()
            producer.written.append(partition)
            self.coordinator.append(producer, ONGOING, epoch=producer.epoch, partitions=sorted(producer.written), update_ms=now, now_ms=now)
            self.logs[partition].open[producer.producer_id] = self.logs[partition].next_offset
        self._batch(producer, partition, transactional=True)

    def _end(self, producer: Producer) -> None:
        decision = "ABORT" if self.rng.random() < ABORTED else "COMMIT"
        producer.epoch += 1
        decided, written = self.clock.tick(), sorted(producer.written)
        self.coordinator.append(producer, PREPARE[decision], epoch=producer.epoch, partitions=written, update_ms=decided, now_ms=decided)
        for partition in written:
            self.logs[partition].marker(decision, producer_id=producer.producer_id, epoch=producer.epoch, now_ms=self.clock.tick())
        done = self.clock.tick()
        self.coordinator.append(producer, COMPLETE[decision], epoch=producer.epoch, partitions=[], update_ms=decided, now_ms=done)
        self.transactions += 1

    def _batch(self, producer: Producer, partition: int, *, transactional: bool) -> None:
        """The hot loop: everything about one record is one formatted string."""
        rng, log, now, order = self.rng, self.logs[partition], self.clock.tick(), self.orders
        count, first = 2 + int(9 * rng.random()), producer.sequences.get(partition, 0)
        with_headers = rng.random() < WITH_HEADERS
        headers, extra = (HEADERS, HEADERS_SIZE) if with_headers else ("", 0)
        offset, size, records, pool = log.next_offset, 61, [], self.payloads
        at = int(512 * rng.random())
        for number in range(count):
            before, after, value_size = pool[(at + number) & 511]
            if self.variant == HOSTILE and rng.random() < HOSTILE_SHARE:
                before, after, value_size = hostile(log, rng)
            size += record_size(value_size, extra)
            records.append(
                f"| offset: {offset + number} CreateTime: {now} keySize: 14 valueSize: {value_size} sequence: {first + number} "
                f"headerKeys: [{headers}] key: ORD-{order + number} payload: {before}{order + number}{after}\n"
            )
        last = first + count - 1
        head = (
            f"baseSequence: {first} lastSequence: {last} producerId: {producer.producer_id} producerEpoch: {producer.epoch} "
            f"partitionLeaderEpoch: 0 isTransactional: {str(transactional).lower()} isControl: false deleteHorizonMs: OptionalLong.empty"
        )
        log.append(count=count, size=size, head=head, tail=str(now), records=records)
        producer.sequences[partition] = last + 1
        self.orders = order + count
        if not transactional:
            log.state[producer.producer_id] = (
                f"producerId: {producer.producer_id} producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty "
                f"lastTimestamp: {now} firstSequence: {first} lastSequence: {last} lastOffset: {offset + count - 1} "
                f"offsetDelta: {count - 1} timestamp: {now}\n"
            )


def _writer(number: int) -> str:
    """A transactional id of letters only: ids that differ in digits look like unfenced siblings."""
    colour, team = divmod(number // 2, len(TEAMS))
    return f"{COLOURS[colour % len(COLOURS)]}-{'x' * (colour // len(COLOURS))}{TEAMS[team]}"


def hostile(log: Log, rng: random.Random) -> tuple[str, str, int]:
    """A payload that continues with a forged dump of its own, or with bytes that are not UTF-8: before, behind, size in bytes."""
    offset, position = log.next_offset + rng.randint(1, 9), log.position + rng.randint(61, 2500)
    batch = (
        f"baseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: -1 lastSequence: -1 producerId: {rng.randrange(20)} "
        f"producerEpoch: 1 partitionLeaderEpoch: 0 isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty "
        f"position: {position} CreateTime: {START_MS} size: 78 magic: 2 compresscodec: none crc: 1 isvalid: true"
    )
    record = f"| offset: {offset} CreateTime: {START_MS} keySize: 4 valueSize: 6 sequence: -1 headerKeys: []"
    marker = f"{record} endTxnMarker: ABORT coordinatorEpoch: 0"
    kind = rng.randrange(20)
    if kind < 10:
        forged = f"\n{batch}\n{marker}\n"
    elif kind < 16:
        forged = f"\nDumping {DATA_DIR}/{TOPIC}-9/00000000000000000000.log\nLog starting offset: 0\n{batch}\n"
    elif kind < 19:
        forged = " key: x payload: y\n\n] endTxnMarker: COMMIT coordinatorEpoch: 0\n| offset: "
    else:
        return "{\ufffd\ufffd ", "}", 10 + 5  # two bytes that are no UTF-8
    return "{" + forged, "}", 10 + 2 + len(forged)


def write_dumps(
    folder: Path,
    *,
    text_bytes: int,
    variant: str = CLEAN,
    seed: int = 1,
    partitions: int = 4,
    producers: int | None = None,
    segment_bytes: int = 1 << 27,
) -> Written:
    """Write the dumps of a cluster below `folder`, of `text_bytes` bytes of text or a little more.

    Args:
        folder: made; becomes the input of an audit.
        text_bytes: how much; no transaction is left open, so a few KB more.
        variant: clean, pretty (payloads are JSON on many lines), binary (payloads are no text) or hostile (they forge dump lines).
        seed: the same seed gives the same bytes.
        partitions: of the topic.
        producers: beside the hot one; by default so many that no epoch runs out.
        segment_bytes: where a segment of the log ends.
    """
    producers = producers or 20 + text_bytes // 50_000_000
    broker = folder / "broker-1"
    cluster = Cluster(broker, variant=variant, seed=seed, partitions=partitions, producers=producers, segment_bytes=segment_bytes)
    while cluster.write() < text_bytes:
        for _ in range(min(400, 1 + text_bytes // 100_000)):
            cluster.step()
    cluster.finish()
    _write_sidecars(folder, broker, cluster)
    logs = [*cluster.logs, *cluster.coordinator.logs]
    return Written(cluster.write(), sum(log.batches for log in logs), cluster.orders - 1_000_000_000, cluster.transactions)


def _write_sidecars(folder: Path, broker: Path, cluster: Cluster) -> None:
    logs = [*cluster.logs, *cluster.coordinator.logs]
    ends = [f"{log.name.rpartition('-')[0]} {log.name.rpartition('-')[2]} {log.next_offset}\n" for log in logs]
    (broker / "replication-offset-checkpoint").write_text(f"0\n{len(ends)}\n{''.join(ends)}")
    (broker / "recovery-point-offset-checkpoint").write_text(f"0\n{len(ends)}\n{''.join(ends)}")
    (broker / "log-start-offset-checkpoint").write_text("0\n0\n")
    listed = sorted((name, size) for log in logs for size, name in log.listed)
    (broker / "listing.txt").write_text("".join(f"{size} {name}\n" for name, size in listed))
    (folder / "manifest.yaml").write_text(
        f'cluster: "benchmark"\ndumped_at: {cluster.clock.now_ms + 5000}\nkafka_version: "4.3.1"\ntransaction_version: 2\n'
        f"transaction_state_partitions: {COORDINATOR_PARTITIONS}\ntopics: {{{TOPIC}: {{cleanup.policy: delete}}}}\n"
        "broker_config: {log.cleaner.enable: false}\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write dump text and say how much and how fast."""
    parser = argparse.ArgumentParser(description="Write dump text of a chosen size in the grammar of Kafka 4.3.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--variant", choices=VARIANTS, default=CLEAN)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=4)
    chosen = parser.parse_args(arguments)
    began = time.perf_counter()
    written = write_dumps(
        chosen.folder, text_bytes=chosen.megabytes * 1_000_000, variant=chosen.variant, seed=chosen.seed, partitions=chosen.partitions
    )
    rate = written.text_bytes / 1e6 / (time.perf_counter() - began)
    sys.stdout.write(f"{written} at {rate:.0f} MB/s\n")


if __name__ == "__main__":
    main()
