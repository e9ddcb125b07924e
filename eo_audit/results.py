"""The results of an audit, for a notebook: `eo_audit.open(out)` gives the verdict, the findings, the tables and the pictures. No Spark."""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from eo_audit.errors import ArgumentError, WarehouseError
from eo_audit.report.quote import dump_path, quotable, text_at
from eo_audit.schemas import schema, table_names
from eo_audit.tables import Warehouse

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = dict[str, object]


class Picture:
    """An SVG that a notebook draws by itself."""

    def __init__(self, svg: str) -> None:
        """Keep the text of one `<svg>` element."""
        self.svg = svg

    def _repr_html_(self) -> str:
        return self.svg


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
            WarehouseError: the last audit has not finished.
        """
        path = self.out / "verdict.json"
        if not path.is_file():
            raise WarehouseError(f"{path} is not there: the last audit of this folder has not finished")
        content = json.loads(path.read_text(encoding="utf-8"))
        assert isinstance(content, dict)
        return content

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
            raise ArgumentError(f"{len(found)} findings have an id that begins with {finding_id}")
        return found[0]

    @staticmethod
    def tables() -> Mapping[str, str]:
        """Table name -> what its rows are."""
        return {name: schema(name).description for name in table_names()}

    def frame(self, table: str, **equal: object) -> "pd.DataFrame":
        """Rows of a table whose columns equal the given values, as a pandas frame in key order.

        Example: `frame("producer_history", producer_id=4007)`.
        """
        return self._selected(table, equal).to_pandas()

    def rows(self, table: str, **equal: object) -> list[Row]:
        """The same as `frame`, as a list of dictionaries."""
        return list(self._selected(table, equal).to_pylist())

    def window(self, replica_log_id: int, *, first_offset: int, last_offset: int) -> list[Row]:
        """Rows of `producer_history` of one replica log that begin in an offset range, in offset order."""
        bounds = {"replica_log_id": (replica_log_id, replica_log_id), "base_offset": (first_offset, last_offset)}
        return list(self.warehouse.find("producer_history", **bounds).sort_by("base_offset").to_pylist())

    def open_intervals(self, as_of_ms: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """When each transaction span began and ended, ms; one that is still open ends at `as_of_ms`."""
        spans = self.warehouse.arrow("transaction_spans").select(["first_timestamp_ms", "marker_timestamp_ms"])
        spans = spans.filter(pc.field("first_timestamp_ms").is_valid())
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
        dump_file = self._dump_files.get((cluster, str(evidence["dump_file"])))
        if dump_file is None:
            return None
        offset, length = evidence["byte_offset"], evidence["length"]
        assert isinstance(offset, int) and isinstance(length, int)
        try:
            text = text_at(dump_path(dump_file), byte_offset=offset, length=length, compression=str(dump_file["compression"]))
        except OSError:
            return None
        return "\n".join(quotable(text))

    def partition_picture(self, topic: str, partition: int, *, cluster: str | None = None, broker: int | None = None) -> Picture:
        """Offsets, producers, transactions and markers of one partition.

        Raises:
            ArgumentError: the dumps hold no such partition.
        """
        from eo_audit.report.pictures import picture_of_partition

        wanted = {
            "topic": topic,
            "partition": partition,
            **({"cluster": cluster} if cluster else {}),
            **({} if broker is None else {"broker": broker}),
        }
        logs = self.rows("visibility", **wanted)
        if not logs:
            raise ArgumentError(f"the dumps hold no partition {topic}-{partition}")
        here = [f for f in self.findings if (f["cluster"], f["topic"], f["partition"]) == (logs[0]["cluster"], topic, partition)]
        return Picture(picture_of_partition(logs[0], here, self))

    def id_picture(self, transactional_id: str, *, cluster: str | None = None) -> Picture:
        """States of one transactional id over time, with its epochs and abort causes.

        Raises:
            ArgumentError: the dumps hold no such id.
        """
        from eo_audit.report.charts import transactional_id_chart

        wanted = {"transactional_id": transactional_id, **({"cluster": cluster} if cluster else {})}
        entries = self.rows("coordinator_history", **wanted)
        if not entries:
            raise ArgumentError(f"the dumps hold no transactional id {transactional_id}")
        return Picture(transactional_id_chart(entries, self.rows("transaction_instances", **wanted)))

    @cached_property
    def _dump_files(self) -> dict[tuple[str, str], Row]:
        return {(str(row["cluster"]), str(row["path"])): row for row in self.warehouse.arrow("dump_files").to_pylist()}

    def _selected(self, table: str, equal: Mapping[str, object]) -> "pa.Table":
        numbers = {name: (value, value) for name, value in equal.items() if isinstance(value, int) and not isinstance(value, bool)}
        rows = self.warehouse.find(table, **numbers) if numbers else self.warehouse.arrow(table)
        for name, value in equal.items():
            rows = rows.filter(pc.field(name).is_null() if value is None else pc.field(name) == value)
        return rows.sort_by([(name, "ascending") for name in schema(table).key])
