"""Numbers that damage or a client wrote, within the reach of arithmetic.

Times of records are the client's word (CreateTime), and a damaged batch has any offset: 9223372036854775807 plus one is no number of 64
bits, and would end a rebuild. What is farther than any clock or log can be is kept as `FARTHEST`, which is as far beyond all others.
"""

import pyarrow as pa
import pyarrow.compute as pc

from eo_audit.store.schemas import schema

# Milliseconds: 36 million years; offsets: a million of them in each second for 36,000 years. Sums and differences of several fit 64 bits.
FARTHEST = 2**60
_UNITS = ("ms", "offset", "bytes")


def within_reach(rows: pa.Table, table: str) -> pa.Table:
    """The rows with each time, offset and count of bytes between -`FARTHEST` and `FARTHEST`.

    Args:
        rows: rows of a table, with the types of its schema.
        table: its name; the units are those of its schema.
    """
    for name in schema(table).longs_in(_UNITS):
        ends = pc.min_max(rows[name])
        if any(end is not None and abs(end) > FARTHEST for end in (ends["min"].as_py(), ends["max"].as_py())):
            within = pc.max_element_wise(pc.min_element_wise(rows[name], FARTHEST, skip_nulls=False), -FARTHEST, skip_nulls=False)
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), within)
    return rows
