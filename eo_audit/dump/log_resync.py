"""After damage: which line is the tool's own again?

The text behind damage may be the middle of a payload, so a line is not believed for its looks, nor for a few more like it. A batch line is
believed when the batches go on from it, position by position, to the end of the section or for a good stretch of text, none of them in two
ways and none with a batch line in its payload, and when no other line claims the position that is expected. Where the section ends before
that, the text must be more than the lost batches can hold as a payload.
"""

import re
from dataclasses import dataclass, field

from eo_audit.dump.dialects import DUMPING, PREAMBLE, BatchLine, batch_line, record_line
from eo_audit.dump.framing import HEADERS_SEARCHED, LARGEST_RECORD, Failure, Follower, Group, Profile, follower, greedy_group, owed_records
from eo_audit.dump.log_closing import claims, starts_section
from eo_audit.dump.log_records import Rules, endings
from eo_audit.dump.log_search import read_group
from eo_audit.dump.log_text import NeedMore, Window

# All bounded: behind damage every line is a candidate, and each of them may be a forgery that wants to be followed for ever.
AHEAD = 1 << 18  # bytes looked through for other claims to a position
STRETCH = 1 << 15  # bytes over which the batches must go on
_DENSE = 4  # bytes of forged lines that a byte of a compressed batch may hold, more or less
_LONGEST = 1 << 24  # bytes of text looked through for what printing made longer
_HEAD = 350  # bytes of a record line up to its header keys
_BEGINNINGS = (b"baseOffset: ", b"offset: ", b"Dumping ", b"| offset: ")
_LONGEST_BEGINNING = max(map(len, _BEGINNINGS))
_BEGINNING = re.compile(rb"\n(?=baseOffset: |offset: |Dumping |\| offset: )")
LARGEST_FILE = 1 << 62
_NEXT = 1 << 16  # bytes of text that a batch which cannot be read may have, where its size does not say

Doomed = set[tuple[int, Profile]]
"""Starts of batches that do not go on, each with what a section has shown that was read there."""


@dataclass
class Damage:
    """What is known of the damage that the reader is behind; offsets are those of the window, and none is before it.

    Attributes:
        held: up to where the text of a batch may go that was read in part.
        shadow: up to where text belongs to a line that may be the tool's own.
        doomed: starts of batches known not to go on, as a section reads them.
    """

    held: int
    shadow: int
    doomed: Doomed = field(default_factory=set)

    def clear(self) -> None:
        """There is no damage."""
        self.held = self.shadow = -LARGEST_FILE

    def is_behind(self, window: Window, at: int, position: int | None, profile: Profile, *, since: int, apart: bool) -> bool:
        """Is the line at `at` the tool's own again? Else, what it covers is in its shadow.

        Args:
            window: the text.
            at: start of a line.
            position: what the next batch line must print.
            profile: of the section.
            since: where the damage begins.
            apart: readings parted there and never met. They are chains of batches alike: only a new section ends the doubt.

        Raises:
            NeedMore: the answer lies behind the window.
        """
        # Lines inside a record that was just refused are its payload: without the shadow each of them would be tried in turn.
        if at < self.shadow:
            return False
        window.reach(at + _LONGEST_BEGINNING)
        if not window.text.startswith((b"Dumping ",) if apart else _BEGINNINGS, at):
            return False
        if is_believed(window, at, position, profile, doomed=self.doomed, since=since, held=self.held):
            return True
        self.shadow = max(self.shadow, covered(window, at, profile))
        return False


def next_beginning(window: Window, at: int, stop: int) -> int:
    """The start of the next line before `stop` that could be the tool's own; of the last line before it where there is none."""
    found = _BEGINNING.search(window.text, at, stop)
    return found.end() if found else window.text.rfind(b"\n", at, stop) + 1


def held_by(window: Window, group: Group) -> int:
    """How far the text of a batch may go that could be read in part: what its records may have, each U+FFFD for one byte."""
    at, line = group.end, group.line
    record = record_line(window.text, at)
    head = _HEAD if record is None else record.end - at + len("] key: payload: ")
    data = line.size_bytes if line.codec == "none" else _DENSE * line.size_bytes
    longest = at + min(3 * data, _LONGEST)
    window.reach(longest)
    # Each U+FFFD is three bytes of text for one byte of a record.
    replaced = window.text.count(b"\xef\xbf\xbd", at, longest)
    return at + head * max((owed_records(line) or 1) - len(group.records), 1) + data + 2 * replaced


