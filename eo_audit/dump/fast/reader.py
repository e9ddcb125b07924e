"""Where the fast path runs, and where it does not: stretches of the window being read, one after the other."""

import pyarrow as pa

from eo_audit.dump.fast.facts import tables_of
from eo_audit.dump.fast.fields import Dialect
from eo_audit.dump.fast.kernel import Stretch
from eo_audit.dump.lines.decoders import TRANSACTION_JSON, TRANSACTION_TEXT, coordinator_records
from eo_audit.dump.lines.offsets_decoder import OFFSETS_JSON, offset_records
from eo_audit.dump.log.framing import HEADERS_SEARCHED
from eo_audit.dump.log.sections import profile
from eo_audit.dump.log.state import FileContext, Section
from eo_audit.dump.log.text import Window

# Long enough that the fixed cost of some hundred numpy calls is none, short enough for its columns to stay small.
STRETCH_BYTES = 4 << 20
AHEAD_BYTES = HEADERS_SEARCHED + (64 << 10)  # bytes read beyond the last group, to know what it could collide with
# Another reading of a batch may go three times as far as its text, and over header keys that were not read (`log.dispute.reach_of`). Of
# batches of a megabyte nothing would be sure in a stretch of four (34 MB of them with header keys: 9.6 MB/s, so 25.5).
REACH, MOST_AHEAD = 5, 1 << 24
LEAST_BYTES = 1 << 14  # less text is left to the exact reader


def fast_dialect(section: Section, *, crlf: bool) -> Dialect | None:
    """How the lines of a section are printed, where it has shown all that matters and is of a kind the fast path knows."""
    # The superset record line of 2.8 has a grammar of its own: the exact reader has it.
    if section.deep is None or section.dialect not in ("2.2", "3.0", "3.2", "3.3"):
        return None
    decoder = _fast_decoder(section, crlf=crlf)
    # What another decoder printed is as long as it likes: no size says where it ends.
    if section.payload_printed and section.decoder != "plain" and decoder is None:
        return None
    if section.deep and (section.payload_printed is None or (profile(section).decoder is not None and decoder is None)):
        return None
    return Dialect(section.dialect, printed=bool(section.payload_printed), crlf=crlf, decoder=decoder)


def _fast_decoder(section: Section, *, crlf: bool) -> str | None:
    """The topic decoder of a section, where the fast path knows it."""
    # Where lines end with CRLF, a line end inside an id may be two bytes or one: the exact reader decides.
    if not (section.deep and section.payload_printed) or crlf:
        return None
    decoder = profile(section).decoder
    coordinator = decoder is coordinator_records and section.decoder in (TRANSACTION_TEXT, TRANSACTION_JSON)
    return section.decoder if coordinator or (decoder is offset_records and section.decoder == OFFSETS_JSON) else None


class FastPath:
    """The fast path over one window; gathers tables of what it took.

    Attributes:
        tables: of the facts.
        ascii_lossy: some text has fewer bytes than its records, as the C locale prints them.
    """

    def __init__(self, window: Window, context: FileContext, base: int) -> None:
        """Of a window at a file offset (`base`)."""
        self._window, self._context, self._base = window, context, base
        self._stretch: Stretch | None = None
        self._section: Section | None = None
        self._longest = 0
        self.tables: dict[str, list[pa.Table]] = {"batches": [], "records": [], "coordinator_entries": [], "offset_commits": []}
        self.ascii_lossy = False

    def take(self, at: int, stop: int, section: Section) -> tuple[int, int] | None:
        """Take sure groups from a batch line on; see `Stretch.take`."""
        if self._covers(at, section):
            assert self._stretch is not None
            taken = self._stretch.take(at, stop)
            # Near the end of a stretch its last groups are unsure for want of text behind them: there another stretch begins, unless it
            # would see no more.
            sees_more = at >= self._stretch.stop - self._ahead and self._end(at, stop) > self._stretch.stop
            if taken is not None or self._stretch.start == at or not sees_more:
                return taken
        if not self._begin(at, stop, section):
            return None
        assert self._stretch is not None
        return self._stretch.take(at, stop)

    def _covers(self, at: int, section: Section) -> bool:
        same = self._section is not None and self._section.section_id == section.section_id
        return same and self._stretch is not None and self._stretch.start <= at < self._stretch.stop

    def _end(self, at: int, stop: int) -> int:
        """Where a stretch ends that begins there."""
        # What is looked ahead at is read again by the next stretch.
        return min(min(at + max(STRETCH_BYTES, self._ahead), stop) + self._ahead, len(self._window.text))

    @property
    def _ahead(self) -> int:
        """Bytes to read beyond a stretch: more where its batches are large."""
        return min(AHEAD_BYTES + REACH * self._longest, MOST_AHEAD)

    def _begin(self, at: int, stop: int, section: Section) -> bool:
        """Read another stretch, if it is worth it."""
        end = self._end(at, stop)
        dialect = fast_dialect(section, crlf=self._window.crlf)
        if dialect is None or end - at < LEAST_BYTES:
            return False
        self.finish()
        self._stretch = Stretch(self._window, at, end, dialect, deep=bool(section.deep))
        self._section, self._longest = section, self._stretch.groups.longest
        return True

    def finish(self) -> None:
        """Turn what was taken of the stretch at hand into tables."""
        stretch, section = self._stretch, self._section
        if stretch is not None and section is not None and stretch.taken:
            for name, table in tables_of(stretch, section, base=self._base + stretch.start, salt=self._context.salt).items():
                self.tables[name].append(table)
            self.ascii_lossy |= bool(stretch.groups.shorter[stretch.taken_batches()].any())
        self._stretch = None
