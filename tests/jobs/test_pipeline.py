"""The whole audit: it may die after any commit; its steps ask for each other; the same dumps give the same results."""

import json
import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import RLock

import pytest
from pyspark.sql import DataFrame, SparkSession

from eo_audit import pipeline
from eo_audit.errors import WarehouseError
from eo_audit.pipeline import Options
from eo_audit.store.schemas import table_names
from eo_audit.store.tables import Warehouse

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
FIRST, SECOND = DUMPS / "hanging_txn_k39", DUMPS / "syn_gap"
NOT_REPEATED = {"ingest_id", "key_hash", "value_hash"}  # of facts: the run that added them, and hashes under a salt of their own

Results = dict[str, list[str]]


# Each action is planned, and planning is most of a small run. 53 for the duplicates example, 143 and 148 where transactions hang or gap.
MOST_JOBS = 148


def run(spark: SparkSession, out: Path, *inputs: Path) -> None:
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    before = jobs()
    pipeline.run(out, inputs, Options(), spark=lambda: spark)
    assert jobs() - before <= MOST_JOBS


def results(out: Path, known: dict[object, list[str]] | None = None) -> Results:
    """The rows of all tables as a reader sees them, whatever their order. `known`: those of files that were read before, which are never
    written again."""
    warehouse, known = Warehouse(out), {} if known is None else known
    seen: Results = {}
    for name in table_names():
        if name != "runs":
            files = (name, *sorted((str(path.relative_to(warehouse.folder)), path.stat().st_size) for path, _ in warehouse._files(name)))
            seen[name] = known[files] = known.get(files) or rows(warehouse, name)
    return seen


def rows(warehouse: Warehouse, name: str) -> list[str]:
    table = warehouse.arrow(name)
    return sorted(map(json.dumps, table.select([c for c in table.column_names if c not in NOT_REPEATED]).to_pylist()))


def for_people(out: Path) -> tuple[bytes, bytes]:
    """findings.jsonl and verdict.json; all but the one machine clock in them."""
    verdict = json.loads((out / "verdict.json").read_bytes())
    assert verdict.pop("finished_at_ms") > 0
    return (out / "findings.jsonl").read_bytes(), json.dumps(verdict).encode()


def copies_after_each_commit(monkeypatch: pytest.MonkeyPatch, out: Path, folder: Path) -> list[Path]:
    """From now on, what a process that is killed after its nth commit would leave behind is copied to `folder`/n."""
    copies: list[Path] = []
    commit: Callable[..., None] = Warehouse._commit
    overwrite: Callable[..., DataFrame] = Warehouse.overwrite_arrow
    alone = RLock()  # histories are written by two threads: neither may write while the other one's commit is copied

    def overwrite_alone(*args: object, **options: object) -> DataFrame:
        with alone:
            return overwrite(*args, **options)

    def commit_and_copy(*args: object, **options: object) -> None:
        with alone:
            commit(*args, **options)
            copies.append(folder / str(len(copies) + 1))
            shutil.copytree(out, copies[-1], copy_function=os.link)  # files of tables are written once, the others anew

    monkeypatch.setattr(Warehouse, "overwrite_arrow", overwrite_alone)
    monkeypatch.setattr(Warehouse, "_commit", commit_and_copy)
    return copies


def test_a_run_that_dies_leaves_the_previous_results_and_can_be_repeated(
    spark: SparkSession, hanging_example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(hanging_example, tmp_path / "out")
    before = results(out)
    copies = copies_after_each_commit(monkeypatch, out, tmp_path / "copies")
    run(spark, out, SECOND)
    monkeypatch.undo()
    clean, told = results(out), for_people(out)
    assert before["findings"]
    assert len(copies) > len(table_names("histories")) + 10
    known: dict[object, list[str]] = {}
    seen = [results(copy, known) for copy in copies]
    assert seen[0] == before
    assert seen[-1] == clean
    for earlier, later in pairwise(seen):
        changed = {name for name in later if later[name] != earlier[name]}
        families = {family for family in ("facts", "histories", "results") if changed & set(table_names(family))}
        assert len(families) <= 1  # one step appears as a whole, or nothing does
    assert not [copy for copy in copies if (copy / "verdict.json").exists()]
    half_way = copies[len(copies) // 2]  # through the histories: the same dumps again add no fact, and all that is behind them is made anew
    run(spark, half_way, SECOND)
    assert results(half_way) == clean
    assert for_people(half_way) == told


def no_spark() -> SparkSession:
    raise AssertionError("nothing to do for Spark")


def test_a_step_asks_for_the_one_before_it(tmp_path: Path) -> None:
    with pipeline.writing(tmp_path, Options(), spark=no_spark) as warehouse:
        with pytest.raises(WarehouseError, match="eo-audit ingest"):
            pipeline.rebuild(warehouse, Options())
        pipeline.ingest(warehouse, pipeline.discover([SECOND], Options()), Options())
        with pytest.raises(WarehouseError, match="eo-audit rebuild"):
            pipeline.audit(warehouse, Options())


def test_histories_older_than_the_facts_are_not_audited(tmp_path: Path) -> None:
    with pipeline.writing(tmp_path, Options(), spark=no_spark) as warehouse:
        pipeline.ingest(warehouse, pipeline.discover([SECOND], Options()), Options())
        pipeline.publish(warehouse, "rebuild", Options())
        pipeline.ingest(warehouse, pipeline.discover([FIRST], Options()), Options())
        with pytest.raises(WarehouseError, match="older than the facts"):
            pipeline.audit(warehouse, Options())
