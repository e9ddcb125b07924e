"""Columns written as SQL: a dictionary from the name of a column to its text, and the columns of a table in the order of its schema."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from eo_audit.store.schemas import schema


def expressions(sql: dict[str, str]) -> list[Column]:
    """Columns by name, each from its SQL."""
    return [F.expr(text).alias(name) for name, text in sql.items()]


def columns_of(table: str, sql: dict[str, str]) -> list[str]:
    """The columns of a table, in order, for `selectExpr`: from their SQL, or as they are called."""
    return [f"{sql[name]} AS {name}" if name in sql else name for name in schema(table).columns]


def named(sql: dict[str, str]) -> list[str]:
    """Columns for `selectExpr`, each from its SQL."""
    return [f"{text} AS {name}" for name, text in sql.items()]
