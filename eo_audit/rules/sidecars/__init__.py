"""S: the aborted index beside the log (`TransactionIndex`, `AbortedTxn`; KIP-98).

A broker answers a read_committed fetch from the `.txnindex` files, not from the markers: what an index says wrongly is what consumers get.

Legal histories that look alike: an entry that stays when its data was compacted away; empty aborts, which have entries before 2.8 and none
later; a first offset below the log start; an index that was not dumped.
"""
