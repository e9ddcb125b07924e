"""L: what read_committed consumers get (`UnifiedLog.lastStableOffset`, `ProducerStateManager`, the consumer's aborted-transaction filter;
KIP-98).

Consumers read up to the last stable offset, the first offset of the oldest open transaction, and drop what the `.txnindex` calls aborted.
These rules compare what they get with what the coordinator decided.

Legal histories that look alike: a transaction that is open inside its timeout; data above the last stable offset, which nobody judges yet;
emptied batches; aborted data that the cleaner removed with its index entry.
"""
