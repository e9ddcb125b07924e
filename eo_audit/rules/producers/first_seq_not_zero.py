"""P07 first-seq-not-zero: a producer's first batch here does not start at sequence 0: its past is unknown.

Proves: The first batch seen of a producer does not start at sequence 0: its past is unknown and is not judged.

Bad history: On a broker with transaction.version 2 a transactional producer's first batch in the log starts at sequence 5.

Legal look-alike: A log whose head was removed by retention or DeleteRecords; a broker from 2.5 on that had forgotten an idle producer.
"""

from typing import TYPE_CHECKING, NamedTuple

from eo_audit.rules.needs import REMOTE
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log


class _Past(NamedTuple):
    """Where what the producer wrote before is, why, and what to do; None: as the rule says."""

    lies: str
    cause: str | None = None
    remedy: str | None = None


_REMOVED = _Past("is not in the log")
# Of a log that begins at offset 0, without a hole and never compacted: nothing was removed from it.
_LOST_AT_BIRTH = _Past(
    "never arrived in this log or was lost",
    "the first records of the producer never arrived in this log, or were lost before the log was as it is now (a failed send that the "
    "client went on after, an unclean election, a topic created again)",
    "Ask the application whether its first sends were acknowledged: acknowledged records that are not in the log were lost, "
    "send them again from the source. A broker from 2.5 on takes any first sequence of a producer that it does not know.",
)
_MOVED = _Past(
    "lies in remote storage or was deleted",
    "tiered storage (KIP-405): the beginning of the producer's history lies in remote storage, or was deleted there",
)
_IN_A_HOLE = _Past(
    "may stand where offsets are missing",
    "the beginning of the producer's history stands where offsets of the log are missing (R04 and R07 tell which), or was removed",
    "Dump the missing part, if it still exists.",
)
_NOT_DUMPED = _Past(
    "may stand in what was not dumped",
    "the beginning of the log was not dumped (R07), and the beginning of the producer's history with it, or that was removed",
    "Dump the log from its beginning, if that still exists.",
)

RULE = Rule(
    code="P07",
    slug="first-seq-not-zero",
    severity="info",
    reads=("producer_history",),
    subject="sequenced_batch",
    needs=("order", "epochs", "beginnings"),
    where="label = 'first_nonzero'",
    # One case a log: after a retention run every producer of a log may begin like this. One that a broker may have had to refuse speaks.
    by="",
    weight="IF(is_transactional, 1, 0)",
    columns="base_offset base_sequence is_transactional predecessor",
    asks=ASKS,
    # From 2.5 on (KIP-360) a leader takes any first sequence of a producer id that it does not know.
    informs=True,
    cause="the beginning of the producer's history was removed (retention, DeleteRecords, compaction) or expired",
    remedy="Nothing to do. Older dumps of the same partition would show the missing past.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """An error only where the broker must have refused such a first batch."""
    row, log = case.row, case.log
    past = _past(case)
    refused = past is _LOST_AT_BIRTH and log is not None and _is_refused(case, context, log.cluster)
    untold = f"what it wrote before {past.lies}, so nothing is said about it"
    meaning = "a broker refuses that for a producer it does not know" if refused else untold
    others = "" if case.hits == 1 else f" ({case.hits} producers begin so)" if refused else f" (the same holds for {case.hits} producers)"
    message = (
        f"The first batch seen of {who(case, context)}, at offset {row.maybe('base_offset')}, "
        f"starts at sequence {row.maybe('base_sequence')}{others}: {meaning}"
    )
    return Explanation(
        message,
        named=id_of(case, context) if case.hits == 1 else None,
        severity="error" if refused else "info",
        cause=past.cause,
        remedy=past.remedy,
        details={"producers": case.hits, "log_from_birth": past is _LOST_AT_BIRTH},
    )


def _past(case: Case) -> _Past:
    log = case.log
    if log is None:
        return _REMOVED
    if _is_from_birth(log):
        return _LOST_AT_BIRTH
    if any((part.text("reason") or "").startswith(REMOTE) for part in log.breaks):
        return _MOVED
    if case.row.text("predecessor") == "hole":
        return _IN_A_HOLE
    return _NOT_DUMPED if any(part.text("state") == "head_missing" for part in log.breaks) else _REMOVED


def _is_from_birth(log: "Log") -> bool:
    """Whether nothing was taken from the log; what is missing before its first batch the cleaner took, if no checkpoint says so, too."""
    return log.numbers.maybe("log_start") == 0 and not log.starts_at and not log.numbers.flag("compacted") and not log.breaks


def _is_refused(case: Case, context: "Context", cluster: str) -> bool:
    """Brokers 1.0 to 2.4 take no first batch but sequence 0 of a producer they do not know; later ones refuse a transactional one under
    transaction.version 2 (`ProducerAppendInfo.checkSequence`)."""
    if (1, 0) <= (context.version(cluster) or ()) <= (2, 4):
        return True
    instance = context.instances.get(case.row.word("instance_id")) if case.row.flag("is_transactional") else None
    return instance is not None and instance.text("protocol") == "tv2"
