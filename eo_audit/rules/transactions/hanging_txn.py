"""T01 hanging-txn: a transaction is open at the end of a log and no coordinator entry will ever end it.

Proves: A transaction is open at the end of a log, and the coordinator does not hold it open for this partition: it holds back every
read_committed consumer until somebody aborts it, or the producer's next transaction here ends it too (T15).

Bad history: Transactional data at offsets 6 to 8, no marker behind it; the coordinator's last entry for the producer is CompleteAbort.

Legal look-alike: A transaction that the coordinator lists as Ongoing or PrepareCommit (T12); a replica that is behind, or
was left behind by a newer leader; back-dated timestamps.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions import remedies
from eo_audit.rules.transactions.words import LOST, UNVERIFIED, begins_behind, unless_below
from eo_audit.rules.waiting import age, whose
from eo_audit.words import count, duration, partitions

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T01",
    slug="hanging-txn",
    severity="critical",
    reads=("transaction_spans",),
    subject="transactional_batch",
    # `end` and `coordinator`: where the dump stops too soon, or the coordinator's word is missing, what is open may be healthy.
    needs=("order", "past_of_open", "end", "coordinator"),
    where="outcome = 'open'",
    columns="last_epoch first_offset last_timestamp_ms",
    # Whether the coordinator still holds it (`DescribeTransactions`, KIP-664), and whether another finding tells why not.
    asks=("last_of_producer", "open_spans", "unmarked", "newest_markers"),
    caused_by=("X02",),
    waiting="for_ever",
    cause=f"a late or unregistered write: {UNVERIFIED}; or a marker that compaction or an unclean election removed",
    remedy="See the finding: the abort command is built from the partition and the first offset.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Acquitted where somebody will end it, or where a replica that reaches further shows its end."""
    if case.log is None or not context.hangs(case.log, case.row.number("producer_id")):
        return None
    row, age_ms, now = case.row, _age_ms(case, context), context.now(case.log.cluster)
    last = context.owner(case.log, row.number("producer_id"))
    limit = context.cluster(case.log.cluster).number("max_transaction_timeout_ms", 900_000)
    who = whose(last.text("transactional_id") if last else None, row.maybe("producer_id"), row.maybe("last_epoch"))
    status = f"the coordinator's last entry for it is {last.word('last_status')}" if last else "no coordinator entry names it"
    listed = f" for {partitions(last.partitions())}" if last and last.partitions() else ""
    lost = context.lost_marker(case.log, row.number("producer_id"))
    if lost:
        decided = "COMMIT" if context.lost_commit(case.log, row.number("producer_id")) else "ABORT"
        begins = begins_behind(case.log, row.number("producer_id"), context)
        listed += f", and its {decided} is not here{unless_below(begins)} (T05)"
    began = remedies.began_at(case.log, row.number("first_offset"), row.number("producer_id"), context)
    before = ", before the dumps begin," if began < row.number("first_offset") else ""
    message = (
        f"The transaction of {who} has been open since offset {began}{before} with {count(case.records, 'record')}, "
        f"{duration(age_ms)} old, and nobody will end it: {status}{listed}"
    )
    details = {
        "age_ms": age_ms,
        "records": case.records,
        "max_transaction_timeout_ms": limit,
        "coordinator_status": last.text("last_status") if last else None,
        "coordinator_epoch": last.maybe("data_epoch") if last else None,
    }
    return Explanation(
        message,
        severity="critical" if age_ms is not None and age_ms > limit else "warning",
        certainty=context.how_sure(case.log, row.number("producer_id")),
        cause=LOST if lost else None,
        remedy=remedies.abort(case.log, row.number("first_offset"), row.number("producer_id"), context),
        details=details,
        transactional_id=last.text("transactional_id") if last else None,
        producer_epoch=row.maybe("last_epoch"),
        timestamp_ms=None if age_ms is None or now is None else now - age_ms,
    )


def _age_ms(case: Case, context: "Context") -> int | None:
    """How long a transaction has been open (see `rules.waiting.age`)."""
    row, log = case.row, case.log
    if log is None:
        return None
    first, told, epoch = row.maybe("first_offset"), row.maybe("last_timestamp_ms"), row.maybe("last_epoch")
    return age(log, context, producer_id=row.number("producer_id"), first_offset=first, record_ms=told, epoch=epoch).ms
