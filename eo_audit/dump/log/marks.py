"""Where the text of a window could be cut into records: places of what separates header keys, keys and payloads, and how many bytes the
text before a place can stand for.

Printed text is longer than its bytes where U+FFFD stands for one or two of them or CRLF for a line feed, and shorter where `?` stands for
a character outside ASCII (`LC_ALL=C`). So a text of a record may end at every place up to which it can stand for the bytes the record has;
both bounds grow with the text, and the places form one run.
"""

from typing import NamedTuple

import numpy as np

from eo_audit.dump.lines.scan import Ints, Octets
from eo_audit.dump.log.text import Window

LEAST_CHUNK, LARGEST_CHUNK = 1 << 13, 1 << 17  # bytes looked through at a time: more and more where one asks on and on
_CLOSE, _SPACE, _ASKED, _CARRIAGE, _REPLACEMENT = 93, 32, 63, 13, 0xEF
_NONE = np.zeros(0, dtype=np.int64)


class Places(NamedTuple):
    """Sorted offsets of the window.

    `keys`, `payloads`: behind the `]` of `] key: ` and `] payload: `. `parts`: of ` payload: `. `replaced`, `carriages`, `asked`: behind
    each U+FFFD, CRLF and `?`.
    """

    keys: Ints = _NONE
    payloads: Ints = _NONE
    parts: Ints = _NONE
    replaced: Ints = _NONE
    carriages: Ints = _NONE
    asked: Ints = _NONE


class Marks:
    """The places of one window, looked for as far as somebody asks."""

    def __init__(self) -> None:
        """Nothing is looked for yet. The window is given each time: it holds its marks, and two that hold each other stay in memory."""
        self._begin = self._end = 0
        self._chunk = LEAST_CHUNK
        self._crlf = False
        self.places = Places()

    def cover(self, window: Window, start: int, stop: int) -> Places:
        """The places of a stretch of text at least.

        Raises:
            NeedMore: it goes on behind the window.
        """
        window.reach(stop)
        stop = min(stop, len(window.text))
        if self._crlf != window.crlf or not self._begin <= start <= self._end:
            self._crlf = window.crlf
            self._begin = self._end = start
            self._chunk = LEAST_CHUNK
            self.places = Places()
        while self._end < stop:
            end = min(max(self._end + self._chunk, stop), len(window.text))
            # Most questions are about the next few lines, some about megabytes: doubling serves both.
            self._chunk = min(2 * self._chunk, LARGEST_CHUNK)
            found = _places(window, self._end, end)
            self.places = Places(*(np.concatenate(pair) for pair in zip(self.places, found, strict=True)))
            self._end = end
        return self.places

    def shortest(self, at: Ints) -> Ints:
        """Fewest bytes that the text before each offset can stand for, but for a constant."""
        found = at - 2 * np.searchsorted(self.places.replaced, at, side="right")
        return found - np.searchsorted(self.places.carriages, at, side="right") if len(self.places.carriages) else found

    def longest(self, at: Ints) -> Ints:
        """Most bytes that it can stand for, but for the same constant."""
        asked = self.places.asked
        return at + 3 * np.searchsorted(asked, at, side="right") if len(asked) else at


def _places(window: Window, start: int, stop: int) -> Places:
    text = Octets(window.text, start, stop)
    content = text.bytes[: text.size]
    closes, spaces, replaced = (np.flatnonzero(content == byte) for byte in (_CLOSE, _SPACE, _REPLACEMENT))
    parts = spaces[text.stands(b" payload: ", spaces)]
    replaced = replaced[text.stands(b"\xef\xbf\xbd", replaced)]
    keys, payloads = (closes[text.stands(literal, closes)] + 1 for literal in (b"] key: ", b"] payload: "))
    carriages = _NONE
    if window.crlf:
        feeds = np.flatnonzero(content == _CARRIAGE)
        carriages = feeds[text.stands(b"\r\n", feeds)] + 2
    asked = np.flatnonzero(content == _ASKED) + 1
    return Places(*(found + start for found in (keys, payloads, parts, replaced + 3, carriages, asked)))
