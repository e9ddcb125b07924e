"""L01 lso-stuck: the last stable offset stands still behind an open transaction: committed records behind it are held back.

Proves: An open transaction holds the last stable offset back: read_committed consumers get nothing behind it.

Bad history: LSO 6, high watermark 14, the blocker is hanging (T01).

Legal look-alike: A transaction open inside its timeout (info); one that is old by its records' own time alone (info: that is the
client's clock); a high watermark that merely lags behind the log's end; a replica that a newer leader left behind.
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions import remedies
from eo_audit.rules.waiting import Age, age, doubt, whose
from eo_audit.words import count, duration

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

GRACE_MS = 300_000  # the broker's own metric of late transactions counts from the maximum timeout + 5 min

RULE = Rule(
    code="L01",
    slug="lso-stuck",
    severity="critical",
    reads=("visibility",),
    subject="transactional_batch",
    needs=("past_of_open", "end", "coordinator"),
    # A transaction whose marker is not below a high watermark that lags holds the LSO for a moment only.
    where="lso < hw AND lso = lso_if_hw_is_leo AND lso < leo AND blocker_producer_id IS NOT NULL",
    # Behind the oldest open transaction others may be open: they show when it has gone.
    by="blocker_producer_id",
    columns=(
        "blocker_producer_id held_back_committed_records hw_source blocker_epoch lso hw blocker_first_offset "
        "blocker_last_timestamp_ms lso_source held_back_offsets open_transactions"
    ),
    # Whether it hangs is asked of the same open spans and lost markers as T01 asks.
    asks=("last_of_producer", "open_spans", "unmarked", "newest_markers"),
    producers=("blocker_producer_id",),
    caused_by=("T01", "C01", "C02", "T12"),
    waiting="stuck",
    cause="an open transaction at the last stable offset",
    remedy="See the finding: it points at T01, C01 or C02.",
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Info while the blocker is open within its timeout, critical at any age when it hangs."""
    row, log = case.row, case.log
    if log is None or not log.ends_here or context.is_superseded(log):
        return None
    producer = row.number("blocker_producer_id")
    hanging = context.hangs(log, producer)
    if not hanging and (context.ended_elsewhere(log, producer) or context.has_ended(log, producer)):
        return None  # its marker came after this dump was made
    known = context.unfinished(log.cluster, producer) or context.last_of_producer.get((log.cluster, producer))
    name = known.text("transactional_id") if known else None
    old = _age(row, log, context)
    severity = "critical" if hanging else _severity(log, context, producer, old)
    if severity == "info" and not row.number("held_back_committed_records"):
        return None  # nobody waits, and T12 tells of the transaction
    assumed = row.text("hw_source") != "checkpoint"
    unsure, why = (False, "") if hanging else _doubt(log, context, producer, old)
    return Explanation(
        _message(row, log, context, name=name, old=old) + why + (" (the high watermark is assumed)" if assumed else ""),
        severity=severity,
        # Where the coordinator alone tells, an ABORT by hand may stand in what nobody dumped.
        certainty="likely" if assumed or unsure or row.text("lso_source") == "coordinator" else context.how_sure(log, producer),
        remedy=_remedy(case, context, hanging=hanging),
        details=_details(row, old),
        transactional_id=name,
        producer_id=producer,
        producer_epoch=row.maybe("blocker_epoch"),
        record_count=row.maybe("held_back_committed_records"),
    )


def _message(row: Row, log: "Log", context: "Context", *, name: str | None, old: Age) -> str:
    records, producer = row.number("held_back_committed_records"), row.number("blocker_producer_id")
    told = old.source == "record_time" and not context.hangs(log, producer)
    only_told = f"; it is {duration(old.ms)} old by its records' own time, which proves nothing" if told else ""
    blocker = f"the open transaction of {whose(name, producer, row.maybe('blocker_epoch'))}, {_why(log, context, producer)}{only_told}"
    stands = f"The last stable offset stands at {row.maybe('lso')} of {row.maybe('hw')}"
    if not records:
        # Behind it lie its own records, open ones of others, or none at all.
        return f"{stands} behind {blocker}: read_committed consumers get nothing from there on, though nothing committed waits there yet"
    are = "is" if records == 1 else "are"
    return f"{stands}: {count(records, 'committed or plain record')} behind it {are} held back by {blocker}"


