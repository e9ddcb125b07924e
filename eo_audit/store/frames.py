"""Rows of tables as frames of Spark."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:  # commands that only read start in a fraction of a second, without Spark
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Rows that are read a few times and thrown away: no dictionaries, no statistics, the quickest codec. A tenth of the rebuild's CPU time
# (benchmarks, 1 GB: 90 s against 103 s).
_SCRATCH = {
    "compression": "lz4_raw",
    "parquet.enable.dictionary": "false",
    "parquet.column.statistics.enabled": "false",
    "parquet.size.statistics.enabled": "false",
}


def of_arrow(session: "SparkSession", rows: pa.Table, schema: "StructType") -> "DataFrame":
    """Rows in this process's memory as a frame with the types of a schema."""
    # A table without rows may have no chunks either; Spark takes no such table.
    return together(session.createDataFrame(rows if rows.num_rows else rows.schema.empty_table(), schema=schema))


def no_rows(session: "SparkSession", columns: "StructType") -> "DataFrame":
    """Columns without rows.

    By way of Arrow: then Spark knows that there are none, and leaves out what is joined with them. Of an empty list of Python's rows it
    knows nothing, starts a Python process to hear of it, and joins and sorts (8 KB of input: a fiftieth of the CPU time).
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    return of_arrow(session, to_arrow_schema(columns).empty_table(), columns)


def together(rows: "DataFrame") -> "DataFrame":
    """Rows in one partition, where shuffles make but one: then Spark knows that they are together, and shuffles nothing (8 KB of input, CPU
    seconds: 33.3, 36.1, 36.6 and 37.4 without, 31.2, 31.5 and 32.8 with it)."""
    return rows.coalesce(1) if rows.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1" else rows


def aside(rows: "DataFrame", path: Path) -> "DataFrame":
    """Rows computed once: written to a path, and read from there."""
    rows.write.options(**_SCRATCH).parquet(str(path))
    return together(rows.sparkSession.read.schema(rows.schema).parquet(str(path)))
