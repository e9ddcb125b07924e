"""The results of an audit, for a notebook: `eo_audit.open(out)` gives the verdict, the findings, the tables and the pictures. No Spark."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eo_audit.errors import ArgumentError, WarehouseError
from eo_audit.report.dump_files import DumpFiles
from eo_audit.report.quote import KAFKAS_OWN, Address, address_of, is_kafkas_own, quotable, texts_at
from eo_audit.report.values import whole
from eo_audit.store.schemas import schema, table_names
from eo_audit.store.tables import Warehouse

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, object]
_SAID = {"verdict", "exit_code", "rules", "counts", "partitions", "inputs"}  # by every verdict.json


# What a chart of a partition is drawn from.
_DRAWN = (
    *("base_offset", "last_offset", "row_kind", "producer_id", "producer_epoch", "base_sequence", "last_sequence"),
    *("truth", "marker_type", "span_id", "span_outcome"),
)


# What the chart of a transactional id is drawn from.
_STEPS = (
    *("cluster", "transactional_id", "entry_offset", "batch_timestamp_ms", "status", "tombstone", "producer_epoch", "previous_epoch"),
    *("step", "step_reason", "epoch_step", "field_change"),
)
_MOST_STEPS = 400


class Picture:
    """SVGs that a notebook draws by itself."""

    def __init__(self, *charts: str) -> None:
        """Keep the text of `<svg>` elements."""
        self.charts = charts

    def _repr_html_(self) -> str:
        from eo_audit.report.palette import standing_alone

        return "".join(f'<div style="max-width: 60rem">{standing_alone(chart)}</div>' for chart in self.charts)


class Results:
    """What one audit left in its output folder.

    Attributes:
        out: the output folder.
        warehouse: its tables, at the versions of the newest finished step.
    """

    def __init__(self, out: Path) -> None:
        """Open an output folder.

        Raises:
            WarehouseError: no audit has finished there.
        """
        self.out = out
        self.warehouse = Warehouse(out)
        if not self.warehouse.runs():
            raise WarehouseError(f"{out} holds no finished audit: run 'eo-audit run DUMPS --out {out}' first")

    @cached_property
    def verdict(self) -> Row:
        """The content of verdict.json.

        Raises:
            WarehouseError: there was no audit yet, or the last one has not finished.
        """
        path = self.out / "verdict.json"
        if not path.is_file():
            if not any(run["step"] == "audit" for run in self.warehouse.runs()):
                left = " and ".join(f"`eo-audit {step} --out {self.out}`" for step in self._steps_left())
                raise WarehouseError(f"{self.out} holds dumps, and no audit of them yet: run {left}")
            unfinished = "the last audit of this folder has not finished: run it again"
            raise WarehouseError(f"{path} is not there, {unfinished} (report.html and the tables still show the one before)")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise WarehouseError(f"{path} is damaged ({error}): run 'eo-audit audit --out {self.out}'") from error
        if not isinstance(content, dict) or _SAID - set(content):
            raise WarehouseError(f"{path} is not what an audit writes: run 'eo-audit audit --out {self.out}'")
        return content

    def _steps_left(self) -> list[str]:
        """The steps before a first audit."""
        done = [run["step"] for run in self.warehouse.runs() if run["step"] in ("ingest", "rebuild")]
        return ["audit"] if done[-1:] == ["rebuild"] else ["rebuild", "audit"]

    @cached_property
    def findings(self) -> list[Row]:
        """All finding rows, in the order of their ids."""
        return self.rows("findings")

    def finding(self, finding_id: str) -> Row:
        """One finding by its id, or by the first characters of it.

        Raises:
            ArgumentError: none or several begin like that.
        """
        found = [row for row in self.findings if str(row["finding_id"]).startswith(finding_id)]
        if len(found) != 1:
            number = f"{len(found)} findings have" if found else "no finding has"
            raise ArgumentError(f"{number} an id that begins with {finding_id}; the ids are in report.html and findings.jsonl")
        return found[0]

    @staticmethod
    def tables() -> Mapping[str, str]:
        """Table name -> what its rows are."""
        return {name: schema(name).description for name in table_names()}

    def frame(self, table: str, **equal: object) -> "pd.DataFrame":
        """Rows of a table whose columns equal the given values, or one of several, as a pandas frame in key order.

        Example: `frame("producer_history", producer_id=4007)`, `frame("findings", rule=["T01", "L01"])`. Whole numbers stay whole beside
        nulls (`Int64`, `Int32`, `boolean`; a null is `pandas.NA`): of a float the last digits of a 64-bit id would be lost.
        """
        import pandas as pd

        types = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
        return self._selected(table, equal).to_pandas(types_mapper=types.get)

    def rows(self, table: str, **equal: object) -> list[Row]:
        """The same as `frame`, as a list of dictionaries."""
        return list(self._selected(table, equal).to_pylist())

    def newest(self, table: str, by: str, most: int, **equal: object) -> tuple[list[Row], int]:
        """The rows with the greatest values of a column, the greatest first, of those whose columns equal the given values; and how many
        such rows there are that have a value in that column.
        """
        found = self._selected(table, equal)
        found = found.filter(pc.field(by).is_valid()).sort_by([(by, "descending")])
        return list(found.slice(0, most).to_pylist()), found.num_rows

    def window(self, replica_log_id: int, *, first_offset: int, last_offset: int) -> list[Row]:
        """Rows of `producer_history` of one replica log that begin in an offset range, in offset order."""
        bounds = {"replica_log_id": (replica_log_id, replica_log_id), "base_offset": (first_offset, last_offset)}
        parts = [row for rows in self.warehouse.scan("producer_history", _DRAWN, **bounds) for row in rows.to_pylist()]
        return sorted(parts, key=lambda row: row["base_offset"])

    def shares(self, replica_log_id: int, *, start: int, end: int, stretches: int) -> dict[str, npt.NDArray[np.int64]]:
        """Outcome -> records in each of some stretches of equal length of one replica log, from offset `start` up to before `end`."""
        found: dict[str, npt.NDArray[np.int64]] = {}
        columns = ("base_offset", "last_offset", "truth")
        for rows in self.warehouse.scan("producer_history", columns, replica_log_id=(replica_log_id, replica_log_id)):
            for outcome in pc.unique(rows["truth"].drop_null()).to_pylist():
                batches = rows.filter(pc.field("truth") == outcome)
                first, last = batches["base_offset"].to_numpy(), batches["last_offset"].to_numpy()
                # A batch counts where it begins: at this scale a stretch is wider than a pixel, and a batch seldom as wide.
                stretch = np.clip((first - start) * stretches // max(end - start, 1), 0, stretches - 1)
                counts = np.bincount(stretch, weights=last - first + 1, minlength=stretches).astype(np.int64)
                found[outcome] = found.get(outcome, np.zeros(stretches, np.int64)) + counts
        return found

    def steps(self, ids: Collection[tuple[str, str]]) -> dict[tuple[str, str], tuple[list[Row], list[Row]]]:
        """(cluster, transactional id) -> its rows of `coordinator_history` in order, the newest 400 or those around its last odd step,
        and the rows of `transaction_instances` of its aborts; only ids that have any."""
        names = pa.array(sorted({name for _, name in ids}), pa.string())
        entries = self._of_ids("coordinator_history", _STEPS, names)
        aborts = self._of_ids("transaction_instances", ("cluster", "transactional_id", "prepare_offset", "abort_cause"), names)
        found = {}
        for cluster, name in ids:
            of_id = (pc.field("cluster") == cluster) & (pc.field("transactional_id") == name)
            own = entries.filter(of_id).sort_by("entry_offset")
            if own.num_rows:
                found[cluster, name] = (_telling(own).to_pylist(), aborts.filter(of_id).to_pylist())
        return found

    def _of_ids(self, table: str, columns: tuple[str, ...], names: "pa.Array") -> "pa.Table":
        parts = [rows.filter(pc.is_in(rows["transactional_id"], names)) for rows in self.warehouse.scan(table, columns)]
        return pa.concat_tables([schema(table).arrow().empty_table().select(columns), *parts])

    def open_intervals(self, as_of_ms: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """When each transaction span began and ended, ms; one that is still open ends at `as_of_ms`."""
        spans = self.warehouse.arrow("transaction_spans").select(["first_timestamp_ms", "marker_timestamp_ms"])
        spans = spans.filter(pc.field("first_timestamp_ms").is_valid())
        # No marker: still open at the audit's now.
        ends = pc.fill_null(spans["marker_timestamp_ms"], as_of_ms)
        return spans["first_timestamp_ms"].to_numpy(), ends.to_numpy()

    def quote(self, cluster: str, evidence: Mapping[str, object]) -> str | None:
        """The lines of the dump behind one piece of evidence, as far as they may be shown.

        Args:
            cluster: cluster of the finding.
            evidence: one item of its `evidence`.

        Returns:
            The text, or None where the dump is no longer where it was read.
        """
        return self.quotes([(cluster, evidence)])[address_of(cluster, evidence)]

    def quotes(self, wanted: Iterable[tuple[str, Mapping[str, object]]]) -> dict[Address, str | None]:
        """The same for much evidence (cluster, item): each dump file is opened once and read forward, for many of them are packed.

        Returns:
            `address_of` each item -> the text, or None.
        """
        # By file, then by offset: gzip can only be read forward.
        places = sorted({address_of(cluster, item): whole(item, "length") for cluster, item in wanted}.items())
        found: dict[Address, str | None] = {}
        for (cluster, dump_file), here in groupby(places, key=lambda place: place[0][:2]):
            spans = [(address[2], length) for address, length in here]
            meant = next(iter(self._dump_files.named(dump_file, cluster)), None)
            texts = self._texts(meant, spans)
            for (offset, _), text in zip(spans, texts, strict=True):
                # Of Kafka's own topics whole lines may be shown: what their decoders print holds no payload of anybody's.
                whole_lines = self._is_kafkas_own(meant, offset)
                found[cluster, dump_file, offset] = None if text is None else "\n".join(quotable(text, whole=whole_lines))
        return found

    def _is_kafkas_own(self, dump_file: Mapping[str, object] | None, offset: int) -> bool:
        spans = self._decoded.get(whole(dump_file, "dump_file_id"), ()) if dump_file is not None else ()
        return any(begin <= offset < end for begin, end in spans)

    @cached_property
    def _decoded(self) -> dict[int, list[tuple[int, int]]]:
        """Where Kafka's own topics were printed by their decoders: dump file -> (byte, byte behind)."""
        columns = ("dump_file_id", "topic", "decoder", "byte_offset", "length")
        found: dict[int, list[tuple[int, int]]] = {}
        for sections in self.warehouse.scan("dump_sections", columns):
            for row in sections.filter(pc.is_in(sections["topic"], pa.array(KAFKAS_OWN))).to_pylist():
                if is_kafkas_own(row):
                    found.setdefault(row["dump_file_id"], []).append((row["byte_offset"], row["byte_offset"] + row["length"]))
        return found

    def _texts(self, dump_file: Mapping[str, object] | None, spans: list[tuple[int, int]]) -> Sequence[bytes | None]:
        if dump_file is None:
            return [None] * len(spans)
        try:
            begun = [(max(offset - 1, 0), length + (offset > 0)) for offset, length in spans]
            texts = texts_at(self._dump_files.path(dump_file), begun, compression=str(dump_file["compression"]))
        except OSError:
            return [None] * len(spans)
        # Evidence begins with a line. Where none begins another dump lies there now: a folder that is filled anew each night.
        return [text if offset == 0 else text[1:] if text[:1] == b"\n" else None for text, (offset, _) in zip(texts, spans, strict=True)]

    def partition_picture(self, topic: str, partition: int, *, cluster: str | None = None, broker: int | None = None) -> Picture:
        """Offsets, producers, transactions and markers of one partition.

        Raises:
            ArgumentError: the dumps hold no such partition.
        """
        from eo_audit.report.pictures import picture_of_partition

        wanted: dict[str, object] = {"topic": topic, "partition": partition, "cluster": cluster, "broker": broker}
        logs = self.rows("visibility", **{name: value for name, value in wanted.items() if value is not None})
        if not logs:
            raise ArgumentError(f"the dumps hold no partition {topic}-{partition}")
        here = [f for f in self.findings if (f["cluster"], f["topic"], f["partition"]) == (logs[0]["cluster"], topic, partition)]
        return Picture(*picture_of_partition(logs[0], here, self).charts)

    def id_picture(self, transactional_id: str, *, cluster: str | None = None) -> Picture:
        """States of one transactional id over time, with its epochs and abort causes.

        Raises:
            ArgumentError: the dumps hold no such id.
        """
        from eo_audit.report.time_charts import transactional_id_chart

        clusters = {str(row["cluster"]) for row in self.rows("clusters")} if cluster is None else {cluster}
        found = self.steps([(name, transactional_id) for name in sorted(clusters)])
        if not found:
            raise ArgumentError(f"the dumps hold no transactional id {transactional_id}")
        return Picture(*(transactional_id_chart(entries, aborts) for entries, aborts in found.values()))

    @cached_property
    def _dump_files(self) -> DumpFiles:
        return DumpFiles(self.warehouse)

    def _scan(self, table: str, numbers: dict[str, tuple[int, int]]) -> "Iterable[pa.Table]":
        if table == "runs":  # the table that pins the versions of all the others
            return [pa.Table.from_pylist(self.warehouse.runs(), schema=schema(table).arrow())]
        return self.warehouse.scan(table, (), **numbers)

    def _selected(self, table: str, equal: Mapping[str, object]) -> "pa.Table":
        _refuse_unknown(table, equal)
        # By these Parquet skips whole row groups; a bool is an int to Python, but not to a bound.
        numbers = {name: (value, value) for name, value in equal.items() if isinstance(value, int) and not isinstance(value, bool)}
        parts = list(self._scan(table, numbers))
        for name, value in equal.items():
            parts = [rows.filter(_equals(name, value)) for rows in parts]
        rows = pa.concat_tables([schema(table).arrow().empty_table(), *parts])
        return rows.sort_by([(name, "ascending") for name in schema(table).key])


