"""So that a warehouse does not grow for ever: what no reader needs goes when a run has published; `prune` removes replaced facts.

Histories and findings of the newest audits stay readable at their versions. What a version lost within the last hour stays, too: whoever
opened the tables before can finish.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eo_audit.errors import ArgumentError
from eo_audit.store.delta_table import GRACE_MS, Table
from eo_audit.store.schemas import schema, table_names
from eo_audit.store.tables import Warehouse

DAY_MS = 86_400_000
# Versions of one table that its log may tell of: an audit that is repeated every five minutes writes some hundred a day.
MOST_VERSIONS = 1_000
_ROWS = Mapping[str, object]


@dataclass(frozen=True)
class Superseded:
    """A dump file of which nothing is read any more: each of its sections was dumped again later."""

    dump_file_id: int
    path: str
    text_bytes: int
    dumped_at_ms: int


def tidy(warehouse: Warehouse, *, keep_audits: int, grace_ms: int = GRACE_MS) -> int:
    """Remove histories and findings of older audits, and files that no version names.

    Args:
        warehouse: being written, when its run has published.
        keep_audits: how many audits stay readable, from the newest back.
        grace_ms: how long a reader may take.

    Returns:
        Bytes that were freed.

    Raises:
        WarehouseError: another run took the lock meanwhile.
    """
    tables = {name: Table(name, warehouse.folder / name) for name in table_names()}
    newest = {name: table.newest() for name, table in tables.items() if table.exists()}
    runs = warehouse.runs()
    kept = _kept(runs, keep_audits, {name: table.version for name, table in newest.items()})
    if len(kept) < len(runs):
        warehouse.overwrite_runs(kept)
        newest["runs"] = tables["runs"].newest()
    pins: defaultdict[str, set[int]] = defaultdict(set)
    for run in kept:
        for name, version in _pins(run).items():
            if schema(name).family != "facts" or run is kept[-1]:  # facts are only added: an older version is part of the newer one
                pins[name].add(version)
    return sum(tables[name].sweep(pins[name], newest=newest[name], grace_ms=grace_ms, check=warehouse.still_held) for name in newest)


def _pins(run: _ROWS) -> dict[str, int]:
    return dict(json.loads(str(run["table_versions"])))


def _kept(runs: Sequence[_ROWS], keep_audits: int, newest: Mapping[str, int]) -> list[_ROWS]:
    """The rows of `runs` from the oldest audit on that is kept; the newest of each step stays in any case."""
    audits = [place for place, run in enumerate(runs) if run["step"] == "audit"]
    first = audits[-keep_audits] if len(audits) > keep_audits else 0
    last = {run["step"]: place for place, run in enumerate(runs)}

    def is_near(run: _ROWS) -> bool:
        # A pin keeps the whole log behind it from being shortened, and every reader reads that log.
        return all(newest.get(name, version) - version < MOST_VERSIONS for name, version in _pins(run).items())

    return [run for place, run in enumerate(runs) if place in last.values() or (place >= first and is_near(run))]


def parse_age(text: str) -> int:
    """An age such as 90d or 12w in milliseconds.

    Raises:
        ArgumentError: it is none.
    """
    days = {"d": 1, "w": 7}.get(text[-1:], 0)
    number = text[:-1]
    if not days or not (number.isascii() and number.isdigit()) or len(number) > 6:
        raise ArgumentError(f"--keep {text} is not a number of days or weeks, such as 90d or 12w")
    return int(number) * days * DAY_MS


def superseded(warehouse: Warehouse, *, keep_ms: int) -> list[Superseded]:
    """The dump files whose facts `prune` would remove, sorted by path.

    Args:
        warehouse: with the histories of a finished rebuild.
        keep_ms: files dumped at most so long before the newest dump stay; so do files of which nobody knows when they were dumped.
    """
    is_read: dict[int, bool] = defaultdict(bool)
    sections = warehouse.arrow("section_status").select(["dump_file_id", "superseded_by", "kind", "dump_set"]).to_pylist()
    read_sets = {row["dump_set"] for row in sections if row["kind"] == "log" and row["superseded_by"] is None}
    for row in sections:
        # A file of many segments stays as long as one of them has no newer dump. So does a listing as long as a segment of its dump has
        # none: of one that retention took away since it alone tells whether there was an aborted index.
        is_read[row["dump_file_id"]] |= row["superseded_by"] is None or (row["kind"] == "listing" and row["dump_set"] in read_sets)
    # The newest moment at which the text of a file was met: a log that rests is dumped each night, and stored once.
    times: dict[int, int] = {}
    for table in ("dump_files", "dump_sightings"):
        for row in warehouse.arrow(table).select(["dump_file_id", "dumped_at_ms"]).to_pylist():
            if row["dumped_at_ms"] is not None:
                times[row["dump_file_id"]] = max(times.get(row["dump_file_id"], row["dumped_at_ms"]), row["dumped_at_ms"])
    # Back from the newest dump, not from today: a warehouse that rests for a year loses nothing by it.
    limit = max(times.values(), default=0) - keep_ms
    old = {file: at for file, at in times.items() if at < limit and not is_read.get(file, True)}
    files = warehouse.arrow("dump_files").select(["dump_file_id", "path", "text_bytes"]).to_pylist()
    known = [row for row in files if row["dump_file_id"] in old]
    found = [Superseded(row["dump_file_id"], row["path"], row["text_bytes"], old[row["dump_file_id"]]) for row in known]
    return sorted(found, key=lambda file: (file.path, file.dumped_at_ms, file.dump_file_id))


def prune(warehouse: Warehouse, files: Sequence[Superseded], *, told: Callable[[str, int], object]) -> int:
    """Remove all facts of some dump files; the caller publishes.

    Args:
        warehouse: being written.
        files: from `superseded`.
        told: hears each table and how many rows went.

    Returns:
        How many rows went.
    """
    gone = {file.dump_file_id for file in files}
    sections = warehouse.arrow("dump_sections").select(["section_id", "dump_file_id"]).to_pylist()
    by = {"dump_file_id": gone, "section_id": {row["section_id"] for row in sections if row["dump_file_id"] in gone}}
    rows = 0
    for name in table_names("facts"):
        # Every table of facts has one of the two; which dump file a row is of follows from its section.
        column = next(column for column in by if column in schema(name).columns)
        deleted = warehouse.delete(name, column, by[column])
        told(name, deleted)
        rows += deleted
    return rows
