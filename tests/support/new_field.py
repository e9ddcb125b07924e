"""A text whose later half prints fields that no release has, as both readers read it: `python -m tests.support.new_field`."""

import json
import re
import sys

import pyarrow as pa

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.fast.kernel import Stretch
from eo_audit.dump.parse import Section
from tests.support.dump_text import Batch, Rec, Style, dump
from tests.support.readers import CONTEXT, assert_same, read

BATCHES = 200
ADDED = ((rb"( isControl: \w+)", rb"\1 foo: -7 bar: true"), (rb"( sequence: -?\d+)", rb"\1 foo: 12 bar: false"))


def text_with_fields() -> bytes:
    """Batches of two records; of the second half each line prints two more fields."""
    text = dump([Batch([Rec(b"key", b"value %d" % n, ((b"trace", 4),))] * 2, 5, 2 * n) for n in range(BATCHES)], Style())
    half = text.index(b"baseOffset: %d " % BATCHES)
    later = text[half:]
    for place, added in ADDED:
        later = re.sub(place, added, later)
    # Positions and sizes are those of the segment: what its dump prints of it changes none.
    return text[:half] + later


def main() -> None:
    """Print what both readers read, and how many batches the fast one took."""
    taken, tables_of = [0], kernel_reader.tables_of

    def counted(stretch: Stretch, section: Section, *, base: int, salt: bytes) -> dict[str, pa.Table]:
        taken.append(len(stretch.taken_batches()))
        return tables_of(stretch, section, base=base, salt=salt)

    kernel_reader.tables_of = counted
    text = text_with_fields()
    batches = assert_same(text)
    result = read(text, CONTEXT, fast=True)
    foo = {
        name: result.facts[name].column("foo").to_pylist() for name in ("batches", "records") if "foo" in result.facts[name].column_names
    }
    names = {name: table.column_names for name, table in result.facts.items()}
    json.dump({"batches": batches, "unread": result.ledger.unread, "taken": max(taken), "foo": foo, "columns": names}, sys.stdout)


if __name__ == "__main__":
    main()
