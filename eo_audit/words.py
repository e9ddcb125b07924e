"""The words of every message, table and page: names that are safe to print, numbers, lengths of time, moments and places; one of each."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

Row = Mapping[str, object]


def visible(text: object) -> str:
    """Text of which every character prints: control, direction-changing and unassigned characters are spelled out."""
    text = str(text)
    if text.isprintable():  # nearly all are, and to ask each character takes ten times as long
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)


def visible_lines(text: object) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(map(visible, str(text).split("\n")))


def shown(name: str | None) -> str:
    """A name from a dump that may be missing."""
    return "(none)" if name is None else visible(name)


def json_text(value: object, *, indent: int | None = None) -> str:
    """A value as JSON that can be read and printed: letters of all scripts as they are, what does not print as an escape of JSON."""
    return _NOT_ASCII.sub(_json_escape, json.dumps(value, indent=indent, ensure_ascii=False))


_NOT_ASCII = re.compile(r"[^\x00-\x7e]")  # json.dumps escapes the controls of ASCII but DEL; the newlines of an indented text are its own


def _json_escape(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1]


def shell(name: str) -> str:
    """A name as one word of a bash command, whatever it holds; without a back quote, which ends a command in a remedy."""
    if all(_is_plain(c) for c in name):
        return shlex.quote(name)
    # ANSI-C quoting of bash: the only one that can write a line feed or an escape so that a person sees it.
    return f"$'{''.join(c if _is_plain(c) and c not in _QUOTED else _bytes(c) for c in name)}'"


_QUOTED = frozenset("\\'")


def _is_plain(c: str) -> bool:
    return c.isprintable() and c != "`"


def _bytes(c: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in c.encode("utf-8", "surrogatepass"))


def digits(value: object) -> str:
    """`12,345`; a dash where nobody knows."""
    return f"{value:,}" if isinstance(value, int) else "–"


def count(number: int | None, noun: str, plural: str | None = None) -> str:
    """`1 record`, `3 records`, `12,345 records`."""
    number = number or 0
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def in_bytes(size: int) -> str:
    """A size for a person: 812 bytes, 1.4 MB."""
    if size < 1_000:
        return f"{size} bytes"
    power = 3 if size >= 1_000**3 else 2 if size >= 1_000**2 else 1
    return f"{size / 1_000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


def offsets(first: int | None, last: int | None) -> str:
    """`offset 4`, `offsets 4 to 9`."""
    if first is None:
        return "an offset that the dump does not show"
    return f"offset {first}" if last is None or last == first else f"offsets {first} to {last}"


def offset_range(row: Row) -> str:
    """The offsets a finding is about, for a column of a table: 6-8, or 6; empty where it is about none."""
    first, last = row.get("first_offset"), row.get("last_offset")
    return "" if first is None else str(first) if last in (None, first) else f"{first}-{last}"


def duration(ms: int | None) -> str:
    """Milliseconds as a person says them: `800 ms`, `2.5 s`, `12 min`, `3 h 20 min`, `2 d`."""
    if ms is None:
        return "an unknown time"
    if abs(ms) < 1_000:
        return f"{ms} ms"
    if abs(ms) < 60_000:
        return f"{round(ms / 1_000, 1):g} s"
    # Cut off, not rounded: who is told 15 min may rely on it that a timeout of 15 min is over.
    minutes = ms // 60_000
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return f"{minutes // 1_440} d"


# KIP-939: `TransactionMetadata.isDistributedTwoPhaseCommitTxn`; the coordinator writes Integer.MAX_VALUE, which is no length of time.
NEVER_TIMES_OUT = 2_147_483_647


def timeout(ms: int | None) -> str:
    """A transaction timeout as a person says it: its duration, or `none` where it never ends a transaction (two phases, KIP-939)."""
    return "none" if ms == NEVER_TIMES_OUT else duration(ms)


def moment(ms: object, now_ms: object = None) -> str:
    """Milliseconds since the epoch as a UTC time: `05:21:43 UTC` on the day of `now_ms`, else with its date; a dash where nobody knows."""
    if not isinstance(ms, int) or ms < 0:
        return "–"
    try:
        at = datetime.fromtimestamp(ms / 1_000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms after 1970"
    # On the day of the audit a date says nothing; of another day the hour alone would mislead.
    today = isinstance(now_ms, int) and now_ms // 86_400_000 == ms // 86_400_000
    return at.strftime("%H:%M:%S UTC" if today else "%Y-%m-%d %H:%M:%S UTC")


def moment_range(first_ms: int, last_ms: int) -> str:
    """Two moments as a UTC range: to the second within one day, `2026-11-21 04:15:10 to 04:16:23 UTC`, else to the minute."""
    first, last = moment(first_ms), moment(last_ms)
    if first == last:
        return first
    if not first[:1] == last[:1] == "2":  # a client's clock may say what no calendar has
        return f"{first} to {last}"
    if first[:10] == last[:10]:
        return f"{first[:-4]} to {last[11:]}"
    return f"{first[:16]} to {last[:16]} UTC"


def place(row: Row) -> str:
    """Where a finding or a partition lies: orders-3, a transactional id, a group, or the cluster."""
    if row.get("topic") is not None:
        return f"{row['topic']}-{row['partition']}" if row.get("partition") is not None else str(row["topic"])
    return str(row.get("transactional_id") or row.get("group") or row.get("cluster"))


def brokers(numbers: Sequence[object]) -> str:
    """`broker 2`, or `brokers 1, 2`; the first few of many."""
    return f"broker {numbers[0]}" if len(numbers) == 1 else f"brokers {some([str(number) for number in numbers])}"


def partitions(names: Iterable[tuple[str, int]], *, most: int = 6) -> str:
    """`orders-0, orders-1`; the first few of many."""
    listed = [f"{shown(topic)}-{partition}" for topic, partition in sorted(set(names))]
    return some(listed, most=most)


def some(items: Sequence[str], *, most: int = 6) -> str:
    """Items with commas; the first few of many, and how many more."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")
