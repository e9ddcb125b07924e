"""Which dump file a piece of evidence means, and where its text lies now: nights may have files of one name, and folders go."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow.compute as pc

from eo_audit.store.folders import dump_path
from eo_audit.store.tables import Warehouse
from eo_audit.words import Row


@dataclass(frozen=True)
class DumpFiles:
    """The dump files of some results.

    Attributes:
        warehouse: their tables; rows of `dump_files` are what the methods take and return.
    """

    warehouse: Warehouse

    def named(self, name: str, cluster: str | None = None) -> list[Row]:
        """Files of that name, relative to their inputs as evidence has it, or in full; the one that is meant first.

        Of the files of several nights the one whose text the audit reads; then the one that lies there as it was ingested, as the same
        file may have been ingested before and after it grew.
        """
        full = Path(name).resolve()
        found = self._by_name.get(name) or [row for rows in self._by_name.values() for row in rows if _own_path(row) == full]
        return sorted((row for row in found if cluster in (None, row["cluster"])), key=self._rank)

    def path(self, dump_file: Row) -> Path:
        """Where its text lies now: as it was ingested, or in the newest folder in which it was met again."""
        own = _own_path(dump_file)
        others = (dump_path(folder, dump_file["path"]) for folder in self._met_again.get(dump_file["dump_file_id"], ()))
        return own if own.is_file() else next((path for path in others if path.is_file()), own)

    @cached_property
    def _by_name(self) -> Mapping[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in reversed(self.warehouse.arrow("dump_files").to_pylist()):
            found[str(row["path"])].append(row)
        return found

    def _rank(self, dump_file: Row) -> tuple[bool, bool]:
        path = _own_path(dump_file)
        as_ingested = path.is_file() and path.stat().st_size == dump_file["stored_bytes"]
        return dump_file["dump_file_id"] not in self._read, not as_ingested

    @cached_property
    def _read(self) -> frozenset[object]:
        """Files with a section that the histories are made of."""
        if not self.warehouse.exists("section_status"):
            return frozenset()
        sections = self.warehouse.arrow("section_status").select(["dump_file_id", "is_read"])
        return frozenset(sections.filter(pc.field("is_read"))["dump_file_id"].to_pylist())

    @cached_property
    def _met_again(self) -> Mapping[object, list[str]]:
        """The inputs in which the text of a file was met again, the newest first."""
        if not self.warehouse.exists("dump_sightings"):
            return {}
        found: dict[object, list[str]] = defaultdict(list)
        for row in self.warehouse.arrow("dump_sightings").sort_by([("dumped_at_ms", "descending")]).to_pylist():
            found[row["dump_file_id"]].append(str(row["input_path"]))
        return found


def _own_path(dump_file: Row) -> Path:
    """Where it lay when it was ingested."""
    return dump_path(dump_file["input_path"], dump_file["path"])
