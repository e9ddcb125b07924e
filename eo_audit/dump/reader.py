"""Element by element through one window of dump text: the exact reader, and the measure of every faster one."""

import re
from dataclasses import replace

from eo_audit.dump.fast.reader import FastPath
from eo_audit.dump.lines.dialects import DUMPING, PREAMBLE, BatchLine, batch_line
from eo_audit.dump.lines.flat_lines import FLAT
from eo_audit.dump.lines.printed import text as printable
from eo_audit.dump.log.ahead import read_group
from eo_audit.dump.log.closing import OTHER_FILES, starts_section
from eo_audit.dump.log.doubt import NOWHERE, Lines, Lost, first_believed
from eo_audit.dump.log.framing import Failure, Group, whole_message
from eo_audit.dump.log.least import LARGEST_PAYLOAD, fragment, odd_text
from eo_audit.dump.log.progress import LONGEST_UNREAD_LINE, NO_LINE_END
from eo_audit.dump.log.resync import broken_behind, may_begin, may_name_section, next_beginning, read_up_to
from eo_audit.dump.log.sections import (
    announced,
    kind_without_path,
    learned_section,
    looks_like_log,
    new_section,
    profile,
    went_on,
)
from eo_audit.dump.log.state import Damage, FileContext, Section, State
from eo_audit.dump.log.text import BYTE_ORDER_MARK, NeedMore, Window
from eo_audit.dump.other_lines import OtherLinesReader

_MARKED = BYTE_ORDER_MARK + b"Dumping "  # of files that were joined


