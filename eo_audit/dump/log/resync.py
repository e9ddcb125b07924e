"""After damage: which line is the tool's own again?

The text behind damage may be the middle of a payload, so a line is not believed for its looks, nor for a few more like it, but when it
cannot lie in a payload: see `doubt`.
"""

import re

from eo_audit.dump.lines.dialects import BATCH_OVERHEAD, batch_line
from eo_audit.dump.log.ahead import HIDDEN, broken_before
from eo_audit.dump.log.closing import starts_section
from eo_audit.dump.log.framing import Group, least_size
from eo_audit.dump.log.sections import profile
from eo_audit.dump.log.state import Section
from eo_audit.dump.log.text import Window

_BEGINNING = re.compile(rb"\n(?=baseOffset: |offset: |Dumping )")
_LONGEST_BEGINNING = len("baseOffset: ")


# Though the line does not begin with it: a byte order mark of files that were joined, a prompt or a name may stand before it.
_SECTION = re.compile(rb"^(?:[^\n]{0,4096}?Dumping |(?:Log s|S)tarting offset: )", re.MULTILINE)
_LOOKED_AT = 4096 + len(b"Dumping ")  # of a line that may be as long as it likes


def may_name_section(window: Window, at: int, until: int) -> bool:
    """Whether a section may begin in the text that is passed over from `at` to `until`, or in the line at `at`.

    Raises:
        NeedMore: the window does not show it.
    """
    window.reach(at + _LOOKED_AT)
    newline = window.text.find(b"\n", at, at + _LOOKED_AT)
    return _SECTION.search(window.text, at, max(until, at + _LOOKED_AT if newline < 0 else newline)) is not None


def next_beginning(window: Window, at: int, stop: int) -> int:
    """The start of the next line before `stop` that could be the tool's own; of the last line before it where there is none."""
    found = _BEGINNING.search(window.text, at, stop)
    return found.end() if found else window.text.rfind(b"\n", at, stop) + 1


def may_begin(window: Window, at: int) -> bool:
    """Does the line at `at` look like a batch line, or like the beginning of a section?

    Raises:
        NeedMore: the answer lies behind the window.
    """
    window.reach(at + _LONGEST_BEGINNING)
    if window.text.startswith(b"Dumping ", at):
        return starts_section(window, at)
    # A line that the window cuts might look like another one.
    window.structural(at)
    return batch_line(window.text, at) is not None


def broken_behind(window: Window, at: int, section: Section) -> int | None:
    """Where the text behind a line that seems to be the tool's own is damaged again, too soon for it to be proof; None where it is not.

    Args:
        window: the text.
        at: the line.
        section: its section; where the line begins one, that one.

    Raises:
        NeedMore: the answer lies behind the window.
    """
    window.structural(at)
    line, behind = batch_line(window.text, at), window.after_line(at)
    if line is None:
        # A section begins at position 0.
        found = broken_before(window, behind, 0, profile(section), at + HIDDEN)
    else:
        found = broken_before(window, at, line.position, profile(section, line), at + HIDDEN)
    return None if found is None else max(found, behind)


def read_up_to(group: Group) -> tuple[int, bool]:
    """The position up to which a batch was read that could be read in part, and whether it is compressed."""
    line = group.line
    # Record lines print sizes before compression: how far they reach into the segment does not follow from them.
    if line.codec != "none" or line.magic < 2:
        return line.position, line.codec != "none"
    used = sum(least_size(record.line, line, None) for record in group.records)
    return min(line.position + used, group.next_position - BATCH_OVERHEAD), False
