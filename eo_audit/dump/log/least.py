"""What unread text can stand for: the fewest bytes of records, and how far the keys and values of its record lines may go."""

import re
from typing import NamedTuple

from eo_audit.dump.lines.dialects import RecordLine, batch_line, record_line
from eo_audit.dump.log.framing import Profile
from eo_audit.dump.log.text import Window

# message.max.bytes is 1 MiB by default, and max.request.size, which bounds a record before it is compressed.
LARGEST_PAYLOAD = 1 << 20
# Above every position a log can have; the sum of two still fits the 64 bits of a column.
FAR = 1 << 61
_LEAST_RECORD = 7  # bytes of a record without key, value and headers
_KEY, _PAYLOAD = len(" key: "), len(" payload: ")
_LONGEST_DECODED = 1 << 12  # bytes of a line of a topic decoder
_FRAGMENT = 1 << 13  # bytes of a line that damage may have left over, or put there
_OWN = re.compile(rb"^(?:\| offset: |baseOffset: |offset: )", re.MULTILINE)
_DATA = re.compile(rb" key: | payload: ")
_DATA_BEHIND_HEADERS = re.compile(rb"\](?= key: | payload: )")
_LONGEST_DATA = len("] payload: ")


class Stretch(NamedTuple):
    """What a stretch of unread text stands for.

    `least`: fewest bytes of records, whoever wrote it; of pieces of a text it is the sum. `covered`: what the text up to the end of a key
    or value stands for that a record line in it announces, the furthest one; below 0 where there is none.
    """

    least: int
    covered: int


def stretch(window: Window, start: int, stop: int, profile: Profile, *, mid_line: bool = False) -> Stretch:
    """What a stretch of text stands for.

    A record of which the line is there may be genuine: then its numbers are no text of a record. Nor is a damaged line of the tool's own:
    what stands there may be the damage's.

    Raises:
        NeedMore: the last line goes on behind the window.
    """
    text = window.text
    at, least, covered = start, 0, -FAR
    for found in _OWN.finditer(text, start, stop):
        begin = found.start()
        if begin == start and mid_line:
            continue
        window.structural(begin)
        line = record_line(text, begin)
        least += _shortest(window, at, begin)
        at = begin
        if line is None:
            least -= 0 if batch_line(text, begin) else min(fragment(window, begin), stop - begin)
        elif profile.decoder is not None:
            least -= _decoded_length(window, begin) - _LEAST_RECORD
        else:
            covered = max(covered, least + _LEAST_RECORD + _announced(window, line, profile))
            least -= line.end - begin + _between(line, profile) - _LEAST_RECORD
    return Stretch(least + _shortest(window, at, stop), covered)


def least_bytes(window: Window, start: int, stop: int, profile: Profile) -> int:
    """Fewest bytes of records that a stretch of text can stand for.

    Raises:
        NeedMore: the last line goes on behind the window.
    """
    return stretch(window, start, stop, profile).least


def _shortest(window: Window, start: int, stop: int) -> int:
    least = stop - start - 2 * window.text.count(b"\xef", start, stop)  # U+FFFD is three bytes of text for one byte
    return least - window.text.count(b"\r", start, stop) if window.crlf else least


def _between(line: RecordLine, profile: Profile) -> int:
    """Bytes of a record's text that are none of its key, value and headers."""
    printed = profile.printed is not False
    return 2 + printed * ((line.key_size >= 0) * _KEY + (line.value_size >= 0) * _PAYLOAD)


def _decoded_length(window: Window, at: int) -> int:
    text = window.text
    newline = text.find(b"\n", at, at + _LONGEST_DECODED)
    if newline < 0:
        window.reach(at + _LONGEST_DECODED)
    return newline + 1 - at if newline >= 0 else min(_LONGEST_DECODED, len(text) - at)


def _announced(window: Window, line: RecordLine, profile: Profile) -> int:
    """Bytes of text behind a record line, but for what stands between, that its key and value may be, with the header keys before them."""
    text, at = window.text, line.end
    sizes = max(line.key_size, 0) + max(line.value_size, 0)
    if profile.printed is False or not sizes:
        return -FAR
    window.reach(at + _LONGEST_DATA)
    headers = line.sequence is not None
    if text.startswith((b"]\n", b"]\r\n") if headers else (b"\n", b"\r\n"), at):
        return -FAR  # as `--print-data-log` was not given
    search = (_DATA_BEHIND_HEADERS if headers else _DATA).search
    found = search(text, at, at + _FRAGMENT)
    if found is None:
        window.reach(at + _FRAGMENT)
    before = _FRAGMENT if found is None else found.start() - at
    return min(sizes, LARGEST_PAYLOAD) + before - (not headers)


def fragment(window: Window, at: int) -> int:
    """Bytes of the first unread line that may be what damage left of a line, or put into it: they are no text of a record.

    Raises:
        NeedMore: it goes on behind the window.
    """
    window.structural(at)
    if record_line(window.text, at) is not None:
        return 0
    newline = window.text.find(b"\n", at, at + _FRAGMENT)
    return newline + 1 - at if newline >= 0 else min(_FRAGMENT, len(window.text) - at)


def odd_text(window: Window, at: int | None) -> int:
    """Bytes behind the numbers of a record line that does not fit its text, up to the line end: damage may have put them there.

    Raises:
        NeedMore: they go on behind the window.
    """
    line = None if at is None else record_line(window.text, at)
    if line is None:
        return 0
    newline = window.text.find(b"\n", line.end, line.end + _FRAGMENT)
    if newline < 0:
        window.reach(line.end + _FRAGMENT)
    return newline - line.end if newline >= 0 else min(_FRAGMENT, len(window.text) - line.end)
