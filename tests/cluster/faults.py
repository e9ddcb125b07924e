"""Faults, one for a cluster: each changes its life at one point and says which rules may or must name it, and where.

A planter finds all places where its fault can be, takes one, changes the logs and returns the truth; None: there is no such place.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.cluster import fault_batches as batches
from tests.cluster import fault_entries as entries
from tests.cluster import fault_markers as markers
from tests.cluster import fault_offsets as offsets
from tests.cluster.planting import Planted
from tests.cluster.shape import STOPPED, Shape
from tests.cluster.truth import Scene


def suited(shape: Shape, fault: str | None) -> Shape:
    """The shape, with what a fault cannot be without: a fork needs a plain producer, and replicas in step; a cleaner's fault, a cleaner;
    faults of offsets a group."""
    if fault == "cleaned_marker":
        return replace(shape, features=shape.features | {"cleaned_data"}, dump=STOPPED)
    if fault in ("unfenced_owner", "applied_abort"):
        return replace(shape, features=shape.features | {"group_offsets", "aborts"}, ids=max(shape.ids, 3))
    if fault != "fork":
        return shape
    return replace(shape, features=shape.features | {"replicas"}, dump=STOPPED, brokers=max(shape.brokers, 2), plain=max(shape.plain, 1))


Planter = Callable[[Scene, random.Random], Planted | None]
FAULTS: Final[dict[str, Planter]] = {
    planter.__name__: planter
    for planter in (
        *(markers.late_write, markers.late_write_merged, markers.unregistered, markers.lost_marker, markers.flipped_marker),
        *(markers.cleaned_marker, markers.repeated_marker),
        *(batches.lost_batch, batches.hole, batches.duplicate, batches.old_duplicate, batches.zombie),
        *(
            entries.skipped_entry,
            entries.changed_field,
            entries.entry_epoch,
            batches.lost_index_entry,
            batches.fork,
            batches.wrong_stable_offset,
        ),
        *(entries.second_completion, entries.deleted_id, entries.foreign_id, entries.twin, entries.foreign_batch),
        *(offsets.unfenced_owner, offsets.applied_abort),
    )
}
