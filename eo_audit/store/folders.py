"""Where dumps and results may lie: on this machine's file systems. What is said of a place that cannot be used, before any work begins."""

import os
import re
from pathlib import Path

from eo_audit.errors import InputError, WarehouseError

# A path of `s3://bucket/dumps` has lost a slash by the time it is a `Path`.
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<rest>.*)", re.DOTALL)


def refuse_scheme(path: Path, error: type[InputError | WarehouseError]) -> None:
    """Refuse an address such as `s3://bucket/dumps`; only folders and files are read and written.

    Args:
        path: as the user gave it.
        error: what to raise.

    Raises:
        InputError, WarehouseError: it has a scheme, and nothing on this machine has that name.
    """
    found = _SCHEME.fullmatch(str(path))
    if found is None or path.exists():
        return
    if found["scheme"].lower() == "file":
        raise error(f"file:///{found['rest']} is an address: give the path itself, /{found['rest']}")
    address = f"{found['scheme']}://{found['rest']}"
    raise error(f"{address} cannot be used: only folders and files of this machine can; copy it here, or mount it, and name that folder")


def dump_path(input_path: object, path: object) -> Path:
    """Where a dump file lies.

    Args:
        input_path, path: as in `dump_files`. An input may be one file; then its path is that of the file.
    """
    given = Path(str(input_path))
    is_the_file = given.is_file() or (str(given).endswith(f"/{path}") and not given.is_dir())
    return given if is_the_file else given / str(path)


# What a run leaves in its `--out` beside the tables.
RESULTS = frozenset({"findings.jsonl", "verdict.json", "report.html", "data-docs"})


def is_warehouse(folder: Path) -> bool:
    """Whether a folder holds the tables of a run: the first one that writes there leaves the file that it locks."""
    return folder.name == "warehouse" and (folder / "_lock").is_file()


# Readers of Delta tables take the path for an address: they decode it, and a backslash for a slash.
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|\\|[\x00-\x1f\x7f]")


def refuse_misread(path: Path) -> None:
    """Refuse a folder for results that readers of Delta tables would look for elsewhere.

    Raises:
        WarehouseError: `%2F` and the like, a backslash or a control character is in its path.
    """
    found = _MISREAD.search(str(path.absolute()))
    if found is not None:
        raise WarehouseError(f"--out {path} cannot be used: readers of Delta tables misread {found[0]!r} in a path; name another folder")


def make_folder(path: Path) -> None:
    """The folder of the results, made if it is not there.

    Raises:
        WarehouseError: it cannot be made or written, or something else has its name.
    """
    refuse_scheme(path, WarehouseError)
    refuse_misread(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise WarehouseError(f"--out {path} is a file: name a folder for the results") from None
    except NotADirectoryError:
        raise WarehouseError(f"--out {path} cannot be made: a folder above it is a file") from None
    except OSError as error:
        raise WarehouseError(f"--out {path} cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise WarehouseError(f"--out {path} cannot be written by this user, or at all")
