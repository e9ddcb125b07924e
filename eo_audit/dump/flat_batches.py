"""A batch of a flat dump: record lines of one position, delimited by their lengths and by what can follow them.

There is no chain of sizes here as in later dumps. What keeps the text of a record from passing for lines of the tool: key and value are
delimited by their exact sizes, and offsets and positions go up. Header keys with a line feed may still pretend records where the log has
none behind them; the text itself cannot tell (docs/reliability.md).
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from eo_audit.dump.dialects import DUMPING
from eo_audit.dump.flat_lines import UNPRINTED, UNPRINTED_OF_LEGACY, FlatLine, batch_of, flat_line
from eo_audit.dump.framing import HEADERS_SEARCHED, LARGEST_RECORD, Failure, Group, Profile, Record, message_at
from eo_audit.dump.log_closing import starts_section
from eo_audit.dump.log_ends import ends_of
from eo_audit.dump.log_records import Ending, Proof, Rules, cut_by_exception, endings
from eo_audit.dump.log_text import Window
from eo_audit.dump.printed import longest_printed

_MOST_LINES = 1 << 12  # of the text of one record that printing changed


class Unread(Exception):
    """A record whose end nobody can tell; `end`: behind its text, where an exception cut it."""

    def __init__(self, failure: Failure, end: int | None = None) -> None:
        """Why, and up to where."""
        super().__init__(failure.value)
        self.failure, self.end = failure, end


def read_batch(window: Window, at: int, line: FlatLine, profile: Profile) -> tuple[Group, int | None]:
    """The batch whose first record line is at `at`, and the position of the batch line behind it in the section, if there is one.

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
        read.append(ending)
        if ending.printed is not None and profile.printed is None:
            profile = replace(profile, printed=ending.printed)
        found = flat_line(window.text, ending.end)
        behind = found if found is not None and found.continues(lines[-1]) else None
        if behind is not None:
            starts.append(ending.end)
            lines.append(behind)
    return _group(starts, lines, read, next_position=None if found is None else found.position), None if found is None else found.position


def _group(starts: list[int], lines: list[FlatLine], read: list[Ending], *, next_position: int | None) -> Group:
    group = Group(batch_of(lines, next_position), starts[0], read[0].end, read[-1].end)
    group.records = [Record(start, line.record, ending) for start, line, ending in zip(starts, lines, read, strict=True)]
    group.verified = all(ending.proof is Proof.EXACT for ending in read)
    unprinted = UNPRINTED if lines[0].magic >= 2 else UNPRINTED_OF_LEGACY
    group.unprinted = unprinted if next_position is not None else (*unprinted, "size_bytes")
    return group


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
    """The readings of a record behind which the tool's own may go on; header keys with a line feed only where none else fits."""
    special = rules.control or rules.decoder is not None
    for one_line in (True,) if special else (True, False):
        for ending in endings(window, line.record, replace(rules, one_line=one_line)):
            if _goes_on(window, ending.end, line):
                yield ending
    if not rules.control:
        yield from (ending for ending in _changed(window, line, rules) if ending.proof is Proof.LOSSY)


def _changed(window: Window, line: FlatLine, rules: Rules) -> Iterator[Ending]:
    """Readings of a record that printing changed: each end of a line behind which the tool's own goes on."""
    sizes = max(line.record.key_size, 0) + max(line.record.value_size, 0)
    limit = line.record.end + rules.header_limit + 2 * longest_printed(sizes)
    stops = [stop for stop in _line_ends(window, line.record.end, limit) if _goes_on(window, stop, line)]
    if stops:
        window.marks.cover(window, line.record.end, stops[-1])
        yield from ends_of(window, window.marks, line.record, rules, np.array(stops, dtype=np.int64))


def _line_ends(window: Window, at: int, limit: int) -> Iterator[int]:
    for _ in range(_MOST_LINES):
        at = window.text.find(b"\n", at, limit) + 1
        if at == 0:
            window.reach(limit)
            return
        yield at


def _goes_on(window: Window, at: int, line: FlatLine) -> bool:
    """Does at `at` begin what the tool may print behind a record?"""
    if at >= len(window.text):
        window.reach(at + 1)
        return window.ends_line(at)
    window.structural(at)
    if (behind := flat_line(window.text, at)) is not None:
        return behind.continues(line) or (behind.begins_behind(line) and window.is_within(behind.position))
    if DUMPING.match(window.text, at):
        return starts_section(window, at)
    return window.text[at : at + 1] in (b"\n", b"\r") or message_at(window, at) is not None


def _failure(window: Window, line: FlatLine) -> Unread:
    cut = cut_by_exception(window, line.record)
    if cut is not None:
        return Unread(Failure.EXCEPTION, cut)
    # A decoder that died wrote of that to another file: the text ends where its own would begin.
    window.reach(len(window.text) + 1)
    ended = window.text.find(b"\n", line.record.end) < 0
    return Unread(Failure.TRUNCATED if ended else Failure.UNDELIMITED)
