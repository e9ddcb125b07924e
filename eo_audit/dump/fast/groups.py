"""Batch lines and the records behind them, put together for a whole stretch of text, and which of the groups are beyond doubt."""

from bisect import bisect_left
from functools import cached_property

import numpy as np

from eo_audit.dump.fast.fields import Dialect, LineColumns
from eo_audit.dump.fast.lines import NO_SPAN, Lines, RecordColumns
from eo_audit.dump.fast.lossy import Lossy
from eo_audit.dump.fast.odd_lines import is_told_before, that_may_matter
from eo_audit.dump.fast.sizes import least_sizes
from eo_audit.dump.fast.sorted_places import NONE, counted, index_of, within
from eo_audit.dump.lines.dialects import BATCH_OVERHEAD, LONGEST_LINE, record_line
from eo_audit.dump.lines.scan import Bits, Ints, Octets
from eo_audit.dump.log.ahead import HIDDEN
from eo_audit.dump.log.dispute import MIN_FORGED, swallows
from eo_audit.dump.log.framing import HEADERS_SEARCHED, LARGEST_RECORD, LONGEST_MESSAGE
from eo_audit.dump.log.readings import GROWN
from eo_audit.dump.log.records import Rules, endings
from eo_audit.dump.log.text import NeedMore, Window

_FAR = np.iinfo(np.int64).max


