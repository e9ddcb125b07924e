"""Is the text behind a batch whole, as far as another reading of the batch could reach?

A reading is refuted by text that is there: by a batch line that stands where this reading has none, by records that do not end. Where the
text behind a batch is damaged, a reading that runs into the damage is not refuted, and the one that was found, which ends before, may be
what a header key or a value prints. So a batch with room for more than was read of it is believed only where the text goes on without
damage as far as that room reaches.
"""

import re
from dataclasses import replace

from eo_audit.dump.lines.dialects import DUMPING, PREAMBLE, BatchLine, batch_line
from eo_audit.dump.log.closing import claims, starts_section
from eo_audit.dump.log.dispute import MIN_FORGED, is_changed, reach_of, room_of
from eo_audit.dump.log.framing import (
    Failure,
    Group,
    Profile,
    Record,
    greedy_group,
    headers_room,
    whole_message,
)
from eo_audit.dump.log.read_ahead import Judged, ReadAhead
from eo_audit.dump.log.records import Proof
from eo_audit.dump.log.search import judged_group
from eo_audit.dump.log.text import Window

# The digits end before a space: those of a number that was cut say nothing.
_CUT = re.compile(rb"(?:baseO|o)ffset: (-?\d{1,19}) ")
_REPLACEMENT = b"\xef\xbf\xbd"
# A header key, or a lost payload, that goes on for longer is not thought of: text that is read by no better rule must be whole so far.
HIDDEN = 1 << 14  # bytes
_SPARE = 64  # bytes of varints and line ends that no print shows


def read_group(window: Window, start: int, line: BatchLine, profile: Profile) -> Group:
    """The group of the batch line at `start`; the batch line alone where a reading is left that damage behind it may hide.

    Raises:
        NeedMore: the group, or what proves its end, goes on behind the window.
    """
    group = judged_group(window, start, line, profile)
    if group.meeting is not None and group.unread_end is not None:
        # Readings that end at the same byte, or meet there; one that is longer than all of them could be hidden by damage as well.
        longest = group.line_end + 3 * line.size_bytes if line.codec == "none" else group.unread_end + HIDDEN
        broken = broken_before(window, group.unread_end, group.meeting, profile, longest)
        return group if broken is None else _doubtful(group, broken)
    if group.shallow and profile.deep is None:
        # A dump that lost its first record lines looks like one that has none.
        broken = broken_before(window, group.end, group.next_position, profile, group.end + HIDDEN)
        return group if broken is None else _doubtful(group, broken)
    if group.failure is not None or group.shallow or not group.records:
        return group
    spare = _spare(window, group, profile)
    claim = _other_claim(window, group, profile) if spare < MIN_FORGED else None
    if spare < MIN_FORGED and claim is None:
        return group
    reach = _reach(window, group, spare) if claim is None else claim
    broken = broken_before(window, group.end, group.next_position, _learned(profile, group), reach)
    return group if broken is None else _doubtful(group, broken)


def _learned(profile: Profile, group: Group) -> Profile:
    """How the section is read behind a batch that has records: a later one that has none has lost them."""
    endings = [record.ending for record in group.records]
    by_lines = profile.by_lines and not any(ending.printed and ending.proof is not Proof.LINE for ending in endings)
    shown = next((ending.printed for ending in endings if ending.printed is not None), None)
    return replace(profile, deep=True, printed=shown if profile.printed is None else profile.printed, by_lines=by_lines)


def broken_before(window: Window, at: int, position: int, profile: Profile, reach: int) -> int | None:
    """Where the text from an element on, a batch line at `position` or what may stand before it, stops to be whole; None where it is whole
    as far as `reach`.

    Raises:
        NeedMore: that place lies behind the window.
    """
    # What lacks nothing but its last line end says as much of what stands before as if it had it.
    window = window.ended()
    # Nearly all text goes on by its simplest reading; where that one ends, forged lines may have led astray.
    known = window.known(_Known)
    for careful in (False, True):
        ahead = known.get(careful)
        if ahead is None or not ahead.has_passed(at, position, profile):
            ahead = known[careful] = Ahead(window, at, position, profile, careful=careful)
        broken = ahead.broken_before(reach)
        if broken is None:
            break
    return broken


def _doubtful(group: Group, broken: int) -> Group:
    found = Group(group.line, group.start, group.line_end, group.line_end)
    found.fail(Failure.AMBIGUOUS, group.line_end, None)
    found.doubtful_to, found.doubted = broken, None if group.shallow else group
    return found


def _spare(window: Window, group: Group, profile: Profile) -> int:
    """Bytes that the batch may have beyond those that this reading shows: of header keys, and of values that print as more."""
    if group.line.is_control or profile.decoder is not None:
        return 0
    room = 0
    if group.line.magic == 2:
        # Only magic 2 has headers. The size of a compressed batch says nothing of how long they are.
        room = headers_room(group.line, group.records) if group.line.codec == "none" else HIDDEN
    return max(room, 0) + max(_slack(window, group, profile), 0)


