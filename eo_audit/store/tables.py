"""The only reader and writer of tables.

Tasks write Parquet files, and delta-rs commits them: a commit takes a few milliseconds where Spark's own takes a second. Any Delta reader
reads the tables. Every reader here sees all tables at the versions that the newest row of `runs` pins, so a run that works or died
never shows. A writer holds the lock, first puts back what a dead run left behind, and then sees its own commits.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from eo_audit.errors import of_machine
from eo_audit.store import frames, parquet
from eo_audit.store.delta_table import DamagedError, OtherVersionError, Table
from eo_audit.store.keys import Keys
from eo_audit.store.lock import Held, exclusive
from eo_audit.store.parquet import DataFile
from eo_audit.store.recovery import SCRATCH, recover
from eo_audit.store.schemas import conforming, schema
from eo_audit.store.tasks import described

if TYPE_CHECKING:  # commands that only read start in a fraction of a second, without Spark
    from pyspark.sql import DataFrame, SparkSession

# Tables of up to this size reach Spark as values in the plan: no files to list, no scan task.
INLINE_FILE_BYTES = 1 << 20
INLINE_MEMORY_BYTES = 4 << 20


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


@dataclass(frozen=True)
class Before:
    """What a writer found: did an earlier run die half-way, whose lock was broken, and what is said of histories that were damaged."""

    died: bool
    broken: str | None
    lost: Sequence[str]


class Warehouse:
    """All tables of one output folder.

    Attributes:
        out: the output folder.
        folder: where the tables lie, one folder each.
        small: what is written fits the memory of this process.
        keys: where the key of the hashes is kept.
    """

    def __init__(
        self, out: Path, spark: "Callable[[], SparkSession] | None" = None, *, small: bool = True, keys: Keys | None = None
    ) -> None:
        """Open the tables of an output folder at their pinned versions.

        Args:
            out: the output folder; it need not exist.
            spark: gives the session; called when it is first needed. Not needed for `arrow`.
            small: what is written fits the memory of this process; then it is written here, without a Spark write job.
            keys: where the key of the hashes is kept; in the user's configuration folder by default.
        """
        self.out = out.resolve()
        self.folder = self.out / "warehouse"
        self._spark = spark
        self.small = small
        self._scratch = self.folder / f"{SCRATCH}-{uuid.uuid4().hex}"
        self._versions = self.pinned()
        self._inline: dict[str, pa.Table] = {}
        self._frames: dict[str, DataFrame] = {}
        self._listed: dict[tuple[str, int], list[tuple[Path, int]]] = {}  # the files of a version stay the same; the log is read once
        self._held: Held | None = None
        self.keys = keys or Keys()

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
        if name in self._frames:
            return self._frames[name]
        files = self._files(name)
        if name in self._inline or sum(size for _, size in files) <= INLINE_FILE_BYTES:
            # Kept: whoever reads it again plans with the same frame.
            self._frames[name] = self._from_arrow(name, self._inline[name] if name in self._inline else self._arrow(name, files))
            return self._frames[name]
        return frames.together(self.session().read.schema(schema(name).spark()).parquet(*(str(path) for path, _ in files)))

    def arrow(self, name: str) -> pa.Table:
        """A table as `read` sees it, in this process's memory and without Spark."""
        return self._inline[name] if name in self._inline else self._arrow(name, self._files(name))

    def is_empty(self, name: str) -> bool:
        """Whether a table has no rows, without reading it."""
        if name in self._inline:
            return bool(self._inline[name].num_rows == 0)
        with self._told(name):
            return not any(parquet.opened(path).metadata.num_rows for path, _ in self._files(name))

    def arrow_of(self, name: str, run: Mapping[str, object]) -> pa.Table:
        """A table as a finished step left it: at the version that its row of `runs` pins."""
        version = json.loads(str(run["table_versions"])).get(name)
        return self._arrow(name, [] if version is None else self._table(name).files(version))

    def has(self, name: str, run: Mapping[str, object]) -> bool:
        """Does a finished step pin a version of the table? Not if it was damaged since, and is gone."""
        return name in json.loads(str(run["table_versions"]))

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table in parts, in the order of its files, without Spark."""
        with self._told(name):
            for path, _ in self._files(name):
                yield from parquet.opened(path).iter_batches()

    def find(self, name: str, **bounds: tuple[int, int]) -> pa.Table:
        """Rows whose columns lie within (lowest, highest), without Spark; row groups that cannot hold one are not read."""
        parts = list(self.scan(name, (), **bounds))
        return pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema=schema(name).arrow())

    def scan(self, name: str, columns: Sequence[str] = (), **bounds: tuple[int, int]) -> Iterator[pa.Table]:
        """The same in parts, with all columns or only those named: for rows that do not fit the memory of this process."""
        whole = schema(name).arrow()
        wanted = pa.schema([whole.field(column) for column in columns or whole.names])
        read = [*wanted.names, *(bound for bound in bounds if bound not in wanted.names)]
        with self._told(name):
            for path, _ in self._files(name):
                for rows in parquet.find(parquet.opened(path), bounds, read):
                    yield rows.select(wanted.names).cast(wanted)

    def overwrite(self, name: str, rows: "DataFrame") -> "DataFrame":
        """Replace a table by rows that have exactly its columns, and return what was written.

        Raises:
            ConfigurationError: columns are missing, extra or of another type; all of them are named.
        """
        columns = conforming(rows, name)
        with described(self.session(), name):
            if self.small:
                # A Spark write job, and a listing of what it wrote, cost more than a small table takes through Arrow.
                return self.overwrite_arrow(name, rows.toArrow().select(columns))
            self._commit(name, self._spark_files(name, rows.select(*columns)), mode="overwrite")
        return self.read(name)

    def overwrite_arrow(self, name: str, rows: pa.Table) -> "DataFrame":
        """Replace a table by rows in this process's memory, and return them."""
        rows = rows.cast(schema(name).arrow())
        self._commit(name, parquet.write(name, rows, self.folder / name), mode="overwrite")
        # The next step reads it at once: as values in the plan it costs no file listing and no scan task.
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
        with described(self.session(), "rows that several histories are made of"):
            if self.small:
                return frames.of_arrow(self.session(), rows.toArrow(), rows.schema)
            return frames.aside(rows, self._scratch / uuid.uuid4().hex)

    @contextmanager
    def writing(self, *, break_lock: bool = False, remakes: bool = True) -> Iterator[Before]:
        """Hold the lock; tables newer than their pinned version are put back to it first.

        Args:
            break_lock: take it from whoever holds it; he writes nothing more.
            remakes: histories and findings will be made anew, so damaged ones may go.

        Yields:
            What was found.

        Raises:
            WarehouseError: another process writes, facts are damaged, or the tables are those of another version of this package.
        """
        with exclusive(self.folder / "_lock", break_lock=break_lock) as held:  # without it a run at work looks like a dead one
            self._held, self._versions, self._inline, self._frames, self._listed = held, self.pinned(), {}, {}, {}
            recovered = recover(self.folder, self._versions, remakes=remakes, check=held.check)
            self._versions = dict(recovered.versions)
            if recovered.lost:
                self._unpin(recovered.lost)
            self.keys.move_in(self.folder, used=bool(self._files("records")))
            try:
                yield Before(held.died or recovered.put_back, held.broken, tuple(recovered.lost.values()))
            except Exception:
                held.check()  # who took the lock has removed what this run had in its scratch folder: that is the cause to tell
                raise
            finally:
                self._held = None
                self.keys.throw_away(self.folder)
                shutil.rmtree(self._scratch, ignore_errors=True)

    def still_held(self) -> None:
        """Nothing is written or removed by a process whose lock was taken from it while it slept.

        Raises:
            WarehouseError: it was.
        """
        if self._held is not None:
            self._held.check()

    def publish(self, step: Step) -> None:
        """Add the row of a finished step to `runs`: from now on every reader sees the tables as they are now.

        A step done once more with the same outcome takes the place of its last row, so that repeating a run adds nothing.
        """
        # But for `runs` itself: a row cannot name the version that it will be part of.
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

    def _unpin(self, names: Collection[str]) -> None:
        """Versions of tables that are gone are pinned by no row of `runs` any more."""
        runs = [(run, json.loads(str(run["table_versions"]))) for run in self.runs()]
        left = [{name: version for name, version in pins.items() if name not in names} for _, pins in runs]
        self.overwrite_runs([{**run, "table_versions": json.dumps(pins)} for (run, _), pins in zip(runs, left, strict=True)])

    def runs(self) -> list[dict[str, object]]:
        """All finished steps, oldest first."""
        table = self._table("runs")
        if table.exists():
            return list(self._arrow("runs", table.files()).to_pylist())
        if (self.out / "findings.jsonl").is_file() and any(table.folder.glob("*.parquet")):
            raise DamagedError("runs", table.folder, "its log is missing")  # else all tables would count as never finished
        return []

    def pinned(self) -> dict[str, int]:
        """Version of every table that the newest finished step pins."""
        runs = self.runs()
        versions = json.loads(str(runs[-1]["table_versions"])) if runs else {}
        return {str(name): int(version) for name, version in versions.items()}

    def salt(self) -> bytes:
        """The key of the hashes of keys and payloads: never beside the tables. See `keys`."""
        return self.keys.key(self.folder, used=bool(self._files("records")))

    def delete(self, name: str, column: str, values: Collection[int]) -> int:
        """Delete the rows of a table of facts whose column has one of some values; return their number. The caller publishes."""
        files = [path for path, _ in self._files(name)] if values else []
        with self._told(name):
            # By our own writer, and not by delta-rs: its files have no sum in their names, and damage of them would not be noticed.
            found = {path: parquet.without(name, path, self.folder / name, column, values) for path in files}
        left = {path: written for path, (rows, written) in found.items() if rows}
        if left:
            self._commit(name, [file for written in left.values() for file in written], mode="append", replaced=left)
        return sum(rows for rows, _ in found.values())

    def stored_bytes(self) -> int:
        """What the tables take on the disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def _table(self, name: str) -> Table:
        return Table(name, self.folder / name)

    def _arrow(self, name: str, files: Sequence[tuple[Path, int]]) -> pa.Table:
        with self._told(name):
            return parquet.read(name, files)

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Damage met while the files of a table are read, as one sentence."""
        try:
            yield
        except KeyError as error:  # pyarrow's word for a column that its schema lacks
            raise OtherVersionError(name, self.folder) from error
        except (OSError, pa.ArrowException) as error:
            # A full disk or a lost permission is no damage: whoever heard so might remove a table that is whole.
            if of_machine(error) is not None:
                raise
            raise DamagedError(name, self.folder / name, error) from error
        except ValueError as error:  # and for one that the file lacks
            raise OtherVersionError(name, self.folder) from error

    def _from_arrow(self, name: str, rows: pa.Table) -> "DataFrame":
        return frames.of_arrow(self.session(), rows, schema(name).spark())

    def _files(self, name: str) -> list[tuple[Path, int]]:
        if not self.exists(name):
            return []
        at = name, self._versions[name]
        if at not in self._listed:
            self._listed[at] = self._table(name).files(at[1])
        return self._listed[at]

    def _spark_files(self, name: str, rows: "DataFrame") -> list[DataFile]:
        folder = self.folder / name
        written = folder / f"part-{uuid.uuid4().hex}"
        # A `_SUCCESS` file in the folder would be one more file that no version names.
        rows.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(str(written))
        files = [parquet.describe(path, folder) for path in sorted(written.glob("*.parquet"))]
        # An empty partition of Spark leaves a file without rows; Delta readers would open each of them.
        return [file for file in files if file.rows]

    def _commit(
        self, name: str, files: Sequence[DataFile], *, mode: str, transaction: str | None = None, replaced: Collection[Path] = ()
    ) -> None:
        self.still_held()
        self._versions[name] = self._table(name).commit(files, mode=mode, transaction=transaction, replaced=replaced)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """What was read of a table is not what it is now."""
        self._inline.pop(name, None)
        self._frames.pop(name, None)
