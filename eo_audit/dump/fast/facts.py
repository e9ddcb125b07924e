"""Groups that were taken of a stretch, as tables of `batches` and `records`."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eo_audit.dump.fast.commits import CommitColumns
from eo_audit.dump.fast.decoded_facts import commit_columns, entry_columns
from eo_audit.dump.fast.entries import EntryColumns
from eo_audit.dump.fast.fields import LineColumns
from eo_audit.dump.fast.kernel import Stretch
from eo_audit.dump.fast.lines import MARKERS, NO_SPAN
from eo_audit.dump.lines.columns import arrow_schema, boolean, kinds_of, numeric, vocabulary
from eo_audit.dump.lines.hashes import keyed_hashes
from eo_audit.dump.lines.scan import Bits, Ints
from eo_audit.dump.log.facts import replica_log
from eo_audit.dump.log.state import Section

_MOST_RUNS = 50  # of rows that are in order already: more are sorted row by row


def tables_of(stretch: Stretch, section: Section, *, base: int, salt: bytes) -> dict[str, pa.Table]:
    """The facts taken of a stretch.

    Args:
        stretch: of one section.
        section: the section.
        base: file offset of the stretch.
        salt: of the hashes.
    """
    batches = stretch.taken_batches()
    tables = {"batches": _batches(stretch, section, batches, base)}
    records, batch_of = stretch.records_of(batches)
    # The record of a marker is part of its batch's row.
    data = ~stretch.batches.flags["is_control"][batch_of]
    if data.any():
        tables["records"] = _records(stretch, section, records[data], batch_of[data], base=base, salt=salt)
        if stretch.decoded is not None:
            name = "coordinator_entries" if isinstance(stretch.decoded, EntryColumns) else "offset_commits"
            tables[name] = _decoded(stretch, stretch.decoded, section, records[data], batch_of[data], base=base)
    return tables


def _same(value: int, count: int) -> Ints:
    return np.full(count, value, dtype=np.int64)


def _batches(stretch: Stretch, section: Section, chosen: Ints, base: int) -> pa.Table:
    lines, count = stretch.batches, len(chosen)
    columns = _printed("batches", lines, chosen)
    start, end, marks, marker, epoch = _marker_columns(stretch, chosen)
    # Without record lines nothing says COMMIT or ABORT: then the column is null, whatever number stands in it.
    some_marker = stretch.deep and bool(marks.any())
    columns |= {
        "section_id": numeric(_same(section.section_id, count), pa.int64()),
        "byte_offset": numeric(base + start, pa.int64()),
        "length": numeric(end - start, pa.int64()),
        "replica_log_id": numeric(_same(replica_log(section), count), pa.int64()),
        "records_seen": numeric(stretch.groups.count[chosen], pa.int32(), None if stretch.deep else np.zeros(count, dtype=bool)),
        "marker_type": vocabulary(marker if some_marker else marker * 0, MARKERS, marks),
        "coordinator_epoch": numeric(epoch, pa.int32(), marks),
        "payload_verified": boolean(np.ones(count, dtype=bool), None if stretch.deep else np.zeros(count, dtype=bool)),
    }
    # Control records of other kinds (KRaft's) are left to the exact reader: `control_type` is null here.
    return _table("batches", columns, count)


def _printed(table: str, lines: LineColumns, chosen: Ints) -> dict[str, pa.Array]:
    """The columns of a table that the chosen lines print."""
    kinds, printed = arrow_schema(table), lines.columns
    valid = {name: given[chosen] for name, given in printed.given.items()}
    columns = {name: boolean(flags[chosen], valid.get(name)) for name, flags in printed.flags.items()}
    columns |= {name: vocabulary(codes[chosen], words, valid.get(name)) for name, (codes, words) in printed.words.items()}
    kept = [name for name in printed.numbers if name in kinds.names]
    return columns | {name: numeric(printed.numbers[name][chosen], kinds.field(name).type, valid.get(name)) for name in kept}


def _marker_columns(stretch: Stretch, chosen: Ints) -> tuple[Ints, Ints, Bits, NDArray[np.int32], Ints]:
    """Start and end of each batch's text, its marker's line included; whether it has a marker, which, and its coordinator epoch."""
    lines, records = stretch.batches, stretch.records
    # A control batch that was emptied (its marker cleaned away) has no record line.
    marks = lines.flags["is_control"][chosen] & (stretch.groups.count[chosen] > 0)
    end, marker, epoch = lines.end[chosen], np.zeros(len(chosen), dtype=np.int32), np.zeros(len(chosen), dtype=np.int64)
    if marks.any():
        first = stretch.groups.first[chosen[marks]]
        end[marks] = stretch.groups.end[chosen[marks]]
        marker[marks], epoch[marks] = records.marker[first], records.epoch[first]
    return lines.start[chosen], end, marks, marker, epoch


def _records(stretch: Stretch, section: Section, chosen: Ints, batch_of: Ints, *, base: int, salt: bytes) -> pa.Table:
    lines, count = stretch.records, len(chosen)
    columns = _printed("records", lines.line, chosen) | {
        "section_id": numeric(_same(section.section_id, count), pa.int64()),
        "byte_offset": numeric(base + lines.start[chosen], pa.int64()),
        "length": numeric(lines.end[chosen] - lines.start[chosen], pa.int64()),
        "replica_log_id": numeric(_same(replica_log(section), count), pa.int64()),
        "base_offset": numeric(stretch.batches.numbers["base_offset"][batch_of], pa.int64()),
        "key_hash": _hashes(stretch, lines.key[chosen], lines.key_size[chosen], salt),
        "value_hash": _hashes(stretch, lines.value[chosen], lines.value_size[chosen], salt),
    }
    return _table("records", columns, count)


def _decoded(
    stretch: Stretch, decoded: EntryColumns | CommitColumns, section: Section, chosen: Ints, batch_of: Ints, *, base: int
) -> pa.Table:
    """The facts of a topic decoder's records, as `log_facts.decoded_row` has them."""
    lines, numbers, count = stretch.records, stretch.batches.numbers, len(chosen)
    columns = {
        "section_id": numeric(_same(section.section_id, count), pa.int64()),
        "byte_offset": numeric(base + lines.start[chosen], pa.int64()),
        "length": numeric(lines.end[chosen] - lines.start[chosen], pa.int64()),
        "replica_log_id": numeric(_same(replica_log(section), count), pa.int64()),
    }
    offset = numeric(lines.offset[chosen], pa.int64())
    if isinstance(decoded, EntryColumns):
        columns |= {
            "entry_offset": offset,
            "partition_leader_epoch": numeric(numbers["partition_leader_epoch"][batch_of], pa.int32()),
            "batch_timestamp_ms": numeric(numbers["max_timestamp_ms"][batch_of], pa.int64()),
        }
        return _table("coordinator_entries", columns | entry_columns(stretch.text, decoded, chosen), count)
    columns |= {
        "record_offset": offset,
        "producer_id": numeric(numbers["producer_id"][batch_of], pa.int64()),
        "producer_epoch": numeric(numbers["producer_epoch"][batch_of], pa.int32()),
        "is_transactional": boolean(stretch.batches.flags["is_transactional"][batch_of]),
    }
    return _table("offset_commits", columns | commit_columns(stretch.text, decoded, chosen), count)


