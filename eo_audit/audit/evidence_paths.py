"""How findings name the dump files that their evidence lies in."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from eo_audit.store.folders import dump_path
from eo_audit.words import Row

if TYPE_CHECKING:
    import pyarrow as pa


class Tables(Protocol):
    """Where small tables are read into memory."""

    def arrow(self, name: str) -> "pa.Table":
        """A table."""


def evidence_paths(tables: Tables, sections: Iterable[Row]) -> dict[int, str]:
    """The dump file of each section: relative to its input, and in full where another dump's text is read instead.

    Nights have files of the same names, and one that is named by its relative path is the newest.

    Args:
        tables: the facts; dump_files is read.
        sections: rows of section_status.
    """
    rows = list(sections)
    inputs = dict[object, object]()
    if any(row["superseded_by"] is not None for row in rows):
        files = tables.arrow("dump_files").select(["dump_file_id", "input_path"])
        inputs = {row["dump_file_id"]: row["input_path"] for row in files.to_pylist()}
    return {cast(int, row["section_id"]): _name(row, inputs) for row in rows}


def _name(section: Row, inputs: Mapping[object, object]) -> str:
    path = str(section["path"])
    return path if section["superseded_by"] is None else str(dump_path(inputs[section["dump_file_id"]], path))