def _slack(window: Window, group: Group, profile: Profile) -> int:
    """Bytes that the keys and values of a group have beyond the fewest that their text can stand for."""
    text, start, end = window.text, group.line_end, group.end
    unmeasured = sum(_sizes(record) for record in group.records if record.ending.proof is Proof.LINE)
    replaced = text.count(_REPLACEMENT, start, end) if text.find(b"\xef", start, end) >= 0 else 0
    if unmeasured or not (replaced or window.crlf or text.find(b"?", start, end) >= 0):
        return unmeasured
    length = end - start - sum(behind - at for at, behind, _ in group.messages)
    sizes = 0
    for record in group.records:
        line, headers = record.line, record.ending.headers
        behind = line.end + headers + (line.sequence is not None)
        key = line.key_size >= 0 and not (profile.hides_keys and line.value_size < 0 and not text.startswith(b" key: ", behind))
        value = line.value_size >= 0
        if record.ending.printed is not False:
            sizes += line.key_size * key + line.value_size * value
            behind += key * len(" key: ") + value * len(" payload: ")
        length -= behind - record.start + 1 + window.crlf
    shorter = max(text.count(b"\r\n", start, end) - len(group.records), 0) if window.crlf else 0
    return sizes - length + 2 * replaced + shorter


def _other_claim(window: Window, group: Group, profile: Profile) -> int | None:
    """A second batch line that claims the next position, within what a group of which printing may have changed the text could hold."""
    # Exact text with a `?` may stand for more bytes, and then ends earlier: no longer reading is left.
    longer = window.crlf or window.text.find(_REPLACEMENT, group.line_end, group.end) >= 0
    lossy = (longer or any(record.ending.proof is Proof.LOSSY for record in group.records)) and is_changed(window, group)
    # No line says how long header keys are: what damage put into one looks like its own text, and leaves no room for the rest.
    if not lossy and all(record.ending.headers < MIN_FORGED for record in group.records):
        return None
    reach = reach_of(group, max(room_of(group, profile), 0))
    claim = next(claims(window, min(window.after_line(group.end), reach), group.next_position, reach), None)
    return _cut_claim(window, group, reach) if claim is None else claim


def _cut_claim(window: Window, group: Group, reach: int) -> int | None:
    """The last line of a file, cut before its position, where it begins a batch: no offset behind that of the batch line that closes the
    group. Offsets grow, so one of the two is somebody's."""
    text = window.text
    at = text.rfind(b"\n") + 1
    if not window.final or not group.end < at < reach or batch_line(text, at) is not None:
        return None
    cut, line = _CUT.match(text, at), batch_line(text, group.end)
    return at if cut is not None and line is not None and int(cut[1]) <= line.last_offset else None


def _sizes(record: Record) -> int:
    return max(record.line.key_size, 0) + max(record.line.value_size, 0)


def _reach(window: Window, group: Group, spare: int) -> int:
    """How far another reading of the group may go: over what it may have more, and over the records that it may have there."""
    begin = group.end
    end = begin + spare + (begin - group.line_end) + _SPARE
    for _ in range(3):  # a U+FFFD is three bytes of text for one byte
        longer = begin + spare + (begin - group.line_end) + _SPARE + 2 * window.text.count(_REPLACEMENT, begin, end)
        if longer == end:
            break
        end = longer
    return end


class _Known(dict[bool, "Ahead"]):
    """How far the text ahead of a window was found whole, by its simplest reading and by the careful one."""


class Ahead:
    """Goes through the text ahead, element by element, up to the first place where it is not whole."""

    def __init__(self, window: Window, at: int, position: int, profile: Profile, *, careful: bool) -> None:
        """Ready to go on from an element, where the next batch line prints this position.

        Args:
            window: the text.
            at: the element.
            position: what the next batch line prints.
            profile: of the section.
            careful: look for other readings of batches that have a simple one.
        """
        self._window, self._profile, self._careful = window, profile, careful
        self._at, self._position = at, position
        # Every batch with room to spare asks about the text behind it. One walk answers all of them: one each would cost the text once more
        # for every batch within reach.
        self._passed = {at: position}
        self._broken: int | None = None
        self._ended = False

    def has_passed(self, at: int, position: int, profile: Profile) -> bool:
        """Did it come by this place, by the same rules?"""
        return self._profile == profile and self._passed.get(at) == position

    def broken_before(self, reach: int) -> int | None:
        """Where the text stops to be whole, if it does before an offset.

        Raises:
            NeedMore: it goes on behind the window.
        """
        while self._broken is None and not self._ended and self._at <= reach:
            self._step()
        return self._broken if self._broken is not None and self._broken <= reach else None

    def _step(self) -> None:
        window, at = self._window, self._at
        if at >= len(window.text):
            window.reach(at + 1)
            self._ended = True
            return
        window.structural(at)
        line = batch_line(window.text, at)
        if line is not None:
            self._group(at, line)
        elif DUMPING.match(window.text, at):
            # A section has text and rules of its own: it is proof where it begins as one.
            self._ended = starts_section(window, at)
            self._broken = None if self._ended else at
        elif PREAMBLE.match(window.text, at) or not window.text[at : at + 2].strip(b"\r\n"):
            self._go(window.after_line(at), self._position)
        else:
            message = whole_message(window, at)
            if message is None:
                self._broken = at
            else:
                self._go(message[0], self._position)

    def _group(self, at: int, line: BatchLine) -> None:
        window = self._window
        if line.position != self._position or not window.is_within(line.position):
            self._broken = at
            return
        overshoot = window.overshoot
        group = (judged_group if self._careful else greedy_group)(window, at, line, self._profile)
        window.overshoot = overshoot
        if group.failure is None:
            # The reader comes by here next and takes it from there: no batch is read twice.
            window.known(Judged if self._careful else ReadAhead).keep(window, at, self._profile, group)
            self._go(group.end, group.next_position)
        elif group.meeting is not None and group.unread_end is not None:
            self._go(group.unread_end, group.meeting)
        elif group.failure is Failure.AMBIGUOUS:
            self._ended = True  # more than one reading closes here, so nothing is missing
        else:
            self._broken = at

    def _go(self, at: int, position: int) -> None:
        self._at, self._position = at, position
        self._passed[at] = position
