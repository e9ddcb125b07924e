"""One partition's log, printed as `kafka-dump-log` of Kafka 4.3 prints it, with the sidecars that a broker would have beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

DATA_DIR = "/var/lib/kafka/data"
KEY_SIZE = 14


@dataclass
class Log:
    """One partition: its segments on disk and as dump files."""

    folder: Path
    name: str
    segment_bytes: int
    next_offset: int = 0
    base: int = 0
    position: int = 0
    text_bytes: int = 0
    batches: int = 0
    lines: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    state: dict[int, str] = field(default_factory=dict)
    listed: list[tuple[int, str]] = field(default_factory=list)
    file: BinaryIO | None = None

    def append(self, *, count: int, size: int, head: str, tail: str, records: Sequence[str]) -> None:
        """Append a batch: `head` is what its line prints from baseSequence to deleteHorizonMs, `tail` its timestamp."""
        if self.file is None or self.position >= self.segment_bytes:
            self._roll()
        first, last = self.next_offset, self.next_offset + count - 1
        crc = (first * 2_654_435_761 + size) & 0xFFFFFFFF
        self.lines.append(
            f"baseOffset: {first} lastOffset: {last} count: {count} {head} position: {self.position} CreateTime: {tail} "
            f"size: {size} magic: 2 compresscodec: none crc: {crc} isvalid: true\n"
        )
        self.lines += records
        self.position += size
        self.next_offset = last + 1
        self.batches += 1

    def marker(self, kind: str, *, producer_id: int, epoch: int, now_ms: int) -> None:
        """Append an end-transaction marker, and the aborted index's entry behind an ABORT."""
        offset = self.next_offset
        self.append(
            count=1,
            size=78,
            head=f"baseSequence: -1 lastSequence: -1 producerId: {producer_id} producerEpoch: {epoch} partitionLeaderEpoch: 0 "
            "isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty",
            tail=str(now_ms),
            records=[
                f"| offset: {offset} CreateTime: {now_ms} keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
                f"endTxnMarker: {kind} coordinatorEpoch: 0\n"
            ],
        )
        first = self.open.pop(producer_id)
        if kind == "ABORT":
            stable = next(iter(self.open.values()), offset + 1)
            self.aborted.append(
                f"version: 0 producerId: {producer_id} firstOffset: {first} lastOffset: {offset} lastStableOffset: {stable}\n"
            )
        self.state[producer_id] = (
            f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty "
            f"lastTimestamp: {now_ms}\n"
        )

    def flush(self) -> None:
        """Write what is waiting."""
        if self.file is not None:
            self.text_bytes += self.file.write("".join(self.lines).encode())
        self.lines.clear()

    def close(self) -> None:
        """Finish the last segment, with a snapshot at the log's end as a clean stop leaves it."""
        self._end_segment()
        self._write(f"{self.next_offset:020d}.snapshot", "".join(self.state[pid] for pid in sorted(self.state)), 10 + 43 * len(self.state))
        (self.folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")

    def _roll(self) -> None:
        self._end_segment()
        self.base, self.position = self.next_offset, 0
        path = self.folder / f"{self.base:020d}.log.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("wb")
        head = f"Dumping {DATA_DIR}/{self.name}/{self.base:020d}.log\nLog starting offset: {self.base}\n"
        self.text_bytes += self.file.write(head.encode())

    def _end_segment(self) -> None:
        if self.file is None:
            return
        self.flush()
        self.file.close()
        self.file = None
        self.listed.append((self.position, f"{self.name}/{self.base:020d}.log"))
        if self.aborted:
            self._write(f"{self.base:020d}.txnindex", "".join(self.aborted), 34 * len(self.aborted))
            self.aborted.clear()

    def _write(self, name: str, text: str, stored_bytes: int) -> None:
        (self.folder / f"{name}.txt").write_text(f"Dumping {DATA_DIR}/{self.name}/{name}\n{text}")
        self.listed.append((stored_bytes, f"{self.name}/{name}"))


def record_size(value_size: int, headers: int = 0) -> int:
    """Bytes of an uncompressed record with a key of `KEY_SIZE` bytes, in a batch whose records have one timestamp and few offsets."""
    body = 5 + KEY_SIZE + varint(2 * value_size) + value_size + headers
    return varint(2 * body) + body


def varint(value: int) -> int:
    """Bytes of an unsigned varint."""
    return max(1, (value.bit_length() + 6) // 7)
