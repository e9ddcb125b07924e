"""Sentences that several rules of this family share."""

# Leaders ask the coordinator only from 3.6 on (KIP-890, transaction.partition.verification.enable).
UNVERIFIED = "the partition leader took a transactional write without asking the coordinator (KAFKA-12671, KAFKA-14402)"
DATA = "row_kind = 'data'"
