"""group_offsets: what became of the offsets that consumer groups committed in transactions: what the rules O01 to O06 judge.

The group coordinator asks no aborted index: it parks what a transaction commits until the producer's marker comes, and applies or drops it
then. So an offset has a fate of its own, and counts from its marker on.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def group_offsets(offset_commits: DataFrame, rows: DataFrame, *, section_status: DataFrame, visibility: DataFrame) -> DataFrame:
    """The table group_offsets: one row per commit of a group that ever committed in a transaction in that log.

    Args:
        offset_commits: the table.
        rows: producer_history, of the logs of __consumer_offsets at least.
        section_status: the table, for the sections that are read.
        visibility: the table, for holes and for what is not judged.
    """
    return run("group_offsets", offset_commits=offset_commits, rows=rows, section_status=section_status, visibility=visibility)
