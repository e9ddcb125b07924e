"""T: what the coordinator decided, beside what the partitions show (KIP-98, KIP-664, KIP-890).

T01  a transaction is open at the end of a log and no coordinator entry will ever end it.
T02  data of a transaction stands behind the marker that ended it.
T05  a completed transaction left a partition without its marker.
T06  one transaction was committed in one place and aborted in another.
T07  data of a transaction on a partition that the coordinator never heard of.
T10  a marker whose epoch cannot belong to the data it closes; data of two epochs in one open interval.
T12  a transaction is open at the end of the dump, and the coordinator knows it.
T13  an operator aborted the transaction on this partition by hand.
T15  data that the coordinator aborted is closed by the COMMIT of a later transaction.

Legal histories that look alike: data of the next transaction of the same producer id and epoch behind a marker (TV0/1); marker retries;
markers
on registered partitions without data; a partition that is missing from the dump; a replica that is behind; a transaction open when the dump
was made.
"""

from eo_audit.rules.decisions import contradictions
from eo_audit.rules.explain import transactions as words_of
from eo_audit.rules.rule import Docs, Rule

UNVERIFIED = "the partition leader took a transactional write without asking the coordinator (KAFKA-12671, KAFKA-14402)"


DATA = "row_kind = 'data'"
RAISED = "producer_epoch - previous_epoch"
# A coordinator's own ABORT may have any epoch that its PrepareAbort has: KAFKA-9666 burns epochs.
ODD_MARKER = f"""row_kind = 'marker' AND in_open_transaction AND NOT (marker_type = 'ABORT' AND coalesce(marker_role, '') = 'closing')
    AND NOT ({RAISED} BETWEEN 0 AND CASE marker_type WHEN 'COMMIT' THEN 1 ELSE 2 END)"""
SECOND_EPOCH = f"{DATA} AND is_transactional AND in_open_transaction AND {RAISED} <> 0"

