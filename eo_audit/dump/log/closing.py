"""Where a batch may end: the lines that can follow it.

The best is a batch line at the next position. A new section, a message of the tool or the end of the file may follow too; the text of a
payload can look like each of them, so they count only with what must stand behind them in turn.
"""

import re
from collections.abc import Iterator

from eo_audit.dump.lines.dialects import DUMPING, DUMPING_BEGINS, LONGEST_LINE, OLD_LINE, PREAMBLE, batch_line
from eo_audit.dump.lines.flat_lines import flat_batch_line, flat_line
from eo_audit.dump.lines.messages import Message, detail_of
from eo_audit.dump.log.framing import HEADERS_SEARCHED, message_at
from eo_audit.dump.log.text import BYTE_ORDER_MARK, Window

_MOST_LINES = 200  # of messages between two batches
_MOST_EMPTY = 4  # sections in a row without a batch that are looked at
_LONGEST_MESSAGE = 1 << 12
_LONGEST_DUMPING = len(BYTE_ORDER_MARK) + len("Dumping ")
_LONGEST_BEGINNING = len("\nbaseOffset: ")
_OWN = re.compile(rb"\n(?=\| offset: |baseOffset: |offset: |Dumping )")
# DumpLogSegments prints no `Log starting offset` for these, and for an empty index nothing at all: there is no second line to ask for.
OTHER_FILES = (b".index", b".timeindex", b".txnindex", b".snapshot", b".checkpoint")


def claims(window: Window, start: int, position: int, stop: int) -> Iterator[int]:
    """Starts of the lines in a stretch of text that look like a batch line at `position`, forged or not.

    Raises:
        NeedMore: the stretch goes on behind the window.
    """
    if not window.is_within(position):
        return
    # The position stands inside its line: that of a line which begins before `stop` may stand behind it.
    needle, last = b" position: %d " % position, stop + LONGEST_LINE
    at = window.text.find(needle, start, last)
    while at >= 0:
        begin = window.text.rfind(b"\n", 0, at) + 1
        line = batch_line(window.text, begin) if start <= begin < stop else None
        if line is not None and line.position == position:
            yield begin
        at = window.text.find(needle, at + 1, last)
    window.reach(last)


def is_contradicted(window: Window, behind: int, message: Message, position: int) -> bool:
    """Does the line of a log behind a message show that it is none of the tool's, but a payload's whose record line was lost?

    Args:
        window: the text.
        behind: where the message ends.
        message: what it says.
        position: what the next batch line prints.

    Raises:
        NeedMore: that line may stand behind the window.
    """
    at = _next_own(window, behind)
    if at is None or window.text.startswith(b"| ", at):
        return at is not None  # a record line without its batch line: the one that the message would be part of may be missing as well
    if message.text_kind != "exception":
        return False
    if window.text.startswith(b"Dumping ", at):
        return not starts_section(window, at)
    # What is thrown ends a dump: a log goes on behind it only where a logging library wrote it down, and then whole.
    window.structural(at)
    line = batch_line(window.text, at)
    return line is None or line.position != position


def _next_own(window: Window, behind: int) -> int | None:
    """The next line that begins as one of a log or of a section does; None where there is none for as far as one looks."""
    begin, end = window.without_own
    if not begin <= behind <= end:
        begin, end = behind, behind
    stop = behind + HEADERS_SEARCHED
    found = _OWN.search(window.text, end - 1, stop)
    if found is None:
        window.reach(stop)
    # Of thousands of messages in a row each looks only at what those before it did not.
    window.without_own = begin, found.end() if found else max(end, min(stop, len(window.text)) - _LONGEST_BEGINNING)
    return found.end() if found else None


def sections(window: Window, start: int, stop: int) -> Iterator[int]:
    """Starts of the lines in a stretch of text that begin a section, with what the tool prints behind them."""
    last = stop - 1 + _LONGEST_DUMPING  # the line begins before `stop`, wherever it ends
    for found in DUMPING_BEGINS.finditer(window.text, max(start - 1, 0), last):
        if found.start() + 1 < stop and starts_section(window, found.start() + 1):
            yield found.start() + 1
    window.reach(last)


