"""What of the text behind damage could be somebody's payload: lines there are forged as easily as printed.

A payload of which the beginning was lost is part of a batch, and the batch line behind it tells where that batch ended at the latest. So a
line is in doubt while some later line leaves room for a batch that holds all the text between, each byte of a record printed as one byte
of text at most. A batch line is 250 bytes of text and stands for 61: honest text runs out of that room about as fast as it was lost.
The size of a compressed batch bounds nothing: there a payload may go on for as long as `LARGEST_PAYLOAD` says.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eo_audit.dump.lines.dialects import DUMPING, batch_line
from eo_audit.dump.lines.scan import Bits, Ints
from eo_audit.dump.log.closing import starts_section
from eo_audit.dump.log.framing import HEADERS_SEARCHED, Profile
from eo_audit.dump.log.least import FAR, LARGEST_PAYLOAD, least_bytes, stretch
from eo_audit.dump.log.text import NeedMore, Window

_OVERHEAD = 26  # bytes of a batch beside its records: magic 0 has the fewest
NOWHERE = FAR + 1  # no batch line prints such a position
_LINE_END = len("\r\n")
_CHUNK = 1 << 16
_BATCH = re.compile(rb"^(?:baseOffset: |offset: |Dumping )", re.MULTILINE)


@dataclass(frozen=True)
class Node:
    """A line that looks like a batch line or the beginning of a section; offsets are those of the window.

    `start`, `end`: of the line. `position`, `behind`: where its batch begins and ends (None: the line begins a section). `packed`: the
    batch is compressed. `least`: fewest bytes that the text before it stands for, but for a constant. `covered`: what it stands for up to
    the furthest end of a key or value that a record line between the node before and this one announces.
    """

    start: int
    end: int
    position: int | None
    behind: int
    packed: bool
    least: int
    covered: int


class Chain(NamedTuple):
    """Nodes as columns; `opens`: the line begins a section, `proved`: and a batch at position 0 stands behind it."""

    start: Ints
    end: Ints
    position: Ints
    behind: Ints
    least: Ints
    covered: Ints
    packed: Bits
    opens: Bits
    proved: Bits

    def part(self, first: int, last: int) -> "Chain":
        """The nodes [first, last)."""
        columns = {name: column[first:last] for name, column in self._asdict().items()}
        return Chain(**columns)


def _columns(nodes: list[Node]) -> Chain:
    rows = [
        (node.start, node.end, -1 if node.position is None else node.position, node.behind, node.least, node.covered, node.packed)
        for node in nodes
    ]
    start, end, position, behind, least, covered, packed = np.array(rows, dtype=np.int64).reshape(-1, 7).T
    opens = position < 0
    return Chain(start, end, position, behind, least, covered, packed > 0, opens, opens & (np.append(position[1:], -1) == 0)[: len(opens)])


class Lines:
    """Lines of one window that matter here, looked for as far as somebody asks, and what the text between them stands for."""

    def __init__(self, window: Window, profile: Profile) -> None:
        """Nothing is looked for yet."""
        self.window, self.profile, self.crlf = window, profile, window.crlf
        self.nodes: list[Node] = []
        self._dumping: list[int] = []
        self._chain = _columns([])
        self._begin = self._end = self._least = 0
        self._covered = -FAR

    def cover(self, start: int, least: int) -> tuple[Chain, int, int | None]:
        """The nodes from a line on, as far as the text stands for `least` bytes; `Node.least` of that line, and of the end of the file
        where that is not further on.

        Raises:
            NeedMore: it goes on behind the window.
        """
        if not self._begin <= start <= self._end:
            self.nodes, self._dumping, self._begin, self._end, self._least, self._chain = [], [], start, start, 0, _columns([])
            self._covered = -FAR
        before = self._least_at(start)
        while self._least - before <= least and self._end < len(self.window.text):
            self._more()
        if self._least - before <= least:
            self.window.reach(len(self.window.text) + 1)
        if len(self._chain.start) != len(self.nodes):
            self._chain = _columns(self.nodes)
        first = int(np.searchsorted(self._chain.start, start))
        beyond = np.flatnonzero(self._chain.least[first:] > before + least)
        last = first + int(beyond[0]) if len(beyond) else len(self.nodes)
        at_end = self._end == len(self.window.text) and self._least - before <= least
        return self._chain.part(first, last), before, self._least if at_end else None

    def begun_before(self, at: int, first: int, stop: int) -> tuple[int, int, bool]:
        """The batch line in [first, stop) from which a batch could reach furthest: its position, and bytes that the text from the line at
        `at` up to its own end stands for; and whether one of these batches is compressed.

        Raises:
            NeedMore: it goes on behind the window.
        """
        chain, before, _ = self.cover(at, stop - at)
        batches = np.flatnonzero(~chain.opens & (chain.start >= first) & (chain.start < stop))
        if not len(batches):  # what begins there is a section
            return 0, 0, False
        text = chain.least - before + chain.end - chain.start
        furthest = batches[int(np.argmin((chain.position - text)[batches]))]
        return int(chain.position[furthest]), int(text[furthest]), bool(chain.packed[batches].any())

    def first_dumping(self, at: int) -> int:
        """The first `Dumping` line from `at` on, of a section or not, in what was looked through; far behind it where there is none."""
        index = bisect_left(self._dumping, at)
        return self._dumping[index] if index < len(self._dumping) else FAR

    def _least_at(self, start: int) -> int:
        """What the text from the beginning of what is covered to a line stands for."""
        index = bisect_right(self.nodes, start, key=lambda node: node.start)
        begin, least = (self.nodes[index - 1].start, self.nodes[index - 1].least) if index else (self._begin, 0)
        return least + least_bytes(self.window, begin, start, self.profile)

    def _more(self) -> None:
        window, begin = self.window, self._end
        newline = window.text.find(b"\n", min(begin + _CHUNK, len(window.text)))
        if newline < 0 and len(window.text) - begin > _CHUNK and not window.final:
            raise NeedMore
        end = newline + 1 if newline >= 0 else len(window.text)
        at, least, covered, nodes, dumping = begin, self._least, self._covered, [], []
        for found in _BATCH.finditer(window.text, begin, end):
            start = found.start()
            node = self._node(start)
            if DUMPING.match(window.text, start):
                dumping.append(start)
            if node is None:
                continue
            text = stretch(window, at, start, self.profile)
            covered, least, at = max(covered, least + text.covered), least + text.least, start
            nodes.append(Node(start, node[0], node[1], node[2], node[3], least, covered))
            covered = -FAR
        text = stretch(window, at, end, self.profile)
        self._least, self._covered = least + text.least, max(covered, least + text.covered)
        self.nodes += nodes
        self._dumping += dumping
        self._end = end

    def _node(self, at: int) -> tuple[int, int | None, int, bool] | None:
        window = self.window
        window.structural(at)
        line = batch_line(window.text, at)
        if line is not None:
            # A forged line may print as many digits as it likes: a larger number would not fit the columns.
            return line.end, min(line.position, FAR), min(line.position + line.size_bytes, FAR), line.codec != "none"
        if window.text.startswith(b"Dumping ", at) and starts_section(window, at):
            return window.after_line(at), None, 0, False
        return None


@dataclass(frozen=True)
class Lost:
    """What is known where a line may be believed again.

    Attributes:
        base: position up to which the text before the damage has been read: a batch that was lost begins there, or later.
        floor: position that the next batch line has at least.
        least: fewest bytes that the unread text since then stands for.
        covered: how far, measured so, a key or value goes on that a record line in that text announces.
        packed: the batch where the damage is was compressed.
        is_log: records stood before the damage, as far as known.
        limit: bytes of the segment's file; None where nobody knows.
        bounded: nothing behind may belong to a batch from before any more.
        sealed: nobody knows whose section it is: a batch line shows it only by this very position (`NOWHERE`: none does).
    """

    base: int
    floor: int
    least: int
    covered: int
    packed: bool
    is_log: bool
    limit: int | None
    bounded: bool
    sealed: int | None = None


def first_believed(lines: Lines, at: int, lost: Lost) -> tuple[int, bool]:
    """The first line from `at` on, or `at` itself, that lies in no payload; and whether it is one, or only the end of what was looked
    through.

    Raises:
        NeedMore: the answer lies behind the window.
    """
    largest = max(LARGEST_PAYLOAD - lost.least, 0)
    chain, before, end = lines.cover(at, largest)
    window, packed = lines.window, bool(chain.packed.any())
    last = len(window.text) if end is not None or not len(chain.start) else int(chain.start[-1])
    # Text in front of which nobody has seen a log: a new section is the rule, the middle of a log is not.
    may_be = np.where(chain.opens, chain.proved, lost.is_log or not packed)
    if lost.sealed is not None:
        may_be &= chain.opens | (chain.position == lost.sealed)
    # Whose lines stand behind a section's beginning that is in doubt nobody knows.
    may_be &= chain.opens | (chain.start <= lines.first_dumping(at))
    if end is None and len(may_be):
        may_be[-1] &= not chain.opens[-1]  # what is behind it was not looked at
    free = np.zeros(len(chain.start), dtype=bool)
    if lost.bounded or not lost.is_log or not (lost.packed or packed):
        free = _are_free(chain, before, lost, end=end)
    if lines.profile.printed is False and lost.is_log and not lost.bounded:
        # No text but header keys is somebody's: they end where they are no longer looked for in text without damage, too.
        stop = window.after_line(at) + HEADERS_SEARCHED
        window.reach(stop)
        free |= chain.start >= stop
    found = np.flatnonzero(free & may_be & _are_possible(chain, lost) & ~(chain.opens & _are_in_records(chain, before, lost)))
    if len(found):
        return int(chain.start[found[0]]), True
    return max(last, window.after_line(at)), False


def _are_possible(chain: Chain, lost: Lost) -> Bits:
    """Positions only grow within a section: a lower one was printed before, so such a line is a copy in a payload."""
    possible: Bits = chain.opens | ((chain.position >= lost.floor) & (chain.behind <= (FAR if lost.limit is None else lost.limit)))
    return possible


def _are_in_records(chain: Chain, before: int, lost: Lost) -> Bits:
    """The nodes that may lie in a key or value which a record line before them announces, or in a compressed batch of a log that nobody saw
    begin: its size bounds nothing."""
    if not len(chain.start):
        return np.zeros(0, dtype=bool)
    # What is announced before the first line is known to who read up to there.
    furthest = np.maximum.accumulate(np.append(lost.covered - lost.least + before, chain.covered[1:]))
    packed = np.logical_or.accumulate(np.append(False, chain.packed[:-1]))
    # A payload that ends inside the line does not print all of it.
    inside: Bits = (furthest > chain.least + chain.end - chain.start - _LINE_END) | (packed & (not (lost.is_log or lost.bounded)))
    return inside


def _are_free(chain: Chain, before: int, lost: Lost, *, end: int | None) -> Bits:
    """The nodes such that no batch can begin before them and end behind them.

    Args:
        chain: the nodes.
        before: `Node.least` of the first line.
        lost: what is known.
        end: the same of the end of the file; None where it goes on behind the last node.
    """
    # A batch from `s` to `j` holds the text between: position(j) - position(s) >= overhead + least(j) - least(s). Each side of that is a
    # number of one of the two, so the largest of those behind against the smallest of those before decides.
    batches = ~chain.opens & _are_possible(chain, lost)
    begins = np.where(batches, chain.position - chain.least - (chain.end - chain.start) + _OVERHEAD, FAR)
    first = FAR if lost.bounded else lost.base - (before - lost.least) + _OVERHEAD
    reached = np.concatenate(([lost.floor], chain.behind))[np.maximum.accumulate(np.where(batches, np.arange(1, len(batches) + 1), 0))]
    last = lost.limit if lost.limit is not None else int(reached[-1]) if len(reached) else lost.floor
    ends = np.where(
        chain.opens, (reached if lost.limit is None else lost.limit) - chain.least, np.where(batches, chain.position - chain.least, -FAR)
    )
    ends = np.append(ends[1:], -FAR if end is None else last - end)[: len(batches)]
    behind = np.maximum.accumulate(ends[::-1])[::-1]
    smallest = np.minimum.accumulate(np.concatenate(([first], begins)))[:-1]
    free: Bits = behind < smallest
    if end is not None and lost.limit is None:
        # What stands behind a section's beginning up to the end of the file is forged where that is: it tells of no end.
        opened = np.maximum.accumulate(np.where(chain.opens, np.arange(len(batches)), -1))
        free &= (opened < 0) | (reached[opened] - end < smallest)
    # A line at a lower position begins a batch of another segment, where the line that began its section was lost: as far as its size says.
    size = np.minimum(chain.behind - chain.position, LARGEST_PAYLOAD) - _OVERHEAD
    full = np.where(~chain.opens & (chain.position < lost.floor), chain.least + chain.end - chain.start + size, -FAR)
    whole = chain.least + np.where(chain.opens, chain.end - chain.start - _LINE_END, 0)
    free[1:] &= whole[1:] >= np.maximum.accumulate(full)[:-1]
    if end is None and len(free):
        free[-1] = False  # what is behind it was not looked at
    return free
