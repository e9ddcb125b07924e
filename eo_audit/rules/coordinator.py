"""C: what the coordinator log alone proves (`TransactionMetadata`, `TransactionStateManager`; KIP-98, KIP-360, KIP-890).

C01  the last entry of an id is Ongoing, long past its timeout: the coordinator's scan does not reach it.
C02  the last entry of an id is PrepareCommit or PrepareAbort for too long: some partition never took its marker.
C03  a step that no coordinator takes.
C04  an epoch that goes back, jumps, or does not start at 0 with a new producer id.
C08  a field changed that this step must keep.
C09  an entry whose append failed but stayed in the log: legal, and the sign of an under-replicated coordinator log.
C11  a state that is never written.
C12  why a transaction was aborted, where the client did not do it itself.

Legal histories that look alike: ghost entries (their appends failed, a later entry was computed from the state before them),
compaction (it only removes the beginning of an id's story), KIP-939 transactions that never time out, TV2 epochs that rise with every
transaction.
"""

from eo_audit.rules.explain import coordinator as words_of
from eo_audit.rules.rule import Docs, Rule

ENTRY = ("coordinator_history",)
INSTANCE = ("transaction_instances",)
SERVER_SIDE = "('fenced_by_init', 'coordinator_timeout', 'timeout_or_fence')"
NEVER_WRITTEN = "('transient_state', 'unknown_state')"