def _hashes(stretch: Stretch, start: Ints, size: Ints, salt: bytes) -> pa.Array:
    there = start != NO_SPAN
    hashes = np.zeros(len(start), dtype=np.int64)
    # All texts of a column in one call: one by one, hashing would cost more than all parsing.
    hashes[there] = keyed_hashes(stretch.text.bytes, start[there], size[there], salt)
    return numeric(hashes, pa.int64(), there)


def _table(table: str, columns: dict[str, pa.Array], count: int) -> pa.Table:
    """A table; a column that is not there is null, as in `fact_table`."""
    arrays = [columns[name] if name in columns else pa.nulls(count, kind) for name, kind in kinds_of(table)]
    return pa.table(arrays, schema=arrow_schema(table))


def in_text_order(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows of several tables as one table, by their place in the file."""
    if len(tables) == 1:
        return tables[0]
    # The fast path and the exact one each give their rows in order; the file's order is that of both together.
    whole = pa.concat_tables(tables)
    places = pa.concat_arrays(whole.column("byte_offset").chunks)
    order = np.argsort(np.frombuffer(places.buffers()[1], dtype=np.int64, count=len(whole), offset=8 * places.offset), kind="stable")
    # Where few runs alternate they are put behind each other: no row is copied alone.
    begins = np.flatnonzero(np.diff(order, prepend=-2) != 1)
    if len(begins) > _MOST_RUNS:
        return whole.combine_chunks().take(numeric(order, pa.int64()))
    lengths = np.diff(begins, append=len(order))
    runs = zip(order[begins].tolist(), lengths.tolist(), strict=True)
    return pa.concat_tables([whole.slice(first, length) for first, length in runs]).combine_chunks()
