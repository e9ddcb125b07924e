"""C13 fence-jump: a fence raised the epoch by more than one.

Proves: Attempts to fence a producer failed one after the other, and each burned an epoch (KAFKA-9666): the coordinator log could not be
written for a while. By itself it does not prove that delivery was wrong.

Bad history: Ongoing with epoch 3, then PrepareAbort with epoch 7, of an old client on 2.5.

Legal look-alike: PrepareAbort(e+1), as each fence writes it; PrepareAbort(e+2) under TV2 on 4.0.0, of any client (KAFKA-19367); a jump on a
release that has the fix (C04).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.coordinator.words import more, name_of, step_details
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C13",
    slug="fence-jump",
    severity="warning",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # `prepareFenceProducerEpoch` raised the epoch in memory before its entry was acknowledged, until 2.6 (hasFailedEpochFence). Where the
    # release cannot have done so, `epoch_step` is a jump. With transaction.version 2 a fence and its PrepareAbort raise it by one each.
    where=(
        "status = 'PrepareAbort' AND epoch_step = 'ok' AND previous_status IN ('Ongoing', 'PrepareAbort') AND producer_id = previous_pid "
        "AND producer_epoch - previous_epoch >= CASE protocol WHEN 'tv0' THEN 2 WHEN 'unknown' THEN 3 END"
    ),
    by="transactional_id",
    weight="producer_epoch - previous_epoch",
    columns="entry_offset status previous_status previous_epoch previous_pid step_reason",
    informs=True,
    proves_delivery_wrong=False,
    cause="KAFKA-9666 (before 2.6): this partition of __transaction_state lacked in-sync replicas while somebody fenced the producer",
    remedy=(
        "Nothing to repair; safe to leave. Upgrade to 2.6 or later, and see why the partition of __transaction_state could not be written "
        "then (min.insync.replicas, in-sync replicas)."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The largest jump speaks."""
    row = case.row
    before, after = row.number("previous_epoch"), row.number("producer_epoch")
    message = (
        f"The fence of {name_of(row)} (producer {row.maybe('producer_id')}) raised the epoch from {before} to {after} at offset "
        f"{row.maybe('entry_offset')}: {after - before - 1} earlier attempts failed and burned theirs{more(case)}"
    )
    return Explanation(message, certainty="likely", details=step_details(case), producer_epoch=after)
