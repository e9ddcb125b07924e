"""Where Spark and Java leave what they need for a moment: a folder of this process alone, which the next run removes if a kill left it."""

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_ALIVE = "_alive"
# Between making a folder and locking it a process looks dead.
_YOUNG_SECONDS = 60


@cache
def own_folder() -> Path:
    """The folder of this process, made now and removed at its end; those of dead processes of this user are removed at once."""
    above = _above()
    clear(above)
    own = Path(tempfile.mkdtemp(dir=above))
    descriptor = os.open(own / _ALIVE, os.O_RDWR | os.O_CREAT, 0o600)  # stays open, and so locked, as long as the process lives
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def clear(above: Path) -> None:
    """Remove the folders of processes that are dead: nobody holds their lock."""
    for folder in above.iterdir():
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _YOUNG_SECONDS and _is_dead(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _above() -> Path:
    """`eo-audit-UID` in the temporary folder, if it is this user's; nobody else may prepare one."""
    above = Path(tempfile.gettempdir()) / f"eo-audit-{os.getuid()}"
    with suppress(FileExistsError):
        above.mkdir(mode=0o700)
    status = above.lstat()
    # The temporary folder is everybody's: another user could have made this one, or a link, to read what Spark spills.
    if above.is_dir() and not above.is_symlink() and status.st_uid == os.getuid() and not status.st_mode & 0o022:
        return above
    return Path(tempfile.mkdtemp(prefix="eo-audit-"))


def _is_dead(folder: Path) -> bool:
    alive = folder / _ALIVE
    if not alive.is_file():
        return True
    with alive.open("r+") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
