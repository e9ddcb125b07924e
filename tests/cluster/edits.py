"""Printed text that a fault changes: damage on disk shows there, and what some other program than a broker wrote."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """One change of one printed file, in every copy of its log.

    Attributes:
        file: the folder of the log and the name, such as `orders-0/00000000000000000000.log.txt`.
        change: the text to what is printed instead; None: the file was not dumped.
        more_bytes: so much longer is the file on disk, in a listing.
    """

    file: str
    change: Callable[[str], str | None]
    more_bytes: int = 0


def write(edits: Sequence[Edit], path: Path, text: str) -> None:
    """Write the text of a dump file as it is printed.

    Args:
        edits: all of the cluster.
        path: below the folder of its log.
        text: as it would be without them.
    """
    printed: str | None = text
    for edit in edits:
        if edit.file == f"{path.parent.name}/{path.name}" and printed is not None:
            printed = edit.change(printed)
    if printed is not None:
        path.write_text(printed)


def are_met(edits: Sequence[Edit], printed: Collection[str]) -> bool:
    """Whether every file that is changed is one that was dumped: what was rolled behind the listing of the script is not."""
    return all(edit.file in printed for edit in edits)


def tail_bytes(edits: Sequence[Edit], name: str, base: int) -> int:
    """How many bytes more than its batches a segment has."""
    return sum(edit.more_bytes for edit in edits if edit.file == f"{name}/{base:020d}.log.txt")
