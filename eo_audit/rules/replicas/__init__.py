"""R: the log as a sequence of batches, and what of it the dumps show (`UnifiedLog`, `RecordBatch`).

Nothing behind a bad checksum or a disorder is judged, and nothing is concluded across a hole. Legal histories that look alike: the last
batch of a segment that is being written, compaction, the same segment dumped twice, a head removed by retention.
"""