def starts_section(window: Window, at: int, *, others: int = _MOST_EMPTY) -> bool:
    """Is there a `Dumping` line, and behind it what the tool prints next? So of the sections behind it (`others`), while they are empty."""
    window.structural(at)
    found = DUMPING.match(window.text, at)
    if found is None:
        return False
    behind = window.after_line(at)
    if behind >= len(window.text) or found[1].endswith(OTHER_FILES):
        return True
    window.structural(behind)
    text = window.text
    if PREAMBLE.match(text, behind):
        return _begins_at_zero(window, window.after_line(behind), others)
    return bool(_begins(window, behind, others) or message_at(window, behind))


def _begins_at_zero(window: Window, at: int, others: int) -> bool:
    """The tool prints a segment from its first byte: a batch line at `at` has position 0."""
    if at >= len(window.text):
        window.reach(at + 1)
        return True
    window.structural(at)
    line = batch_line(window.text, at)
    if line is not None:
        return line.position == 0
    if (flat := flat_line(window.text, at)) is not None:
        return flat.may_be_first
    if (batch := flat_batch_line(window.text, at)) is not None:
        return batch.position == 0
    return bool(_begins(window, at, others) or OLD_LINE.match(window.text, at) or message_at(window, at))


def _begins(window: Window, at: int, others: int) -> bool:
    """Does another section begin where one is empty? Of many in a row only the first few are looked at."""
    return starts_section(window, at, others=others - 1) if others else DUMPING.match(window.text, at) is not None


def closers(window: Window, start: int, stop: int, position: int, *, weak: bool) -> list[int]:
    """Where a batch may end behind `start`, up to `stop`.

    Args:
        window: the text.
        start: behind this byte.
        stop: the last byte that may be an end.
        position: what the next batch line must print.
        weak: a section, a message or the end of the file may follow too.

    Raises:
        NeedMore: the answer lies behind the window.
    """
    found = set(claims(window, start + 1, position, stop + 1))
    if weak:
        window.reach(stop + 1)
        found.update(sections(window, start + 1, stop + 1))
        if window.final and start < len(window.text) <= stop:
            found.add(len(window.text))
        found.update(*[_before(window, anchor, start) for anchor in sorted(found)])
        found.update(_beyond(window, start, stop, position))
    return sorted(found)


def has_message_before(window: Window, anchor: int, start: int) -> bool:
    """Does a message of the tool, or what may be one, stand directly before a line that may follow a batch?

    Args:
        window: the text.
        anchor: that line.
        start: behind this byte.

    Raises:
        NeedMore: that it is none may be told by text behind the window.
    """
    return next(_before(window, anchor, start), None) is not None


def _before(window: Window, anchor: int, start: int) -> Iterator[int]:
    """Starts of the messages that stand directly before a line that may follow a batch."""
    at = anchor
    for _ in range(_MOST_LINES):
        begin = window.text.rfind(b"\n", max(start, at - _LONGEST_MESSAGE), at - 1) + 1
        if begin <= start or begin >= at:
            return
        if message_at(window, begin):
            yield begin
        elif detail_of(window.text[begin:at].rstrip(b"\r\n")) is None:
            return
        at = begin


def _beyond(window: Window, start: int, stop: int, position: int) -> Iterator[int]:
    """Messages that begin before `stop`, where what they stand before is behind it."""
    if stop >= len(window.text) and window.final:
        return
    reach = stop + _LONGEST_MESSAGE
    anchors = [*claims(window, stop + 1, position, reach), *sections(window, stop + 1, reach)]
    if window.final and len(window.text) <= reach:
        anchors.append(len(window.text))
    for anchor in anchors:
        yield from (begin for begin in _before(window, anchor, start) if begin <= stop)
