"""Small words for messages: offsets, counts, durations and names, safe for a terminal and for a shell."""

import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime


def shown(name: str | None) -> str:
    """A name from a dump, with its control characters escaped."""
    if name is None:
        return "(none)"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def shell(name: str) -> str:
    """A name as one word of a bash command, whatever it holds; without a back quote, which ends a command in a remedy."""
    if all(_is_plain(c) for c in name):
        return shlex.quote(name)
    return f"$'{''.join(c if _is_plain(c) and c not in _QUOTED else _bytes(c) for c in name)}'"


_QUOTED = frozenset("\\'")


def _is_plain(c: str) -> bool:
    return c.isprintable() and c != "`"


def _bytes(c: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in c.encode("utf-8", "surrogatepass"))


def count(number: int | None, noun: str, plural: str | None = None) -> str:
    """`1 record`, `3 records`."""
    number = number or 0
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}".replace(",", " ")


def offsets(first: int | None, last: int | None) -> str:
    """`offset 4`, `offsets 4 to 9`."""
    if first is None:
        return "an offset that the dump does not show"
    return f"offset {first}" if last is None or last == first else f"offsets {first} to {last}"


def duration(ms: int | None) -> str:
    """Milliseconds as a person says them: `800 ms`, `2.5 s`, `12 min`, `3 h 20 min`, `2 d`."""
    if ms is None:
        return "an unknown time"
    if abs(ms) < 1_000:
        return f"{ms} ms"
    if abs(ms) < 60_000:
        return f"{round(ms / 1_000, 1):g} s"
    minutes = ms // 60_000
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return f"{minutes // 1_440} d"


def partitions(names: Iterable[tuple[str, int]], *, most: int = 6) -> str:
    """`orders-0, orders-1`; the first few of many."""
    listed = [f"{shown(topic)}-{partition}" for topic, partition in sorted(set(names))]
    return some(listed, most=most)


def some(items: Sequence[str], *, most: int = 6) -> str:
    """Items with commas; the first few of many, and how many more."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def moment(ms: int, now_ms: int | None = None) -> str:
    """Milliseconds since the epoch as a UTC time: `05:21:43 UTC` on the day of `now_ms`, else with its date."""
    try:
        at = datetime.fromtimestamp(ms / 1_000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms after 1970"
    today = now_ms is not None and now_ms // 86_400_000 == ms // 86_400_000
    return at.strftime("%H:%M:%S UTC" if today else "%Y-%m-%d %H:%M:%S UTC")
