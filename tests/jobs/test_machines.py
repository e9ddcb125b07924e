"""Machines that fail: full disks, damaged files, dead hosts, old keys; and that a warehouse does not grow for ever."""

import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from eo_audit import pipeline
from eo_audit.dump.lines.hashes import hashes_of
from eo_audit.errors import ArgumentError, ConfigurationError, WarehouseError, of_machine
from eo_audit.pipeline import Options
from eo_audit.report import build
from eo_audit.report.audits import audits_of
from eo_audit.store import delta_table, lock, parquet, scratch, upkeep
from eo_audit.store.delta_table import DamagedError, Table
from eo_audit.store.keys import KEY_FILE, NAME, OLD_SALT, Keys
from eo_audit.store.schemas import table_names
from eo_audit.store.tables import Step, Warehouse
from tests.jobs.test_ingest import DUMPS, Content, content, ingest, no_spark

CLEAN = DUMPS / "syn_gap"
OTHER = DUMPS / "synthetic_base_k39"  # small, and with facts for as many tables as any
EXAMPLE = Path(__file__).parents[2] / "examples" / "hanging-transaction" / "dumps"  # what `hanging_example` audited


def keys_of(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """A configuration folder of this test; where its keys are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return folder / "eo-audit" / "keys"


def everything(folder: Path) -> Iterator[bytes]:
    return (path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_key_lies_with_its_user_and_not_with_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = keys_of(monkeypatch, tmp_path / "config")
    ingest(tmp_path / "out", CLEAN)
    (path,) = keys.iterdir()
    key = path.read_bytes()
    assert (len(key), stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(keys.stat().st_mode)) == (16, 0o600, 0o700)
    assert not [content for content in everything(tmp_path / "out") if key in content or key.hex().encode() in content]
    assert Warehouse(tmp_path / "out").salt() == key
    assert Warehouse(tmp_path / "other").salt() != key
    # What a thief of the folder has: names and hashes. The hashes are those of the key, and of nothing that lies there.
    stored = {value for value in Warehouse(tmp_path / "out").arrow("records")["value_hash"].to_pylist() if value is not None}
    guesses = [re.findall(rb"payload: (.*)", text) for text in everything(CLEAN)]
    values = [guess for found in guesses for guess in found]
    joined, spans, at = b"".join(values), [], 0
    for value in values:
        spans.append((at, at + len(value)))
        at += len(value)
    assert stored & set(hashes_of(joined + bytes(5000), spans, key))
    for secret in (b"", (tmp_path / "out" / "warehouse" / NAME).read_bytes().strip(), bytes(16)):
        assert not stored & set(hashes_of(joined + bytes(5000), spans, secret))


def test_a_key_of_an_earlier_release_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = keys_of(monkeypatch, tmp_path / "config")
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    (warehouse / OLD_SALT).write_bytes(b"0123456789abcdef")
    ingest(tmp_path, CLEAN)
    assert not (warehouse / OLD_SALT).exists()
    assert [path.read_bytes() for path in keys.iterdir()] == [b"0123456789abcdef"]


def test_what_is_no_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk once left an empty one, and all hashes were made with it."""
    keys = keys_of(monkeypatch, tmp_path / "config")
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse" / OLD_SALT).touch()
    ingest(tmp_path, CLEAN)  # nothing was hashed with it yet
    (path,) = keys.iterdir()
    path.write_bytes(b"short")
    with pytest.raises(ConfigurationError, match="it has 5 bytes, not 16"):
        ingest(tmp_path, OTHER)
    (tmp_path / "warehouse" / OLD_SALT).touch()
    with pytest.raises(WarehouseError, match="0 bytes instead of a key, so the hashes beside it can be guessed: remove "):
        ingest(tmp_path, CLEAN)


def test_a_key_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, told = keys_of(monkeypatch, tmp_path / "config"), list[str]()
    ingest(tmp_path, CLEAN)
    shutil.rmtree(keys)
    ingest(tmp_path, OTHER, notice=told.append)
    assert [sentence for sentence in told if "from now on there is a new one" in sentence]


def test_a_key_that_is_forgotten_lies_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = keys_of(monkeypatch, tmp_path / "config")
    options = Options(forget_key=True)
    with pipeline.writing(tmp_path / "out", options, spark=no_spark) as warehouse:
        pipeline.ingest(warehouse, pipeline.discover([CLEAN], options), options)
        key = warehouse.salt()
    assert len(key) == 16 and not keys.exists()
    assert not [content for content in everything(tmp_path) if key in content]
    ingest(tmp_path / "out", OTHER)
    with pipeline.writing(tmp_path / "out", options, spark=no_spark):
        assert [*keys.iterdir()]
    assert not [*keys.iterdir()]


def test_a_key_may_be_given_or_have_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_bytes(b"fedcba9876543210")
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "key"))
    assert Warehouse(tmp_path / "out").salt() == b"fedcba9876543210"
    monkeypatch.delenv(KEY_FILE)
    (tmp_path / "config").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(ConfigurationError, match=r"cannot be kept in .* use --forget-key"):
        Warehouse(tmp_path / "out").salt()
    assert len(Keys(forget=True).key(tmp_path / "out", used=False)) == 16


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Every file that grows above a size fails to, as on a full disk: in Python, Arrow and delta-rs."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """What an ingest leaves that nothing disturbed."""
    out = tmp_path_factory.mktemp("clean")
    ingest(out, CLEAN, OTHER)
    return content(out)


# Too little for the lock, for the first rows of a table, for its end or that of a larger one, and for the commit behind smaller ones.
@pytest.mark.parametrize("size", [0, 8, 40, 200, 2_500, 6_000, 9_000, 11_000])
def test_a_disk_that_was_full_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: Content, size: int) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    out = tmp_path / "out"
    with pytest.raises(Exception) as met, files_up_to(size):
        ingest(out, CLEAN, OTHER)
    assert of_machine(met.value) or "cannot be kept" in str(met.value)
    assert not Warehouse(out).runs()
    ingest(out, CLEAN, OTHER)
    assert content(out) == undisturbed
    assert len(Warehouse(out).salt()) == 16
    with (warehouse := Warehouse(out, no_spark)).writing():
        upkeep.tidy(warehouse, keep_audits=1)
    assert not [*out.rglob("*.part")]
    assert content(out) == undisturbed


DAMAGES = {
    "flipped": lambda path: path.write_bytes(path.read_bytes()[:200] + bytes([path.read_bytes()[200] ^ 1]) + path.read_bytes()[201:]),
    "emptied": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_facts_are_noticed_by_the_next_ingest(tmp_path: Path, how: str) -> None:
    ingest(tmp_path, CLEAN)
    (file,) = (tmp_path / "warehouse" / "batches").glob("*.parquet")
    DAMAGES[how](file)
    with pytest.raises(DamagedError, match=r"the table batches in .* is damaged .* remove .* and run `eo-audit run DUMPS"):
        ingest(tmp_path, CLEAN)
    left = {path.name for path in (tmp_path / "warehouse" / "batches").glob("*.parquet")}
    assert left == (set() if how == "gone" else {file.name})  # nothing was repaired in silence


@pytest.mark.parametrize("table", ["runs", "batches"])
def test_a_damaged_log_is_noticed(tmp_path: Path, table: str) -> None:
    ingest(tmp_path, CLEAN)
    (tmp_path / "findings.jsonl").touch()  # of an audit
    shutil.rmtree(tmp_path / "warehouse" / table / "_delta_log")
    with pytest.raises(DamagedError, match=f"the table {table} in .* is damaged"):
        ingest(tmp_path, CLEAN)


KEPT = 2  # audits
LONG_LOG, PERIOD = 2, 6  # versions instead of 20: what the checkpoints of all tables do repeats after so many audits
Sizes = Sequence[tuple[int, int]]


def audited(spark: SparkSession, out: Path, number: int) -> Warehouse:
    """A warehouse after an audit with other findings than the one before, as far as its tables tell."""
    warehouse = Warehouse(out, lambda: spark)
    with warehouse.writing():
        for name in ("findings", "visibility"):
            warehouse.overwrite_arrow(name, warehouse.arrow(name))
        warehouse.publish(Step(f"r{number}", "audit", finished_at_ms=number, code_version="0", inputs="[]", verdict="pass"))
        upkeep.tidy(warehouse, keep_audits=KEPT, grace_ms=0)
    return warehouse


@pytest.fixture(scope="module")
def grown(spark: SparkSession, hanging_example: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sizes]:
    """A folder after many audits; bytes and files after each."""
    out, sizes = tmp_path_factory.mktemp("grown"), list[tuple[int, int]]()
    shutil.copytree(hanging_example, out, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta_table, "LONG_LOG", LONG_LOG)
        for number in range(1, 2 * PERIOD + 6):
            warehouse = audited(spark, out, number)
            sizes.append((warehouse.stored_bytes(), sum(path.is_file() for path in warehouse.folder.rglob("*"))))
            assert len(audits_of(Warehouse(out))) == min(number + 1, KEPT)
    return out, sizes


def test_a_warehouse_does_not_grow_for_ever(spark: SparkSession, hanging_example: Path, grown: tuple[Path, Sizes]) -> None:
    (out, sizes), expected = grown, Warehouse(hanging_example).arrow("findings").to_pylist()
    # A checkpoint remembers the files of the last day that are gone: so many audits in a minute are more than in a night.
    middle, end = sizes[-2 * PERIOD : -PERIOD], sizes[-PERIOD:]
    assert max(stored for stored, _ in end) < 1.25 * max(stored for stored, _ in middle)
    # One file more for each audit: the one rebuild pins its version of `visibility`, and so the log behind it.
    assert max(files for _, files in end) < max(files for _, files in middle) + 2 * PERIOD
    assert len([*(out / "warehouse" / "batches").glob("*part*")]) == 1
    for run in Warehouse(out).runs():
        if run["step"] == "audit":
            assert Warehouse(out).arrow_of("findings", run).to_pylist() == expected
    assert DeltaTable(out / "warehouse" / "findings").version() > 2 * LONG_LOG  # any Delta reader still reads it
    assert spark.read.format("delta").load(str(out / "warehouse" / "findings")).count() == len(expected)


@pytest.fixture(scope="module")
def mended(spark: SparkSession, grown: tuple[Path, Sizes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of many audits, with histories that were damaged and the facts of one night more, after one run for both.

    Some tables begin anew, the others go on behind the long logs of many audits.
    """
    out = tmp_path_factory.mktemp("mended")
    shutil.copytree(grown[0], out, dirs_exist_ok=True)
    for name in ("producer_history", "findings"):
        shutil.rmtree(out / "warehouse" / name / "_delta_log")
    with pytest.raises(DamagedError, match="run `eo-audit rebuild --out"), pipeline.writing(out, Options(), after="rebuild"):
        pass
    told: list[str] = []
    ingest(out, EXAMPLE, notice=told.append)
    assert sum("rebuild and audit make it anew" in sentence for sentence in told) == 2
    with pytest.raises(WarehouseError, match="run `eo-audit rebuild"), pipeline.writing(out, Options(), after="rebuild"):
        pass  # not judged by what is left
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta_table, "LONG_LOG", LONG_LOG)
        pipeline.run(out, [night_before(tmp_path_factory.mktemp("night"))], Options(), spark=lambda: spark)
    return out


