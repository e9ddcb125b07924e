"""Every history by itself: a few rows in, a few rows out, as data (`cases/*.yaml`).

`inputs` says what each input is: a table, by name, or its columns. A case gives rows of some of
them; of a row only the columns that matter.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from eo_audit.history import text
from eo_audit.store.schemas import table_names
from tests.support.rows import frame, table
from tests.support.yaml_text import read_yaml

FOLDER = Path(__file__).parent / "cases"
CASES = {path.stem: read_yaml(path) for path in sorted(FOLDER.glob("*.yaml"))}
# Histories with cases in a module of their own, or held against the model on generated logs (`tests/agreement`).
ELSEWHERE = {
    *("assigned_rows", "judged_events", "paired_markers", "matched_markers", "instance_partitions"),  # test_assignment, tests/cluster
    *("clock_offsets", "clusters", "coverage", "id_allocation", "producer_edges", "replica_logs", "section_status"),  # test_<name>
    *("placed_batches", "ordered_batches"),  # test_log_order
    *("producer_events", "producer_rows", "producer_states", "inherited_states"),  # test_sequences, test_producer_history
    *("coordinator_history", "transaction_instances"),  # test_coordinator_agreement
    *("aborted_index", "visibility", "producer_history"),  # test_visibility_agreement
}


def given(spark: SparkSession, shape: str, rows: list[Mapping[str, object]]) -> DataFrame:
    if shape in table_names():
        return table(spark, shape, rows)
    return frame(spark, shape, rows)


def test_every_history_has_cases() -> None:
    assert set(CASES) | ELSEWHERE == set(text.histories())
    assert not set(CASES) & ELSEWHERE


@pytest.mark.parametrize(("history", "name"), [(history, name) for history, cases in CASES.items() for name in cases["cases"]])
def test_rows(spark: SparkSession, history: str, name: str) -> None:
    shapes, case = CASES[history]["inputs"], CASES[history]["cases"][name]
    assert set(case) <= {*shapes, "told", "expect"}
    inputs = {shape: given(spark, columns, case.get(shape, [])) for shape, columns in shapes.items()}
    rows = text.run(history, **inputs, **CASES[history].get("told", {}), **case.get("told", {})).collect()
    columns = [*(case["expect"] or [{}])[0]]
    found = [{column: row.asDict(recursive=True)[column] for column in columns} for row in rows]
    assert sorted(found, key=str) == sorted(case["expect"], key=str)
