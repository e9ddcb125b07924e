"""May a batch that was read exactly be read in another way? A look at the lines around it: cheaper than all readings."""

from eo_audit.dump.lines.dialects import RecordLine, record_line
from eo_audit.dump.log.closing import claims, closers, sections
from eo_audit.dump.log.framing import HEADERS_SEARCHED, Follower, Group, Profile, headers_room
from eo_audit.dump.log.records import Ending
from eo_audit.dump.log.text import Window

MIN_FORGED = 200  # bytes: no forged batch line with its record line is shorter
_RECORD = b"\n| offset: "


def is_changed(window: Window, group: Group) -> bool:
    """May printing have changed the text of the group's records?"""
    start, end, text = group.line_end, group.end, window.text
    if group.line.is_control or not group.records:
        return False
    # `?` is what Java prints in the C locale for a character outside ASCII, U+FFFD what a decoder prints for bytes that are no UTF-8.
    lossy = text.find(b"?", start, end) >= 0 or _is_longer(text, start, end)
    return lossy or (window.crlf and text.count(b"\r\n", start, end) > len(group.records))


def _is_longer(text: bytes, start: int, end: int) -> bool:
    """Is there a U+FFFD? One byte is found faster than three."""
    return text.find(b"\xef", start, end) >= 0 and text.find(b"\xef\xbf\xbd", start, end) >= 0


def room_of(group: Group, profile: Profile) -> int:
    """Bytes that header keys of a group may have beyond the ones read, where forged lines could stand."""
    if group.line.magic < 2 or group.line.is_control or profile.decoder is not None:
        return 0
    # Compressed batches print their packed size: it bounds nothing.
    return headers_room(group.line, group.records) if group.line.codec == "none" else HEADERS_SEARCHED


def reach_of(group: Group, room: int) -> int:
    """How far another reading of the group may go: printed text is up to three times as long as its bytes."""
    return group.end + 3 * (group.end - group.start) + (3 * room if group.line.codec == "none" else room)


def is_disputed(window: Window, group: Group, profile: Profile, closed: Follower) -> bool:
    """May another reading of the group close, as far as a look at the lines around it shows?"""
    room, changed = room_of(group, profile), is_changed(window, group)
    if group.several or room < 0 or any_swallows(window, group):  # negative: the batch cannot hold so much
        return True
    if (room < MIN_FORGED and not changed) or group.line.is_control:
        return False
    reach, position = reach_of(group, max(room, 0)), group.next_position
    # A forged batch line must claim the position that the genuine one behind it claims too (position + size). So the lines that claim it
    # are all that need be looked for, inside the group and behind it.
    inner = closers(window, group.line_end, group.end - 1, position, weak=changed)
    behind = window.after_line(group.end) if closed is Follower.BATCH else group.end
    if not changed:
        inner = [end for end in inner if _has_other_header_ends(window, group, end, hides_keys=profile.hides_keys)]
    if inner or next(claims(window, behind, position, reach), None) is not None:
        return True
    if not changed or not (window.crlf or _is_longer(window.text, group.line_end, group.end)):
        return False
    # Behind the last batch of a section no line claims a position: text that may stand for fewer bytes may end anywhere up to there.
    return (window.final and reach >= len(window.text) > group.end) or next(sections(window, group.end + 1, reach), None) is not None


def swallows(window: Window, line: RecordLine, ending: Ending) -> bool:
    """Do the header keys of a record hold what looks like a record line? Then it may be one, and the record itself a header key's."""
    return window.text.find(_RECORD, line.end, line.end + ending.headers) >= 0


def holds_record(window: Window, line: RecordLine, ending: Ending) -> bool:
    """Is there a whole record line in the header keys of a record?"""
    at = window.text.find(_RECORD, line.end, line.end + ending.headers)
    while at >= 0:
        if record_line(window.text, at + 1) is not None:
            return True
        at = window.text.find(_RECORD, at + 1, line.end + ending.headers)
    return False


def any_swallows(window: Window, group: Group) -> bool:
    """`swallows`, of any record of a group."""
    return any(record.ending.headers and swallows(window, record.line, record.ending) for record in group.records)


def _has_other_header_ends(window: Window, group: Group, end: int, *, hides_keys: bool) -> bool:
    """May header keys end elsewhere before `end`, in text that printing did not change? Only if more places for that stand there than the
    reading uses."""
    records = group.records
    if not all(record.ending.printed and not (hides_keys and record.line.value_size < 0) for record in records):
        return True
    places = sum(window.text.count(literal, group.line_end, end) for literal in (b"] key: ", b"] payload: "))
    return places > sum(record.line.end + record.ending.headers < end for record in records)
