"""Lines of a stretch that may be more than the text of a record: one by one, by the exact reader's own rules."""

import numpy as np

from eo_audit.dump.lines.scan import Ints
from eo_audit.dump.log.closing import has_message_before, starts_section
from eo_audit.dump.log.text import NeedMore, Window

# Each costs some microseconds; a payload may consist of them.
_MOST_LOOKED_AT = 5_000


def that_may_matter(window: Window, offset: int, others: Ints) -> Ints:
    """Lines of other kinds than batch and record lines (`Lines.others`) that may be the tool's own: those of magic 0 and 1, and of
    `Dumping` lines the ones behind which a section stands."""
    if len(others) > _MOST_LOOKED_AT:
        return others
    return np.array([at for at in others.tolist() if _may_matter(window, offset + at)], dtype=np.int64)


def _may_matter(window: Window, at: int) -> bool:
    try:
        return not window.text.startswith(b"Dumping ", at) or starts_section(window, at)
    except NeedMore:
        return True


def is_told_before(window: Window, at: int, start: int) -> bool:
    """May a message of the tool stand directly before a line, behind a byte?"""
    try:
        return has_message_before(window, at, start)
    except NeedMore:
        return True