def test_damaged_histories_are_said_and_made_anew(mended: Path, hanging_example: Path) -> None:
    assert (mended / "findings.jsonl").read_bytes() == (hanging_example / "findings.jsonl").read_bytes()
    assert len(audits_of(Warehouse(mended))) == 1


def test_a_reader_of_the_version_before_can_finish(spark: SparkSession, tmp_path: Path) -> None:
    ingest(tmp_path, CLEAN)
    reader = Warehouse(tmp_path)
    with (writer := Warehouse(tmp_path, lambda: spark)).writing():
        writer.overwrite_arrow("batches", reader.arrow("batches").slice(0, 1))
        writer.publish(Step("r2", "ingest", finished_at_ms=2, code_version="0", inputs="[]"))
        upkeep.tidy(writer, keep_audits=1)
        assert reader.arrow("batches").num_rows > 1
        upkeep.tidy(writer, keep_audits=1, grace_ms=0)
    with pytest.raises(DamagedError):
        reader.arrow("batches")
    assert Warehouse(tmp_path).arrow("batches").num_rows == 1


def night_before(folder: Path) -> Path:
    """The example's collection of a day before, when every log was shorter."""
    night = Path(shutil.copytree(EXAMPLE, folder / "before"))
    manifest = night / "manifest.yaml"
    manifest.write_text(re.sub("(?<=dumped_at: )[0-9]+", lambda at: str(int(at[0]) - upkeep.DAY_MS), manifest.read_text()))
    for path in night.rglob("orders-*/*.log.txt"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) * 2 // 3]))
    return night


