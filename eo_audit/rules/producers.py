"""P: what a producer's sequences and epochs prove about one partition (KIP-98, KIP-360; `ProducerStateManager`).

P01  the same batch stands in the log twice, with at most four of the producer's batches between: the broker must have known the first one.
P02  the same batch stands in the log twice, further apart than the broker's window or than its memory for idle producers.
P03  a batch repeats some sequences of an earlier one in another shape.
P04  sequence numbers are skipped: records that a leader once accepted are not in this log.
P05  a batch or marker of an older epoch follows a newer one: a fenced producer wrote.
P06  a new epoch does not start at sequence 0: its first batches are missing.
P07  a producer's first batch here does not start at sequence 0: its past is unknown.
P08  a plain batch inside the producer's own open transaction: no broker appends that.

Legal histories that look alike: a sequence that wraps from 2147483647 to 0, a new epoch that restarts at 0, a log head removed by
retention, holes left by compaction,
`__consumer_offsets`, whose batches all carry sequence 0. The history labels those; these rules only read the labels.
"""

from eo_audit.rules.explain import producers as words_of
from eo_audit.rules.explain.producers import WINDOW
from eo_audit.rules.rule import Docs, Rule

STATE_LOST = (
    "the partition leader had no memory of this producer when the second copy came: a failover with a stale producer snapshot, an "
    "unclean election, "
    "or a state that expired (producer.id.expiration.ms; records with old timestamps expire at once)"
)


