"""P09 pid-mixed-mode: one producer id wrote inside transactions and outside of them.

Proves: A producer id has both transactional and plain batches: the plain ones are read at once, and no abort takes them back.

Bad history: Producer 0 writes offsets 6 and 7 in a transaction, and 8 and 9 without one, there or in another partition.

Legal look-alike: An idempotent and a transactional producer of one application, each with its own producer id; batches without a
producer id; offset commits inside a transaction.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.producers.mixed_mode import COLUMNS, outside
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P09",
    slug="pid-mixed-mode",
    severity="warning",
    reads=("producer_history", "transaction_spans", "transaction_instances", "visibility"),
    subject="producer_batch",
    # Not `past`: nothing that a hole hides could make it right.
    needs=("order",),
    # KafkaProducer sets the transactional flag by its configuration, for all of its batches (`TransactionManager.isTransactional`).
    find=outside,
    found=COLUMNS,
    asks=ASKS,
    caused_by=("P08",),
    cause=(
        "a client that is no Java client and uses one producer in two modes, a producer id that was given out twice (its block was reset), "
        "or files of two clusters put together"
    ),
    remedy=(
        "Use one producer object in one mode only. If the client is the Java client, look whether the cluster gave the producer id out "
        "twice (a restored ZooKeeper or KRaft metadata log). Records written outside of the transaction stay visible after an abort: "
        "remove them downstream if they were meant to be part of it."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first plain batch speaks."""
    row = case.row
    message = (
        f"{count(case.records, 'record')} of {who(case, context)}, which writes transactions, "
        f"{'stands' if case.records == 1 else 'stand'} outside of any in this partition, the first at "
        f"{offsets(row.maybe('base_offset'), row.maybe('last_offset'))}: no abort takes those back"
    )
    return Explanation(message, named=id_of(case, context), details={"plain_batches": case.hits})
