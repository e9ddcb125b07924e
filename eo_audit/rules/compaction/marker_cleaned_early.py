"""X02 marker-cleaned-early: below the cleaner's checkpoint stand records of a transaction without its marker.

Proves: The cleaner works on nothing that is open. Records below its checkpoint whose transaction nothing closes have lost their marker, or
their broker had forgotten the transaction.

Bad history: The cleaner's checkpoint is 40, offsets 10 to 12 are of a transaction, and no marker of its producer follows; or offset 20 is
of the producer's next epoch, and no marker stands between.

Legal look-alike: A transaction that is open above the checkpoint; one that the coordinator still holds, of a running broker whose
checkpoint was copied after its log; batches that the cleaner has emptied; a topic that nobody cleans.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions import remedies
from eo_audit.rules.writers import id_of, named
from eo_audit.words import shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log
    from eo_audit.rules.row import Row

RULE = Rule(
    code="X02",
    slug="marker-cleaned-early",
    severity="critical",
    reads=("transaction_spans",),
    subject="transactional_batch",
    # `fates`: of a running broker the checkpoint may be younger than the log, and what is open below it healthy.
    needs=("order", "past", "end", "fates"),
    where="hole_at IS NULL AND records_from IS NOT NULL AND (outcome = 'open' OR epoch_changes_at IS NOT NULL)",
    columns="records_from epoch_changes_at outcome first_epoch last_epoch first_offset last_offset marker_offset marker_type",
    asks=("last_of_producer", "open_spans", "unmarked", "newest_markers"),
    cause=(
        "the cleaner removed the marker before the records: KAFKA-14055 (records with the 4-byte keys 0 and 1; up to 3.2.0), "
        "KAFKA-13727 (up to 3.1.0), KAFKA-8351 (up to 2.2.1); or the broker had lost the producer's state (KAFKA-9144, up to 2.4.0); or "
        "this replica was a follower that was away for longer than delete.retention.ms, and copied the end of a log whose leader had "
        "cleaned these records and their marker; or the marker was lost with the end of a leader's log, in an unclean leader election "
        "(then T05 and R01 tell of more)"
    ),
    remedy="See the finding: whether consumers wait, or get the wrong records, is told by T01 and L02.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """The first such transaction below the checkpoint; acquitted where that is not certain, or nothing is below."""
    if case.log is None or not case.log.numbers.flag("compacted") or context.is_superseded(case.log):
        return None
    checkpoint = case.log.numbers.maybe("uncleaned_from")
    # How far the cleaner was nobody says: what hangs is T01's then, and the epochs are T10's.
    found = [example.row for example in case.examples if checkpoint is not None and _lost_below(example.row, case.log, context, checkpoint)]
    if not found or checkpoint is None:
        return None
    row = found[0]
    producer, changes_at = row.number("producer_id"), row.maybe("epoch_changes_at")
    is_open = changes_at is None
    writer = named(case, context, row.maybe("first_epoch"))
    what = (
        "nothing in the log ends their transaction"
        if is_open
        else f"no marker stands before offset {changes_at}, where its next epoch begins: {_one_end(row)} decides both"
    )
    message = (
        f"Records of {writer} from offset {row.maybe('records_from')} on lie below the cleaner's checkpoint ({checkpoint}), and {what}"
        f"{'' if len(found) == 1 else f' ({len(found)} such transactions)'}"
    )
    hangs = is_open and context.hangs(case.log, producer)
    abort = remedies.abort(case.log, row.number("first_offset"), producer, context) if hangs else ""
    return Explanation(
        message,
        # Two epochs in a row may also be a late write of the first one, before the cleaner came.
        certainty="definite" if is_open else "likely",
        remedy=f"{abort} {_upgrade(case.log, context)}".strip(),
        named=id_of(case, context),
        details={"transactions": len(found), "cleaner_checkpoint": checkpoint, "records_from": row.maybe("records_from")},
        producer_epoch=row.maybe("first_epoch"),
        first_offset=row.maybe("records_from"),
        last_offset=row.maybe("last_offset") if is_open or changes_at is None else changes_at - 1,
    )


def _lost_below(row: "Row", log: "Log", context: "Context", checkpoint: int) -> bool:
    """Whether the marker of a span's records should stand, and its records do stand, below the checkpoint."""
    changes_at, producer = row.maybe("epoch_changes_at"), row.number("producer_id")
    if changes_at is not None:
        return changes_at <= checkpoint
    if row.number("records_from") >= checkpoint or not log.ends_here or context.ended_elsewhere(log, producer):
        return False
    holes = log.numbers.rows("holes")
    if any(hole.number("last_offset") > row.number("first_offset") for hole in holes):
        return False
    # The log of a stopped broker is as old as its checkpoint; else only the coordinator can say that nothing was about to end it.
    return log.log_id in context.clean_ends or context.hangs(log, producer)


def _one_end(row: "Row") -> str:
    if row.text("outcome") == "open":
        return "the next one"
    return f"the {row.word('marker_type')} at offset {row.maybe('marker_offset')}"


def _upgrade(log: "Log", context: "Context") -> str:
    version = context.cluster(log.cluster).text("kafka_version")
    told = f"this cluster says {shown(version)}" if version else "the manifest does not say this cluster's"
    return (
        f"Upgrade the brokers to Kafka 3.3 or later ({told}), and compare the other replicas of {shown(log.topic)}-{log.partition}: "
        "each is cleaned alone, and one may still hold the marker."
    )
