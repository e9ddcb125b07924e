"""C16 tlog-leader-epoch: the leader epoch of the coordinator log goes back.
Proves: Behind entries of a newer leader stand entries of an older one: two leaders wrote this log, and it is not the one that the
coordinator acted on. By itself it does not prove that delivery was wrong.

Bad history: An entry of leader epoch 7, then one of leader epoch 5.

Legal look-alike: An epoch that rises by several at once (elections that wrote nothing); entries without an epoch (magic 0 and 1).
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.coordinator.words import name_of
from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C16",
    slug="tlog-leader-epoch",
    severity="error",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    needs=("ordered",),
    # KIP-101: the epoch is the leader's own when it appends, and a follower cuts its log where the newer leader's began.
    where="partition_leader_epoch >= 0 AND partition_leader_epoch < log_previous_leader_epoch",
    by="",
    columns="entry_offset partition_leader_epoch log_previous_leader_epoch coordinator_partition",
    # The decisions may be the right ones all the same: markers tell (T05, T06).
    proves_delivery_wrong=False,
    cause="an unclean election on __transaction_state, segments of two replicas in one directory, or a disk that was restored",
    remedy="See the finding: compare the replicas of this coordinator partition and keep the leader's.",
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The first step back speaks."""
    row = case.row
    place = f"__transaction_state-{row.maybe('coordinator_partition')}"
    message = (
        f"The leader epoch of the coordinator log falls from {row.maybe('log_previous_leader_epoch')} to "
        f"{row.maybe('partition_leader_epoch')} at offset {row.maybe('entry_offset')} (an entry of {name_of(row)})"
        f"{'' if case.hits == 1 else f', and {case.hits} times in all'}: no log of one leader after the other does that"
    )
    remedy = (
        f"Compare the replicas of {place} ({commands.describe_topic('__transaction_state')}): dump it from every broker and audit again "
        "(R01). Keep the leader's, and delete the directory of a replica that differs while its broker is down: it is fetched again. "
        "unclean.leader.election.enable must be false for __transaction_state. Verify what was decided around this offset (T05, T06)."
    )
    return Explanation(message, remedy=remedy, details={"entries": case.hits, "leader_epoch": row.maybe("partition_leader_epoch")})
