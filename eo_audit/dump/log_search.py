"""Which reading of a batch is true where the first exact one may not be: search among the others for one that closes.

A reading closes when it has all records the batch owes, and then a line that can follow. A forged batch line inside header keys can claim
the next position, but collides with the genuine line that claims it too, further on.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from eo_audit.dump.dialects import LONGEST_LINE, PREAMBLE, BatchLine, batch_line, record_line
from eo_audit.dump.framing import (
    HEADERS_SEARCHED,
    Failure,
    Follower,
    Group,
    Profile,
    Record,
    follower,
    greedy_group,
    headers_room,
    learned,
    owed_records,
    whole_message,
)
from eo_audit.dump.log_records import Proof, Rules, endings
from eo_audit.dump.log_text import Window

MIN_FORGED = 200  # bytes: no forged batch line with its record line is shorter
_STEPS = 2_000  # readings tried beyond four per record, before an ambiguous batch is given up
_CLOSING = frozenset({Follower.BATCH, Follower.DUMPING, Follower.MESSAGE, Follower.END})
_ENDING = _CLOSING - {Follower.BATCH}
_ON = frozenset({Follower.BATCH})

Closes = Callable[[int], bool]


class Effort(NamedTuple):
    """What readings are tried: the least proof, and whether header keys may have line feeds."""

    worst: Proof
    one_line: bool


_EXACT, _EXACT_LINES = Effort(Proof.EXACT, True), Effort(Proof.EXACT, False)
_LOSSY, _LOSSY_LINES = Effort(Proof.LOSSY, True), Effort(Proof.LOSSY, False)
_BY_LINES = Effort(Proof.LINE, True)


def read_group(window: Window, start: int, line: BatchLine, profile: Profile) -> Group:
    """The group of the batch line at `start`.

    Raises:
        NeedMore: the group, or what proves its end, goes on behind the window.
    """
    group = greedy_group(window, start, line, profile)
    if group.shallow or group.failure is Failure.EXCEPTION:
        return group
    with_headers = any(record.ending.headers for record in group.records)
    if group.failure is not None:
        return _recovered(window, group, profile) if with_headers or group.failure is not Failure.MISSING else group
    closed = follower(window, group.end, group.next_position)
    if closed is Follower.NOTHING or (closed is Follower.OTHER_BATCH and with_headers):
        found = _reading(window, group, profile, (_EXACT, _LOSSY, _EXACT_LINES, _LOSSY_LINES), _follows(window, group, _ON))
        return found or _reading(window, group, profile, (_EXACT, _EXACT_LINES), _follows(window, group, _ENDING)) or group
    if closed in _ENDING and any(_has_line_feed(window, record) for record in group.records):
        return _unswallowed(window, group, profile) or _proven(window, group, profile, closed)
    return _proven(window, group, profile, closed)


def _has_line_feed(window: Window, record: Record) -> bool:
    """Do the record's header keys contain a line feed?"""
    headers = record.ending.headers
    return headers > 0 and window.text.find(b"\n", record.line.end, record.line.end + headers) >= 0


def _unswallowed(window: Window, group: Group, profile: Profile) -> Group | None:
    """Header keys that swallow the rest of the section may be a record that printing changed: a batch line at the next position says so."""
    other = _reading(window, group, profile, (_LOSSY, _LOSSY_LINES), _follows(window, group, _ON))
    if other is not None:
        other.verified = False
    return other


def _follows(window: Window, group: Group, wanted: frozenset[Follower]) -> Closes:
    return lambda end: follower(window, end, group.next_position) in wanted


def _reading(window: Window, group: Group, profile: Profile, efforts: tuple[Effort, ...], closes: Closes) -> Group | None:
    """The first reading that closes, of the least effort; unverified if there is a second one."""
    for effort in efforts:
        rules = replace(profile.rules(group.line), one_line=effort.one_line)
        first = next(readings(window, group.line, group.line_end, rules, worst=effort.worst, closes=closes), None)
        if first is None:
            continue
        other = Group(group.line, group.start, group.line_end, first[-1].ending.end, first)
        if effort.worst > Proof.EXACT:
            rules = replace(rules, header_limit=_headers_allowed(group.line, first))
            several = list(_first(2, readings(window, group.line, group.line_end, rules, worst=effort.worst, closes=closes)))
            other.verified = len(several) == 1 and all(record.ending.proof < Proof.LINE for record in first)
        return other
    return None


def _first(count: int, found: Iterator[list[Record]]) -> Iterator[list[Record]]:
    for _, reading in zip(range(count), found, strict=False):
        yield reading


def _headers_allowed(line: BatchLine, records: list[Record]) -> int:
    """Header keys that another reading of the same records could have: what the batch has room for, or what was found."""
    printed = max((record.ending.headers for record in records), default=0)
    return printed + max(headers_room(line, records), 0) if line.codec == "none" and line.magic == 2 else printed


def readings(window: Window, line: BatchLine, at: int, rules: Rules, *, worst: Proof, closes: Closes) -> Iterator[list[Record]]:
    """All readings of the records behind a batch line that close, depth first, best proven endings first.

    Args:
        window: the text.
        line: the batch line.
        at: where its first record line starts.
        rules: of its records.
        worst: the least proof that is accepted.
        closes: can the batch end at this byte?
    """
    owed = owed_records(line)
    chosen: list[Record] = []
    stack = [_candidates(window, line, at, chosen, rules, worst)]
    for _ in range(_STEPS + 4 * (owed or 0)):
        record = next(stack[-1], None)
        if record is None:
            stack.pop()
            if not stack:
                return
            chosen.pop()
            continue
        chosen.append(record)
        end = record.ending.end
        if (len(chosen) == owed or owed is None) and closes(end):
            yield list(chosen)
        if owed is None or len(chosen) < owed:
            stack.append(_candidates(window, line, end, chosen, learned(rules, chosen), worst))
        else:
            chosen.pop()


