"""Where does a record end? Every reading of the text behind a record line's numbers that its lengths allow, the best proven first.

Header keys, key and payload are somebody's data: they may contain line feeds and perfect forgeries of everything a dump contains. Only
`keySize` and `valueSize` delimit key and payload; header keys are unbounded text, so each `]` is a candidate for their end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from eo_audit.dump.decoders import Decoded
from eo_audit.dump.dialects import CONTROL, CONTROL_TYPES, LONGEST_LINE, RecordLine
from eo_audit.dump.log_text import Window, lossy_cuts
from eo_audit.dump.printed import INT

_KEY, _PAYLOAD = b" key: ", b" payload: "
_EXCEPTION = b'Exception in thread "'
LINES_LIMIT = 1 << 16  # bytes of a record whose text no length delimits
_DECODED_SPARE = 1 << 16  # bytes a decoded record may be longer than eight times its binary sizes

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


def endings(window: Window, line: RecordLine, rules: Rules, worst: Proof) -> Iterator[Ending]:
    """Readings of a record, best first, none less proven than `worst`.

    Raises:
        NeedMore: a reading would go on behind the window.
    """
    if rules.control:
        yield from _control(window, line)
        return
    if max(line.key_size, 0) + max(line.value_size, 0) > rules.size_limit:
        return
    if rules.decoder is not None and rules.printed is not False:
        yield from _decoded(window, line, rules.decoder)
    for form in _forms(line, rules):
        for close in _header_ends(window, line, rules, _BEHIND_HEADERS[form]):
            yield from _exact(window, line, rules, close, form)
    if worst >= Proof.LOSSY:
        for form in (form for form in _forms(line, rules) if any(form)):
            for close in _header_ends(window, line, rules, _BEHIND_HEADERS[form]):
                yield from _lossy(window, line, close, form)
    if worst >= Proof.LINE and rules.by_lines:
        yield from _lines(window, line)


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


def _forms(line: RecordLine, rules: Rules) -> list[Form]:
    """What may be printed, as (key, payload)."""
    full = (line.key_size >= 0, line.value_size >= 0)
    if rules.printed is False or not any(full):
        return [(False, False)]
    bare = rules.printed is None or (rules.hides_keys and not full[1])
    return [full, (False, False)] if bare else [full]


def _shows(line: RecordLine, rules: Rules, form: Form) -> bool | None:
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
    shows = _shows(line, rules, form)
    if end is not None and (shows is not False or window.ends_line(end)):
        yield Ending(end, Proof.EXACT, _headers(line, close), key, value, shows)


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
    return None if span is not None and _may_have_grown(window, span) else span


def _may_have_grown(window: Window, span: Span) -> bool:
    return window.crlf and window.text.find(b"\r\n", span[0], span[1] + 1) >= 0


def _headers(line: RecordLine, close: int) -> int:
    return close - line.end - 1 if line.sequence is not None else 0


def _lossy(window: Window, line: RecordLine, close: int, form: Form) -> Iterator[Ending]:
    """Readings where printing changed the text: its length lies between bounds."""
    with_key, with_value = form
    for key in _lossy_spans(window, _KEY, close, line.key_size, _PAYLOAD if with_value else b"\n") if with_key else [None]:
        behind = close if key is None else key[1]
        for value in _lossy_spans(window, _PAYLOAD, behind, line.value_size, b"\n") if with_value else [None]:
            end = window.line_end(behind if value is None else value[1])
            same = _unchanged(window, key, line.key_size), _unchanged(window, value, line.value_size)
            if end is not None and same != (key, value):  # else it is exact, and was yielded as that
                shorter = any(span and span[1] - span[0] < size for span, size in ((key, line.key_size), (value, line.value_size)))
                yield Ending(end, Proof.LOSSY, _headers(line, close), *same, printed=True, ascii_lossy=shorter)


def _lossy_spans(window: Window, separator: bytes, at: int, size: int, mark: bytes) -> list[Span | None]:
    found = _span(window, separator, at, size)
    return [] if found is None else [(found[0], cut) for cut in lossy_cuts(window, found[0], size=size, mark=mark)]


def _unchanged(window: Window, span: Span | None, size: int) -> Span | None:
    """A span of text that is the bytes it stands for; other text is not kept."""
    return span if span is not None and span[1] - span[0] == size and not _may_have_grown(window, span) else None


def _lines(window: Window, line: RecordLine) -> Iterator[Ending]:
    """Each line end up to the next line that looks like the tool's own, where the first line at least closes its header keys."""
    start = window.after_line(line.end)
    if line.sequence is not None and window.text.find(b"]", line.end, start) < 0:
        return
    limit, end = line.end + LINES_LIMIT, start
    while end <= limit and window.ends_line(end):
        yield Ending(end, Proof.LINE)
        window.structural(end)
        if end >= len(window.text) or window.text.startswith((b"baseOffset: ", b"| offset: ", b"Dumping "), end):
            return
        end = window.after_line(end)


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
