"""The first pass over dump files: the digest of each, where its sections begin, and whether its facts are in the tables already."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from eo_audit.dump import ranges
from eo_audit.dump.files.discovery import DumpFile
from eo_audit.dump.files.identity import dump_file_id
from eo_audit.dump.lines.console import HEADS as CONSOLE_FORMATTERS
from eo_audit.dump.ranges import Survey, Text
from eo_audit.errors import InputError
from eo_audit.store.tables import Warehouse
from eo_audit.store.tasks import Tasks

T = TypeVar("T")
_Whose = tuple[object, ...]

# Files that speak of a whole dump set, not of one log on one broker.
_OF_NO_LOG = {"manifest", "listing", "dump_times", "tool_messages", "broker_answers", *CONSOLE_FORMATTERS}


@dataclass(frozen=True)
class Surveyed:
    """A dump file after the first pass: its parts in order, the digest of its text, and its id."""

    file: DumpFile
    surveys: tuple[Survey, ...]
    digest: str
    dump_file_id: int

    @property
    def text(self) -> Text:
        """Where to read it."""
        return Text(self.file.absolute, self.file.compression)

    @property
    def size(self) -> int:
        """Length of the text in bytes."""
        return sum(part.length for part in self.surveys)

    @property
    def damage(self) -> str | None:
        """What is wrong behind its last byte that can be read: a sentence's end; None where nothing is."""
        found = next((part.damage for part in self.surveys if part.damage), None)
        if found is None:
            return None
        return f"is damaged gzip ({found}): read up to byte {self.size:,} of its text, as if it ended there; pack or copy it once more"


def survey_files(files: Sequence[DumpFile], *, range_bytes: int, tasks: Tasks) -> list[Surveyed]:
    """Survey dump files; plain ones longer than `range_bytes` in parts of that size.

    Raises:
        InputError: a file cannot be read to its end.
    """
    # This pass only hashes and looks for `Dumping` lines, many times faster than reading: tasks are four times as large.
    pieces = [(index, part) for index, file in enumerate(files) for part in _parts(file, range_bytes)]
    sizes = [(part[1] or files[index].stored_bytes) - part[0] for index, part in pieces]
    placed = [(index, Text(files[index].absolute, files[index].compression), part) for index, part in pieces]
    found: defaultdict[int, list[Survey]] = defaultdict(list)
    for group in tasks.run("looking through the dumps", _survey, grouped(placed, sizes, 4 * range_bytes)):
        for index, part in group:
            found[index].append(part)
    return [_surveyed(file, found[index]) for index, file in enumerate(files)]


def grouped(items: Sequence[T], sizes: Sequence[int], limit: int) -> list[list[T]]:
    """Items, in order, in groups of at most `limit` bytes: a Spark task costs a tenth of a second by itself, so tasks are few and large."""
    groups: list[list[T]] = []
    room = 0
    for item, size in zip(items, sizes, strict=True):
        if size > room or not groups:
            groups.append([])
            # A file larger than the limit is a group of its own.
            room = limit
        groups[-1].append(item)
        room -= size
    return groups


def unknown_files(warehouse: Warehouse, surveyed: Sequence[Surveyed]) -> list[Surveyed]:
    """The files whose facts are not in the tables yet; the same text at the same path in two inputs is one file.

    A file is known when the same text was read before for the same logs: (digest, cluster, broker, topic, partition, segment base).

    Raises:
        InputError: the same file was read before, but a manifest now gives it to another log.
    """
    # Ids are made of path and text: two inputs that hold one file hold it once.
    unique: dict[int, Surveyed] = {}
    for file in surveyed:  # the same file in two dumps is of the newer one
        if _dumped_at(unique.setdefault(file.dump_file_id, file)) < _dumped_at(file):
            unique[file.dump_file_id] = file
    recorded = _recorded(warehouse, {file.digest for file in surveyed})
    return [file for file in unique.values() if not _is_known(file, recorded)]


