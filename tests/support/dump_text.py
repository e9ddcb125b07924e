"""Dump text as `kafka-dump-log` of some release prints it, from batches whose bytes we choose: the truth is known."""

import random
from dataclasses import dataclass, replace
from typing import Final

RELEASES: Final = ("2.3", "2.7", "2.8", "3.1", "3.2", "3.9", "4.3")
FLAT_RELEASES: Final = ("0.11.0.0", "1.1", "2.1")
"""Those that print a line for each record, or one for each batch, and not both."""


@dataclass(frozen=True)
class Style:
    """The tool's release and options, and what stood between it and the file.

    `ascii`: it ran under LC_ALL=C. `crlf`: a terminal between turned every line feed into CRLF.
    """

    release: str = "4.3"
    deep: bool = True
    printed: bool = True
    ascii: bool = False
    crlf: bool = False

    @property
    def is_flat(self) -> bool:
        """Are there no batch lines beside the record lines?"""
        return self.release in FLAT_RELEASES


@dataclass(frozen=True)
class Rec:
    """One record; headers are (key, length of the value); `decoded` is what a topic decoder prints of it, piece by piece."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, int], ...] = ()
    decoded: "tuple[Piece, ...]" = ()


@dataclass
class Batch:
    """One batch; `marker` makes it a control batch, the cleaner took the records that are `gone` (by index; of magic 2, printed by tools
    from 2.2 on). `size_bytes` and `position` are filled in by `dump`."""

    records: list[Rec]
    producer_id: int = -1
    base_sequence: int = -1
    transactional: bool = False
    marker: str | None = None
    codec: str = "none"
    magic: int = 2
    timestamps: tuple[int, ...] = ()
    offset: int = 0
    position: int = 0
    size_bytes: int = 0
    first_timestamp: int = 1_700_000_000_000
    gone: frozenset[int] = frozenset()

    def timestamp(self, index: int) -> int:
        """Of one record."""
        return self.timestamps[index] if self.timestamps else self.first_timestamp + index


def varint(value: int) -> int:
    """Bytes of a zig-zag varint."""
    zigzag, size = (value << 1) ^ (value >> 63), 1
    while zigzag >= 128:
        zigzag >>= 7
        size += 1
    return size


def binary_size(batch: Batch) -> int:
    """Bytes of the batch, as Kafka writes it (an arbitrary smaller number when it is compressed)."""
    if batch.magic < 2:
        return sum(26 + 8 * batch.magic + len(rec.key or b"") + len(rec.value or b"") for rec in batch.records)
    if batch.marker:
        return 78
    size = 61
    for index, rec in enumerate(batch.records):
        if index in batch.gone:
            continue
        body = 1 + varint(batch.timestamp(index) - batch.timestamp(0)) + varint(index) + varint(len(rec.headers))
        for part in (rec.key, rec.value):
            body += varint(-1 if part is None else len(part)) + len(part or b"")
        body += sum(varint(len(key)) + len(key) + varint(length) + length for key, length in rec.headers)
        size += varint(body) + body
    return size if batch.codec == "none" else 61 + (size - 61) // 3 + 1


def printed(content: bytes, style: Style) -> bytes:
    """Bytes as the tool prints them: decoded as UTF-8, written in the encoding of its output."""
    text = content.decode("utf-8", "replace")
    return text.encode("ascii", "replace") if style.ascii else text.encode()


def _flat_batch_line(batch: Batch, style: Style) -> bytes:
    count, end = len(batch.records), batch.offset + max(len(batch.records), 1) - 1
    said = f"position: {batch.position} CreateTime: {batch.timestamp(max(count - 1, 0))} isvalid: true size: {batch.size_bytes} "
    said += f"magic: {batch.magic} compresscodec: {batch.codec.upper()} crc: {batch.offset * 7919 % 2**32}"
    if batch.magic < 2:
        return f"offset: {end} {said}".encode()
    last_sequence = -1 if batch.base_sequence < 0 else (batch.base_sequence + max(count, 1) - 1) % 2**31
    is_new = style.release >= "2"
    return (
        f"baseOffset: {batch.offset} lastOffset: {end} {f'count: {count} ' if is_new else ''}baseSequence: {batch.base_sequence} "
        f"lastSequence: {last_sequence} producerId: {batch.producer_id} producerEpoch: {0 if batch.producer_id >= 0 else -1} "
        f"partitionLeaderEpoch: 0 isTransactional: {str(batch.transactional).lower()} "
        f"{f'isControl: {str(batch.marker is not None).lower()} ' if is_new else ''}{said}"
    ).encode()


def _batch_line(batch: Batch, style: Style) -> bytes:
    if style.is_flat:
        return _flat_batch_line(batch, style)
    count = len(batch.records)
    codec = batch.codec.upper() if style.release < "3" else batch.codec
    stamp = batch.timestamp(max(count - 1, 0))
    if batch.magic < 2:
        return (
            f"offset: {batch.offset + count - 1} position: {batch.position} CreateTime: {stamp} size: {batch.size_bytes} "
            f"magic: {batch.magic} compresscodec: {codec} crc: 123 isvalid: true"
        ).encode()
    last_sequence = -1 if batch.base_sequence < 0 else (batch.base_sequence + max(count, 1) - 1) % 2**31
    horizon = " deleteHorizonMs: OptionalLong.empty" if style.release >= "3.2" else ""
    return (
        f"baseOffset: {batch.offset} lastOffset: {batch.offset + max(count, 1) - 1} count: {count - len(batch.gone)} "
        f"baseSequence: {batch.base_sequence} lastSequence: {last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {0 if batch.producer_id >= 0 else -1} partitionLeaderEpoch: 0 "
        f"isTransactional: {str(batch.transactional).lower()} isControl: {str(batch.marker is not None).lower()}"
        f"{horizon} position: {batch.position} CreateTime: {stamp} size: {batch.size_bytes} magic: 2 compresscodec: {codec} "
        f"crc: {batch.offset * 7919 % 2**32} isvalid: true"
    ).encode()


Piece = tuple[bytes, bool]
"""Text of a dump, and whether it is somebody's data."""


