"""A producer that keeps no rules: it writes what it is told, when it is told, in the bytes of Kafka's protocol.

No client library would write into a transaction that has ended, or into a partition that it did not register. Networks, retries and bugs
do (KAFKA-12671, KAFKA-14402), and this is how such a write is made.
"""

import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PRODUCE, FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN = 0, 10, 22, 24, 26
_CLIENT = "raw-writer"
# Kafka's Errors: answers of a coordinator that is not there yet, still loads, or still ends the transaction before.
_AGAIN = {14, 15, 16, 51}
_CASTAGNOLI = 0x82F63B78


class Refused(Exception):
    """The broker answered with an error code."""


@dataclass(frozen=True)
class Producer:
    """A transactional id with the producer id and epoch that the coordinator gave it."""

    transactional_id: str
    producer_id: int
    epoch: int


def crc32c(data: bytes) -> int:
    """The checksum of a record batch (`org.apache.kafka.common.utils.Crc32C`)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_CASTAGNOLI if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(number: int) -> bytes:
    """A zigzag number of variable length (`ByteUtils.writeVarint`)."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def batch(producer: Producer, base_sequence: int, values: Sequence[bytes], at_ms: int) -> bytes:
    """A transactional record batch of magic 2 (`DefaultRecordBatch`), uncompressed, with records that have no key."""
    records = b""
    for delta, value in enumerate(values):
        body = b"\0" + varint(0) + varint(delta) + varint(-1) + varint(len(value)) + value + varint(0)
        records += varint(len(body)) + body
    transactional, last = 0x10, len(values) - 1
    numbers = struct.pack(">hiqqqhii", transactional, last, at_ms, at_ms, producer.producer_id, producer.epoch, base_sequence, len(values))
    checked = numbers + records
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c(checked)) + checked


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


class Writer:
    """One connection to one broker, which leads every partition. Requests are of versions that brokers from 2.3 to 4.3 know."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=60)

    def close(self) -> None:
        """End the connection; what is open stays open."""
        self._socket.close()

    def init(self, transactional_id: str, timeout_ms: int) -> Producer:
        """A producer id and an epoch for a transactional id (InitProducerId)."""
        coordinator = _string(transactional_id) + b"\1"
        self._accepted(FIND_COORDINATOR, 1, coordinator, lambda answer: struct.unpack_from(">4xh", answer)[0])
        asked = _string(transactional_id) + struct.pack(">i", timeout_ms)
        answer = self._accepted(INIT_PRODUCER_ID, 0, asked, lambda answer: struct.unpack_from(">4xh", answer)[0])
        return Producer(transactional_id, *struct.unpack_from(">6xqh", answer))

    def register(self, producer: Producer, topic: str, partition: int) -> None:
        """Tell the coordinator that the transaction writes to a partition (AddPartitionsToTxn)."""
        asked = self._named(producer) + struct.pack(">i", 1) + _string(topic) + struct.pack(">ii", 1, partition)
        self._accepted(ADD_PARTITIONS, 0, asked, lambda answer: struct.unpack(">h", answer[-2:])[0])

    def end(self, producer: Producer, *, commit: bool) -> None:
        """Commit or abort (EndTxn). The markers come after the answer."""
        asked = self._named(producer) + struct.pack(">?", commit)
        self._accepted(END_TXN, 1, asked, lambda answer: struct.unpack_from(">4xh", answer)[0])

    def write(self, producer: Producer, topic: str, partition: int, base_sequence: int, values: Sequence[bytes]) -> int:
        """Write a batch (Produce v7), whatever the coordinator knows of it; its base offset."""
        records = batch(producer, base_sequence, values, int(time.time() * 1000))
        asked = _string(producer.transactional_id) + struct.pack(">hii", -1, 30_000, 1) + _string(topic)
        asked += struct.pack(">iii", 1, partition, len(records)) + records
        head = 4 + 2 + len(topic.encode()) + 4 + 4
        answer = self._accepted(PRODUCE, 7, asked, lambda answer: struct.unpack_from(">h", answer, head)[0])
        offset: int = struct.unpack_from(">q", answer, head + 2)[0]
        return offset

    @staticmethod
    def _named(producer: Producer) -> bytes:
        return _string(producer.transactional_id) + struct.pack(">qh", producer.producer_id, producer.epoch)

    def _accepted(self, key: int, version: int, body: bytes, error_of: Callable[[bytes], int]) -> bytes:
        """The answer without an error; what a coordinator only refuses for now is asked again."""
        deadline = time.monotonic() + 120
        while error := error_of(answer := self._answer(key, version, body)):
            if error not in _AGAIN or time.monotonic() > deadline:
                raise Refused(f"request {key} of version {version}: error {error}")
            time.sleep(0.2)
        return answer

    def _answer(self, key: int, version: int, body: bytes) -> bytes:
        request = struct.pack(">hhi", key, version, 1) + _string(_CLIENT) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        return self._read(struct.unpack(">i", self._read(4))[0])[4:]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if not (part := self._socket.recv(size - len(data))):
                raise Refused("the broker closed the connection")
            data += part
        return data
