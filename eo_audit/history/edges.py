"""producer_edges: the first and the last records of one producer id and epoch in one replica log, as hashes."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run

EDGE_RECORDS = 64
EDGE_RECORDS_OF_NOBODY = 512
EDGE_EPOCHS = 16
_BLOCK_BITS = 20
_ONE_BLOCK = 63  # bits: no offset is so large


def producer_edges(rows: DataFrame, records: DataFrame, replica_logs: DataFrame, *, chunked: bool = False) -> DataFrame:
    """The table producer_edges: one row per producer id and epoch, of topics that clients write.

    Args:
        rows: the table producer_history; it is read four times.
        records: the records table.
        replica_logs: the replica_logs table.
        chunked: look for the edges in blocks of offsets first, so that a huge producer is many tasks. The rows are the same.
    """
    kept = run("edge_epochs", rows=rows, replica_logs=replica_logs, most=EDGE_EPOCHS)
    batches = run(
        "edge_batches",
        rows=rows,
        kept=kept,
        block_bits=_BLOCK_BITS if chunked else _ONE_BLOCK,
        records_of=EDGE_RECORDS,
        of_nobody=EDGE_RECORDS_OF_NOBODY,
    )
    return run("producer_edges", kept=kept, batches=batches, records=records)
