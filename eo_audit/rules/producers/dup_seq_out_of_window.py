"""P02 dup-seq-out-of-window: the same batch stands in the log twice, further apart than the broker's window or than its memory for idle
producers.

Proves: The same batch was appended twice, five or more of the producer's batches apart, or after it was idle longer than
producer.id.expiration.ms.

Bad history: Producer 0 writes sequences 3 to 5, is idle for longer than the expiration, and writes them again.

Legal look-alike: A sequence that comes back after a full circle of 2^31 records; on brokers up to 2.3 a producer that numbers anew because
all its records were deleted (KAFKA-7190).
"""

from eo_audit.rules.producers import dup_seq_in_window
from eo_audit.rules.producers.words import EXPIRATION, STATE_LOST, WINDOW
from eo_audit.rules.rule import Rule
from eo_audit.rules.writers import ASKS

RULE = Rule(
    code="P02",
    slug="dup-seq-out-of-window",
    severity="critical",
    reads=("producer_history",),
    subject="sequenced_batch",
    needs=("order", "epochs"),
    where=f"label = 'duplicate' AND data_batches_since_same >= {WINDOW}",
    # As for P01, whose words these are: the copies that lie closest first.
    weight="same_identity_timestamp_ms - max_timestamp_ms",
    columns=dup_seq_in_window.RULE.columns,
    asks=ASKS,
    cause=STATE_LOST,
    remedy=(
        "Nothing to repair in the log; safe to leave. Downstream, keep the copy with the lowest offset. "
        f"Set {EXPIRATION} above the longest time a producer may retry (delivery.timeout.ms) and look for "
        "producers that retry longer."
    ),
)

# The same words for both: how far the copies lie apart, and for how long, tells there which of the two rules it is.
explain = dup_seq_in_window.explain
