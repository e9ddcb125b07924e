"""O: the offsets that consumer groups commit in transactions, so that input and output count together or not at all (KIP-98, KIP-447).

The group coordinator reads `__consumer_offsets` itself: it parks what a transaction commits until the marker of its producer, and asks no
aborted index (`GroupMetadata`, `OffsetMetadataManager`). Groups that commit outside of transactions only were promised nothing.

Legal histories that look alike: offsets that an operator reset, an application that seeks, offsets that expired or whose topic was created
anew; a compacted log, of which only the newest commit of each partition surely stands; a hand-over in a rebalance; one application with a
pool of producers.
"""
