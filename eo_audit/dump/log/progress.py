"""How far a reader of dump text has come: the state it carries from element to element, the facts so far, and the text it left unread."""

from dataclasses import replace

from eo_audit.dump.log.closing import is_contradicted
from eo_audit.dump.log.facts import FactRows
from eo_audit.dump.log.framing import whole_message
from eo_audit.dump.log.least import fragment, stretch
from eo_audit.dump.log.sections import heard, lacks_entries, may_hold_records, profile
from eo_audit.dump.log.state import Damage, FileContext, Ledger, Section, State
from eo_audit.dump.log.text import NeedMore, Window

LONGEST_UNREAD_LINE = 1 << 16  # bytes: a longer line of unread text is skipped in pieces
NO_LINE_END = "no_line_end"  # the last line of a text is as it should be, but for its line end: that was taken off, or the line was cut


class Progress:
    """The state of reading, and the rows read so far.

    Offsets are those of the window; rows carry offsets of the file. A step changes nothing before it is sure that it needs no more text.
    """

    def __init__(self, window: Window, context: FileContext, *, base: int, state: State) -> None:
        """Reading goes on in this state; the arguments are those of `Reader`."""
        self.window = window
        self.context = context
        self.base = base
        self.facts = FactRows(context, base)
        self._before_turn: tuple[State, int, int] | None = None
        self._resume(state)

    def _resume(self, state: State) -> None:
        self.section = state.section
        self.position = state.position
        self.entries = state.entries
        self.damage = state.damage
        self.mid_line = state.mid_line
        self.unread_from = state.unread_from
        self.unread_reason = state.unread_reason
        self.window.lines_end(crlf=state.crlf)
        self._limit()

    def _limit(self) -> None:
        """The size of the segment that is printed bounds its positions."""
        is_log = self.section is not None and self.section.identity.kind == "log"
        self.window.limit = self.context.dumped_bytes if is_log else None

    def _turn(self) -> None:
        """The line at hand is about to change how it is read: that must not outlive the window if the window does not hold it."""
        self._before_turn = self._before_turn or (self.state(), len(self.facts.rows["dump_sections"]), len(self.facts.rows["unread_spans"]))

    def _take_back(self) -> None:
        if self._before_turn is not None:
            state, sections, spans = self._before_turn
            del self.facts.rows["dump_sections"][sections:], self.facts.rows["unread_spans"][spans:]
            self._resume(state)

    def state(self) -> State:
        """The state reached."""
        return State(
            section=self.section,
            position=self.position,
            entries=self.entries,
            damage=self.damage,
            mid_line=self.mid_line,
            unread_from=self.unread_from,
            unread_reason=self.unread_reason,
            crlf=self.window.crlf,
        )

    def ledger(self) -> Ledger:
        """Who owns the bytes read."""
        return Ledger(**self.facts.owned)

    def _message(self, at: int, section: Section) -> int | None:
        """Read the message at `at`; where it ends, None where there is none that can be believed."""
        found = whole_message(self.window, at)
        if found is None or is_contradicted(self.window, *found, self.position or 0):
            return None
        self._close_unread(at)
        self.facts.message(at, found[0], section=section, message=found[1], among_records=may_hold_records(section))
        self.section = heard(section, found[1])
        return found[0]

    # unread text

    def _skip(self, at: int, reason: str, until: int = 0) -> int:
        """The line at `at` is unread, with all lines up to `until`; a very long one in pieces."""
        text = self.window.text
        newline = text.find(b"\n", max(at, until - 1))
        if newline < 0 and not self.window.final and len(text) - at < LONGEST_UNREAD_LINE:
            raise NeedMore
        if newline < 0 and self.window.final and self.damage and self.section is not None:
            # The tool ends every line, so text is missing here: no length says how much, for the text of a topic decoder.
            self.section = replace(self.section, end_reason=self.section.end_reason or "truncated")
        behind = newline + 1 if newline >= 0 else len(text)
        if self.damage is not None and self.damage.held is None and self.section is not None:
            # What was unread stands for bytes of the segment: no believed line may print a position before them.
            damage, skipped = self.damage, stretch(self.window, at, behind, profile(self.section), mid_line=self.mid_line)
            covered = max(damage.covered, damage.least + skipped.covered)
            self.damage = replace(damage, least=damage.least + skipped.least, covered=covered)
        self._unread(at, behind, reason)
        self.mid_line = newline < 0
        return behind

    def _unread(self, at: int, end: int, reason: str) -> None:
        if self.unread_reason != reason:
            self._close_unread(at)
        if self.unread_from is None:
            self.unread_from, self.unread_reason = self.base + at, reason
        self.facts.own("unread", at, end)

    def _close_unread(self, at: int) -> None:
        if self.unread_from is not None and self.base + at > self.unread_from:
            assert self.section is not None
            self.facts.unread(self.unread_from - self.base, at, section=self.section, reason=self.unread_reason or "unknown_line")
        self.unread_from = self.unread_reason = None

    def _open(self, at: int, section: Section) -> None:
        self._close_section(at, "next")
        self.section, self.position, self.entries = section, 0, 0
        self._limit()
        self.mid_line = False
        self.damage = None

    def _close_section(self, at: int, end_reason: str) -> None:
        self._close_unread(at)
        if self.section is not None:
            is_cut = lacks_entries(self.section, self.context, entries=self.entries)
            self.facts.section(self.section, at, "truncated" if is_cut else end_reason)
            self.section = None

    def _lose(self, at: int, reason: str, damage: Damage | None = None) -> None:
        """What stands at `at` cannot be read, so the next line may be anybody's."""
        self._turn()
        self._unread(at, at, reason)
        found = damage or Damage(self.position or 0)
        # What stands at the damage may be the rest of a batch that is counted already.
        self.damage = replace(found, least=found.least - fragment(self.window, at))

    def _cut(self, at: int, reason: str) -> int:
        """The file ends inside what stands at `at`."""
        assert self.section is not None
        self.section = replace(self.section, end_reason="truncated")
        self._unread(at, len(self.window.text), reason)
        return len(self.window.text)
