"""A real dump with one thing in it changed: batches, index entries, snapshot lines, checkpoints, manifest as text, which stays a print
of the tool. Positions, offsets behind a place and the ends that brokers note go along; checksums are those of the tool, which prints what
stands in the file.

Only for plain dumps of one broker (a text per file), of which a batch line is a line that begins so.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.reshaped import copied

_BEGIN = re.compile(r"^(?=baseOffset: )", re.MULTILINE)
_POSITION = re.compile(r" position: \d+(?= )")
_OFFSETS = re.compile(r"^(\| offset|baseOffset): (\d+)(?: lastOffset: (\d+))?", re.MULTILINE)
_ENDS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
BROKER = "broker-1"


@dataclass
class Segment:
    """One file of a log: the lines before its first batch, and its batches with their records."""

    path: Path
    head: str
    batches: list[str]

    @classmethod
    def of(cls, path: Path) -> "Segment":
        """As it was printed."""
        head, *batches = _BEGIN.split(path.read_text())
        return cls(path, head, batches)

    def write(self) -> None:
        """With each batch where the ones before it end."""
        position, placed = 0, []
        for batch in self.batches:
            placed.append(_POSITION.sub(f" position: {position}", batch, count=1))
            position += _number("size", batch)
        self.path.write_text(self.head + "".join(placed))


def mutated(source: Path, folder: Path, edits: Sequence[Mapping[str, Any]], *, listed: bool = False) -> None:
    """A copy of a dump with some edits, one after the other, under the name of the folder; `listed`: with its listing, for edits that leave
    the logs as large as they were."""
    copied(source, folder, listed=listed)
    for edit in edits:
        (kind,) = edit.keys() & EDITS.keys()
        EDITS[kind](folder, edit[kind], **{name: value for name, value in edit.items() if name != kind})


def change(folder: Path, at: str, **said: Any) -> None:
    """Other words in one batch: `fields` by name in its lines, `words` as they stand there."""
    segment, number = _find(folder, at)
    _there_are(said.get("words", {}), segment.batches[number : number + 1])
    segment.batches[number] = _reworded(segment.batches[number], **said)
    segment.write()


def repeat(folder: Path, batches: Sequence[str], *, before: str, times: int = 1, later_ms: int = 0, **said: Any) -> None:
    """Batches once more (`times`), at the end of a log or before an offset of it; each time so much later."""
    texts = ["".join(found.batches[number]) for found, number in (_find(folder, at) for at in batches)]
    _there_are(said.get("words", {}), texts)
    for time in range(1, times + 1):
        for text in texts[:: 1 if before.endswith("@end") else -1]:
            _insert(folder, before, _later(_reworded(text, **said), time * later_ms))


def drop(folder: Path, at: str, *, close_up: bool = False) -> None:
    """Without one batch: its offsets are missing, or what stood behind it stands there."""
    segment, number = _find(folder, at)
    text = segment.batches.pop(number)
    segment.write()
    if close_up:
        _shift(folder, at.split("@")[0], _number("baseOffset", text), -_span(text))


def text(folder: Path, file: str, *, find: str, put: str, times: int = 1) -> None:
    """Other words in the files of a name, at exactly so many places in all."""
    counted = 0
    paths = sorted(folder.glob(file))
    for path in paths:
        changed, count = re.subn(find, put, path.read_text(), flags=re.MULTILINE)
        path.write_text(changed)
        counted += count
    assert counted == times, f"{find} in {file}: {counted} places"


def remove(folder: Path, file: str) -> None:
    """Without one file."""
    (folder / file).unlink()


EDITS: Mapping[str, Callable[..., None]] = {"change": change, "repeat": repeat, "drop": drop, "text": text, "remove": remove}


def _find(folder: Path, at: str) -> tuple[Segment, int]:
    """The segment with the batch that begins at an offset (`orders-0@12`), and which of it that is."""
    log, _, offset = at.partition("@")
    for path in sorted((folder / BROKER / log).glob("*.log.txt")):
        segment = Segment.of(path)
        for number, batch in enumerate(segment.batches):
            if _number("baseOffset", batch) == int(offset):
                return segment, number
    raise LookupError(f"no batch begins at {at}")


def _insert(folder: Path, before: str, batch: str) -> None:
    log, _, offset = before.partition("@")
    last = Segment.of(sorted((folder / BROKER / log).glob("*.log.txt"))[-1])
    if offset == "end":
        end = max((_number("lastOffset", one) + 1 for one in last.batches), default=0)
        segment, number = last, len(last.batches)
    else:
        end = int(offset)
        segment, number = _find(folder, before)
    _shift(folder, log, end, _span(batch))
    segment = Segment.of(segment.path)
    segment.batches.insert(number, _moved(batch, end - _number("baseOffset", batch)))
    segment.write()


def _shift(folder: Path, log: str, start: int, by: int) -> None:
    """All that stands from an offset on stands elsewhere: batches, index entries, snapshots, and the end that the broker notes."""
    for path in sorted((folder / BROKER / log).glob("*.log.txt")):
        segment = Segment.of(path)
        segment.batches = [_moved(one, by) if _number("baseOffset", one) >= start else one for one in segment.batches]
        segment.write()
    for path in sorted((folder / BROKER / log).glob("*.txt")):
        if ".txnindex." in path.name or ".snapshot." in path.name:
            names = "firstOffset|lastOffset|lastStableOffset"
            path.write_text(re.sub(rf"\b({names}): (\d+)", lambda m: f"{m[1]}: {_there(m[2], start, by)}", path.read_text()))
        if ".snapshot." in path.name and int(path.name[:20]) > start:
            name = f"{int(path.name[:20]) + by:020d}"
            path.write_text(path.read_text().replace(path.name[:20], name))
            path.rename(path.with_name(path.name.replace(path.name[:20], name)))
    topic, _, partition = log.rpartition("-")
    for name in _ENDS:
        path = folder / BROKER / name
        path.write_text(re.sub(rf"(?m)^({re.escape(topic)} {partition}) (\d+)$", lambda m: f"{m[1]} {int(m[2]) + by}", path.read_text()))


def _there(offset: str, start: int, by: int) -> int:
    return int(offset) + by if int(offset) >= start else int(offset)


def _moved(batch: str, by: int) -> str:
    def there(found: re.Match[str]) -> str:
        last = "" if found[3] is None else f" lastOffset: {int(found[3]) + by}"
        return f"{found[1]}: {int(found[2]) + by}{last}"

    return _OFFSETS.sub(there, batch)


def _later(batch: str, by_ms: int) -> str:
    return re.sub(r"(?<!\d)179\d{10}(?!\d)", lambda found: str(int(found[0]) + by_ms), batch)


def _reworded(batch: str, fields: Mapping[str, object] | None = None, words: Mapping[str, str] | None = None) -> str:
    for name, value in (fields or {}).items():
        batch, count = re.subn(rf"(?<![\w]){name}: \S+", f"{name}: {value}", batch)
        assert count, f"no {name} in {batch}"
    for old, new in (words or {}).items():
        batch = batch.replace(old, new)
    return batch


def _there_are(words: Mapping[str, str], batches: Sequence[str]) -> None:
    missing = [word for word in words if not any(word in batch for batch in batches)]
    assert not missing, f"no {missing} in {batches}"


def _number(name: str, batch: str) -> int:
    found = re.search(rf"\b{name}: (-?\d+)", batch)
    assert found is not None
    return int(found[1])


def _span(batch: str) -> int:
    return _number("lastOffset", batch) - _number("baseOffset", batch) + 1