def met_again(warehouse: Warehouse, surveyed: Sequence[Surveyed]) -> list[tuple[int, Surveyed]]:
    """The files whose text is in the tables already, and was now met in a newer dump: the id of the stored file, and the file."""
    recorded = _recorded(warehouse, {file.digest for file in surveyed})
    # A log that did not change between two dumps is one text, but its silence was seen twice: the newer time tells up to when nothing was
    # written.
    times: defaultdict[int, int] = defaultdict(lambda: -1)
    for table in ("dump_files", "dump_sightings"):
        for row in warehouse.arrow(table).select(["dump_file_id", "dumped_at_ms"]).to_pylist():
            times[row["dump_file_id"]] = max(times[row["dump_file_id"]], -1 if row["dumped_at_ms"] is None else row["dumped_at_ms"])
    newer: dict[int, Surveyed] = {}
    for file in sorted(surveyed, key=_dumped_at):
        for stored, sections in recorded.get((file.file.cluster, file.digest), {}).items():
            if times[stored] < _dumped_at(file) and _is_same_log(file, stored, sections):
                newer[stored] = file
    return sorted(newer.items())


def _dumped_at(file: Surveyed) -> int:
    return -1 if file.file.dumped_at_ms is None else file.file.dumped_at_ms


def _is_same_log(file: Surveyed, stored: int, sections: Sequence[_Whose]) -> bool:
    if file.file.kind_hint in _OF_NO_LOG:
        return file.dump_file_id == stored
    return all(_taken_for(file.file, whose) == whose for whose in sections)


def _parts(file: DumpFile, range_bytes: int) -> list[tuple[int, int | None]]:
    # gzip cannot be entered in the middle; files of another kind than text are small.
    if file.compression == "gzip" or file.kind_hint != "text" or file.stored_bytes <= range_bytes:
        return [(0, None)]
    return [*ranges.parts(file.stored_bytes, range_bytes)]


def _survey(pieces: Sequence[tuple[int, Text, tuple[int, int | None]]]) -> list[tuple[int, Survey]]:
    return [(index, ranges.survey(text, *part)) for index, text, part in pieces]


def _surveyed(file: DumpFile, surveys: Sequence[Survey]) -> Surveyed:
    digest = ranges.digest(surveys)
    return Surveyed(file, tuple(surveys), digest, dump_file_id(file.cluster, file.path, digest))


def _recorded(warehouse: Warehouse, digests: set[str]) -> dict[tuple[str, str], dict[int, list[_Whose]]]:
    """Of the files in the tables with one of these digests: (cluster, digest) -> file -> what its sections were taken for."""
    files = warehouse.arrow("dump_files").select(["dump_file_id", "cluster", "digest"]).to_pylist()
    recorded: defaultdict[tuple[str, str], dict[int, list[_Whose]]] = defaultdict(dict)
    sections: dict[int, list[_Whose]] = {}
    for row in files:
        if row["digest"] in digests:
            sections[row["dump_file_id"]] = recorded[row["cluster"], row["digest"]][row["dump_file_id"]] = []
    if sections:
        columns = ["dump_file_id", "dumped_path", "broker", "topic", "partition", "segment_base_offset"]
        for row in warehouse.arrow("dump_sections").select(columns).to_pylist():
            sections.get(row["dump_file_id"], []).append(tuple(row[name] for name in columns[1:]))
    return recorded


def _is_known(file: Surveyed, recorded: dict[tuple[str, str], dict[int, list[_Whose]]]) -> bool:
    alike = recorded.get((file.file.cluster, file.digest), {})
    if file.file.kind_hint in _OF_NO_LOG:
        return file.dump_file_id in alike
    known = any(all(_taken_for(file.file, whose) == whose for whose in sections) for sections in alike.values())
    # The id of a file is made of its path and text, whoever it is said to be of: its facts would be there twice under one id.
    if file.dump_file_id in alike and not known:
        name = f"{file.file.input_path}/{file.file.path}"
        raise InputError(f"{name} was ingested before as text of another broker or partition (did its manifest change?): use a fresh --out")
    return known


def _taken_for(file: DumpFile, whose: _Whose) -> _Whose:
    dumped_path = whose[0]
    assert dumped_path is None or isinstance(dumped_path, str)
    identity = file.identity(dumped_path)
    return dumped_path, identity.broker, identity.topic, identity.partition, identity.segment_base_offset
