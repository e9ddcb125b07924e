"""X: what the cleaner does to transactions in compacted topics (`LogCleaner`, `CleanedTransactionMetadata`).

The cleaner works below the last stable offset only, drops aborted records at once, and keeps a marker as long as a batch of its transaction
is there: below its checkpoint every record that is left has its marker.

Legal histories that look alike: batches that the cleaner has emptied and keeps for the producer's sequence numbers; markers that went with
the last batch of their transaction; all that lies above the checkpoint.
"""
