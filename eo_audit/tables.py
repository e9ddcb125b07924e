"""The only reader and writer of Delta tables.

Tasks write Parquet files, and delta-rs commits them: a commit takes a few milliseconds where Spark's own takes a second. Any Delta reader
reads the tables. Every reader here sees all tables at the versions that the newest row of `runs` pins, so a run that works or died
never shows. A writer holds the lock, first puts back what a dead run left behind, and then sees its own commits.
"""

import json
import os
import secrets
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, create_table_with_add_actions

from eo_audit import parquet
from eo_audit.errors import ConfigurationError, WarehouseError
from eo_audit.lock import exclusive
from eo_audit.parquet import DataFile
from eo_audit.schemas import schema, table_names

if TYPE_CHECKING:  # commands that only read start in a fraction of a second, without Spark
    from pyspark.sql import DataFrame, SparkSession

# Tables of up to this size reach Spark as values in the plan: no files to list, no scan task.
INLINE_FILE_BYTES = 1 << 20
INLINE_MEMORY_BYTES = 4 << 20
SALT_BYTES = 16


@dataclass(frozen=True)
class Step:
    """One finished step of a run, as a row of `runs` without its pinned versions."""

    run_id: str
    step: str
    finished_at_ms: int
    code_version: str
    inputs: str
    rule_set: str | None = None
    as_of_ms: int | None = None
    verdict: str | None = None


# Rows that are read a few times and thrown away: no dictionaries, no statistics, the quickest codec. A tenth of the rebuild's CPU time
# (benchmarks, 1 GB: 90 s against 103 s).
_SCRATCH = {
    "compression": "lz4_raw",
    "parquet.enable.dictionary": "false",
    "parquet.column.statistics.enabled": "false",
    "parquet.size.statistics.enabled": "false",
}


