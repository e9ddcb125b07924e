"""Dump text to fact tables: tasks read ranges and write Parquet files, the driver folds and commits.

Facts are visible only when the caller publishes; those of a range that the fold rejects are never committed.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from eo_audit.dump import ranges
from eo_audit.dump.files.claims import check_claims, claims
from eo_audit.dump.files.discovery import DumpFile
from eo_audit.dump.lines.columns import Rows, fact_table
from eo_audit.dump.parse import PARSER_VERSION, FileContext, Ledger, State
from eo_audit.dump.ranges import Range, Reading, Text
from eo_audit.errors import WarehouseError
from eo_audit.ingest.survey import Surveyed, grouped, met_again, survey_files, unknown_files
from eo_audit.store import parquet
from eo_audit.store.parquet import DataFile, FactWriter
from eo_audit.store.schemas import schema, table_names
from eo_audit.store.tables import Warehouse
from eo_audit.store.tasks import Tasks

_Files = dict[str, list[DataFile]]

# Most files of most collections have a few rows of each table: made into tables file by file, and written as such, they took a third of the
# ingest of 17,000 files (31 CPU seconds).
ROWS_TOGETHER = 4_000


@dataclass(frozen=True)
class _Piece:
    """One range of one file. `state` is known where the range is read again."""

    text: Text
    context: FileContext
    range: Range
    size: int
    state: State | None = None


@dataclass(frozen=True)
class _Task:
    """Pieces whose facts go into the same Parquet files, one a table."""

    pieces: tuple[_Piece, ...]
    folder: Path


@dataclass(frozen=True)
class _Read:
    """What a task leaves: the reading of each piece with the id of its dump file, and the Parquet files by table."""

    readings: tuple[tuple[int, Reading], ...]
    files: dict[str, DataFile] = field(default_factory=dict)


def ingest_files(warehouse: Warehouse, files: Sequence[DumpFile], *, range_bytes: int, tasks: Tasks) -> list[Surveyed]:
    """Add the facts of dump files to the fact tables, and return all files as they were looked through.

    Files that are there already add nothing, but for a row of `dump_sightings` where their dump is a newer one. The caller holds
    `warehouse.writing()` and publishes; until then no reader sees the facts.

    Args:
        warehouse: where the tables are.
        files: what was discovered.
        range_bytes: plain files longer than this are read in ranges of this size.
        tasks: runs the two passes.

    Raises:
        InputError: a file cannot be read to its end or changed meanwhile, or was ingested before under another identity.
    """
    surveyed = survey_files(files, range_bytes=range_bytes, tasks=tasks)
    new, again = unknown_files(warehouse, surveyed), met_again(warehouse, surveyed)
    # Nothing new is no commit: the tables keep their versions, and so does what was made from them.
    if not new and not again and warehouse.exists("dump_files"):
        return surveyed
    ingest_id = _ingest_id(new, again)
    facts = _read_files(warehouse, new, ingest_id, range_bytes=range_bytes, tasks=tasks) if new or not again else {}
    if again:
        facts["dump_sightings"] = _sightings(again, ingest_id, warehouse.folder)
    # Every table, also those that get nothing: who reads them need not ask whether they are there.
    for name in table_names("facts"):
        warehouse.append(name, facts.get(name, []), transaction=f"ingest:{ingest_id}:{name}")
    return surveyed


def check_brokers(warehouse: Warehouse) -> list[str]:
    """Warnings about dumps of which nothing says which broker printed them.

    Raises:
        InputError: two such dumps claim to be the same segment, with different content.
    """
    return check_claims(claims(warehouse.arrow("dump_files").to_pylist(), warehouse.arrow("dump_sections").to_pylist()))


def check_parser(warehouse: Warehouse) -> None:
    """Nothing, where all facts were read by the parser of this version.

    What another one took for a batch this one may take for text in doubt: histories of both would accuse a log of the difference.

    Raises:
        WarehouseError: some were read by another one.
    """
    if not warehouse.exists("dump_files"):
        return
    read_by = set(warehouse.arrow("dump_files")["parser_version"].to_pylist())
    if read_by - {PARSER_VERSION}:
        raise WarehouseError(
            f"dumps in {warehouse.folder} were read by another version of eo-audit, which may read them otherwise: choose another --out"
        )


def _ingest_id(new: Sequence[Surveyed], again: Sequence[tuple[int, Surveyed]]) -> str:
    met = [[stored, file.file.dumped_at_ms] for stored, file in again]
    # From the content, nothing random: two writers of the same facts commit under the same id, and Delta lets only one of them (its `txn`
    # action).
    content = json.dumps([PARSER_VERSION, sorted(file.dump_file_id for file in new), *([met] if met else [])])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _read_files(warehouse: Warehouse, new: Sequence[Surveyed], ingest_id: str, *, range_bytes: int, tasks: Tasks) -> _Files:
    """Parquet files with all facts of some dump files, by table."""
    # Made with the first dumps of a warehouse, and kept: hashes of one record under two keys never meet.
    salt = warehouse.salt()
    planned = [_pieces(file, _context(file, salt, ingest_id)) for file in new]
    whole = [pieces[0] for pieces in planned if len(pieces) == 1]
    # Most collections are thousands of small files and some huge ones: small ones share a task, huge ones are many.
    groups = grouped(whole, [piece.size for piece in whole], range_bytes)
    split = [pieces for pieces in planned if len(pieces) > 1]
    work = [_Task(tuple(group), warehouse.folder) for group in groups]
    work += [_Task((piece,), warehouse.folder) for pieces in split for piece in pieces]
    read = tasks.run("reading the dumps", _read_task, work)
    accepted, rest = read[: len(groups)], iter(read[len(groups) :])
    for pieces in split:
        accepted += _folded(pieces[0], [next(rest) for _ in pieces], warehouse.folder, tasks)
    return _merged(accepted) | {"dump_files": _dump_files(new, accepted, ingest_id, warehouse.folder)}


def _context(surveyed: Surveyed, salt: bytes, ingest_id: str) -> FileContext:
    return FileContext.of(surveyed.file, dump_file_id=surveyed.dump_file_id, salt=salt, ingest_id=ingest_id)


def _pieces(file: Surveyed, context: FileContext) -> list[_Piece]:
    return [_Piece(file.text, context, part, file.size) for part in ranges.ranges(file.surveys)]


def _read_task(task: _Task) -> _Read:
    """Read the pieces of a task; runs on an executor."""
    writing = _Writing(task.folder)
    readings = tuple((piece.context.dump_file_id, _read_piece(piece, writing.add)) for piece in task.pieces)
    return _Read(readings, writing.close())


class _Writing:
    """Facts on their way into Parquet files, as they are read: memory follows a block of text, not the size of a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, FactWriter] = {}
        self._waiting: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)

    def add(self, facts: Mapping[str, Rows | pa.Table]) -> None:
        """Behind all that came before."""
        for name, read in facts.items():
            if isinstance(read, pa.Table):
                self._write(name)
                self._writer(name).write(read)
                continue
            self._waiting[name] += read
            if len(self._waiting[name]) >= ROWS_TOGETHER:
                self._write(name)

    def close(self) -> dict[str, DataFile]:
        """The finished files, by table."""
        for name in [*self._waiting]:
            self._write(name)
        files = {name: writer.close() for name, writer in self._writers.items()}
        return {name: file for name, file in files.items() if file is not None}

    def _write(self, name: str) -> None:
        if waiting := self._waiting.pop(name, None):
            self._writer(name).write(fact_table(name, waiting))

    def _writer(self, name: str) -> FactWriter:
        if name not in self._writers:
            self._writers[name] = FactWriter(name, self._folder / name)
        return self._writers[name]


