"""`eo-audit export`: key order in bounded memory, and JSON that any program reads."""

import json
import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from eo_audit.report.export import sorted_rows

KEY = ("name", "number")
SCHEMA = pa.schema([("name", pa.string()), ("number", pa.int64()), ("row", pa.int64()), ("values", pa.list_(pa.int64()))])


def table(size: int, seed: int) -> pa.Table:
    chance = random.Random(seed)
    names = ["", "a", "b", "Zürich", "\U0001f600", "￿", None]
    rows = [
        {"name": chance.choice(names), "number": chance.choice([None, -1, 0, 2**62]), "row": row, "values": [row]} for row in range(size)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize("in_memory", [1, 7, 10_000])
@pytest.mark.parametrize("size", [0, 1, 500])
def test_parts_on_disk_and_one_sort_in_memory_agree(size: int, in_memory: int) -> None:
    rows = table(size, seed=size)
    found = list(sorted_rows(rows.to_batches(max_chunksize=3), KEY, in_memory=in_memory))
    assert len(found) == size
    assert sorted(row["row"] for row in found) == list(range(size))
    expected = rows.sort_by([(name, "ascending") for name in KEY]).select(list(KEY)).to_pylist()
    assert [{name: row[name] for name in KEY} for row in found] == expected


def test_keys_rise_and_nulls_come_last() -> None:
    found = list(sorted_rows(table(300, seed=3).to_batches(max_chunksize=10), KEY, in_memory=20))
    keys = [tuple((row[name] is None, row[name] if row[name] is not None else 0) for name in KEY) for row in found]
    assert all(first <= second for first, second in pairwise(keys))


def test_what_was_put_aside_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = sorted_rows(table(100, seed=1).to_batches(max_chunksize=10), KEY, in_memory=10)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert not list(tmp_path.iterdir())


def test_numbers_stay_numbers() -> None:
    line = json.dumps(next(sorted_rows(table(1, seed=9).to_batches(), KEY)))
    assert isinstance(json.loads(line)["row"], int)
