"""I02 id-multi-pid-live: an id got another producer id while it was in use.

Proves: The coordinator had forgotten the id without letting it expire, and gave it another producer id: producers with the old one are not
fenced, and what they have open nobody ends. By itself it does not prove that delivery was wrong.

Bad history: CompleteCommit of producer 9017, and 275 ms later Empty of producer 9517 with epoch 0.

Legal look-alike: Another producer id because the epochs were used up (32766), behind a tombstone, or after transactional.id.expiration.ms
of silence; a first entry that was never acknowledged (info).
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.context import OTHER_MACHINE_MS
from eo_audit.rules.coordinator.words import more, name_of
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import duration, partitions

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# `TransactionMetadata.isEpochExhausted`: InitProducerId rotates the producer id from here on; 32767 is what a fence or the last EndTxn
# wrote.
LAST_EPOCH = 32_766

RULE = Rule(
    code="I02",
    slug="id-multi-pid-live",
    severity="error",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # A tombstone has no producer id, so what follows one is no change. Another epoch than 0 is C04's.
    # A birth may repeat one that was never acknowledged; whatever else was not, the entries before it have the same producer id.
    where=(
        f"producer_id <> previous_pid AND previous_epoch < {LAST_EPOCH} AND epoch_step <> 'pid_change_epoch_not_zero' "
        "AND (step <> 'ghost' OR (status = 'Empty' AND previous_status <> 'Empty'))"
    ),
    by="transactional_id",
    columns=(
        "previous_pid previous_epoch previous_status previous_offset previous_last_update_ms last_update_ms status entry_offset "
        "coordinator_partition"
    ),
    # What the old producer left open is T01's, and what two of them wrote P12's.
    proves_delivery_wrong=False,
    cause="the coordinator lost its log, or a part of it (an unclean election, __transaction_state created anew, a restored disk)",
    remedy="See the finding: end what the old producer id has open, and check the replicas of __transaction_state.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """The change, and what the old producer id still holds back; an info where the old one never did anything."""
    row = case.row
    idle_ms = row.number("last_update_ms") - row.number("previous_last_update_ms")
    cluster = context.cluster(case.log.cluster) if case.log else context.cluster("")
    # Both times may be of two coordinators' clocks.
    if idle_ms + OTHER_MACHINE_MS >= cluster.number("transactional_id_expiration_ms", 604_800_000):
        return None
    old, new = row.maybe("previous_pid"), row.maybe("producer_id")
    # A birth, or a rotation, whose append failed: the coordinator asks for another producer id when the client tries again.
    unheard = row.text("previous_status") == row.text("status") == "Empty" and row.maybe("previous_epoch") == 0
    held = context.blocks(case.log.cluster, old) if case.log and old is not None else []
    holds = f"; it holds back {partitions(held)}" if held else ""
    tail = "perhaps that entry was never acknowledged" if unheard else f"nothing fences producer {old} any more{holds}"
    message = (
        f"{name_of(row)} (producer {old}, epoch {row.maybe('previous_epoch')}) got producer {new} at offset {row.maybe('entry_offset')}, "
        f"{duration(max(idle_ms, 0))} after its last entry, and neither a tombstone nor used-up epochs lie between: {tail}{more(case)}"
    )
    return Explanation(
        message,
        severity="info" if unheard else None,
        certainty="open" if unheard else "definite",
        remedy=None if unheard else _remedy(case, old),
        details={"old_producer_id": old, "new_producer_id": new, "idle_ms": idle_ms, "holds_back": [f"{t}-{p}" for t, p in held]},
        producer_id=old,
        producer_epoch=row.maybe("previous_epoch"),
    )


def _remedy(case: Case, old: int | None) -> str:
    return (
        f"Make sure that no process of {name_of(case.row)} runs that began before the change: nothing fences it. What producer {old} left "
        f"open is T01 of this audit, with the command that ends it. Then check the replicas of __transaction_state-"
        f"{case.row.maybe('coordinator_partition')} ({commands.describe_topic('__transaction_state')}): replication factor 3, "
        "min.insync.replicas 2, no unclean election."
    )
