"""Records whose text lost bytes in printing: what is no UTF-8 prints as U+FFFD, three bytes of text for one to three of a record, and in
the C locale as `?`, as each character does that ASCII lacks: one byte of text for up to four (`log.marks`).

No length says where such a text ends. Here the lines do: a group has just as many record lines as its batch owes, and no other line of the
tool behind its batch line, so each text ends before the next of them, if it can stand for as many bytes as the record has.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eo_audit.dump.fast.fields import LineColumns
from eo_audit.dump.fast.lines import NO_SPAN, Lines, RecordColumns
from eo_audit.dump.fast.sorted_places import within
from eo_audit.dump.lines.dialects import LONGEST_LINE
from eo_audit.dump.lines.scan import Bits, Ints, Octets
from eo_audit.dump.log.framing import HEADERS_SEARCHED

_KEY, _PAYLOAD = b" key: ", b" payload: "
_MOST_LINES = 10_000  # of a batch, that are looked through one by one
_SPARE = 64  # bytes of varints and line ends that no print shows
_REPLACEMENT = b"\xef\xbf\xbd"


@dataclass(frozen=True)
class Texts:
    """Records (index), one group after another, and the text of each: from `begin`, where its header keys do, to the line end at `stop`."""

    index: Ints
    begin: Ints
    stop: Ints
    line_end: Ints


class Separators(NamedTuple):
    """Places of `] key: `, of `] payload: ` and of ` payload: `, sorted."""

    keys: Ints
    payloads: Ints
    parts: Ints


@dataclass(frozen=True)
class Cuts:
    """Where texts are cut into header keys, key and value, whether in just this one way, and whether one is shorter than its bytes."""

    close: Ints
    key: tuple[Ints, Ints]
    value: tuple[Ints, Ints]
    fits: Bits
    shorter: Bits


class ByLines(NamedTuple):
    """Groups (by index) that were read by their lines: where each ends, and whether a text of it is shorter than its bytes."""

    group: Ints
    end: Ints
    shorter: Bits


class Lossy:
    """What is looked for in a stretch of text of which printing may have changed some."""

    def __init__(self, text: Octets, lines: Lines, batches: LineColumns, records: RecordColumns) -> None:
        """Of the lines of a stretch."""
        self._text, self._lines, self._batches, self._records = text, lines, batches, records

    def hold_only_records(self, group: Ints, first: Ints, count: Ints, end: Ints) -> Bits:
        """Which groups have no lines of the tool behind their batch lines but the records that they owe: up to `end`, from the `first`."""
        begin, records = self._batches.end[group], self._records.start
        start, owned = within(records, begin, end)
        held: Bits = (start == first) & (owned == count)
        held[held] &= records[np.minimum(first[held], len(records) - 1)] == begin[held]
        for others in (self._batches.start, self._lines.others):
            held &= within(others, begin, end)[1] == 0
        return held

    def read(self, group: Ints, first: Ints, count: Ints, *, hides_keys: bool, to_end: bool) -> ByLines:
        """Read groups whose records no length delimits, where their lines do.

        The columns of their records become those of this reading.

        Args:
            group: groups, by the index of their batch line.
            first: the first record of each.
            count: records that each owes, one at least.
            hides_keys: a null value may hide its key.
            to_end: the file ends with the stretch.

        Returns:
            The groups that can be read so.
        """
        whole_line = to_end and self._text.size > 0 and self._text.bytes[self._text.size - 1] == ord("\n")
        end = np.append(self._batches.start, self._text.size if whole_line else -1)[group + 1]
        there = end >= 0
        group, first, count, end = group[there], first[there], count[there], end[there]
        held = self.hold_only_records(group, first, count, end)
        if held.any():  # in clean text there are none, and nothing to look for
            held &= within(self._changed, self._batches.end[group], end)[1] > 0
        group, first, count, end = group[held], first[held], count[held], end[held]
        if not len(group):
            return ByLines(group, end, np.zeros(0, dtype=bool))
        texts = self._texts(first, count, end)
        cuts = self._cuts(texts, self._separators(self._batches.end[group], end))
        fits = cuts.fits & self._grow(texts.index, first, count)
        if hides_keys:
            fits &= (self._records.key_size[texts.index] < 0) | (self._records.value_size[texts.index] >= 0)
        begins = np.cumsum(count) - count
        read = np.logical_and.reduceat(fits, begins)
        self._keep(texts, cuts, np.repeat(read, count))
        return ByLines(group[read], end[read], np.logical_or.reduceat(cuts.shorter, begins)[read])

    def furthest(self, begin: Ints, end: Ints, room: Ints) -> Ints:
        """How far the text behind groups must be whole that are read by their lines, as `log.ahead` has it.

        Args:
            begin: where the text of their records begins.
            end: where it ends.
            room: bytes that they may have beyond what is printed.
        """
        changed = within(self._changed, begin, end)[1]
        least = room + (3 if self._is_ascii else 2) * changed + (end - begin) + _SPARE
        reach: Ints = end + least
        for _ in range(0 if self._is_ascii else 3):
            reach = end + least + 2 * within(self._changed, end, reach)[1]
        return reach

    def ends_before(self, last: Ints, spare: Ints) -> Bits:
        """Groups of which no reading goes on behind the last batch line of the stretch: the text up to there has too many bytes.

        Args:
            last: their last records (index).
            spare: bytes that each group may have beyond keys, values and the header keys read.
        """
        stop, records = self._batches.end[-1:], self._records
        begin = records.line.end[last] + records.headers[last] + 1
        least = stop - begin - (0 if self._is_ascii else 2) * within(self._changed, begin, np.maximum(begin, stop))[1]
        printed = np.maximum(records.key_size[last], 0) + np.maximum(records.value_size[last], 0) + len(_KEY + _PAYLOAD)
        return self._batches.ok[-1:] & (least > printed + spare)

    def print_again(self, group: Ints, end: Ints, reach: Ints) -> Bits:
        """Groups behind which a line may print an offset of their batch once more: from their end on, up to `reach`."""
        numbers, records = self._batches.numbers, self._records
        again: Bits = within(records.start[~records.ok], end, reach)[1] > 0
        known = np.flatnonzero(records.ok)
        order = known[np.argsort(records.offset[known], kind="stable")]
        first, count = within(records.offset[order], numbers["base_offset"][group], numbers["last_offset"][group] + 1)
        # Nearly always these are the records of the group; else one by one, in Python, but not all lines for each of thousands of groups.
        for index in np.flatnonzero(count > numbers["count"][group]).tolist():
            places = records.start[order[first[index] : first[index] + min(count[index], _MOST_LINES)]]
            again[index] |= count[index] > _MOST_LINES or bool(((places >= end[index]) & (places < reach[index])).any())
        return again

    def _texts(self, first: Ints, count: Ints, end: Ints) -> Texts:
        records, behind = self._records, np.cumsum(count)
        index = np.arange(int(behind[-1])) + np.repeat(first - behind + count, count)
        next_line = np.append(records.start, 0)[index + 1]
        next_line[behind - 1] = end
        begin = records.line.end[index]
        line = np.minimum(np.searchsorted(self._lines.all, begin, side="right"), len(self._lines.all) - 1)
        return Texts(index, begin, next_line - 1, self._lines.all[line] - 1)

    def _separators(self, begin: Ints, end: Ints) -> Separators:
        """In the texts of some groups: they may be few, and the stretch long."""
        # Groups that only a batch line parts are looked through at once.
        apart = begin[1:] - end[:-1] > LONGEST_LINE
        stretches = list(zip(begin[np.append(True, apart)].tolist(), end[np.append(apart, True)].tolist(), strict=True))
        content, text = self._text.bytes, self._text
        closes, spaces = (np.concatenate([np.flatnonzero(content[a:b] == byte) + a for a, b in stretches]) for byte in b"] ")
        keys, payloads = (closes[text.stands(b"]" + separator, closes)] for separator in (_KEY, _PAYLOAD))
        return Separators(keys, payloads, spaces[text.stands(_PAYLOAD, spaces)])

    def _cuts(self, texts: Texts, places: Separators) -> Cuts:
        records, index = self._records, texts.index
        key_size, value_size = records.key_size[index], records.value_size[index]
        with_key, with_value = key_size >= 0, value_size >= 0
        close, one_head = self._heads(texts, places, with_key)
        key = close + len(_KEY) * with_key
        part, one_part = self._only(places.parts, close, texts.stop)
        both = with_key & with_value
        key_end = np.where(both, part, np.where(with_key, texts.stop, close))
        value = key_end + len(_PAYLOAD) * with_value
        fits = records.ok[index] & one_head & (one_part | ~both) & (close - texts.begin <= HEADERS_SEARCHED)
        fits &= within(self._changed, texts.begin, close)[1] == 0
        fits &= ~with_key | self._stands_for(key, key_end, key_size)
        fits &= ~with_value | self._stands_for(value, texts.stop, value_size)
        # Nothing was printed that could have changed: it is as long as it is.
        exact = records.plain[index] & (records.end[index] == texts.stop + 1)
        shorter = (with_key & (key_end - key < key_size)) | (with_value & (texts.stop - value < value_size))
        return Cuts(close, (key, key_end), (value, texts.stop), np.where(with_key | with_value, fits, exact), shorter)

    def _heads(self, texts: Texts, places: Separators, with_key: Bits) -> tuple[Ints, Bits]:
        """Behind the header keys, where what comes next stands just once in the rest of the line."""
        keyed, one_key = self._only(places.keys, texts.begin, texts.line_end)
        bare, one_payload = self._only(places.payloads, texts.begin, texts.line_end)
        return np.where(with_key, keyed, bare) + 1, np.where(with_key, one_key, one_payload)

    def _only(self, places: Ints, start: Ints, stop: Ints) -> tuple[Ints, Bits]:
        first, count = within(places, start, stop)
        return np.append(places, self._text.size)[first], count == 1

    def _stands_for(self, start: Ints, stop: Ints, size: Ints) -> Bits:
        """Can a text stand for so many bytes, some of it for others than it shows?"""
        length, changed = stop - start, within(self._changed, start, np.maximum(start, stop))[1]
        least, most = (length, length + 3 * changed) if self._is_ascii else (length - 2 * changed, length)
        stands: Bits = (least <= size) & (size <= most)
        return stands

    def _grow(self, index: Ints, first: Ints, count: Ints) -> Bits:
        """Is the offset of each record behind that of the one before in its group?"""
        offset = self._records.offset[index]
        grow = np.append(True, offset[1:] > offset[:-1])
        grow[np.cumsum(count) - count] = True
        return grow

    def _keep(self, texts: Texts, cuts: Cuts, read: Bits) -> None:
        records, index = self._records, texts.index[read]
        printed = (records.key_size[index] >= 0) | (records.value_size[index] >= 0)
        for kept, size, (start, stop) in ((records.key, records.key_size, cuts.key), (records.value, records.value_size, cuts.value)):
            # A text of another length is not the bytes of the record: it has no hash.
            same = (stop - start)[read] == size[index]
            kept[index[printed]] = np.where(same & (size[index] >= 0), start[read], NO_SPAN)[printed]
        records.headers[index[printed]] = (cuts.close - texts.begin - 1)[read][printed]
        records.end[index], records.plain[index] = texts.stop[read] + 1, True

    @cached_property
    def _is_ascii(self) -> bool:
        """Did the tool run in the C locale, or was there nothing that would show it?"""
        return not np.any(self._text.bytes[: self._text.size] & 0x80)

    @cached_property
    def replaced(self) -> Ints:
        """Places of U+FFFD."""
        leads = np.flatnonzero(self._text.bytes[: self._text.size] == _REPLACEMENT[0])
        return leads[self._text.stands(_REPLACEMENT, leads)]

    @cached_property
    def asked(self) -> Ints:
        """Places of `?`."""
        return np.flatnonzero(self._text.bytes[: self._text.size] == ord("?"))

    @property
    def _changed(self) -> Ints:
        """Places of what may stand for other bytes."""
        return self.asked if self._is_ascii else self.replaced
