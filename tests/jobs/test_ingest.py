"""Ingest: the same input adds nothing, a dead run leaves nothing, ranges and Spark tasks give the same facts."""

import gzip
import multiprocessing
import os
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from eo_audit import pipeline
from eo_audit.errors import InputError, WarehouseError
from eo_audit.ingest import step
from eo_audit.ingest.step import ingest_files
from eo_audit.pipeline import Options
from eo_audit.store.schemas import table_names
from eo_audit.store.tables import Warehouse
from eo_audit.store.tasks import Tasks

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
ONE_KEPT = {"ingest_id", "key_hash", "value_hash", "input_path"}  # what two clean runs need not share


def ingest(out: Path, *inputs: Path, notice: Callable[[str], None] = pipeline.unheard) -> None:
    """`eo-audit ingest` in this process, without Spark."""
    options = Options(notice=notice)
    dumps = pipeline.discover(inputs, options)
    with pipeline.writing(out, options, spark=no_spark) as warehouse:
        pipeline.ingest(warehouse, dumps, options)


def no_spark() -> SparkSession:
    raise AssertionError("an ingest of a small input does not need Spark")


Content = dict[str, list[tuple[object, ...]]]


def content(out: Path) -> Content:
    """All facts, whatever the order of rows, without ids of runs and salted hashes."""
    warehouse = Warehouse(out)
    tables = {name: warehouse.arrow(name) for name in table_names("facts")}
    kept = {name: table.select([column for column in table.column_names if column not in ONE_KEPT]) for name, table in tables.items()}
    return {name: sorted((tuple(row.values()) for row in table.to_pylist()), key=repr) for name, table in kept.items()}


def versions(out: Path) -> dict[str, int]:
    return {name: DeltaTable(out / "warehouse" / name).version() for name in table_names("facts")}


def test_the_same_input_again_adds_nothing(tmp_path: Path) -> None:
    ingest(tmp_path, DUMPS / "hanging_txn_k39")
    first, at = content(tmp_path), versions(tmp_path)
    assert len(first["batches"]) > 20
    ingest(tmp_path, DUMPS / "hanging_txn_k39")
    assert versions(tmp_path) == at
    shutil.copytree(DUMPS / "hanging_txn_k39", tmp_path / "elsewhere" / "hanging_txn_k39")
    ingest(tmp_path, tmp_path / "elsewhere" / "hanging_txn_k39")
    ingest(tmp_path, DUMPS / "hanging_txn_k39", tmp_path / "elsewhere" / "hanging_txn_k39")
    assert content(tmp_path) == first


def test_facts_of_another_parser_are_not_mixed_with_those_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(tmp_path, DUMPS / "clean_k40")
    monkeypatch.setattr(step, "PARSER_VERSION", step.PARSER_VERSION + 1)
    with pytest.raises(
        WarehouseError, match="were read by another version of eo-audit, which may read them otherwise: choose another --out"
    ):
        ingest(tmp_path, DUMPS / "syn_gap")
    assert {row["cluster"] for row in Warehouse(tmp_path).arrow("dump_files").to_pylist()} == {"clean_k40"}
    ingest(tmp_path / "another", DUMPS / "clean_k40")


def test_more_input_adds_what_is_new(tmp_path: Path) -> None:
    both, grown = tmp_path / "both", tmp_path / "grown"
    ingest(both, DUMPS / "clean_k40", DUMPS / "syn_gap")
    ingest(grown, DUMPS / "clean_k40")
    ingest(grown, DUMPS / "clean_k40", DUMPS / "syn_gap")
    assert content(grown) == content(both)


def test_the_byte_ledger_of_every_file_balances(tmp_path: Path) -> None:
    ingest(tmp_path, DUMPS / "hostile", DUMPS / "syn_text_truncated", DUMPS / "dialects_tombstone_k23@2.0.1")
    warehouse = Warehouse(tmp_path)
    files = warehouse.arrow("dump_files").to_pylist()
    for row in files:
        assert row["bytes_preamble"] + row["bytes_facts"] + row["bytes_tool_messages"] + row["bytes_unread"] == row["text_bytes"]
    assert {row["path"] for row in files} >= {"manifest.yaml", "listing.txt"} or len(files) > 20
    unread = warehouse.arrow("unread_spans").to_pylist()
    for row in files:
        assert sum(span["length"] for span in unread if span["dump_file_id"] == row["dump_file_id"]) == row["bytes_unread"]


def one_long_file(folder: Path) -> Path:
    """Segments as `kafka-dump-log --files a,b,c` prints them, hostile payloads among them: 3 MB in one file."""
    segments = [*sorted((DUMPS / "hostile").rglob("*.log.txt")), *sorted((DUMPS / "power_outage_k39").rglob("*.log.txt"))]
    file = folder / "long" / "broker-1" / "all.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(path.read_bytes() for path in segments) * 2)
    return folder / "long"


