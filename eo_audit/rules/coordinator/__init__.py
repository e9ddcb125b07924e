"""C: what the coordinator log alone proves (`TransactionMetadata`, `TransactionStateManager`; KIP-98, KIP-360, KIP-890).

Every entry of a transactional id is a step from the one before, and Kafka's source says which steps there are (`eo_audit/model/states.py`).
The history `coordinator_history` judges each step; these rules say what a wrong one means, and which transactions never came to their end.

Legal histories that look alike: ghost entries (their appends failed, a later entry was computed from the state before them), compaction (it
only removes the beginning of an id's story), KIP-939 transactions that never time out, TV2 epochs that rise with every transaction.
"""
