"""Dumps as collect-dumps.sh makes them, with what it notes beside them: how large each file was, and when it was dumped."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.reshaped import Kept

_BATCH = re.compile(r"^baseOffset: .* position: (\d+) .* size: (\d+) ", re.MULTILINE)
_ENTRY = re.compile(r"^(?:version|producerId): .*\n", re.MULTILINE)
# Bytes before the first entry, and of each: `AbortedTxn.TotalSize`, and the schema of a snapshot in `ProducerStateManager`.
_SIZES = {"txnindex": (0, 34), "snapshot": (10, 46)}


def entries_lost(folder: Path) -> Kept:
    """The first entry of each aborted index and the last one of each snapshot are lost behind the script's back."""
    for path in _noted(folder):
        if path.name.endswith((".txnindex.txt", ".snapshot.txt")):
            text = path.read_text()
            entries = [found.span() for found in _ENTRY.finditer(text)]
            start, end = entries[0 if path.name.endswith(".txnindex.txt") else -1] if entries else (0, 0)
            path.write_text(text[:start] + text[end:])
    return Kept()


def _noted(folder: Path) -> Iterator[Path]:
    """Each file of a log, behind the notes of the script about all of its broker."""
    (dumped_at,) = re.findall(r"^dumped_at: (\d+)", (folder / "manifest.yaml").read_text(), re.MULTILINE)
    for broker in sorted(folder.glob("broker-*")):
        dumped = sorted(path for path in broker.glob("*/*.txt") if path.name.split(".")[1] in ("log", *_SIZES))
        names = {path: f"{path.parent.name}/{path.name.removesuffix('.txt')}" for path in dumped}
        (broker / "listing.txt").write_text("".join(f"{_size(path)} {name}\n" for path, name in names.items()))
        (broker / "dumped-at.txt").write_text("".join(f"{dumped_at} {name}\n" for name in names.values()))
        yield from dumped


def _size(path: Path) -> int:
    kind, text = path.name.split(".")[1], path.read_text()
    if kind == "log":
        return max((int(position) + int(size) for position, size in _BATCH.findall(text)), default=0)
    head, each = _SIZES[kind]
    return head + each * len(_ENTRY.findall(text))
