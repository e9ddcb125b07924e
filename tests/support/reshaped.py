"""Dumps of one cluster made into others that tell the same: segments split, texts in one file, later clocks, a shorter or a younger log.

Only for plain dumps (a text per file, `broker-N` folders), of which a batch line is a line that begins so.
"""

import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

Place = tuple[str, int]
LATER_MS = 86_400_000 * 9 + 7_000
_BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) ", re.MULTILINE)
_POSITION = re.compile(r"^(baseOffset: .*? position: )(\d+)(?= )", re.MULTILINE)
_PLACED = re.compile(r"^(baseOffset: .*? position: )(\d+) .*? size: (\d+) ", re.MULTILINE)
_WHOLE_BATCH = re.compile(
    r"baseOffset: .*? producerId: (?P<id>-?\d+) producerEpoch: (?P<epoch>-?\d+) .*? isTransactional: (?P<transactional>\w+) "
    r".*? position: (?P<position>\d+) .*? compresscodec: (?P<codec>\w+) "
)
_RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) (?P<time>\w+: -?\d+) key[sS]ize: (?P<key>-?\d+) value[sS]ize: (?P<value>-?\d+) "
    r"sequence: (?P<sequence>-?\d+) "
)
_TIME = re.compile(r"(?<!\d)179\d{10}(?!\d)")
_STAMP = re.compile(r" (?:CreateTime|LogAppendTime): (179\d{10}) size: ")
_ENTRY = re.compile(r"^version: \d+ producerId: .* lastOffset: (\d+) ", re.MULTILINE)
_DECODED = re.compile(r"^(\| offset: .*? headerKeys: \[\]) key: .*$", re.MULTILINE)
_COULD_NOT = " key: Error at offset 0, skipping. Could not read record with version 0 from key's buffer due to: null."


@dataclass
class Kept:
    """Which offsets of each partition are still told: from the first on, and up to but not with the second; all where it is not named."""

    start: dict[Place, int] = field(default_factory=dict)
    end: dict[Place, int] = field(default_factory=dict)

    def window(self, place: Place) -> tuple[float, float]:
        """First offset, and the one behind the last."""
        return self.start.get(place, 0), self.end.get(place, float("inf"))


def copied(source: Path, folder: Path, *, listed: bool = False) -> None:
    """The dumps as they are, under the name of the folder; unless `listed` less the listing, which knows how large the files were."""
    shutil.copytree(source, folder)
    for name in () if listed else ("listing.txt", "dumped-at.txt"):
        for path in folder.rglob(name):
            path.unlink()
    manifest = folder / "manifest.yaml"
    manifest.write_text(re.sub(r"(?m)^cluster: .*$", f'cluster: "{folder.name}"', manifest.read_text()))


def split(folder: Path) -> Kept:
    """Each segment becomes two, where it has two batches."""
    for path in _segments(folder):
        _split(path)
    return Kept()


def merged(folder: Path) -> Kept:
    """The segments of each log become one, as if it had never been rolled: its text, its aborted index, and its newest snapshot."""
    for log in sorted({path.parent for path in _segments(folder)}):
        first, *others = sorted(log.glob("*.log.txt"))
        for path in others:
            text = first.read_text()
            end = max((int(found[2]) + int(found[3]) for found in _PLACED.finditer(text)), default=0)
            first.write_text(text + _moved(_batches(path), end))
            _add_entries(*(one.with_name(one.name.replace(".log.", ".txnindex.")) for one in (path, first)))
            path.unlink()
        for path in sorted(log.glob("*.snapshot.txt"))[:-1]:
            path.unlink()
    return Kept()


def permuted(folder: Path) -> Kept:
    """Each text of a broker in a file that is called by a number, in another order than the logs."""
    for broker in sorted(folder.glob("broker-*")):
        paths = sorted(path for path in broker.rglob("*.txt") if path.parent != broker)
        random.Random(11).shuffle(paths)
        for number, path in enumerate(paths):
            path.rename(broker / f"{number}.txt")
    return Kept()