class Warehouse:
    """All tables of one output folder.

    Attributes:
        out: the output folder.
        folder: where the tables lie, one folder each.
        small: what is written fits the memory of this process.
    """

    def __init__(self, out: Path, spark: "Callable[[], SparkSession] | None" = None, *, small: bool = True) -> None:
        """Open the tables of an output folder at their pinned versions.

        Args:
            out: the output folder; it need not exist.
            spark: gives the session; called when it is first needed. Not needed for `arrow`.
            small: what is written fits the memory of this process; then it is written here, without a Spark write job.
        """
        self.out = out.resolve()
        self.folder = self.out / "warehouse"
        self._spark = spark
        self.small = small
        self._versions = self.pinned()
        self._inline: dict[str, pa.Table] = {}

    def exists(self, name: str) -> bool:
        """Has a finished step (or this writer) written the table?"""
        return name in self._versions

    def session(self) -> "SparkSession":
        """The Spark session, waiting until it has started."""
        assert self._spark is not None, "this warehouse was opened without Spark"
        return self._spark()

    def text_bytes(self) -> int:
        """Length of all dump text in the tables, in bytes."""
        return int(pc.sum(self.arrow("dump_files")["text_bytes"]).as_py() or 0)

    def read(self, name: str) -> "DataFrame":
        """A table as this process sees it: pinned, or as just committed by itself. A table that was never written has no rows."""
        if name in self._inline:
            return self._from_arrow(name, self._inline[name])
        files = self._files(name)
        if sum(size for _, size in files) <= INLINE_FILE_BYTES:
            return self._from_arrow(name, _arrow(name, files))
        return self.session().read.schema(schema(name).spark()).parquet(*(str(path) for path, _ in files))

    def arrow(self, name: str) -> pa.Table:
        """A table as `read` sees it, in this process's memory and without Spark."""
        return self._inline[name] if name in self._inline else _arrow(name, self._files(name))

    def arrow_of(self, name: str, run: Mapping[str, object]) -> pa.Table:
        """A table as a finished step left it: at the version that its row of `runs` pins."""
        version = json.loads(str(run["table_versions"])).get(name)
        files = [] if version is None else _data_files(DeltaTable(self.folder / name, version=version))
        return _arrow(name, files)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table in parts, in the order of its files, without Spark."""
        for path, _ in self._files(name):
            yield from pq.ParquetFile(path).iter_batches()

    def find(self, name: str, **bounds: tuple[int, int]) -> pa.Table:
        """Rows whose columns lie within (lowest, highest), without Spark; row groups that cannot hold one are not read."""
        parts = list(self.scan(name, (), **bounds))
        return pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema=schema(name).arrow())

    def scan(self, name: str, columns: Sequence[str] = (), **bounds: tuple[int, int]) -> Iterator[pa.Table]:
        """The same in parts, with all columns or only those named: for rows that do not fit the memory of this process."""
        whole = schema(name).arrow()
        wanted = pa.schema([whole.field(column) for column in columns or whole.names])
        read = [*wanted.names, *(bound for bound in bounds if bound not in wanted.names)]
        for path, _ in self._files(name):
            for rows in _find(pq.ParquetFile(path), bounds, read):
                yield rows.select(wanted.names).cast(wanted)

    def overwrite(self, name: str, rows: "DataFrame") -> "DataFrame":
        """Replace a table by rows that have exactly its columns, and return what was written.

        Raises:
            ConfigurationError: columns are missing, extra or of another type; all of them are named.
        """
        conforming = conform(rows, name)
        if self.small:
            return self.overwrite_arrow(name, conforming.toArrow())
        self._commit(name, self._spark_files(name, conforming), mode="overwrite")
        return self.read(name)

    def overwrite_arrow(self, name: str, rows: pa.Table) -> "DataFrame":
        """Replace a table by rows in this process's memory, and return them."""
        rows = rows.cast(schema(name).arrow())
        self._commit(name, parquet.write(name, rows, self.folder / name), mode="overwrite")
        if rows.nbytes <= INLINE_MEMORY_BYTES:
            self._inline[name] = rows
        return self.read(name)

    def append(self, name: str, files: Sequence[DataFile], *, transaction: str) -> None:
        """Add Parquet files that tasks wrote into the table's folder; without files the table is made, if need be.

        Args:
            name: a table of facts.
            files: what the tasks wrote.
            transaction: application id kept in the table's log, so that two writers of the same facts exclude each other.
        """
        if files or not self.exists(name):
            self._commit(name, files, mode="append", transaction=transaction)

    def materialise(self, rows: "DataFrame") -> "DataFrame":
        """Rows computed once, for rows that several tables are made from. Gone when the writer has finished."""
        if self.small:
            return self.session().createDataFrame(_with_chunks(rows.toArrow()), schema=rows.schema)
        scratch = self.folder / "_scratch" / uuid.uuid4().hex
        rows.write.options(**_SCRATCH).parquet(str(scratch))
        return self.session().read.schema(rows.schema).parquet(str(scratch))

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Hold the lock; tables newer than their pinned version are put back to it first.

        Yields:
            Whether an earlier run died half-way.

        Raises:
            WarehouseError: another process writes, or the tables are those of another version of this package.
        """
        with exclusive(self.folder / "_lock") as died:
            self._versions, self._inline = self.pinned(), {}
            put_back = self._restore()
            try:
                yield died or put_back
            finally:
                shutil.rmtree(self.folder / "_scratch", ignore_errors=True)

    def publish(self, step: Step) -> None:
        """Add the row of a finished step to `runs`: from now on every reader sees the tables as they are now.

        A step done once more with the same outcome takes the place of its last row, so that repeating a run adds nothing.
        """
        versions = {name: version for name, version in sorted(self._versions.items()) if name != "runs"}
        row = {**vars(step), "table_versions": json.dumps(versions)}
        runs = self.runs()
        last = next((run for run in reversed(runs) if run["step"] == step.step), None)
        told_again = last is not None and all(last[name] == value for name, value in vars(step).items() if name != "finished_at_ms")
        self.overwrite_runs([*(run for run in runs if not told_again or run is not last), row])

    def overwrite_runs(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Replace the rows of `runs`, oldest first."""
        table = pa.Table.from_pylist(list(rows), schema=schema("runs").arrow())
        self._commit("runs", parquet.write("runs", table, self.folder / "runs"), mode="overwrite")

    def runs(self) -> list[dict[str, object]]:
        """All finished steps, oldest first."""
        path = self.folder / "runs"
        if not DeltaTable.is_deltatable(str(path)):
            return []
        return list(_arrow("runs", _data_files(DeltaTable(path))).to_pylist())

    def pinned(self) -> dict[str, int]:
        """Version of every table that the newest finished step pins."""
        runs = self.runs()
        versions = json.loads(str(runs[-1]["table_versions"])) if runs else {}
        return {str(name): int(version) for name, version in versions.items()}

    def salt(self) -> bytes:
        """The key of the hashes of keys and payloads: made once per warehouse, kept beside the tables and never in one."""
        path = self.folder / "_salt"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(SALT_BYTES))
        return path.read_bytes()

    def _from_arrow(self, name: str, rows: pa.Table) -> "DataFrame":
        return self.session().createDataFrame(_with_chunks(rows), schema=schema(name).spark())

    def _files(self, name: str) -> list[tuple[Path, int]]:
        if not self.exists(name):
            return []
        return _data_files(DeltaTable(self.folder / name, version=self._versions[name]))

    def _spark_files(self, name: str, rows: "DataFrame") -> list[DataFile]:
        folder = self.folder / name
        written = folder / f"part-{uuid.uuid4().hex}"
        rows.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(str(written))
        files = [parquet.describe(path, folder) for path in sorted(written.glob("*.parquet"))]
        return [file for file in files if file.rows]

    def _commit(self, name: str, files: Sequence[DataFile], *, mode: str, transaction: str | None = None) -> None:
        """The one place that changes a table."""
        added = [AddAction(file.path, file.size, {}, 0, True, file.stats) for file in files]
        properties = CommitProperties(app_transactions=[Transaction(transaction, 1)]) if transaction else None
        path = self.folder / name
        if DeltaTable.is_deltatable(str(path)):
            DeltaTable(path).create_write_transaction([*added], mode, _delta_schema(name), commit_properties=properties)
        else:
            path.mkdir(parents=True, exist_ok=True)
            create_table_with_add_actions(str(path), _delta_schema(name), added, commit_properties=properties)
        self._versions[name] = DeltaTable(path).version()
        self._inline.pop(name, None)

    def _restore(self) -> bool:
        paths = {name: self.folder / name for name in table_names() if name != "runs"}
        found = {name: DeltaTable(path) for name, path in paths.items() if DeltaTable.is_deltatable(str(path))}
        put_back = [name for name, table in found.items() if self._restore_table(name, table)]
        return bool(put_back)

    def _restore_table(self, name: str, table: DeltaTable) -> bool:
        """Put a table back to its pinned content, if it has another; one that no finished step knows is emptied."""
        if _columns(table.schema()) != _columns(_delta_schema(name)):
            raise WarehouseError(f"{self.folder} is of another version of eo-audit (other columns in {name}): choose another --out")
        pinned = self._versions.get(name)
        wanted = set(DeltaTable(table.table_uri, version=pinned).file_uris()) if pinned is not None else set()
        changed = wanted != set(table.file_uris())
        if pinned is None and changed:
            self._commit(name, [], mode="overwrite")
            del self._versions[name]
        if pinned is not None:
            if changed:
                table.restore(pinned)
            self._versions[name] = DeltaTable(table.table_uri).version()
        return changed


