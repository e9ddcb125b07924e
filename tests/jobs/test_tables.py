"""Tables: pinned reads, commits that any Delta reader reads, put-back after a dead run, one writer at a time."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from eo_audit.errors import ConfigurationError, WarehouseError
from eo_audit.store import parquet
from eo_audit.store.schemas import schema
from eo_audit.store.tables import Step, Warehouse
from eo_audit.store.tasks import described

STEP = Step(run_id="r1", step="rebuild", finished_at_ms=1, code_version="0", inputs="[]")


def warehouse(spark: SparkSession, out: Path, *, small: bool = True) -> Warehouse:
    return Warehouse(out, lambda: spark, small=small)


def entries(spark: SparkSession, *names: str) -> DataFrame:
    values = [(7, 0, 3, "lab", name, name.upper()) for name in names]
    return spark.createDataFrame(values, schema("manifest_entries").spark())


def names(rows: DataFrame) -> list[str]:
    return sorted(row["name"] for row in rows.collect())


@pytest.mark.parametrize("small", [True, False])
def test_what_is_written_is_read_by_everyone(spark: SparkSession, tmp_path: Path, small: bool) -> None:
    tables = warehouse(spark, tmp_path, small=small)
    with tables.writing():
        assert names(tables.overwrite("manifest_entries", entries(spark, "old"))) == ["old"]
        assert names(tables.overwrite("manifest_entries", entries(spark, "a", "b"))) == ["a", "b"]
        assert not warehouse(spark, tmp_path).exists("manifest_entries")  # not published yet
        tables.publish(STEP)
    path = str(tables.folder / "manifest_entries")
    assert names(warehouse(spark, tmp_path).read("manifest_entries")) == ["a", "b"]
    assert names(spark.read.format("delta").load(path)) == ["a", "b"]
    assert spark.read.format("delta").load(path).filter("byte_offset > 0").count() == 0  # statistics are believed
    assert sorted(DeltaTable(path).get_add_actions(flatten=True).column("num_records").to_pylist()) == [2] if small else [1, 1]
    assert [batch.num_rows for batch in warehouse(spark, tmp_path).batches("manifest_entries")]


@pytest.mark.parametrize(("partitions", "together"), [("1", "SinglePartition"), ("3", "hashpartitioning")])
@pytest.mark.parametrize("small", [True, False])
def test_nothing_is_shuffled_into_one_partition(spark: SparkSession, tmp_path: Path, small: bool, partitions: str, together: str) -> None:
    name, before = "spark.sql.shuffle.partitions", spark.conf.get("spark.sql.shuffle.partitions")
    tables = warehouse(spark, tmp_path, small=small)
    try:
        spark.conf.set(name, partitions)
        with tables.writing():
            written = tables.overwrite("manifest_entries", entries(spark, "a", "b"))
            for rows in (written, tables.materialise(written)):
                plan = rows.groupBy("section_id").count()._jdf.queryExecution().executedPlan()
                assert plan.outputPartitioning().toString().startswith(together)
    finally:
        spark.conf.set(name, str(before))


def test_a_table_without_rows_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    tables = warehouse(spark, tmp_path)
    assert tables.read("batches").columns == schema("batches").columns
    with tables.writing():
        tables.append("batches", [], transaction="ingest:x:batches")
        tables.publish(STEP)
    assert spark.read.format("delta").load(str(tables.folder / "batches")).count() == 0


def test_facts_are_added_and_their_transaction_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    tables = warehouse(spark, tmp_path)
    with tables.writing():
        for name in ("a", "b"):
            files = parquet.write("manifest_entries", entries(spark, name).toArrow(), tables.folder / "manifest_entries")
            tables.append("manifest_entries", files, transaction=f"ingest:{name}:manifest_entries")
        tables.publish(STEP)
    assert names(tables.read("manifest_entries")) == ["a", "b"]
    assert DeltaTable(tables.folder / "manifest_entries").transaction_version("ingest:a:manifest_entries") == 1


def test_missing_extra_and_mistyped_columns_are_reported_together(spark: SparkSession, tmp_path: Path) -> None:
    wrong = entries(spark, "a").drop("cluster").withColumn("colour", F.lit("red")).withColumn("length", F.lit("3"))
    told = "missing: cluster; extra: colour; mistyped: length \\(string, not bigint\\)"
    with pytest.raises(ConfigurationError, match=told):
        warehouse(spark, tmp_path).overwrite("manifest_entries", wrong)


@pytest.mark.parametrize("change", [lambda rows: rows.drop_columns(["length"]), lambda rows: rows.append_column("colour", rows["name"])])
def test_columns_of_another_version_are_one_sentence(spark: SparkSession, tmp_path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    tables = warehouse(spark, tmp_path)
    with tables.writing():
        tables.overwrite("manifest_entries", entries(spark, "a"))
        tables.publish(STEP)
    (file,) = (tables.folder / "manifest_entries").glob("*.parquet")
    pq.write_table(change(pq.read_table(file)), file)
    with pytest.raises(WarehouseError, match=r"of another version of eo-audit \(other columns in manifest_entries\): choose another --out"):
        warehouse(spark, tmp_path).read("manifest_entries")


def test_what_a_dead_run_left_is_put_back(spark: SparkSession, tmp_path: Path) -> None:
    tables = warehouse(spark, tmp_path)
    with tables.writing():
        tables.overwrite("manifest_entries", entries(spark, "good"))
        tables.publish(STEP)
    for attempt in ("bad", "worse"):  # dies twice before it publishes
        with tables.writing():
            tables.overwrite("manifest_entries", entries(spark, attempt))
            tables.overwrite("listed_files", spark.createDataFrame([], schema("listed_files").spark()))
        assert names(warehouse(spark, tmp_path).read("manifest_entries")) == ["good"]
    with tables.writing():
        assert names(tables.read("manifest_entries")) == ["good"]
        version = DeltaTable(tables.folder / "manifest_entries").version()
    with tables.writing():  # nothing to put back any more
        assert DeltaTable(tables.folder / "manifest_entries").version() == version
    assert names(spark.read.format("delta").load(str(tables.folder / "manifest_entries"))) == ["good"]


def test_rows_of_a_run_that_never_finished_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    with warehouse(spark, tmp_path).writing():
        tables = warehouse(spark, tmp_path)
        files = parquet.write("manifest_entries", entries(spark, "lost").toArrow(), tables.folder / "manifest_entries")
        tables.append("manifest_entries", files, transaction="ingest:1:manifest_entries")
    tables = warehouse(spark, tmp_path)
    with tables.writing():
        assert names(tables.read("manifest_entries")) == []
        files = parquet.write("manifest_entries", entries(spark, "kept").toArrow(), tables.folder / "manifest_entries")
        tables.append("manifest_entries", files, transaction="ingest:1:manifest_entries")
        tables.publish(STEP)
    assert names(spark.read.format("delta").load(str(tables.folder / "manifest_entries"))) == ["kept"]


def test_a_step_that_is_repeated_replaces_its_row(spark: SparkSession, tmp_path: Path) -> None:
    tables = warehouse(spark, tmp_path)
    with tables.writing():
        for second in (1, 2):
            tables.publish(Step(run_id="r1", step="ingest", finished_at_ms=second, code_version="0", inputs="[]"))
    assert [run["finished_at_ms"] for run in tables.runs()] == [2]


def test_a_step_with_another_outcome_keeps_the_earlier_ones(spark: SparkSession, tmp_path: Path) -> None:
    """The same dumps, judged again after an acceptance or by other rules: `eo-audit history` shows each."""
    tables = warehouse(spark, tmp_path)
    outcomes = [("a", "fail"), ("a", "pass"), ("b", "pass"), ("b", "pass"), ("a", "fail")]
    with tables.writing():
        for second, (rules, verdict) in enumerate(outcomes):
            tables.publish(Step("r1", "audit", finished_at_ms=second, code_version="0", inputs="[]", rule_set=rules, verdict=verdict))
    assert [(run["finished_at_ms"], run["verdict"]) for run in tables.runs()] == [(0, "fail"), (1, "pass"), (3, "pass"), (4, "fail")]


@pytest.mark.parametrize("small", [True, False])
def test_jobs_say_what_they_write(spark: SparkSession, tmp_path: Path, small: bool) -> None:
    context = spark.sparkContext._jsc.sc()
    tables, before = warehouse(spark, tmp_path, small=small), context.dagScheduler().numTotalJobs()
    with tables.writing(), described(spark, "a notebook's"):
        tables.overwrite("manifest_entries", entries(spark, "a", "b").distinct())
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "a notebook's"
    jobs = range(before, context.dagScheduler().numTotalJobs())
    assert jobs and {context.statusStore().job(job).description().get() for job in jobs} == {"manifest_entries"}
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_a_writer_removes_its_own_scratch_rows_and_those_of_the_dead(spark: SparkSession, tmp_path: Path) -> None:
    def left() -> list[Path]:
        return [*(tmp_path / "warehouse").glob("_scratch*")]

    slow, next_one = (warehouse(spark, tmp_path, small=False) for _ in range(2))
    (tmp_path / "warehouse" / "_scratch" / "of-an-earlier-release").mkdir(parents=True)
    slowly = slow.writing()
    slowly.__enter__()
    assert left() == []
    slow.materialise(entries(spark, "a"))
    with next_one.writing(break_lock=True):
        assert left() == []
        rows = next_one.materialise(entries(spark, "b", "c"))
        slowly.__exit__(None, None, None)
        assert names(rows) == ["b", "c"]
    assert left() == []


def test_a_second_writer_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    with Warehouse(tmp_path).writing():
        second = Warehouse(tmp_path).writing()
        with pytest.raises(WarehouseError, match=f"written by process {os.getpid()} on host"), second:
            pass
    with Warehouse(tmp_path).writing():
        assert json.loads((tmp_path / "warehouse" / "_lock").read_text())["pid"] == os.getpid()
    assert (tmp_path / "warehouse" / "_lock").read_text() == ""


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    die = f"""
        import os
        from pathlib import Path
        from eo_audit.store.lock import exclusive
        with exclusive(Path({str(tmp_path)!r}) / "warehouse" / "_lock"):
            os._exit(9)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(die)], check=False).returncode == 9
    assert "pid" in (tmp_path / "warehouse" / "_lock").read_text()
    with Warehouse(tmp_path).writing():
        assert json.loads((tmp_path / "warehouse" / "_lock").read_text())["pid"] == os.getpid()


def test_the_lock_of_another_host_is_believed(tmp_path: Path) -> None:
    lock = tmp_path / "warehouse" / "_lock"
    lock.parent.mkdir()
    lock.write_text('{"pid": 4, "host": "far-away"}')
    with pytest.raises(WarehouseError, match="process 4 on host far-away"), Warehouse(tmp_path).writing():
        pass
