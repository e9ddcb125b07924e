"""O01 aborted-offset-visible: a group's offset comes from a transaction that was aborted.

Proves: The coordinator aborted a transaction, and the offset that it committed became the group's all the same: the group's consumers go on
behind input whose output was thrown away.

Bad history: A commit of offset 52 in a transaction that was aborted; a COMMIT marker of the same producer applied it.

Legal look-alike: An aborted commit that its ABORT marker dropped; one that a newer commit of the same producer replaced before the COMMIT
came; one that came to count when a newer commit was there already.
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.offsets.words import committed, group_of, place
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="O01",
    slug="aborted-offset-visible",
    severity="critical",
    reads=("group_offsets",),
    subject="group_offset undecoded_offsets",
    needs=("order", "past", "assigned", "decoded"),
    where="outcome = 'applied' AND wins AND instance_decision = 'ABORT' AND NOT tombstone",
    columns="committed_offset marker_offset",
    asks=ASKS,
    caused_by=("T06", "T15"),
    cause="the ABORT marker was lost or read COMMIT on this partition, or the commit came after it and the next COMMIT took it along",
    remedy="See the finding: compare what the group has now, and process the input that it passed over again.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """Which offset, and which marker applied it."""
    row, group = case.row, group_of(case)
    more = "" if case.hits == 1 else f" (the first of {case.hits} such offsets)"
    message = (
        f"Group {shown(group)} got offset {row.maybe('committed_offset')} for {committed(row)} from an aborted transaction of "
        f"{who(case, context)}: its commit at offset {case.first} of {place(case)} was applied by the COMMIT at offset "
        f"{row.maybe('marker_offset')}{more}. Input below that offset may have no output"
    )
    remedy = (
        f"See what the group has now: {commands.describe_group(group)}. If its offset comes from this commit, stop its members and set it "
        f"back to the last committed one before this, so that the input between is processed again: "
        f"{commands.reset_offset(group, row.word('topic'), row.number('partition'))}."
    )
    return Explanation(
        message,
        remedy=remedy,
        details={"committed_offset": row.maybe("committed_offset"), "marker_offset": row.maybe("marker_offset"), "offsets": case.hits},
        named=id_of(case, context),
        group=group,
    )
