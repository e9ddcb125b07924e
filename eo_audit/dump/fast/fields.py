"""All lines of one kind in a stretch of dump text at once, as columns: cursors that move over the fields of the grammar."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eo_audit.dump.lines.fields import Digit, Field, Fixed, Flag, Item, Kind, Line, Number, OptionalNumber, Part, Stamp, Words, fields_in
from eo_audit.dump.lines.scan import Bits, Cursors, Ints, Octets

_FLAGS = (b"true", b"false")
_OPTIONAL = (b"OptionalLong.empty", b"OptionalLong[")
_Values = TypeVar("_Values", Ints, Bits, NDArray[np.int32])


@dataclass(frozen=True)
class Dialect:
    """How the lines of a section are printed, where releases differ.

    `name`: as in `dump_sections.dialect`. `printed`: keys and payloads are printed. `decoder`: the topic decoder that printed them (a value
    of `dump_sections.decoder`), if any.
    """

    name: str
    printed: bool
    crlf: bool = False
    decoder: str | None = None

    @property
    def is_old(self) -> bool:
        """Is it of a release before 3.0? They have codecs in upper case, and `keysize`."""
        return self.name < "3"

    @property
    def line_end(self) -> bytes:
        """What ends a line."""
        return b"\r\n" if self.crlf else b"\n"


@dataclass
class Arrays:
    """Columns of some lines.

    Attributes:
        numbers, flags: by name.
        words: which one of some words, and these.
        given: of columns that may be null, where they are not.
    """

    numbers: dict[str, Ints] = field(default_factory=dict)
    flags: dict[str, Bits] = field(default_factory=dict)
    words: dict[str, tuple[NDArray[np.int32], tuple[str, ...]]] = field(default_factory=dict)
    given: dict[str, Bits] = field(default_factory=dict)


@dataclass(frozen=True)
class LineColumns:
    """Lines of one kind from `start` to `end`; of one that is not `ok` no column means anything."""

    start: Ints
    end: Ints
    ok: Bits
    columns: Arrays

    @property
    def numbers(self) -> dict[str, Ints]:
        """Columns of numbers."""
        return self.columns.numbers

    @property
    def flags(self) -> dict[str, Bits]:
        """Columns of truth values."""
        return self.columns.flags

    def codes(self, column: str) -> NDArray[np.int32]:
        """A column of words, by their number."""
        return self.columns.words[column][0]


def read_lines(text: Octets, starts: Ints, line: Line, dialect: Dialect, *, behind: bytes = b"") -> LineColumns:
    """Candidates for lines of one kind, of magic 2.

    Args:
        text: the stretch.
        starts: of the candidates; each begins with the name of the line's first field.
        line: the kind.
        dialect: in which they are printed.
        behind: what ends them.
    """
    width = _width(line, dialect.name) + len(behind)
    rows = np.arange(len(starts)) * width
    fields = _Fields(Cursors(text.beginnings(starts, width), rows + len(line.beginning)), dialect)
    fields.value(line.first.kind, line.first.column)
    fields.read(line.others)
    fields.literal(behind)
    cursors = fields.end()
    return LineColumns(starts, starts + cursors.at - rows, cursors.ok, fields.columns)


@cache
def _width(line: Line, dialect: str) -> int:
    """Bytes of the longest line of a kind: what is read again and again should lie close together, so no more of each is looked at."""
    return sum(item.longest for item in fields_in(line.items, dialect))


@cache
def _printed_in(items: tuple[Item, ...], dialect: str) -> tuple[Field | Stamp | Part, ...]:
    return tuple(fields_in(items, dialect))


class _Fields:
    """Reads field by field; literals are gathered, and passed over with what comes behind them."""

    def __init__(self, line: Cursors, dialect: Dialect) -> None:
        self._line, self._dialect, self._pending = line, dialect, b""
        self.columns = Arrays()

    def literal(self, text: bytes) -> None:
        """Pass over a text."""
        self._pending += text

    def end(self) -> Cursors:
        """Where the lines stand, with all literals passed over."""
        if self._pending:
            self._line.literal(self._pending)
            self._pending = b""
        return self._line

    def read(self, items: Iterable[Item]) -> None:
        """Read what these items have in the dialect."""
        for item in _printed_in(tuple(items), self._dialect.name):
            if isinstance(item, Part):
                self._look_for(item)
            elif isinstance(item, Stamp):
                self._stamp(item)
            else:
                name = item.old if self._dialect.is_old and item.old else item.printed
                self.literal(b" %s: " % name.encode())
                self.value(item.kind, item.column)

    def value(self, kind: Kind, column: str | None) -> None:
        """Read a value."""
        # What no column keeps is read like the rest, under no name.
        name, columns = column or "", self.columns
        if isinstance(kind, Fixed):
            self.literal(kind.text)
        elif isinstance(kind, Digit):
            self.literal(b"%d" % kind.first)
            columns.numbers[name] = np.full(len(self._line.at), kind.first, dtype=np.int64)
        elif isinstance(kind, Number):
            columns.numbers[name] = _number(self.end(), kind)
        elif isinstance(kind, Flag):
            columns.flags[name] = self.end().choice(_FLAGS) == 0
        elif isinstance(kind, Words):
            upper = kind.upper and self._dialect.is_old
            words = [(word.upper() if upper else word).encode() for word in kind.words]
            columns.words[name] = self.end().choice(words), kind.words
        elif isinstance(kind, OptionalNumber):
            columns.given[name], columns.numbers[name] = _optional_number(self.end(), kind.number)
        else:
            raise TypeError(f"only the careful readers pass over {kind.told}")

    def _stamp(self, stamp: Stamp) -> None:
        line = self.end()
        kind = line.choice([b" %s: " % word.encode() for word in stamp.kinds.words])
        self.columns.words[stamp.kind_column or ""] = kind, stamp.kinds.words
        self.columns.numbers[stamp.column] = _number(line, stamp.time)

    def _look_for(self, part: Part) -> None:
        """A part that some releases of the dialect print: it is there where its first name is."""
        line, (first, *_) = self.end(), part.fields
        assert isinstance(first, Field)
        there = line.text.stands(b" %s: " % first.printed.encode(), line.at)
        fields = _Fields(Cursors(line.text, line.at[there]), self._dialect)
        fields.read(part.fields)
        some = fields.end()
        line.at[there] = some.at
        line.ok[there] &= some.ok
        self._keep(fields.columns, there)

    def _keep(self, found: Arrays, there: Bits) -> None:
        """Columns of some of the lines; in the others they are null."""
        kept = self.columns
        kept.numbers |= {name: _spread(values, there) for name, values in found.numbers.items()}
        kept.flags |= {name: _spread(values, there) for name, values in found.flags.items()}
        kept.words |= {name: (_spread(chosen, there), words) for name, (chosen, words) in found.words.items()}
        given = dict.fromkeys((*found.numbers, *found.flags, *found.words), there)
        kept.given |= given | {name: _spread(values, there) for name, values in found.given.items()}


def _spread(values: _Values, there: Bits) -> _Values:
    spread = np.zeros(len(there), dtype=values.dtype)
    spread[there] = values
    return spread


def _number(line: Cursors, kind: Number) -> Ints:
    return line.number(digits=kind.digits, bits=kind.bits, signed=kind.signed)


def _optional_number(line: Cursors, kind: Number) -> tuple[Bits, Ints]:
    given = line.choice(_OPTIONAL) == 1
    value = np.zeros(len(line.at), dtype=np.int64)
    if given.any():
        some = Cursors(line.text, line.at[given])
        value[given] = _number(some, kind)
        some.literal(b"]")
        line.at[given] = some.at
        line.ok[given] &= some.ok
    return given, value
