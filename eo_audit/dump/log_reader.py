"""Element by element through one window of dump text: the exact reader, and the measure of every faster one."""

from dataclasses import replace

from eo_audit.dump.dialects import DUMPING, OLD_LINE, PREAMBLE, UNSUPPORTED, BatchLine, batch_line, record_line
from eo_audit.dump.framing import HEADERS_SEARCHED, LARGEST_RECORD, Failure, Group, message_at, whole_message
from eo_audit.dump.kernel_reader import FastPath
from eo_audit.dump.log_progress import LONGEST_UNREAD_LINE, Progress
from eo_audit.dump.log_records import Rules, endings
from eo_audit.dump.log_resync import held_by, next_beginning
from eo_audit.dump.log_search import read_group
from eo_audit.dump.log_sections import (
    heard,
    kind_without_path,
    learned_section,
    looks_like_log,
    may_hold_records,
    new_section,
    profile,
    unsupported,
    went_on,
)
from eo_audit.dump.log_state import FileContext, Section, State
from eo_audit.dump.log_text import NeedMore, Window
from eo_audit.dump.printed import text as printable
from eo_audit.dump.sidecars import is_index_line, snapshot_row, txnindex_row

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Reader(Progress):
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
        if self.window.final and at >= len(self.window.text):
            self._close_section(at, "eof")
        return at

    def _step(self, at: int) -> int:
        """Read the element at `at`; where the next one begins."""
        if self.mid_line:
            return self._skip(at, self.unread_reason or "unknown_line")
        section = self.section
        if section is not None and section.dialect == UNSUPPORTED:
            return self._skip(at, "unsupported_dialect")
        if self.lost:
            return self._lost_line(at)
        if section is None and self.base + at == 0 and self._byte_order_mark():
            return len(BYTE_ORDER_MARK)
        self.window.structural(at)
        if dumping := DUMPING.match(self.window.text, at):
            return self._dumping(at, dumping[1])
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

    def _dumping(self, at: int, path: bytes) -> int:
        behind = self.window.after_line(at)
        if not self.window.ends_line(behind):  # a path that was cut is a wrong path
            self.section = self.section or self._begin(at)
            return self._cut(at, "truncated_line")
        self.window.reach(behind + 1)
        kind = "log" if behind < len(self.window.text) and looks_like_log(self.window, behind) else None
        self._open(at, new_section(self.context, self.base + at, dumped_path=printable(path), kind=kind))
        self.window.lines_end(crlf=self.window.text.startswith(b"\r\n", behind - 2))
        self.facts.own("preamble", at, behind)
        return behind

    def _begin(self, at: int) -> Section:
        """Text that no `Dumping` line introduces."""
        own = new_section(self.context, self.base + at, dumped_path=None)
        message = message_at(self.window, at)
        kind = kind_without_path(self.window, at, own.identity, message[1] if message else None)
        section = new_section(self.context, self.base + at, dumped_path=None, kind=kind)
        newline = self.window.text.find(b"\n", at)
        self._turn()
        self._open(at, section)
        self.window.lines_end(crlf=newline > at and self.window.text.startswith(b"\r", newline - 1))
        return section

    def _open(self, at: int, section: Section) -> None:
        self._close_section(at, "next")
        self.section, self.position, self.entries = section, 0, 0
        self.lost = self.mid_line = self.unproven = False
        self.damage.clear()

    def _close_section(self, at: int, end_reason: str) -> None:
        self._close_unread(at)
        if self.section is not None:
            self.facts.section(self.section, at, end_reason)
            self.section = None

    # behind damage

    def _lost_line(self, at: int) -> int:
        section = self.section
        assert section is not None
        if self._is_found(at, section):
            self._turn()
            self.lost = False
            self.damage.clear()
            return at
        return self._skip(at, self.unread_reason or "unknown_line", until=next_beginning(self.window, at, self._stop))

    def _is_found(self, at: int, section: Section) -> bool:
        """Is the line at `at` the tool's own again?"""
        since = at if self.unread_from is None else self.unread_from - self.base
        apart = self.unread_reason == Failure.AMBIGUOUS.value
        return self.damage.is_behind(self.window, at, self.position, profile(section), since=since, apart=apart)

    # lines of a log section

    def _log_line(self, at: int, section: Section) -> int:
        text = self.window.text
        if line := batch_line(text, at):
            return self._group(at, line, section)
        if found := PREAMBLE.match(text, at):
            return self._preamble(at, section, found["log"] is not None if b"tarting offset" in found[0] else None)
        if text.startswith(b"| offset: ", at):
            return self._orphan(at, section)
        if section.dialect is None and OLD_LINE.match(text, at):
            self._turn()
            self.section = unsupported(section)
            return at
        return self._message(at, section) or self._unknown(at)

    def _preamble(self, at: int, section: Section, log_starting: bool | None) -> int:
        behind = self.window.after_line(at)
        self._close_unread(at)
        if log_starting is not None:
            self.section = replace(section, log_starting=log_starting)
        self.facts.own("preamble", at, behind)
        return behind

    def _group(self, at: int, line: BatchLine, section: Section) -> int:
        section = went_on(section)
        taken = self.fast.take(at, self._stop, section) if self.fast and not self.unproven else None
        if taken is not None:
            self._close_unread(at)
            self.damage.clear()
            self.section = section
            end, self.position = taken
            self.facts.own("facts", at, end)
            return end
        group = read_group(self.window, at, line, profile(section, line))
        held = held_by(self.window, group) if group.lost or group.failure is Failure.MISSING else 0
        self.unproven |= group.unproven
        group.verified = group.verified and not self.unproven
        self._close_unread(at)
        self.damage.clear()
        self.facts.group(group, section)
        self.section = learned_section(section, group, at_end=group.end >= len(self.window.text))
        self.position = group.next_position if group.meeting is None else group.meeting
        return self._after_failure(group, held) if group.failure else group.end

    def _after_failure(self, group: Group, held: int) -> int:
        at, end = group.end, group.unread_end
        assert self.section is not None and group.failure is not None
        if group.lost:
            self._lose(at, group.failure.value)
        elif end is not None and end > at:
            self._unread(at, end, group.failure.value)
        if held:
            self.damage.held = held
        if group.failure is Failure.TRUNCATED:
            self.section = replace(self.section, end_reason="truncated")
        return at if group.lost or end is None else max(end, at)

    def _orphan(self, at: int, section: Section) -> int:
        """A record line that no batch owes."""
        rules = Rules(section.payload_printed, True, False, LARGEST_RECORD, HEADERS_SEARCHED)
        line = record_line(self.window.text, at)
        self.window.overshoot = False
        ending = next(endings(self.window, line, rules), None) if line else None
        if ending is not None:
            self._unread(at, ending.end, "orphan_record")
            return ending.end
        if self.window.overshoot:
            return self._cut(at, Failure.TRUNCATED.value)
        return self._unknown(at, "orphan_record")

    def _unknown(self, at: int, reason: str = "unknown_line") -> int:
        if self.window.short_line(at, LONGEST_UNREAD_LINE) is None:
            self._lose(at, reason)
            return at
        behind = self.window.after_line(at)
        if not self.window.ends_line(behind):
            return self._cut(at, "truncated_line")
        if not self.window.text[at:behind].strip(b"\r\n"):
            self._unread(at, behind, reason)
            return behind
        self._lose(at, reason)
        return at

    # lines of other sections

    def _other_line(self, at: int, section: Section) -> int:
        kind = section.identity.kind
        if kind not in ("snapshot", "txnindex", "index", "timeindex"):
            return self._outside(at, section)
        if self.window.short_line(at, LONGEST_UNREAD_LINE) is None:
            return self._skip(at, "unknown_line")
        behind = self.window.after_line(at)
        line = self.window.text[at:behind].removesuffix(b"\n").removesuffix(b"\r")
        if not self.window.ends_line(behind):
            return self._cut(at, "truncated_line")
        if is_index_line(kind, line):
            self._close_unread(at)
            self.facts.own("preamble", at, behind)
            return behind
        row = snapshot_row(line) if kind == "snapshot" else txnindex_row(line) if kind == "txnindex" else None
        if row is None:
            return self._message(at, section) or self._skip(at, "unknown_line")
        self._close_unread(at)
        self.facts.entry(at, behind, section=section, row=dict(row), index=self.entries)
        self.entries += 1
        return behind

    def _outside(self, at: int, section: Section) -> int:
        """A line of messages, or of text that is no dump, until a log begins."""
        if looks_like_log(self.window, at) and self._is_whole(at, section):
            self._turn()
            self._open(at, new_section(self.context, self.base + at, dumped_path=None, kind="log"))
            return at
        reason = "unknown_line" if section.identity.kind == "tool_messages" else "not_a_dump"
        return self._message(at, section) or self._skip(at, reason)

    def _is_whole(self, at: int, section: Section) -> bool:
        """Does a log begin here? Behind text that is no dump it may be the middle of a payload whose head was cut off."""
        if section.identity.kind == "tool_messages" and self.unread_from is None:
            return True
        if PREAMBLE.match(self.window.text, at):
            at = self.window.after_line(at)
        return at >= len(self.window.text) or self._is_found(at, section)

    def _message(self, at: int, section: Section) -> int | None:
        found = whole_message(self.window, at)
        if found is None:
            return None
        self._close_unread(at)
        self.facts.message(at, found[0], section=section, message=found[1], among_records=may_hold_records(section))
        self.section = heard(section, found[1])
        return found[0]
