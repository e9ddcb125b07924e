"""Small tables by hand: rows that name only the columns that matter."""

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from eo_audit.store.schemas import schema

_EMPTY: dict[str, object] = {"long": 0, "integer": 0, "string": "", "boolean": False}


def _empty(field: T.StructField) -> object:
    if field.nullable:
        return None
    return [] if isinstance(field.dataType, T.ArrayType) else _EMPTY[field.dataType.typeName()]


def table(spark: SparkSession, name: str, rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """Rows of a table; columns that a row does not name are null, or 0, "" or False where null is not allowed.

    Raises:
        KeyError: a row names a column that the table does not have.
    """
    columns = schema(name).spark()
    unknown = {column for row in rows for column in row} - set(columns.names)
    if unknown:
        raise KeyError(f"{name} has no columns {sorted(unknown)}")
    return spark.createDataFrame([tuple(row.get(field.name, _empty(field)) for field in columns) for row in rows], columns)