def _record_line(batch: Batch, index: int, style: Style) -> bytes:
    return b"".join(text for text, _ in _record_pieces(batch, index, style))


def _record_pieces(batch: Batch, index: int, style: Style) -> list[Piece]:
    rec, offset = batch.records[index], batch.offset + index
    stamp, small = batch.timestamp(index), style.release < "2.8"
    sequence = -1 if batch.base_sequence < 0 else (batch.base_sequence + index) % 2**31
    sizes = (4, 6) if batch.marker else tuple(-1 if part is None else len(part) for part in (rec.key, rec.value))
    if style.is_flat:
        head = (
            f"offset: {offset} position: {batch.position} CreateTime: {stamp} isvalid: true keysize: {sizes[0]} valuesize: {sizes[1]} "
            f"magic: {batch.magic} compresscodec: {batch.codec.upper()}"
        )
        if batch.magic >= 2:
            epoch = 0 if batch.producer_id >= 0 else -1
            head += f" producerId: {batch.producer_id}" + ("" if style.release == "0.11.0.0" else f" producerEpoch: {epoch}")
            head += f" sequence: {sequence}"
            head += f" isTransactional: {str(batch.transactional).lower()}"
    elif style.release == "2.8":
        head = (
            f"| offset: {offset} isValid: true crc: null keySize: {sizes[0]} valueSize: {sizes[1]} CreateTime: {stamp} "
            f"baseOffset: {batch.offset} lastOffset: {batch.offset + len(batch.records) - 1} "
            f"baseSequence: {batch.base_sequence} lastSequence: -1 producerEpoch: 0 partitionLeaderEpoch: 0 "
            f"batchSize: {batch.size_bytes} magic: {batch.magic} compressType: {batch.codec.upper()} position: {batch.position}"
        )
    else:
        names = ("keysize", "valuesize") if small else ("keySize", "valueSize")
        head = f"| offset: {offset} CreateTime: {stamp} {names[0]}: {sizes[0]} {names[1]}: {sizes[1]}"
    return [(head.encode(), False), *_suffix(batch, index, style, sequence)]


