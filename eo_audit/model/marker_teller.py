"""The stories of one producer, asked again and again while others of its log settle on theirs."""

from collections.abc import Sequence

from eo_audit.model.marker_prices import Clock, Producer
from eo_audit.model.marker_stories import stories_of
from eo_audit.model.marker_story import Story


class Teller:
    """Tells the stories of a producer, and remembers them: two times in five the others say of the clock what they said a round ago."""

    def __init__(self, producer: Producer, skew_ms: int) -> None:
        """Arguments as for `stories_of`."""
        self._producer, self._skew_ms = producer, skew_ms
        self._told: list[tuple[Clock, Sequence[Story]]] = []

    def stories(self, clock: Clock) -> Sequence[Story]:
        """The stories beside what others saw of the clock."""
        found = next((stories for known, stories in self._told if known == clock), None)
        if found is None:
            found = stories_of(self._producer, clock, self._skew_ms)
            self._told.append((clock, found))
        return found