# Why all this in columns: on clean text the exact reader does 8 to 14 MB/s on one core, whole arrays 75 to 105 MB/s. It pays only while
# nearly every group is sure, so all that is odd is left to the exact reader, not decided here.
class Groups:
    """The groups of a stretch, one per candidate batch line; offsets are those of the stretch.

    Attributes:
        count: records the batch owes (0 in a shallow dump).
        first: its first record (index).
        end: where it ends.
        next: the batch line at its end (index; NONE: none).
        sure: it is read as the exact reader would read it.
        found: the records (index) of groups whose records do not simply stand one behind the other.
        by_lines: no length delimits its records, its lines do, see `Lossy`.
        shorter: text of it has fewer bytes than its records, as the C locale prints them.
    """

    def __init__(self, text: Octets, lines: Lines, batches: LineColumns, records: RecordColumns, *, deep: bool) -> None:
        """Put together what was read of a stretch, with records (`deep`) or without."""
        self._text, self._lines, self._batches, self._records, self._deep = text, lines, batches, records, deep
        self._control, self._codec = batches.flags["is_control"], batches.codes("codec")
        self.found: dict[int, Ints] = {}
        self._lossy = Lossy(text, lines, batches, records)
        self.by_lines, self.shorter = np.zeros((2, len(batches.start)), dtype=bool)
        # As `owed_records`: a count below 0 is damage, and owes nothing.
        self.count = np.maximum(batches.numbers["count"], 0) if deep else np.zeros(len(batches.start), dtype=np.int64)
        self.first = np.searchsorted(records.start, batches.end)
        self._whole = self._are_whole()
        # Clipped, so that groups that are not whole have an end as well; nobody reads it.
        last = np.minimum(np.maximum(self.first + self.count - 1, 0), len(records.start) - 1)
        self.end = np.where(self.count > 0, records.end[last], batches.end) if len(records.start) else batches.end

    def judge(self, window: Window, offset: int, dialect: Dialect) -> None:
        """Look again at the groups that are not whole at first sight, then find out which groups are sure.

        Args:
            window: the window the stretch is of.
            offset: where the stretch begins in it.
            dialect: of its lines.
        """
        to_end = window.final and offset + self._text.size == len(window.text)
        if self._deep and dialect.decoder is None:
            if dialect.printed and not dialect.crlf:
                self._read_by_lines(hides_keys=dialect.name == "2.2", to_end=to_end)
            # One by one, in Python: forged lines and odd header keys are rare, or the text is hostile and slow anyway.
            for group in np.flatnonzero(self._batches.ok & ~self._whole & ~self._control).tolist():
                self._follow(group, window, offset, dialect)
        self._limit = window.limit
        self.next = self._following()
        self.sure: Bits
        if dialect.decoder is not None:
            self.sure = self._whole & self._chained() & self._hold_their_records()
        elif self._deep:
            rooms, (longer, loose) = self._rooms(), self._changed(window.text, offset, crlf=window.crlf)
            self._whole &= ~self.by_lines | (rooms >= 0)
            self.sure = self._whole & self._undisputed(window, offset, rooms, longer, loose, to_end=to_end)
            self.sure &= ~self._told_before(window, offset, loose)
        else:
            self.sure = self._whole & (self._chained() | (self.next == NONE))
        if window.limit is not None:
            # The batch that ends with the segment's file is left to the exact reader: no batch line behind it can prove where its text
            # ends.
            self.sure &= self._batches.numbers["position"] + self._batches.numbers["size_bytes"] < window.limit

    @property
    def longest(self) -> int:
        """Bytes of text of the longest group whose records are all there."""
        return int(np.max((self.end - self._batches.start)[self._whole], initial=0))

    def _chained(self) -> Bits:
        """Does the batch line behind each group stand at the next position?"""
        numbers = self._batches.numbers
        claimed = numbers["position"] + numbers["size_bytes"]
        # NONE is -1, which numpy takes for the last row: what is compared there counts for nothing.
        chained: Bits = (self.next != NONE) & (numbers["position"][self.next] == claimed if len(claimed) else True)
        return chained

    def _are_whole(self) -> Bits:
        """Are all its records there, each of the form a record must have, and each where the one before ends?"""
        batches, records = self._batches, self._records
        total = len(records.start)
        behind = np.minimum(self.first + self.count, total)
        at_hand = (self.count == 0) | ((self.first + self.count <= total) & (index_of(batches.end, records.start) != NONE))
        # How many of a run of records are odd is a difference of two running sums: no loop over groups.
        unfit, unmarked = counted(~records.plain), counted(~records.marks)
        strange = np.where(self._control, unmarked[behind] - unmarked[self.first], unfit[behind] - unfit[self.first])
        # The flag of the last record stands for the one that it lacks; a group looks only at those between its own records.
        apart = (records.start[1:] != records.end[:-1]) | (records.offset[1:] <= records.offset[:-1])
        loose = counted(np.append(apart, True) if total else np.zeros(0, dtype=bool))
        gaps = loose[np.maximum(behind - 1, self.first)] - loose[self.first]
        whole: Bits = batches.ok & at_hand & ((self.count == 0) | ((strange == 0) & (gaps == 0)))
        if total:
            whole &= (self.count == 0) | self._are_within(self.first, np.maximum(behind - 1, 0), slice(None))
        return whole

    def _are_within(self, first: Ints, last: Ints, group: slice | int) -> Bits:
        """Are the offsets of the first and the last record (index) of each group among those of its batch?"""
        numbers, offset = self._batches.numbers, self._records.offset
        most = len(offset) - 1
        begun: Bits = offset[np.minimum(first, most)] >= numbers["base_offset"][group]
        return begun & (offset[np.minimum(last, most)] <= numbers["last_offset"][group])

    def _hold_their_records(self) -> Bits:
        """Markers, and batches that are large enough for the keys and values of their records, as `Rules.size_limit` wants it."""
        numbers, records = self._batches.numbers, self._records
        sizes = np.concatenate(([0], np.cumsum(np.maximum(records.key_size, 0) + np.maximum(records.value_size, 0))))
        first = np.minimum(self.first, len(records.start))
        used = sizes[np.minimum(first + self.count, len(records.start))] - sizes[first]
        limit = np.where(self._codec == 0, np.minimum(numbers["size_bytes"], LARGEST_RECORD), LARGEST_RECORD)
        held: Bits = self._control | (used <= limit)
        return held

    def _following(self) -> Ints:
        place = index_of(self.end, self._batches.start)
        return np.where((place != NONE) & self._batches.ok[place], place, NONE) if len(place) else place

    def _rooms(self) -> Ints:
        """Bytes that unread header keys may have in each whole group, as `log.dispute` counts them; negative where sizes do not fit."""
        plain = self._whole & ~self._control & (self._codec == 0)
        odd = np.array([group for group in self.found if plain[group]], dtype=np.int64)
        # A compressed batch does not print how many bytes its records have when unpacked: its header keys may be as long as is looked
        # through.
        rooms = np.where(self._control, 0, HEADERS_SEARCHED)
        rooms[plain] = self._batches.numbers["size_bytes"][plain] - BATCH_OVERHEAD
        plain[odd] = False
        groups = np.flatnonzero(plain)
        count = self.count[groups]
        begins = np.cumsum(count) - count
        index = np.arange(int(count.sum())) + np.repeat(self.first[groups] - begins, count)
        rooms[groups] -= self._used(index, groups, count)
        if len(odd):
            rooms[odd] -= self._used(np.concatenate([self.found[group] for group in odd]), odd, self.count[odd])
        return rooms

    def _used(self, index: Ints, groups: Ints, count: Ints) -> Ints:
        """Bytes that the records (index) of each group take in their uncompressed batch."""
        least = least_sizes(self._batches, self._records, index, np.repeat(groups, count), self.first)
        summed, behind = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(least))), np.cumsum(count)
        used: Ints = summed[behind] - summed[behind - count]
        return used

    def _undisputed(self, window: Window, offset: int, room: Ints, longer: Bits, loose: Bits, *, to_end: bool) -> Bits:
        """Can each group be read in one way only, as far as `log.dispute.is_disputed` and `log.search.judge` would see?

        There is no room for a forged line in header keys that were not read, or no line within that room claims the next position; and
        printing changed nothing, or there are no lines at which another reading could end.

        Args:
            window, offset: as of `judge`.
            room: bytes of header keys that were not read.
            longer, loose: see `_changed`.
            to_end: the file ends with the stretch.
        """
        if len(self.end) == 0:
            return np.zeros(0, dtype=bool)
        plain, text = self._codec == 0, self.end - self._batches.start
        # U+FFFD is three bytes of text for one byte of a record: another reading may go three times as far. Where lines alone say where
        # texts end, all places are asked for where a batch could, and those before which messages stand are looked for further on.
        reach = self.end + 3 * text + np.where(plain, 3 * room, room)
        looked = reach + np.where(self.by_lines, LONGEST_MESSAGE, 0)
        # A line that begins within reach is told from a batch line only when all of it is there.
        in_view = looked + LONGEST_LINE < self._text.size
        alone = (room < MIN_FORGED) & ~longer & ~self.by_lines
        if not alone.all() or loose.any():
            lines = np.flatnonzero(self.by_lines)
            if to_end:
                in_view |= ~plain & ~longer & ~self.by_lines
                # The search counts one byte for each timestamp.
                spare = np.where(plain, room + GROWN + 9 * self.count, 0)
                in_view[lines] |= self._lossy.ends_before((self.first + self.count - 1)[lines], spare[lines])
            undisputed = in_view & ~self._claimed_again(window, offset, looked)
            # Header keys of compressed batches are looked through for 64 KB; that damage hides a longer one is thought of for 16 KB only.
            hidden = reach - np.where(plain, 0, HEADERS_SEARCHED - HIDDEN)
            hidden[lines] = self._lossy.furthest(self._batches.end[lines], self.end[lines], np.where(plain, room, HIDDEN)[lines])
            settled = undisputed & self._goes_on(hidden, to_end=to_end)
            alone = (alone & ~loose) | (settled & (~loose | self._hold_only_records()))
            alone[lines] &= ~self._lossy.print_again(lines, self.end[lines], reach[lines])
        sure: Bits = self._chained() & (room >= 0) & alone
        return sure

    def _claimed_again(self, window: Window, offset: int, reach: Ints) -> Bits:
        """Groups with a line in the text of their records, or behind them within reach, that may claim to be the batch line behind them, or
        begin a section."""
        starts, position = self._batches.start, self._batches.numbers["position"]
        unknown = np.sort(np.concatenate((starts[~self._batches.ok], that_may_matter(window, offset, self._lines.others))))
        again: Bits = within(unknown, self._batches.end, reach)[1] > 0
        # By position, then by place: another line at the position of the one behind a group is its neighbour there.
        order = np.flatnonzero(self._batches.ok)
        order = order[np.argsort(position[order], kind="stable")]
        rank = np.zeros(len(starts), dtype=np.int64)
        rank[order] = np.arange(len(order))
        order = np.concatenate(([NONE], order, [NONE, NONE]))  # the last one for a group that has none behind it
        for neighbour in (order[rank[self.next]], order[rank[self.next] + 2]):
            same = (neighbour != NONE) & (position[neighbour] == position[self.next])
            again |= same & (starts[neighbour] >= self._batches.end) & (starts[neighbour] < reach)
        return again

    def _hold_only_records(self) -> Bits:
        held = self._whole & (self.count > 0)
        group = np.flatnonzero(held)
        held[group] = self._lossy.hold_only_records(group, self.first[group], self.count[group], self.end[group])
        return held

    def _told_before(self, window: Window, offset: int, loose: Bits) -> Bits:
        """Groups with a line before their end that may be a message of the tool, where another reading could end."""
        told, some = np.zeros(len(self.end), dtype=bool), np.flatnonzero(self.sure & loose)
        # The last line of nearly all of them is that of a record.
        last_line = self._lines.all[np.searchsorted(self._lines.all, self.end[some]) - 1]
        for group in some[last_line > self._records.start[self.first[some] + self.count[some] - 1]].tolist():
            told[group] = is_told_before(window, offset + int(self.end[group]), offset + int(self._batches.end[group]))
        return told

    def _goes_on(self, reach: Ints, *, to_end: bool) -> Bits:
        """Groups behind which the text is whole as far as they could reach, see `log.ahead`."""
        starts, numbers = self._batches.start, self._batches.numbers
        linked = self._whole & (self._chained() | (to_end & (self.end == self._text.size)))
        if self._limit is not None:
            linked &= numbers["position"] + numbers["size_bytes"] < self._limit
        # Lines that look like batch lines in the text of a group are no elements.
        inside = np.append(False, np.maximum.accumulate(np.where(linked, self.end, 0))[:-1] > starts[1:]) if len(starts) else linked
        breaks = np.append(starts[~linked & ~inside], _FAR if to_end else self._text.size)
        whole: Bits = breaks[np.searchsorted(breaks, starts, side="left")] > reach
        return whole

    def _changed(self, text: bytes, offset: int, *, crlf: bool) -> tuple[Bits, Bits]:
        """Groups whose text may stand for fewer bytes than it has; and those whose text may stand for fewer or more, and has line feeds at
        which it could end."""
        stop = offset + self._text.size
        # Where lines end with CRLF, a line feed of a payload may be two bytes of text for one of the record.
        replaced = ~self._one_line_each() if crlf else np.zeros(len(self.end), dtype=bool)
        if text.find(b"\xef", offset, stop) >= 0:  # one byte is found faster than three
            replaced |= self._hold(self._lossy.replaced)
        # In the C locale Java prints `?` for each character that ASCII lacks: fewer bytes of text than the record has.
        asked = self._hold(self._lossy.asked) if text.find(b"?", offset, stop) >= 0 else replaced
        changed = replaced | asked
        return replaced, changed & ~self._control & ~self._one_line_each() if changed.any() else changed

    def _hold(self, offsets: Ints) -> Bits:
        """Groups that have one of these (sorted) offsets in the text of their records."""
        held: Bits = within(offsets, self._batches.end, self.end)[1] > 0
        return held

    def _one_line_each(self) -> Bits:
        """Groups whose records have no line feeds but those that end them."""
        held: Bits = within(self._lines.all, self._batches.end, self.end)[1] == self.count
        return held

    # groups that need a second look

    def _read_by_lines(self, *, hides_keys: bool, to_end: bool) -> None:
        """Read groups by their lines that no length delimits."""
        self.next = self._following()
        # A text that is longer than its bytes may have a line feed just where these would end.
        odd = self._batches.ok & ~self._control & (self.count > 0) & ~(self._whole & self._chained())
        if len(self._records.start):
            odd &= self._are_within(self.first, self.first + self.count - 1, slice(None))
        group = np.flatnonzero(odd)
        group, end, shorter = self._lossy.read(group, self.first[group], self.count[group], hides_keys=hides_keys, to_end=to_end)
        self.end[group], self._whole[group], self.by_lines[group], self.shorter[group] = end, True, True, shorter

    def _follow(self, group: int, window: Window, offset: int, dialect: Dialect) -> None:
        """Follow the records of a group one by one: past forged lines, and to later ends of header keys."""
        # Lists: `bisect` on a list is many times faster than one numpy call for one number.
        starts, ends, fit = self._record_lists
        at, found = int(self._batches.end[group]), []
        for _ in range(int(self.count[group])):
            index = bisect_left(starts, at)
            if index == len(starts) or starts[index] != at:
                return
            if not fit[index] and not self._read_again(index, group, window, offset, dialect):
                return
            found.append(index)
            at = ends[index]
        offsets = self._records.offset[found]
        if (offsets[1:] <= offsets[:-1]).any() or not self._are_within(np.array(found[0]), np.array(found[-1]), group):
            return
        self.found[group] = np.array(found, dtype=np.int64)
        self.first[group], self.end[group], self._whole[group] = found[0], at, True

    @cached_property
    def _record_lists(self) -> tuple[list[int], list[int], list[bool]]:
        """Starts and ends of the records, and whether they have the form of a data record, to be followed one by one."""
        records = self._records
        return records.start.tolist(), records.end.tolist(), records.plain.tolist()

    def _read_again(self, index: int, group: int, window: Window, offset: int, dialect: Dialect) -> bool:
        """Let the exact reader find the end of one record."""
        records, plain = self._records, self._codec[group] == 0
        if not records.ok[index]:
            return False
        # Header keys are looked through as far as `Profile.rules` lets the exact reader: else the two would differ.
        size = int(self._batches.numbers["size_bytes"][group]) if plain else HEADERS_SEARCHED
        limit = size if plain else self._text.size
        rules = Rules(dialect.printed, dialect.is_old, False, limit, min(size, HEADERS_SEARCHED), by_lines=False)
        line = record_line(window.text, offset + int(records.start[index]))
        try:
            ending = next(endings(window, line, rules), None) if line else None
        except NeedMore:
            return False
        if line is None or ending is None or (ending.headers and swallows(window, line, ending)):
            return False
        records.headers[index], records.end[index] = ending.headers, ending.end - offset
        records.key[index] = NO_SPAN if ending.key is None else ending.key[0] - offset
        records.value[index] = NO_SPAN if ending.value is None else ending.value[0] - offset
        records.plain[index] = True
        _, ends, fit = self._record_lists
        ends[index], fit[index] = ending.end - offset, True
        return True
