"""repeated_records: what one producer wrote a second time, under other sequences, in logs whose records differ."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run

# Not measured, and on the careful side: of logs with fewer records, or with more repeats, equal records say little. A KafkaJS producer that
# sent again what its brokers had written, as they were killed in turns, repeated 3 in 1,000.
LEAST_RECORDS = 50
REPEATS_ONE_IN = 10
MOST_COPIES = 4
MOST_APART_MS = 900_000  # as a restart in P12: who sends again does so within minutes


def repeated_records(rows: DataFrame, records: DataFrame, section_status: DataFrame, replica_logs: DataFrame) -> DataFrame:
    """The table repeated_records: one row per run of records that stand in the log again.

    Args:
        rows: the table producer_history.
        records: the records table.
        section_status: the section_status table.
        replica_logs: the replica_logs table.
    """
    return run(
        "repeated_records",
        rows=rows,
        records=records,
        section_status=section_status,
        replica_logs=replica_logs,
        least=LEAST_RECORDS,
        one_in=REPEATS_ONE_IN,
        most_copies=MOST_COPIES,
        most_apart_ms=MOST_APART_MS,
    )
