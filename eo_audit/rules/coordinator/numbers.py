"""Ids that count: prefix, subtask and number, as Flink's `TransactionalIdFactory` makes them, in SQL, and what their transactions wrote."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTS = "^(.+)-([0-9]+)-([0-9]{1,18})$"
NUMBERED = f"transactional_id RLIKE '{_PARTS}'"
PREFIX = f"regexp_extract(transactional_id, '{_PARTS}', 1)"
NUMBER = f"CAST(regexp_extract(transactional_id, '{_PARTS}', 3) AS long)"
MOST_NAMED = 5  # ids in a message; all are in its details


def written_by_instance(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """What each transaction wrote: instance_id, records (those of one replica of each partition) and written (the partitions).

    Args:
        histories: with instance_partitions.
    """
    from pyspark.sql import functions as F  # late, for whoever reads the catalogue and needs no Spark

    of_partition = histories["instance_partitions"].groupBy("instance_id", "topic", "partition").agg(F.max("data_records").alias("records"))
    totals = ("sum(records) AS records", "collect_set(concat(topic, '-', partition)) AS written")
    return of_partition.groupBy("instance_id").agg(*map(F.expr, totals))
