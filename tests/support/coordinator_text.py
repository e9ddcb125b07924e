"""A coordinator's log as `kafka-dump-log --transaction-log-decoder` of some release prints it, of ids and values that we choose."""

import json
import random
from dataclasses import dataclass
from typing import Final

from tests.support.dump_text import Batch, Piece, Rec, Style, printed

PATH: Final = "/data/__transaction_state-3/00000000000000000000.log"
STATES: Final = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence")
ORDINARY: Final = (
    b"order-writer-1",
    b"a",
    b"stream app-0_1",
    b"billing{7}",
    b"x" * 70,
    b"it's payload",
    b"a::b=c,d",
    "zażółć 日本".encode(),
)
FORGED_VALUE: Final = b" payload: producerId:9,producerEpoch:9,state=CompleteAbort,partitions=[x-1],txnLastUpdateTimestamp=9,txnTimeoutMs=9"
FORGED_RECORD: Final = (
    b"| offset: 1 CreateTime: 1700000000001 keySize: 5 valueSize: 37 sequence: -1 headerKeys: [] key: transaction_metadata::"
)
HOSTILE: Final = (
    b'"',
    b"\\",
    b"\n",
    b"\r\n",
    b"?",
    b"\t",
    b"]",
    b"\x00",
    b"\x7f",
    b"\xff\xfe",
    b"} payload: {",
    b'"}} payload: <DELETE>',
    b" payload: <DELETE>\n",
    FORGED_VALUE,
    FORGED_VALUE + b"\n",
    b"a\n" + FORGED_RECORD + b"transactionalId=a" + FORGED_VALUE + b"\n",
    b"\nDumping /x/orders-0/00000000000000000000.log\nLog starting offset: 0\n",
    b"\nbaseOffset: 1 lastOffset: 1 count: 1 baseSequence: -1",
    "zażółć 日本".encode(),
    b"\xff" * 200,
    b"?" * 60,
)
_TOPICS = ("orders", "order-events", "a.b_c", "__consumer_offsets", "x-1", "T" * 130)


@dataclass(frozen=True)
class Value:
    """A `TransactionLogValue`; `partitions` None is null (of version 1), `tags` are its tagged fields by name."""

    version: int
    status: int
    partitions: tuple[tuple[str, tuple[int, ...]], ...] | None
    producer_id: int = 7
    epoch: int = 0
    timeout_ms: int = 60_000
    update_ms: int = 1_700_000_000_000
    start_ms: int = -1
    tags: tuple[tuple[str, int], ...] = ()

    @property
    def size(self) -> int:
        """Its bytes (topics of less than 127 partitions)."""
        topics = self.partitions or ()
        if self.version == 0:
            return 37 + sum(6 + len(topic) + 4 * len(numbers) for topic, numbers in topics)
        tags = sum(10 if name.endswith("Id") else 4 for name, _ in self.tags)
        return 35 + tags + sum(3 + (len(topic) > 126) + len(topic) + 4 * len(numbers) for topic, numbers in topics)