def _candidates(window: Window, line: BatchLine, at: int, chosen: list[Record], rules: Rules, worst: Proof) -> Iterator[Record]:
    """Readings of the record line at `at`, if it can be the next of the batch."""
    before = chosen[-1].line.offset if chosen else line.base_offset - 1
    if at < len(window.text):
        window.structural(at)
        record = record_line(window.text, at)
        if record is not None and (line.magic < 2 or before < record.offset <= line.last_offset):
            for ending in endings(window, record, rules, worst):
                yield Record(at, record, ending)


def _recovered(window: Window, group: Group, profile: Profile) -> Group:
    """A record has no exact ending: text that lost bytes in printing, text of a decoder nobody knows, the end of a cut file, or damage."""
    overshoot = window.overshoot or _cut_in_headers(window, group)
    efforts = (_EXACT, _LOSSY, _EXACT_LINES, _LOSSY_LINES) if overshoot else (_EXACT, _LOSSY, _EXACT_LINES, _LOSSY_LINES, _BY_LINES)
    found = _reading(window, group, profile, efforts, _follows(window, group, _CLOSING))
    if found is not None:
        by_lines = any(record.ending.proof is Proof.LINE for record in found.records)
        return found if by_lines else _proven(window, found, profile, follower(window, found.end, found.next_position))
    if overshoot and group.failure is Failure.UNDELIMITED and group.failed_at is not None:
        group.fail(Failure.TRUNCATED, group.failed_at, len(window.text))
    return group


def _cut_in_headers(window: Window, group: Group) -> bool:
    """Does the file end where the header keys of the failed record could still go on?"""
    if not window.final or group.failed_at is None or group.line.codec != "none":
        return False
    record = record_line(window.text, group.failed_at)
    if record is None or record.sequence is None:
        return False
    room = headers_room(group.line, group.records) - max(record.key_size, 0) - max(record.value_size, 0)
    return record.end + room > len(window.text)


def _room(group: Group, profile: Profile) -> int:
    """Bytes that header keys may have beyond the ones read, where forged lines could stand."""
    if group.line.magic < 2 or group.line.is_control or profile.decoder is not None:
        return 0
    return headers_room(group.line, group.records) if group.line.codec == "none" else HEADERS_SEARCHED


def _proven(window: Window, group: Group, profile: Profile, closed: Follower) -> Group:
    """The group, or the reading that stands where this one collides with a genuine line further on."""
    room = _room(group, profile)
    if room < MIN_FORGED:
        return group
    reach = group.end + room + group.end - group.start  # behind forged header keys, the record's own key and payload
    behind = window.after_line(group.end) if closed is Follower.BATCH else group.end
    collision = next(claims(window, behind, group.next_position, reach), None)
    if collision is not None:
        if not passes_over(window, group.end, collision, profile):
            return _reading(window, group, profile, (_EXACT, _EXACT_LINES), lambda end: end == collision) or group
        return group
    if group.line.codec == "none":
        return _at_section_end(window, group, profile, reach)
    if closed in _ENDING and not profile.printed:
        group.verified = False  # neither lengths nor a line behind it prove where it ends
    return group


def _at_section_end(window: Window, group: Group, profile: Profile, reach: int) -> Group:
    """Behind the last batches no genuine line can collide. There the room that an uncompressed batch has for header keys tells a forgery.

    It does when none were printed; else the group is kept, but it and all behind it are no proof.
    """
    if not _section_ends(window, group.end, reach):
        return group
    start = group.end
    other = _reading(window, group, profile, (_EXACT, _EXACT_LINES), lambda at: at > start and _follows(window, group, _ENDING)(at))
    if other is None:
        return group
    found = group if any(record.ending.headers for record in group.records) else other
    found.verified = False
    found.unproven = found is group
    return found


def _section_ends(window: Window, start: int, stop: int) -> bool:
    """May the section end in a stretch of text?"""
    return (window.final and stop >= len(window.text)) or window.text.find(b"\nDumping ", start - 1, stop) >= 0


def claims(window: Window, start: int, position: int, stop: int) -> Iterator[int]:
    """Starts of the lines in a stretch of text that look like a batch line at `position`, forged or not.

    Raises:
        NeedMore: the stretch goes on behind the window.
    """
    needle, last = b" position: %d " % position, stop + LONGEST_LINE
    at = window.text.find(needle, start, last)
    while at >= 0:
        begin = window.text.rfind(b"\n", 0, at) + 1
        line = batch_line(window.text, begin) if start <= begin < stop else None
        if line is not None and line.position == position:
            yield begin
        at = window.text.find(needle, at + 1, last)
    window.reach(last)


def passes_over(window: Window, at: int, target: int, profile: Profile) -> bool:
    """Does reading on from `at`, element by element, pass over the line at `target`? Not when it stops there, or before."""
    while at < target:
        behind = next_element(window, at, profile)
        if behind is None:
            return False
        at = behind
    return at > target


def next_element(window: Window, at: int, profile: Profile) -> int | None:
    """Where the element at `at` ends by its first exact reading; None when it is nothing known or not whole."""
    window.structural(at)
    line = batch_line(window.text, at)
    if line is not None:
        group = greedy_group(window, at, line, profile)
        return None if group.failure else group.end
    if follower(window, at, -1) is Follower.DUMPING or PREAMBLE.match(window.text, at):
        return window.after_line(at)
    message = whole_message(window, at)
    return message[0] if message else None
