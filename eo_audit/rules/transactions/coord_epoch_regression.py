"""T08 coord-epoch-regression: a coordinator that had been replaced still wrote a marker.

Proves: A marker carries a lower coordinator epoch than an earlier marker of the same producer in this log: a leader must refuse that.

Bad history: COMMIT at offset 5 with coordinator epoch 4, COMMIT of the same producer at offset 8 with coordinator epoch 3.

Legal look-alike: Markers of different producers, whose transactional ids live in different partitions of __transaction_state; an ABORT by
hand, which carries 0; equal epochs.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions.coordinator_epochs import COLUMNS, regressions
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T08",
    slug="coord-epoch-regression",
    severity="error",
    reads=("producer_history",),
    subject="marker",
    # Not `past`: the epoch only rises (it is the leader epoch of the id's partition of __transaction_state), whatever a hole hides.
    needs=("order", "epochs"),
    find=regressions,
    found=COLUMNS,
    asks=ASKS,
    cause=(
        "a coordinator that had lost its partition wrote on, and the leader had forgotten the newer epoch: KAFKA-9144 up to 2.4.0, an "
        "expired producer state, an unclean election; or __transaction_state was made anew"
    ),
    remedy=(
        "Check that the transaction ended the same way in all its partitions (T06, T05 of the same producer). On brokers up to 2.4 "
        "followers fail at this batch: see whether the partition is under-replicated before its leader is restarted. Upgrade to 2.4.1 or "
        "later."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first such marker speaks, with the highest epoch before it; the others are counted."""
    row = case.row
    message = (
        f"The {row.text('marker_type') or 'marker'} of {who(case, context)} at offset {row.maybe('base_offset')} was sent by coordinator "
        f"epoch {row.maybe('marker_coordinator_epoch')}, after epoch {row.maybe('highest_before')} had written here at offset "
        f"{row.maybe('highest_at')}: a coordinator that was no longer in charge{_others(case)}"
    )
    details = {
        "coordinator_epoch": row.maybe("marker_coordinator_epoch"),
        "coordinator_epochs": [row.maybe("lowest_epoch"), row.maybe("highest_epoch")],
        "highest_before": row.maybe("highest_before"),
        "markers": case.hits,
        "offsets": [case.first, case.last],
    }
    return Explanation(message, named=id_of(case, context), details=details)


def _others(case: Case) -> str:
    """How far it went on; empty where there is no other."""
    if case.hits == 1:
        return ""
    lowest, highest = case.row.maybe("lowest_epoch"), case.row.maybe("highest_epoch")
    epochs = f"epoch {lowest}" if lowest == highest else f"epochs {lowest} to {highest}"
    were = "was" if case.hits == 2 else "were"
    return f". So {were} {count(case.hits - 1, 'more marker')}, up to offset {case.last}: {epochs} in all"
