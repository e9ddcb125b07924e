"""Groups that were read on the way ahead, to know whether the text behind another one is whole: the reader who comes by them next takes
them from here, and no batch is read twice."""

from eo_audit.dump.log.framing import Group, Profile
from eo_audit.dump.log.text import Window


class _Kept(dict[int, tuple[Profile, bool, Group]]):
    """Groups by their start, with the profile that they were read by and whether lines ended with CRLF; each is taken once."""

    def keep(self, window: Window, at: int, profile: Profile, group: Group) -> None:
        """Keep one for the reader who comes by here next."""
        self[at] = profile, window.crlf, group

    def take(self, window: Window, at: int, profile: Profile) -> Group | None:
        """The group there, if it was read as it would be read now."""
        by, crlf, group = self.pop(at, (None, None, None))
        return group if by == profile and crlf is window.crlf else None


class ReadAhead(_Kept):
    """What was read exactly on the way ahead."""


class Judged(_Kept):
    """What was judged on the way ahead."""