def _read_piece(piece: _Piece, sink: ranges.Sink) -> Reading:
    return ranges.read_range(piece.text, piece.range, size=piece.size, context=piece.context, sink=sink, state=piece.state)


def _folded(first: _Piece, read: Sequence[_Read], folder: Path, tasks: Tasks) -> list[_Read]:
    """What is true of one file that was read in ranges; the Parquet files of rejected readings are removed."""
    every = list(read)

    def reread(part: Range, state: State) -> Reading:
        task = _Task((replace(first, range=part, state=state),), folder)
        every.extend(tasks.run("reading a range again", _read_task, [task]))
        return every[-1].readings[0][1]

    # A range that began in a payload has read a forgery: its files must not be left for a commit to find.
    accepted = {id(reading) for reading in ranges.fold([one.readings[0][1] for one in read], reread)}
    for one in every:
        if id(one.readings[0][1]) not in accepted:
            _remove(one, folder)
    return [one for one in every if id(one.readings[0][1]) in accepted]


def _remove(read: _Read, folder: Path) -> None:
    for name, file in read.files.items():
        # Not committed yet, so no reader knows of it.
        (folder / name / file.path).unlink()


def _merged(read: Sequence[_Read]) -> _Files:
    files: defaultdict[str, list[DataFile]] = defaultdict(list)
    for one in read:
        for name, file in one.files.items():
            files[name].append(file)
    return dict(files)


