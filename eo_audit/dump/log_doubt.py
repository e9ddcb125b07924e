"""What of the text behind damage could be somebody's payload: lines there are forged as easily as printed.

A payload of which the beginning was lost is part of a batch, and the batch line behind it tells where that batch ended at the latest. So a
line is in doubt while some later line leaves room for a batch that holds all the text between, each byte of a record printed as one byte
of text at most. A batch line is 250 bytes of text and stands for 61: honest text runs out of that room about as fast as it was lost.
The size of a compressed batch bounds nothing: there a payload may go on for as long as `LARGEST_PAYLOAD` says.
"""

import re
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest

from eo_audit.dump.dialects import batch_line, record_line
from eo_audit.dump.framing import HEADERS_SEARCHED, Profile
from eo_audit.dump.log_closing import starts_section
from eo_audit.dump.log_text import NeedMore, Window

# message.max.bytes is 1 MiB by default, and max.request.size, which bounds a record before it is compressed.
LARGEST_PAYLOAD = 1 << 20
_OVERHEAD = 26  # bytes of a batch beside its records: magic 0 has the fewest
_LEAST_RECORD = 7  # bytes of a record without key, value and headers
_BETWEEN = len("] key:  payload: \n")
_LONGEST_DECODED = 1 << 12  # bytes of a line of a topic decoder
_FRAGMENT = 400  # bytes of a line of the tool's own that damage may have left over
_CHUNK = 1 << 16
_FAR = 1 << 63
_BATCH = re.compile(rb"^(?:baseOffset: |offset: |Dumping )", re.MULTILINE)
_RECORD = re.compile(rb"^\| offset: ", re.MULTILINE)


@dataclass(frozen=True)
class Node:
    """A line that looks like a batch line or the beginning of a section; offsets are those of the window.

    `start`, `end`: of the line. `position`, `behind`: where its batch begins and ends (None: the line begins a section). `packed`: the
    batch is compressed. `least`: fewest bytes that the text before it stands for, but for a constant. `may_be`: it may be believed for what
    stands behind it.
    """

    start: int
    end: int
    position: int | None
    behind: int
    packed: bool
    least: int
    may_be: bool = True


class Lines:
    """Lines of one window that matter here, looked for as far as somebody asks, and what the text between them stands for."""

    def __init__(self, window: Window, profile: Profile) -> None:
        """Nothing is looked for yet."""
        self.window, self.profile, self.crlf = window, profile, window.crlf
        self.nodes: list[Node] = []
        self._begin = self._end = self._least = 0

    def cover(self, start: int, least: int) -> list[Node]:
        """The nodes from a line on, as far as the text stands for `least` bytes.

        Raises:
            NeedMore: it goes on behind the window.
        """
        if not self._begin <= start <= self._end:
            self.nodes, self._begin, self._end, self._least = [], start, start, 0
        before = self._least_at(start)
        while self._least - before <= least and self._end < len(self.window.text):
            self._more()
        if self._least - before <= least:
            self.window.reach(len(self.window.text) + 1)
        first = next((i for i, node in enumerate(self.nodes) if node.start >= start), len(self.nodes))
        return self.nodes[first:]

    def _least_at(self, start: int) -> int:
        """What the text from the beginning of what is covered to a line stands for."""
        nearest = next((node for node in reversed(self.nodes) if node.start <= start), None)
        begin, least = (nearest.start, nearest.least) if nearest else (self._begin, 0)
        return least + least_bytes(self.window, begin, start, self.profile)

    def _more(self) -> None:
        window, begin = self.window, self._end
        newline = window.text.find(b"\n", min(begin + _CHUNK, len(window.text)))
        if newline < 0 and len(window.text) - begin > _CHUNK and not window.final:
            raise NeedMore
        end = newline + 1 if newline >= 0 else len(window.text)
        at, least, nodes = begin, self._least, []
        for found in _BATCH.finditer(window.text, begin, end):
            start = found.start()
            node = self._node(start)
            if node is None:
                continue
            least += least_bytes(window, at, start, self.profile)
            at = start
            nodes.append(Node(start, node[0], node[1], node[2], node[3], least))
        self._least = least + least_bytes(window, at, end, self.profile)
        self.nodes += nodes
        self._end = end

    def _node(self, at: int) -> tuple[int, int | None, int, bool] | None:
        window = self.window
        window.structural(at)
        line = batch_line(window.text, at)
        if line is not None:
            return line.end, line.position, line.position + line.size_bytes, line.codec != "none"
        if window.text.startswith(b"Dumping ", at) and starts_section(window, at):
            return window.after_line(at), None, 0, False
        return None


