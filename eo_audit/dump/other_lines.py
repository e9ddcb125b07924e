"""Lines of sections that are no log: entries of snapshots and indexes, messages, and text that is no dump."""

from eo_audit.dump.flat.reader import FlatReader
from eo_audit.dump.lines.messages import is_prompt
from eo_audit.dump.lines.sidecars import is_index_line, snapshot_row, txnindex_row
from eo_audit.dump.log.progress import LONGEST_UNREAD_LINE, NO_LINE_END
from eo_audit.dump.log.sections import looks_like_log, new_section
from eo_audit.dump.log.state import Section


class OtherLinesReader(FlatReader):
    """What the sections beside logs add to the reading of a window."""

    def _other_line(self, at: int, section: Section) -> int:
        kind = section.identity.kind
        if kind not in ("snapshot", "txnindex", "index", "timeindex"):
            return self._outside(at, section)
        if self.window.short_line(at, LONGEST_UNREAD_LINE) is None:
            return self._skip(at, "unknown_line")
        behind = self.window.after_line(at)
        line = self.window.text[at:behind].removesuffix(b"\n").removesuffix(b"\r")
        if not self.window.ends_line(behind) and is_prompt(line):
            return self._message(at, section) or self._cut(at, "truncated_line")
        is_index = is_index_line(kind, line)
        row = snapshot_row(line) if kind == "snapshot" else txnindex_row(line) if kind == "txnindex" else None
        if not self.window.ends_line(behind):
            # Each ends with a number, of which digits may be missing.
            return self._cut(at, "truncated_line" if row is None and not is_index else NO_LINE_END)
        if is_index:
            self._close_unread(at)
            self.facts.own("preamble", at, behind)
            return behind
        if row is None:
            return self._message(at, section) or self._skip(at, "unknown_line" if line else "blank_line")
        self._close_unread(at)
        self.facts.entry(at, behind, section=section, row=dict(row), index=self.entries)
        self.entries += 1
        return behind

    def _outside(self, at: int, section: Section) -> int:
        """A line of messages, or of text that is no dump, until a log begins."""
        if looks_like_log(self.window, at):
            self._turn()
            self._open(at, new_section(self.context, self.base + at, dumped_path=None, kind="log"))
            return at
        reason = "unknown_line" if section.identity.kind == "tool_messages" else "not_a_dump"
        found = self._message(at, section)
        if found is None and self.window.text[at : at + 2].strip(b"\r\n"):
            self._lose(at, reason)
            return at
        return found or self._skip(at, reason)
