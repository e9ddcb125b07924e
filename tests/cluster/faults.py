"""Faults, one for a cluster: each changes its life at one point and says which rules may or must name it, and where.

A planter finds all places where its fault can be, takes one, changes the logs and returns the truth; None: there is no such place.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tests.cluster import fault_batches as batches
from tests.cluster import fault_coordinators as coordinators
from tests.cluster import fault_decisions as decisions
from tests.cluster import fault_entries as entries
from tests.cluster import fault_ids as ids
from tests.cluster import fault_markers as markers
from tests.cluster import fault_none as none
from tests.cluster import fault_offsets as offsets
from tests.cluster import fault_segments as segments
from tests.cluster import fault_sidecars as sidecars
from tests.cluster import fault_writers as writers
from tests.cluster.planting import Planted
from tests.cluster.shape import STOPPED, Shape
from tests.cluster.truth import Scene

Planter = Callable[[Scene, random.Random], Planted | None]


@dataclass(frozen=True)
class Suit:
    """What a fault cannot be without: features that a cluster has and has not, how many there are at least, and how it is dumped."""

    features: str = ""
    without: str = ""
    least: Mapping[str, int] = field(default_factory=dict)
    stopped: bool = False

    def of(self, shape: Shape) -> Shape:
        """The shape, with all that."""
        features = (shape.features | set(self.features.split())) - set(self.without.split())
        least = {name: max(getattr(shape, name), number) for name, number in self.least.items()}
        return replace(shape, features=features, dump=STOPPED if self.stopped else shape.dump, **least)


_GROUP = Suit("group_offsets aborts", least={"ids": 3})
_LONG = {"transactions": 20}
_MINUTES = {"transactions": 20, "period_ms": 5_000}
_ODD_CLOCKS = "clocks drift jumps steps leaps"
_GHOSTLESS = "ghosts unheard_ghosts cleaned_coordinator coordinator_cut"
SUITS: Final[Mapping[str, Suit]] = {
    # A fork needs a plain producer, and replicas in step; a cleaner's fault a cleaner.
    "fork": Suit("replicas", least={"brokers": 2, "plain": 1}, stopped=True),
    "cut_off_marker": Suit("replicas", f"timeouts {_ODD_CLOCKS} cleaned_data retention delete_records {_GHOSTLESS}", least={"brokers": 2}),
    "cleaned_marker": Suit("cleaned_data", stopped=True),
    "cleaned_abort": Suit("aborts cleaned_data", without="empty_partitions", stopped=True, least=_LONG),
    "unfenced_owner": _GROUP,
    "applied_abort": _GROUP,
    "rewound": Suit("group_offsets"),
    "plain_between": Suit("group_offsets"),
    "parked_offsets": Suit("group_offsets", without="timeouts fences"),
    "forgotten_offsets": Suit("group_offsets", without=f"timeouts fences exhaustion {_GHOSTLESS}", least=_LONG),
    "wrong_index_entry": Suit("aborts"),
    "damaged_index": Suit("aborts"),
    "bytes_at_end": Suit("segments", least={"transactions": 8}),
    "segment_left_out": Suit("segments", least={"transactions": 8}),
    "marker_keys": Suit("cleaned_data payloads", stopped=True, least=_LONG),
    "lost_epoch_begin": Suit("timeouts fences sessions", least=_LONG),
    "resent_by_another": Suit("payloads", without="cleaned_data", least={"idempotent": 1, "transactions": 12}),
    "resent_in_next_epoch": Suit("payloads", without="cleaned_data", least={"idempotent": 1, "transactions": 12}),
    "resent_under_next_sequences": Suit("payloads", without="cleaned_data", least={"idempotent": 1, "transactions": 60}),
    "last_epochs": Suit(without="cleaned_data", least={"idempotent": 1, "transactions": 12}),
    "siblings": Suit("payloads", least={"ids": 2, "transactions": 8}),
    "empty_commits": Suit(without="timeouts fences", least=_LONG),
    "old_coordinator": Suit("failovers", least={"brokers": 2, **_LONG}),
    "lost_abort": Suit("aborts", without="empty_partitions", least={"transactions": 12}),
    "deleted_head": Suit(without="retention delete_records cleaned_data", stopped=True, least={"transactions": 8}),
    "forgotten": Suit("timeouts", without=_GHOSTLESS, least=_MINUTES),
    "deleted_id": Suit(without="expired_ids"),
    "another_producer_id": Suit(without="expired_ids"),
    "never_completed": Suit(without=_GHOSTLESS, least=_MINUTES),
    "burned_epochs": Suit("timeouts fences", without=_GHOSTLESS, least=_LONG),
    "outage": Suit("failovers", without=f"slow_markers {_GHOSTLESS}", least={"brokers": 2, "transactions": 20, "period_ms": 1_000}),
    "churn": Suit(without=f"slow_markers failovers {_GHOSTLESS}", least={"transactions": 20, "period_ms": 1_000}),
    "repeated": Suit("marker_retries"),
    "running": Suit("open_at_end"),
    "fenced": Suit("fences timeouts"),
    "unacknowledged": Suit("ghosts", without="unheard_ghosts"),
    "slow": Suit("slow_markers", least=_LONG),
}


def suited(shape: Shape, fault: str | None) -> Shape:
    """The shape, with what a fault cannot be without; no topic is created anew there, for what is planted may be gone with it."""
    if fault is None:
        return shape
    return SUITS.get(fault, Suit()).of(replace(shape, features=shape.features - {"recreated"}))


FAULTS: Final[dict[str, Planter]] = {
    planter.__name__: planter
    for planter in (
        *(
            markers.late_write,
            markers.late_write_merged,
            markers.unregistered,
            markers.lost_marker,
            markers.flipped_marker,
            markers.cleaned_marker,
            markers.cleaned_abort,
            markers.repeated_marker,
            markers.cut_off_marker,
        ),
        *(batches.lost_batch, batches.hole, batches.lost_head, batches.duplicate, batches.old_duplicate, batches.zombie),
        *(
            entries.skipped_entry,
            entries.changed_field,
            entries.entry_epoch,
            batches.lost_index_entry,
            batches.fork,
            batches.wrong_stable_offset,
        ),
        *(entries.second_completion, entries.deleted_id, entries.foreign_id, entries.twin, entries.foreign_batch),
        *(
            offsets.unfenced_owner,
            offsets.applied_abort,
            offsets.rewound,
            offsets.forgotten_offsets,
            offsets.parked_offsets,
            offsets.plain_between,
        ),
        *(
            sidecars.damaged_index,
            sidecars.wrong_index_entry,
            sidecars.wrong_snapshot,
            sidecars.damaged_snapshot,
            sidecars.other_epochs,
        ),
        *(
            segments.bad_checksum,
            segments.offsets_back,
            segments.older_leader,
            segments.bytes_at_end,
            segments.segment_left_out,
            segments.odd_marker,
            segments.odd_batch,
            segments.marker_keys,
        ),
        *(
            writers.overlap,
            writers.lost_epoch_begin,
            writers.lost_begin,
            writers.plain_inside,
            writers.plain_outside,
            writers.resent_by_another,
            writers.resent_in_next_epoch,
            writers.resent_under_next_sequences,
            writers.last_epochs,
            writers.backfill,
            writers.siblings,
        ),
        *(
            coordinators.forgotten,
            coordinators.never_completed,
            coordinators.clock_set_back,
            coordinators.long_timeout,
            coordinators.two_phase,
            coordinators.unknown_state,
            coordinators.older_coordinator,
            coordinators.burned_epochs,
            coordinators.outage,
        ),
        *(ids.storm, ids.another_producer_id, ids.locked_out, ids.churn),
        *(
            decisions.empty_commits,
            decisions.invented_marker,
            decisions.old_coordinator,
            decisions.far_epoch,
            decisions.lost_end,
            decisions.lost_abort,
            decisions.ended_by_hand,
            decisions.deleted_head,
        ),
        *(none.repeated, none.running, none.fenced, none.unacknowledged, none.slow),
    )
}
