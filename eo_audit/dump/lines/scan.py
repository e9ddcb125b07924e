"""Many lines at once: a cursor per line moves over literals, numbers and choices, in numpy.

Text is read eight bytes at a time. A cursor whose line is not what was asked for is marked and moves on with nonsense: its values mean
nothing. Numbers of more than 16 digits mark the line too; the exact reader knows them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from eo_audit.dump.lines.hashes import PADDING

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]


_U64 = np.uint64
# Eight bytes are judged as one number: ASCII digits are 0x30 to 0x39.
_NIBBLES, _ZEROS, _SIXES = _U64(0xF0F0F0F0F0F0F0F0), _U64(0x3030303030303030), _U64(0x0606060606060606)
# Of the second word at most eight digits are added behind those of the first.
_TENS = np.array([10**n for n in range(9)], dtype=np.int64)


class Octets:
    """A stretch of dump text that can be read eight bytes at a time from any byte.

    So can some text behind it, or zeros where the window ends: a cursor that begins inside does not get further.
    """

    def __init__(self, text: bytes | NDArray[np.uint8], start: int, stop: int) -> None:
        """Bytes [start, stop) of a text; offsets are those of the stretch."""
        self.size = min(stop, len(text)) - start
        if start + self.size + PADDING > len(text):
            text, start = bytes(text[start:]) + bytes(PADDING), 0
        self.bytes: NDArray[np.uint8] = np.frombuffer(text, dtype=np.uint8, count=self.size + PADDING, offset=start)
        # Words that overlap, one for each byte: no copy, and Kafka's lines keep nothing on a boundary of eight.
        self._words: Words = np.ndarray((self.size + PADDING - 7,), dtype="<u8", buffer=text, offset=start, strides=(1,))

    def beginnings(self, starts: Ints, width: int) -> "Octets":
        """The first bytes of some lines, one behind the other: what is read again and again should lie close together.

        Args:
            starts: of the lines.
            width: bytes of each.
        """
        rows = np.empty(len(starts) * width + PADDING, dtype=np.uint8)
        rows[: len(starts) * width] = sliding_window_view(self.bytes, width)[starts].reshape(-1)
        return Octets(rows, 0, len(starts) * width)

    def words(self, at: Ints) -> Words:
        """The eight bytes from each offset on, the first one lowest."""
        return self._words[at]

    def byte(self, at: Ints) -> NDArray[np.uint8]:
        """The byte at each offset."""
        return self.bytes[at]

    def stands(self, literal: bytes, at: Ints) -> Bits:
        """Does the literal stand at each offset?"""
        found = self._piece(literal[:8], at)
        for begin in range(8, len(literal), 8):
            # The last piece reaches back into the one before, and is a whole word like the others.
            begin = min(begin, len(literal) - 8)
            found &= self._piece(literal[begin : begin + 8], at + begin)
        return found

    def _piece(self, literal: bytes, at: Ints) -> Bits:
        wanted = _U64(int.from_bytes(literal, "little"))
        words = self.words(at)
        found: Bits = words == wanted if len(literal) == 8 else words & _U64((1 << 8 * len(literal)) - 1) == wanted
        return found


class Cursors:
    """One cursor per line, all at the same place of the grammar; `ok` is False where a line left it."""

    def __init__(self, text: Octets, at: Ints) -> None:
        """Cursors at these offsets."""
        self.text = text
        self.at = at
        self.ok: Bits = np.ones(len(at), dtype=bool)

    def literal(self, literal: bytes) -> None:
        """Pass over a literal."""
        self.ok &= self.text.stands(literal, self.at)
        self.at += len(literal)

    def choice(self, words: Sequence[bytes]) -> NDArray[np.int32]:
        """Pass over one of some literals, none a prefix of another and the likeliest first; which one."""
        found = self.text.stands(words[0], self.at)
        chosen = np.where(found, np.int32(0), np.int32(-1))
        others = np.flatnonzero(~found)
        for number, literal in enumerate(words[1:], start=1):
            if len(others) == 0:
                break
            found = self.text.stands(literal, self.at[others])
            chosen[others[found]] = number
            others = others[~found]
        self.ok &= chosen >= 0
        # A line without any of them moves on by the last one's length: it is marked, and where it stands means nothing.
        self.at += np.array([len(literal) for literal in words], dtype=np.int64)[chosen]
        return chosen

    def number(self, *, digits: int, bits: int, signed: bool = False) -> Ints:
        """Pass over a number of at most so many digits that fits so many bits beside the sign."""
        words = self.text.words(self.at)
        negative: Bits | None = None
        if signed:
            negative = (words & _U64(0xFF)) == _U64(ord("-"))
            if negative.any():
                self.at += negative
                words = self.text.words(self.at)
            else:
                negative = None
        length, value = _leading_number(words)
        if (length == 8).any():
            more, low = _leading_number(self.text.words(self.at + 8))
            more = np.where(length == 8, more, 0)
            value = np.where(length == 8, value * _TENS[more] + np.where(more > 0, low, 0), value)
            length = length + more
        # Java prints no zeros before a number, and no -0: here a zero, and a byte of the upper nibble that digits have behind it.
        self.ok &= (words & _U64(0xF0FF)) != _U64(0x3030)
        if negative is not None:
            self.ok &= ~negative | (value > 0)
        # Sixteen digits fill both words, and more may follow that nobody saw.
        self.ok &= (length > 0) & (length <= min(digits, 15)) & (value < (1 << bits if bits < 63 else 10**15))
        self.at += length
        return value if negative is None else np.where(negative, -value, value)

    def optional(self, literal: bytes, *, digits: int, bits: int) -> tuple[Bits, Ints]:
        """Pass over a literal and a signed number where both are there; whether they are, and the number."""
        given = self.text.stands(literal, self.at)
        value = np.zeros(len(given), dtype=np.int64)
        if given.any():
            some = Cursors(self.text, self.at[given] + len(literal))
            value[given] = some.number(digits=digits, bits=bits, signed=True)
            self.at[given] = some.at
            self.ok[given] &= some.ok
        return given, value


def _leading_number(words: Words) -> tuple[Ints, Ints]:
    """Digits at the beginning of each word, how many and their number.

    A byte is a digit when its upper nibble is 3 and stays 3 with 6 added. The digits are moved to the top of the word and summed pairwise.
    """
    others = ((words & _NIBBLES) ^ _ZEROS) | (((words + _SIXES) & _NIBBLES) ^ _ZEROS)
    # The lowest bit set belongs to the first byte that is no digit; bits below it, by eight, are the digits.
    lowest = others & (~others + _U64(1))
    length = (np.bitwise_count(lowest - _U64(1)) >> 3).astype(np.int64)
    length[others == 0] = 8
    shift = ((8 - length) << 3).astype(np.uint64)
    # numpy leaves a shift by 64 undefined, so a word without digits is set to nothing by hand.
    moved = np.where(length == 0, _U64(0), words << np.minimum(shift, _U64(63))) & _U64(0x0F0F0F0F0F0F0F0F)
    pairs = (moved * _U64(10) + (moved >> _U64(8))) & _U64(0x00FF00FF00FF00FF)
    fours = (pairs * _U64(100) + (pairs >> _U64(16))) & _U64(0x0000FFFF0000FFFF)
    value = (fours * _U64(10000) + (fours >> _U64(32))) & _U64(0xFFFFFFFF)
    return length, value.astype(np.int64)