def _dump_files(new: Sequence[Surveyed], read: Sequence[_Read], ingest_id: str, folder: Path) -> list[DataFile]:
    """The rows of `dump_files`; the byte ledger of each must balance."""
    readings: defaultdict[int, list[Reading]] = defaultdict(list)
    for dump_file_id, reading in _each(read):
        readings[dump_file_id].append(reading)
    rows = [_dump_file(file, readings[file.dump_file_id], ingest_id) for file in new]
    return parquet.write("dump_files", pa.Table.from_pylist(rows, schema("dump_files").arrow()), folder / "dump_files")


def _sightings(again: Sequence[tuple[int, Surveyed]], ingest_id: str, folder: Path) -> list[DataFile]:
    rows = [
        {
            "dump_file_id": stored,
            "dumped_at_ms": file.file.dumped_at_ms,
            "input_path": file.file.input_path,
            "dump_set": file.file.dump_set,
            "ingest_id": ingest_id,
        }
        for stored, file in again
    ]
    return parquet.write("dump_sightings", pa.Table.from_pylist(rows, schema("dump_sightings").arrow()), folder / "dump_sightings")


def _each(read: Sequence[_Read]) -> Iterator[tuple[int, Reading]]:
    for one in read:
        yield from one.readings


def _dump_file(surveyed: Surveyed, readings: Sequence[Reading], ingest_id: str) -> dict[str, object]:
    file = surveyed.file
    # The invariant of step 1: every byte of text is a fact, a message, preamble or unread. A sum that is off means lost or doubled text,
    # and no table may be committed.
    ledger = sum((reading.ledger for reading in readings), Ledger())
    assert ledger.total == surveyed.size, f"{file.absolute}: {ledger} does not add up to {surveyed.size} bytes"
    lossy = any(reading.ascii_lossy for reading in readings)
    return {
        "dump_file_id": surveyed.dump_file_id,
        "cluster": file.cluster,
        "input_path": file.input_path,
        "path": file.path,
        "digest": surveyed.digest,
        "text_bytes": surveyed.size,
        "stored_bytes": file.stored_bytes,
        "compression": file.compression,
        # What a terminal made of the text: sizes of payloads then fit in a range only (`dump.lines.printed`).
        "encoding": "crlf" if any(reading.crlf for reading in readings) else "ascii_lossy" if lossy else "utf8",
        "dump_set": file.dump_set,
        "dumped_at_ms": file.dumped_at_ms,
        "dumped_at_source": file.dumped_at_source,
        "bytes_preamble": ledger.preamble,
        "bytes_facts": ledger.facts,
        "bytes_tool_messages": ledger.tool_messages,
        "bytes_unread": ledger.unread,
        "parser_version": PARSER_VERSION,
        "ingest_id": ingest_id,
    }
