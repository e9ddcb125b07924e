"""P01 dup-seq-in-window: the same batch stands in the log twice, with at most four of the producer's batches between: the broker must have
known the first one.

Proves: The same batch (producer id, epoch, first and last sequence) was appended twice although the broker remembers the last five batches
of a producer.

Bad history: Producer 2 writes sequences 2 to 3 at offset 9 and again at offset 23, with two of its batches between.

Legal look-alike: A sequence that comes back after a full circle of 2^31 records; batches of __consumer_offsets, which all carry sequence 0;
a new epoch that restarts at 0; on brokers up to 2.3 a producer that numbers anew because all its records were deleted (KAFKA-7190).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.producers.words import EXPIRATION, STATE_LOST, WINDOW, leader_changed, sequences
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, duration, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P01",
    slug="dup-seq-in-window",
    severity="critical",
    reads=("producer_history",),
    subject="sequenced_batch",
    # Both copies are there: nothing that was not dumped makes one of them right.
    needs=("order", "epochs"),
    where=f"label = 'duplicate' AND data_batches_since_same < {WINDOW}",
    # The closest copies tell most: the broker had the least excuse to have forgotten the first.
    weight="same_identity_timestamp_ms - max_timestamp_ms",
    columns=(
        "data_batches_since_same same_identity_leader_epoch partition_leader_epoch base_offset last_offset same_identity_offset "
        "max_timestamp_ms same_identity_timestamp_ms base_sequence last_sequence"
    ),
    asks=ASKS,
    cause=STATE_LOST,
    remedy=(
        "Nothing to repair in the log; safe to leave. Downstream, keep the copy with the lowest offset. "
        f"Set {EXPIRATION} above delivery.timeout.ms and above the age of the oldest record sent, "
        "use message.timestamp.type=LogAppendTime on topics that are back-filled, and upgrade brokers older than 2.8 (KAFKA-9892)."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The least separated copies decide whether it is this rule or P02: examples come with those first."""
    row, gap = case.row, _gap_ms(case)
    expiration = context.cluster(case.log.cluster).maybe("producer_id_expiration_ms") if case.log else None
    idle = gap is not None and expiration is not None and gap >= expiration
    between = row.number("data_batches_since_same")
    rule = "P02" if idle or between >= WINDOW else "P01"
    apart = f"{count(between, 'batch', 'batches')} of the producer and {duration(gap)} apart" if between else f"{duration(gap)} apart"
    leader = leader_changed(row.maybe("same_identity_leader_epoch"), row.maybe("partition_leader_epoch"))
    stand = "stands" if case.records == 1 else "stand"
    one_of = "" if case.hits == 1 else f" ({case.hits} batches; the closest copies are these)"
    message = (
        f"{count(case.records, 'record')} of {who(case, context)} {stand} in the log twice{one_of}: {sequences(case)} at "
        f"{offsets(row.maybe('base_offset'), row.maybe('last_offset'))} and before at offset {row.maybe('same_identity_offset')}, "
        f"{apart}{leader}"
    )
    details = {
        "original_offset": row.maybe("same_identity_offset"),
        "batches_between": between,
        "gap_ms": gap,
        "producer_id_expiration_ms": expiration,
        "batches": case.hits,
        "idle_longer_than_expiration": idle,
    }
    return Explanation(message, named=id_of(case, context), rule=rule, details=details)


def _gap_ms(case: Case) -> int | None:
    at, before = case.row.maybe("max_timestamp_ms"), case.row.maybe("same_identity_timestamp_ms")
    return None if at is None or before is None else at - before