def least_bytes(window: Window, start: int, stop: int, profile: Profile, *, mid_line: bool = False) -> int:
    """Fewest bytes of records that a stretch of text can stand for, whoever wrote it; of pieces of a text it is the sum.

    A record of which the line is there may be genuine: then its numbers are no text of a record.

    Raises:
        NeedMore: the last line goes on behind the window.
    """
    text = window.text
    least = stop - start - 2 * text.count(b"\xef", start, stop)  # U+FFFD is three bytes of text for one byte
    if window.crlf:
        least -= text.count(b"\r", start, stop)
    printed = profile.printed is not False
    for found in _RECORD.finditer(text, start, stop):
        at = found.start()
        if at == start and mid_line:
            continue
        window.structural(at)
        line = record_line(text, at)
        if line is None:
            continue
        if profile.decoder is not None:
            newline = text.find(b"\n", at, at + _LONGEST_DECODED)
            if newline < 0:
                window.reach(at + _LONGEST_DECODED)
            least -= (newline + 1 - at if newline >= 0 else min(_LONGEST_DECODED, len(text) - at)) - _LEAST_RECORD
        else:
            least -= line.end - at + (_BETWEEN if printed else 2) - _LEAST_RECORD
    return least


def fragment(window: Window, at: int) -> int:
    """Bytes of the first unread line that may be what damage left of a line of the tool's own: they are no text of a record.

    Raises:
        NeedMore: it goes on behind the window.
    """
    window.structural(at)
    if record_line(window.text, at) is not None:
        return 0
    newline = window.text.find(b"\n", at, at + _FRAGMENT)
    return newline + 1 - at if newline >= 0 else min(_FRAGMENT, len(window.text) - at)


@dataclass(frozen=True)
class Lost:
    """What is known where a line may be believed again.

    Attributes:
        base: position up to which the text before the damage has been read: a batch that was lost begins there, or later.
        floor: position that the next batch line has at least.
        least: fewest bytes that the unread text since then stands for.
        packed: the batch where the damage is was compressed.
        is_log: records stood before the damage, as far as known.
        limit: bytes of the segment's file; None where nobody knows.
        bounded: nothing behind may belong to a batch from before any more.
    """

    base: int
    floor: int
    least: int
    packed: bool
    is_log: bool
    limit: int | None
    bounded: bool


def first_believed(lines: Lines, at: int, lost: Lost) -> tuple[int, bool]:
    """The first line from `at` on, or `at` itself, that lies in no payload; and whether it is one, or only the end of what was looked
    through.

    Raises:
        NeedMore: the answer lies behind the window.
    """
    window = lines.window
    largest = max(LARGEST_PAYLOAD - lost.least, 0)
    nodes = lines.cover(at, largest)
    before = nodes[0].least if nodes else 0
    nodes = [node for node in nodes if node.least - before <= largest]
    end = window.after_line(nodes[-1].start) if nodes else at
    if lost.is_log and not lost.bounded and (lost.packed or any(node.packed for node in nodes)):
        return _behind_packed(lines, at, nodes, lost)
    packed = any(node.packed for node in nodes)
    chain = [_judged(node, behind, lost, packed=packed) for node, behind in zip_longest(nodes, nodes[1:]) if _possible(node, lost)]
    index = _first_free(chain, before, lost)
    if index is not None:
        return chain[index].start, True
    return max(end, window.after_line(at)), False


def _possible(node: Node, lost: Lost) -> bool:
    """Positions only grow within a section: a lower one was printed before, so such a line is a copy in a payload."""
    if node.position is None:
        return True
    return node.position >= lost.floor and (lost.limit is None or node.behind <= lost.limit)


def _judged(node: Node, behind: Node | None, lost: Lost, *, packed: bool) -> Node:
    """May the line be believed for what stands behind it? A section proves itself by its first batch, at position 0."""
    if node.position is None:
        return replace(node, may_be=behind is not None and behind.position == 0)
    # Text in front of which nobody has seen a log: a new section is the rule, the middle of a log is not.
    return replace(node, may_be=lost.is_log or not packed)


def _behind_packed(lines: Lines, at: int, nodes: list[Node], lost: Lost) -> tuple[int, bool]:
    window = lines.window
    if lines.profile.printed is False:
        # Header keys alone: as far as they are looked through in text without damage.
        stop = min(window.after_line(at) + HEADERS_SEARCHED, len(window.text))
        window.reach(stop)
        return next(((node.start, True) for node in nodes if node.start >= stop), (max(stop, window.after_line(at)), False))
    return max(window.after_line(nodes[-1].start if nodes else at), window.after_line(at)), False


def _first_free(chain: list[Node], before: int, lost: Lost) -> int | None:
    """The first node such that no batch can begin before it and end behind it."""
    # A batch from `s` to `j` holds the text between: position(j) - position(s) >= overhead + least(j) - least(s). Each side of that is a
    # number of one of the two, so the largest of those behind against the smallest of those before decides.
    begins = [_FAR if lost.bounded else lost.base - (before - lost.least) + _OVERHEAD]
    ends: list[int] = []
    reached = lost.floor
    for node in chain:
        if node.position is None:
            ends.append((reached if lost.limit is None else lost.limit) - node.least)
            begins.append(begins[-1])
        else:
            reached = node.behind
            ends.append(node.position - node.least)
            begins.append(min(begins[-1], node.position - node.least - (node.end - node.start) + _OVERHEAD))
    if chain:
        ends.append((reached if lost.limit is None else lost.limit) - chain[-1].least - (chain[-1].end - chain[-1].start))
    behind = list(accumulate(reversed(ends), max))[::-1]
    return next((index for index, node in enumerate(chain) if node.may_be and behind[index + 1] < begins[index]), None)
