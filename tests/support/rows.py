"""Small tables by hand: rows that name only the columns that matter."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from eo_audit.store.frames import of_arrow
from eo_audit.store.schemas import schema

_EMPTY: dict[str, object] = {"long": 0, "integer": 0, "string": "", "boolean": False}


def _empty(column: Mapping[str, object]) -> object:
    if column["nullable"]:
        return None
    kind = column["type"]
    return _EMPTY[kind] if isinstance(kind, str) else []


def _named(value: object, kind: pa.DataType) -> object:
    """A struct that is given as a tuple, by the names of its fields."""
    if isinstance(value, tuple | list) and pa.types.is_list(kind):
        return [_named(item, kind.value_type) for item in value]
    if isinstance(value, tuple) and pa.types.is_struct(kind):
        return {field.name: _named(item, field.type) for field, item in zip(kind, value, strict=True)}
    return value


def _no_others(rows: Iterable[Mapping[str, object]], columns: Collection[str]) -> None:
    unknown = {column for row in rows for column in row} - set(columns)
    if unknown:
        raise KeyError(f"there are no columns {sorted(unknown)}")


def arrow(name: str, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Rows of a table; columns that a row does not name are null, or 0, "" or False where null is not allowed.

    Raises:
        KeyError: a row names a column that the table does not have.
    """
    columns = schema(name)
    kinds, empty = columns.arrow(), {str(column["name"]): _empty(column) for column in columns.fields}
    given = list(rows)
    _no_others(given, empty)
    return pa.Table.from_pylist(
        [{**empty, **{column: _named(value, kinds.field(column).type) for column, value in row.items()}} for row in given], schema=kinds
    )


def table(spark: SparkSession, name: str, rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """The same as a DataFrame. By way of Arrow, for half of what Spark takes for rows of Python: there are a thousand of these tables."""
    return of_arrow(spark, arrow(name, rows), schema(name).spark())


def frame(spark: SparkSession, columns: str, rows: Iterable[Mapping[str, object] | Sequence[object]]) -> DataFrame:
    """Rows, by name or in the order of the columns, which stand in DDL; what a row does not name is null. By way of Arrow too: of rows of
    Python, Spark knows neither how many there are nor that they lie together, and a Python process hands out each few of them.

    Raises:
        KeyError: a row names a column that is not there.
    """
    shape = StructType.fromDDL(columns)
    kinds = to_arrow_schema(shape)
    named = [row if isinstance(row, Mapping) else dict(zip(kinds.names, row, strict=True)) for row in rows]
    _no_others(named, kinds.names)
    whole = [{kind.name: _named(row.get(kind.name), kind.type) for kind in kinds} for row in named]
    return of_arrow(spark, pa.Table.from_pylist(whole, schema=kinds), shape)


# What names a cluster, a log of it or a section, in all tables.
_NAMES = {"cluster", "replica_log_id", "section_id", "superseded_by", "snapshot_section_id"}
_APART = 1000


def apart(rows: Iterable[Mapping[str, object]], number: int) -> list[dict[str, object]]:
    """Rows of a case as those of a cluster of its own: a history is asked for many cases at once, in the time that one of them takes."""
    return [{name: _of_case(value, number) if name in _NAMES else value for name, value in row.items()} for row in rows]


def _of_case(value: object, number: int) -> object:
    return value + number * _APART if isinstance(value, int) else value and f"{value} {number}"


def case_of(replica_log_id: int) -> int:
    """The number that `apart` was given."""
    return replica_log_id // _APART
