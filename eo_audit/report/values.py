"""Plain values out of rows whose columns may be null."""

from collections.abc import Mapping

Row = Mapping[str, object]


def whole(row: Row, column: str) -> int:
    """A column that holds a whole number, as an int (0 where it is null)."""
    value = row.get(column)
    return int(value) if isinstance(value, (int, float)) else 0


def maybe(row: Row, column: str) -> int | None:
    """The same, None where it is null."""
    value = row.get(column)
    return int(value) if isinstance(value, (int, float)) else None


def in_bytes(number: int) -> str:
    """A size for a person: 812 bytes, 1.4 MB."""
    if number < 1_000:
        return f"{number} bytes"
    power = 3 if number >= 1_000**3 else 2 if number >= 1_000**2 else 1
    return f"{number / 1_000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"
