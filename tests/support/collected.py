"""Dumps of one cluster of which less was collected: segments that nobody dumped, and brokers that were dumped at another time."""

import random
import re
from pathlib import Path

from tests.support.reshaped import Kept, cut_behind, two_thirds

_BASE = re.compile(r"^(\d{20})\.")


def some_segments(folder: Path) -> Kept:
    """Of each log that has several segments one in three was not dumped, neither its text nor what its broker keeps beside it."""
    for log in _logs(folder):
        drawn = random.Random(f"{folder.name} {log.parent.name} {log.name}")
        bases = _bases(log)
        _leave_out(log, [base for base in bases if len(bases) > 1 and drawn.random() < 1 / 3])
    return Kept()


def newest_segments(folder: Path, *, coordinators: bool) -> Kept:
    """The newest segment of each log of the coordinators, or of each other log."""
    for log in _logs(folder):
        if log.name.startswith("__transaction_state") == coordinators:
            _leave_out(log, _bases(log)[:-1])
    return Kept()


def one_broker_earlier(folder: Path) -> Kept:
    """The first broker was dumped when two thirds of all batches were there; what it notes of the ends of its logs was not dumped."""
    until, brokers = two_thirds(folder), sorted(folder.glob("broker-*"))
    return Kept() if until is None or len(brokers) < 2 else cut_behind(brokers[0], until)


def _logs(folder: Path) -> list[Path]:
    return sorted({path.parent for path in folder.rglob("*.log.txt")})


def _bases(log: Path) -> list[str]:
    return sorted(path.name[:20] for path in log.glob("*.log.txt"))


def _leave_out(log: Path, bases: list[str]) -> None:
    for path in log.iterdir():
        if (found := _BASE.match(path.name)) and found[1] in bases:
            path.unlink()
