"""O03 unfenced-ctp: two producers committed offsets of one group and partition in transactions that were open at the same time.

Proves: Two producers had a commit of the same group and partition parked at the same time, both were applied, and the later one goes no
further than the earlier: both processed this input, and neither fenced the other. What they wrote for it stands twice.

Bad history: settlement-host-a commits orders-0 up to 100, settlement-host-b commits orders-0 up to 100 before the marker of the first, and
both commit.

Legal look-alike: A hand-over in a rebalance, where the marker of the old owner comes before the new owner's commit; a consumer that takes
its producers from a pool, one after another: the coordinator answers it before the markers are written, so the next commit, which goes
further, may stand before the marker of the one before (an info); two producers of which one was aborted; a hole in which a marker may have
been.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.offsets.words import committed, group_of, place, times
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import whose
from eo_audit.rules.writers import ASKS, id_of_producer
from eo_audit.words import shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="O03",
    slug="unfenced-ctp",
    severity="error",
    reads=("group_offsets",),
    subject="group_offset undecoded_offsets",
    needs=("order", "epochs", "past", "decoded"),
    # By the order of one log, and no clock: the commit of the one lies between the commit and the marker of the other. A new owner cannot
    # get there: its consumer is told to wait while offsets are parked (KIP-447), or has the same transactional.id, which aborts the old
    # one.
    where="is_unfenced",
    by="group",
    # Two that processed the same input speak first.
    weight="CASE WHEN committed_offset <= parked_committed_offset THEN 1 ELSE 0 END",
    columns="committed_offset marker_offset parked_offset parked_producer_id parked_committed_offset parked_marker_offset",
    asks=ASKS,
    producers=("producer_id", "parked_producer_id"),
    cause=(
        "the transactional.id does not name the input partition, and the offsets are sent without the group's metadata (KIP-447), or the "
        "consumers do not read with isolation.level=read_committed"
    ),
    remedy=(
        "Nothing to abort. Stop the owner that should not be there, and look for output that stands twice (P12). Use one transactional.id "
        "per input partition, or sendOffsetsToTransaction with consumer.groupMetadata() and isolation.level=read_committed (brokers and "
        "clients from 2.5 on)."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Both owners, and where their commits and markers stand."""
    row, group = case.row, group_of(case)
    producers = row.number("parked_producer_id"), row.number("producer_id")
    ids = [id_of_producer(case, context, producer) for producer in producers]
    first, second = (whose(name, producer) for name, producer in zip(ids, producers, strict=True))
    same_input = row.number("committed_offset") <= row.number("parked_committed_offset")
    ends = (
        "Neither fenced the other, so both processed this input"
        if same_input
        else "The later commit goes further: one consumer with a pool of producers looks like this as well as two owners"
    )
    message = (
        f"{first} and {second} both committed offsets of group {shown(group)} for {committed(row)} while the other's markers were to come"
        f"{times(case)}: at offsets {row.maybe('parked_offset')} and {case.examples[0].first} of {place(case)}, with COMMIT markers at "
        f"{row.maybe('parked_marker_offset')} and {row.maybe('marker_offset')}. {ends}"
    )
    # A marker that the cleaner took too early would look like this (KAFKA-13727).
    certainty = "open" if not same_input else "likely" if _is_cleaned(case) else "definite"
    return Explanation(
        message,
        severity=None if same_input else "info",
        certainty=certainty,
        remedy=None if same_input else _POOL,
        details={
            "producer_ids": list(producers),
            "transactional_ids": ids,
            "committed_offsets": [row.maybe("parked_committed_offset"), row.maybe("committed_offset")],
            "times": case.hits,
        },
        named=ids[1],
        producers=producers,
        group=group,
    )


# `TransactionCoordinator.endTransaction` answers when the decision is in its log; the markers follow.
_POOL = (
    "Nothing to repair if one consumer sends these offsets, through one producer after another. If the two are different consumers, stop "
    "the owner that should not be there, and look for output that stands twice (P12)."
)


def _is_cleaned(case: Case) -> bool:
    numbers = case.log.numbers if case.log else None
    return (
        numbers is not None and numbers.flag("compacted") and (numbers.maybe("uncleaned_from") or 2**62) > case.row.number("parked_offset")
    )
