"""After damage: which line is the tool's own again?

The text between may be the middle of a payload, so a line is not believed for its looks. A batch line at the expected position is, unless
another one claims it too and is not inside a payload of this one; any other needs successors that continue its chain.
"""

from eo_audit.dump.dialects import DUMPING, PREAMBLE, BatchLine, batch_line
from eo_audit.dump.framing import Follower, Profile, follower, greedy_group
from eo_audit.dump.log_search import claims, passes_over
from eo_audit.dump.log_text import Window

AHEAD = 1 << 18  # bytes looked through for other claims to a position


def is_believed(window: Window, at: int, position: int | None, profile: Profile) -> bool:
    """Is the line at `at` the tool's own?

    Args:
        window: the text; all before `at` since the damage is unread.
        at: start of a line.
        position: what the next batch line must print, as far as the damage lets us know.
        profile: of the section.

    Raises:
        NeedMore: the answer lies behind the window.
    """
    window.structural(at)
    line = batch_line(window.text, at)
    if line is None:
        return _starts_section(window, at, position, profile)
    if position is not None and line.position == position:
        return _is_the_one(window, at, line, profile)
    return not _claimed(window, at, position) and _is_continued(window, at, profile, groups=2)


def _claimed(window: Window, at: int, position: int | None) -> bool:
    """Does a batch line further on claim the expected position?"""
    return position is not None and next(claims(window, at, position, at + AHEAD), None) is not None


def _is_the_one(window: Window, at: int, line: BatchLine, profile: Profile) -> bool:
    """Of several lines that claim the expected position, one that holds all the others in its payloads; the only one, if it goes on."""
    for rival in claims(window, line.end, line.position, at + AHEAD):
        if not passes_over(window, at, rival, profile):
            return False
    behind = line.position + line.size_bytes
    return _is_continued(window, at, profile, groups=1) or next(claims(window, line.end, behind, at + AHEAD), None) is not None


def _starts_section(window: Window, at: int, position: int | None, profile: Profile) -> bool:
    """A `Dumping` line with what the tool prints behind it."""
    if not DUMPING.match(window.text, at) or _claimed(window, at, position):
        return False
    behind = window.after_line(at)
    if behind >= len(window.text):
        return True
    window.structural(behind)
    if not PREAMBLE.match(window.text, behind):
        return False
    first = window.after_line(behind)
    standing = follower(window, first, 0)
    if standing is Follower.BATCH:
        return _is_continued(window, first, Profile(), groups=1)
    return standing in (Follower.END, Follower.DUMPING, Follower.MESSAGE)


def _is_continued(window: Window, at: int, profile: Profile, *, groups: int) -> bool:
    """Are there this many whole groups from `at` on, each at the position where the one before ends, as far as the section goes?"""
    for _ in range(groups):
        line = batch_line(window.text, at)
        if line is None:
            return False
        group = greedy_group(window, at, line, profile)
        behind = follower(window, group.end, group.next_position)
        if group.failure or behind in (Follower.NOTHING, Follower.OTHER_BATCH):
            return False
        if behind is not Follower.BATCH:
            return True
        at = group.end
    return True
