"""L04 lso-pinned-to-log-start: the broker deleted data of a transaction that is still open, and the last stable offset stands at the log
start.

Proves: An open transaction begins below the log start: its first records are gone, and read_committed consumers get nothing at all.

Bad history: A transaction opens at offset 0, DeleteRecords or retention moves the log start to 3; the last stable offset stands at 3.

Legal look-alike: A log whose head was deleted after its transactions had ended; brokers up to 2.3, which forget a transaction with its
data; a replica that a newer leader left behind.
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions import remedies
from eo_audit.rules.waiting import whose
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

RULE = Rule(
    code="L04",
    slug="lso-pinned-to-log-start",
    severity="error",
    reads=("visibility",),
    subject="transactional_batch",
    # `past_of_open`: where offsets are missing, the marker of what was open may have stood there.
    needs=("ordered", "epochs", "past_of_open", "end", "start"),
    # `UnifiedLog.fetchLastStableOffsetMetadata` never goes below the log start; retention looks at the high watermark only.
    where="blocker_producer_id IS NOT NULL AND blocker_first_offset < log_start AND lso = log_start AND lso < hw "
    # Where no more is known than which segments were dumped, the older ones may be there.
    "AND log_start_source <> 'segment_base'",
    by="blocker_producer_id",
    columns="blocker_producer_id blocker_epoch blocker_first_offset log_start lso hw lso_source held_back_committed_records",
    asks=("last_of_producer", "open_spans", "unmarked", "newest_markers"),
    producers=("blocker_producer_id",),
    caused_by=("T01", "C01"),
    cause="retention or DeleteRecords removed records of a transaction that had not ended: neither waits for open transactions",
    remedy="See the finding: the transaction must end before consumers get anything.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Whatever its age: the records that are gone cannot be committed any more."""
    row, log = case.row, case.log
    if log is None or not log.ends_here or context.is_superseded(log):
        return None
    if any(hole.number("last_offset") >= row.number("log_start") for hole in log.numbers.rows("holes")):
        return None  # its marker may have stood there
    producer = row.number("blocker_producer_id")
    if context.ended_elsewhere(log, producer) or (context.has_ended(log, producer) and not context.hangs(log, producer)):
        return None  # its marker came after this dump was made
    # KAFKA-7190: up to 2.3 the state of a producer went with the log's head; what a snapshot holds the broker still knows.
    if row.text("lso_source") != "snapshot" and (context.version(log.cluster) or (9,)) < (2, 4):
        return None
    known = context.unfinished(log.cluster, producer) or context.last_of_producer.get((log.cluster, producer))
    name = known.text("transactional_id") if known else None
    held = row.number("held_back_committed_records", 0)
    message = (
        f"The last stable offset stands at the log start {row.maybe('log_start')} (of {row.maybe('hw')}): the open transaction of "
        f"{whose(name, producer, row.maybe('blocker_epoch'))} began at offset {row.maybe('blocker_first_offset')}, and its first records "
        f"were deleted; read_committed consumers get nothing, and {count(held, 'committed or plain record')} "
        f"{'waits' if held == 1 else 'wait'} behind it"
    )
    return Explanation(
        message,
        # Its data were seen in an older dump: an ABORT by hand in what nobody dumped is nothing that a coordinator tells of.
        certainty="likely" if row.text("lso_source") == "coordinator" else "definite",
        remedy=_remedy(log, producer, row.number("blocker_first_offset"), context),
        details={name: row.maybe(name) for name in ("lso", "hw", "log_start", "blocker_first_offset")},
        transactional_id=name,
        producer_id=producer,
        producer_epoch=row.maybe("blocker_epoch"),
        first_offset=row.maybe("blocker_first_offset"),
    )


def _remedy(log: "Log", producer: int, first_offset: int, context: "Context") -> str:
    if context.hangs(log, producer):
        return remedies.abort(log, first_offset, producer, context)
    if context.lists(log, producer):
        return remedies.wait(log, producer, context)
    asked = commands.describe_producers(log.topic or "", log.partition or 0, context.version(log.cluster))
    return f"Ask the broker whether it is still open, before anything is aborted: {asked}."
