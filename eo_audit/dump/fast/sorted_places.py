"""Questions to sorted offsets of a stretch of text, many at once."""

import numpy as np

from eo_audit.dump.lines.scan import Bits, Ints

NONE = -1


def index_of(wanted: Ints, among: Ints) -> Ints:
    """Where each wanted value stands in a sorted array; NONE where it does not."""
    if len(among) == 0:
        return np.full(len(wanted), NONE, dtype=np.int64)
    # Behind the last value `searchsorted` points behind the array.
    place = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return np.where(among[place] == wanted, place, NONE)


def within(places: Ints, start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Of sorted places, the first (index) at `start` or later, and how many there are from it on before `stop`."""
    first = np.searchsorted(places, start)
    return first, np.searchsorted(places, stop) - first


def counted(flags: Bits) -> Ints:
    """Number of set flags before each index, and in all."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(flags)))
