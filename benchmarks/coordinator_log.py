"""A coordinator's log of any size, as `kafka-dump-log --transaction-log-decoder` prints it, and how fast it is read.

Many transactional ids live side by side: Empty, Ongoing with one partition and with more, Prepare and Complete, now and then a tombstone.
Sizes, positions and offsets fit each other as a broker's do. The same arguments give the same bytes.

    python -m benchmarks.coordinator_log [--megabytes 200] [--ids 100000] [--exact-megabytes 10] [--runs 3]
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.printed_log import DATA_DIR, varint
from eo_audit.dump.parse import FileContext, State, parse_range
from eo_audit.dump.ranges import AHEAD_BYTES, BLOCK_BYTES

JSON, TEXT = FORMS = ("json", "text")
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
TOPICS = ("orders", "order-events", "payments.settled", "shipping_labels", "__consumer_offsets")
TOMBSTONES = 20  # records of a batch, where ids expire
PATH = f"{DATA_DIR}/__transaction_state-7/{0:020d}.log"

Partitions = list[tuple[str, list[int]]]


@dataclass
class Life:
    """A transactional id, and what its coordinator knows of it."""

    name: str
    producer_id: int
    status: int = 0
    epoch: int = 0
    started_ms: int = -1
    partitions: Partitions | None = None

    def step(self, rng: random.Random) -> None:
        """The next state of the protocol (transaction version 2: each transaction raises the epoch)."""
        if self.status in (0, 4, 5) or (self.status == 1 and rng.random() < 0.3):
            chosen = rng.sample(TOPICS, rng.choice((1, 1, 2, 3)))
            self.partitions = [(topic, sorted(rng.sample(range(50), rng.choice((1, 1, 2))))) for topic in chosen]
            self.status = 1
        elif self.status == 1:
            self.status, self.epoch = rng.choice((2, 2, 2, 3)), self.epoch + 1
        else:
            self.status, self.partitions = self.status + 2, []


class Printer:
    """Prints batches of one form behind each other."""

    def __init__(self, form: str) -> None:
        """`form`: the JSON of 4.1 and later, or the text of 2.5 to 4.0."""
        self.json, self.offset, self.position = form == JSON, 0, 0

    def head(self) -> str:
        """What stands before the first batch."""
        return f"Dumping {PATH}\nLog starting offset: 0\n"

    def batch(self, lives: Sequence[Life], now_ms: int, *, deleted: bool) -> str:
        """A batch with an entry, or a tombstone, of each id."""
        records, size = "", 61
        for index, life in enumerate(lives):
            sizes = 4 + len(life.name), -1 if deleted else self._size(life)
            body = 3 + varint(2 * index) + varint(2 * sizes[0]) + sizes[0] + (1 if deleted else varint(2 * sizes[1]) + sizes[1])
            size += varint(2 * body) + body
            records += f"| offset: {self.offset + index} CreateTime: {now_ms} keySize: {sizes[0]} valueSize: {sizes[1]} sequence: -1 "
            key = json.dumps({"type": "0", "data": {"transactionalId": life.name}}, separators=(",", ":"))
            key = key if self.json else f"transaction_metadata::transactionalId={life.name}"
            records += f"headerKeys: [] key: {key} payload: {'<DELETE>' if deleted else self._value(life, now_ms)}\n"
        last = self.offset + len(lives) - 1
        line = (
            f"baseOffset: {self.offset} lastOffset: {last} count: {len(lives)} baseSequence: -1 lastSequence: -1 producerId: -1 "
            "producerEpoch: -1 partitionLeaderEpoch: 4 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
            f"position: {self.position} CreateTime: {now_ms} size: {size} magic: 2 compresscodec: none "
            f"crc: {(self.offset * 2_654_435_761 + size) & 0xFFFFFFFF} isvalid: true\n"
        )
        self.offset, self.position = last + 1, self.position + size
        return line + records

    def _size(self, life: Life) -> int:
        """Bytes of `TransactionLogValue`: version 1 with its tagged fields where JSON is printed, version 0 where text is."""
        topics = life.partitions or []
        if not self.json:
            return 37 + sum(6 + len(topic) + 4 * len(numbers) for topic, numbers in topics)
        return 45 + (4 if life.status else 0) + sum(len(topic) + 3 + 4 * len(numbers) for topic, numbers in topics)

    def _value(self, life: Life, now_ms: int) -> str:
        if not self.json:
            listed = ",".join(f"{topic}-{number}" for topic, numbers in life.partitions or [] for number in numbers)
            state = f"state={STATES[life.status]},partitions=[{listed}],txnLastUpdateTimestamp={now_ms},txnTimeoutMs=60000"
            return f"producerId:{life.producer_id},producerEpoch:{life.epoch},{state}"
        topics = None if life.partitions is None else [{"topic": topic, "partitionIds": numbers} for topic, numbers in life.partitions]
        value = {
            "producerId": life.producer_id,
            "previousProducerId": life.producer_id,
            "producerEpoch": life.epoch,
            "transactionTimeoutMs": 60000,
            "transactionStatus": life.status,
            "transactionPartitions": topics,
            "transactionLastUpdateTimestampMs": now_ms,
            "transactionStartTimestampMs": life.started_ms,
        } | ({"clientTransactionVersion": 2} if life.status else {})
        return json.dumps({"version": "1", "data": value}, separators=(",", ":"))


def printed(form: str, ids: int, seed: int = 1) -> Iterator[str]:
    """A log without an end, piece by piece."""
    rng, printer, now_ms = random.Random(seed), Printer(form), 1_795_000_000_000
    yield printer.head()
    lives = [
        Life(f"{rng.choice(('billing', 'order-writer', 'stream-thread'))}-{number:07d}-0_{number % 12}", number) for number in range(ids)
    ]
    unborn = list(reversed(lives))
    while True:
        now_ms += rng.randrange(3)
        if unborn and rng.random() < 0.45:
            yield printer.batch([unborn.pop()], now_ms, deleted=False)
        elif rng.random() < 0.002:
            some = rng.sample(lives, min(TOMBSTONES, ids))
            yield printer.batch(some, now_ms, deleted=True)
        else:
            # Most ids wait, a few hundred are at work.
            life = lives[rng.randrange(ids) if rng.random() < 0.2 else rng.randrange(min(ids, 500))]
            life.step(rng)
            life.started_ms = now_ms if life.status == 1 else life.started_ms
            yield printer.batch([life], now_ms, deleted=False)


def log_text(form: str, *, text_bytes: int, ids: int) -> bytes:
    """A log of about so many bytes."""
    pieces, size = [], 0
    for piece in printed(form, ids):
        pieces.append(piece)
        size += len(piece)
        if size >= text_bytes:
            break
    return "".join(pieces).encode()


def read(text: bytes, *, fast: bool) -> tuple[float, int]:
    """CPU seconds of reading a log block by block, as a task of an ingest does, and the coordinator entries found."""
    context = FileContext("cluster", "broker-1/__transaction_state-7/00000000000000000000.log.txt", 1)
    began, at, state, entries = time.process_time(), 0, State.initial(), 0
    while at < len(text):
        stop = min(at + BLOCK_BYTES, len(text))
        window = text[at : stop + AHEAD_BYTES]
        final = at + len(window) >= len(text)
        result = parse_range(window, context=context, base=at, start=at, stop=stop, state=state, final=final, fast=fast)
        assert result.state_out is not None and result.end_byte > at
        at, state = result.end_byte, result.state_out
        entries += result.facts["coordinator_entries"].num_rows
        assert result.ledger.unread == 0
    return time.process_time() - began, entries


def main(arguments: Sequence[str]) -> None:
    """Read a log of each form by both readers, in turns."""
    parser = argparse.ArgumentParser(description="A coordinator's log: how fast the exact reader and the fast path read it.")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--exact-megabytes", type=int, default=10, help="of it are read by the exact reader")
    parser.add_argument("--ids", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(arguments)
    for form in FORMS:
        text = log_text(form, text_bytes=given.megabytes * 1_000_000, ids=given.ids)
        short = text[: text.rfind(b"\nbaseOffset: ", 0, given.exact_megabytes * 1_000_000) + 1]
        for _ in range(given.runs):
            exact, fast = read(short, fast=False), read(text, fast=True)
            rates = len(short) / exact[0] / 1e6, len(text) / fast[0] / 1e6
            what = f"coordinator log ({form}), {len(text) / 1e6:.0f} MB, {fast[1]:,} entries"
            sys.stdout.write(f"{what:60} exact reader {rates[0]:5.1f} MB/s, fast path {rates[1]:6.1f} MB/s per core (CPU)\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
