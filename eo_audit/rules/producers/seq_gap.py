"""P04 seq-gap: sequence numbers are skipped: records that a leader once accepted are not in this log.

Proves: Between two neighbouring batches of one producer and epoch sequence numbers are missing, where the log itself has no hole.

Bad history: Sequences 0 to 1 at offset 9, sequences 4 to 5 at offset 14, nothing of the producer between.

Legal look-alike: Sequence 2147483647 followed by 0; a hole that compaction left; a segment that was not dumped; an epoch that restarts at
0.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.producers.words import leader_changed
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P04",
    slug="seq-gap",
    severity="error",
    reads=("producer_history",),
    subject="sequenced_batch",
    # `past`: behind a hole the missing records may stand in the hole; the label is after_hole there.
    needs=("order", "epochs", "past"),
    where="label = 'gap'",
    # The largest gap tells most: it is what somebody has to send again.
    weight="skipped_sequences",
    columns="skipped_sequences leader_epoch_before partition_leader_epoch base_offset base_sequence expected_sequence",
    asks=ASKS,
    cause=(
        "records that an earlier leader accepted were lost (unclean election, truncation), or a broker from 2.5 on accepted any sequence "
        "after it had forgotten the producer"
    ),
    remedy=(
        "The records are not in this log: send them again from the source, by the range in details. Then check "
        "unclean.leader.election.enable=false, min.insync.replicas, and whether the leader changed at that offset."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The largest gap speaks."""
    row = case.row
    skipped = row.number("skipped_sequences")
    leader = leader_changed(row.maybe("leader_epoch_before"), row.maybe("partition_leader_epoch"))
    more = "" if case.hits == 1 else f"; the largest of {case.hits} gaps"
    message = (
        f"{count(skipped, 'record')} of {who(case, context)} {'is' if skipped == 1 else 'are'} missing: offset {row.maybe('base_offset')} "
        f"starts at sequence {row.maybe('base_sequence')} where {row.maybe('expected_sequence')} was due{leader}{more}"
    )
    missing = sum(example.row.number("skipped_sequences") for example in case.examples)
    details = {
        "gaps": case.hits,
        "missing_records": missing,
        "expected_sequence": row.maybe("expected_sequence"),
        "found_sequence": row.maybe("base_sequence"),
    }
    return Explanation(message, named=id_of(case, context), details=details)
