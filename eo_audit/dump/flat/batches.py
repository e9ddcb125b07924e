"""A batch of a flat dump: record lines of one position, delimited by their lengths and by what can follow them.

There is no chain of sizes here as in later dumps. What keeps the text of a record from passing for lines of the tool: key and value are
delimited by their exact sizes, offsets and positions go up, no offset stands twice, and an uncompressed batch is no larger than what it
shows. What header keys with a line feed can still pretend is named in docs/reliability.md.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from eo_audit.dump.lines.dialects import BATCH_OVERHEAD, DUMPING
from eo_audit.dump.lines.flat_lines import FlatLine, batch_of, flat_line
from eo_audit.dump.lines.printed import longest_printed
from eo_audit.dump.log.closing import starts_section
from eo_audit.dump.log.ends import ends_of
from eo_audit.dump.log.framing import (
    HEADERS_SEARCHED,
    LARGEST_RECORD,
    Failure,
    Group,
    Profile,
    Record,
    least_size,
    message_at,
)
from eo_audit.dump.log.marks import Marks
from eo_audit.dump.log.records import Ending, Rules, cut_by_exception, endings
from eo_audit.dump.log.text import Window

_MOST_LINES = 1 << 12  # of the text of one record that printing changed
_LEAST_LINE = 150  # bytes of a record line of magic 2 at least, with a line feed before and behind it
# What only the tool would write at the start of a line: where no length is exact, no record is read across it.
_OWN = re.compile(rb"\n(?=Dumping |offset: \d+ position: )")
_OWN_OFFSET = re.compile(rb"\n(?:Dumping |offset: (?P<offset>\d{1,19}) position: )")
_VARINT_SPARE = 16  # bytes by which the varints of one record (length, timestamp, number of headers) may be longer than `least_size` counts
_OLD_OVERHEAD = 34  # bytes of a record of magic 0 or 1 besides key and value (`LegacyRecord`)
_FRAME = 64  # more bytes, besides a sixth, no codec adds to what it cannot make smaller (snappy's `MaxCompressedLength`: 32 and a sixth)


class Unread(Exception):
    """A record whose end nobody can tell; `end`: behind its text, where an exception cut it."""

    def __init__(self, failure: Failure, end: int | None = None) -> None:
        """Why, and up to where."""
        super().__init__(failure.value)
        self.failure, self.end = failure, end


def read_batch(window: Window, at: int, line: FlatLine, profile: Profile, last_offset: int | None) -> tuple[Group, int | None]:
    """The batch whose first record line is at `at`, and the position of the batch line behind it in the section, if there is one. It has
    failed where lines of it, or beside it, were lost. `last_offset`: of the line before, if it is known.

    Raises:
        NeedMore: it goes on behind the window.
        Unread: one of its records cannot be read, so none of them is.
    """
    starts, lines, read = [at], [line], []
    behind: FlatLine | None = line
    while behind is not None:
        rules = _rules(profile, lines[-1])
        ending = next(_endings(window, lines[-1], rules), None)
        if ending is None:
            raise _failure(window, lines[-1])
        if _is_disputed(window, lines[-1], ending):
            raise Unread(Failure.AMBIGUOUS)
        read.append(ending)
        if ending.printed is not None and profile.printed is None:
            profile = replace(profile, printed=ending.printed)
        found = flat_line(window.text, ending.end)
        behind = found if found is not None and found.continues(lines[-1]) else None
        if behind is not None:
            starts.append(ending.end)
            lines.append(behind)
    position = None if found is None else found.position
    group = _group(starts, lines, read, next_position=position)
    if found is not None and (unshown := _unshown_bytes(group)) is not None:
        if unshown.least > _LEAST_LINE and not line.is_control:
            raise Unread(Failure.AMBIGUOUS)
        first = line.record.offset if last_offset is None else last_offset + 1
        missing, behind_it = found.record.offset - first - len(lines), found.record.offset - lines[-1].record.offset - 1
        # Where no offset is missing the bytes are of a header whose key is empty: it prints as none.
        if missing > 0 and unshown.least > 0 and not _are_emptied_batches(unshown, most=behind_it):
            # A compressed batch hides more lines than it has bytes.
            if _goes_back(window, group.end):
                raise Unread(Failure.AMBIGUOUS)
            group.fail(Failure.MISSING, at, group.end)
    return group, position


def _group(starts: list[int], lines: list[FlatLine], read: list[Ending], *, next_position: int | None) -> Group:
    group = Group(batch_of(lines, next_position), starts[0], read[0].end, read[-1].end)
    group.records = [Record(start, line.record, ending) for start, line, ending in zip(starts, lines, read, strict=True)]
    # Header keys of a compressed batch may hold all that stands behind it, where no other batch line shows where it ends.
    group.verified = lines[0].codec == "none" or next_position is not None
    return group


def end_at_most(group: Group) -> int | None:
    """Where a batch ends in its segment at the latest: no text behind it shows its size. None where header values count, which no dump
    prints."""
    line = group.line
    if any(record.ending.headers for record in group.records):
        return None
    spare = _VARINT_SPARE if line.magic >= 2 else _OLD_OVERHEAD
    most = BATCH_OVERHEAD + sum(least_size(record.line, line, None) + spare for record in group.records)
    return line.position + (most if line.codec == "none" else most + most // 6 + _FRAME)


def _rules(profile: Profile, line: FlatLine) -> Rules:
    return Rules(
        printed=profile.printed,
        hides_keys=True,
        control=line.is_control,
        size_limit=LARGEST_RECORD,
        header_limit=HEADERS_SEARCHED,
        decoder=profile.decoder,
        by_lines=False,
        one_line=True,
    )


def _endings(window: Window, line: FlatLine, rules: Rules) -> Iterator[Ending]:
    """The readings of a record behind which the tool's own may go on; where lengths fit on no line alone, only at the very next offset."""
    for ending in endings(window, line.record, rules):
        if _goes_on(window, ending.end, line):
            # Before a record has shown that payloads are printed, a changed value that ends in `]` looks like the end of header keys.
            if ending.printed is False and ending.headers:
                yield from _changed(window, line, replace(rules, printed=True))
            yield ending
    if rules.control:
        return
    if rules.decoder is None:
        for ending in endings(window, line.record, replace(rules, one_line=False)):
            headers_end = line.record.end + ending.headers
            if not _OWN.search(window.text, line.record.end, headers_end) and _goes_on(window, ending.end, line, step=1):
                yield ending
    yield from _changed(window, line, rules)


