"""One Delta table in a folder: the only module that knows delta-rs. Errors of delta-rs name the table and what to type.

A table's log is a row of JSON files, one a version, with a checkpoint now and then. Data files that a version no longer names stay until
`sweep`, for whoever reads an older version at that moment.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from eo_audit.errors import WarehouseError, of_machine
from eo_audit.store.parquet import DataFile
from eo_audit.store.schemas import schema, table_names

# Versions below the oldest one that is kept, after which their part of the log is put into a checkpoint.
LONG_LOG = 20
# Whoever reads a version that is no longer kept has this long to finish.
GRACE_MS = 3_600_000

_Files = list[tuple[Path, int]]


class OtherVersionError(WarehouseError):
    """Tables of another version of eo-audit: a column is missing, or one too many."""

    def __init__(self, name: str, warehouse: Path) -> None:
        """Say which table of which folder shows it."""
        super().__init__(f"{warehouse} is of another version of eo-audit (other columns in {name}): choose another --out")


class DamagedError(WarehouseError):
    """A table that cannot be read: which one, and what to type. `what` is the first half of the sentence."""

    def __init__(self, name: str, folder: Path, error: Exception | str) -> None:
        """Put the sentence together.

        Args:
            name: of the table.
            folder: where its files lie.
            error: what was met.
        """
        out = folder.parent.parent
        lines = str(error).replace("\\n", "\n").strip().splitlines() or [type(error).__name__]
        family = schema(name).family if name in table_names() else "facts"
        if name == "runs" or family == "facts":
            todo = f"bring back a copy of {out}, or remove {folder.parent} and run `eo-audit run DUMPS --out {out}` with all dumps"
        else:
            todo = f"run `eo-audit rebuild --out {out}` and `eo-audit audit --out {out}`, which make it anew"
        self.what = f"the table {name} in {folder.parent} is damaged ({' '.join(lines[0].split())[:200]})"
        super().__init__(f"{self.what}: {todo}")


@dataclass(frozen=True)
class Newest:
    """The newest version of a table: its number, path and size of each data file (sorted by path), and whether it has the columns of its
    schema and no others.
    """

    version: int
    files: _Files
    own_columns: bool


class Table:
    """The table of a name in a folder; it need not exist."""

    def __init__(self, name: str, folder: Path) -> None:
        """Nothing is read yet.

        Args:
            name: whose schema it has.
            folder: where its files lie.
        """
        self.name = name
        self.folder = folder

    def exists(self) -> bool:
        """Is there a Delta table?"""
        with self._told():
            return DeltaTable.is_deltatable(str(self.folder))

    def version(self) -> int:
        """The newest version."""
        with self._told():
            return int(DeltaTable(self.folder).version())

    def files(self, version: int | None = None) -> _Files:
        """Path and size of each data file of a version (the newest by default), sorted by path.

        Raises:
            WarehouseError: the log is damaged, or has no such version.
        """
        with self._told():
            return self._listed(DeltaTable(self.folder, version=version))

    def newest(self) -> Newest:
        """The newest version; its log is read once, which costs a millisecond and more with each version that it tells of.

        Raises:
            WarehouseError: the log is damaged.
        """
        with self._told():
            table = DeltaTable(self.folder)
            own_columns = _columns(table.schema()) == _columns(_delta_schema(self.name))
            return Newest(int(table.version()), self._listed(table), own_columns)

    def _listed(self, table: DeltaTable) -> _Files:
        added = table.get_add_actions()
        sizes: dict[str, int] = dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))
        # The log of a Delta table holds paths as URLs.
        return [(self.folder / unquote(path), size) for path, size in sorted(sizes.items())]

    def commit(self, files: Sequence[DataFile], *, mode: str, transaction: str | None = None, replaced: Collection[Path] = ()) -> int:
        """Make files that lie in the folder part of the table: the one place that changes its content.

        Args:
            files: as `parquet.write` describes them.
            mode: append, or overwrite.
            transaction: application id kept in the table's log.
            replaced: files of the table that are no part of it any more; where files are appended.

        Returns:
            The new version.
        """
        # No partition values, no modification time: the log then says the same of the same files.
        added = [AddAction(file.path, file.size, {}, 0, True, file.stats) for file in files]
        now_ms = time.time_ns() // 1_000_000
        removed = [RemoveAction(path.relative_to(self.folder).as_posix(), True, now_ms) for path in replaced]
        properties = CommitProperties(app_transactions=[Transaction(transaction, 1)]) if transaction else None
        with self._told():
            # The files lie in the folder already: the one commit makes all of them visible, or none.
            if self.exists():
                table = DeltaTable(self.folder)
                table.create_write_transaction(
                    [*added, *removed], mode, _delta_schema(self.name), commit_properties=properties, post_commithook_properties=_NO_HOOKS
                )
                table.update_incremental()  # reads what is new of the log, and not all of it again
                return int(table.version())
            self.folder.mkdir(parents=True, exist_ok=True)
            create_table_with_add_actions(
                str(self.folder), _delta_schema(self.name), added, configuration=_KEEP_LOG, commit_properties=properties
            )
            return 0

    def restore(self, version: int) -> int:
        """Make the content that of an earlier version, in a new one; return its number."""
        with self._told():
            # Nothing is copied: the files of a version that `runs` pins are all there, for `sweep` leaves them.
            table = DeltaTable(self.folder)
            table.restore(version)
            return int(table.version())

    def sweep(
        self, kept: Collection[int], *, newest: Newest | None = None, grace_ms: int = GRACE_MS, check: Callable[[], object] = bool
    ) -> int:
        """Remove what nobody needs: data files that no kept version names, and the log below the oldest kept version.

        What a version lost less than `grace_ms` ago stays, for readers of that version. The caller holds the lock; the newest
        version is always kept.

        Args:
            kept: versions that readers may open.
            newest: the newest version, if the caller has asked for it since the last commit.
            grace_ms: how long a reader of another version may take.
            check: raises if the lock was taken from the caller; asked before anything is removed.

        Returns:
            Bytes that were freed.
        """
        with self._told():
            # Listed first, and then asked: what the next holder writes while this process sleeps is in no list.
            there, folders = self._data_files(), [path for path in self.folder.iterdir() if path.is_dir() and path.name.startswith("part-")]
            check()
            now, since_ms = newest or self.newest(), time.time_ns() // 1_000_000 - grace_ms
            oldest = self._before(min([*kept, now.version]), since_ms)
            at_oldest = now.files if oldest == now.version else self.files(oldest)
            needed = self._needed({*kept, now.version}, oldest, now.version, at_oldest, since_ms=since_ms)
            freed = sum(_removed(path) for path in there if path.relative_to(self.folder).as_posix() not in needed)
            for folder in folders:  # Spark writes into folders of its own
                if not any(folder.iterdir()):
                    folder.rmdir()
            return freed + self._shorten_log(oldest, grace_ms)

    def _before(self, version: int, since_ms: int) -> int:
        """The version that was the newest at a moment, if that is an older one: readers may have opened it then, or a later one."""
        while version > 0 and self._json(version - 1).is_file() and self._json(version).stat().st_mtime_ns // 1_000_000 >= since_ms:
            version -= 1
        return version

    def _json(self, version: int) -> Path:
        return self.folder / "_delta_log" / f"{version:020}.json"

    def _needed(self, kept: set[int], oldest: int, newest: int, at_oldest: _Files, *, since_ms: int) -> set[str]:
        """Data files that a kept version names, or that were part of the table after a moment: by going through the log."""
        live = {path.relative_to(self.folder).as_posix() for path, _ in at_oldest}
        needed = set(live)
        # By the log's own words, and not by VACUUM: that goes by age, and the versions that `runs` pins have none.
        for version in range(oldest + 1, newest + 1):
            for line in self._json(version).read_text(encoding="utf-8").splitlines():
                action = json.loads(line)
                if "remove" in action:
                    path = unquote(action["remove"]["path"])
                    live.discard(path)
                    if action["remove"].get("deletionTimestamp", 0) >= since_ms:
                        needed.add(path)
                elif "add" in action:
                    live.add(unquote(action["add"]["path"]))
            if version in kept:
                needed |= live
        return needed

    def _data_files(self) -> list[Path]:
        log = self.folder / "_delta_log"
        return [path for path in self.folder.rglob("*") if path.is_file() and not path.is_relative_to(log)]

    def _shorten_log(self, oldest: int, grace_ms: int) -> int:
        """A checkpoint at the oldest kept version, and, once readers that may not have seen it are gone, without what lies below it."""
        log = self.folder / "_delta_log"
        below = sorted(path for path in log.iterdir() if path.name[:20].isdigit() and int(path.name[:20]) < oldest)
        checkpoints = sorted(path for path in log.glob("*.checkpoint.parquet") if int(path.name[:20]) <= oldest)
        # Who listed the log before the checkpoint was there still reads the JSON files below it, so these go a grace period later.
        settled = [path for path in checkpoints if path.stat().st_mtime_ns // 1_000_000 <= time.time_ns() // 1_000_000 - grace_ms]
        if oldest - (int(checkpoints[-1].name[:20]) if checkpoints else 0) > LONG_LOG:
            DeltaTable(self.folder, version=oldest).create_checkpoint()
        last = int(settled[-1].name[:20]) if settled else -1
        return sum(_removed(path) for path in below if int(path.name[:20]) < last)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of delta-rs and of the file system, as one sentence."""
        try:
            yield
        except (DeltaError, OSError, ValueError, KeyError) as error:
            # A full disk or a missing permission is no damage: whoever heard so might remove a table that is whole.
            if of_machine(error) is not None:
                raise
            raise DamagedError(self.name, self.folder, error) from error


# The same for whoever else writes a checkpoint; and how long it remembers files that are gone.
_KEEP_LOG = {"delta.logRetentionDuration": "interval 36500 days", "delta.deletedFileRetentionDuration": "interval 1 days"}
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)  # versions that `runs` pins stay: see `sweep`


def _removed(path: Path) -> int:
    size = path.stat().st_size
    path.unlink()
    return size


def _delta_schema(name: str) -> Schema:
    return Schema.from_json(json.dumps({"type": "struct", "fields": list(schema(name).fields)}))


def _columns(columns: Schema) -> list[tuple[object, object]]:
    return [(field["name"], field["type"]) for field in json.loads(columns.to_json())["fields"]]