def printed_elsewhere(folder: Path, *, ascii_only: bool = False, crlf: bool = False, noise: str = "") -> Kept:
    """What stood between the tool and the file: a locale without most letters, a terminal, other programs that wrote into it."""
    for path in folder.rglob("*.txt"):
        text = (noise if path.name.endswith(".log.txt") else "") + path.read_text()
        path.write_bytes(text.replace("\n", "\r\n" if crlf else "\n").encode("ascii" if ascii_only else "utf-8", "replace"))
    return Kept()


def without_head(folder: Path) -> Kept:
    """The first half of each data log was not dumped: its segments were split, and the first of them is gone."""
    kept = Kept()
    for path in _segments(folder):
        later = None if path.parent.name.startswith("__") else _split(path)
        if later is not None:
            path.unlink()
            path.with_name(path.name.replace(".log.", ".txnindex.")).unlink(missing_ok=True)
            kept.start[_place(path)] = int(later.name[:20])
    return kept


def in_one_file(folder: Path) -> Kept:
    """All texts of a broker in one file, in another order."""
    for broker in sorted(folder.glob("broker-*")):
        paths = sorted(path for path in broker.rglob("*.txt") if path.parent != broker)
        texts = [path.read_text() for path in paths]
        random.Random(7).shuffle(texts)
        for path in paths:
            path.unlink()
        (broker / "dumped.txt").write_text("".join(texts))
    return Kept()


def one_replica(folder: Path, *, last: bool) -> Kept:
    """Of each partition only the dump of the first or of the last broker."""
    brokers: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("broker-*/*")):
        if path.is_dir():
            brokers.setdefault(path.name, []).append(path)
    for copies in brokers.values():
        for path in copies[:-1] if last else copies[1:]:
            shutil.rmtree(path)
    return Kept()


