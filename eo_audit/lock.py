"""One writer at a time: an exclusive lock on a folder that names the process and the host that hold it."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eo_audit.errors import WarehouseError


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold the lock file at a path.

    The operating system frees the lock of a process that died, so a dead process of this host never blocks. A file system may not
    carry locks between hosts: a lock that names another host is believed, whatever the file system says.

    Yields:
        Whether its last holder died: it still names one.

    Raises:
        WarehouseError: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        _take(file.fileno(), path)
        died = bool(_content(path))
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        try:
            yield died
        finally:
            file.truncate(0)


def _take(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WarehouseError(f"{path.parent} is being written by {_holder(path)}: wait for it, or choose another --out") from None
    if _host(path) not in (None, socket.gethostname()):
        raise WarehouseError(f"{path.parent} is being written by {_holder(path)}: wait for it, or remove {path} if it died")


def _content(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text())
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _host(path: Path) -> object:
    return _content(path).get("host")


def _holder(path: Path) -> str:
    content = _content(path)
    return f"process {content['pid']} on host {content['host']}" if {"pid", "host"} <= set(content) else "another process"
