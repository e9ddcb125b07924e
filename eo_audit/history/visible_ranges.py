"""Which existing record offsets a consumer gets of each replica log: maximal runs.

A batch holds every offset of its range unless the cleaner took some: then its record lines say which are left. Markers hold no records.
Two readers of the read_committed view: one starts at the log start and reads on; the other is one fetch from each segment's base, with
the index looked up to the end of the segment. Where an index was not dumped the view shows what a sound index would give.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def visible_ranges(
    rows: DataFrame, records: DataFrame, visibility: DataFrame, *, section_status: DataFrame, chunk_bits: int | None = None
) -> DataFrame:
    """Maximal runs of the offsets that each view and reader gets.

    Args:
        rows: producer_history.
        records: the table; only those of sections that the cleaner has worked on are read.
        visibility: the table.
        section_status: the table, for sections that show cleaning.
        chunk_bits: None puts each log together in one piece; else runs are first made within 2**chunk_bits offsets of a segment.
    """
    pieces = run("visible_pieces", rows=rows, records=records, visibility=visibility, section_status=section_status)
    if chunk_bits is not None:
        pieces = run("visible_pieces_in_chunks", pieces=pieces, chunk_bits=chunk_bits)
    return run("visible_ranges", pieces=pieces, visibility=visibility)
