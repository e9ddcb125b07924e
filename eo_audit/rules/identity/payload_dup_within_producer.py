"""P16 payload-dup-within-producer: a producer wrote records again under other sequences.

Proves: Records stand in the log twice, by one producer, with the same keys and values in the same order, and readers get both: the second
copy has sequences of its own, so the broker took it for new records.

Bad history: Sequences 0 to 2 are A B C; an answer is lost; sequences 5 to 7 of the same producer are A B C again.

Legal look-alike: Heartbeats and states, which repeat themselves; a log of which more than a tenth is repeated, where equal records say
nothing; what was sent again because its transaction was aborted; the same sequences twice, which is a broker's fault and not a client's.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.waiting import whose
from eo_audit.rules.writers import ASKS, id_of_producer
from eo_audit.words import count, duration, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

SURE_RUN = 3  # as in P12: so many different records in the same order again are no accident

RULE = Rule(
    code="P16",
    slug="payload-dup-within-producer",
    severity="warning",
    reads=("repeated_records",),
    subject="producer_edge epochless_batch",
    # Without printed payloads there are no hashes, and silence proves nothing.
    needs=("epochs", "payload"),
    where="true",
    weight="records",
    columns="records original_first_offset original_last_offset first_sequence apart_ms",
    asks=ASKS,
    cause=(
        "the application sent the records again when it got no answer in time, or its client gave them new sequences when it sent them "
        "again (KafkaJS does, `idempotent` or not): the broker removes duplicates by sequence only"
    ),
    remedy=(
        "Nothing to repair in the log. De-duplicate downstream by business key. Leave it to the client to send again (delivery.timeout.ms "
        "above the longest outage); what an application must send again itself belongs in a transaction, which is aborted first. Of a "
        "client that counts wrongly look for missing records, too: a broker takes new ones under sequences that it has for repeats, and "
        "acknowledges them."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The longest run speaks; a few records alone are a hint only."""
    row, told = case.row, case.examples[0]
    producer, records, apart_ms = row.number("producer_id"), row.number("records"), row.maybe("apart_ms")
    original = row.number("original_first_offset"), row.number("original_last_offset")
    name = id_of_producer(case, context, producer)
    message = (
        f"{count(records, 'record')} of {whose(name, producer, row.number('producer_epoch'))} with equal keys and values "
        f"{'stands' if records == 1 else 'stand'} in the log twice: {offsets(*original)}, and again {offsets(told.first, told.last)}, "
        f"from sequence {row.number('first_sequence')} on"
    )
    if apart_ms is not None:
        message += f", {duration(apart_ms)} later"
    if case.hits > 1:
        message += f"; {count(case.records, 'record')} in {case.hits} places in all"
    hint = records < SURE_RUN
    if hint:
        message += "; so few may be what the application wrote twice on purpose, so this is only a hint"
    return Explanation(
        message,
        severity="info" if hint else "warning",
        certainty="open" if hint else "likely",
        details={
            "original_first": original[0],
            "original_last": original[1],
            "records": records,
            "places": case.hits,
            "apart_ms": apart_ms,
        },
        named=name,
    )
