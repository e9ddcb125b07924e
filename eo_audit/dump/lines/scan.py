"""Many lines at once: a cursor per line moves over literals, numbers and choices, in numpy.

Text is read eight bytes at a time. A cursor whose line is not what was asked for is marked and moves on with nonsense: its values mean
nothing. Numbers of more than 16 digits mark the line too; the exact reader knows them.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from eo_audit.dump.lines.hashes import PADDING

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]


# Constants are arrays without a dimension: numpy takes half as long for them as for its scalars, and most stretches have few lines.
def _word(value: int) -> Words:
    return np.array(value, dtype=np.uint64)


# Eight bytes are judged as one number: ASCII digits are 0x30 to 0x39.
_NIBBLES, _ZEROS, _SIXES = _word(0xF0F0F0F0F0F0F0F0), _word(0x3030303030303030), _word(0x0606060606060606)
_ONE, _LOW_NIBBLES = _word(1), _word(0x0F0F0F0F0F0F0F0F)
# Neighbours are added up by one product, a shift behind it and a mask that leaves every second: digits, then pairs, then fours.
_PAIRS, _FOURS, _EIGHT = ((_word(10**n << 8 * n | 1), _word(8 * n)) for n in (1, 2, 4))
_EVERY_PAIR, _EVERY_FOUR = _word(0x00FF00FF00FF00FF), _word(0x0000FFFF0000FFFF)
_EIGHTHS = np.array(3, dtype=np.uint8)
# Products with these move so many first bytes of a word to its top; numpy leaves a shift by 64 undefined.
_LIFTS = np.array([0, *(1 << 64 - 8 * n for n in range(1, 9))], dtype=np.uint64)
_FIRST_BYTE, _MINUS = _word(0xFF), _word(ord("-"))
_ZERO_AND_DIGIT, _ZERO_BEFORE = _word(0xF0FF), _word(0x3030)
# Of the second word at most eight digits are added behind those of the first.
_TENS = np.array([10**n for n in range(9)], dtype=np.int64)


@cache
def _pieces(literal: bytes) -> tuple[tuple[int, Words | None, Words], ...]:
    """A literal as words: where each begins, which of its bits count (None: all), and what they are."""
    if len(literal) < 8:
        return ((0, _word((1 << 8 * len(literal)) - 1), _word(int.from_bytes(literal, "little"))),)
    # The last piece reaches back into the one before, and is a whole word like the others.
    begins = (min(begin, len(literal) - 8) for begin in range(0, len(literal), 8))
    return tuple((begin, None, _word(int.from_bytes(literal[begin : begin + 8], "little"))) for begin in begins)


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
        rows[: len(starts) * width] = self.rows(width)[starts].reshape(-1)
        return Octets(rows, 0, len(starts) * width)

    def rows(self, width: int) -> NDArray[np.uint8]:
        """So many bytes from each byte on, without a copy."""
        # `sliding_window_view` takes as long as reading three fields of a few lines.
        return np.ndarray((self.size + PADDING - width + 1, width), dtype=np.uint8, buffer=self.bytes, strides=(1, 1))

    def words(self, at: Ints) -> Words:
        """The eight bytes from each offset on, the first one lowest."""
        return self._words[at]

    def byte(self, at: Ints) -> NDArray[np.uint8]:
        """The byte at each offset."""
        return self.bytes[at]

    def stands(self, literal: bytes, at: Ints) -> Bits:
        """Does the literal stand at each offset?"""
        (_, mask, wanted), *others = _pieces(literal)
        words = self._words[at]
        found: Bits = (words if mask is None else words & mask) == wanted
        for begin, _, wanted in others:
            found &= self._words[at + begin] == wanted
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
            negative = (words & _FIRST_BYTE) == _MINUS
            if np.count_nonzero(negative):
                self.at += negative
                words = self.text.words(self.at)
            else:
                negative = None
        length, value = _leading_number(words)
        full = length == 8
        if np.count_nonzero(full):
            more, low = _leading_number(self.text.words(self.at + 8))
            more *= full
            value = value * _TENS[more] + low * full
            length += more
        # Java prints no zeros before a number, and no -0: here a zero, and a byte of the upper nibble that digits have behind it.
        self.ok &= (words & _ZERO_AND_DIGIT) != _ZERO_BEFORE
        if negative is not None:
            self.ok &= ~negative | (value > 0)
        # Sixteen digits fill both words, and more may follow that nobody saw.
        most = min(digits, 15)
        self.ok &= length > 0
        self.ok &= length <= most
        if 10**most > 1 << bits:
            self.ok &= value < 1 << bits
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
    # The lowest bit set belongs to the first byte that is no digit; bits below it, by eight, are the digits: all where no bit is set.
    length = np.bitwise_count((others & -others) - _ONE) >> _EIGHTHS
    value = words * _LIFTS[length] & _LOW_NIBBLES
    for (product, shift), mask in ((_PAIRS, _EVERY_PAIR), (_FOURS, _EVERY_FOUR)):
        value = value * product >> shift & mask
    return length.astype(np.int64), (value * _EIGHT[0] >> _EIGHT[1]).view(np.int64)
