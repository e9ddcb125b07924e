"""Parquet files on their way into a table: written under a temporary name, renamed when whole, described for the table's log."""

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eo_audit.schemas import schema

ROW_GROUP_ROWS = 250_000


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a table: path relative to the table's folder, size in bytes, rows, Delta's statistics as JSON."""

    path: str
    size: int
    rows: int
    stats: str


class FactWriter:
    """Writes rows of one table to one Parquet file, part by part, so that memory holds one part only."""

    def __init__(self, table: str, folder: Path) -> None:
        """No file is made before the first row comes.

        Args:
            table: name of the table, whose schema the rows have.
            folder: the table's folder.
        """
        self._schema = schema(table).arrow()
        self._path = folder / f"part-{uuid.uuid4().hex}.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0

    def write(self, rows: pa.Table) -> None:
        """Add rows; they go to disk when there are enough for a row group."""
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self._flush()

    def close(self) -> DataFile | None:
        """The finished file under its final name, or None where no row came."""
        if self._waiting_rows:
            self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        self._unfinished().replace(self._path)
        return describe(self._path, self._path.parent)

    def _flush(self) -> None:
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._unfinished(), self._schema)
        self._writer.write_table(pa.concat_tables(self._waiting).cast(self._schema))
        self._waiting, self._waiting_rows = [], 0

    def _unfinished(self) -> Path:
        return self._path.with_name(f"_{self._path.name}.part")


def write(table: str, rows: pa.Table, folder: Path) -> list[DataFile]:
    """Write rows to one Parquet file in a table's folder; no rows, no file."""
    writer = FactWriter(table, folder)
    writer.write(rows)
    written = writer.close()
    return [written] if written else []


def describe(path: Path, folder: Path) -> DataFile:
    """What the table's log says of a Parquet file, from its footer."""
    footer = pq.read_metadata(path)
    return DataFile(path.relative_to(folder).as_posix(), path.stat().st_size, footer.num_rows, json.dumps(_statistics(footer)))


def _statistics(footer: pq.FileMetaData) -> dict[str, object]:
    """Rows, and for each integer column that has values in every row group its smallest and largest value and the number of nulls."""
    columns: dict[str, list[pq.Statistics]] = {}
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            chunk = footer.row_group(group).column(index)
            if chunk.physical_type in ("INT32", "INT64") and "." not in chunk.path_in_schema and chunk.statistics.has_min_max:
                columns.setdefault(chunk.path_in_schema, []).append(chunk.statistics)
    whole = {name: chunks for name, chunks in columns.items() if len(chunks) == footer.num_row_groups}
    return {
        "numRecords": footer.num_rows,
        "minValues": {name: min(chunk.min for chunk in chunks) for name, chunks in whole.items()},
        "maxValues": {name: max(chunk.max for chunk in chunks) for name, chunks in whole.items()},
        "nullCount": {name: sum(chunk.null_count for chunk in chunks) for name, chunks in whole.items()},
    }