def _refuse_unknown(table: str, equal: Mapping[str, object]) -> None:
    """Refuse columns that a table does not have, and values that none of its rows can have in a column."""
    nothing = schema(table).arrow().empty_table()
    for name, value in equal.items():
        if name not in nothing.column_names:
            raise ArgumentError(f"{table} has no column {name}; it has {', '.join(nothing.column_names)}")
        try:
            nothing.filter(_equals(name, value))
        except (pa.ArrowException, TypeError, OverflowError) as error:
            kind = nothing.schema.field(name).type
            raise ArgumentError(f"{name} of {table} is {kind}, and cannot be compared with {value!r}") from error


def _equals(column: str, value: object) -> pc.Expression:
    if isinstance(value, list | tuple | set | frozenset):
        return pc.field(column).isin(list(value))
    return pc.field(column).is_null() if value is None else pc.field(column) == value


def _telling(entries: pa.Table) -> pa.Table:
    """The newest entries of a transactional id; where an odd one lies before them, those around it."""
    wrong_epoch = pc.is_in(entries["epoch_step"], pa.array(["regression", "jump", "pid_change_epoch_not_zero"]))
    odd = pc.or_(pc.or_(pc.is_in(entries["step"], pa.array(["illegal", "ghost"])), wrong_epoch), pc.is_valid(entries["field_change"]))
    newest = max(entries.num_rows - _MOST_STEPS, 0)
    places = np.flatnonzero(odd.to_numpy(zero_copy_only=False))
    return entries.slice(min(newest, max(int(places[-1]) - _MOST_STEPS // 2, 0)) if len(places) else newest, _MOST_STEPS)