def test_prune_removes_what_no_audit_reads(spark: SparkSession, mended: Path, hanging_example: Path, tmp_path: Path) -> None:
    out, alone = Path(shutil.copytree(mended, tmp_path / "out")), content(hanging_example)
    before = content(out)
    with pipeline.writing(out, Options(), after="rebuild", keeps_verdict=True, spark=lambda: spark) as warehouse:
        assert not upkeep.superseded(warehouse, keep_ms=2 * upkeep.DAY_MS)
        files = upkeep.superseded(warehouse, keep_ms=upkeep.DAY_MS // 2)
        assert {Path(file.path).parent.name for file in files} >= {"orders-0"}
        assert content(out) == before
        assert pipeline.prune(warehouse, files, Options()) > len(files)
    assert (out / "verdict.json").is_file()
    gone = {file.dump_file_id for file in files}
    after = Warehouse(out)
    assert not gone & set(after.arrow("dump_files")["dump_file_id"].to_pylist())
    sections = set(after.arrow("dump_sections")["section_id"].to_pylist())
    assert set(after.arrow("batches")["section_id"].to_pylist()) <= sections
    # What is left was audited already: facts as before that night, but for files that were the same on both.
    left = content(out)
    assert {name for name in left if left[name] != alone[name]} <= {"dump_sightings"}
    assert spark.read.format("delta").load(str(out / "warehouse" / "batches")).count() == len(left["batches"])


def pruned(out: Path) -> tuple[Path, list[Path]]:
    """A folder with the facts of two ingests, where the batches of one section were removed; the files of `batches` before."""
    ingest(out, CLEAN)
    ingest(out, OTHER)
    batches = Table("batches", out / "warehouse" / "batches")
    before = [path for path, _ in batches.files()]
    with (warehouse := Warehouse(out, no_spark)).writing():
        rows = warehouse.arrow("batches").to_pylist()
        left = [row for row in rows if row["section_id"] != rows[0]["section_id"]]
        assert warehouse.delete("batches", "section_id", [rows[0]["section_id"]]) == len(rows) - len(left) > 0
        assert warehouse.delete("batches", "section_id", [rows[0]["section_id"]]) == 0
        assert sorted(warehouse.arrow("batches").to_pylist(), key=repr) == sorted(left, key=repr)
        assert Warehouse(out).arrow("batches").to_pylist() == rows  # not published yet
        warehouse.publish(Step("r2", "prune", finished_at_ms=2, code_version="0", inputs="[]"))
    return out, before


def test_prune_writes_anew_only_files_that_lose_rows(tmp_path: Path) -> None:
    out, before = pruned(tmp_path)
    after = [path for path, _ in Table("batches", out / "warehouse" / "batches").files()]
    assert len(before) == 2 and len(set(before) & set(after)) == 1
    ingest(out, CLEAN)  # a version whose files are not all of the newest can be put back, added to and swept
    with (warehouse := Warehouse(out, no_spark)).writing():
        assert upkeep.tidy(warehouse, keep_audits=1) == 0  # readers of the version before can finish
        assert upkeep.tidy(warehouse, keep_audits=1, grace_ms=0) > 0
        assert warehouse.arrow("batches").num_rows


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_facts_are_noticed_behind_prune(tmp_path: Path, how: str) -> None:
    out, before = pruned(tmp_path)
    (file,) = (path for path, _ in Table("batches", out / "warehouse" / "batches").files() if path not in before)
    DAMAGES[how](file)
    with pytest.raises(DamagedError, match=r"the table batches in .* is damaged"):
        ingest(out, CLEAN)


def test_a_prune_that_dies_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(tmp_path, CLEAN)
    before, table = content(tmp_path), Table("batches", tmp_path / "warehouse" / "batches")
    sections = Warehouse(tmp_path).arrow("batches")["section_id"].to_pylist()
    with (warehouse := Warehouse(tmp_path, no_spark)).writing():  # ends behind its commit
        assert warehouse.delete("batches", "section_id", sections) == len(sections)
        assert table.files() == []
    assert content(tmp_path) == before
    monkeypatch.setattr(Table, "commit", lambda *_, **__: pytest.fail("and before it"))
    with pytest.raises(pytest.fail.Exception), (warehouse := Warehouse(tmp_path, no_spark)).writing():
        warehouse.delete("batches", "section_id", sections[:1])
    monkeypatch.undo()
    ingest(tmp_path, CLEAN)
    assert content(tmp_path) == before


@pytest.mark.parametrize(("text", "days"), [("90d", 90), ("2w", 14), ("0d", 0)])
def test_ages(text: str, days: int) -> None:
    assert upkeep.parse_age(text) == days * upkeep.DAY_MS


@pytest.mark.parametrize("text", ["", "d", "90", "-1d", "9999999d", "³d"])
def test_no_ages(text: str) -> None:
    with pytest.raises(ArgumentError, match="such as 90d or 12w"):
        upkeep.parse_age(text)


def lock_of(out: Path, *, age: float, beats: bool = True) -> Path:
    path = out / "warehouse" / "_lock"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'{{"pid": 4, "host": "far-away"{", " + chr(34) + "token" + chr(34) + ": " + chr(34) + "x" + chr(34) if beats else ""}}}'
    )
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_host_that_died_blocks_for_minutes(tmp_path: Path) -> None:
    lock_of(tmp_path, age=30)
    with pytest.raises(WarehouseError, match=r"process 4 on host far-away, seen 30 s ago: .* works in 90 s, or with --break-lock"):
        ingest(tmp_path, CLEAN)
    told: list[str] = []
    lock_of(tmp_path, age=lock.DEAD_AFTER_SECONDS + 1)
    ingest(tmp_path, CLEAN, notice=told.append)
    assert any("died before it had finished" in sentence for sentence in told)
    lock_of(tmp_path, age=1e6, beats=False)  # of a release that does not beat
    with pytest.raises(WarehouseError, match="use --break-lock if it died"):
        ingest(tmp_path, CLEAN)


