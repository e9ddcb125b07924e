"""Errors a user may see, each with its exit code.

AuditError
├── ArgumentError       10  a bad argument
├── InputError          11  a path or a set of dumps that cannot be audited
├── ConfigurationError  12  a policy, configuration or schema that cannot be used
├── WarehouseError      11  results that cannot be read or written (locked, missing, of another version)
└── InterruptionError   130  Ctrl-C, and what became of the results

A bad *line* is data and never an exception. Any other exception is a crash: 20.
"""

import errno
import os
import shutil
import tempfile
from pathlib import Path

PASS, FAIL, UNKNOWN = 0, 1, 2
CRASH = 20
INTERRUPTED = 130

# A note on whatever ended a run that had removed verdict.json: findings.jsonl and the report are written just before the new one.
VERDICT_GONE = "findings and report of the last finished audit stand, verdict.json is gone until a run has ended"


class AuditError(Exception):
    """Base of every error that is printed as one sentence, without a stack trace."""

    exit_code = CRASH


class ArgumentError(AuditError):
    """An argument that cannot be understood."""

    exit_code = 10


class InputError(AuditError):
    """A path that does not exist, or two files that claim the same segment with different content."""

    exit_code = 11


class ConfigurationError(AuditError):
    """A policy, configuration or schema file that cannot be used."""

    exit_code = 12


class WarehouseError(AuditError):
    """Results that are locked, missing or of another version."""

    exit_code = 11


class InterruptionError(AuditError):
    """Ctrl-C, with what became of the results."""

    exit_code = INTERRUPTED


# What a machine may refuse at any moment: its disk is full, over quota, read-only or broken.
_OF_DISKS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file may not grow any more (ulimit -f)",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk reports an error",
}


_WRITES_INTO = "the run writes into "


def note_folder(error: BaseException, folder: Path) -> None:
    """Note on an error into which folder the run that it ended wrote: Spark and delta-rs do not say where a disk was full."""
    error.add_note(f"{_WRITES_INTO}{folder}")


def of_machine(error: BaseException) -> str | None:
    """What a machine refused, if that is what an error is about: of Python, of delta-rs and of Spark, which only quote it.

    Returns:
        A few words, with the file where it is known, else with the folders that it may be about; or None.
    """
    words = _refused(error)
    noted = next((note.removeprefix(_WRITES_INTO) for note in getattr(error, "__notes__", ()) if note.startswith(_WRITES_INTO)), None)
    if words is None or noted is None or ": " in words:
        return words
    folders = dict.fromkeys((noted, tempfile.gettempdir()))
    return f"{words}: {' or '.join(f'{folder} ({_room(folder)})' for folder in folders)}"


def _room(folder: str) -> str:
    try:
        return f"{shutil.disk_usage(folder).free / 1_000_000:,.1f} MB left"
    except OSError as error:
        return str(error.strerror).lower()


def _refused(error: BaseException) -> str | None:
    name = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
    for code, words in _OF_DISKS.items():
        if (isinstance(error, OSError) and error.errno == code) or os.strerror(code) in str(error) or f"(os error {code})" in str(error):
            return words + name
    return None if error.__cause__ is None else _refused(error.__cause__)
