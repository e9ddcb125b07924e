"""Rows and columns to Arrow tables with the columns of `schemas/*.json`.

Arrays are built from buffers: the first `pa.array()` of a process imports pandas, a second that every small audit would pay.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eo_audit.store.schemas import schema

Rows = Sequence[Mapping[str, object]]
_NUMPY: dict[pa.DataType, np.dtype[np.int64] | np.dtype[np.int32]] = {pa.int64(): np.dtype(np.int64), pa.int32(): np.dtype(np.int32)}


@cache
def arrow_schema(table: str) -> pa.Schema:
    """The Arrow schema of a table."""
    return schema(table).arrow()


def fact_table(table: str, rows: Rows) -> pa.Table:
    """Rows as a table; a column that a row does not have is null there.

    Args:
        table: its name.
        rows: values by column name.
    """
    return pa.table([column([row.get(name) for row in rows], kind) for name, kind in kinds_of(table)], schema=arrow_schema(table))


@cache
def kinds_of(table: str) -> tuple[tuple[str, pa.DataType], ...]:
    """The columns of a table, in order, and what is in each."""
    return tuple((field.name, field.type) for field in arrow_schema(table))


def fact_tables(facts: "Mapping[str, Rows | pa.Table]") -> dict[str, pa.Table]:
    """Facts by table, each of them rows or a table already, as tables."""
    return {table: content if isinstance(content, pa.Table) else fact_table(table, content) for table, content in facts.items()}


def column(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Values, None for null, as an array of this type (a type that occurs in a schema)."""
    # Most columns are whole, most others empty, and most files small: a collection of dumps is thousands of tables of some rows, and making
    # them was two fifths of its ingest.
    missing = values.count(None)
    if missing == len(values):
        return pa.nulls(missing, kind)
    valid = np.array([value is not None for value in values], dtype=bool) if missing else None
    if kind in _NUMPY:
        # A null needs some value in the buffer; the bitmap says that nobody reads it.
        return numeric(np.array([value or 0 for value in values] if missing else values).astype(np.int64), kind, valid)
    if pa.types.is_boolean(kind):
        return boolean(np.array([value is True for value in values], dtype=bool), valid)
    if pa.types.is_string(kind):
        return pa.array(values, kind)
    if pa.types.is_list(kind):
        return _lists(values, kind, valid)
    raise TypeError(f"no column of type {kind}")


def _bitmap(bits: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def _validity(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    # Arrow takes a missing bitmap for: nothing is null.
    return None if valid is None or valid.all() else _bitmap(valid)


def numeric(values: NDArray[np.int64] | NDArray[np.int32], kind: pa.DataType, valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers as an array; `valid` is False where the value is null."""
    data = pa.py_buffer(np.ascontiguousarray(values, dtype=_NUMPY[kind]))
    return pa.Array.from_buffers(kind, len(values), [_validity(valid), data])


def boolean(values: NDArray[np.bool_], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Truth values as an array."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(valid), _bitmap(values)])


def vocabulary(codes: NDArray[np.int32], words: Sequence[str], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Strings out of a few words, by their number."""
    chosen = _known(tuple(words)).take(numeric(codes, pa.int32(), valid))
    return chosen.combine_chunks() if isinstance(chosen, pa.ChunkedArray) else chosen


@cache
def _known(words: tuple[str, ...]) -> pa.Array:
    return pa.array(words, pa.string())


def slices(text: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.StringArray:
    """Parts of a text as strings, each of them UTF-8; they come in their order there, and none overlaps another."""
    # The text is one long row of strings: these, and what lies between each two. No byte is touched in Python.
    offsets = np.stack((starts, ends), axis=1).astype(np.int32).reshape(-1)
    row = pa.StringArray.from_buffers(max(len(offsets) - 1, 0), pa.py_buffer(offsets), pa.py_buffer(text))
    return row.take(numeric(np.arange(0, len(offsets), 2), pa.int64()))


def structs(lengths: NDArray[np.int64], kind: pa.DataType, fields: Sequence[pa.Array], valid: NDArray[np.bool_]) -> pa.Array:
    """Lists of structs out of the columns of all structs, one list behind the other; a list that is null has none."""
    items = pa.Array.from_buffers(kind.value_type, int(lengths.sum()), [None], children=list(fields))
    offsets = pa.py_buffer(_offsets(lengths.tolist()))
    return pa.Array.from_buffers(kind, len(lengths), [_validity(valid), offsets], children=[items])


def _offsets(lengths: Sequence[int]) -> NDArray[np.int32]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    return offsets.astype(np.int32)


def _lists(values: Sequence[object], kind: pa.DataType, valid: NDArray[np.bool_] | None) -> pa.Array:
    """Lists of structs: the one nested type of the fact tables."""
    lists = [value if isinstance(value, list) else [] for value in values]
    rows = [row for rows in lists for row in rows]
    struct = kind.value_type
    fields = [column([row.get(field.name) for row in rows], field.type) for field in struct]
    items = pa.Array.from_buffers(struct, len(rows), [None], children=fields)
    offsets = pa.py_buffer(_offsets([len(rows) for rows in lists]))
    return pa.Array.from_buffers(kind, len(values), [_validity(valid), offsets], children=[items])
