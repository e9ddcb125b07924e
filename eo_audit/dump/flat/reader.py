"""Reads sections of a flat dump (0.11.0 to 2.1) element by element; what the reader of every later dump leaves to it."""

from dataclasses import replace

from eo_audit.dump.flat.batches import Unread, end_at_most, read_batch
from eo_audit.dump.lines.dialects import LONGEST_LINE, OLD_LINE, UNSUPPORTED, BatchLine
from eo_audit.dump.lines.flat_lines import FLAT, FlatLine, flat_batch_line, flat_line
from eo_audit.dump.log.framing import Failure, Group
from eo_audit.dump.log.progress import Progress
from eo_audit.dump.log.sections import learned_flat, profile
from eo_audit.dump.log.state import Section


class FlatReader(Progress):
    """What a section of old lines adds to the reading of a window."""

    def _old_line(self, at: int, section: Section) -> int | None:
        """Read the old line at `at`, or decide how its section is read; None where none stands there."""
        if section.dialect not in (None, FLAT):
            return None
        line, batch = flat_line(self.window.text, at), flat_batch_line(self.window.text, at)
        if line is not None and section.deep is not False and self._may_begin(section, is_first=_is_first(line, section)):
            return self._flat_batch(at, line, section)
        if batch is not None and section.deep is not True and self._may_begin(section, is_first=batch.position == 0):
            return self._shallow_batch(at, batch, section)
        if section.dialect is None and OLD_LINE.match(self.window.text, at):
            behind = self.window.short_line(at, LONGEST_LINE)
            if behind is not None and not self.window.ends_line(behind):
                return self._cut(at, "truncated_line")
            self._turn()
            self.section = replace(section, dialect=UNSUPPORTED, left="unsupported_dialect")
            return at
        return None

    def _may_begin(self, section: Section, *, is_first: bool) -> bool:
        """The first line of a segment stands behind the tool's own words, or begins the file; others may be of a record that was lost."""
        begins = section.dumped_path is not None or section.byte_offset == 0
        return section.dialect == FLAT or (begins and is_first and self.unread_from is None)

    def _follows(self, position: int, section: Section) -> bool:
        # Of the first line it was asked whether it may be that.
        return self.window.is_within(position) and (section.dialect != FLAT or self.position in (None, position))

    def _shallow_batch(self, at: int, line: BatchLine, section: Section) -> int:
        if not self._follows(line.position, section):
            return self._leave(at, section, "unknown_line")
        behind = self.window.after_line(at)
        if not self.window.ends_line(behind):
            return self._not_read(at, section, Unread(Failure.TRUNCATED))
        group = Group(line, at, behind, behind, shallow=True, verified=None)
        self._close_unread(at)
        self.facts.group(group, section)
        self.section, self.position = replace(section, dialect=FLAT, deep=False), group.next_position
        return behind

    def _flat_batch(self, at: int, line: FlatLine, section: Section) -> int:
        if not self._follows(line.position, section):
            return self._leave(at, section, "unknown_line")
        try:
            group, position = read_batch(self.window, at, line, profile(section), section.last_offset)
        except Unread as unread:
            return self._not_read(at, section, unread)
        if group.failure is not None:
            # Lines behind go up, so they are the tool's own.
            self.section, self.position = learned_flat(section, group), position
            self._unread(at, group.end, group.failure.value)
            return group.end
        self._close_unread(at)
        self.facts.group(group, section)
        most = end_at_most(group) if position is None else None
        self.section, self.position = replace(learned_flat(section, group), end_at_most=most), position
        return group.end

    def _not_read(self, at: int, section: Section, unread: Unread) -> int:
        self._turn()
        self.section = replace(section, dialect=FLAT)
        if unread.failure is Failure.TRUNCATED:
            return self._cut(at, unread.failure.value)
        if unread.end is None:
            return self._leave(at, self.section, unread.failure.value)
        self._unread(at, unread.end, unread.failure.value)
        self.position = None
        return unread.end

    def _leave(self, at: int, section: Section, reason: str) -> int:
        """From here on nothing in the file says which lines are the tool's own: all of it is left unread."""
        self._turn()
        self.section = replace(section, left=reason, end_reason=section.end_reason or "truncated")
        return at


def _is_first(line: FlatLine, section: Section) -> bool:
    """May it be the first line of its segment? Where the tool's own words do not stand before it, only at the very first byte."""
    return line.position == 0 or (section.dumped_path is not None and line.may_be_first)
