"""T: what the coordinator decided, beside what the partitions show (KIP-98, KIP-664, KIP-890).

The coordinator writes one decision for a transaction into __transaction_state, and a marker into every partition that the transaction
lists. These rules lay the two beside each other: data without a marker, a marker without data, data behind its marker, two decisions.

Legal histories that look alike: data of the next transaction of the same producer id and epoch behind a marker (TV0/1); marker retries;
markers on registered partitions without data; a partition that is missing from the dump; a replica that is behind; a transaction open when
the dump was made.
"""
