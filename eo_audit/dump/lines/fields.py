"""What a printed line consists of: fields, each a name and a value of some kind; some of them in some releases only.

Lines are data (`grammar`). From them come the regular expressions of the careful readers (here), the cursors of the fast one
(`fast.fields`) and the tables of docs/dialects.md (`.ci/dialects.py`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

Value = int | str | bool | None
Columns = dict[str, Value]
"""What a line prints, by column of the facts; what it does not print is not there."""

# The families of releases whose lines are told apart (`dialects.dialect`), with the first and the last release of each.
DIALECTS = {"2.2": ("2.2", "2.7"), "2.8": ("2.8", "2.8"), "3.0": ("3.0", "3.1"), "3.2": ("3.2", "3.2"), "3.3": ("3.3", "")}
_RANGE = re.compile(r"(?P<since>[\d.]+)(?: to (?P<until>[\d.]+)|(?P<later> and later))?")
_FOREVER = (1 << 31,)


class Kind:
    """What stands behind a name. Of this kind itself are texts that are passed over, by the careful readers alone.

    Attributes:
        told: what a page calls it.
        pattern: of its text, without groups.
        longest: most bytes of its text.
        read: the value of a text that has the pattern; a ValueError says that Kafka's field cannot hold it.
    """

    def __init__(self, told: str, pattern: bytes, longest: int, read: Callable[[bytes], Value] = bytes.decode) -> None:
        """See the attributes."""
        self.told, self.pattern, self.longest, self.read = told, pattern, longest, read


class Number(Kind):
    """An integer of so many digits at most that fits so many bits beside the sign: what does not is no line of the tool's."""

    def __init__(self, told: str, digits: int, bits: int, *, signed: bool = True) -> None:
        """As Java prints it: without zeros before it, and no `-0`."""
        least, behind = -(1 << bits), 1 << bits

        # Asked of each number that a careful reader reads.
        def read(printed: bytes) -> int:
            value = int(printed)
            if least <= value < behind:
                return value
            raise ValueError(f"{len(printed)} characters are no {told}")

        super().__init__(told, rb"(?:0|%s[1-9]\d{0,%d})" % (b"-?" if signed else b"", digits - 1), digits + 1, read)
        self.digits, self.bits, self.signed = digits, bits, signed


class OptionalNumber(Kind):
    """A number as a Java `OptionalLong`, None where that is empty."""

    def __init__(self, number: Number) -> None:
        """Of numbers of this kind."""
        begin = len(b"OptionalLong[")

        def read(printed: bytes) -> Value:
            return number.read(printed[begin:-1]) if printed.endswith(b"]") else None

        told, form = f"{number.told}: `OptionalLong[12]` or `OptionalLong.empty`", rb"OptionalLong(?:\.empty|\[%s\])"
        super().__init__(told, form % number.pattern, begin + number.longest + 1, read)
        self.number = number


class Words(Kind):
    """One of some words, the likeliest first; `upper`: in upper case before 3.0."""

    def __init__(self, *words: str, upper: bool = False) -> None:
        """These words."""
        meant = {word.upper().encode(): word for word in words if upper} | {word.encode(): word for word in words}
        told = ", ".join(f"`{word}`" for word in words) + ("; in upper case up to 2.8" if upper else "")
        super().__init__(told, rb"(?:%s)" % b"|".join(meant), max(map(len, meant)), meant.__getitem__)
        self.words, self.upper = words, upper


class Flag(Kind):
    """`true` or `false`."""

    def __init__(self) -> None:
        """As Java prints it."""
        super().__init__("`true` or `false`", rb"(?:true|false)", len("false"), {b"true": True, b"false": False}.__getitem__)


class Digit(Kind):
    """One digit from `first` to `last`; the fast reader knows the first one alone."""

    def __init__(self, first: int, last: int) -> None:
        """Both included."""
        joined = " or " if last == first + 1 else " to "
        super().__init__(f"{first}" if first == last else f"{first}{joined}{last}", rb"[%d-%d]" % (first, last), 1, int)
        self.first = first


class Fixed(Kind):
    """A text that is always the same."""

    def __init__(self, text: str) -> None:
        """This text."""
        super().__init__(f"`{text}`", re.escape(text).encode(), len(text))
        self.text = text.encode()


class Field(NamedTuple):
    """A name, what stands behind it, and the column that keeps it; `old`: its name before 3.0, where that was another one."""

    printed: str
    kind: Kind
    column: str | None = None
    old: str | None = None

    @property
    def pattern(self) -> bytes:
        """Of the name and the value, with a group for what a column keeps."""
        name = re.escape(self.printed) if self.old is None else f"(?:{self.old}|{self.printed})"
        return b" %s: %s" % (name.encode(), _group(self.kind, self.column))

    @property
    def longest(self) -> int:
        """Most bytes of it, in print."""
        return len(" : ") + max(len(self.printed), len(self.old or "")) + self.kind.longest


class Stamp(NamedTuple):
    """A time behind the name of its kind; there may be a column for the time, and one for the kind."""

    kinds: Words
    time: Number
    column: str
    kind_column: str | None = None

    @property
    def pattern(self) -> bytes:
        """See `Field.pattern`."""
        return b" %s: %s" % (_group(self.kinds, self.kind_column), _group(self.time, self.column))

    @property
    def longest(self) -> int:
        """See `Field.longest`."""
        return len(" : ") + self.kinds.longest + self.time.longest


