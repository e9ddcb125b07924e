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


def make_folder(path: Path) -> None:
    """The folder of the results, made if it is not there.

    Raises:
        WarehouseError: it cannot be made or written, or something else has its name.
    """
    refuse_scheme(path, WarehouseError)
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