def _suffix(batch: Batch, index: int, style: Style, sequence: int) -> list[Piece]:
    rec = batch.records[index]
    if style.is_flat:
        keys = b",".join(key for key, _ in rec.headers)
        legacy = [(b" crc: 55", False)]
        pieces = legacy if batch.magic < 2 else [(b" headerKeys: [", False), (printed(keys, style), True), (b"]", False)]
    elif batch.magic < 2:
        valid = b" crc: 55 isvalid: true" if style.release < "3" else b" isValid: true crc: 55" + (b"}" if style.release < "4.3" else b"")
        pieces = [(valid, False)]
    else:
        keys = b",".join(key for key, _ in rec.headers)
        pieces = [(b" sequence: %d headerKeys: [" % sequence, False), (printed(keys, style), True), (b"]", False)]
    if batch.marker:
        return [*pieces, (f" endTxnMarker: {batch.marker} coordinatorEpoch: 3".encode(), False)]
    if not style.printed:
        return pieces
    if rec.decoded:
        return [*pieces, *rec.decoded]
    if rec.key is not None and not (style.release in ("2.3", *FLAT_RELEASES) and rec.value is None):
        pieces += [(b" key: ", False), (printed(rec.key, style), True)]
    if rec.value is not None:
        pieces += [(b" payload: ", False), (printed(rec.value, style), True)]
    return pieces


def dump(batches: list[Batch], style: Style, *, path: str = "/data/orders-0/00000000000000000000.log") -> bytes:
    """The text of one segment; fills in offset, position and size of its batches."""
    return b"".join(text for text, _ in dump_pieces(batches, style, path=path))


def dump_pieces(batches: list[Batch], style: Style, *, path: str = "/data/orders-0/00000000000000000000.log") -> list[Piece]:
    """The same, each byte with its origin."""
    preamble = "Log starting offset: 0" if style.release >= "3.3" else "Starting offset: 0"
    offset = position = 0
    lines: list[list[Piece]] = [[(f"Dumping {path}".encode(), False)], [(preamble.encode(), False)]]
    for batch in batches:
        batch.offset, batch.position, batch.size_bytes = offset, position, binary_size(batch)
        if not (style.is_flat and style.deep):
            lines.append([(_batch_line(batch, style), False)])
        if style.deep:
            lines += [_record_pieces(batch, index, style) for index in range(len(batch.records)) if index not in batch.gone]
        offset, position = offset + max(len(batch.records), 1), position + batch.size_bytes
    pieces = [piece for line in lines for piece in (*line, (b"\n", False))]
    return [(text.replace(b"\n", b"\r\n"), data) for text, data in pieces] if style.crlf else pieces


PIECES: Final = (
    b"plain",
    b"",
    b"two\nlines",
    b"ends with a line feed\n",
    b"tab\tand | pipe",
    "zażółć 😀".encode(),
    b"] key: k payload: v",
    b" payload: x payload: y",
    b"headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 0",
    b'{\n  "pretty": [1, 2, 3],\n  "json": true\n}',
    b"v\nDumping /other/orders-9/00000000000000000000.log\nLog starting offset: 0",
    b'v\nException in thread "main" java.lang.NullPointerException\n\tat kafka.tools.DumpLogSegments$.main',
    b"v\n| offset: 4 CreateTime: 1700000000001 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 0",
    b"carriage\r\nreturn",
)


def forged_marker(batch: Batch, style: Style) -> bytes:
    """A COMMIT batch and its record, as they would follow a batch, without the last line end."""
    fake = Batch([Rec(b"", b"")], producer_id=7, transactional=True, marker="COMMIT")
    fake.offset, fake.position, fake.size_bytes = batch.offset + len(batch.records), batch.position + batch.size_bytes, 78
    record = _record_line(fake, 0, style)
    return record if style.is_flat else _batch_line(fake, style) + b"\n" + record


def random_batches(
    seed: int, count: int, *, codecs: tuple[str, ...] = ("none",), malformed: bool = False, legacy: bool = False
) -> list[Batch]:
    """Batches of all kinds, with payloads, keys and header keys that try to look like something else."""
    rng = random.Random(seed)
    pieces = (*PIECES, b"\xff\xfe\x80abc", b"\xc3(\n\xa0\xa1 x") if malformed else PIECES
    batches = []
    for _ in range(count):
        if not legacy and rng.random() < 0.2:
            batches.append(Batch([Rec(b"", b"")], producer_id=5, transactional=True, marker=rng.choice(("COMMIT", "ABORT"))))
            continue
        records = [_random_record(rng, pieces, legacy) for _ in range(1 if legacy else rng.choice((1, 1, 2, 3, 8)))]
        stamps = tuple(1_700_000_000_000 + rng.randrange(5000) for _ in records)
        batch = Batch(records, 5, rng.randrange(100), codec=rng.choice(codecs), timestamps=stamps, transactional=not legacy)
        batch.magic = rng.choice((0, 1)) if legacy else 2
        batches.append(batch)
    return batches


