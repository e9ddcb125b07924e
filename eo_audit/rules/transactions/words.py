"""Sentences that several rules of this family share."""

# Leaders ask the coordinator only from 3.6 on (KIP-890, transaction.partition.verification.enable).
UNVERIFIED = "the partition leader took a transactional write without asking the coordinator (KAFKA-12671, KAFKA-14402)"
# The last of it: `TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue`; a single broker of 4.3.1 that was restarted does so.
LOST = (
    "the log lost its end (unclean election, truncation), the topic was created again, or the coordinator dropped the marker (KAFKA-10080, "
    "KAFKA-9777; its log says `likely deleted already and hence can be skipped` where it knew no leader of the partition)"
)
DATA = "row_kind = 'data'"