T01 = Rule(
    "T01",
    "hanging-txn",
    "critical",
    ("transaction_spans",),
    "transactional_batch",
    where="outcome = 'open'",
    explain=words_of.hanging,
    needs=("order", "past", "end", "coordinator"),
    docs=Docs(
        "A transaction is open at the end of a log, and the coordinator does not hold it open for this partition: it holds back "
        "every read_committed consumer for ever.",
        "Transactional data at offsets 6 to 8, no marker behind it; the coordinator's last entry for the producer is CompleteAbort.",
        "A transaction that the coordinator lists as Ongoing or PrepareCommit (T12); a replica that is behind; back-dated timestamps.",
    ),
    cause=f"a late or unregistered write: {UNVERIFIED}; or a marker that compaction or an unclean election removed",
    remedy="See the finding: the abort command is built from the partition and the first offset.",
)
T02 = Rule(
    "T02",
    "late-data-after-marker",
    "critical",
    ("producer_history",),
    "transactional_batch",
    where=f"{DATA} AND late IN ('proved', 'suspected')",
    explain=words_of.late,
    needs=("order", "past", "assigned"),
    weight="CASE late WHEN 'proved' THEN 1 ELSE 0 END",
    docs=Docs(
        "Transactional data stands behind the marker of its own transaction, and no later transaction of the producer covers it.",
        "Data, ABORT, then more data of the same epoch; the coordinator's next transaction does not list the partition or never began.",
        "The next transaction of the same producer: under TV0/1 with the same epoch, under TV2 with the epoch of the marker.",
    ),
    cause=f"a delayed produce request (network, retries): {UNVERIFIED}",
    remedy=(
        "Look at T01 and T15 for what became of the records. Turn on transaction.partition.verification.enable (3.6 and later) or "
        "transaction.version=2. "
        "Nothing to abort here by itself."
    ),
)
T05 = Rule(
    "T05",
    "missing-marker",
    "critical",
    ("instance_partitions",),
    "transactional_batch registered_partition",
    where="coverage = 'covered' AND marker_match = 'missing'",
    explain=words_of.missing,
    needs=("order", "past", "end", "matched", "coordinator", "dumped"),
    docs=Docs(
        "The coordinator completed a transaction, the partition was registered in it, the dump reaches past its completion, and "
        "there is no marker.",
        "CompleteCommit lists orders-1; orders-1 has the data and no COMMIT.",
        "A transaction whose last entry is PrepareCommit (C02); a partition whose topic was deleted; a removed log head; a cleaned marker.",
    ),
    cause=(
        "the log lost its end (unclean election, truncation), the topic was created again, or the coordinator dropped the marker "
        "(KAFKA-10080, KAFKA-9777)"
    ),
    remedy="See the finding: it depends on whether the decision was COMMIT and whether data is there.",
)
T06 = Rule(
    "T06",
    "mixed-markers",
    "critical",
    ("instance_partitions", "producer_history", "visibility"),
    "transactional_batch registered_partition",
    where="marker_match = 'contradictory'",
    find=contradictions,
    explain=words_of.mixed,
    needs=("order", "past", "matched", "coordinator", "dumped"),
    docs=Docs(
        "One transaction ended with COMMIT in one place and ABORT in another: atomicity is broken.",
        "The coordinator decided ABORT; orders-0 has the ABORT, orders-1 a COMMIT of the same transaction.",
        "PrepareCommit followed by PrepareAbort in the coordinator log alone (a ghost record): only markers count.",
    ),
    cause=(
        "an operator aborted a live transaction, a failover between two decisions, or a delayed EndTxn of an older transaction "
        "(KAFKA-17754)"
    ),
    remedy=(
        "Nothing to abort. List the records on both sides (offsets in this finding and in the other partitions of the transaction) "
        "and correct them downstream: "
        "a log cannot be changed."
    ),
)
T07 = Rule(
    "T07",
    "unregistered-partition",
    "error",
    ("producer_history",),
    "transactional_batch",
    where=f"{DATA} AND registration = 'unregistered' AND coalesce(late, 'no') = 'no'",
    explain=words_of.unregistered,
    needs=("order", "past", "assigned"),
    docs=Docs(
        "Transactional data on a partition that is in no transaction of its producer in that interval.",
        "A producer writes to orders-1, but the coordinator lists only orders-0.",
        "TV2 adds the partition just before the write; a coordinator log that is compacted, so that the list is gone.",
    ),
    cause=(
        f"the client wrote before or without AddPartitionsToTxn, or a record landed in the wrong topic (KAFKA-19012, clients from 2.8 "
        f"on); {UNVERIFIED}"
    ),
    remedy=(
        "Upgrade the client; use brokers from 3.6 on, or transaction.version=2. If T01 reports the data as hanging, follow its "
        "remedy first."
    ),
)
T10 = Rule(
    "T10",
    "marker-epoch-invalid",
    "error",
    ("producer_history",),
    "marker",
    where=f"(({ODD_MARKER}) OR ({SECOND_EPOCH})) AND predecessor = 'observed'",
    explain=words_of.epoch,
    needs=("order", "past"),
    docs=Docs(
        "A COMMIT has the epoch of its data (TV0/1) or one more (TV2), an ABORT up to two more; data of one open transaction has "
        "one epoch.",
        "Data of epoch 0, COMMIT of epoch 3.",
        "A fence or a timeout: ABORT of epoch 1 for data of epoch 0; an operator's ABORT with the data's epoch.",
    ),
    cause="a corrupt or edited segment, or data that was left open and then continued by a newer epoch",
    remedy="Compare the segment with another replica. Do not abort anything on this evidence alone.",
)
T12 = Rule(
    "T12",
    "open-at-dump-end",
    "info",
    ("transaction_spans",),
    "transactional_batch",
    where="outcome = 'open'",
    explain=words_of.open,
    needs=("order", "end", "coordinator"),
    docs=Docs(
        "A transaction was open when the dump was made, and the coordinator knows it. Not a fault: it explains the LSO.",
        "Ongoing for 2 s of 60 s, data at offsets 2 to 3.",
        "A hanging transaction (T01), which the coordinator does not list.",
    ),
    cause="the dump was made while a transaction was running",
    remedy="Nothing to do: the client or the coordinator will end it. Do not abort it by hand.",
)
T13 = Rule(
    "T13",
    "manual-abort",
    "info",
    ("producer_history",),
    "marker",
    where="marker_role = 'manual'",
    explain=words_of.manual,
    needs=("order", "assigned"),
    docs=Docs(
        "An ABORT without a coordinator decision, with the data's own epoch and an old coordinator epoch: kafka-transactions.sh or "
        "Admin.abortTransaction.",
        "Coordinator says CompleteCommit, the partition shows an ABORT with coordinator epoch 0.",
        "A coordinator's ABORT of a client that gave up: the coordinator log has its PrepareAbort.",
    ),
    cause="an operator ended a hanging transaction on this partition",
    remedy="Nothing to abort. If the transaction was committed elsewhere, publish the records of this partition again.",
)
T15 = Rule(
    "T15",
    "merged-txn",
    "critical",
    ("producer_history",),
    "transactional_batch",
    where=f"{DATA} AND instance_decision = 'ABORT' AND span_outcome = 'committed'",
    explain=words_of.merged,
    needs=("order", "past", "assigned"),
    docs=Docs(
        "Records whose transaction was aborted are closed by the COMMIT of the producer's next transaction: consumers get aborted data.",
        "Data of transaction 1 (ABORT decided, marker lost), data of transaction 2, COMMIT.",
        "Two transactions of one producer and epoch with a marker between them.",
    ),
    cause="the ABORT marker was lost on this partition, or the data was written after it (late write)",
    remedy=(
        "Nothing to abort: the records are committed for every reader. Find them by the offsets, correct downstream, and compare "
        "the replicas of this partition for the lost marker."
    ),
)

RULES = (T01, T02, T05, T06, T07, T10, T12, T13, T15)
