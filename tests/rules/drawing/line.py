"""One line of a drawing: what stands at an offset, whose it is, and what else is to be said of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eo_audit.words import visible

Row = Mapping[str, object]
Place = tuple[str, int, int]


@dataclass(frozen=True)
class Line:
    """One line of a drawing.

    Attributes:
        block: what it stands in: `log`, `coordinator`, `offsets`, `index`, `snapshot`, `file` or `dump`.
        place: topic, partition and broker.
        first, last: the offsets where it stands; None where it has none.
        cells: heading of a column to what stands there.
        remarks: what else is to be said of it.
    """

    block: str
    place: Place
    first: int | None
    last: int | None
    cells: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def clock(ms: object) -> str:
    """A time of a case, whose clock begins at 0: `00:16:40`, `2 d 00:00:05.003`."""
    if not isinstance(ms, int):
        return ""
    days, rest = divmod(ms, 86_400_000)
    hours, minutes, seconds = rest // 3_600_000, rest // 60_000 % 60, rest // 1_000 % 60
    return f"{f'{days} d ' if days else ''}{hours:02}:{minutes:02}:{seconds:02}" + (f".{rest % 1_000:03}" if rest % 1_000 else "")


def at(first: object, last: object) -> str:
    """`6-8`, `6`; empty for none."""
    if first is None or last in (None, first):
        return "" if first is None else str(first)
    return f"{first}-{last}" if isinstance(last, int) and last >= 0 else f"{first} to {last}"


def text(value: object) -> str:
    """A value as it is shown: nothing for none, partitions by name."""
    if isinstance(value, list):
        return (
            ", ".join(f"{item['topic']}-{item['partition']}" if isinstance(item, dict) else str(item) for item in value) or "no partition"
        )
    return "" if value is None else visible(value)


def number(value: object) -> str:
    """A number; nothing for none, and for the -1 that Kafka prints for none."""
    return "" if value in (None, -1) else str(value)


def whole(value: object) -> int | None:
    """An offset or a time; None where a row does not name it."""
    return value if isinstance(value, int) else None


def remarks(*said: str) -> tuple[str, ...]:
    """What is to be said, each once, without what is empty."""
    return tuple(dict.fromkeys(one for one in said if one))


def rest(row: Row, known: str) -> tuple[str, ...]:
    """Columns that a function does not know, said as they are called: a new rule has its page without an edit here."""
    told = {name: value for name, value in row.items() if name not in known.split()}
    return tuple(f"{'no ' if value is False else ''}{name.replace('_', ' ')} {_value(value)}".strip() for name, value in told.items())


def _value(value: object) -> str:
    return "" if isinstance(value, bool) else text(value)