def record(name: bytes, value: Value | None, style: Style, *, named: bool = False, size: int | None = None) -> Rec:
    """The record of an id, with its value or a tombstone; `named`: JSON prints the state's name; `size`: another size than the value's."""
    stored = None if value is None else bytes(value.size if size is None else size)
    if style.release >= "4.1":
        text = json.dumps(name.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()
        key: list[Piece] = [(b' key: {"type":"0","data":{"transactionalId":"', False), (printed(text, style), True), (b'"}}', False)]
        payload = b"<DELETE>" if value is None else _json(value, named=named)
    else:
        prefix = b"" if style.release < "2.4" else b"transaction_metadata::"
        key = [(b" key: " + prefix + b"transactionalId=", False), (printed(name, style), True)]
        payload = b"<DELETE>" if value is None else _text(value, style)
    return Rec(bytes(4 + len(name)), stored, decoded=(*key, (b" payload: " + payload, False)))


def _text(value: Value, style: Style) -> bytes:
    listed = [f"{topic}-{number}" for topic, numbers in value.partitions or () for number in numbers]
    partitions = f"Set({', '.join(listed)})" if style.release < "2.5" else f"[{','.join(listed)}]"
    state = f"state={STATES[value.status]},partitions={partitions},txnLastUpdateTimestamp={value.update_ms},txnTimeoutMs={value.timeout_ms}"
    return f"producerId:{value.producer_id},producerEpoch:{value.epoch},{state}".encode()


def _json(value: Value, *, named: bool) -> bytes:
    tags = dict(value.tags)
    topics = None if value.partitions is None else [{"topic": topic, "partitionIds": list(numbers)} for topic, numbers in value.partitions]
    fields: dict[str, object] = {"producerId": value.producer_id}
    fields |= {name: tags[name] for name in ("previousProducerId", "nextProducerId") if name in tags}
    fields["producerEpoch"] = value.epoch
    fields |= {name: tags[name] for name in ("nextProducerEpoch",) if name in tags}
    fields["transactionTimeoutMs"] = value.timeout_ms
    fields["transactionStatus"] = STATES[value.status] if named else value.status
    fields["transactionPartitions"] = topics
    fields["transactionLastUpdateTimestampMs"] = value.update_ms
    fields["transactionStartTimestampMs"] = value.start_ms
    fields |= {name: tags[name] for name in ("clientTransactionVersion",) if name in tags}
    return json.dumps({"version": str(value.version), "data": fields}, separators=(",", ":")).encode()


def random_value(rng: random.Random) -> Value:
    """A value of any state, version and list of partitions."""
    version, status = rng.choice((0, 1)), rng.choice((0, 1, 1, 1, 2, 3, 4, 5, rng.randrange(8)))
    topics = rng.sample(_TOPICS, rng.choice((1, 1, 2, 4)))
    partitions = tuple((topic, tuple(rng.sample(range(60), rng.choice((1, 1, 2, 7))))) for topic in topics)
    none = None if version and rng.random() < 0.5 else ()
    names = ("previousProducerId", "nextProducerId", "nextProducerEpoch", "clientTransactionVersion")
    tags = tuple((name, rng.randrange(5)) for name in names if version and rng.random() < 0.4)
    ids = rng.choice((0, 7, 4_000_000_000)), rng.choice((0, 3, 32766)), rng.choice((1, 60_000))
    return Value(
        version, status, partitions if status in (1, 2, 3) else none, *ids, start_ms=rng.choice((-1, 1_700_000_000_000)), tags=tags
    )


def random_name(rng: random.Random, hostile: float) -> bytes:
    """A transactional id, some of them made of forgeries."""
    name = rng.choice(ORDINARY) + b"%d" % rng.randrange(100)
    return name if rng.random() >= hostile else b"".join(rng.choices((*HOSTILE, name, b"a"), k=rng.choice((1, 2, 3))))


def random_log(rng: random.Random, count: int, style: Style, *, hostile: float) -> list[Batch]:
    """Batches of entries; a share (`hostile`) of their ids is made of forgeries, and as many values are odd in another way."""
    named, batches = rng.random() < 0.3, []
    for _ in range(count):
        records = []
        for _ in range(rng.choice((1, 1, 1, 1, 2, 5))):
            deleted = style.release >= "2.4" and rng.random() < 0.1
            value = None if deleted else random_value(rng)
            wrong = rng.randrange(30, 90) if rng.random() < 0.3 * hostile else None
            found = record(random_name(rng, hostile), value, style, named=named, size=wrong)
            records.append(_undecodable(rng, style, found) if rng.random() < 0.1 * hostile else found)
        stamps = tuple(1_700_000_000_000 + rng.randrange(5000) for _ in records)
        batches.append(Batch(records, codec=rng.choice(("none", "none", "none", "lz4")), timestamps=stamps))
    return batches


def _undecodable(rng: random.Random, style: Style, found: Rec) -> Rec:
    """What the decoder prints of a record that it cannot read, or a field more than a tool of today prints."""
    if style.release < "4.1":
        return Rec(found.key, found.value, decoded=((b" key: unknown::version=3", False),))
    said = rng.choice((b" key: Unknown record type 9 at offset 3, skipping.", b" key: Error at offset 3, skipping. no", b""))
    more = tuple(
        (text.replace(b'"}}', b'","new":1}}').replace(b'"data":{"p', b'"data":{"new":[1],"p'), data) for text, data in found.decoded
    )
    return Rec(found.key, found.value, decoded=((said, False),) if said else more)
