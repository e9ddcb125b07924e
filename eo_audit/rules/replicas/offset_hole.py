"""R04 offset-hole: offsets are missing in a topic that was never compacted.

Proves: Offsets are missing inside a log that was never compacted: records are lost, or a segment was not dumped.

Bad history: Batch 0 to 4, then batch 9 to 12; a segment named 0 whose first batch stands at 2.

Legal look-alike: A compacted topic, also one that only the leader's cleaner has worked on, where nothing says its policy; a head removed
by retention or DeleteRecords, also where nothing says which of two dumps is newer; markers, which take offsets too; a hole of which
nothing says whether the cleaner made it (R07).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import brokers, count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

RULE = Rule(
    code="R04",
    slug="offset-hole",
    severity="error",
    reads=("coverage",),
    subject="batch",
    # Between two dumps that nothing puts in order it may be retention's work.
    needs=("ordered",),
    # Holes that the cleaner made, or may have made, are states of their own (history/coverage).
    where="state = 'hole'",
    by="state",
    # The largest hole first: it is a segment, or a batch.
    weight="last_offset - first_offset",
    columns="last_offset first_offset",
    cause="a segment that was not dumped or was lost",
    remedy=(
        "Dump the missing segment first (the finding names its offsets). If these are the files of two dumps in one folder, give each dump "
        "its own and say when it was made (dumped_at in its manifest.yaml). If it does not exist on this broker, dump the other replicas: "
        "the records may be there."
    ),
)

_HELD_ELSEWHERE = (
    "See first whether this broker has the segment, and only its dump is missing. If not, nothing is lost as long as the other replica is "
    "there: let it lead (kafka-reassign-partitions.sh, then kafka-leader-election.sh), stop this broker, delete the directory of this "
    "partition and start it: it is fetched again. Until then consumers that this broker serves miss these records."
)
# What a dump tells less of, and shows all the same.
_STILL_SHOWN = ("shallow", "no_checksums", "no_epochs")


def explain(case: Case, context: "Context") -> Explanation:
    """The largest hole speaks; all of them are summed. A replica that has them all tells what became of the records."""
    row = case.row
    missing = sum(example.row.number("last_offset") - example.row.number("first_offset") + 1 for example in case.examples)
    message = (
        f"{count(missing, 'offset')} missing in {count(case.hits, 'hole')}, the largest at "
        f"{offsets(row.maybe('first_offset'), row.maybe('last_offset'))}, in a log that was never compacted"
    )
    holders = _holders(case, context)
    details = {"holes": case.hits, "missing_offsets": missing, "held_by_brokers": holders}
    if not holders:
        return Explanation(message, details=details, record_count=missing)
    return Explanation(
        f"{message}; {brokers(holders)} {'has' if len(holders) == 1 else 'have'} them",
        cause="a segment that was not dumped, or that this replica lost (a disk, a restore, a hand): the other one has it",
        remedy=_HELD_ELSEWHERE,
        details=details,
        record_count=missing,
    )


def _holders(case: Case, context: "Context") -> list[int]:
    """The brokers whose replicas show all that is missing here."""
    if case.log is None:
        return []
    holes = [(example.row.number("first_offset"), example.row.number("last_offset")) for example in case.examples]
    others = [log for log in context.replicas(case.log) if log.log_id != case.log.log_id]
    return sorted(log.broker for log in others if log.broker is not None and all(_shows(log, *hole) for hole in holes))


def _shows(log: "Log", first: int, last: int) -> bool:
    begins, end = log.starts_at, log.numbers.maybe("leo")
    if begins is None or end is None or begins > first or end <= last:
        return False
    return not any(
        part.text("state") not in _STILL_SHOWN and part.number("first_offset", 0) <= last and part.number("last_offset", end) >= first
        for part in log.breaks
    )
