"""C14 tombstone-while-open: an id was deleted from the coordinator log before it may expire.

Proves: A tombstone stands behind an open transaction, or within an hour of the id's last entry, long before transactional.id.expiration.ms
had passed: no coordinator deletes an id then, and what it had open is forgotten. By itself it does not prove that delivery was wrong.

Bad history: Ongoing, then a tombstone.

Legal look-alike: A tombstone behind Empty or CompleteX after transactional.id.expiration.ms; behind an Ongoing that was never acknowledged,
when the id has been idle for that long (C09). Where nobody tells that setting, what stands behind an open transaction is likely.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.context import OTHER_MACHINE_MS
from eo_audit.rules.coordinator.words import name_of, step_details
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import duration, partitions

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# The coordinator looks for expired ids once an hour (transaction.remove.expired.transaction.cleanup.interval.ms): a shorter life is for
# laboratories, and there the manifest tells it.
SHORT_LIFE_MS = 3_600_000

RULE = Rule(
    code="C14",
    slug="tombstone-while-open",
    severity="error",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    # `TransactionStateManager.removeExpiredTransactionalIds`: Empty and Complete only (`isExpirationAllowed`), and only what was idle.
    where=(
        "(step = 'illegal' AND step_reason = 'tombstone_while_open') OR "
        f"(tombstone AND step = 'legal' AND batch_timestamp_ms - previous_last_update_ms BETWEEN 0 AND {SHORT_LIFE_MS})"
    ),
    by="transactional_id",
    columns=(
        "step step_reason entry_offset status previous_status previous_offset previous_pid previous_epoch previous_partitions "
        "previous_last_update_ms batch_timestamp_ms"
    ),
    # What it leaves open in the partitions hangs: T01 and L01 say where.
    proves_delivery_wrong=False,
    cause="somebody deleted the id by hand (a record without a value in __transaction_state), or the log is put together of two histories",
    remedy="See the finding: look for what the id left open, then start its producer anew.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """An open transaction that was deleted; or an id that was used a short time ago, where the setting is known."""
    row = case.row
    early = None if row.text("step") == "illegal" else _early(case, context)
    if row.text("step") != "illegal" and early is None:
        return None
    # How long an id lives: where nobody says it, one that expired early behind an Ongoing that did not count looks the same.
    is_sure = early is None and _cluster(case, context).flag("settings_known")
    what = _deleted_early(row, early) if early is not None else _deleted_open(case, context)
    return Explanation(
        f"{name_of(row)} (producer {row.maybe('previous_pid')}, epoch {row.maybe('previous_epoch')}) was deleted by a tombstone at offset "
        f"{row.maybe('entry_offset')} of the coordinator log {what}",
        severity="warning" if early is not None else None,
        certainty="definite" if is_sure else "likely",
        remedy=None if early is not None else _remedy(row),
        details={**step_details(case), "partitions": [f"{t}-{p}" for t, p in row.partitions("previous_partitions")]},
        producer_id=row.maybe("previous_pid"),
        producer_epoch=row.maybe("previous_epoch"),
    )


def _cluster(case: Case, context: "Context") -> Row:
    return context.cluster(case.log.cluster if case.log else "")


def _early(case: Case, context: "Context") -> int | None:
    """After how many ms an id may expire, where this one had clearly not lived so long, and its cluster's settings are known."""
    cluster = _cluster(case, context)
    lives_ms, idle_ms = cluster.number("transactional_id_expiration_ms"), _idle_ms(case.row)
    # The two times may be of two coordinators' clocks.
    return lives_ms if cluster.flag("settings_known") and idle_ms + OTHER_MACHINE_MS < lives_ms else None


def _idle_ms(row: Row) -> int:
    return row.number("batch_timestamp_ms") - row.number("previous_last_update_ms")


def _deleted_early(row: Row, lives_ms: int) -> str:
    return f"{duration(_idle_ms(row))} after its last entry; transactional.id.expiration.ms is {duration(lives_ms)}"


def _deleted_open(case: Case, context: "Context") -> str:
    row = case.row
    listed = partitions(row.partitions("previous_partitions"))
    where = f" in {listed}" if listed else ""
    held = context.blocks(case.log.cluster, row.number("previous_pid")) if case.log else []
    now = f": it holds back {partitions(held)}" if held else ": no coordinator will end what it left open"
    return f"while its transaction was {row.text('previous_status')}{where}{now}"


def _remedy(row: Row) -> str:
    listed = partitions(row.partitions("previous_partitions"))
    return (
        f"Look for what it left open{f' in {listed}' if listed else ''}: T01 of this audit names it where those partitions were dumped, "
        "with the command that ends it. Then restart the producer: it gets a new producer id, which fences nothing of the old one. Find "
        "out who may write to __transaction_state, and take that right away."
    )
