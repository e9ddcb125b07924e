"""A window of dump text: line ends, and how much text is needed to be sure."""

from dataclasses import dataclass

from eo_audit.dump.dialects import LONGEST_LINE

_REPLACEMENT = "\ufffd".encode()
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
        overshoot: set by a reader that met a length reaching behind the end of the file.
    """

    text: bytes
    final: bool
    crlf: bool = False
    overshoot: bool = False

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
        if self.crlf and text[at] == _CR:
            self.reach(at + 2)
            return at + 2 if text.startswith(b"\n", at + 1) else None
        return None

    def ends_line(self, at: int) -> bool:
        """Does a line feed really stand before `at`? False for a last line that was cut."""
        return at > 0 and self.text[at - 1] == _LF


def lossy_cuts(window: Window, start: int, *, size: int, mark: bytes) -> list[int]:
    """Where text that stands for `size` bytes may end: occurrences of `mark` (a line feed, or what separates key and payload) behind it.

    Text is longer than its bytes where U+FFFD stands for one or two of them or CRLF for a line feed, and shorter where `?` stands for a
    character outside ASCII.
    """
    limit = start + 4 * size + len(mark) + 1
    window.reach(limit)
    text, cuts = window.text, []
    shortest = longest = 0
    at, cut = start, text.find(mark, start, limit)
    while cut >= 0:
        piece = text[at:cut]
        shortest += len(piece) - 2 * piece.count(_REPLACEMENT) - piece.count(b"\r\n")
        longest += len(piece) + 3 * piece.count(b"?")
        carriage = window.crlf and mark == b"\n" and piece.endswith(b"\r")
        if shortest - carriage > size:
            break
        if longest - carriage >= size:
            cuts.append(cut - carriage)
        shortest -= carriage  # the line feed behind it belongs to the next piece, and both to one byte
        at, cut = cut, text.find(mark, cut + 1, limit)
    return cuts
