"""I and P12: one job under two identities, which no broker can tell from two jobs.

Only hashes of keys and values of each producer's first and last records are compared. Legal histories that look alike: heartbeats and other
payloads that repeat by nature; records sent again because their transaction was aborted; ids that share a partition on purpose; Kafka
Streams, where the consumer group fences, or each task has its own id.
"""
