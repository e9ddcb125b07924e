"""`eo-audit export TABLE`: a table as JSON lines in the order of its key, in memory that does not grow with the table. No Spark."""

import heapq
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from eo_audit.errors import ArgumentError, WarehouseError
from eo_audit.store.schemas import schema, table_names
from eo_audit.store.tables import Warehouse
from eo_audit.words import Row

# They are kept as Arrow; Python objects are made of a few of them at a time.
ROWS_IN_MEMORY = 200_000
_ROWS_AT_ONCE = 2_000


def export(name: str, warehouse: Warehouse) -> Iterator[str]:
    """Rows of a table as JSON objects, one a line, without line ends; control characters are escaped.

    Args:
        name: any table of `schemas/`.
        warehouse: the tables of the run.

    Raises:
        ArgumentError: there is no such table.
        WarehouseError: the step that makes the table has not been run.
    """
    if name not in table_names():
        raise ArgumentError(f"there is no table {name}; the tables are {', '.join(table_names())}")
    rows = iter(warehouse.runs()) if name == "runs" else _sorted_rows(name, warehouse)
    return (json.dumps(row, separators=(",", ":")) for row in rows)


def _sorted_rows(name: str, warehouse: Warehouse) -> Iterator[Row]:
    if not warehouse.exists(name):
        step = {"facts": "ingest", "histories": "rebuild", "results": "audit"}[schema(name).family]
        raise WarehouseError(f"{warehouse.folder} holds no table {name} yet: `eo-audit {step}` makes it")
    return sorted_rows(warehouse.batches(name), schema(name).key)


def sorted_rows(batches: Iterable[pa.RecordBatch], key: tuple[str, ...], *, in_memory: int = ROWS_IN_MEMORY) -> Iterator[Row]:
    """Rows in the order of their key, nulls last: parts that fit the memory are sorted, put aside on disk, and merged.

    Args:
        batches: the rows.
        key: names of the columns to sort by.
        in_memory: rows of one part.
    """
    # Rows without payloads: the tables hold none.
    with tempfile.TemporaryDirectory(prefix="eo-audit-export-") as folder:
        parts: list[Path] = []
        part: pa.Table | None = None
        for rows in _parts(batches, in_memory):
            if part is not None:
                parts.append(_put_aside(part, Path(folder, f"{len(parts)}.arrow")))
            part = rows.sort_by([(column, "ascending") for column in key])
        # The last part is in memory already; a small table is never written.
        streams = [_read_back(path) for path in parts] + ([_rows(part.to_batches())] if part is not None else [])
        yield from streams[0] if len(streams) == 1 else heapq.merge(*streams, key=_order(key))


def _order(key: tuple[str, ...]) -> Callable[[Row], tuple[tuple[bool, object], ...]]:
    # Python cannot compare None with a number; Arrow's sort puts nulls last, so this does.
    return lambda row: tuple((row[column] is None, row[column]) for column in key)


def _parts(batches: Iterable[pa.RecordBatch], in_memory: int) -> Iterator[pa.Table]:
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        gathered.append(batch)
        if sum(part.num_rows for part in gathered) >= in_memory:
            yield pa.Table.from_batches(gathered)
            gathered = []
    if gathered:
        yield pa.Table.from_batches(gathered)


def _put_aside(part: pa.Table, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, part.schema) as writer:
        writer.write_table(part, max_chunksize=_ROWS_AT_ONCE)
    return path


def _read_back(path: Path) -> Iterator[Row]:
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        yield from _rows(reader.get_batch(index) for index in range(reader.num_record_batches))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield from batch.slice(start, _ROWS_AT_ONCE).to_pylist()
