"""One collected row of a history table, read by column name and type."""

from collections.abc import Mapping, Set


class UnaskedColumn(LookupError):
    """A rule's words read a column that the rule did not ask for: it would be None for ever, and the rule would acquit every case."""


class Row:
    """Columns of one history row; a column that is null reads as None.

    Args:
        values: its columns by name; those that are null may be left out.
        asked: the columns that may be read, another raises `UnaskedColumn`; None: any, and what is not there reads as None.
    """

    def __init__(self, values: Mapping[str, object], asked: Set[str] | None = None) -> None:
        self._values = values
        self._asked = asked

    @property
    def lenient(self) -> "Row":
        """The same row for code that serves all rules: a column that its table does not have reads as None."""
        return Row(self._values)

    def _value(self, name: str) -> object:
        if self._asked is not None and name not in self._asked:
            raise UnaskedColumn(f"{name} is not among the columns that the rule asks for: {' '.join(sorted(self._asked))}")
        return self._values.get(name)

    def maybe(self, name: str) -> int | None:
        """A whole number, or None."""
        value = self._value(name)
        # Explanations run over rows of any release: a column of another type is as good as none.
        return value if isinstance(value, int) else None

    def number(self, name: str, default: int = 0) -> int:
        """A whole number; `default` where there is none."""
        value = self.maybe(name)
        return default if value is None else value

    def text(self, name: str) -> str | None:
        """A text, or None."""
        value = self._value(name)
        return value if isinstance(value, str) else None

    def word(self, name: str) -> str:
        """A text; `unknown` where there is none."""
        return self.text(name) or "unknown"

    def flag(self, name: str) -> bool:
        """A boolean; null reads as false."""
        return self._value(name) is True

    def rows(self, name: str) -> list["Row"]:
        """An array of structs."""
        value = self._value(name)
        return [Row(item) for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []

    def numbers(self, name: str) -> list[int]:
        """An array of whole numbers."""
        value = self._value(name)
        return [item for item in value if isinstance(item, int)] if isinstance(value, list | tuple) else []

    def texts(self, name: str) -> list[str]:
        """An array of texts."""
        value = self._value(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []

    def partitions(self, name: str = "partitions") -> list[tuple[str, int]]:
        """An array of topic partitions, sorted."""
        return sorted((item.word("topic"), item.number("partition")) for item in self.rows(name))