def test_spark_tasks_over_ranges_read_the_same(spark: SparkSession, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    dumps = one_long_file(tmp_path)
    options = Options()
    with pipeline.writing(there, options, spark=lambda: spark) as warehouse:
        tasks = Tasks(lambda: spark)
        ingest_files(warehouse, pipeline.discover([dumps], options).files, range_bytes=1 << 20, tasks=tasks)
        pipeline.publish(warehouse, "ingest", options)
    ingest(here, dumps)
    assert len(Warehouse(there).arrow("batches")) > 1_000
    assert content(there) == content(here)


def test_a_task_that_meets_a_bad_file_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    (dump,) = pipeline.discover([one_long_file(tmp_path)], Options()).files
    bad = replace(dump, absolute=Path("/proc/self/mem"), stored_bytes=1)  # it opens, and nothing can be read at its start
    tasks, message = Tasks(lambda: spark), "/proc/self/mem cannot be read to its end"
    with pytest.raises(InputError, match=message), pipeline.writing(tmp_path, Options(), spark=lambda: spark) as warehouse:
        ingest_files(warehouse, [bad], range_bytes=1 << 20, tasks=tasks)


def test_a_damaged_gzip_file_stops_nothing_and_is_told(tmp_path: Path) -> None:
    folder = shutil.copytree(DUMPS / "hanging_txn_k39", tmp_path / "in")
    ingest(tmp_path / "whole", folder)
    plain = folder / "broker-1" / "orders-0" / f"{0:020d}.log.txt"
    text = plain.read_bytes()
    packed = gzip.compress(text, mtime=0)
    plain.with_name(f"{plain.name}.gz").write_bytes(packed[: len(packed) * 3 // 4] + bytes(64) + packed[len(packed) * 3 // 4 + 64 :])
    plain.unlink()
    told: list[str] = []
    ingest(tmp_path / "out", folder, notice=told.append)
    (sentence,) = told
    assert re.fullmatch(r".*/orders-0/0+\.log\.txt\.gz is damaged gzip \(.*\): read up to byte [\d,]+ of its text, .*", sentence)
    whole, read = (Warehouse(tmp_path / name).arrow("batches") for name in ("whole", "out"))
    assert 0 < whole.num_rows - read.num_rows < text.count(b"\nbaseOffset: ")


def test_two_dumps_of_unknown_brokers_must_not_differ(tmp_path: Path) -> None:
    for folder, name in (("a", "hanging_txn_k39"), ("b", "clean_k39")):
        segment = next(path for path in sorted((DUMPS / name).rglob("*.log.txt")) if "__" not in path.parent.name)
        copy = tmp_path / "in" / folder / "orders-0" / segment.name
        copy.parent.mkdir(parents=True)
        copy.write_bytes(re.sub(rb"^Dumping .*\n", b"Dumping orders-0/00000000000000000000.log\n", segment.read_bytes()))
    with pytest.raises(InputError, match="both claim to be log 0 of orders-0"):
        ingest(tmp_path / "out", tmp_path / "in")
    assert not Warehouse(tmp_path / "out").exists("batches")
    shutil.rmtree(tmp_path / "in" / "b")
    told: list[str] = []
    ingest(tmp_path / "out", tmp_path / "in", notice=told.append)
    assert sum("nothing says which broker" in notice for notice in told) == 1


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    options = Options(progress=lambda what, done, total: told.append((what, done, total)))
    dumps = pipeline.discover([DUMPS / "clean_k40"], options)
    with pipeline.writing(tmp_path, options, spark=no_spark) as warehouse:
        pipeline.ingest(warehouse, dumps, options)
    assert told[0] == ("looking through the dumps", 0, 1)
    assert ("reading the dumps", 1, 1) in told


def ingest_then_die(number: int, out: Path, dumps: Path) -> None:
    """Ends like a process that is killed right after its nth commit."""
    commit, left = Warehouse._commit, [number]

    def commit_then_die(*args: object, **options: object) -> None:
        commit(*args, **options)  # type: ignore[arg-type]
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    Warehouse._commit = commit_then_die  # type: ignore[method-assign, assignment]
    ingest(out, dumps)


def test_a_run_killed_after_any_commit_leaves_no_trace(tmp_path: Path) -> None:
    first, second = DUMPS / "syn_gap", DUMPS / "synthetic_base_k39"
    clean, base = tmp_path / "clean", tmp_path / "base"
    ingest(base, first)
    before = content(base)
    shutil.copytree(base, clean)
    ingest(clean, second)
    # Each process is forked from one that has imported everything, this file too, but opened nothing.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["pandas", "eo_audit.pipeline", __name__])
    commits = sum(versions(clean).values()) - sum(versions(base).values()) + 1  # and the row of `runs`
    assert commits > 8
    after = content(clean)
    for number in range(1, commits + 1):
        out = tmp_path / f"out-{number}"
        shutil.copytree(base, out)
        process = processes.Process(target=ingest_then_die, args=(number, out, second))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert content(out) == (before if number < commits else after)
        ingest(out, second)
        assert content(out) == after
