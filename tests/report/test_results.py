"""Tables for a notebook: ids stay whole, and what cannot be asked for is said in one sentence."""

import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from eo_audit.errors import ArgumentError
from eo_audit.report.results import Results
from eo_audit.store import parquet
from eo_audit.store.schemas import schema
from eo_audit.store.tables import Step, Warehouse

SECTION = 2**62 + 1  # no float is this number


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Two batches: of one nothing is known but where it is."""
    columns = schema("batches").fields
    empty: dict[str, object] = {
        str(c["name"]): None if c["nullable"] else {"string": "", "boolean": False}.get(str(c["type"]), 0) for c in columns
    }
    rows = [
        {**empty, "section_id": SECTION},
        {**empty, "section_id": SECTION, "base_offset": 1, "producer_id": SECTION, "is_transactional": True},
    ]
    with (warehouse := Warehouse(tmp_path)).writing():
        table = pa.Table.from_pylist(rows, schema=schema("batches").arrow())
        warehouse.append("batches", parquet.write("batches", table, warehouse.folder / "batches"), transaction="t")
        warehouse.publish(Step("r", "ingest", finished_at_ms=1, code_version="0", inputs="[]"))
    return Results(tmp_path)


def test_whole_numbers_stay_whole_beside_nulls(results: Results) -> None:
    batches = results.frame("batches")
    assert list(batches["producer_id"].dropna()) == [SECTION] == list(batches["section_id"].unique())
    assert {str(batches[name].dtype) for name in ("producer_id", "section_id")} == {"Int64"}
    assert list(batches["is_transactional"].isna()) == [True, False]
    assert str(batches["is_transactional"].dtype) == "boolean"
    assert batches["producer_id"][0] is pd.NA


def test_a_column_that_is_not_there_is_named_with_those_that_are(results: Results) -> None:
    with pytest.raises(ArgumentError, match=r"^batches has no column foo; it has .*producer_id"):
        results.frame("batches", producer_id=1, foo=1)


@pytest.mark.parametrize(
    "equal", [{"producer_id": "1"}, {"producer_id": [object()]}, {"producer_id": 2**70}, {"marker_type": 1}, {"marker_type": object()}]
)
def test_a_value_that_a_column_cannot_have_is_one_sentence(results: Results, equal: dict[str, object]) -> None:
    ((name, value),) = equal.items()
    kind = {"producer_id": "int64", "marker_type": "string"}[name]
    with pytest.raises(ArgumentError, match=re.escape(f"{name} of batches is {kind}, and cannot be compared with {value!r}")):
        results.rows("batches", **equal)


def test_values_that_it_can_have_are_taken(results: Results) -> None:
    assert [row["base_offset"] for row in results.rows("batches", producer_id=[SECTION, 7])] == [1]
    assert len(results.rows("batches", producer_id=None, marker_type=None)) == 1