class Part(NamedTuple):
    """Fields that are printed together or not at all.

    `when`: releases, as a page names them: `2.8`, `2.2 to 2.7, 3.0 and later`. Of one of several parts it may say what it likes.
    """

    when: str
    fields: "tuple[Item, ...]"

    @property
    def pattern(self) -> bytes:
        """See `Field.pattern`."""
        return b"(?:%s)?" % _pattern(self.fields)

    @property
    def longest(self) -> int:
        """See `Field.longest`."""
        return sum(field.longest for field in self.fields)


class OneOf(NamedTuple):
    """Parts of which a line has one; that of magic 2 comes first."""

    parts: tuple[Part, ...]

    @property
    def pattern(self) -> bytes:
        """See `Field.pattern`."""
        return b"(?:%s)" % b"|".join(_pattern(part.fields) for part in self.parts)

    @property
    def longest(self) -> int:
        """See `Field.longest`."""
        return max(part.longest for part in self.parts)


Item = Field | Stamp | Part | OneOf


def _group(kind: Kind, column: str | None) -> bytes:
    return kind.pattern if column is None else b"(%s)" % kind.pattern


def _pattern(items: Iterable[Item]) -> bytes:
    return b"".join(item.pattern for item in items)


def fields_of(items: Iterable[Item], when: str = "") -> Iterator[tuple[str, Field | Stamp]]:
    """All fields in their order of print, and when each is printed."""
    for item in items:
        if isinstance(item, Part):
            yield from fields_of(item.fields, item.when)
        elif isinstance(item, OneOf):
            yield from (field for part in item.parts for field in fields_of(part.fields, part.when))
        else:
            yield when, item


def fields_in(items: Iterable[Item], dialect: str) -> Iterator[Field | Stamp | Part]:
    """What a line of magic 2 has in one dialect of 2.2 and later; a part that only some releases of it print comes as a part."""
    for item in items:
        if isinstance(item, OneOf):
            yield from fields_in(item.parts[0].fields, dialect)
        elif not isinstance(item, Part) or (printed := _is_printed(item.when, dialect)) is None:
            yield item
        elif printed:
            yield from fields_in(item.fields, dialect)


def _is_printed(when: str, dialect: str) -> bool | None:
    """Do the releases of a dialect print what these releases print? None: some of them do."""
    begin, end = (_release(name) for name in DIALECTS[dialect])
    said = [_RANGE.fullmatch(part) for part in when.split(", ")]
    if None in said:
        raise ValueError(f"{when!r} are no releases")
    spans = [(_release(one["since"]), _release("" if one["later"] else one["until"] or one["since"])) for one in said if one]
    if any(since <= begin and end <= until for since, until in spans):
        return True
    return None if any(since <= end and begin <= until for since, until in spans) else False


def _release(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".")) if name else _FOREVER


class Line:
    """One kind of line.

    Attributes:
        first, others: what it consists of, in the order of print.
        beginning: the first name, as printed.
        pattern: its regular expression.
        columns: the column of each group of the pattern, in order.
    """

    def __init__(self, first: Field, *others: Item, behind: bytes = b"") -> None:
        """Of a field and what follows it; `behind` is the pattern of what ends the line."""
        self.first, self.others = first, others
        self.beginning = f"{first.printed}: ".encode()
        # No blank stands before the first name.
        self.pattern = re.compile(_pattern(self.items)[1:] + behind)
        kept = [pair for _, field in fields_of(self.items) for pair in _kept(field)]
        self.columns = tuple(column for column, _ in kept)
        self._kept = tuple((column, kind.read) for column, kind in kept)

    @property
    def items(self) -> tuple[Item, ...]:
        """All that it consists of."""
        return (self.first, *self.others)

    def read(self, match: re.Match[bytes]) -> Columns | None:
        """The columns of a line that has the pattern; None where Kafka's fields cannot hold its numbers."""
        try:
            return {
                column: read(printed) for (column, read), printed in zip(self._kept, match.groups(), strict=True) if printed is not None
            }
        except ValueError:
            return None


class Wording(Line):
    """Fields between fixed words, as the `toString` of a Scala class prints them; the words name the fields."""

    def __init__(self, *pieces: str | Field, behind: bytes = b"") -> None:
        """Of words and fields, in the order of print; `behind` is the pattern of what ends it."""
        first, *others = (piece for piece in pieces if isinstance(piece, Field))
        super().__init__(first, *others)
        printed = (re.escape(one).encode() if isinstance(one, str) else _group(one.kind, one.column) for one in pieces)
        self.pattern = re.compile(b"".join(printed) + behind)


def assigned(*fields: Field) -> Iterator[str | Field]:
    """The pieces of a `Wording` that prints `name=value, name=value`."""
    for at, field in enumerate(fields):
        yield from (f"{', ' * (at > 0)}{field.printed}=", field)


def _kept(field: Field | Stamp) -> Iterator[tuple[str, Kind]]:
    """The columns that keep a field, and what is in them, in the order of its groups."""
    pairs = ((field.kind_column, field.kinds), (field.column, field.time)) if isinstance(field, Stamp) else ((field.column, field.kind),)
    yield from ((column, kind) for column, kind in pairs if column is not None)
