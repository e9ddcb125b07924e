"""open_transactions: what is open at the end of each log, and whether anybody will end it (KIP-664 calls it hanging if nobody does).

Not the producer's last transaction is asked but the one that order gives the span: a producer may be busy elsewhere while its data hangs
here, and a transaction that ended after the dump of this partition hangs nowhere.
"""

from pyspark.sql import DataFrame

from eo_audit.history.text import run


def open_transactions(events: DataFrame, visibility: DataFrame) -> DataFrame:
    """The table open_transactions: one row per span without a marker.

    Args:
        events: what `assignment.judged_events` returns.
        visibility: the table, for where the oldest that is open began.
    """
    return run("open_transactions", events=events, visibility=visibility)


def unmatched(events: DataFrame) -> DataFrame:
    """The table unmatched: what of each log cannot be told by the coordinator's log, by reason.

    Args:
        events: what `assignment.judged_events` returns.
    """
    return run("unmatched", events=events)
