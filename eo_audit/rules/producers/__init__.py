"""P: what a producer's sequences and epochs prove about one partition (KIP-98, KIP-360; `ProducerStateManager`).

A broker remembers the last five batches of a producer id and takes only the batch that goes on from them (`ProducerAppendInfo`). What lies
in a log against that was taken by a broker that had forgotten the producer, or lost records afterwards.

Legal histories that look alike: a sequence that wraps from 2147483647 to 0, a new epoch that restarts at 0, a log head removed by
retention, holes left by compaction, `__consumer_offsets`, whose batches all carry sequence 0. The history labels those; these rules only
read the labels.
"""
