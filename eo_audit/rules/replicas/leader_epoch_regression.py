"""R05 leader-epoch-regression: a batch of an older leader stands behind one of a newer leader, or is not of the leader that the log's own
leader-epoch-checkpoint names.

Proves: The leader epoch goes down with the offset, or contradicts leader-epoch-checkpoint: this log was put together from two histories of
the partition.

Bad history: Batches of leader epoch 5 from offset 10 on, and at offset 20 one of leader epoch 3; a batch of epoch 3 at offset 12, where the
checkpoint says that epoch 4 began at offset 10.

Legal look-alike: Leader epochs that jump (elections without a write); batches of magic 0 and 1 and old dump tools, which show none; a
replica that a newer leader left behind, which only ends in an older epoch; a checkpoint that was copied before its log, and lacks the
newest epochs; entries that were cut with the log's head.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.replicas.leader_epochs import COLUMNS, odd_epochs
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="R05",
    slug="leader-epoch-regression",
    severity="critical",
    reads=("producer_history", "replica_logs"),
    subject="batch",
    # Where the tool shows no leader epochs nothing is known.
    needs=("order", "checksums"),
    find=odd_epochs,
    found=COLUMNS,
    by="",
    cause=(
        "a replica that did not cut its log when it came back (KIP-101 makes followers do so, `LeaderEpochFileCache`), segments copied "
        "from another broker or an older backup, or files of two brokers in one folder"
    ),
    remedy=(
        "First look whether the dump folder mixes two brokers or two backups: give each its own. If it is one broker's, compare the "
        "replicas (R01): while a sound one leads, stop this broker, delete this replica's directory and let it be fetched again."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first epoch that comes too late, or is another than the checkpoint's, speaks."""
    row = case.row
    if row.maybe("newer_epoch") is None:
        return _against_the_checkpoint(case)
    message = (
        f"The batch at offset {row.maybe('base_offset')} was written under leader epoch {row.maybe('partition_leader_epoch')}, though "
        f"epoch {row.maybe('newer_epoch')} began at offset {row.maybe('newer_offset')}: the log mixes two histories of the partition"
    )
    return Explanation(
        message,
        first_offset=row.maybe("newer_offset"),
        last_offset=row.maybe("last_offset"),
        details={
            "leader_epoch": row.maybe("partition_leader_epoch"),
            "newer_epoch": row.maybe("newer_epoch"),
            "newer_from_offset": row.maybe("newer_offset"),
            "epochs": case.hits,
        },
    )


def _against_the_checkpoint(case: Case) -> Explanation:
    row = case.row
    message = (
        f"The batch at offset {row.maybe('base_offset')} was written under leader epoch {row.maybe('partition_leader_epoch')}, where "
        f"leader-epoch-checkpoint says that epoch {row.maybe('told_epoch')} began at offset {row.maybe('told_offset')}: the log and its "
        "checkpoint are of two histories of the partition"
    )
    return Explanation(
        message,
        details={
            "leader_epoch": row.maybe("partition_leader_epoch"),
            "checkpoint_epoch": row.maybe("told_epoch"),
            "checkpoint_from_offset": row.maybe("told_offset"),
            "epochs": case.hits,
        },
    )
