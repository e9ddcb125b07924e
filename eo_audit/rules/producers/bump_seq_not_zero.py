"""P06 bump-seq-not-zero: a new epoch does not start at sequence 0: its first batches are missing.

Proves: The first batch of a higher epoch does not start at sequence 0, and nothing that could hold the missing part is missing from the
dump.

Bad history: Epoch 0 ends at sequence 3; epoch 1 starts at sequence 4.

Legal look-alike: A new epoch that starts at 0; a first batch behind a hole or a removed log head.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P06",
    slug="bump-seq-not-zero",
    severity="error",
    reads=("producer_history",),
    subject="sequenced_batch",
    # `past`: behind a hole the label is after_hole, and of a log with holes a silence proves nothing.
    needs=("order", "epochs", "past"),
    where="label = 'new_epoch_nonzero'",
    columns="base_sequence base_offset previous_epoch",
    asks=ASKS,
    cause="the first batches of the epoch were lost, or the leader had no state of this producer and took what came",
    remedy=(
        "The records are not in this log: send them again from the source. Check unclean.leader.election.enable=false and "
        "min.insync.replicas."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The most telling new epoch speaks: its first sequence is the number of records that are missing."""
    row = case.row
    message = (
        f"The new epoch of {who(case, context)} starts at sequence {row.maybe('base_sequence')} "
        f"instead of 0, at offset {row.maybe('base_offset')}: its first {count(row.maybe('base_sequence'), 'record')} "
        f"{'is' if row.number('base_sequence') == 1 else 'are'} not in this log"
    )
    return Explanation(
        message,
        named=id_of(case, context),
        details={"missing_records": row.maybe("base_sequence"), "previous_epoch": row.maybe("previous_epoch"), "epochs": case.hits},
    )