def later(folder: Path) -> Kept:
    """All clocks showed a time that is days later."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_text(_TIME.sub(lambda found: str(int(found[0]) + LATER_MS), path.read_text()))
    return Kept()


def shorter(folder: Path) -> Kept:
    """The brokers were dumped when two thirds of the batches were there; what a broker notes of the ends of its logs was not dumped."""
    until = two_thirds(folder)
    if until is None:
        return Kept()
    kept = cut_behind(folder, until)
    manifest = folder / "manifest.yaml"
    manifest.write_text(re.sub(r"(?m)^dumped_at: .*$", f"dumped_at: {until + 1}", manifest.read_text()))
    return kept


def two_thirds(folder: Path) -> int | None:
    """The time at which two thirds of the batches were there; None where nothing tells when any was written: printed before 2.2, say."""
    stamps = sorted(int(stamp) for path in _segments(folder) for stamp in _STAMP.findall(path.read_text()))
    return stamps[len(stamps) * 2 // 3] if stamps else None


def cut_behind(folder: Path, until: int) -> Kept:
    """Logs below a folder without what is younger than a time, and without what a broker notes of their ends."""
    kept = Kept()
    for path in _segments(folder):
        text = path.read_text()
        batches = ((found, _STAMP.search(text, found.start())) for found in _BATCH.finditer(text))
        end = next((found for found, stamp in batches if stamp is not None and int(stamp[1]) > until), None)
        if end is not None:
            path.write_text(text[: end.start()])
            kept.end[_place(path)] = int(end[1])
    for path in [*folder.rglob("*.snapshot.txt"), *folder.rglob("recovery-point*"), *folder.rglob("replication-offset*")]:
        path.unlink()
    for path in folder.rglob("*.txnindex.txt"):
        _keep_entries(path, kept.end.get(_place(path), 10**18))
    return kept


def without_first_lines(folder: Path) -> Kept:
    """Of each text, but of the coordinator's, the lines of the first half of the batches are gone; the tool's first words are there."""
    for path in _segments(folder):
        text = path.read_text()
        batches = list(_BATCH.finditer(text))
        if len(batches) > 1 and not path.parent.name.startswith("__transaction_state"):
            path.write_text(text[: batches[0].start()] + text[batches[len(batches) // 2].start() :])
    return Kept()


def garbled(folder: Path) -> Kept:
    """One batch line in the middle of each text of the coordinator's log is damaged, and the newest line of each sidecar is cut."""
    for path in _segments(folder):
        if path.parent.name.startswith("__transaction_state"):
            text = path.read_text()
            batches = list(_BATCH.finditer(text))
            if len(batches) > 2:
                at = batches[len(batches) // 2].start()
                path.write_text(f"{text[:at]}#{text[at + 1 :]}")
    for path in [*folder.rglob("*.snapshot.txt"), *folder.rglob("*.txnindex.txt")]:
        path.write_text(path.read_text().rstrip("\n"))
    return Kept()


def other_decoder(folder: Path) -> Kept:
    """Records of both coordinators as the decoder of another topic prints them, with 3.9 and later."""
    return _undecoded(folder, every=1)


def some_undecoded(folder: Path) -> Kept:
    """Every fifth record as a decoder prints what it cannot read."""
    return _undecoded(folder, every=5)


def _undecoded(folder: Path, every: int) -> Kept:
    for path in _segments(folder):
        if path.parent.name.startswith(("__transaction_state", "__consumer_offsets")):
            numbers, text = count(1), path.read_text()
            numbered = {found.start(): next(numbers) for found in _DECODED.finditer(text)}
            path.write_text(_DECODED.sub(partial(_unread, numbered, every), text))
    return Kept()


def _unread(numbered: Mapping[int, int], every: int, found: re.Match[str]) -> str:
    return found[0] if numbered[found.start()] % every else f"{found[1]}{_COULD_NOT}"


def some_lines_lost(folder: Path) -> Kept:
    """One line in thirty of each log's text is lost, as where a terminal or a log collector drops some."""
    return _line_by_line(folder, lambda line, source: "" if source.random() < 1 / 30 else line)


def some_lines_cut(folder: Path) -> Kept:
    """One line in thirty of each log's text ends anywhere; the lines that name the files as well."""
    return _line_by_line(folder, lambda line, source: f"{line[: source.randrange(len(line))]}\n" if source.random() < 1 / 30 else line)


def _line_by_line(folder: Path, change: Callable[[str, random.Random], str]) -> Kept:
    for path in _segments(folder):
        source = random.Random(f"{folder.name} {path.parent.name}")
        path.write_text("".join(change(line, source) for line in path.read_text().splitlines(keepends=True)))
    return Kept()


def marker_records_lost(folder: Path) -> Kept:
    """One in three of the lines that say what a marker is."""
    return _line_by_line(folder, lambda line, source: "" if " endTxnMarker: " in line and source.random() < 1 / 3 else line)


def batch_lines_lost(folder: Path) -> Kept:
    """One in six of the lines of batches; their records are there."""
    return _line_by_line(folder, lambda line, source: "" if line.startswith("baseOffset: ") and source.random() < 1 / 6 else line)


def only_logs(folder: Path) -> Kept:
    """What somebody dumps who knows of `*.log` alone; of the manifest the name of the cluster is left."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith(".log.txt"):
            path.unlink()
    (folder / "manifest.yaml").write_text(f'cluster: "{folder.name}"\n')
    return Kept()


def without_index(folder: Path) -> Kept:
    """The `.txnindex` files were not dumped."""
    for path in folder.rglob("*.txnindex.txt"):
        path.unlink()
    return Kept()


def binary_values(folder: Path) -> Kept:
    """Values of users' topics are no UTF-8: as many bytes, each of which prints as U+FFFD."""
    for path in _segments(folder):
        if not path.parent.name.startswith("__"):
            text = re.sub(
                r"(?m)^(\| offset: .* payload: )(.+)$", lambda found: found[1] + "\ufffd" * len(found[2].encode()), path.read_text()
            )
            path.write_text(text)
    return Kept()


def without_records(folder: Path) -> Kept:
    """Printed without `--deep-iteration`, but for Kafka's own topics: no record says which marker is a COMMIT."""
    for path in _segments(folder):
        if not path.parent.name.startswith("__"):
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(line for line in lines if line.startswith(("Dumping ", "Log starting ", "baseOffset: "))))
    return Kept()


def other_ending(folder: Path) -> Kept:
    """No such transformation: one COMMIT of a data log reads ABORT. It shows that a difference would be seen."""
    path = next(p for p in _segments(folder) if not p.parent.name.startswith("__") and "endTxnMarker: COMMIT" in p.read_text())
    path.write_text(path.read_text().replace("endTxnMarker: COMMIT", "endTxnMarker: ABORT", 1))
    return Kept()


