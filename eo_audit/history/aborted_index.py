"""Aborted transactions replayed from the log beside the entries of the `.txnindex` files: what S02 to S05 judge.

An ABORT marker that closes data has an entry (producer id, first offset, marker offset) in the index of its segment, and every entry has
such a marker (`ProducerStateManager`, `TransactionIndex`). Where that cannot be said, the row is `not_judged`, with the reason:
index_not_dumped (or dumped before its log, which went on); compacted (entries outlive their data, and data its entries); below_start (the
transaction began before the first dumped offset, or ended before the log start); hole; uncovered (behind a bad checksum, or beyond the end
of the dump); empty_abort (before 2.8, KAFKA-10702, an ABORT that closes nothing has an entry too, with first = last).
A broker's look-up ends at an entry whose lastStableOffset is too high (`model.visibility.look_up_ends_before`): entries behind it are in
the file, and yet not found.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def aborted_index(
    rows: DataFrame, spans: DataFrame, aborted_transactions: DataFrame, *, visibility: DataFrame, section_status: DataFrame
) -> DataFrame:
    """One row per aborted transaction of the log and per index entry, joined where they are the same.

    Args:
        rows: producer_history up to span_id; only markers that close nothing are read.
        spans: transaction_spans.
        aborted_transactions: the table.
        visibility: the table.
        section_status: the table, for the index sections that are read.
    """
    return run(
        "aborted_index",
        rows=rows,
        spans=spans,
        aborted_transactions=aborted_transactions,
        visibility=visibility,
        section_status=section_status,
    )
