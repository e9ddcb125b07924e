"""A window of dump text: line ends, and how much text is needed to be sure."""

from dataclasses import dataclass, field, replace
from typing import TypeVar

from eo_audit.dump.lines.dialects import LONGEST_LINE

T = TypeVar("T")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CR, _LF = 13, 10


class NeedMore(Exception):
    """The answer lies behind the end of the window, and the file goes on there."""


@dataclass
class Window:
    """Bytes of one file.

    Attributes:
        text: the bytes.
        final: the file ends with them.
        crlf: lines of this file end in CRLF (a Windows tool, or a terminal between).
        crlf_seen: lines of some section of it do.
        overshoot: set by a reader that met a length reaching behind the end of the file.
        without_own: a stretch in which no line begins as one of a log does: from its first byte, up to its last.
        limit: bytes of the segment that is printed: no batch begins there or behind. None where nobody knows.
    """

    text: bytes
    final: bool
    crlf: bool = False
    crlf_seen: bool = False
    overshoot: bool = False
    limit: int | None = None
    without_own: tuple[int, int] = field(default=(0, 0), init=False, repr=False, compare=False)
    _known: dict[type, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def known(self, kind: type[T]) -> T:
        """What a reader keeps of this window: one object of each class, made when it is first asked for."""
        found = self._known.get(kind)
        if not isinstance(found, kind):
            found = self._known[kind] = kind()
        return found

    def ended(self) -> "Window":
        """This window, with the line end that the last line of the text lacks: is it whole but for that?"""
        if not self.final or self.text.endswith(b"\n"):
            return self
        kept = self.known(_Ended)
        if kept.window is None:
            kept.window = replace(self, text=self.text + (b"\r\n" if self.crlf and not self.text.endswith(b"\r") else b"\n"))
        kept.window.crlf, kept.window.limit = self.crlf, self.limit
        return kept.window

    def is_within(self, position: int) -> bool:
        """May a batch begin at this position?"""
        return self.limit is None or position < self.limit

    def lines_end(self, *, crlf: bool) -> None:
        """From here on, lines end in CRLF, or do not."""
        self.crlf = crlf
        self.crlf_seen |= crlf

    def reach(self, end: int) -> None:
        """Make sure that the bytes up to `end` are here, or do not exist.

        Raises:
            NeedMore: they are behind the window.
        """
        if end > len(self.text) and not self.final:
            raise NeedMore

    def structural(self, at: int) -> None:
        """Make sure that a line of the tool's own that starts at `at` is here as a whole.

        Raises:
            NeedMore: it may go on behind the window.
        """
        # Half a line might look like a whole one of another kind.
        if at + LONGEST_LINE > len(self.text) and self.text.find(b"\n", at) < 0:
            self.reach(at + LONGEST_LINE)

    def after_line(self, at: int) -> int:
        """The start of the next line.

        Raises:
            NeedMore: the line has no end in this window.
        """
        newline = self.text.find(b"\n", at)
        if newline < 0:
            self.reach(len(self.text) + 1)
            return len(self.text)
        return newline + 1

    def short_line(self, at: int, longest: int) -> int | None:
        """The start of the next line; None where this one is longer than `longest`.

        Raises:
            NeedMore: that cannot be told from this window.
        """
        newline = self.text.find(b"\n", at, at + longest)
        if newline >= 0:
            return newline + 1
        self.reach(at + longest)
        return len(self.text) if at + longest > len(self.text) else None

    def line_end(self, at: int) -> int | None:
        """The byte behind the line end that stands at `at`; None where none stands. The end of the file ends a line too.

        Raises:
            NeedMore: `at` is behind the window.
        """
        self.reach(at + 1)
        text = self.text
        if at >= len(text):
            return at if at == len(text) else None
        if text[at] == _LF:
            return at + 1
        # Elsewhere a carriage return is somebody's data.
        if self.crlf and text[at] == _CR:
            self.reach(at + 2)
            return at + 2 if text.startswith(b"\n", at + 1) else None
        return None

    def ends_line(self, at: int) -> bool:
        """Does a line feed really stand before `at`? False for a last line that was cut."""
        return at > 0 and self.text[at - 1] == _LF


class _Ended:
    """What `Window.ended` keeps."""

    window: Window | None = None
