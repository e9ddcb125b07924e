"""Sentences that several rules of this family share."""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case
from eo_audit.rules.writers import named

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# Above the last stable offset nobody has read anything yet; a batch that the cleaner emptied gives nobody anything. Where the record line
# of a marker is missing (a dump without --deep-iteration, or one that was cut), nothing but its time says which decision it carries out: of
# what it closed nobody knows what it should be.
SEEN = "row_kind IN ('data', 'plain') AND below_lso AND coalesce(count, 1) > 0 AND NOT span_outcome <=> 'unknown'"


def writer(case: Case, context: "Context") -> str:
    """Whose records a case is about; the rule asks for `writers.ASKS`."""
    return named(case, context)