def test_a_holder_beats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "BEAT_SECONDS", 0.05)
    with Warehouse(tmp_path).writing():
        path = tmp_path / "warehouse" / "_lock"
        os.utime(path, (0, 0))
        deadline = time.monotonic() + 10
        while time.time() - path.stat().st_mtime > 5:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_writer_whose_lock_was_broken_writes_nothing_more(tmp_path: Path) -> None:
    ingest(tmp_path, CLEAN)
    slow = Warehouse(tmp_path, no_spark)
    with slow.writing():
        with Warehouse(tmp_path, no_spark).writing(break_lock=True) as before:
            assert (before.died, before.broken) == (False, f"process {os.getpid()} on host {socket.gethostname()}"), "it lives"
            with pytest.raises(WarehouseError, match=r"was taken over by process .* this run writes nothing more"):
                slow.overwrite_arrow("batches", slow.arrow("batches").slice(0, 0))
            held = (tmp_path / "warehouse" / "_lock").read_text()
        assert held and not (tmp_path / "warehouse" / "_lock").read_text()
    ingest(tmp_path, CLEAN)
    assert Warehouse(tmp_path).arrow("batches").num_rows


def test_a_lock_that_is_broken_while_it_is_taken_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening the file and locking it: the one that was opened is no longer the lock then."""
    take, breaking = lock._take, lock.exclusive(tmp_path / "_lock", break_lock=True)

    def late(descriptor: int, path: Path) -> None:
        monkeypatch.setattr(lock, "_take", take)
        breaking.__enter__()
        take(descriptor, path)

    monkeypatch.setattr(lock, "_take", late)
    with pytest.raises(WarehouseError, match=f"is being written by process {os.getpid()}"), lock.exclusive(tmp_path / "_lock"):
        pass
    breaking.__exit__(None, None, None)
    with lock.exclusive(tmp_path / "_lock") as held:
        assert held.is_ours()


def test_a_writer_whose_lock_was_broken_puts_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(tmp_path, CLEAN)
    table = Table("batches", tmp_path / "warehouse" / "batches")
    with Warehouse(tmp_path, no_spark).writing():
        table.commit([], mode="overwrite")  # and dies
    monkeypatch.setattr(lock.Held, "is_ours", lambda held: False)
    with pytest.raises(WarehouseError, match="was taken over"), Warehouse(tmp_path, no_spark).writing():
        pass
    assert table.files() == []
    monkeypatch.undo()
    ingest(tmp_path, CLEAN)
    assert table.files()


def test_a_writer_whose_lock_was_broken_removes_nothing(tmp_path: Path) -> None:
    """Files of a run that has not committed them yet look like files that no version needs."""
    ingest(tmp_path, CLEAN)
    slow, next_one = Warehouse(tmp_path, no_spark), Warehouse(tmp_path, no_spark)
    with pytest.raises(WarehouseError, match="was taken over"), slow.writing(), next_one.writing(break_lock=True):
        files = parquet.write("batches", next_one.arrow("batches"), next_one.folder / "batches")
        with pytest.raises(WarehouseError, match="was taken over"):
            pipeline.tidy(slow, Options())
        next_one.append("batches", files, transaction="ingest:x:batches")
        next_one.publish(Step("r2", "ingest", finished_at_ms=2, code_version="0", inputs="[]"))
        raise OSError  # whatever the first one meets then is told by its cause
    ingest(tmp_path, CLEAN)
    assert files[0].path in {path.name for path, _ in Table("batches", tmp_path / "warehouse" / "batches").files()}


WRITTEN = ("findings.jsonl", "report.html", "verdict.json")
# Behind which it sleeps: the commit of the findings, the row of `runs`, the making of the page, the page.
ASLEEP = {"overwrite_arrow": Warehouse, "publish": Warehouse, "render": build, "write_report": build}


@pytest.mark.parametrize("behind", ASLEEP)
def test_a_writer_whose_lock_was_broken_leaves_what_people_read(
    spark: SparkSession, hanging_example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    out, awake = Path(shutil.copytree(hanging_example, tmp_path / "out")), getattr(ASLEEP[behind], behind)

    def then_sleeps(*given: object, **named: object) -> object:
        done = awake(*given, **named)
        if behind != "overwrite_arrow" or given[1] == "findings":
            with Warehouse(out, no_spark).writing(break_lock=True):  # the next run, from its beginning to its end
                for file in WRITTEN:
                    (out / file).write_text("of the next run")
        return done

    monkeypatch.setattr(ASLEEP[behind], behind, then_sleeps)
    with (
        pytest.raises(WarehouseError, match="was taken over"),
        pipeline.writing(out, Options(), after="rebuild", spark=lambda: spark) as warehouse,
    ):
        pipeline.audit(warehouse, Options())
    assert {(out / file).read_text() for file in WRITTEN} == {"of the next run"}


def test_what_a_kill_leaves_in_the_temporary_folder_goes(tmp_path: Path) -> None:
    die = """
        import os, sys
        from eo_audit.store.scratch import own_folder
        (own_folder() / "blockmgr-1").mkdir()
        print(own_folder(), flush=True)
        os._exit(9) if sys.argv[1] == "die" else sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(die)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    dead = subprocess.run([*command, "die"], env=environment, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    with subprocess.Popen([*command, "live"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        live = process.stdout.readline().strip()
        assert Path(dead, "blockmgr-1").is_dir()  # too young: a process locks its folder a moment after it made it
        for folder in (dead, live):
            os.utime(folder, (0, 0))
        scratch.clear(Path(dead).parent)
        assert Path(live, "blockmgr-1").is_dir() and not Path(dead).exists()
        process.communicate("")
    assert not Path(live).exists()


def test_java_without_memory_ends_and_is_told(tmp_path: Path) -> None:
    """A thread that dies alone of those that hand out Spark's tasks would leave the run waiting for ever."""
    greedy = """
        import sys
        from eo_audit import cli
        from eo_audit.rebuild import step
        step.rebuild_histories = lambda warehouse, **_: warehouse.session()._jvm.java.nio.ByteBuffer.allocate(2**31 - 64)
        sys.exit(cli.run_command(["run", *sys.argv[1:]]))
    """
    command = [sys.executable, "-c", textwrap.dedent(greedy), str(CLEAN), "--out", str(tmp_path / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert ended.returncode == WarehouseError.exit_code
    assert "Java ran out of memory: give it more (driver_memory in a configuration file, --config)" in ended.stderr
    assert "crashed" not in ended.stderr and not (tmp_path / "out" / "verdict.json").exists()


def test_every_table_has_its_upkeep(tmp_path: Path) -> None:
    ingest(tmp_path, CLEAN)
    for name in table_names("facts"):
        table = Table(name, tmp_path / "warehouse" / name)
        assert table.sweep([table.version()], grace_ms=0) == 0
    assert content(tmp_path)["batches"]