def covered(window: Window, at: int, profile: Profile) -> int:
    """Where the batch or record at `at` ends, if it is one, its header keys on one line: nothing before that is believed while it is not.

    Raises:
        NeedMore: it goes on behind the window.
    """
    line = batch_line(window.text, at)
    if line is not None:
        group = greedy_group(window, at, line, profile)
        within = [(one.line.end, one.line.end + one.ending.headers) for one in group.records]
        odd = group.failure is not None or any(window.text.find(b"\n", *headers) >= 0 for headers in within)
        return at if odd else group.end
    record = record_line(window.text, at)
    rules = Rules(profile.printed, profile.hides_keys, False, LARGEST_RECORD, HEADERS_SEARCHED, one_line=True)
    ending = next(endings(window, record, rules), None) if record is not None else None
    return at if ending is None else ending.end


def is_believed(window: Window, at: int, position: int | None, profile: Profile, *, doomed: Doomed, since: int, held: int) -> bool:
    """Is the line at `at` the tool's own?

    Args:
        window: the text; all before `at` since the damage is unread.
        at: start of a line.
        position: what the next batch line must print, as far as the damage lets us know.
        profile: of the section.
        doomed: starts of batches known not to go on; grows.
        since: where the damage begins.
        held: up to where the text of a batch may go that was read in part.

    Raises:
        NeedMore: the answer lies behind the window.
    """
    window.structural(at)
    line = batch_line(window.text, at)
    if line is None:
        return _is_section(window, at, position, doomed, held)
    # Positions only grow within a section: a lower one was printed before, so this line is a copy in a payload.
    if position is not None and line.position < position:
        return False
    if position is None:
        held = max(held, since + STRETCH)
    elif line.position > position:
        held = max(held, since + _HEAD + _DENSE * (line.position - position))
    return not _claimed(window, at, position) and _goes_on(window, at, line, profile, doomed, held)


def _claimed(window: Window, at: int, position: int | None) -> bool:
    """Does a batch line further on claim the expected position?"""
    return position is not None and next(claims(window, at + 1, position, at + AHEAD), None) is not None


def _is_section(window: Window, at: int, position: int | None, doomed: Doomed, held: int) -> bool:
    """A `Dumping` line with what the tool prints behind it."""
    if not DUMPING.match(window.text, at) or _claimed(window, at, position) or not starts_section(window, at):
        return False
    behind = window.after_line(at)
    if not PREAMBLE.match(window.text, behind):
        return True
    first = window.after_line(behind)
    standing = follower(window, first, 0)
    if standing is Follower.BATCH:
        line = batch_line(window.text, first)
        return line is not None and _goes_on(window, first, line, Profile(), doomed, held)
    return standing in (Follower.END, Follower.DUMPING, Follower.MESSAGE)


def _goes_on(window: Window, at: int, line: BatchLine, profile: Profile, doomed: Doomed, held: int) -> bool:
    """Do batches go on from this line, and further than a payload may (`held`)?"""
    passed, whole = [], 0
    enough = max(at + STRETCH, min(held, at + AHEAD))
    while (at, profile) not in doomed:
        passed.append((at, profile))
        group = read_group(window, at, line, profile)
        whole += group.failure is None
        # A batch whose payload holds batch lines may be the forgery around genuine lines, or genuine lines around a forgery: no proof.
        if group.failure is None and _holds_lines(window, group):
            break
        behind = group.end if group.failure is None else _next_claim(window, group)
        standing = Follower.NOTHING if behind is None else follower(window, behind, group.next_position)
        if standing in (Follower.END, Follower.DUMPING, Follower.MESSAGE):
            return behind is not None and whole > 0 and behind > held
        if behind is None and group.failure is Failure.TRUNCATED and window.final:
            return whole > 0 and len(window.text) > held
        if standing is not Follower.BATCH or behind is None:
            break
        if whole > 1 and behind > enough:
            return True
        following = batch_line(window.text, behind)
        assert following is not None
        at, line = behind, following
    # Chains that join a chain known to fail need not be followed again: else n lines cost n squared.
    doomed.update(passed)
    return False


def _holds_lines(window: Window, group: Group) -> bool:
    """Is there a line in the text of its records that looks like a batch or a section? Then the two may be the other way round."""
    text, start, end = window.text, group.line_end, group.end - 1
    return any(text.find(literal, start, end) >= 0 for literal in (b"\nbaseOffset: ", b"\nDumping "))


def _next_claim(window: Window, group: Group) -> int | None:
    """The batch line behind a batch that cannot be read: the only one at the next position."""
    if group.failure is Failure.AMBIGUOUS and group.unread_end is not None:
        return group.unread_end if group.meeting == group.next_position else None
    limit = group.line_end + (4 * group.line.size_bytes + _NEXT if group.line.codec == "none" else AHEAD)
    if limit > len(window.text) and not window.final:
        raise NeedMore
    found = list(claims(window, group.line_end, group.next_position, limit))
    return found[0] if len(found) == 1 else None