def _details(row: Row, old: Age) -> dict[str, object]:
    names = ("lso", "hw", "hw_source", "lso_source", "held_back_offsets", "held_back_committed_records", "open_transactions")
    values: dict[str, object] = {name: row.text(name) if name.endswith("_source") else row.maybe(name) for name in names}
    return values | {
        "age_ms": old.ms,
        "age_source": old.source,
        "age_at_least_ms": old.at_least_ms,
        "age_at_most_ms": old.at_most_ms,
    }


def _why(log: "Log", context: "Context", producer_id: int) -> str:
    last = context.unfinished(log.cluster, producer_id)
    if context.hangs(log, producer_id):
        return "which nobody will end (T01)"
    if last is not None:
        return f"which the coordinator knows ({last.word('last_status')})"
    if (log.log_id, producer_id) not in context.open_spans:
        return "which only the producer snapshot shows as open"
    return "of which the dumps show no decision"


def _age(row: Row, log: "Log", context: "Context") -> Age:
    first, told = row.maybe("blocker_first_offset"), row.maybe("blocker_last_timestamp_ms")
    producer, epoch = row.number("blocker_producer_id"), row.maybe("blocker_epoch")
    return age(log, context, producer_id=producer, first_offset=first, record_ms=told, epoch=epoch)


def _severity(log: "Log", context: "Context", producer_id: int, old: Age) -> str:
    """By the age that is proved: past its timeout, and past any timeout that the broker allows.

    What only the client's clock says informs: records may be dated hours back. Without a coordinator's log L01 is unknown there as well.
    """
    least, limit = old.proved_ms, context.cluster(log.cluster).number("max_transaction_timeout_ms", 900_000)
    if least is None or least <= _allowed_ms(log, context, producer_id):
        return "info"
    return "critical" if least > max(limit, _timeout_ms(log, context, producer_id)) + GRACE_MS else "warning"


def _allowed_ms(log: "Log", context: "Context", producer_id: int) -> int:
    cluster = context.cluster(log.cluster)
    return _timeout_ms(log, context, producer_id) + cluster.number("abort_scan_interval_ms", 10_000) + cluster.number("skew_ms", 2_000)


def _timeout_ms(log: "Log", context: "Context", producer_id: int) -> int:
    """Its own timeout where the coordinator lists this partition, else the longest one."""
    limit, last = context.cluster(log.cluster).number("max_transaction_timeout_ms", 900_000), context.unfinished(log.cluster, producer_id)
    return last.number("timeout_ms", limit) if last and context.lists(log, producer_id) else limit


def _doubt(log: "Log", context: "Context", producer_id: int, old: Age) -> tuple[bool, str]:
    """As C01: whether its coordinator may have been unable to end it in time."""
    last = context.unfinished(log.cluster, producer_id)
    if old.source != "coordinator" or old.proved_ms is None or last is None:
        return False, ""
    allowed = _allowed_ms(log, context, producer_id)
    due = last.number("start_ms") + allowed
    return doubt(context, log.cluster, last.maybe("replica_log_id"), due_ms=due, over_ms=old.proved_ms - allowed)


def _remedy(case: Case, context: "Context", *, hanging: bool) -> str:
    log, row = case.log, case.row
    if log is None:
        return ""
    producer = row.number("blocker_producer_id")
    if hanging:
        return remedies.abort(log, row.number("blocker_first_offset"), producer, context)
    if context.lists(log, producer):
        return remedies.wait(log, producer, context)
    if (log.log_id, producer) not in context.open_spans:
        asked = commands.describe_producers(log.topic or "", log.partition or 0, context.version(log.cluster))
        return f"Ask the broker whether it is still open, before anything is aborted: {asked}."
    return "Dump __transaction_state to learn whether the coordinator still knows this transaction, before anything is aborted."
