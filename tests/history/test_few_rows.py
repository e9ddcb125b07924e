"""Every history by itself: a few rows in, a few rows out, as data (`cases/*.yaml`).

`inputs` says what each input is: a table, by name, or its columns. A case gives rows of some of
them; of a row only the columns that matter.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from eo_audit.history import text
from eo_audit.history.steps import histories
from eo_audit.store.schemas import table_names
from tests.support.rows import apart, case_of, frame, table
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
    "producer_history",  # test_visibility_agreement
}


def given(spark: SparkSession, shape: str, rows: list[Mapping[str, object]]) -> DataFrame:
    if shape in table_names():
        return table(spark, shape, rows)
    return frame(spark, shape, rows)


def test_every_history_has_cases() -> None:
    assert set(CASES) | ELSEWHERE == set(histories())
    assert not set(CASES) & ELSEWHERE


def told(spark: SparkSession, history: str, case: Mapping[str, list[Mapping[str, object]]]) -> list[dict[str, object]]:
    shapes = CASES[history]["inputs"]
    inputs = {shape: given(spark, columns, case.get(shape, [])) for shape, columns in shapes.items()}
    return [
        row.asDict(recursive=True)
        for row in text.run(history, **inputs, **CASES[history].get("told", {}), **case.get("told", {})).collect()
    ]


@pytest.fixture(scope="module")
def at_once(spark: SparkSession) -> Mapping[str, Mapping[str, list[dict[str, object]]]]:
    """What histories that are dear to plan say of all their cases together, each in a cluster of its own; they have `together: true`."""
    found: dict[str, dict[str, list[dict[str, object]]]] = {}
    for history in (name for name, cases in CASES.items() if cases.get("together")):
        cases = dict(enumerate(CASES[history]["cases"].items()))
        merged = {
            shape: [row for n, (_, case) in cases.items() for row in apart(case.get(shape, []), n)] for shape in CASES[history]["inputs"]
        }
        rows = told(spark, history, merged)
        assert not [name for name, case in cases.values() if "told" in case] and all(
            case_of(row["replica_log_id"]) in cases for row in rows
        )
        found[history] = {name: [row for row in rows if case_of(row["replica_log_id"]) == n] for n, (name, _) in cases.items()}
    return found


@pytest.mark.parametrize(("history", "name"), [(history, name) for history, cases in CASES.items() for name in cases["cases"]])
def test_rows(spark: SparkSession, at_once: Mapping[str, Mapping[str, list[dict[str, object]]]], history: str, name: str) -> None:
    case = CASES[history]["cases"][name]
    assert set(case) <= {*CASES[history]["inputs"], "told", "expect"}
    if history in at_once:
        rows, expected = at_once[history][name], apart(case["expect"], [*CASES[history]["cases"]].index(name))
    else:
        rows, expected = told(spark, history, case), case["expect"]
    columns = [*(expected or [{}])[0]]
    found = [{column: row[column] for column in columns} for row in rows]
    assert sorted(found, key=str) == sorted(expected, key=str)
