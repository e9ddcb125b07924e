"""What a writer does before it writes: damage is told, and what a dead run left behind is put back. The caller holds the lock."""

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eo_audit.store import parquet
from eo_audit.store.delta_table import DamagedError, Newest, OtherVersionError, Table
from eo_audit.store.schemas import schema, table_names

# Each writer has a folder of its own, whose name begins so: one that was taken for dead removes at its end what is its own.
SCRATCH = "_scratch"


@dataclass(frozen=True)
class Recovered:
    """The tables as a writer finds them: their versions, whether some were put back, and what is said of histories that were damaged."""

    versions: Mapping[str, int]
    put_back: bool
    lost: Mapping[str, str]


def recover(folder: Path, pinned: Mapping[str, int], *, remakes: bool, check: Callable[[], object]) -> Recovered:
    """Put every table back to its pinned content; one that no finished step knows is emptied. Scratch folders of dead writers go.

    Facts must be whole, to the last byte: nothing but the dumps can make them anew. Histories and findings are made from facts, so a
    damaged one goes where it will be made anew.

    Args:
        folder: where the tables lie.
        pinned: version of every table that the newest finished step pins.
        remakes: the caller makes histories and findings anew, or leaves a mark that they must be.
        check: raises if the lock was taken from the caller; asked before each change.

    Raises:
        WarehouseError: a table is damaged and must not go, or has columns of another version of this package.
    """
    left = [*folder.glob(f"{SCRATCH}*")]
    check()  # behind the listing: what somebody else begins from now on is not in it
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    versions: dict[str, int] = {}
    put_back, lost = False, dict[str, str]()
    for name in table_names():
        table = Table(name, folder / name)
        # `runs` says what is pinned, and gets its row last: whatever else is newer than it belongs to a run that died.
        if name == "runs" or (name not in pinned and not table.exists()):
            continue
        try:
            changed, version = _put_back(table, pinned.get(name), check)
        except DamagedError as error:
            check()
            if schema(name).family == "facts" or not remakes:
                raise
            # Only the histories and findings of an audit that is about to be repeated: nothing of the dumps goes.
            shutil.rmtree(table.folder, ignore_errors=True)
            lost[name] = f"{error.what}: rebuild and audit make it anew"
            continue
        put_back = put_back or changed
        if version is not None:
            versions[name] = version
    return Recovered(versions, put_back, lost)


def _put_back(table: Table, pinned: int | None, check: Callable[[], object]) -> tuple[bool, int | None]:
    """Whether it was changed, and its version now; None for a table that no finished step knows."""
    if not table.exists():
        raise DamagedError(table.name, table.folder, "its log is missing")
    newest = table.newest()
    if newest.own_columns:
        return _restored(table, newest, pinned, check)
    raise OtherVersionError(table.name, table.folder.parent)


def _restored(table: Table, newest: Newest, pinned: int | None, check: Callable[[], object]) -> tuple[bool, int | None]:
    now = newest.files
    if pinned is None:
        # No finished step knows of these rows, so they are of a run that died. Its files stay for `sweep`.
        if now:
            check()
            table.commit([], mode="overwrite")
        return bool(now), None
    # By files, not by version numbers: a repeated put-back would add a version each time.
    wanted = now if newest.version == pinned else table.files(pinned)
    _check(table, wanted)
    if set(wanted) == set(now):
        return False, newest.version
    check()
    return True, table.restore(pinned)


def _check(table: Table, files: Iterable[tuple[Path, int]]) -> None:
    # Only facts are read to the last byte: a history that is damaged is noticed when it is read, and can be made anew.
    content = schema(table.name).family == "facts"
    for path, size in files:
        fault = parquet.fault(path, size, content=content)
        if fault is not None:
            raise DamagedError(table.name, table.folder, fault)