def _random_record(rng: random.Random, pieces: tuple[bytes, ...], legacy: bool) -> Rec:
    def some() -> bytes | None:
        kind = rng.random()
        return None if kind < 0.1 else b" ".join(rng.choices(pieces, k=rng.choice((1, 1, 2)))) if kind < 0.7 else b"x" * rng.randrange(300)

    names = (b"a", b"trace", b"]", b"h\nbaseOffset: 9 lastOffset: 9", b"] key: k payload: v", b"", "ż,😀".encode())
    headers = () if legacy else tuple((rng.choice(names), rng.randrange(40)) for _ in range(rng.choice((0, 0, 0, 1, 2))))
    return Rec(some(), some(), headers)


def swallowing_batches(seed: int, count: int) -> list[Batch]:
    """Batches whose header keys run over line ends, beside values that printing changes.

    Keys and values have few sizes: wherever the end of header keys is looked for, the lengths fit some record further on.
    """
    rng = random.Random(seed)
    names = (b"h\n| offset: 1,", b"h", b"]", b"] key: k1 payload: x", b"a\nb", b"h\nbaseOffset: 3 ", b"] key: \n", b"h\n")

    def record() -> Rec:
        size = rng.choice((0, 5, 29))
        value = rng.choice((bytes(rng.randrange(256) for _ in range(size)), b"v" * size))
        headers = tuple((rng.choice(names), rng.randrange(9)) for _ in range(rng.choice((0, 0, 1, 2))))
        return Rec(b"k%d" % rng.randrange(9), value, headers)

    return [
        Batch([record() for _ in range(rng.choice((1, 1, 2)))], 5, rng.randrange(100), codec=rng.choice(("none", "gzip")))
        for _ in range(count)
    ]


def forged_lines(batches: list[Batch], victim: int, style: Style, *, before: bytes = b"") -> bytes:
    """The dump of batches, one of which has a header key that holds the rest of its record, a COMMIT and the beginning of another batch.

    Args:
        batches: the batches; the first record of the victim gets the header key.
        victim: which batch.
        style: of the dump.
        before: header keys printed before the forged text.
    """
    batch = batches[victim]
    record = batch.records[0]
    close = b"]" + (b" key: " + (record.key or b"") + b" payload: " + (record.value or b"") if style.printed else b"") + b"\n"
    names = ("keysize", "valuesize") if style.release < "2.8" else ("keySize", "valueSize")
    for _ in range(8):
        dump(batches, style)
        others = b""
        for index in range(1, len(batch.records)):
            if style.is_flat:
                others += _record_line(replace(batch, records=[Rec(rec.key, rec.value) for rec in batch.records]), index, style) + b"\n"
                continue
            key, value = batch.records[index].key or b"", batch.records[index].value or b""
            others += f"| offset: {batch.offset + index} CreateTime: {batch.timestamp(index)} {names[0]}: {len(key)} ".encode()
            others += f"{names[1]}: {len(value)} ".encode()
            others += b"sequence: %d headerKeys: []" % (batch.base_sequence + index)
            others += (b" key: " + key + b" payload: " + value if style.printed else b"") + b"\n"
        last = Batch([record], 5, 9)
        last.offset, last.position = batch.offset + len(batch.records) + 1, batch.position + batch.size_bytes + 78
        last.size_bytes = 70
        tail = b"" if style.is_flat else _batch_line(last, style) + b"\n"
        tail += _record_line(last, 0, Style(style.release, printed=False))[:-1]
        forged = before + close + others + forged_marker(batch, style) + b"\n" + tail
        batch.records[0] = Rec(record.key, record.value, ((forged, 0),))
    return dump(batches, style)