def _changed(window: Window, line: FlatLine, rules: Rules) -> Iterator[Ending]:
    """The reading of a record that printing changed: the one end of a line behind which the next offset stands, if there is one."""
    sizes = max(line.record.key_size, 0) + max(line.record.value_size, 0)
    limit = line.record.end + rules.header_limit + 2 * longest_printed(sizes)
    stops = [stop for stop in _line_ends(window, line.record.end, limit) if _goes_on(window, stop, line, step=1)]
    if stops:
        marks = window.known(Marks)
        marks.cover(window, line.record.end, stops[-1])
        # Behind the last record of a file nothing need follow: header keys that held all records up to there are no reading.
        found = [
            ending
            for ending in ends_of(window, marks, line.record, rules, np.array(stops, dtype=np.int64))
            if not _OWN.search(window.text, line.record.end, line.record.end + ending.headers)
        ]
        yield from found if len(found) == 1 and not _OWN.search(window.text, line.record.end, found[0].end) else ()


def _is_disputed(window: Window, line: FlatLine, ending: Ending) -> bool:
    """Does a line of the next offset stand twice behind a record? A log has one of each: the other is in a payload or a header key, and
    the text does not tell which."""
    needle, limit = b"\noffset: %d position: " % (line.record.offset + 1), ending.end + HEADERS_SEARCHED
    window.reach(limit)
    first = window.text.find(needle, ending.end - 1, limit)
    return first >= ending.end or (first >= 0 and window.text.find(needle, first + 1, limit) >= 0)


def _goes_back(window: Window, at: int) -> bool:
    """Does an offset stand again, or a lower one, behind a place where text was lost? Lines before it are then of a record whose line is
    lost."""
    limit, highest = at + HEADERS_SEARCHED, -1
    window.reach(limit)
    for own in _OWN_OFFSET.finditer(window.text, at - 1, limit):
        if own["offset"] is None:
            if starts_section(window, own.start() + 1):
                return False
            continue
        if int(own["offset"]) <= highest:
            return True
        highest = int(own["offset"])
    return False


class _Unshown(NamedTuple):
    """Bytes of a batch, and of what follows up to the next line, that no record line shows: so many at least and at most."""

    least: int
    most: int


def _unshown_bytes(group: Group) -> _Unshown | None:
    """Of an uncompressed batch without header keys, whose records have the sizes that are printed; None of any other one. A line's worth of
    bytes may be text that hid the lines behind; fewer are records that the text has lost, or batches that the cleaner emptied."""
    line = group.line
    if line.codec != "none" or line.magic < 2 or any(record.ending.headers for record in group.records):
        return None
    most = line.size_bytes - BATCH_OVERHEAD - sum(least_size(record.line, line, None) for record in group.records)
    return _Unshown(most - _VARINT_SPARE * len(group.records), most)


def _are_emptied_batches(unshown: _Unshown, *, most: int) -> bool:
    """Does the cleaner account for bytes that no line shows? It keeps the head of a producer's newest batch without its records
    (`BatchRetention.RETAIN_EMPTY`), of which no line is printed; each has an offset at least, and so many are missing at `most`."""
    emptied = unshown.most // BATCH_OVERHEAD
    return emptied <= most and unshown.least <= emptied * BATCH_OVERHEAD


def _line_ends(window: Window, at: int, limit: int) -> Iterator[int]:
    for _ in range(_MOST_LINES):
        at = window.text.find(b"\n", at, limit) + 1
        if at == 0:
            window.reach(limit)
            return
        yield at


def _goes_on(window: Window, at: int, line: FlatLine, *, step: int | None = None) -> bool:
    """Does at `at` begin what the tool may print behind a record? With a step only the line of the offset so far on, or the end."""
    if at >= len(window.text):
        window.reach(at + 1)
        return window.ends_line(at)
    window.structural(at)
    if (behind := flat_line(window.text, at)) is not None:
        if step is not None and behind.record.offset != line.record.offset + step:
            return False
        return behind.continues(line) or (behind.begins_behind(line) and window.is_within(behind.position))
    if DUMPING.match(window.text, at):
        return starts_section(window, at)
    return step is None and (window.text[at : at + 1] in (b"\n", b"\r") or message_at(window, at) is not None)


def _failure(window: Window, line: FlatLine) -> Unread:
    cut = cut_by_exception(window, line.record)
    if cut is not None:
        return Unread(Failure.EXCEPTION, cut)
    # A decoder that died wrote of that to another file: the text ends where its own would begin.
    window.reach(len(window.text) + 1)
    ended = window.text.find(b"\n", line.record.end) < 0
    return Unread(Failure.TRUNCATED if ended else Failure.UNDELIMITED)
