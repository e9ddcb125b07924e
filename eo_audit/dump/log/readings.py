"""All readings of the records behind a batch line that close, counted without going through them one by one.

A reading is a row of record lines, each where the text of the one before may end. Two readings that stand at the same byte with the same
number of records go on alike, so a step is taken once for each such place. The offsets a batch owes leave few places in honest text; text
that offers many is given up after so many steps and so much text, in proportion to the text of the batch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from eo_audit.dump.lines.dialects import BATCH_OVERHEAD, BatchLine, RecordLine, record_line
from eo_audit.dump.lines.scan import Ints
from eo_audit.dump.log.ends import ends_of
from eo_audit.dump.log.framing import HEADERS_SEARCHED, Profile, Record, least_size
from eo_audit.dump.log.marks import Marks
from eo_audit.dump.log.owed import is_last, is_next, owed_records
from eo_audit.dump.log.record_lines import RecordLines
from eo_audit.dump.log.records import LINES_LIMIT, Ending, Rules, endings, special_endings
from eo_audit.dump.log.text import Window

# The broker bounds a whole batch (message.max.bytes, 1 MiB by default), and header keys by nothing else.
LONGEST_HEADERS = 1 << 20  # bytes of header keys on one line; over line ends they may have HEADERS_SEARCHED
_SPARE = 64  # bytes behind a text that may end: what separates, and a line end
GROWN = 64  # bytes that damage may have put into the text of a batch: its genuine reading is counted all the same
_STEPS, _TEXT = 2_000, 1 << 22  # steps beyond four per record, and bytes looked through beyond 64 times the text once

Closers = Callable[[int, int], list[int]]
"""The places in a stretch of text where a batch may end: behind its first byte, up to its end."""


@dataclass
class Place:
    """A byte that some readings reach behind the same number of records: in how many ways, from where, and with what left in the batch."""

    ways: int
    before: int
    ending: Ending | None
    line: RecordLine | None
    used: int


@dataclass
class Readings:
    """The readings of a batch: how many end where, and the records of one that ends at a byte.

    `given_up`: there were too many to tell.
    """

    start: int
    ends: dict[int, int] = field(default_factory=dict)
    given_up: bool = False
    layers: list[dict[int, Place]] = field(default_factory=list)
    depth: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of readings."""
        return sum(self.ends.values())

    def records(self, end: int) -> list[Record]:
        """The records of a reading that ends at this byte."""
        found: list[Record] = []
        for layer in range(self.depth[end], 0, -1):
            place = self.layers[layer][end]
            assert place.line is not None and place.ending is not None
            found.append(Record(place.before, place.line, place.ending))
            end = place.before
        return found[::-1]


