"""Whole groups of a stretch of dump text at once: the fast path of the reader, in numpy.

Lines are read as columns (`kernel_lines`), then put together (`kernel_groups`): the records behind a batch line are those that its `count`
and their own ends lead to, so a forged line inside a payload is never reached. Runs of groups that are beyond doubt are taken; the exact
reader gets everything else, and both always agree.
"""

from dataclasses import dataclass, field

import numpy as np

from eo_audit.dump.kernel_groups import NONE, Groups
from eo_audit.dump.kernel_lines import BatchColumns, Dialect, RecordColumns, find_lines, read_batches, read_records
from eo_audit.dump.kernel_scan import Ints, Text
from eo_audit.dump.log_text import Window


@dataclass
class Taken:
    """What was taken of a stretch: batches and their records by index, in order, and for each record its batch."""

    batches: list[Ints] = field(default_factory=list)
    records: list[Ints] = field(default_factory=list)
    batch_of: list[Ints] = field(default_factory=list)


class Stretch:
    """A stretch of a window that begins with a batch line of the tool's own.

    Attributes:
        start, stop: where it lies in the window.
        batches, records: its candidate lines; offsets are those of the stretch.
        taken: what was taken so far.
    """

    def __init__(self, window: Window, start: int, stop: int, dialect: Dialect, *, deep: bool) -> None:
        """Read the stretch [start, stop) of a window, printed in one dialect, with record lines (`deep`) or without."""
        self.text = Text(window.text, start, stop)
        self.start, self.stop = start, start + self.text.size
        lines = find_lines(self.text)
        self.batches: BatchColumns = read_batches(self.text, lines.batches, dialect)
        self.records: RecordColumns = read_records(self.text, lines.records if deep else lines.records[:0], dialect)
        self.taken = Taken()
        self.deep = deep
        self._groups = Groups(self.text, lines, self.batches, self.records, deep=deep)
        self._groups.judge(window, start, dialect)
        self._breaks = self._run_ends()

    def _run_ends(self) -> Ints:
        """Groups that are not sure, or not followed at once by the next candidates: a forged line stands between."""
        groups = self._groups
        simple = groups.sure & (groups.next == np.arange(len(groups.sure)) + 1)
        simple[:-1] &= groups.first[1:] == groups.first[:-1] + groups.count[:-1]
        simple[list(groups.found)] = False
        return np.append(np.flatnonzero(~simple), len(simple))

    def take(self, at: int, stop: int) -> tuple[int, int] | None:
        """Take the sure groups from `at` on that start before `stop` (offsets of the window), up to the first that is not sure.

        Returns:
            Where they end, and what position the batch line there must print; None when not even the first group is sure.
        """
        groups = self._groups
        limit = int(np.searchsorted(self.batches.start, stop - self.start))
        current, last = self._batch_at(at - self.start), NONE
        while NONE != current < limit:
            reached = min(int(self._breaks[np.searchsorted(self._breaks, current)]), limit)
            if reached > current:
                self._take_run(current, reached)
                current, last = reached, reached - 1
            elif groups.sure[current]:
                current, last = int(groups.next[current]), self._take_one(current)
            else:
                break
        if last == NONE:
            return None
        numbers = self.batches.numbers
        return self.start + int(groups.end[last]), int(numbers["position"][last] + numbers["size_bytes"][last])

    def owed(self, batches: Ints) -> Ints:
        """Records of some batches; 0 in a shallow dump."""
        return self._groups.count[batches]

    def first_record(self, batches: Ints) -> Ints:
        """The first record of some batches that have one."""
        return self._groups.first[batches]

    def ends(self, batches: Ints) -> Ints:
        """Where the groups of some batches end."""
        return self._groups.end[batches]

    def _batch_at(self, offset: int) -> int:
        starts = self.batches.start
        index = int(np.searchsorted(starts, offset))
        return index if index < len(starts) and starts[index] == offset else NONE

    def _take_run(self, first: int, behind: int) -> None:
        """Groups one behind the other, whose records are as well."""
        count = self._groups.count[first:behind]
        begin = int(self._groups.first[first])
        self.taken.batches.append(np.arange(first, behind))
        self.taken.records.append(np.arange(begin, begin + int(count.sum())))
        self.taken.batch_of.append(np.repeat(np.arange(first, behind), count))

    def _take_one(self, group: int) -> int:
        begin = int(self._groups.first[group])
        found = self._groups.found.get(group)
        records = np.arange(begin, begin + int(self._groups.count[group])) if found is None else found
        self.taken.batches.append(np.array([group]))
        self.taken.records.append(records)
        self.taken.batch_of.append(np.full(len(records), group))
        return group
