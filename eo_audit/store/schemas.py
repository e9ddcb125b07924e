"""The columns of every table: one JSON file per table in `schemas/`, in Spark's own StructType form.

Each column carries its meaning (`metadata.comment`) and, where it has one, its unit (`metadata.unit`).
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from eo_audit.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_PACKAGE = Path(__file__).resolve().parents[1]
# The types that occur in `schemas/`: another one is an error here, not a surprise in a reader.
_ARROW = {"long": "int64", "integer": "int32", "boolean": "bool_", "string": "string", "double": "float64", "binary": "binary"}


@dataclass(frozen=True)
class TableSchema:
    """One table: its name, family (facts, histories, results), key columns, and Spark's JSON of its columns."""

    name: str
    family: str
    key: tuple[str, ...]
    description: str
    fields: tuple[dict[str, object], ...]

    @property
    def columns(self) -> list[str]:
        """Column names, in order."""
        return [str(field["name"]) for field in self.fields]

    def longs_in(self, units: tuple[str, ...]) -> list[str]:
        """Names of the columns of 64 bits that have one of these units."""
        longs = [field for field in self.fields if field["type"] == "long"]
        told = {str(field["name"]): field.get("metadata") for field in longs}
        return [name for name, said in told.items() if isinstance(said, dict) and said.get("unit") in units]

    def spark(self) -> "StructType":
        """The columns as a Spark StructType."""
        from pyspark.sql.types import StructType

        return StructType.fromJson({"type": "struct", "fields": list(self.fields)})

    def arrow(self) -> "pa.Schema":
        """The columns as an Arrow schema, for tasks that write Parquet themselves."""
        import pyarrow as pa

        return pa.schema([pa.field(str(f["name"]), _arrow_type(f["type"]), nullable=bool(f["nullable"])) for f in self.fields])


def _arrow_type(kind: object) -> "pa.DataType":
    import pyarrow as pa

    if isinstance(kind, str):
        return getattr(pa, _ARROW[kind])()
    assert isinstance(kind, dict)
    if kind["type"] == "array":
        return pa.list_(pa.field("element", _arrow_type(kind["elementType"]), nullable=bool(kind["containsNull"])))
    return pa.struct([pa.field(f["name"], _arrow_type(f["type"]), nullable=bool(f["nullable"])) for f in kind["fields"]])


def _folder() -> Path:
    """`schemas/` inside the installed package, else beside it in a checkout."""
    for folder in (_PACKAGE / "schemas", _PACKAGE.parent / "schemas"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"no schemas folder beside {_PACKAGE}: the installation is incomplete")


@cache
def schema(table: str) -> TableSchema:
    """The schema of one table.

    Raises:
        ConfigurationError: there is no such table.
    """
    path = _folder() / f"{table}.json"
    if not path.is_file():
        raise ConfigurationError(f"there is no table named {table}; the tables are {', '.join(table_names())}")
    content = json.loads(path.read_text())
    return TableSchema(content["table"], content["family"], tuple(content["key"]), content["description"], tuple(content["fields"]))


def table_names(family: str | None = None) -> list[str]:
    """Names of all tables, or of one family (facts, histories, results), sorted."""
    # Sorted: the file system's order is another one on each machine.
    names = sorted(path.stem for path in _folder().glob("*.json"))
    return [name for name in names if family in (None, schema(name).family)]


def conforming(rows: "DataFrame", name: str) -> list[str]:
    """The columns of a table in its order, all of which these rows have.

    Raises:
        ConfigurationError: one sentence with the missing, extra and mistyped columns together.
    """
    # `DataFrame.to` would fill what is missing and drop what is extra without a word.
    wanted = {field.name: field.dataType.simpleString() for field in schema(name).spark()}
    found = {field.name: field.dataType.simpleString() for field in rows.schema}
    faults = {
        "missing": sorted(wanted.keys() - found.keys()),
        "extra": sorted(found.keys() - wanted.keys()),
        "mistyped": sorted(f"{n} ({found[n]}, not {t})" for n, t in wanted.items() if n in found and found[n] != t),
    }
    if any(faults.values()):
        told = "; ".join(f"{fault}: {', '.join(columns)}" for fault, columns in faults.items() if columns)
        raise ConfigurationError(f"rows for the table {name} do not have its columns: {told}")
    return list(wanted)
