"""One collected row of a history table, read by column name and type."""

from collections.abc import Mapping


class Row:
    """Columns of one history row. A column that is null, or that the table does not have, reads as None."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def maybe(self, name: str) -> int | None:
        """A whole number, or None."""
        value = self._values.get(name)
        return value if isinstance(value, int) else None

    def number(self, name: str, default: int = 0) -> int:
        """A whole number; `default` where there is none."""
        value = self.maybe(name)
        return default if value is None else value

    def text(self, name: str) -> str | None:
        """A text, or None."""
        value = self._values.get(name)
        return value if isinstance(value, str) else None

    def word(self, name: str) -> str:
        """A text; `unknown` where there is none."""
        return self.text(name) or "unknown"

    def flag(self, name: str) -> bool:
        """A boolean; null reads as false."""
        return self._values.get(name) is True

    def rows(self, name: str) -> list["Row"]:
        """An array of structs."""
        value = self._values.get(name)
        return [Row(item) for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []

    def numbers(self, name: str) -> list[int]:
        """An array of whole numbers."""
        value = self._values.get(name)
        return [item for item in value if isinstance(item, int)] if isinstance(value, list | tuple) else []

    def texts(self, name: str) -> list[str]:
        """An array of texts."""
        value = self._values.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []

    def partitions(self, name: str = "partitions") -> list[tuple[str, int]]:
        """An array of topic partitions, sorted."""
        return sorted((item.word("topic"), item.number("partition")) for item in self.rows(name))
