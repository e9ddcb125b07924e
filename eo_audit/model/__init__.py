"""What does Kafka promise? The law in plain Python: no pyspark, nothing of ours.

In production run, because histories and the audit import them: `states` (the legal steps, made into SQL), `abort_cause` (its words and
limits; the windows decide), `alignment` (over the logs whose markers the windows cannot place), `abort_in_data`.

The others are the reference that agreement tests hold the windows to, row by row: `batches`, `sequences`, `producer_history`,
`entries`, `coordinator`, `protocols`, `instances`, `lso`, `visibility`, `aborted_index`. `producer_state` is what a partition leader
accepts: it makes the random logs that must give no finding.
"""