def conform(rows: "DataFrame", name: str) -> "DataFrame":
    """The columns of a table, in its order.

    Raises:
        ConfigurationError: one sentence with the missing, extra and mistyped columns together.
    """
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
    return rows.select(*wanted)


def _delta_schema(name: str) -> Schema:
    return Schema.from_json(json.dumps({"type": "struct", "fields": list(schema(name).fields)}))


def _columns(columns: Schema) -> list[tuple[object, object]]:
    return [(field["name"], field["type"]) for field in json.loads(columns.to_json())["fields"]]


def _data_files(table: DeltaTable) -> list[tuple[Path, int]]:
    added = table.get_add_actions()
    root = Path(unquote(table.table_uri.removeprefix("file://")))
    sizes: dict[str, int] = dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))
    return [(root / path, size) for path, size in sorted(sizes.items())]


def _arrow(name: str, files: Sequence[tuple[Path, int]]) -> pa.Table:
    wanted = schema(name).arrow()
    tables = [pq.ParquetFile(path).read().cast(wanted) for path, _ in files]
    return pa.concat_tables(tables) if tables else wanted.empty_table()


def _with_chunks(rows: pa.Table) -> pa.Table:
    """A table without rows may have no chunks either; Spark takes no such table."""
    return rows if rows.num_rows else rows.schema.empty_table()


def _find(file: pq.ParquetFile, bounds: Mapping[str, tuple[int, int]], columns: Sequence[str]) -> Iterator[pa.Table]:
    for group in range(file.num_row_groups):
        chunks = [file.metadata.row_group(group).column(index) for index in range(file.metadata.num_columns)]
        found = {chunk.path_in_schema: chunk.statistics for chunk in chunks if chunk.path_in_schema in bounds}
        if any(s is not None and s.has_min_max and (s.max < bounds[name][0] or s.min > bounds[name][1]) for name, s in found.items()):
            continue
        rows = file.read_row_group(group, columns=columns)
        for name, (lowest, highest) in bounds.items():
            rows = rows.filter(pc.and_(pc.greater_equal(rows[name], _int64(lowest)), pc.less_equal(rows[name], _int64(highest))))
        yield rows


def _int64(value: int) -> pa.Scalar:
    """`pa.scalar` would import pandas, to know its types: that takes longer than the whole look-up."""
    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(value.to_bytes(8, sys.byteorder, signed=True))])[0]