def _batches(path: Path) -> str:
    """The text of a segment from its first batch on."""
    text = path.read_text()
    first = _BATCH.search(text)
    return "" if first is None else text[first.start() :]


def _moved(batches: str, by: int) -> str:
    """Batches so many bytes further on in their file."""
    return _POSITION.sub(lambda found: f"{found[1]}{int(found[2]) + by}", batches)


def _add_entries(path: Path, other: Path) -> None:
    """The entries of one aborted index at the end of another one."""
    if path.exists():
        head, *entries = path.read_text().splitlines(keepends=True)
        before = other.read_text() if other.exists() else head.replace(path.name[:20], other.name[:20])
        other.write_text(before + "".join(entries))
        path.unlink()


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.log.txt"))


def _place(path: Path) -> Place:
    topic, _, partition = path.parent.name.rpartition("-")
    return topic, int(partition)


def _split(path: Path) -> Path | None:
    """The path of the second half; None: one batch only."""
    text = path.read_text()
    batches = list(_BATCH.finditer(text))
    if len(batches) < 2:
        return None
    middle = batches[len(batches) // 2]
    head, tail = text[: batches[0].start()], text[middle.start() :]
    base, name = int(middle[1]), path.name.replace(path.name[:20], f"{int(middle[1]):020d}")
    before = int(_POSITION.match(tail)[2])  # type: ignore[index]
    path.write_text(text[: middle.start()])
    head = re.sub(r"offset: \d+\n$", f"offset: {base}\n", head.replace(path.name[:20], name[:20]))
    second = path.with_name(name)
    second.write_text(head + _moved(tail, -before))
    index = path.with_name(path.name.replace(".log.", ".txnindex."))
    if index.exists():
        second_index = second.with_name(second.name.replace(".log.", ".txnindex."))
        second_index.write_text(index.read_text().replace(path.name[:20], name[:20]))
        _keep_entries(index, base)
        _keep_entries(second_index, 10**18, start=base)
    return second


def _keep_entries(path: Path, end: int, start: int = 0) -> None:
    """Of an aborted index only entries whose transactions end in a range; an index without any is no file."""
    lines = path.read_text().splitlines(keepends=True)
    found = {line: int(entry[1]) for line in lines if (entry := _ENTRY.match(line))}
    kept = [line for line in lines if line not in found or start <= found[line] < end]
    if len(kept) > len(lines) - len(found):
        path.write_text("".join(kept))
    else:
        path.unlink()


def offsets_of(ranges: Mapping[Place, list[tuple[int, int]]], kept: Kept) -> dict[Place, set[int]]:
    """The offsets of ranges, as far as they are still told."""
    told = {}
    for place, parts in ranges.items():
        start, end = kept.window(place)
        told[place] = {offset for first, last in parts for offset in range(first, last + 1) if start <= offset < end}
    return {place: offsets for place, offsets in told.items() if offsets}


def printed_before(folder: Path, release: str) -> Kept:
    """A tool older than 2.2 printed the logs (`1.1`, or `0.11.0.0`, without the epochs of producers): a line for each record, none for its
    batch. Batches that the cleaner emptied are gone with that."""
    for path in _segments(folder):
        path.write_text("".join(_flat(path.read_text(), epochs=release != "0.11.0.0")))
    return Kept()


def _flat(text: str, *, epochs: bool) -> Iterator[str]:
    batch: re.Match[str] | None = None
    for line in text.splitlines(keepends=True):
        batch = _WHOLE_BATCH.match(line) or batch
        record = _RECORD.match(line)
        if record is None:
            yield from () if _WHOLE_BATCH.match(line) else [line.replace("Log starting offset", "Starting offset")]
        elif batch is not None:
            of_batch = f"magic: 2 compresscodec: {batch['codec'].upper()} producerId: {batch['id']}"
            epoch = f" producerEpoch: {batch['epoch']}" if epochs else ""
            sizes = f"keysize: {record['key']} valuesize: {record['value']}"
            yield f"offset: {record['offset']} position: {batch['position']} {record['time']} isvalid: true {sizes} {of_batch}{epoch} "
            yield f"sequence: {record['sequence']} isTransactional: {batch['transactional']} {line[record.end() :]}"
