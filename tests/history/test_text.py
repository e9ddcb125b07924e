"""The texts of the histories: their steps, and the runner that shows any of them."""

import gc
import json
import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from eo_audit.errors import ArgumentError
from eo_audit.history import steps, text
from eo_audit.history.clock_offsets import NEVER_MS
from eo_audit.rebuild.looking import lines, step_of
from eo_audit.store.schemas import schema
from eo_audit.store.tables import Warehouse
from tests.support.rows import frame

TOLD = {"never_ms": NEVER_MS, "rounding_ms": 3, "drift": 0.001}


@pytest.mark.parametrize("history", steps.histories())
def test_every_step_is_read_further_down_and_reads_only_what_there_is(history: str) -> None:
    """Names behind FROM and JOIN are steps above, or inputs in braces; what nothing reads is dead."""
    names, read = steps.steps(history), set[str]()
    for at, (step, statement) in enumerate(steps.own_texts(history)):
        bare = re.sub(r"--.*|'[^']*'", "", statement)
        named = set(re.findall(r"(?<!DISTINCT )\b(?:FROM|JOIN)\s+([a-z]\w*)\b(?!\()", bare))
        assert named <= set(names[:at]), step
        read |= named
    assert read == set(names)


def test_a_step_that_one_other_reads_stands_within_it_and_all_others_are_views() -> None:
    told = {statement.step: statement for statement in steps.statements("coordinator_history")}
    assert told["sections"].is_within and told["placed"].is_within
    assert "JOIN (" in told["placed"].text and "FROM {section_status}" in told["together"].text
    assert not told["together"].is_within  # three deep
    assert not told[None].is_within


def test_each_function_can_be_taught_alone() -> None:
    """A text's session is taught what the text calls, and no more: so none may call another."""
    assert len(steps.functions()) == steps.text_of("functions").count("CREATE OR REPLACE TEMPORARY FUNCTION") > 10
    assert {name: steps.called_by(statement) for name, statement in steps.functions().items()} == {
        name: (name,) for name in steps.functions()
    }


def test_of_an_input_that_nobody_has_it_is_known_that_it_is_empty(spark: SparkSession) -> None:
    """Then plans leave out what is joined with it, and nobody is asked for its rows."""
    nothing = text.no_rows(spark, "unread_spans")
    joined = nothing.alias("some").join(nothing.alias("others"), "section_id").distinct()
    assert joined._jdf.queryExecution().optimizedPlan().nodeName() == "LocalRelation"
    assert nothing.schema == schema("unread_spans").spark()


@pytest.fixture
def matched(spark: SparkSession) -> DataFrame:
    columns = """replica_log_id LONG, coordinator_log_id LONG, cluster STRING, match STRING, place LONG,
        marker STRUCT<at_ms: LONG, leader_epoch: INT>,
        found STRUCT<decided_at_ms: LONG, until_ms: LONG, decided_at_offset: LONG, complete_offset: LONG, prepare_leader_epoch: INT,
            complete_leader_epoch: INT>"""
    rows = [(1, 2, "prod", "closing", n, (n * 1_000, 0), (n * 1_000 - 5, n * 1_000 + 5, 2 * n, 2 * n + 1, 0, 0)) for n in range(4)]
    return frame(spark, columns, rows)


def test_step_by_step_a_text_means_what_it_means_as_one_statement(spark: SparkSession, matched: DataFrame) -> None:
    by_step = text.run("clock_offsets", matched=matched, **TOLD).collect()
    whole = spark.sql((steps.FOLDER / "clock_offsets.sql").read_text(), None, matched=matched, **TOLD)
    assert by_step == whole.collect() != []


def views(spark: SparkSession) -> set[str]:
    return {row.viewName for row in spark.sql("SHOW VIEWS LIKE 'eo_audit_*'").collect()}


def test_views_of_steps_go_at_once_and_those_of_frames_with_their_frames(spark: SparkSession, matched: DataFrame) -> None:
    text.run("clock_offsets", matched=matched, **TOLD)
    before = views(spark)
    assert all(name.startswith("eo_audit_given_") for name in before)
    limited = matched.limit(1)
    for _ in range(2):
        text.run("clock_offsets", matched=limited, **TOLD)
        assert len(views(spark) - before) == 1, "made once, however often it is read"
    del limited
    gc.collect()
    text.run("clock_offsets", matched=matched, **TOLD)
    assert views(spark) <= before


def test_any_step_can_be_looked_at(matched: DataFrame) -> None:
    for step in steps.steps("clock_offsets"):
        assert text.run("clock_offsets", step=step, matched=matched, **TOLD).count() > 0


def test_a_step_that_is_not_there_is_named(matched: DataFrame) -> None:
    with pytest.raises(KeyError, match="clock_offsets has no step nothing; it has "):
        text.run("clock_offsets", step="nothing", matched=matched, **TOLD)
    with pytest.raises(KeyError, match="clock_offsets has no step nothing"), text.looking_for("clock_offsets", "nothing"):
        pass


def test_a_step_of_an_audit_can_be_looked_at_afterwards(spark: SparkSession, hanging_example: Path) -> None:
    before = sorted(path.name for path in hanging_example.rglob("*"))
    told = [json.loads(line) for line in lines(step_of("visibility.held_back", hanging_example, lambda: spark, small=True))]
    seen = {log.replica_log_id: log.held_back_records for log in Warehouse(hanging_example, lambda: spark).read("visibility").collect()}
    assert {log["replica_log_id"]: log["records"] for log in told} == {log: records for log, records in seen.items() if records}
    assert sorted(path.name for path in hanging_example.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.at_all", "there is no history nothing; the histories are aborted_index, "),
        ("visibility.nothing", "visibility has no step nothing; its steps are open_spans, "),
    ],
)
def test_what_is_not_there_is_said_before_the_work(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=said):
        step_of(name, tmp_path, no_spark, small=True)


def no_spark() -> SparkSession:
    raise AssertionError("nothing to do for Spark")
