"""Which files of an input may be looked at. Dumps come from somebody else: what leads out of them, or to a device, is not followed."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from eo_audit.dump.files.not_dumps import NotADump
from eo_audit.store.folders import RESULTS, is_warehouse

LEADS_OUT = "is a link that leads out of the input, so it is not followed: copy what it names, or name it as an input of its own"
# Reading them may block for ever, or act.
_NO_FILES = "is not on a disk (/proc, /sys or /dev): it is never read"


def walk(root: Path, told: Callable[[str, str], object], hidden: Callable[[str], object]) -> Iterator[Path]:
    """Files below a folder that may be dumps, in order; links are followed as far as they stay inside, each folder once.

    Args:
        root: the folder, itself perhaps a link: a person named it.
        told: hears a path, and why it is not looked at.
        hidden: whether a file name is none to look at.
    """
    real_root = os.path.realpath(root)
    visited = {real_root}

    def unreadable(error: OSError) -> None:
        told(str(error.filename), f"cannot be read: {error.strerror}")

    def kept(folder: str, name: str) -> bool:
        path = os.path.join(folder, name)
        real = os.path.realpath(path)
        # Dumps are sent by others: a link to /etc, or one that goes round in a circle, is theirs and not ours.
        why = outside(real, real_root) or ("leads to a folder that is read already" if real in visited else None)
        if why is not None:
            told(path, why)
        elif not name.startswith("."):
            visited.add(real)
            return True
        return False

    for folder, subfolders, names in os.walk(root, followlinks=True, onerror=unreadable):
        _leave_out_results(folder, subfolders, names)
        subfolders[:] = [name for name in sorted(subfolders) if kept(folder, name)]
        for name in sorted(names):
            path = Path(folder, name)
            is_link = path.is_symlink() and path.exists() and not hidden(name)  # a dead one is said to be dead
            why = outside(os.path.realpath(path), real_root) if is_link else None
            if why is not None:
                told(str(path), why)
            elif not hidden(name):
                yield path


def _leave_out_results(folder: str, subfolders: list[str], names: list[str]) -> None:
    """Results of a run that lie among the dumps (`cd dumps; eo-audit run .`) are nothing to tell of; dumps beside them are dumps."""
    if "warehouse" in subfolders and is_warehouse(Path(folder, "warehouse")):
        subfolders[:] = [name for name in subfolders if name not in {"warehouse", *RESULTS}]
        names[:] = [name for name in names if name not in RESULTS]


def real_paths(files: Iterable[Path]) -> dict[Path, str]:
    """The path of each file without links. Folders are looked up once: each look-up asks the system for every part of a path."""
    folders: dict[Path, str] = {}
    real: dict[Path, str] = {}
    for path in files:
        if path.parent not in folders:
            folders[path.parent] = os.path.realpath(path.parent)
        real[path] = os.path.realpath(path) if path.is_symlink() else os.path.join(folders[path.parent], path.name)
    return real


def outside(real: str, real_root: str) -> str | None:
    """Why a path, without links, is not looked at; None where it may be."""
    if os.path.commonpath([real, real_root]) != real_root:
        return LEADS_OUT
    return _NO_FILES if _device(real) in _pseudo_devices() else None


def check_file(path: Path) -> os.stat_result:
    """What the system says of a file that is about to be opened.

    Raises:
        NotADump: it is a device, a pipe, or on a file system that holds no files.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise NotADump("is neither a file nor a folder")
    if status.st_dev in _pseudo_devices():
        raise NotADump(_NO_FILES)
    return status


def _device(path: str) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None


@cache
def _pseudo_devices() -> frozenset[int]:
    found = (_device(path) for path in ("/proc", "/sys", "/dev"))
    return frozenset(device for device in found if device is not None and device != _device("/"))
