"""Sentences that several rules of this family share."""

from typing import TYPE_CHECKING

from eo_audit.rules.identity.resends import Run, head, repeated, suffix_as_prefix, tail
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RESTART_WINDOW_MS = 900_000  # a restart takes minutes; what comes later is rarely the same job going on


def resent(case: Case, context: "Context") -> Run | None:
    """The records that one producer wrote last and the other first, soon after; of one producer, what it wrote twice."""
    earlier, later = case.row.number("earlier"), case.row.number("later")
    first, second = edges(case, context, earlier), edges(case, context, later)
    if not first or not second:
        return None
    if earlier == later:
        return max((repeated(records) for records in (head(first), tail(first))), key=lambda run: run.length if run else 0)
    # A restarted producer counts from 0 again; one that goes on has been answered, and sends nothing twice.
    starts_anew = second[0].maybe("first_base_sequence") in (0, None)
    follows = second[0].number("first_offset") > first[-1].number("last_offset")
    run = suffix_as_prefix(tail(first), head(second)) if starts_anew and follows else None
    gap = gap_ms(case, context)
    # Clients set these times: where they are missing they rule nothing out, nor where the records came with their times (event times).
    soon = gap is None or gap <= RESTART_WINDOW_MS
    return run if run is not None and (soon or run.same_times) else None


def edges(case: Case, context: "Context", producer_id: int) -> list[Row]:
    """What is known of the first and last records of a producer, in offset order."""
    return context.edges.get((case.log.log_id, producer_id), []) if case.log else []


def gap_ms(case: Case, context: "Context") -> int | None:
    """How long after the one had ended the other began."""
    first, second = edges(case, context, case.row.number("earlier")), edges(case, context, case.row.number("later"))
    ended, began = first[-1].maybe("last_timestamp_ms"), second[0].maybe("first_timestamp_ms")
    return None if ended is None or began is None else began - ended
