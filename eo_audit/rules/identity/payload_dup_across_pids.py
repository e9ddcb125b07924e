"""P12 payload-dup-across-pids: a producer starts with the records that another one ended with: a restart that sent them again under a new
producer id.

Proves: What one producer wrote last, another wrote first: the same keys and values, in the same order, within a restart.

Bad history: Producer 0 writes records A B C D; a new producer starts, at sequence 0, with A B C D.

Legal look-alike: Heartbeats; a resend of records whose transaction was aborted; two producers that happen to start with one equal record.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.identity.candidates import candidates
from eo_audit.rules.identity.words import gap_ms, resent
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import whose
from eo_audit.rules.writers import id_of_producer
from eo_audit.words import count, duration, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

SURE_RUN = 3  # different records in a row that two jobs do not write by accident
NOBODY = -1  # records without a producer id

RULE = Rule(
    code="P12",
    slug="payload-dup-across-pids",
    severity="warning",
    reads=("producer_edges",),
    subject="producer_edge epochless_batch",
    # Without printed payloads there are no hashes, and silence proves nothing.
    needs=("epochs", "payload"),
    find=candidates,
    found="earlier later",
    asks=("edges", "last_of_producer"),  # I06 counts the ids that are alike among these producers, too
    producers=("earlier", "later"),
    caused_by=("I06",),
    cause="an application restarted (or sent twice) with a new producer id: the broker removes duplicates only within one producer id",
    remedy=(
        "Nothing to repair in the log; safe to leave. De-duplicate downstream by business key, and give the producer a stable "
        "transactional.id."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """What one producer wrote last, another wrote first, soon after."""
    earlier, later = case.row.number("earlier"), case.row.number("later")
    run = resent(case, context)
    if run is None:
        return None
    gap = gap_ms(case, context)
    hint = run.distinct < 2 or run.common_elsewhere
    if hint and earlier == NOBODY:
        return None
    who = (
        "writers without a producer id"
        if later == NOBODY
        else f"{_who(case, context, later)}, with the times they had by {_who(case, context, earlier)}"
        if run.same_times
        else f"{_who(case, context, later)}, {duration(gap)} after {_who(case, context, earlier)} had written them"
    )
    message = (
        f"{count(run.length, 'record')} with equal keys and values {'stands' if run.length == 1 else 'stand'} in the log twice: "
        f"{offsets(run.first[0], run.first[-1])}, and again {offsets(run.second[0], run.second[-1])} by {who}"
    )
    if hint:
        message += "; they are alike or occur elsewhere too, so this is only a hint"
    sure = earlier != NOBODY and run.length >= SURE_RUN and run.distinct >= SURE_RUN
    return Explanation(
        message,
        severity="info" if hint else "error" if sure else "warning",
        certainty="open" if hint else "likely",
        details={
            "original_first": run.first[0],
            "original_last": run.first[-1],
            "records": run.length,
            "distinct": run.distinct,
            "earlier": earlier,
            "gap_ms": gap,
        },
        named=id_of_producer(case, context, later),
        producer_id=later,
        first_offset=run.second[0],
        last_offset=run.second[-1],
        record_count=run.length,
    )


def _who(case: Case, context: "Context", producer_id: int) -> str:
    return whose(id_of_producer(case, context, producer_id), producer_id)
