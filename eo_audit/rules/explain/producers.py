"""Words for the producer rules (P)."""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation
from eo_audit.rules.words import count, duration, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# Of a log that begins at offset 0, without a hole and never compacted: nothing was removed from it.
_LOST_AT_BIRTH = (
    "the first records of the producer never arrived in this log, or were lost before the log was as it is now (a failed send that the "
    "client went on after, an unclean election, a topic created again)"
)
_SEND_AGAIN = (
    "Ask the application whether its first sends were acknowledged: acknowledged records that are not in the log were lost, send them "
    "again from the source. A broker from 2.5 on takes any first sequence of a producer that it does not know."
)
WINDOW = 5  # batches a broker remembers of a producer (KAFKA-5494)


def _who(case: Case) -> str:
    return f"producer {case.row.number('producer_id')} (epoch {case.row.number('producer_epoch')})"


def _sequences(case: Case) -> str:
    first, last = case.row.number("base_sequence"), case.row.number("last_sequence")
    return f"sequence {first}" if first == last else f"sequences {first} to {last}"


def _leader_changed(before: int | None, now: int | None) -> str:
    return "" if before is None or now is None or before == now else f"; the leader epoch went from {before} to {now} in between"


def _gap_ms(case: Case) -> int | None:
    at, before = case.row.maybe("max_timestamp_ms"), case.row.maybe("same_identity_timestamp_ms")
    return None if at is None or before is None else at - before


def duplicate(case: Case, context: "Context") -> Explanation:
    """P01 or P02: the least separated copies decide, since examples come with those first."""
    row, gap = case.row, _gap_ms(case)
    expiration = context.cluster(case.log.cluster).maybe("producer_id_expiration_ms") if case.log else None
    idle = gap is not None and expiration is not None and gap >= expiration
    between = row.number("data_batches_since_same")
    rule = "P02" if idle or between >= WINDOW else "P01"
    leader = _leader_changed(row.maybe("same_identity_leader_epoch"), row.maybe("partition_leader_epoch"))
    message = (
        f"{count(case.records, 'record')} of {_who(case)} stand in the log twice: {_sequences(case)} at "
        f"{offsets(row.maybe('base_offset'), row.maybe('last_offset'))} "
        f"and before at offset {row.maybe('same_identity_offset')}, {count(between, 'batch', 'batches')} of the producer and "
        f"{duration(gap)} apart{leader}"
    )
    details = {
        "original_offset": row.maybe("same_identity_offset"),
        "batches_between": between,
        "gap_ms": gap,
        "producer_id_expiration_ms": expiration,
        "batches": case.hits,
        "idle_longer_than_expiration": idle,
    }
    return Explanation(message, rule=rule, details=details)


def overlap(case: Case, _context: "Context") -> Explanation:
    """P03."""
    row = case.row
    message = (
        f"{_who(case).capitalize()} repeats sequences in another batch: {_sequences(case)} at "
        f"{offsets(row.maybe('base_offset'), row.maybe('last_offset'))} "
        f"intersect the batch at offset {row.maybe('overlaps_offset')}; {count(case.hits, 'batch', 'batches')} in all"
    )
    return Explanation(message, details={"overlaps_offset": row.maybe("overlaps_offset"), "batches": case.hits})


def gap(case: Case, _context: "Context") -> Explanation:
    """P04: the largest gap speaks."""
    row = case.row
    skipped = row.number("skipped_sequences")
    leader = _leader_changed(row.maybe("leader_epoch_before"), row.maybe("partition_leader_epoch"))
    more = "" if case.hits == 1 else f"; the largest of {case.hits} gaps"
    message = (
        f"{count(skipped, 'record')} of {_who(case)} {'is' if skipped == 1 else 'are'} missing: offset {row.maybe('base_offset')} "
        f"starts at sequence "
        f"{row.maybe('base_sequence')} where {row.maybe('expected_sequence')} was due{leader}{more}"
    )
    missing = sum(example.row.number("skipped_sequences") for example in case.examples)
    details = {
        "gaps": case.hits,
        "missing_records": missing,
        "expected_sequence": row.maybe("expected_sequence"),
        "found_sequence": row.maybe("base_sequence"),
    }
    return Explanation(message, details=details)


def regression(case: Case, _context: "Context") -> Explanation:
    """P05."""
    row = case.row
    what = "marker" if row.text("row_kind") == "marker" else "batch"
    message = (
        f"A {what} of epoch {row.maybe('producer_epoch')} of producer {row.maybe('producer_id')} stands at "
        f"{offsets(row.maybe('base_offset'), row.maybe('last_offset'))}, "
        f"after epoch {row.maybe('max_epoch_before')} was in the log: a fenced producer wrote {count(case.records, 'record')} in "
        f"{count(case.hits, 'batch', 'batches')}"
    )
    return Explanation(
        message, details={"epoch": row.maybe("producer_epoch"), "highest_epoch_before": row.maybe("max_epoch_before"), "batches": case.hits}
    )


def new_epoch(case: Case, _context: "Context") -> Explanation:
    """P06."""
    row = case.row
    message = (
        f"Epoch {row.maybe('producer_epoch')} of producer {row.maybe('producer_id')} starts at sequence "
        f"{row.maybe('base_sequence')} instead of 0, at offset "
        f"{row.maybe('base_offset')}: its first {count(row.maybe('base_sequence'), 'record')} "
        f"{'is' if row.number('base_sequence') == 1 else 'are'} not in this log"
    )
    return Explanation(
        message, details={"missing_records": row.maybe("base_sequence"), "previous_epoch": row.maybe("previous_epoch"), "epochs": case.hits}
    )


def unknown_past(case: Case, context: "Context") -> Explanation:
    """An error only where the broker must have refused such a first batch: a transactional one under transaction.version 2, or "
    "any on 1.0 to 2.4."""
    row, log = case.row, case.log
    from_birth = log is not None and log.numbers.maybe("log_start") == 0 and not log.numbers.flag("compacted") and not log.breaks
    refused = from_birth and log is not None and _is_refused(case, context, log.cluster)
    message = (
        f"The first batch seen of producer {row.maybe('producer_id')}, at offset {row.maybe('base_offset')}, starts at sequence "
        f"{row.maybe('base_sequence')}"
        f"{'' if case.hits == 1 else f' (the same holds for {case.hits} producers)'}: "
        + (
            "a broker refuses that for a producer it does not know"
            if refused
            else f"what it wrote before {'never arrived in this log or was lost' if from_birth else 'is not in the log'}, so nothing is "
            "said about it"
        )
    )
    return Explanation(
        message,
        severity="error" if refused else "info",
        cause=_LOST_AT_BIRTH if from_birth else None,
        remedy=_SEND_AGAIN if from_birth else None,
        details={"producers": case.hits, "log_from_birth": from_birth},
    )


def _is_refused(case: Case, context: "Context", cluster: str) -> bool:
    if (1, 0) <= (context.version(cluster) or ()) <= (2, 4):
        return True
    rows = [example.row for example in case.examples if example.row.flag("is_transactional")]
    protocols = {
        context.instances[row.word("instance_id")].text("protocol") for row in rows if row.word("instance_id") in context.instances
    }
    return "tv2" in protocols


def plain(case: Case, _context: "Context") -> Explanation:
    """P08."""
    row = case.row
    message = (
        f"A batch without the transactional flag stands at {offsets(row.maybe('base_offset'), row.maybe('last_offset'))} inside the "
        f"open transaction of "
        f"{_who(case)}: no broker appends, replicates or recovers that"
    )
    return Explanation(message, certainty="likely", details={"batches": case.hits})
