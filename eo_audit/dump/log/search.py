"""Which reading of a batch is true where more than one is possible: the only one that closes, or none.

A reading closes when it has all records the batch owes, and then a line that can follow. Printed text may stand for more or fewer bytes
than it has, and header keys are unbounded text, so what is inside a record of one reading is a batch of its own in another. Nothing in the
text says which of two is true: whoever wrote the record chose its bytes. So where two close, neither is believed: the text is unread up to
where they meet again, or to the next line that can be believed.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from eo_audit.dump.lines.dialects import LONGEST_LINE, BatchLine, batch_line, record_line
from eo_audit.dump.log.by_lines import is_of_decoder
from eo_audit.dump.log.closing import claims, closers, sections, starts_section
from eo_audit.dump.log.dispute import MIN_FORGED, any_swallows, holds_record, is_changed, is_disputed, reach_of, room_of
from eo_audit.dump.log.framing import (
    Failure,
    Follower,
    Group,
    Profile,
    follower,
    greedy_group,
    headers_room,
    whole_message,
)
from eo_audit.dump.log.marks import Marks
from eo_audit.dump.log.read_ahead import Judged, ReadAhead
from eo_audit.dump.log.readings import Readings, Search
from eo_audit.dump.log.record_lines import RecordLines
from eo_audit.dump.log.text import Window

# Chains of batches followed side by side. Honest text has one or two; many are an attack on the reader's time.
_MOST_NODES = 100
MEETING = 1 << 18  # bytes behind an ambiguous batch where its readings must have met
_ENDING = frozenset({Follower.DUMPING, Follower.MESSAGE, Follower.END})


class Judgement(NamedTuple):
    """All that closes behind a batch line: readings with header keys on one line, then with header keys of any kind before a batch line.

    The second is None where no such reading could differ.
    """

    plain: Readings
    wide: Readings | None

    @property
    def given_up(self) -> bool:
        """There were too many to tell."""
        return self.plain.given_up or (self.wide is not None and self.wide.given_up)

    @property
    def ends(self) -> dict[int, int]:
        """Where readings end, and how many do."""
        wide = self.wide.ends if self.wide is not None else {}
        return {end: max(self.plain.ends.get(end, 0), wide.get(end, 0)) for end in {*self.plain.ends, *wide}}

    def only(self) -> tuple[Readings, int] | None:
        """The one reading there is, and where it ends; None where there is another number."""
        ends = self.ends
        if self.given_up or sum(ends.values()) != 1:
            return None
        end = next(iter(ends))
        return (self.plain if end in self.plain.ends else self.wide or self.plain), end


def judged_group(window: Window, start: int, line: BatchLine, profile: Profile) -> Group:
    """The group of the batch line at `start`, as the text shows it that its readings can reach.

    Raises:
        NeedMore: the group, or what proves its end, goes on behind the window.
    """
    judged = window.known(Judged).take(window, start, profile)
    if judged is not None:
        return judged
    group = window.known(ReadAhead).take(window, start, profile) or greedy_group(window, start, line, profile)
    if group.shallow or (group.failure in (Failure.EXCEPTION, Failure.MISSING) and not _may_differ(window, group, profile)):
        return group
    if group.failure is None:
        closed = follower(window, group.end, group.next_position)
        # Nearly all batches end here: the exact reading closes, and nothing around it looks like another one.
        if closed not in (Follower.NOTHING, Follower.OTHER_BATCH) and not is_disputed(window, group, profile, closed):
            return _at_section_end(window, group, profile, closed)
    found = _disputed_group(window, group, profile)
    return _holding_records(window, found) if any(holds_record(window, one.line, one.ending) for one in found.records) else found


def _holding_records(window: Window, group: Group) -> Group:
    """The batch line alone of a group with a whole record line in header keys: the other reading, in which that is the tool's own, may have
    been lost by damage to any line of it."""
    if group.failure is not None or follower(window, group.end, group.next_position) in (Follower.NOTHING, Follower.OTHER_BATCH):
        return _given_up(group)
    found = Group(group.line, group.start, group.line_end, group.line_end)
    found.fail(Failure.AMBIGUOUS, group.line_end, group.end)
    found.meeting = group.next_position
    return found


def _disputed_group(window: Window, group: Group, profile: Profile) -> Group:
    """The group by all its readings, or without one."""
    judged = judge(window, group, profile)
    # From here on somebody's payload looks like the tool's own lines, or the text is damaged.
    only = judged.only()
    if only is not None:
        return _chosen(window, group, profile, *only)
    if judged.ends and not judged.given_up:
        return _ambiguous(window, group, profile, judged.ends)
    if judged.given_up:
        return _given_up(group)
    return _unclosed(window, group, profile)


def _may_differ(window: Window, group: Group, profile: Profile) -> bool:
    """May a record that was read end elsewhere?"""
    hidden = profile.hides_keys and any(record.line.value_size < 0 for record in group.records)
    return hidden or is_changed(window, group) or not 0 <= room_of(group, profile) < MIN_FORGED


def judge(window: Window, group: Group, profile: Profile) -> Judgement:
    """All readings of a group that close."""
    line, position = group.line, group.next_position

    def plain(start: int, stop: int) -> list[int]:
        return closers(window, start, stop, position, weak=True)

    def strong(start: int, stop: int) -> list[int]:
        return closers(window, start, stop, position, weak=False)

    # Header keys on one line first: Kafka's clients write names there. The search over line ends is many times dearer, and needed only
    # where such a reading could differ.
    found = Search(window, window.known(Marks), line, group.line_end, profile, plain, one_line=True).run()
    if found.given_up or profile.decoder is not None or line.is_control or line.magic < 2:
        return Judgement(found, None)
    if found.count == 1:
        end = next(iter(found.ends))
        group = replace(group, records=found.records(end), end=end)
        room = room_of(group, profile)
        # The only other ends a reading could have are lines at the next position; none there, no second search.
        others = claims(window, group.line_end, position, reach_of(group, max(room, 0)))
        # Unless there is room for header keys that hold records of the same batch.
        is_whole = room < MIN_FORGED and not any_swallows(window, group)
        if all(at == end for at in others) and (is_whole or _own_lines(window, group, room) is not None):
            return Judgement(found, None)
    return Judgement(found, Search(window, window.known(Marks), line, group.line_end, profile, strong).run())


def _own_lines(window: Window, group: Group, room: int) -> tuple[int, ...] | None:
    """Where the records of a group begin, if no reading can have others: as far as any reaches, only they print an offset of the batch.

    Of a batch that the cleaner thinned out any line with a later offset may be the next record; to try each of hundreds behind each of
    hundreds is more than can be told in reasonable time.

    Raises:
        NeedMore: the text that a reading can reach goes on behind the window.
    """
    line, count = group.line, len(group.records)
    reach = reach_of(group, max(room, 0))
    if line.codec == "none":
        # Lossy text may stand for more bytes than it has, and leaves room for them; each line prints some numbers beside its texts.
        reach = max(reach, group.line_end + 3 * line.size_bytes + count * LONGEST_LINE)
    offsets = range(line.base_offset, line.last_offset + 1)
    starts = window.known(RecordLines).between(window, offsets, group.line_end - 1, reach)
    return tuple(starts) if starts == [record.start for record in group.records] else None


def _chosen(window: Window, group: Group, profile: Profile, readings: Readings, end: int) -> Group:
    """The group as the only reading that closes has it."""
    records = readings.records(end)
    found = Group(group.line, group.start, group.line_end, end, records)
    found.messages = group.messages if group.failure is None and end == group.end else []
    return _at_section_end(window, found, profile, follower(window, end, found.next_position))


def _at_section_end(window: Window, group: Group, profile: Profile, closed: Follower) -> Group:
    """Behind the last batches no genuine line collides with a forged one, so a group there may end further on, and neither it nor what is
    behind it is proof.

    Where header keys must be there (an uncompressed batch has the room) and none were read, the reading that has some is as good.
    """
    room = room_of(group, profile)
    if room < MIN_FORGED:
        return group
    if group.line.codec != "none":
        if closed in _ENDING and not profile.printed:
            group.verified = False  # neither lengths nor a line behind it prove where it ends
        return group
    reach = reach_of(group, room)
    if not ((window.final and reach >= len(window.text)) or next(sections(window, group.end, reach), None) is not None):
        return group

    def later(start: int, stop: int) -> list[int]:
        return [
            end for end in closers(window, start, stop, group.next_position, weak=True) if end > group.end and not _is_batch(window, end)
        ]

    # A forged section or message in a last header key would end the batch too early; only readings that end later, and not at a batch line,
    # are asked for.
    own = _own_lines(window, group, room)
    others = Search(window, window.known(Marks), group.line, group.line_end, profile, later, own_lines=own).run()
    if not others.ends and not others.given_up:
        return group
    return _ambiguous(window, group, profile, {group.end, *others.ends})


def _is_batch(window: Window, at: int) -> bool:
    return window.text.startswith((b"baseOffset: ", b"offset: "), at)


def _given_up(group: Group) -> Group:
    """The batch line alone: nobody can tell in reasonable time how its text is to be read."""
    found = Group(group.line, group.start, group.line_end, group.line_end)
    found.fail(Failure.UNDELIMITED, group.line_end, None)
    return found


def _unclosed(window: Window, group: Group, profile: Profile) -> Group:
    """No reading closes: text of a decoder nobody knows, header keys over line ends before the end of a section, the end of a cut file, or
    damage."""
    position = group.next_position

    def any_end(start: int, stop: int) -> list[int]:
        return closers(window, start, stop, position, weak=True)

    if group.failure is None:
        group.verified = group.verified and not _may_differ(window, group, profile)
        # What can follow a batch does not: where header keys have room, the records may be theirs.
        if room_of(group, profile) >= MIN_FORGED:
            if not window.is_within(position):
                # Only where the segment ends with this batch may header keys over line ends be searched for without a batch line behind
                # them.
                last = Search(window, window.known(Marks), group.line, group.line_end, profile, any_end).run()
                if last.count == 1 and not last.given_up:
                    return _chosen(window, group, profile, last, next(iter(last.ends)))
            group.fail(Failure.MISSING, group.end, group.end)
        return group
    # A live segment is dumped while it grows, or a file was cut: then no reading closes, and that is no damage.
    overshoot = window.overshoot or _cut_in_headers(window, group)
    wide = Search(window, window.known(Marks), group.line, group.line_end, profile, any_end).run()
    if wide.count == 1 and not wide.given_up:
        return _chosen(window, group, profile, wide, next(iter(wide.ends)))
    if wide.count > 1:
        return _ambiguous(window, group, profile, wide.ends)
    if overshoot:
        if group.failure is Failure.UNDELIMITED and group.failed_at is not None:
            group.fail(Failure.TRUNCATED, group.failed_at, len(window.text))
        return group
    return _by_lines(window, group, profile) if profile.by_lines and group.failure is Failure.UNDELIMITED else group


def _by_lines(window: Window, group: Group, profile: Profile) -> Group:
    """A record whose text no length delimits ends before the next line that the batch owes, if just one line can be that."""
    # A batch line at the next position is proof, so it is asked first. What else may follow is taken only without one, and only the first
    # such place: each later one leaves more of the text to one record.
    for weak in (False, True):

        def ends(start: int, stop: int, weak: bool = weak) -> list[int]:
            return closers(window, start, stop, group.next_position, weak=weak)[: 1 if weak else None]

        found = Search(window, window.known(Marks), group.line, group.line_end, profile, ends, by_lines=True).run()
        if found.count and not found.given_up:
            read = [Group(group.line, group.start, group.line_end, end, found.records(end), verified=False) for end in found.ends]
            if not any(is_of_decoder(window, one, profile) for one in read):
                return group
            return read[0] if found.count == 1 else _ambiguous(window, group, profile, found.ends)
    return group


def _cut_in_headers(window: Window, group: Group) -> bool:
    """Does the file end where the header keys of the failed record could still go on?"""
    # The size of a compressed batch does not say how long its header keys may be.
    if group.failed_at is None or group.line.codec != "none":
        return False
    record = record_line(window.text, group.failed_at)
    if record is None or record.sequence is None:
        return False
    room = headers_room(group.line, group.records) - max(record.key_size, 0) - max(record.value_size, 0)
    window.reach(record.end + room)  # the end of a window is not the end of the file
    return record.end + room > len(window.text)


# where all readings meet again


class Node(NamedTuple):
    """A byte where an element of some reading begins, and what a batch line there must print as its position."""

    at: int
    position: int


def _ambiguous(window: Window, group: Group, profile: Profile, ends: Iterable[int]) -> Group:
    """The batch line alone; its text is unread up to where all readings meet."""
    meeting = _meeting(window, {Node(end, group.next_position) for end in ends}, profile)
    found = Group(group.line, group.start, group.line_end, group.line_end)
    found.fail(Failure.AMBIGUOUS, group.line_end, None if meeting is None else meeting.at)
    found.meeting = None if meeting is None else meeting.position
    return found


def _meeting(window: Window, nodes: set[Node], profile: Profile) -> Node | None:
    """The first byte where all readings that go on stand; None where they do not meet soon."""
    # The readings go on as chains of batches of their own. A forgery must end with its payload, and then the genuine chain goes on in all
    # of them: there they meet.
    limit = min(nodes).at + MEETING
    while len(nodes) > 1:
        # The reading that is furthest behind goes on: none can then pass a byte at which another one still arrives.
        first = min(nodes)
        if first.at > limit or len(nodes) > _MOST_NODES:
            return None
        nodes.remove(first)
        behind = _behind(window, first, profile)
        if behind is None:
            return None
        nodes |= behind
    return next(iter(nodes), None)


def _behind(window: Window, node: Node, profile: Profile) -> set[Node] | None:
    """Where the element at a node may end: nowhere if its reading does not go on, None if that cannot be told."""
    at = node.at
    if at >= len(window.text):
        window.reach(at + 1)
        return set()
    window.structural(at)
    line = batch_line(window.text, at)
    if line is not None:
        return _ends_of_group(window, at, line, profile) if line.position == node.position else set()
    # A section restarts positions: what lies behind it proves nothing about the chains before it.
    if starts_section(window, at):
        return None
    message = whole_message(window, at)
    return {Node(message[0], node.position)} if message else set()


def _ends_of_group(window: Window, at: int, line: BatchLine, profile: Profile) -> set[Node] | None:
    group = greedy_group(window, at, line, profile)
    if group.failure is None:
        closed = follower(window, group.end, group.next_position)
        if group.shallow or not is_disputed(window, group, profile, closed):
            return {Node(group.end, group.next_position)}
    judged = judge(window, group, profile)
    return None if judged.given_up else {Node(end, group.next_position) for end in judged.ends}
