"""Whole groups of a stretch of dump text at once: the fast path of the reader, in numpy.

Lines are read as columns (`lines`), then put together (`groups`): the records behind a batch line are those that its `count`
and their own ends lead to, so a forged line inside a payload is never reached. Records of topic decoders have grammars of their own
(`entries`, `commits`). Runs of groups that are beyond doubt are taken; the exact reader gets everything else, and both always
agree.
"""

from bisect import bisect_left

import numpy as np

from eo_audit.dump.fast.commits import CommitColumns, read_commits
from eo_audit.dump.fast.entries import EntryColumns, read_entries
from eo_audit.dump.fast.fields import Dialect, LineColumns
from eo_audit.dump.fast.groups import Groups
from eo_audit.dump.fast.lines import RecordColumns, find_lines, read_batches, read_records
from eo_audit.dump.fast.sorted_places import NONE
from eo_audit.dump.lines.offsets_decoder import OFFSETS_JSON
from eo_audit.dump.lines.scan import Ints, Octets
from eo_audit.dump.log.text import Window


class Stretch:
    """A stretch of a window that begins with a batch line of the tool's own.

    Attributes:
        start, stop: where it lies in the window.
        deep: it has record lines.
        text: its text.
        batches, records: its candidate lines; offsets are those of the stretch.
        decoded: what a topic decoder printed of the records; None where none did.
        groups: what the lines make up.
        taken: runs of groups taken so far, as (first, behind the last).
    """

    def __init__(self, window: Window, start: int, stop: int, dialect: Dialect, *, deep: bool) -> None:
        """Read the stretch [start, stop) of a window, printed in one dialect, with record lines (`deep`) or without."""
        self.text = Octets(window.text, start, stop)
        self.start, self.stop, self.deep = start, start + self.text.size, deep
        lines = find_lines(self.text)
        self.batches: LineColumns = read_batches(self.text, lines.batches, dialect)
        starts = lines.records if deep else lines.records[:0]
        self.decoded: EntryColumns | CommitColumns | None = None
        if dialect.decoder is None:
            self.records: RecordColumns = read_records(self.text, starts, dialect)
        else:
            read = read_commits if dialect.decoder == OFFSETS_JSON else read_entries
            self.records, self.decoded = read(self.text, starts, dialect)
        self.groups = Groups(self.text, lines, self.batches, self.records, deep=deep)
        self.groups.judge(window, start, dialect)
        self.taken: list[tuple[int, int]] = []
        # A run of sure groups is taken in one step, whatever its length: where each ends is found once, not group by group.
        follows = self.groups.next == np.arange(len(self.groups.sure)) + 1
        self._breaks: list[int] = np.append(np.flatnonzero(~(self.groups.sure & follows)), len(follows)).tolist()

    def take(self, at: int, stop: int) -> tuple[int, int] | None:
        """Take the sure groups from `at` on that start before `stop` (offsets of the window), up to the first that is not sure.

        Returns:
            Where they end, and what position the batch line there must print; None when not even the first group is sure.
        """
        groups = self.groups
        # Elements belong to the range they begin in, so the last one may end behind `stop`.
        limit = int(np.searchsorted(self.batches.start, stop - self.start))
        current, last = self._batch_at(at - self.start), NONE
        while NONE != current < limit:
            behind = min(self._breaks[bisect_left(self._breaks, current)], limit)
            if behind > current:
                self.taken.append((current, behind))
                current, last = behind, behind - 1
            elif groups.sure[current]:
                self.taken.append((current, current + 1))
                current, last = int(groups.next[current]), current
            else:
                break
        if last == NONE:
            return None
        numbers = self.batches.numbers
        return self.start + int(groups.end[last]), int(numbers["position"][last] + numbers["size_bytes"][last])

    def _batch_at(self, offset: int) -> int:
        starts = self.batches.start
        index = int(np.searchsorted(starts, offset))
        return index if index < len(starts) and starts[index] == offset else NONE

    def taken_batches(self) -> Ints:
        """The batches taken, by index."""
        return np.concatenate([np.arange(first, behind) for first, behind in self.taken])

    def records_of(self, batches: Ints) -> tuple[Ints, Ints]:
        """The records of some batches, by index, and for each its batch."""
        groups, count = self.groups, self.groups.count[batches]
        begins = np.cumsum(count) - count
        # Nearly always the records of a batch are the lines that follow it; the few others were looked for, and are put in afterwards.
        records = np.arange(int(count.sum())) + np.repeat(groups.first[batches] - begins, count)
        for place in np.flatnonzero(np.isin(batches, list(groups.found))).tolist():
            found = groups.found[int(batches[place])]
            records[begins[place] : begins[place] + len(found)] = found
        return records, np.repeat(batches, count)
