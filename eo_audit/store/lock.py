"""One writer at a time: an exclusive lock on a folder that names the process and the host that hold it, and beats while they live.

The operating system frees the lock of a process that died, so a dead process of this host never blocks. A file system may not carry locks
between hosts: there the heartbeat tells. Moments are those of the file system itself, so that clocks of hosts need not agree.
"""

import fcntl
import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from eo_audit.errors import WarehouseError

# Twelve beats may be missed (a swapped-out host, a file server that hangs) before a holder elsewhere counts as dead.
BEAT_SECONDS = 10.0
DEAD_AFTER_SECONDS = 120.0


class Held:
    """A lock that this process holds, until somebody breaks it."""

    def __init__(self, path: Path, descriptor: int, *, died: bool, broken: str | None = None) -> None:
        """A lock that was just taken.

        Args:
            path: the lock file.
            descriptor: of the open file.
            died: its last holder did not give it back.
            broken: the holder that it was taken from, who may be at work still.
        """
        self.died = died
        self.broken = broken
        self._path = path
        self._descriptor = descriptor

    def is_ours(self) -> bool:
        """Does the lock file still name this process? Not if another one has put its own there."""
        try:
            return _is_at(self._path, self._descriptor) and _content(self._path).get("token") == _TOKEN
        except OSError:
            return False

    def check(self) -> None:
        """Raise unless the lock is held.

        Raises:
            WarehouseError: somebody broke it, or believed this process dead while it slept.
        """
        if not self.is_ours():
            raise WarehouseError(f"{self._path.parent} was taken over by {_holder(self._path)} meanwhile: this run writes nothing more")

    def beat(self) -> None:
        """Tell that this process lives."""
        with suppress(OSError):  # the next one will do
            os.utime(self._descriptor)


@contextmanager
def exclusive(path: Path, *, break_lock: bool = False) -> Iterator[Held]:
    """Hold the lock file at a path.

    Args:
        path: the lock file.
        break_lock: take it from whoever holds it; his next `check` fails.

    Raises:
        WarehouseError: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A new file, not the old one locked again: the holder keeps his own, sees at his next commit that the path is another file, and stops.
    broken = _holder(path) if break_lock and _content(path) else None
    if break_lock:
        path.unlink(missing_ok=True)
    with _taken(path) as file:
        # Before the file is emptied: a holder that ended in order has left nothing in it.
        held = Held(path, file.fileno(), died=bool(_content(path)), broken=broken)
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "token": _TOKEN}))
        file.flush()
        done = threading.Event()
        beating = threading.Thread(target=_beat, args=(held, done), name="eo-audit-lock", daemon=True)
        beating.start()
        try:
            yield held
        finally:
            done.set()
            beating.join()
            if held.is_ours():
                file.truncate(0)


# Process ids come back, and hosts may share a name (containers): only this tells two holders apart.
_TOKEN = secrets.token_hex(8)


def _beat(held: Held, done: threading.Event) -> None:
    while not done.wait(BEAT_SECONDS):
        held.beat()


def _taken(path: Path) -> TextIO:
    """The lock file, open and locked."""
    while True:
        file = path.open("a+")
        try:
            _take(file.fileno(), path)
            if _is_at(path, file.fileno()):
                return file
        except BaseException:
            file.close()
            raise
        # Another run broke the lock between the two: this one holds a file that nobody sees, so the one that is there now is asked.
        file.close()


def _is_at(path: Path, descriptor: int) -> bool:
    """Is the file at a path the one that is open?"""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _take(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WarehouseError(f"{path.parent} is being written by {_holder(path)}: wait for it, or choose another --out") from None
    content = _content(path)
    # On this host `flock` has answered already: who holds no lock here is dead.
    if content.get("host") in (None, socket.gethostname()):
        return
    silent = _now(path) - path.stat().st_mtime
    if "token" not in content:  # of a release that does not beat
        raise WarehouseError(f"{path.parent} is being written by {_holder(path)}: wait for it, or use --break-lock if it died")
    if silent < DEAD_AFTER_SECONDS:
        left = f"if it died, this works in {DEAD_AFTER_SECONDS - silent:.0f} s, or with --break-lock at once"
        raise WarehouseError(f"{path.parent} is being written by {_holder(path)}, seen {max(silent, 0):.0f} s ago: wait for it ({left})")


def _now(path: Path) -> float:
    """The clock of the file system that the lock is on."""
    # A file server's clock may be minutes off this host's: what it stamps on a new file is its now.
    probe = path.with_name(f"_now-{_TOKEN}")
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def _content(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text())
    except (ValueError, OSError):
        return {}
    return content if isinstance(content, dict) else {}


def _holder(path: Path) -> str:
    content = _content(path)
    return f"process {content['pid']} on host {content['host']}" if {"pid", "host"} <= set(content) else "another process"