C01 = Rule(
    "C01",
    "dangling-ongoing",
    "error",
    INSTANCE,
    "transaction",
    by="transactional_id",
    where="is_last AND last_status = 'Ongoing'",
    explain=words_of.dangling,
    needs=("end",),
    docs=Docs(
        "A transaction is Ongoing although its timeout and two scans have passed: the coordinator does not work for this id.",
        "Ongoing for two hours with a timeout of 60 s.",
        "A transaction inside its timeout; a two-phase transaction (timeout 2147483647), which never times out; an entry whose append "
        "failed, of which no partition holds data (info).",
    ),
    cause="the coordinator partition has no leader or too few in-sync replicas, its thread died, or an epoch overflow (4.0 at epoch 32766)",
    remedy="See the finding: restart the owner of the id first; its initTransactions() ends the transaction cleanly.",
)
C02 = Rule(
    "C02",
    "prepare-stuck",
    "error",
    INSTANCE,
    "transaction",
    by="transactional_id",
    where="is_last AND last_status IN ('PrepareCommit', 'PrepareAbort')",
    explain=words_of.stuck,
    needs=("end",),
    docs=Docs(
        "A decision was written, but not all partitions took their marker, for longer than a leader change lasts.",
        "PrepareCommit two hours before the dump, no CompleteCommit.",
        "PrepareCommit seconds before the dump: markers are on their way.",
    ),
    cause="a partition without a leader, or a marker that was given up (KAFKA-9777, KAFKA-16352, KAFKA-19999)",
    remedy="See the finding: fix the partitions it names, then let the coordinator load again. Never abort by tool.",
)
C03 = Rule(
    "C03",
    "illegal-transition",
    "error",
    ENTRY,
    "coordinator_entry",
    by="transactional_id",
    where=f"step = 'illegal' AND step_reason NOT IN {NEVER_WRITTEN}",
    explain=words_of.illegal,
    proves_delivery_wrong=False,
    docs=Docs(
        "Two neighbouring entries of an id are a step that no coordinator takes. Compaction cannot fake it: it only removes the "
        "beginning of a story. By itself it does not prove "
        "that delivery was wrong.",
        "Ongoing is followed by CompleteCommit.",
        "PrepareCommit(e) then PrepareAbort(e+1), or PrepareAbort(e+1) then PrepareCommit(e): the first did not count (C09); TV2: Empty "
        "then PrepareAbort.",
    ),
    cause="a segment of the coordinator log is missing, the log was truncated or forked, or something else wrote to it",
    remedy=(
        "Compare the replicas of this coordinator partition; check who may write to __transaction_state. Verify the markers of the "
        "transaction (T05, T06)."
    ),
)
C04 = Rule(
    "C04",
    "tlog-epoch-regression",
    "critical",
    ENTRY,
    "coordinator_entry",
    by="transactional_id",
    where="epoch_step IN ('regression', 'jump', 'pid_change_epoch_not_zero')",
    explain=words_of.epoch,
    proves_delivery_wrong=False,
    docs=Docs(
        "The epoch of an id fell, rose by more than any step does, or did not restart at 0 with a new producer id: fencing cannot "
        "be relied on. By itself it does not prove "
        "that delivery was wrong.",
        "Epoch 5, then epoch 3, for the same id and producer id.",
        "A new producer id with epoch 0 after exhaustion or expiry; PrepareAbort(e+2) on 4.0; burned epochs before 2.6 (KAFKA-9666).",
    ),
    cause="a truncated or forked coordinator log (unclean election on __transaction_state), or entries that no coordinator wrote",
    remedy=(
        "Stop the producers of this id, compare the replicas of this coordinator partition, then restart one producer: "
        "initTransactions() fences the rest."
    ),
)
C08 = Rule(
    "C08",
    "illegal-field-change",
    "error",
    ENTRY,
    "coordinator_entry",
    by="transactional_id",
    where="field_change IS NOT NULL AND step <> 'ghost'",
    explain=words_of.field,
    proves_delivery_wrong=False,
    docs=Docs(
        "A step that is legal by its states changed a field that it must keep. By itself it does not prove that delivery was wrong.",
        "Ongoing with partitions [orders-0, orders-1], then Ongoing with [orders-0].",
        "Ongoing [a], Ongoing [a, b], PrepareAbort [a]: the second did not count (C09); a timeout that changes with Empty.",
    ),
    cause="entries that no coordinator wrote, or a coordinator bug",
    remedy="Verify the markers of the transaction (T05, T06) and compare the replicas of this coordinator partition.",
)
C09 = Rule(
    "C09",
    "ghost-record",
    "info",
    ENTRY,
    "coordinator_entry",
    by="transactional_id",
    where="step = 'ghost'",
    explain=words_of.ghost,
    docs=Docs(
        "Entries were written but not acknowledged in time, and did not count: a later one was computed from the state before them. Legal, "
        "but the log was under-replicated.",
        "Empty(e+1) twice; PrepareCommit(e) then PrepareAbort(e+1); Ongoing [a], Ongoing [a, b], PrepareAbort [a].",
        "A normal retry of the client, which writes nothing.",
    ),
    cause="the coordinator partition lacked in-sync replicas or was slow at that moment",
    remedy=(
        "Nothing to repair; safe to leave. Check min.insync.replicas and the in-sync replicas of this partition of "
        "__transaction_state at that time."
    ),
)
C11 = Rule(
    "C11",
    "transient-persisted",
    "error",
    ENTRY,
    "coordinator_entry",
    by="transactional_id",
    where=f"step = 'illegal' AND step_reason IN {NEVER_WRITTEN}",
    explain=words_of.transient,
    proves_delivery_wrong=False,
    docs=Docs(
        "An entry carries a state that only exists in memory (Dead, PrepareEpochFence) or that no version knows. By itself it does not "
        "prove that delivery was wrong.",
        "Status 7 in the log.",
        "A tombstone, which is how Dead looks in the log.",
    ),
    cause="something other than a coordinator wrote to __transaction_state, or the entry is corrupt",
    remedy="Check who may write to __transaction_state, and compare the replicas of this partition.",
)
C12 = Rule(
    "C12",
    "abort-cause",
    "info",
    INSTANCE,
    "abort",
    by="transactional_id",
    where=f"decision = 'ABORT' AND abort_cause IN {SERVER_SIDE}",
    explain=words_of.abort_cause,
    docs=Docs(
        "The server side ended a transaction: its timeout passed, or a new producer with the same id took over.",
        "PrepareAbort at start + timeout, nobody called abortTransaction().",
        "An abort by the client itself, which is no finding (it is listed in verdict.json).",
    ),
    cause="a producer that died, was too slow for transaction.timeout.ms, or was replaced by another with the same transactional.id",
    remedy="Nothing to repair; safe to leave: the transaction is aborted everywhere.",
)

RULES = (C01, C02, C03, C04, C08, C09, C11, C12)
