"""How many stories are followed from one marker to the next, and how dear they may be."""

from collections.abc import Iterable
from math import inf

from eo_audit.model.alignment.story import Story, given_back

CAPS = (0.6, 1.6, 2.4, 3.2)  # what a story may cost: most are told for nothing, and are found at once where no dear ones are followed
TOO_DEAR = 4.0  # where even that is not enough: dearer than the cheapest by more than this
_ROUNDED = 1e-9  # sums of the same prices in another order differ by less
# Kept for each last pair: of three transactions any one or two may lack their markers, beside the story in which none does.
STORIES = 8
MOST_STORIES = 256


class Limit:
    """What a story may cost at one marker: no more than the cap, nor than the cheapest one there and what is too dear beside it.

    Of ten that could be told nine are dropped at once by that, so they are not told at all.
    """

    def __init__(self, cap: float | None) -> None:
        """`cap`: what no story may cost; None: nothing is too dear for itself."""
        self.cap = cap
        self.most = inf if cap is None else cap + _ROUNDED

    def seen(self, story: Story) -> Story:
        """The same story; others are measured by it."""
        self.most = min(self.most, story.cost + TOO_DEAR + _ROUNDED)
        return story


def cheapest(told: Iterable[Story], cap: float | None, most: int | None) -> list[Story]:
    """The stories that are followed, the cheapest first: no dearer than the cap, few for each last pair, and of all no more than `most`."""
    ordered = sorted((story for story in told if cap is None or story.cost - given_back(story) <= cap), key=lambda story: story.cost)
    at: dict[tuple[int, int | None], list[Story]] = {}
    for story in ordered:  # those that agree on the last pair have the same clock and the same choices before them
        kept = at.setdefault((story.following, story.last.offset if story.last else None), [])
        if len(kept) < STORIES and story.cost <= ordered[0].cost + TOO_DEAR:
            kept.append(story)
    return sorted((story for kept in at.values() for story in kept), key=lambda story: story.cost)[:most]
