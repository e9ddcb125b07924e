"""C08 illegal-field-change: a field changed that this step must keep.

Proves: A step that is legal by its states changed a field that it must keep. By itself it does not prove that delivery was wrong.

Bad history: Ongoing with partitions [orders-0, orders-1], then Ongoing with [orders-0].

Legal look-alike: Ongoing [a], Ongoing [a, b], PrepareAbort [a]: the second did not count (C09); a timeout that changes with Empty.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import more, name_of, step_details
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import partitions

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# What changed, and in which columns it stands before and after the step; partitions have words of their own.
_COLUMNS = {
    "timeout": ("previous_timeout_ms", "timeout_ms"),
    "start": ("previous_start_ms", "start_ms"),
    "epoch": ("previous_epoch", "producer_epoch"),
}

RULE = Rule(
    code="C08",
    slug="illegal-field-change",
    severity="error",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # What a failed append left behind belongs to a state that memory never took: C09 tells it.
    where="field_change IS NOT NULL AND step <> 'ghost'",
    by="transactional_id",
    columns=(
        "field_change entry_offset previous_status status previous_partitions partitions previous_epoch step_reason timeout_ms "
        "previous_timeout_ms start_ms previous_start_ms"
    ),
    # Partitions may have got the right markers all the same: T05 and T06 say whether.
    proves_delivery_wrong=False,
    cause="entries that no coordinator wrote, or a coordinator bug",
    remedy="Verify the markers of the transaction (T05, T06) and compare the replicas of this coordinator partition.",
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first change speaks, with both values."""
    row = case.row
    changed = row.word("field_change")
    named = "the partitions" if "partitions" in changed else changed
    before, after = _field_values(row, changed)
    message = (
        f"The coordinator log of {name_of(row)} changes {named} from {before} to {after} at offset "
        f"{row.maybe('entry_offset')} ({row.text('previous_status')} to {row.text('status')}), which that step must keep{more(case)}"
    )
    return Explanation(message, details={**step_details(case), "field": changed}, producer_epoch=row.maybe("producer_epoch"))


def _field_values(row: Row, changed: str) -> tuple[str, str]:
    if "partitions" in changed:
        return f"[{partitions(row.partitions('previous_partitions'))}]", f"[{partitions(row.partitions())}]"
    before, after = _COLUMNS[changed]
    return str(row.maybe(before)), str(row.maybe(after))
