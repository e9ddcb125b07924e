"""P13 payload-dup-across-epochs: a producer raised its epoch and sent its last records again.

Proves: What a producer wrote last in one epoch, it wrote first in the next: the same keys and values, in the same order.

Bad history: Epoch 0 ends with A B C, epoch 1 of the same producer begins, at sequence 0, with A B C.

Legal look-alike: Heartbeats and other records that are all alike; a transactional producer, whose next epoch follows an abort; an epoch
that begins with other records, or whose first records are not the last of the one before.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

from eo_audit.rules.identity.epoch_resends import next_epochs
from eo_audit.rules.identity.resends import Run, head, suffix_as_prefix, tail
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import whose
from eo_audit.rules.writers import id_of_producer
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

SURE_RUN = 2  # different records in a row; one alone may be what the application wrote twice

RULE = Rule(
    code="P13",
    slug="payload-dup-across-epochs",
    severity="warning",
    reads=("producer_edges",),
    subject="producer_edge epochless_batch",
    # Without printed payloads there are no hashes, and silence proves nothing.
    needs=("epochs", "payload"),
    find=next_epochs,
    found="producer_id producer_epoch",
    asks=("edges", "last_of_producer"),
    cause=(
        "the client gave up on batches whose answer was lost, raised its epoch by itself and sent them again, though they had been written "
        "(delivery.timeout.ms, OutOfOrderSequenceException): the broker removes duplicates only within one epoch"
    ),
    remedy=(
        "Nothing to repair in the log. De-duplicate downstream by business key. Find out why answers were lost for so long, and raise "
        "delivery.timeout.ms above the longest outage; a transactional producer has no such resends."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """The longest resend speaks; records that are all alike are a hint only."""
    if case.log is None:
        return None
    producer = case.row.number("producer_id")
    rows = context.edges.get((case.log.log_id, producer), [])
    name = id_of_producer(case, context, producer)
    epochs = {example.row.number("producer_epoch") for example in case.examples}
    runs = [(run, now) for before, now in pairwise(rows) if (run := _resent(before, now, epochs)) is not None]
    if not runs:
        return None
    run, now = max(runs, key=lambda one: one[0].length)
    hint = run.distinct < SURE_RUN or run.common_elsewhere
    message = (
        f"{count(run.length, 'record')} of {whose(name, producer)} with equal keys and values {'stands' if run.length == 1 else 'stand'} "
        f"in the log twice: {offsets(run.first[0], run.first[-1])}, and again {offsets(run.second[0], run.second[-1])}, where it began "
        f"epoch {now.number('producer_epoch')}"
    )
    if hint:
        message += "; they are alike, few, or occur elsewhere too, so this is only a hint"
    return Explanation(
        message,
        severity="info" if hint else "warning",
        certainty="open" if hint else "likely",
        details={"original_first": run.first[0], "original_last": run.first[-1], "records": run.length, "epochs": len(runs)},
        named=name,
        producer_id=producer,
        producer_epoch=now.number("producer_epoch"),
        first_offset=run.second[0],
        last_offset=run.second[-1],
        record_count=run.length,
    )


def _resent(before: Row, now: Row, epochs: set[int]) -> Run | None:
    """What the one epoch ended and the next began with, where it is one of those that were found."""
    is_next = now.number("producer_epoch") == before.number("producer_epoch") + 1
    return suffix_as_prefix(tail([before]), head([now])) if is_next and now.number("producer_epoch") in epochs else None
