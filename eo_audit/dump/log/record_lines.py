"""Where lines of a window begin as record lines, and which offsets they print: only lines with an offset of a batch can be its records."""

import re
from bisect import bisect_left

from eo_audit.dump.log.text import Window

_LINE = re.compile(rb"\n\| offset: (-?\d{1,19}) ")
_LONGEST = len("\n| offset: -9223372036854775808 ")
LEAST_CHUNK, LARGEST_CHUNK = 1 << 13, 1 << 20  # bytes looked through at a time: more and more where one asks on and on


class RecordLines:
    """The record lines of one window, looked for as far as somebody asks; each byte once, whatever the number of questions."""

    def __init__(self) -> None:
        """Nothing is looked for yet."""
        self._begin = self._end = 0
        self._chunk = LEAST_CHUNK
        self._feeds: list[int] = []
        self._offsets: list[int] = []
        self._by_offset: dict[int, list[int]] = {}

    def furthest(self, window: Window, offset: int, start: int, stop: int) -> int | None:
        """Where the last line begins of those that print an offset, each behind a line feed at `start` or later, and whole before `stop`.

        Raises:
            NeedMore: the text goes on behind the window.
        """
        window.reach(stop)
        self._cover(window, start, stop)
        feeds = self._by_offset.get(offset, [])
        before = bisect_left(feeds, stop - len(b"\n| offset: %d" % offset))
        return feeds[before - 1] + 1 if before and feeds[before - 1] >= start else None

    def between(self, window: Window, offsets: range, start: int, stop: int) -> list[int]:
        """Where the lines begin that print one of these offsets, each behind a line feed at `start` or later and before `stop`.

        Raises:
            NeedMore: the text goes on behind the window.
        """
        window.reach(stop)
        self._cover(window, start, stop)
        found = slice(bisect_left(self._feeds, start), bisect_left(self._feeds, stop))
        return [feed + 1 for feed, offset in zip(self._feeds[found], self._offsets[found], strict=True) if offset in offsets]

    def _cover(self, window: Window, start: int, stop: int) -> None:
        if not self._begin <= start <= self._end:
            self._begin = self._end = start
            self._chunk = LEAST_CHUNK
            self._feeds, self._offsets, self._by_offset = [], [], {}
        stop = min(stop, len(window.text))
        while self._end < stop:
            end = min(max(self._end + self._chunk, stop), len(window.text))
            self._chunk = min(2 * self._chunk, LARGEST_CHUNK)
            # A line that begins before `end` may go on behind it.
            for found in _LINE.finditer(window.text, self._end, end + _LONGEST):
                if found.start() < end:
                    self._feeds.append(found.start())
                    self._offsets.append(offset := int(found[1]))
                    self._by_offset.setdefault(offset, []).append(found.start())
            self._end = end
