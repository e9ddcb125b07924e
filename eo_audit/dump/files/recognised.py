"""Which tool printed a text? Told by the first line in it that only one tool prints; what follows may be anybody's words."""

import re
from collections.abc import Mapping
from pathlib import Path

from eo_audit.dump.files.broker_answers import HEAD_LINE
from eo_audit.dump.files.not_dumps import Problem
from eo_audit.dump.lines.console import HEADS
from eo_audit.dump.lines.printed import text
from eo_audit.words import visible

DUMP, ANSWERS = "text", "broker_answers"
# A line as the tool begins it, with a byte order mark where Windows wrote one: what has none within its first 64 KiB is no dump.
_LINES: Mapping[str, bytes] = {
    DUMP: (
        rb"Dumping \S|(?:Log s|S)tarting offset: |baseOffset: \d|\| offset: \d|offset: \d+ position: "
        rb"|timestamp: \d+ offset: |producerId: \d+ producerEpoch: |version: \d+ producerId: |Found \d+ invalid bytes "
    ),
    ANSWERS: rb"(?:%s)[ \t]*\r?$" % HEAD_LINE,
    **HEADS,
}
_FIRST = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:%s)" % b"|".join(b"(%s)" % lines for lines in _LINES.values()),
    re.MULTILINE,
)


def printed_by(head: bytes) -> str | None:
    """What the first bytes of a file are of: a dump, broker answers, or a formatter of `lines.console`; None: of no tool known.

    Args:
        head: the first bytes, decompressed.
    """
    found = _FIRST.search(head)
    return None if found is None or found.lastindex is None else tuple(_LINES)[found.lastindex - 1]


def dumps_in_notes(path: Path, size: int) -> list[Problem]:
    """Notes (`*.md`) are left out in silence, but for those into whose first bytes somebody pasted a dump."""
    try:
        with path.open("rb") as file:
            tool = printed_by(file.read(size))
    except OSError:
        return []
    return [] if tool is None else [Problem(str(path), "holds lines of a dump, and is no dump by its name: call it .txt to have it read")]


# As long as a container's name, a time and a host together.
_PUT_BEFORE = re.compile(rb"^(.{1,120}?)(?:%s)" % _LINES[DUMP], re.MULTILINE)
_LINES_LOOKED_AT = 400
_AGAIN = "or print the dump again into a file"


def spoilt(head: bytes) -> str | None:
    """What became of the lines of a dump on its way through a terminal or another tool, and what to do; None: nothing.

    A container's log, `grep -n`, `cat -n` and the like put the same, a time or a number before each line, and then no line begins as
    `kafka-dump-log` begins it; line ends may be made into those of Windows twice, or of an old Macintosh.

    Args:
        head: the first bytes of a file, decompressed.
    """
    found = _FIRST.search(head)
    # Of the tool's own first line alone: a payload may hold anything.
    own = b"" if found is None else head[found.start() :].partition(b"\n")[0]
    if own.endswith(b"\r\r"):
        return rf"with two carriage returns behind each line: take them off (`tr -d '\r'`), {_AGAIN}"
    if own.startswith(b"Dumping ") and own.count(b"\r") > 1:
        return rf"with carriage returns for ends of lines: make them so (`tr '\r' '\n'`), {_AGAIN}"
    if own.startswith(b"Dumping ") and b"\x1b[" in own:
        return rf"with the colours of a terminal in its lines: take them off (`sed 's/\x1b\[[0-9;]*[mK]//g'`), {_AGAIN}"
    if own.startswith(b"Dumping ") and own.rstrip(b"\r").endswith(b" "):
        return f"with blanks behind its lines, as a terminal fills them up: take them off (`sed 's/ *$//'`), {_AGAIN}"
    return _put_before(head) if found is None else _apart(head[found.start() :])


def _apart(text: bytes) -> str | None:
    """Lines that were set apart by blank ones, or broken where a terminal ends."""
    lines = [line.rstrip(b"\r") for line in text.split(b"\n")[:_LINES_LOOKED_AT]][:-1]
    if len(lines) > 3 and all(lines[::2]) and not any(lines[1::2]):
        return f"with a blank line behind each line: take them out (`sed 'n;d'`), {_AGAIN}"
    # The last word of a batch line, in every release that prints one (`grammar`).
    batches = [b" isvalid: " in line for line in lines if line.startswith(b"baseOffset: ")]
    if batches and not any(batches):
        return f"with its lines broken, as a terminal or an editor wraps them: {_AGAIN.removeprefix('or ')}"
    return None


def _put_before(head: bytes) -> str | None:
    before = _PUT_BEFORE.findall(head)
    if len(before) < 2 or 2 * len(before) < sum(map(bool, head.split(b"\n"))):
        return None
    first, sizes = f"'{visible(text(before[0]))}'", set(map(len, before))
    if before[0].startswith(b"{"):
        return f"wrapped in JSON, line by line ({first} before the first): take the text out of it, {_AGAIN}"
    if len(sizes) == 1:
        return f"with {first} before each line: take that off (`cut -b {sizes.pop() + 1}-`), {_AGAIN}"
    return f"with something before each line ({first} before the first): take that off, {_AGAIN}"
