"""Salted 64-bit hashes of keys and payloads, thousands at once.

A universal hash of the bytes under secret keys, then a pseudo-random function of it: the construction of UMAC (RFC 4418), with NH twice
(other keys each time) and SipHash-2-4 behind it. Texts of at most 16 bytes go into SipHash as they are, very long ones as their BLAKE2b
digest. Without the salt, neither a guessed text can be confirmed nor two texts be made that collide.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

PADDING = 4096  # bytes that must be readable behind the last text
_SHORT = 16
# Few lengths, so that thousands of texts are rows of one array; NH takes whole words in any case.
_CLASSES = (*range(64, 513, 64), *range(1024, PADDING + 1, 512))  # a text is padded with zeros to the next of these lengths
_LONGEST = np.array((_SHORT, *_CLASSES))
_ROWS_BYTES = 1 << 19  # bytes of texts that are hashed in one go: they should stay in a core's cache
_LANES = 1 << 14  # messages in one go
_U64 = np.uint64
_LOW = _U64(0xFFFFFFFF)
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
# The constants of SipHash: the ASCII text `somepseudorandomlygeneratedbytes`. Those of v0 and v2, and those of v1 and v3.
_SIP_OUTER = np.array([[0x736F6D6570736575], [0x6C7967656E657261]], dtype=np.uint64)
_SIP_INNER = np.array([[0x646F72616E646F6D], [0x7465646279746573]], dtype=np.uint64)
# How far words are rotated: left, and what comes in on the right.
_BY_13_AND_16, _BY_17_AND_21 = (
    (np.array([[a], [b]], dtype=np.uint64), np.array([[64 - a], [64 - b]], dtype=np.uint64)) for a, b in ((13, 16), (17, 21))
)
_BY_32 = (np.array(32, dtype=np.uint64), np.array(32, dtype=np.uint64))


class _Keys(NamedTuple):
    first: NDArray[np.uint32]
    second: NDArray[np.uint32]
    sip: Words
    long: bytes


@lru_cache(maxsize=4)
def _keys(salt: bytes) -> _Keys:
    # SHAKE-256 draws as much out of the salt as is needed, and no part of it is used for two purposes.
    material = hashlib.shake_256(b"eo-audit payload hashes" + salt).digest(2 * PADDING + 32 + 64)
    words = np.frombuffer(material[: 2 * PADDING], dtype="<u4")
    sip = np.frombuffer(material[2 * PADDING : 2 * PADDING + 16], dtype="<u8")
    return _Keys(words[: PADDING // 4], words[PADDING // 4 :], sip, material[2 * PADDING + 16 : 2 * PADDING + 48])


def keyed_hashes(text: Bytes, starts: Ints, lengths: Ints, salt: bytes) -> NDArray[np.int64]:
    """The hash of each text, as a signed integer: the same for the same bytes in every run with this salt.

    Args:
        text: holds the texts, with PADDING bytes behind the last one.
        starts: where each text starts.
        lengths: of each text, bytes.
        salt: the secret.
    """
    keys = _keys(salt)
    low, high = np.zeros(len(starts), dtype=np.uint64), np.zeros(len(starts), dtype=np.uint64)
    kind = np.searchsorted(_LONGEST, lengths)
    for number in np.flatnonzero(np.bincount(kind)).tolist():
        chosen = np.flatnonzero(kind == number)
        if number == 0:
            _short(text, starts, lengths, chosen, low, high)
        elif number <= len(_CLASSES):
            _universal(text, starts, lengths, chosen, _CLASSES[number - 1], keys, low, high)
        else:
            _long(text, starts, lengths, chosen, keys, low, high)
    # The length goes in as well: a text and the same text with zeros behind it are one after padding.
    return siphash(keys.sip, low, high, lengths.astype(np.uint64)).view(np.int64)


def hashes_of(text: bytes, spans: Sequence[tuple[int, int] | None], salt: bytes) -> list[int | None]:
    """The hash of each span of a text; None for None."""
    pieces = [text[span[0] : span[1]] for span in spans if span is not None]
    if not pieces:  # most windows of a collection: snapshots, indexes
        return [None] * len(spans)
    joined = np.frombuffer(b"".join(pieces) + bytes(PADDING), dtype=np.uint8)
    lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
    hashes = iter(keyed_hashes(joined, np.cumsum(lengths) - lengths, lengths, salt).tolist())
    return [None if span is None else next(hashes) for span in spans]


def _rows(text: Bytes, starts: Ints, lengths: Ints, chosen: Ints, width: int) -> Iterator[tuple[Ints, Bytes]]:
    """The chosen texts as rows of one width, zeros behind each, some at a time."""
    step = max(_ROWS_BYTES // width, 1)
    # As `sliding_window_view` has them, which takes as long as hashing a few texts.
    windows: Bytes = np.ndarray((len(text) - width + 1, width), dtype=np.uint8, buffer=text, strides=(1, 1))
    columns = np.arange(width)
    for begin in range(0, len(chosen), step):
        some = chosen[begin : begin + step]
        rows = windows[starts[some]]
        # Up to the shortest text all bytes are its own; only behind that are there others to blank out.
        least = int(lengths[some].min())
        rows[:, least:] *= columns[least:] < lengths[some, None]
        yield some, rows


def _short(text: Bytes, starts: Ints, lengths: Ints, chosen: Ints, low: Words, high: Words) -> None:
    words: Words = np.ndarray((len(text) - 7,), dtype="<u8", buffer=text, strides=(1,))
    begin, length = starts[chosen], lengths[chosen]
    low[chosen] = words[begin] & _FIRST_BYTES[np.minimum(length, 8)]
    high[chosen] = words[begin + 8] & _FIRST_BYTES[np.maximum(length - 8, 0)]


def _universal(text: Bytes, starts: Ints, lengths: Ints, chosen: Ints, width: int, keys: _Keys, low: Words, high: Words) -> None:
    for some, rows in _rows(text, starts, lengths, chosen, width):
        words = rows.view("<u4")
        low[some] = _nh(words + keys.first[: width // 4])
        high[some] = _nh(words + keys.second[: width // 4])


def _nh(sums: NDArray[np.uint32]) -> Words:
    """Sum of the products of neighbours, modulo 2^64."""
    pairs: Words = sums.view("<u8")
    products: Words = np.einsum("ij,ij->i", pairs & _LOW, pairs >> _U64(32))
    return products


def _long(text: Bytes, starts: Ints, lengths: Ints, chosen: Ints, keys: _Keys, low: Words, high: Words) -> None:
    for index in chosen.tolist():
        content = text[starts[index] : starts[index] + lengths[index]].data
        digest = np.frombuffer(hashlib.blake2b(content, digest_size=16, key=keys.long).digest(), dtype="<u8")
        low[index], high[index] = digest[0], digest[1]


def siphash(key: Words, low: Words, high: Words, tail: Words) -> Words:
    """SipHash-2-4 of messages of 23 bytes: two words and seven bytes of a third, one message per index."""
    hashes = np.empty(len(low), dtype=np.uint64)
    for begin in range(0, len(low), _LANES):
        lanes = slice(begin, begin + _LANES)
        # The last block of SipHash holds the bytes that are left, and the length of the whole in its top byte.
        last = tail[lanes] & _U64((1 << 56) - 1) | _U64(23 << 56)
        # The four words of each state are the rows of two arrays: most calls hash few texts, and then fewer steps take less time.
        outer, inner = np.repeat(_SIP_OUTER ^ key[0], len(last), axis=1), np.repeat(_SIP_INNER ^ key[1], len(last), axis=1)
        for block in (low[lanes], high[lanes], last):
            inner[1] ^= block
            _sip_rounds(outer, inner, 2)
            outer[0] ^= block
        outer[1] ^= _U64(0xFF)
        _sip_rounds(outer, inner, 4)
        hashes[lanes] = outer[0] ^ inner[0] ^ outer[1] ^ inner[1]
    return hashes


def _sip_rounds(outer: Words, inner: Words, count: int) -> None:
    """Rounds of SipHash. Its words v0 and v2 are the rows of `outer`, v1 and v3 those of `inner`."""
    crossed, spare = outer[::-1], np.empty_like(outer)
    for _ in range(count):
        outer += inner
        _rotate(inner, _BY_13_AND_16, spare)
        inner ^= outer
        _rotate(outer[0], _BY_32, spare[0])
        crossed += inner
        _rotate(inner, _BY_17_AND_21, spare)
        inner ^= crossed
        _rotate(outer[1], _BY_32, spare[1])


def _rotate(words: Words, by: tuple[Words, Words], spare: Words) -> None:
    np.left_shift(words, by[0], out=spare)
    np.right_shift(words, by[1], out=words)
    words |= spare
