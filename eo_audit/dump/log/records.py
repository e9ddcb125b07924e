"""Where does a record end? Every reading of the text behind a record line's numbers that its lengths allow, the best proven first.

Header keys, key and payload are somebody's data: they may contain line feeds and perfect forgeries of everything a dump contains. Only
`keySize` and `valueSize` delimit key and payload; header keys are unbounded text, so each `]` is a candidate for their end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

from eo_audit.dump.lines.decoders import Decoded
from eo_audit.dump.lines.dialects import CONTROL, CONTROL_TYPES, LONGEST_LINE, RecordLine
from eo_audit.dump.lines.printed import INT
from eo_audit.dump.log.text import Window

_KEY, _PAYLOAD = b" key: ", b" payload: "
_EXCEPTION = b'Exception in thread "'
LINES_LIMIT = 1 << 16  # bytes of a record whose text no length delimits
_DECODED_SPARE = 1 << 16  # bytes a decoded record may be longer than eight times its binary sizes
_MOST_DECODED = 64  # readings of one decoded record

Decoder = Callable[..., Iterator[Decoded]]
Span = tuple[int, int]
Form = tuple[bool, bool]
"""What is printed behind the header keys: a key, a payload."""

_BEHIND_HEADERS: dict[Form, bytes] = {
    (True, True): b"] key: ",
    (True, False): b"] key: ",
    (False, True): b"] payload: ",
    (False, False): b"]",
}


class Proof(IntEnum):
    """How an end was found: by lengths, by lengths of text that lost bytes in printing, or by what follows alone."""

    EXACT = 0
    LOSSY = 1
    LINE = 2


class Marker(NamedTuple):
    """What a control record says: COMMIT or ABORT with the coordinator epoch, or another control type."""

    marker_type: str | None
    coordinator_epoch: int | None
    control_type: str | None


class Ending(NamedTuple):
    """One reading of a record's text.

    `end` is behind its line end; `headers` is the length of its header keys; `key` and `value` are spans of text that stand for exactly
    the bytes of the record (None: null, not printed, or lossy). `printed` is None where nothing could be printed.
    """

    end: int
    proof: Proof
    headers: int = 0
    key: Span | None = None
    value: Span | None = None
    printed: bool | None = None
    decoded: Decoded | None = None
    marker: Marker | None = None
    ascii_lossy: bool = False


@dataclass(frozen=True)
class Rules:
    """What is known of the records of one batch.

    Attributes:
        printed: keys and payloads are printed; None while no record of the section has shown it.
        hides_keys: a null value may hide its key (tools up to 2.3.1).
        control: the batch is a control batch.
        size_limit: most bytes that key and value of a record can have together.
        header_limit: most bytes of header keys that are looked through.
        decoder: reads the text of a topic decoder, on the internal topics.
        by_lines: no record of the section was ever delimited by its lengths, so an end may be taken from what follows.
        one_line: only header keys without a line feed are considered.
    """

    printed: bool | None
    hides_keys: bool
    control: bool
    size_limit: int
    header_limit: int
    decoder: Decoder | None = None
    by_lines: bool = True
    one_line: bool = False


def endings(window: Window, line: RecordLine, rules: Rules) -> Iterator[Ending]:
    """Readings of a record by exact lengths, the first end of its header keys first.

    Raises:
        NeedMore: a reading would go on behind the window.
    """
    if rules.control:
        yield from _control(window, line)
        return
    # More than the batch can hold: a forged line, or one of another batch.
    if max(line.key_size, 0) + max(line.value_size, 0) > rules.size_limit:
        return
    if rules.decoder is not None and rules.printed is not False:
        decoded = _decoded(window, line, rules.decoder)
        first = next(decoded, None)
        if first is not None:
            yield first
            yield from decoded
            return
    for form in forms(line, rules):
        for close in _header_ends(window, line, rules, _BEHIND_HEADERS[form]):
            yield from _exact(window, line, rules, close, form)


def special_endings(window: Window, line: RecordLine, rules: Rules) -> list[Ending]:
    """All readings of a control record, or of one that a topic decoder printed; none where it is neither.

    Raises:
        NeedMore: a reading would go on behind the window.
    """
    if rules.control:
        return list(_control(window, line))
    if rules.decoder is None or rules.printed is False:
        return []
    return list(islice(_decoded(window, line, rules.decoder), _MOST_DECODED))


def cut_by_exception(window: Window, line: RecordLine) -> int | None:
    """Where an exception cut the record line, if one did: the tool prints the text behind the header keys only after decoding it."""
    at = line.end + 1 if line.sequence is not None else line.end
    return at if window.text.startswith(_EXCEPTION, at) and window.text.startswith(b"]", at - 1) else None


def _header_ends(window: Window, line: RecordLine, rules: Rules, behind: bytes) -> Iterator[int]:
    """Where header keys may end: behind each `]` before what comes next. Magic 0 and 1 have none."""
    if line.sequence is None:
        yield line.end
        return
    limit = line.end + rules.header_limit + len(behind)
    if rules.one_line:
        newline = window.text.find(b"\n", line.end, limit)
        limit = newline if newline >= 0 else limit
    close = window.text.find(behind, line.end, limit)
    while close >= 0:
        yield close + 1
        close = window.text.find(behind, close + 1, limit)
    window.reach(limit)


def forms(line: RecordLine, rules: Rules) -> list[Form]:
    """What may be printed behind the header keys of a record, as (key, payload)."""
    full = (line.key_size >= 0, line.value_size >= 0)
    if rules.printed is False or not any(full):
        return [(False, False)]
    # Until a record of the section has shown it nobody knows whether --print-data-log was given.
    bare = rules.printed is None or (rules.hides_keys and not full[1])
    return [full, (False, False)] if bare else [full]


def shows(line: RecordLine, rules: Rules, form: Form) -> bool | None:
    """Whether a record in this form shows that payloads are printed, that they are not, or neither."""
    if any(form):
        return True
    nothing_to_print = line.value_size < 0 and (line.key_size < 0 or rules.hides_keys)
    return None if nothing_to_print else False


def _exact(window: Window, line: RecordLine, rules: Rules, close: int, form: Form) -> Iterator[Ending]:
    key = _exact_span(window, _KEY, close, line.key_size) if form[0] else None
    if form[0] and key is None:
        return
    behind = close if key is None else key[1]
    value = _exact_span(window, _PAYLOAD, behind, line.value_size) if form[1] else None
    if form[1] and value is None:
        return
    at = behind if value is None else value[1]
    end = window.line_end(at)
    window.overshoot |= at > len(window.text)
    shown = shows(line, rules, form)
    if end is not None and (shown is not False or window.ends_line(end)):
        yield Ending(end, Proof.EXACT, _headers(line, close), key, value, shown)


def _span(window: Window, separator: bytes, at: int, size: int) -> Span | None:
    """The `size` bytes behind a separator that stands at `at`."""
    window.reach(at + len(separator))
    if not window.text.startswith(separator, at):
        window.overshoot |= len(window.text) - at < len(separator) and separator.startswith(window.text[at:])
        return None
    return at + len(separator), at + len(separator) + size


def _exact_span(window: Window, separator: bytes, at: int, size: int) -> Span | None:
    """The same where these bytes can be no others: a CRLF in a file whose lines end in CRLF may stand for two bytes or for one."""
    span = _span(window, separator, at, size)
    if span is None:
        return None
    if window.crlf:
        window.reach(span[1])
        window.overshoot |= span[1] > len(window.text)  # no text is shorter than its bytes for the line ends in it
    return None if _may_have_grown(window, span) else span


def _may_have_grown(window: Window, span: Span) -> bool:
    return window.crlf and window.text.find(b"\r\n", span[0], span[1] + 1) >= 0


def _headers(line: RecordLine, close: int) -> int:
    return close - line.end - 1 if line.sequence is not None else 0


def _decoded(window: Window, line: RecordLine, decoder: Decoder) -> Iterator[Ending]:
    sizes = max(line.key_size, 0) + max(line.value_size, 0)
    if not window.text.startswith(b"]", line.end):
        window.reach(line.end + 1)
        return
    window.reach(line.end + 3 * sizes + LONGEST_LINE)
    found = False
    for reading in decoder(window.text, line.end + 1, key_size=line.key_size, value_size=line.value_size):
        found = True
        yield Ending(reading.end, Proof.EXACT, decoded=reading, printed=True)
    if not found:
        window.reach(line.end + 8 * sizes + _DECODED_SPARE)


def _control(window: Window, line: RecordLine) -> Iterator[Ending]:
    """A control record prints no key and no payload, but what it says."""
    window.after_line(line.end)
    found = CONTROL.match(window.text, line.end + 1) if window.text.startswith(b"]", line.end) else None
    if found is None:
        window.overshoot |= window.text.find(b"\n", line.end) < 0
        return
    end = window.line_end(found.end())
    if end is None or not window.ends_line(end):  # a number that was cut is a wrong number
        window.overshoot |= end is not None
        return
    marker, epoch, name, kind = found.groups()
    if marker is None:
        yield Ending(end, Proof.EXACT, marker=Marker(None, None, CONTROL_TYPES.get(name) or kind.decode()))
    elif -(1 << INT) <= int(epoch) < 1 << INT:
        yield Ending(end, Proof.EXACT, marker=Marker(marker.decode(), int(epoch), None))
