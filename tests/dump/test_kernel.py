"""The fast path reads what the exact reader reads; its numbers and hashes are those of plain Python."""

import hashlib
import random
from functools import cache

import numpy as np
import pytest

from eo_audit.dump.fast.sizes import varint_sizes
from eo_audit.dump.lines import hashes as kernel_hash
from eo_audit.dump.lines.hashes import hashes_of, keyed_hashes, siphash
from eo_audit.dump.lines.scan import Cursors, Octets
from eo_audit.dump.parse import FileContext
from tests.support import facts
from tests.support.dump_text import RELEASES, Batch, Rec, Style, dump, random_batches, varint
from tests.support.readers import assert_same

LIKELY = ("clean", "compaction", "compressed", "dialects_tv2", "hostile", "seq_wrap", "syn_count", "syn_offset", "syn_text", "syn_trailing")


@cache
def logs() -> list[tuple[bytes, FileContext]]:
    """Log dumps of the inputs that differ in form; of one that is the same on several brokers, one dump."""
    likely = [file for file in facts.corpus_files() if file.cluster.startswith(LIKELY)]
    files = [file for file in likely if ".log." in file.path and not file.path.endswith(".err.txt")]
    return list({text: (text, facts.context_of(file, text)) for file in files if (text := facts.text_of(file))}.values())


def test_on_the_corpus(stretches: None) -> None:
    assert sum(assert_same(text, context) for text, context in logs()) > 1900


@cache
def generated(release: str) -> list[bytes]:
    """Dumps of all styles of a release: of two sections, the second cut off."""
    rng, texts = random.Random(release), []
    for _ in range(8):
        style = Style(release, deep=rng.random() < 0.9, printed=rng.random() < 0.8, crlf=rng.random() < 0.2)
        batches = random_batches(rng.randrange(1 << 30), 20, codecs=rng.choice((("none",), ("none", "lz4"))), malformed=rng.random() < 0.2)
        text = dump(batches, style)
        texts.append(text + text[: rng.randrange(len(text))])
    return texts


@pytest.mark.parametrize("release", RELEASES)
def test_on_generated_dumps(release: str, stretches: None) -> None:
    for text in generated(release):
        assert_same(text)


def regular_batches(codec: str, count: int) -> list[Batch]:
    """Batches as they are on most days: some header keys, a marker now and then."""
    records = [Rec(b"key %d" % n, b"value " * (n % 50), ((b"trace", n % 30),) * (n % 3)) for n in range(count)]
    data = [Batch([record] * (1 + n % 4), 5, n, codec=codec) for n, record in enumerate(records)]
    return [Batch([Rec(b"", b"")], 5, transactional=True, marker="ABORT") if n % 7 == 6 else batch for n, batch in enumerate(data)]


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize(
    "style",
    [Style(), Style("2.7"), Style("3.1"), Style(printed=False), Style(deep=False), Style(crlf=True)],
    ids=["4.3", "2.7", "3.1", "deep", "shallow", "crlf"],
)
def test_it_takes_what_is_regular(style: Style, codec: str, taken: list[int]) -> None:
    """Else the tests above would compare the exact reader with itself."""
    assert assert_same(dump(regular_batches(codec, 900), style)) == 900
    assert sum(taken) > 880


# numbers


def test_numbers() -> None:
    rng = random.Random(1)
    numbers = [0, 7, 10, 12345678, 123456789, 10**15 - 1, *(rng.randrange(10 ** rng.randrange(1, 16)) for _ in range(500))]
    numbers = [number * sign for number in numbers for sign in (1, -1)]
    printed = [b"%d" % number for number in numbers]
    starts = np.cumsum([0, *(len(text) + 1 for text in printed[:-1])])
    line = Cursors(Octets(b" ".join(printed), 0, 1 << 20), starts)
    assert line.number(digits=19, bits=63, signed=True).tolist() == numbers
    assert line.ok.all()


@pytest.mark.parametrize("text", [b"", b"x", b"-", b"12x4567", b"2147483648", b"00000000001", b"1234567890123456"])
def test_what_is_no_number_is_marked(text: bytes) -> None:
    line = Cursors(Octets(text + b" behind", 0, 1 << 20), np.array([0]))
    line.number(digits=10, bits=31, signed=True)
    line.literal(b" behind")
    assert not line.ok.any()