class Reader(OtherLinesReader):
    """Reads the elements of a window one by one, the fast path's runs of them at once."""

    def __init__(self, window: Window, context: FileContext, *, base: int, state: State, fast: bool = True) -> None:
        """Ready to read on in this state.

        Args:
            window: the text.
            context: the file.
            base: file offset of the window.
            state: the state at the byte where reading will start.
            fast: leave to the fast path what it can read; the facts are the same.
        """
        super().__init__(window, context, base=base, state=state)
        self.fast: FastPath | None = FastPath(window, context, base) if fast else None
        self._stop = 0
        self._lines: Lines | None = None

    def read(self, start: int, stop: int) -> int:
        """Read the elements that begin in [start, stop); where reading ended.

        It ends before `stop` when the window does not hold the next element as a whole.
        """
        at, self._stop = start, stop
        try:
            while at < stop and at < len(self.window.text):
                reached = self._step(at)
                if reached > at:
                    at, self._before_turn = reached, None
        except NeedMore:
            self._take_back()
        # Only the end of the file ends a section: another window may go on with it.
        if self.window.final and at >= len(self.window.text):
            self._close_section(at, "eof")
        return at

    def _step(self, at: int) -> int:
        """Read the element at `at`; where the next one begins."""
        # The rest of a line that was too long to skip at once: what it begins with is no beginning.
        if self.mid_line:
            return self._skip(at, self.unread_reason or "unknown_line")
        section = self.section
        # Its lines would be taken for others.
        if section is not None and section.left is not None:
            return self._skip(at, section.left)
        if self.damage is not None:
            return self._lost_line(at, self.damage)
        if section is None and self.base + at == 0 and self._byte_order_mark():
            return len(BYTE_ORDER_MARK)
        self.window.structural(at)
        if self.window.text.startswith(_MARKED, at) and starts_section(self.window, at):
            self._close_unread(at)
            self.facts.own("preamble", at, at + len(BYTE_ORDER_MARK))
            return at + len(BYTE_ORDER_MARK)
        if self.window.text.startswith(b"Dumping ", at) and (found := self._dumping(at)) is not None:
            return found
        if section is None:
            section = self._begin(at)
        if section.identity.kind == "log":
            return self._log_line(at, section)
        return self._other_line(at, section)

    def _byte_order_mark(self) -> bool:
        """What Windows programs write in front of a UTF-8 file is nobody's text."""
        self.window.reach(len(BYTE_ORDER_MARK))
        found = self.window.text.startswith(BYTE_ORDER_MARK)
        if found:
            self.facts.own("preamble", 0, len(BYTE_ORDER_MARK))
        return found

    # sections

    def _dumping(self, at: int) -> int | None:
        found = DUMPING.match(self.window.text, at)
        if found is None:
            # Whose lines stand behind it nobody knows: in a log they must not be counted to the section before.
            return self._seal(at) if self._may_hold(at) else None
        behind = self.window.after_line(at)
        if not self.window.ends_line(behind):  # a path that was cut is a wrong path
            self.section = self.section or self._begin(at)
            return self._cut(at, NO_LINE_END if found[1].endswith((*OTHER_FILES, b".log")) else "truncated_line")
        if self._may_hold(at):
            return self._seal(at)
        self._open(at, self._introduced(at, found[1]))
        self.window.lines_end(crlf=self.window.text.startswith(b"\r\n", behind - 2))
        self.facts.own("preamble", at, behind)
        return behind

    def _introduced(self, at: int, path: bytes) -> Section:
        """The section that a `Dumping` line begins."""
        behind = self.window.after_line(at)
        self.window.reach(behind + 1)
        # A path that says nothing (a file that was renamed) leaves it to the text.
        kind = "log" if behind < len(self.window.text) and looks_like_log(self.window, behind) else None
        return new_section(self.context, self.base + at, dumped_path=printable(path), kind=kind)

    def _seal(self, at: int) -> int:
        self._lose(at, "unknown_line", Damage(self.position or 0, sealed=NOWHERE if self.position is None else self.position))
        return at

    def _may_hold(self, at: int) -> bool:
        """May the log at hand go on behind a `Dumping` line that no segment follows? A payload could print it, its record line lost."""
        section = self.section
        return section is not None and section.identity.kind == "log" and not starts_section(self.window, at)

    def _begin(self, at: int) -> Section:
        """Text that no `Dumping` line introduces."""
        own = new_section(self.context, self.base + at, dumped_path=None)
        message = whole_message(self.window, at)
        kind = kind_without_path(self.window, at, own.identity, message)
        section = new_section(self.context, self.base + at, dumped_path=None, kind=kind)
        newline = self.window.text.find(b"\n", at)
        self._turn()
        self._open(at, section)
        self.window.lines_end(crlf=newline > at and self.window.text.startswith(b"\r", newline - 1))
        return section

    # behind damage

    def _lost_line(self, at: int, damage: Damage) -> int:
        section, here = self.section, self.base + at
        assert section is not None
        reason = self.unread_reason or "unknown_line"
        if damage.until is not None:
            return self._doubted(at, damage, damage.until)
        if damage.held is not None and here < damage.held:
            until = min(damage.held - self.base, self._stop)
            return self._skip(at, reason, until=until)
        if damage.held is not None and damage.believed:
            return self._found(at, section)
        if damage.held is not None or damage.least > LARGEST_PAYLOAD:
            self.damage = damage = Damage(damage.base, bounded=True, sealed=damage.sealed)
        apart = self.unread_reason == Failure.AMBIGUOUS.value and not self.window.text.startswith(b"Dumping ", at)
        if apart or not may_begin(self.window, at):
            until = next_beginning(self.window, at, self._stop)
            if may_name_section(self.window, at, until):  # whose lines stand behind it nobody knows
                self.damage = replace(damage, sealed=NOWHERE)
            return self._skip(at, reason, until=until)
        lines = self._lines_of(section)
        held, believed = first_believed(lines, at, self._what_is_lost(damage, section))
        broken = self._broken_behind(held, section) if believed else None
        sealed = NOWHERE if lines.first_dumping(at) < held else damage.sealed
        doubt = None if broken is None else self._doubt(at, held, broken, section)
        self._turn()
        self.damage = doubt or replace(damage, held=self.base + held, believed=believed, sealed=sealed)
        return at

    def _broken_behind(self, at: int, section: Section) -> int | None:
        found = DUMPING.match(self.window.text, at)
        return broken_behind(self.window, at, section if found is None else self._introduced(at, found[1]))

    def _doubt(self, at: int, first: int, broken: int, section: Section, *, read: int | None = None) -> Damage:
        """The damage behind text in doubt that begins with a line of the tool's own (`first`); the line at `at` was read up to `read`."""
        lines = self._lines_of(section)
        position, text, packed = lines.begun_before(at, first, broken)
        # A section may begin in the text that is passed over.
        sealed = NOWHERE if lines.first_dumping(at) < broken else None if self.damage is None else self.damage.sealed
        return Damage(position, packed, ((at if read is None else read) - at) - text, until=self.base + broken, sealed=sealed)

    def _doubted(self, at: int, damage: Damage, until: int) -> int:
        """Text between a batch in doubt and the damage behind it."""
        if self.base + at < until:
            return self._skip(at, Failure.AMBIGUOUS.value, until=min(until - self.base, self._stop))
        self._turn()
        self._close_unread(at)
        self._unread(at, at, "orphan_record" if self.window.text.startswith(b"| offset: ", at) else "unknown_line")
        self.damage = replace(damage, until=None)
        return at

    def _lines_of(self, section: Section) -> Lines:
        """Kept while nothing changes that its text is read by: a damaged file has many damaged places."""
        known = profile(section)
        if self._lines is None or self._lines.profile != known or self._lines.crlf != self.window.crlf:
            self._lines = Lines(self.window, known)
        return self._lines

    def _what_is_lost(self, damage: Damage, section: Section) -> Lost:
        text = damage.base, self.position or 0, damage.least, damage.covered, damage.packed
        return Lost(*text, section.identity.kind == "log", self.window.limit, damage.bounded, damage.sealed)

    def _found(self, at: int, section: Section) -> int:
        """The line at `at` is the tool's own again."""
        self._turn()
        line = batch_line(self.window.text, at)
        if line is not None and section.identity.kind != "log":
            self._open(at, new_section(self.context, self.base + at, dumped_path=None, kind="log"))
        self.damage = None
        if line is not None:
            self.position = line.position
        return at

    # lines of a log section

    def _log_line(self, at: int, section: Section) -> int:
        text = self.window.text
        if (line := batch_line(text, at)) and section.dialect != FLAT:
            if not self.window.is_within(line.position):
                self._lose(at, Failure.AMBIGUOUS.value)
                return at
            # Batches lie one behind the other in a segment: where the position is another one, text is missing or forged.
            if self.position is None or line.position == self.position:
                return self._group(at, line, section)
            # At 0 another segment begins, whose `Dumping` line is lost: what stands behind it is nobody's, whatever positions it prints.
            self._lose(at, "lost_batch", Damage(self.position, sealed=NOWHERE) if line.position == 0 else None)
            return at
        if found := PREAMBLE.match(text, at):
            return self._preamble(at, section, found)
        if text.startswith(b"| offset: ", at) and section.dialect != FLAT:
            # Records stand behind their batch line: this one's is missing, or it is in a payload.
            self._lose(at, "orphan_record")
            return at
        if (read := self._old_line(at, section)) is not None:
            return read
        found_message = self._message(at, section)
        if section.dialect == FLAT and found_message is None and text[at : at + 2].strip(b"\r\n"):
            return self._leave(at, section, "unknown_line")
        return found_message or self._unknown(at, "lost_batch" if text.startswith(b"baseOffset: ", at) else "unknown_line")

    def _preamble(self, at: int, section: Section, found: re.Match[bytes]) -> int:
        if self.position:  # another segment begins, whose `Dumping` line is lost
            self._lose(at, "unknown_line", Damage(self.position, sealed=NOWHERE))
            return at
        behind = self.window.after_line(at)
        self._close_unread(at)
        self.section = announced(section, found)
        self.facts.own("preamble", at, behind)
        return behind

    def _group(self, at: int, line: BatchLine, section: Section) -> int:
        section = went_on(section)
        taken = self.fast.take(at, self._stop, section) if self.fast else None
        if taken is not None:
            self._close_unread(at)
            self.section = section
            end, self.position = taken
            self.facts.own("facts", at, end)
            return end
        group = read_group(self.window, at, line, profile(section, line))
        misfit = group.failed_at if group.failure is Failure.UNDELIMITED else None
        group.keep_what_is_sure()
        section_behind = learned_section(section, group.doubted or group, at_end=group.end >= len(self.window.text))
        damage = self._damage(group, misfit, section_behind)
        reason = None if group.failure is None else NO_LINE_END if self._lacks_line_end(at, line, section) else group.failure.value
        self._close_unread(at)
        self.facts.group(group, section_behind)
        self.section = section_behind
        self.position = group.next_position if group.meeting is None else group.meeting
        return group.end if reason is None else self._after_failure(group, damage, reason)

    def _lacks_line_end(self, at: int, line: BatchLine, section: Section) -> bool:
        """Is the last batch of the text, which could not be read, whole but for the line end behind it?"""
        text = self.window.text
        if not self.window.final or text.endswith(b"\n") or text.find(b"\nbaseOffset: ", at) >= 0:
            return False
        ended = self.window.ended()
        group = read_group(ended, at, line, profile(section, line))
        if group.failure is not None or group.end != len(ended.text):
            return False
        # A tool that died before a payload leaves a line that is as whole as those of a dump without payloads.
        last = group.records[-1].ending if group.records else None
        return section.deep is False if last is None else bool(last.printed or last.marker) or section.payload_printed is False

    def _damage(self, group: Group, misfit: int | None, section: Section) -> Damage | None:
        """What is known of the damage in a group or behind it; asked before anything is changed, since it may need more text."""
        if not (group.lost or group.failure is Failure.MISSING):
            return None
        fragment(self.window, group.end)
        if group.doubtful_to is not None:
            return self._doubt(group.start, group.start, group.doubtful_to, section, read=group.end)
        return Damage(*read_up_to(group), -odd_text(self.window, misfit))

    def _after_failure(self, group: Group, damage: Damage | None, reason: str) -> int:
        at, end = group.end, group.unread_end
        assert self.section is not None
        if damage is not None:
            self._lose(at, reason, damage)
        elif end is not None and end > at:
            self._unread(at, end, reason)
        if group.failure is Failure.TRUNCATED:
            self.section = replace(self.section, end_reason="truncated")
        return at if self.damage is not None or end is None else max(end, at)

    def _unknown(self, at: int, reason: str = "unknown_line") -> int:
        if self.window.short_line(at, LONGEST_UNREAD_LINE) is None:
            self._lose(at, reason)
            return at
        behind = self.window.after_line(at)
        if not self.window.ends_line(behind):
            return self._cut(at, "truncated_line")
        # An empty line puts nothing into doubt.
        if not self.window.text[at:behind].strip(b"\r\n"):
            self._unread(at, behind, "blank_line" if reason == "unknown_line" else reason)
            return behind
        self._lose(at, reason)
        return at