P01 = Rule(
    "P01",
    "dup-seq-in-window",
    "critical",
    ("producer_history",),
    "sequenced_batch",
    where=f"label = 'duplicate' AND data_batches_since_same < {WINDOW}",
    weight="same_identity_timestamp_ms - max_timestamp_ms",
    explain=words_of.duplicate,
    needs=("order",),
    docs=Docs(
        "The same batch (producer id, epoch, first and last sequence) was appended twice although the broker remembers the last "
        "five batches of a producer.",
        "Producer 2 writes sequences 2 to 3 at offset 9 and again at offset 23, with two of its batches between.",
        "A sequence that comes back after a full circle of 2^31 records; batches of __consumer_offsets, which all carry sequence "
        "0; a new epoch that restarts at 0.",
    ),
    cause=STATE_LOST,
    remedy=(
        "Nothing to repair in the log; safe to leave. Downstream, keep the copy with the lowest offset. Set "
        "producer.id.expiration.ms above delivery.timeout.ms and above the age of "
        "the oldest record sent, use message.timestamp.type=LogAppendTime on topics that are back-filled, and upgrade brokers "
        "older than 2.8 (KAFKA-9892)."
    ),
)
P02 = Rule(
    "P02",
    "dup-seq-out-of-window",
    "critical",
    ("producer_history",),
    "sequenced_batch",
    where=f"label = 'duplicate' AND data_batches_since_same >= {WINDOW}",
    weight="same_identity_timestamp_ms - max_timestamp_ms",
    explain=words_of.duplicate,
    needs=("order",),
    docs=Docs(
        "The same batch was appended twice, five or more of the producer's batches apart, or after it was idle longer than "
        "producer.id.expiration.ms.",
        "Producer 0 writes sequences 3 to 5, is idle for longer than the expiration, and writes them again.",
        "A sequence that comes back after a full circle of 2^31 records.",
    ),
    cause=STATE_LOST,
    remedy=(
        "Nothing to repair in the log; safe to leave. Downstream, keep the copy with the lowest offset. Set "
        "producer.id.expiration.ms above the longest time a producer may retry "
        "(delivery.timeout.ms) and look for producers that retry longer."
    ),
)
P03 = Rule(
    "P03",
    "seq-overlap",
    "critical",
    ("producer_history",),
    "sequenced_batch",
    where="label = 'overlap'",
    explain=words_of.overlap,
    needs=("order",),
    docs=Docs(
        "Two batches of one producer and epoch share some sequence numbers but not all: records were sent again in other batches.",
        "Sequences 0 to 4 at offset 0, then sequences 2 to 5 at offset 5.",
        "A batch that straddles the wrap: base sequence 2147483646, last sequence 1.",
    ),
    cause="a client re-batched its retry after the leader had lost the producer's state, or a client library numbers its retries wrongly",
    remedy=(
        "Nothing to repair in the log; safe to leave. De-duplicate downstream by sequence number per record, and find the client's "
        "library and version."
    ),
)
P04 = Rule(
    "P04",
    "seq-gap",
    "error",
    ("producer_history",),
    "sequenced_batch",
    where="label = 'gap'",
    weight="skipped_sequences",
    explain=words_of.gap,
    needs=("order", "past"),
    docs=Docs(
        "Between two neighbouring batches of one producer and epoch sequence numbers are missing, where the log itself has no hole.",
        "Sequences 0 to 1 at offset 9, sequences 4 to 5 at offset 14, nothing of the producer between.",
        "Sequence 2147483647 followed by 0; a hole that compaction left; a segment that was not dumped; an epoch that restarts at 0.",
    ),
    cause=(
        "records that an earlier leader accepted were lost (unclean election, truncation), or a broker from 2.5 on accepted any "
        "sequence after it had forgotten the producer"
    ),
    remedy=(
        "The records are not in this log: send them again from the source, by the range in details. Then check "
        "unclean.leader.election.enable=false, min.insync.replicas, "
        "and whether the leader changed at that offset."
    ),
)
P05 = Rule(
    "P05",
    "epoch-regression",
    "critical",
    ("producer_history",),
    "producer_batch",
    where="epoch_regression",
    explain=words_of.regression,
    needs=("order",),
    docs=Docs(
        "A batch or marker carries an epoch below one that the log already shows for the producer: the old owner wrote after it "
        "was fenced.",
        "Epoch 1 at offset 0, epoch 0 at offset 2.",
        "Different partitions that show different epochs of one idempotent producer at the same moment (the client raises them one "
        "by one).",
    ),
    cause="the leader had forgotten the fencing epoch: KAFKA-9144 up to 2.4.0, an expired producer state, an unclean election",
    remedy=(
        "Find the producer that still ran with the old epoch and stop it; treat its records as unfenced duplicates. Brokers older "
        "than 2.4.1 need an upgrade."
    ),
)
P06 = Rule(
    "P06",
    "bump-seq-not-zero",
    "error",
    ("producer_history",),
    "sequenced_batch",
    where="label = 'new_epoch_nonzero'",
    explain=words_of.new_epoch,
    needs=("order", "past"),
    docs=Docs(
        "The first batch of a higher epoch does not start at sequence 0, and nothing that could hold the missing part is missing "
        "from the dump.",
        "Epoch 0 ends at sequence 3; epoch 1 starts at sequence 4.",
        "A new epoch that starts at 0; a first batch behind a hole or a removed log head.",
    ),
    cause="the first batches of the epoch were lost, or the leader had no state of this producer and took what came",
    remedy=(
        "The records are not in this log: send them again from the source. Check unclean.leader.election.enable=false and "
        "min.insync.replicas."
    ),
)
P07 = Rule(
    "P07",
    "first-seq-not-zero",
    "info",
    ("producer_history",),
    "sequenced_batch",
    by="",
    where="label = 'first_nonzero'",
    explain=words_of.unknown_past,
    needs=("order",),
    docs=Docs(
        "The first batch seen of a producer does not start at sequence 0: its past is unknown and is not judged.",
        "On a broker with transaction.version 2 a transactional producer's first batch in the log starts at sequence 5.",
        "A log whose head was removed by retention or DeleteRecords; a broker from 2.5 on that had forgotten an idle producer.",
    ),
    cause="the beginning of the producer's history was removed (retention, DeleteRecords, compaction) or expired",
    remedy="Nothing to do. Older dumps of the same partition would show the missing past.",
)
P08 = Rule(
    "P08",
    "plain-in-open-txn",
    "critical",
    ("producer_history",),
    "transactional_batch",
    where="row_kind = 'data' AND NOT is_transactional AND in_open_transaction AND predecessor = 'observed'",
    explain=words_of.plain,
    needs=("order", "past"),
    docs=Docs(
        "A batch without the transactional flag lies between the producer's transactional data and its marker.",
        "Transactional batch at offset 6, plain batch of the same producer at offset 8, COMMIT at offset 10.",
        "A plain batch after the marker (the client is used in two modes); a marker that lies in a segment that was not dumped.",
    ),
    cause="nearly always a marker that is missing from the dump; else a corrupt segment, or files of two histories put together",
    remedy=(
        "Dump all segments of the partition again. If it is real, this replica can neither be replicated nor recovered: "
        "do not restart its broker before another replica leads; then delete this replica's directory and let it be fetched again."
    ),
)

RULES = (P01, P02, P03, P04, P05, P06, P07, P08)