@dataclass(frozen=True)
class Search:
    """What is searched: the records behind a batch line that begin at `at`, read by `rules`, closing where `closers` says.

    `own_lines`: where its records begin, if no reading can have others (`search._own_lines`).
    """

    window: Window
    marks: Marks
    line: BatchLine
    at: int
    profile: Profile
    closers: Closers
    one_line: bool = False
    by_lines: bool = False
    own_lines: tuple[int, ...] | None = None

    def run(self) -> Readings:
        """All readings.

        Raises:
            NeedMore: one goes on behind the window.
        """
        owed = owed_records(self.line)
        rules = replace(self.profile.rules(self.line), by_lines=self.by_lines, one_line=self.one_line)
        found = Readings(self.at, layers=[{self.at: Place(1, -1, None, None, 0)}])
        steps, text, furthest = _STEPS + 4 * (owed or 0), _TEXT, self.at
        # A layer for each record of the batch: places reached behind that many records. Two ways to one place go on as one, so the work
        # grows with the places and not with the ways, of which hostile text has exponentially many.
        while found.layers[-1] and (owed is None or len(found.layers) <= owed):
            layer: dict[int, Place] = {}
            for at, place in sorted(found.layers[-1].items()):
                looked_through = self._step(at, place, layer, rules, index=len(found.layers) - 1)
                furthest = max(furthest, at + looked_through)
                text, steps = text - looked_through, steps - 1
                # The budget follows the text that the batch really has: honest batches of any size stay within it, and a forged one cannot
                # make the reading quadratic.
                if steps < 0 or text + 64 * (furthest - self.at) < 0:
                    found.given_up = True
                    return found
            found.layers.append(layer)
            if owed is None or len(found.layers) > owed:
                self._close(found)
        return found

    def _close(self, found: Readings) -> None:
        for end, place in found.layers[-1].items():
            # What is the last of a batch was asked whether it closes: see `_stops_at`.
            if place.line is not None and self._is_last(place.line, len(found.layers) - 2):
                found.ends[end] = found.ends.get(end, 0) + place.ways
                found.depth[end] = len(found.layers) - 1

    def _closes(self, end: int) -> bool:
        return end in self.closers(end - 1, end)

    def _step(self, at: int, place: Place, layer: dict[int, Place], rules: Rules, *, index: int) -> int:
        """Read the record line at `at`, if it can be the next of the batch; the bytes looked through."""
        window = self.window
        window.structural(at)
        record = record_line(window.text, at)
        if record is None or not self._is_next(record, index, place):
            return 1
        last = self._is_last(record, index)
        header_limit = self._header_limit(record, place)
        sizes = max(record.key_size, 0) + max(record.value_size, 0)
        if sizes > rules.size_limit:
            return 1
        is_special = rules.control or rules.decoder is not None
        if is_special:
            special = [ending for ending in special_endings(window, record, rules) if not last or self._closes(ending.end)]
            if special or rules.control:
                self._add_all(special, at, record, place, layer)
                return 3 * sizes + 1
        limit = self._limit(record, index, record.end + header_limit + 3 * sizes + _SPARE, last=last)
        if limit is None:
            return 1
        rules = replace(rules, header_limit=min(header_limit, limit - record.end))
        exact_limit = min(limit, record.end + rules.header_limit + sizes + _SPARE)
        # Where printing changed nothing lengths are exact, and the dear search over all marks is spared.
        if not is_special and not self.by_lines and self._stands_as_it_is(record.end, exact_limit):
            overshoot, exact = window.overshoot, list(endings(window, record, rules))
            window.overshoot = overshoot  # the exact reading before this search has said it
            self._add_all([one for one in exact if self._stops_at(one.end, index, last=last)], at, record, place, layer)
            return exact_limit - at
        self.marks.cover(window, at, limit)
        stops = self._stops(record, index, limit, last=last)
        self._add_all(ends_of(window, self.marks, record, rules, stops), at, record, place, layer)
        return limit - at

    def _limit(self, record: RecordLine, index: int, limit: int, *, last: bool) -> int | None:
        """How far the text of a record is looked through: up to a limit, and not behind the furthest line that can be the next record's;
        None where there is none. A batch of thousands of records with room for header keys would cost its text for each of them."""
        if self.by_lines:
            return record.end + LINES_LIMIT
        wanted = self._wanted(index)
        if not last and self.own_lines is not None:
            return min(limit, self.own_lines[index + 1] + len(wanted))
        if last or not self._dense:
            return limit
        line = self.window.known(RecordLines).furthest(self.window, self.line.base_offset + index + 1, record.end, limit)
        return None if line is None else line + len(wanted)

    def _wanted(self, index: int) -> bytes:
        """How the line of the next record begins."""
        # With the offset in the needle nearly every forged record line falls out before it is read.
        return b"| offset: %d " % (self.line.base_offset + index + 1) if self._dense else b"| offset: "

    def _stands_as_it_is(self, start: int, stop: int) -> bool:
        """Did printing change no byte of a stretch of text? Then lengths are exact."""
        self.window.reach(stop)
        text = self.window.text
        return not self.window.crlf and text.find(b"?", start, stop) < 0 and text.find(b"\xef", start, stop) < 0

    def _stops_at(self, end: int, index: int, *, last: bool) -> bool:
        """May the text of a record end here? See `_stops`."""
        if last:
            return self._closes(end)
        return self.window.text.startswith(self._wanted(index), end)

    def _add_all(self, found: Iterable[Ending], at: int, record: RecordLine, place: Place, layer: dict[int, Place]) -> None:
        plain = self.line.codec == "none" and self.line.magic == 2
        for ending in found:
            # An uncompressed batch prints its size: what its records take must fit into it, which ends most forged readings early.
            header = ending.headers if not plain else min(ending.headers, self._least_bytes(record.end, ending.headers))
            used = place.used + (least_size(record, self.line, None) + header if plain else 0)
            if plain and used > self.line.size_bytes - BATCH_OVERHEAD + GROWN and not self.by_lines and ending.decoded is None:
                continue
            old = layer.get(ending.end)
            if old is None:
                layer[ending.end] = Place(place.ways, at, ending, record, used)
            # Another cut of the same record is the same reading of the batch; another record that ends there is another reading.
            elif old.before != at:
                old.ways, old.used = old.ways + place.ways, min(old.used, used)

    def _least_bytes(self, start: int, printed: int) -> int:
        """Fewest bytes that printed header keys can stand for."""
        if printed == 0:
            return 0
        text, end = self.window.text, start + printed
        return printed - 2 * text.count(b"\xef\xbf\xbd", start, end) - (text.count(b"\r\n", start, end) if self.window.crlf else 0)

    def _is_next(self, record: RecordLine, index: int, place: Place) -> bool:
        # The cleaner takes records out of a batch and leaves its first and last offset as they were: what is left has gaps and still grows.
        return is_next(self.line, place.line, record) and (not self._dense or record.offset == self.line.base_offset + index)

    def _is_last(self, record: RecordLine, index: int) -> bool:
        owed = owed_records(self.line)
        return is_last(self.line, record) if owed is None else index + 1 == owed

    @property
    def _dense(self) -> bool:
        line = self.line
        return line.magic == 2 and line.record_count == line.last_offset - line.base_offset + 1

    def _header_limit(self, record: RecordLine, place: Place) -> int:
        """Bytes of text that the record's header keys can have."""
        # Headers came with magic 2 (KIP-82), as sequences did (KIP-98): no sequence in print, no headers.
        if record.sequence is None:
            return 0
        # Up to the line end a header key may be as long as it likes; over line ends only as far as it is worth looking.
        line_end = self.window.text.find(b"\n", record.end, record.end + LONGEST_HEADERS)
        if line_end < 0:
            self.window.reach(record.end + LONGEST_HEADERS)
        to_line_end = (line_end if line_end >= 0 else record.end + LONGEST_HEADERS) - record.end
        if self.line.codec != "none":
            return to_line_end if self.one_line else to_line_end + HEADERS_SEARCHED
        room = max(self.line.size_bytes - BATCH_OVERHEAD + GROWN - place.used - least_size(record, self.line, None), 0)
        # A byte that is no UTF-8 prints as U+FFFD, three bytes of text for one of the record.
        return min(to_line_end, 3 * room) if self.one_line else 3 * room

    def _stops(self, record: RecordLine, index: int, limit: int, *, last: bool) -> Ints:
        """Where the record's text may end: before the line of the next record, or where the batch may."""
        window = self.window
        if last:
            return np.array(self.closers(record.end, limit), dtype=np.int64)
        wanted = b"\n" + self._wanted(index)
        stops, at = [], window.text.find(wanted, record.end, limit)
        while at >= 0:
            stops.append(at + 1)
            at = window.text.find(wanted, at + 1, limit)
        return np.array(stops, dtype=np.int64)
