"""Is a reading by lines alone the text of a decoder nobody knows? Or plain text that was damaged, which it would swallow?"""

import re
from collections.abc import Iterator

from eo_audit.dump.lines.dialects import DUMPING, PREAMBLE, batch_line, record_line
from eo_audit.dump.log.closing import closers
from eo_audit.dump.log.framing import Follower, Group, Profile, Record, follower, greedy_group
from eo_audit.dump.log.records import Rules, endings, forms
from eo_audit.dump.log.text import Window

# A number of up to eight bytes prints as many digits by chance.
_TELLING = 8  # bytes of a key or value whose text has just that length
_BATCH = re.compile(rb"^(?:baseOffset|offset): ", re.MULTILINE)
_LONGEST_BEGINNING = len("baseOffset: ")
_DAMAGED = 64  # bytes that damage may have put into plain text, or taken


def is_of_decoder(window: Window, group: Group, profile: Profile) -> bool:
    """May a group whose records end where the next line begins be what a decoder class of the user's own printed?

    Not where records have just the lengths that plain text has, here or in the batch behind, or would have but for a few bytes of damage,
    nor where the tool's own lines stand in the text of one, nor where a key or payload that must be printed is not there.

    Raises:
        NeedMore: the batch behind goes on behind the window.
    """
    rules = profile.rules(group.line)
    records = list(group.records)
    if not all(_is_printed(window, record, rules) and not _holds_own_line(window, record) for record in records):
        return False
    if records and _is_nearly_plain(window, group, rules):
        return False
    window.structural(group.end)
    line = batch_line(window.text, group.end)
    behind = greedy_group(window, group.end, line, profile) if line is not None and not line.is_control else None
    if behind is not None:
        records += behind.records
    telling = [record for record in records if max(record.line.key_size, record.line.value_size) > _TELLING]
    return 2 * sum(_is_measured(window, record, rules) for record in telling) < max(len(telling), 1)


def _is_printed(window: Window, record: Record, rules: Rules) -> bool:
    """Does what its sizes say was printed begin in the record's text, on its first line but for header keys of several?"""
    text, (key, value) = window.text, forms(record.line, rules)[0]
    if not (key or value):
        return True
    begin = record.line.end
    if record.line.sequence is not None:
        begin = text.find(b"]", begin, record.ending.end) + 1
    wanted = ([b" key: "] if key else []) + ([b" payload: "] if value else [])
    for part in wanted:
        begin = text.find(part, begin, record.ending.end) + len(part)
        if begin < len(part):
            return False
    return True


def _holds_own_line(window: Window, record: Record) -> bool:
    """Does a line in the record's text look like one of the tool's own?"""
    at = window.text.find(b"\n", record.line.end, record.ending.end - 1) + 1
    while at:
        if any(own(window.text, at) is not None for own in (batch_line, record_line, DUMPING.match, PREAMBLE.match)):
            return True
        at = window.text.find(b"\n", at, record.ending.end - 1) + 1
    return False


def _is_nearly_plain(window: Window, group: Group, rules: Rules) -> bool:
    """Would plain text of the last record, but for a few bytes, end further on where a batch may end? Or just there where a batch line
    stands whose position damage may have changed?"""
    record = group.records[-1].line
    form = forms(record, rules)[0]
    begin = record.end if record.sequence is None else window.text.find(b"]", record.end, group.end) + 1
    size = form[0] * (len(" key: ") + max(record.key_size, 0)) + form[1] * (len(" payload: ") + max(record.value_size, 0))
    limit = begin + 3 * (size + _DAMAGED)
    if limit <= group.end or max(record.key_size, 0) + max(record.value_size, 0) > rules.size_limit:
        return False

    def may_end(end: int, damaged: int = 0) -> bool:
        text = window.text[begin:end].removesuffix(b"\n")
        shortest = len(text) - 2 * text.count(b"\xef\xbf\xbd") - window.crlf * text.count(b"\r")
        return shortest - damaged <= size <= len(text) + 3 * text.count(b"?") + damaged

    if any(may_end(end, _DAMAGED) for end in closers(window, group.end, limit, group.next_position, weak=True)):
        return True
    # A batch line at the next position is proof. A section is none: the text of a payload looks like one where a batch line behind it
    # prints position 0, and that may be the batch line that is owed.
    if follower(window, group.end, group.next_position) is Follower.BATCH:
        return False
    return any(may_end(end) for end in _batch_lines(window, group.end, limit))


def _batch_lines(window: Window, start: int, stop: int) -> Iterator[int]:
    """Starts of the batch lines in a stretch of text, at any position.

    Raises:
        NeedMore: the stretch goes on behind the window.
    """
    for found in _BATCH.finditer(window.text, start, stop + _LONGEST_BEGINNING):
        window.structural(found.start())
        if batch_line(window.text, found.start()) is not None:
            yield found.start()
    window.reach(stop + _LONGEST_BEGINNING)


def _is_measured(window: Window, record: Record, rules: Rules) -> bool:
    """Has a record just the length that its sizes say?"""
    return any(ending.printed and ending.end == record.ending.end for ending in endings(window, record.line, rules))
