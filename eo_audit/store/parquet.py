"""Parquet files: written aside, renamed when whole with their checksum in the name, described for the table's log, and read."""

import json
import re
import sys
import uuid
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eo_audit.store.reach import within_reach
from eo_audit.store.schemas import schema

# A writer holds one in memory, and a look-up (`find`) reads whole ones.
ROW_GROUP_ROWS = 250_000
_NAMED = re.compile(r"^part-[0-9a-f]{32}-([0-9a-f]{8})\.parquet$")


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
        self._table = table
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
        # Summed from the file, not on the way into it: a write that was cut short is noticed now.
        named = self._path.with_name(f"{self._path.stem}-{checksum(self._unfinished()):08x}.parquet")
        self._unfinished().replace(named)
        return describe(named, named.parent)

    def _flush(self) -> None:
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._unfinished(), self._schema, write_page_checksum=True)
        self._writer.write_table(within_reach(pa.concat_tables(self._waiting).cast(self._schema), self._table))
        self._waiting, self._waiting_rows = [], 0

    def _unfinished(self) -> Path:
        # Readers of Delta and of Parquet folders leave names with an underscore alone.
        return self._path.with_name(f"_{self._path.name}.part")


def checksum(path: Path) -> int:
    """CRC-32 of a file. Ours have it in their names, so that a damaged one is noticed without anything to compare it with."""
    total = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total = zlib.crc32(block, total)
    return total


def fault(path: Path, size: int, *, content: bool) -> str | None:
    """What is wrong with a data file, if anything: a word for whoever has to mend it.

    Args:
        path: the file.
        size: what the table's log says of it.
        content: look into it, too.
    """
    if not path.is_file():
        return f"{path.name} is missing"
    if path.stat().st_size != size:
        return f"{path.name} has {path.stat().st_size} bytes, not {size}"
    # Files that Spark wrote have no sum in their names; their pages have one each, which a read verifies.
    named = _NAMED.search(path.name)
    if content and named is not None and checksum(path) != int(named[1], 16):
        return f"{path.name} is not as it was written"
    return None


def read(name: str, files: Sequence[tuple[Path, int]]) -> pa.Table:
    """All rows of some files of a table."""
    wanted = schema(name).arrow()
    tables = [opened(path).read().cast(wanted) for path, _ in files]
    return pa.concat_tables(tables) if tables else wanted.empty_table()


def opened(path: Path) -> pq.ParquetFile:
    """A file to read; damage that it finds on the way is an error."""
    return pq.ParquetFile(path, page_checksum_verification=True)


def find(file: pq.ParquetFile, bounds: Mapping[str, tuple[int, int]], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Columns of the rows of a file whose values lie within (lowest, highest), in parts; row groups that cannot hold one are not read."""
    for group in range(file.num_row_groups):
        chunks = [file.metadata.row_group(group).column(index) for index in range(file.metadata.num_columns)]
        found = {chunk.path_in_schema: chunk.statistics for chunk in chunks if chunk.path_in_schema in bounds}
        # A group without statistics may hold anything, so it is read.
        if any(s is not None and s.has_min_max and (s.max < bounds[name][0] or s.min > bounds[name][1]) for name, s in found.items()):
            continue
        rows = file.read_row_group(group, columns=columns)
        for name, (lowest, highest) in bounds.items():
            rows = rows.filter(pc.and_(pc.greater_equal(rows[name], _int64(lowest)), pc.less_equal(rows[name], _int64(highest))))
        yield rows


def _int64(value: int) -> pa.Scalar:
    """`pa.scalar` would import pandas, to know its types: that takes longer than the whole look-up."""
    held = min(max(value, -(1 << 63)), (1 << 63) - 1)
    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(held.to_bytes(8, sys.byteorder, signed=True))])[0]


def write(table: str, rows: pa.Table, folder: Path) -> list[DataFile]:
    """Write rows to one Parquet file in a table's folder; no rows, no file."""
    writer = FactWriter(table, folder)
    writer.write(rows)
    written = writer.close()
    return [written] if written else []


def without(table: str, path: Path, folder: Path, column: str, values: Collection[int]) -> tuple[int, list[DataFile]]:
    """Write the rows of a file anew but for those whose column has one of some values; memory holds a part of them only.

    Args:
        table: name of the table.
        path: the file, which stays as it is.
        folder: the table's folder.
        column: of integers.
        values: of the rows that are left out.

    Returns:
        How many rows were left out, and the new file. None was written if there are no such rows, or no others.
    """
    file = opened(path)
    gone = pa.array(sorted(values), file.schema_arrow.field(column).type)

    def kept(columns: list[str] | None) -> Iterator[pa.Table]:
        for batch in file.iter_batches(columns=columns):
            rows = pa.Table.from_batches([batch])
            yield rows.filter(pc.invert(pc.is_in(rows[column], gone)))

    # Of most files nothing goes: one column tells.
    left_out = file.metadata.num_rows - sum(rows.num_rows for rows in kept([column]))
    if not left_out:
        return 0, []
    writer = FactWriter(table, folder)
    for rows in kept(None):
        writer.write(rows)
    written = writer.close()
    return left_out, [written] if written else []


def describe(path: Path, folder: Path) -> DataFile:
    """What the table's log says of a Parquet file, from its footer."""
    # From the file and not from what was meant to be written: the statistics are those that a reader will skip by.
    footer = pq.read_metadata(path)
    return DataFile(path.relative_to(folder).as_posix(), path.stat().st_size, footer.num_rows, json.dumps(_statistics(footer)))


def _statistics(footer: pq.FileMetaData) -> dict[str, object]:
    """Rows, and for each integer column that has values in every row group its smallest and largest value and the number of nulls."""
    columns: dict[str, list[pq.Statistics]] = {}
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            chunk = footer.row_group(group).column(index)
            # Integers only: look-ups and rules bound rows by nothing else, strings may be cut off in statistics, and Delta skips no files
            # by what stands inside structs and arrays.
            if chunk.physical_type in ("INT32", "INT64") and "." not in chunk.path_in_schema and chunk.statistics.has_min_max:
                columns.setdefault(chunk.path_in_schema, []).append(chunk.statistics)
    # A bound over some of the groups would hide the rows of the others.
    whole = {name: chunks for name, chunks in columns.items() if len(chunks) == footer.num_row_groups}
    return {
        "numRecords": footer.num_rows,
        "minValues": {name: min(chunk.min for chunk in chunks) for name, chunks in whole.items()},
        "maxValues": {name: max(chunk.max for chunk in chunks) for name, chunks in whole.items()},
        "nullCount": {name: sum(chunk.null_count for chunk in chunks) for name, chunks in whole.items()},
    }
