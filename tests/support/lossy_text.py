"""Batches with payloads that are no text, as of Avro, Protobuf or packed, and pieces of text in them that could be taken for more."""

import random

from tests.support.dump_text import Batch, Rec

FIRST = Batch([Rec(b"first", b"plain")], producer_id=5, base_sequence=0)
"""It shows that payloads are printed: all that stands behind is for the fast path."""
_PRINTED_AS_OTHERS = (b"?", b"\xff", b"\xc3(", b"\xf0\x9f\x98", b"\xef\xbf\xbd", "käse".encode(), b"\r\n", b"\r")
_SEPARATORS = (b" payload: ", b"] key: ", b"] payload: ", b" key: ", b"]", b"\n", b"\n\n")
_MESSAGES = (
    b"\nDumping /d/orders-0/00000000000000000000.log\nLog starting offset: 0\n",
    b"\nFound 3 invalid bytes at the end of /d/orders-0/00000000000000000000.log\n",
    b'\nException in thread "main" java.io.IOException: x\n',
    b"\n\tat a.b.c(D.java:1)",
    b"\nWARNING: x\n",
)


def forged_piece(rng: random.Random, offset: int, position: int) -> bytes:
    """A piece of text that looks like a part of the dump, about that far in it."""
    batch = (
        f"\nbaseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: -1 lastSequence: -1 producerId: 5 producerEpoch: 0 "
        f"partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        f"position: {position + rng.randint(-100, 2000)} CreateTime: 17 size: 78 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
    )
    beginning = f"\n| offset: {offset + rng.randint(-3, 30)} "
    record = f"{beginning}CreateTime: 1700000000000 keySize: 1 valueSize: {rng.randint(0, 60)} sequence: -1 headerKeys: [] key: k payload: "
    return rng.choice((*_PRINTED_AS_OTHERS, *_SEPARATORS, *_MESSAGES, batch.encode(), beginning.encode(), record.encode()))


def _value(rng: random.Random, offset: int, position: int, forged: float) -> bytes | None:
    kind = rng.random()
    if kind < 0.05:
        return None
    if kind < 0.5:
        return rng.randbytes(rng.randint(0, 40))
    if kind < 0.7:
        return bytes(rng.choice(b'abc "?{}:') for _ in range(rng.randint(0, 40)))
    if kind < 0.8:
        return "käse ".encode() * rng.randint(1, 6)
    pieces = [rng.randbytes(rng.randint(0, 8)) if rng.random() < 0.5 else b"abc" for _ in range(rng.randint(1, 8))]
    return b"".join(forged_piece(rng, offset, position) if rng.random() < forged else piece for piece in pieces)


def _headers(rng: random.Random, offset: int, position: int) -> tuple[tuple[bytes, int], ...]:
    if rng.random() < 0.8:
        return ()
    odd = rng.choice((b"a]", b"] key: ", rng.randbytes(4), b"x\ny", forged_piece(rng, offset, position)))
    return tuple((odd if rng.random() < 0.3 else b"trace", rng.randint(0, 40)) for _ in range(rng.randint(1, 3)))


def lossy_batches(rng: random.Random) -> list[Batch]:
    """Batches of one log, `FIRST` before them: of one record or of many, packed or not, some thinned out, and now and then a marker."""
    largest, forged = rng.choice((1, 5, 30, 120)), rng.choice((0, 0.01, 0.05, 0.3))
    codecs = rng.choice((("none",), ("none",), ("lz4",), ("none", "zstd")))
    batches, offset, position = [FIRST], 1, 100
    for _ in range(rng.choice((20, 60, 120) if largest < 6 else (10, 25))):
        count = rng.randint(1, largest)
        keys = [rng.choice((None, b"k%d" % index, rng.randbytes(rng.randint(0, 10)), b"key")) for index in range(count)]
        records = [Rec(key, _value(rng, offset, position, forged), _headers(rng, offset, position)) for key in keys]
        gone = frozenset(rng.sample(range(count), rng.randint(0, count // 2))) if rng.random() < 0.2 else frozenset[int]()
        if rng.random() < 0.1:
            batches.append(Batch([Rec(b"", b"")], 5, transactional=True, marker=rng.choice(("ABORT", "COMMIT"))))
            offset += 1
        batches.append(Batch(records, 5, offset, codec=rng.choice(codecs), gone=gone))
        offset, position = offset + count, position + 60 * count
    return batches
