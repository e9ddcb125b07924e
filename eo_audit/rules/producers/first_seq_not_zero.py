"""P07 first-seq-not-zero: a producer's first batch here does not start at sequence 0: its past is unknown.

Proves: The first batch seen of a producer does not start at sequence 0: its past is unknown and is not judged.

Bad history: On a broker with transaction.version 2 a transactional producer's first batch in the log starts at sequence 5.

Legal look-alike: A log whose head was removed by retention or DeleteRecords; a broker from 2.5 on that had forgotten an idle producer.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.needs import REMOTE
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who

if TYPE_CHECKING:
    from eo_audit.rules.context import Context, Log

# Of a log that begins at offset 0, without a hole and never compacted: nothing was removed from it.
_LOST_AT_BIRTH = (
    "the first records of the producer never arrived in this log, or were lost before the log was as it is now (a failed send that the "
    "client went on after, an unclean election, a topic created again)"
)
_SEND_AGAIN = (
    "Ask the application whether its first sends were acknowledged: acknowledged records that are not in the log were lost, "
    "send them again from the source. A broker from 2.5 on takes any first sequence of a producer that it does not know."
)
_MOVED = "tiered storage (KIP-405): the beginning of the producer's history lies in remote storage, or was deleted there"

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
    columns="base_offset base_sequence is_transactional",
    asks=ASKS,
    # From 2.5 on (KIP-360) a leader takes any first sequence of a producer id that it does not know.
    informs=True,
    cause="the beginning of the producer's history was removed (retention, DeleteRecords, compaction) or expired",
    remedy="Nothing to do. Older dumps of the same partition would show the missing past.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """An error only where the broker must have refused such a first batch."""
    row, log = case.row, case.log
    from_birth = log is not None and _is_from_birth(log)
    refused = from_birth and log is not None and _is_refused(case, context, log.cluster)
    is_moved = log is not None and any((part.text("reason") or "").startswith(REMOTE) for part in log.breaks)
    lies = "lies in remote storage or was deleted" if is_moved else "is not in the log"
    before = "never arrived in this log or was lost" if from_birth else lies
    untold = f"what it wrote before {before}, so nothing is said about it"
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
        cause=_LOST_AT_BIRTH if from_birth else _MOVED if is_moved else None,
        remedy=_SEND_AGAIN if from_birth else None,
        details={"producers": case.hits, "log_from_birth": from_birth},
    )


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