def test_varints() -> None:
    values = [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**31, -(2**31), 2**62, -(2**63)]
    assert varint_sizes(np.array(values)).tolist() == [varint(value) for value in values]


# hashes


def siphash_of(key: bytes, message: bytes) -> int:
    """SipHash-2-4 by its definition."""
    mask = (1 << 64) - 1
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v0, v1, v2, v3 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rotated(value: int, bits: int) -> int:
        return (value << bits | value >> (64 - bits)) & mask

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 255])
    rounds = [(int.from_bytes(padded[at : at + 8], "little"), 2) for at in range(0, len(padded), 8)]
    for block, count in (*rounds, (None, 4)):
        v3, v2 = (v3, v2 ^ 0xFF) if block is None else (v3 ^ block, v2)
        for _ in range(count):
            v0, v2 = (v0 + v1) & mask, (v2 + v3) & mask
            v1, v3 = rotated(v1, 13) ^ v0, rotated(v3, 16) ^ v2
            v0 = rotated(v0, 32)
            v2, v0 = (v2 + v1) & mask, (v0 + v3) & mask
            v1, v3 = rotated(v1, 17) ^ v2, rotated(v3, 21) ^ v0
            v2 = rotated(v2, 32)
        v0 ^= block or 0
    return v0 ^ v1 ^ v2 ^ v3


def test_siphash_is_siphash() -> None:
    key = bytes(range(16))
    assert siphash_of(key, bytes(range(15))) == 0xA129CA6149BE45E5  # the example of the paper (Aumasson, Bernstein 2012)
    messages = [random.Random(number).randbytes(23) for number in range(40)]
    low, high, tail = (
        np.array([int.from_bytes(message[at : at + 8], "little") for message in messages], dtype=np.uint64) for at in (0, 8, 16)
    )
    hashes = siphash(np.frombuffer(key, dtype=np.uint64), low, high, tail)
    assert hashes.tolist() == [siphash_of(key, message) for message in messages]


def hash_of(content: bytes, salt: bytes) -> int:
    """The hash of one text by its definition."""
    keys = kernel_hash._keys(salt)
    if len(content) <= 16:
        words = content.ljust(16, b"\0")
    elif len(content) > kernel_hash.PADDING:
        words = hashlib.blake2b(content, digest_size=16, key=keys.long).digest()
    else:
        width = next(width for width in kernel_hash._CLASSES if width >= len(content))
        padded = np.frombuffer(content.ljust(width, b"\0"), dtype="<u4").tolist()
        words = b"".join(
            (sum((a + k) % 2**32 * ((b + j) % 2**32) for a, b, k, j in quads) % 2**64).to_bytes(8, "little")
            for key in (keys.first.tolist(), keys.second.tolist())
            for quads in [list(zip(padded[::2], padded[1::2], key[::2], key[1::2], strict=False))]
        )
    key = keys.sip.tobytes()
    return int.from_bytes(siphash_of(key, words + len(content).to_bytes(7, "little")).to_bytes(8, "little"), "little", signed=True)


def test_hashes_are_what_they_are_said_to_be() -> None:
    rng = random.Random(1)
    texts = [rng.randbytes(size) for size in (0, 1, 8, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1024, 1025, 4095, 4096, 4097, 9000)]
    joined, spans, at = b"", [], 0
    for text in texts:
        joined += b"?" + text
        spans.append((at + 1, at + 1 + len(text)))
        at += 1 + len(text)
    expected = [hash_of(text, b"the salt") for text in texts]
    assert hashes_of(joined, [*spans, None], b"the salt") == [*expected, None]
    buffer = np.frombuffer(joined + rng.randbytes(kernel_hash.PADDING), dtype=np.uint8)
    starts, lengths = np.array([span[0] for span in spans]), np.array([len(text) for text in texts])
    assert keyed_hashes(buffer, starts, lengths, b"the salt").tolist() == expected
    assert keyed_hashes(buffer, starts[:0], lengths[:0], b"the salt").tolist() == []
