"""Plain values out of rows whose columns may be null."""

from eo_audit.words import Row


def whole(row: Row, column: str) -> int:
    """A column that holds a whole number, as an int (0 where it is null)."""
    value = row.get(column)
    return int(value) if isinstance(value, (int, float)) else 0


def maybe(row: Row, column: str) -> int | None:
    """The same, None where it is null."""
    value = row.get(column)
    return int(value) if isinstance(value, (int, float)) else None
