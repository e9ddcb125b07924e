"""Arguments in, exit codes out: 10 bad arguments, 11 bad input, 12 bad configuration, 20 crash, one clear sentence each."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eo_audit import cli, pipeline
from eo_audit.errors import VERDICT_GONE, ArgumentError, of_machine
from eo_audit.store.tables import Step, Warehouse

DUMPS = Path(__file__).parent.parent / "data/corpus/dumps"
CLEAN = str(Path(__file__).parents[2] / "examples" / "clean" / "dumps")
EO_AUDIT = [sys.executable, "-c", "from eo_audit.cli import main; main()"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--version"], 0, ""),
        (["--help"], 0, ""),
        (["run", "--help"], 0, ""),
        ([], 10, "Usage: eo-audit"),
        (["run"], 10, "DUMPS"),
        (["run", "x", "--bogus"], 10, "--bogus"),
        (["audti"], 10, "audti"),
        (["run", "x", "--as-of", "yesterday"], 10, "neither ISO 8601"),
        (["export", "nope"], 10, "the tables are aborted_index, "),
        (["show", "x"], 10, "is not FILE@OFFSET"),
        (["rules", "X99"], 10, "there is no rule X99"),
        (["run", "/nowhere/at/all"], 11, "/nowhere/at/all"),
        (["export", "batches", "--out", "/nowhere"], 11, "`eo-audit ingest` makes it"),
        (["show", "x@1", "--out", "/nowhere"], 11, "holds no ingested dumps"),
        (["run", "x", "--config", "/nowhere.yaml"], 12, "/nowhere.yaml"),
        (["run", "x", "--policy", "/nowhere.yaml"], 12, "/nowhere.yaml"),
        (["run", "x", "--as-of", "1795238715"], 10, "is a time in seconds: did you mean milliseconds, --as-of 1795238715000?"),
        (["run", "x", "--as-of", "1795238715265000"], 10, "did you mean milliseconds, --as-of 1795238715265?"),
        (["run", "x", "--as-of", "20261121"], 10, "13 digits"),
        (["run", "x", "--as-of", "9" * 30], 10, "13 digits"),
        (["run", "x", "--as-of", "9999-12-31T23:59:59-23:59"], 10, "no time of our days"),
        (["run", "x", "--as-of", "0001-01-01T00:00:00+23:59"], 10, "no time of our days"),
        (["prune", "--keep", "soon"], 10, "such as 90d or 12w"),
        (["prune", "--keep", "90d", "--out", "/nowhere/out"], 11, "run `eo-audit rebuild --out /nowhere/out` first"),
        (["ingest", CLEAN, "--out", "/tmp/a%2Fb"], 11, "misread '%2F' in a path; name another folder"),
        (["ingest", CLEAN, "--out", "/tmp/a%20b"], 11, "misread '%20'"),
        (["ingest", CLEAN, "--out", "/tmp/a\\b"], 11, "name another folder"),
        (["ingest", CLEAN, "--out", "/tmp/a\nb"], 11, "name another folder"),
        (["ingest", CLEAN, "--out", "/dev/null"], 11, "is a file"),
        (["run", "/proc"], 11, "(/proc, /sys or /dev): it is never read"),
        (["run", "/proc/self/environ"], 11, "(/proc, /sys or /dev): it is never read"),
        (["run", "/dev/zero"], 11, "is neither a file nor a folder"),
        (["run", "s3://bucket/dumps"], 11, "s3://bucket/dumps cannot be used: only folders and files of this machine can"),
        (["ingest", "file:///dumps"], 11, "give the path itself, /dumps"),
        (["run", CLEAN, "--out", "hdfs://nn/out"], 11, "hdfs://nn/out cannot be used"),
        (["run", CLEAN, "--out", __file__], 11, "is a file: name a folder for the results"),
        (["run", CLEAN, "--out", f"{__file__}/out"], 11, "a folder above it is a file"),
        (["ingest", CLEAN, "--out", "/proc/nowhere"], 11, "--out /proc/nowhere cannot be made"),
        (["rebuild", "--out", "/nowhere/out"], 11, "run `eo-audit ingest --out /nowhere/out` first"),
        (["audit", "--out", "/nowhere/out"], 11, "run `eo-audit rebuild --out /nowhere/out` first"),
        (["accept", "4be1", "--who", "a", "--why", "b", "--until", "2099-01-01", "--file", "/nowhere/a.yaml"], 11, "/nowhere"),
        (["report", "--out", "s3://bucket/out"], 11, "s3://bucket/out cannot be used"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(arguments) == code
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors
    assert code in (0, 10) or len(errors.splitlines()) == 1


ACCEPT = ["accept", "4be1", "--who", "a", "--why", "b", "--until", "2099-01-01"]
# Every command with its arguments, and each of its options that names a file or a folder.
PLACES = {
    "run": (["run", CLEAN], ["--out", "-o", "--policy", "--accepted", "--config"]),
    "ingest": (["ingest", CLEAN], ["--out", "-o", "--config"]),
    "rebuild": (["rebuild"], ["--out", "-o", "--config"]),
    "audit": (["audit"], ["--out", "-o", "--policy", "--accepted", "--config"]),
    "prune": (["prune", "--keep", "90d"], ["--out", "-o", "--config"]),
    "show": (["show", "x@1"], ["--out", "-o"]),
    "export": (["export", "batches"], ["--out", "-o"]),
    "why": (["why", "orders-0"], ["--out", "-o"]),
    "report": (["report"], ["--out", "-o"]),
    "gate": (["gate"], ["--out", "-o", "--expectations", "--docs"]),
    "history": (["history"], ["--out", "-o"]),
    "accept": (ACCEPT, ["--out", "-o", "--file"]),
    "setup": (["setup"], ["--jars"]),
    "rules": (["rules"], []),
    "explain": (["explain", "90"], ["--out", "-o"]),
}


@pytest.mark.parametrize(("arguments", "option"), [(arguments, option) for arguments, options in PLACES.values() for option in options])
def test_an_address_is_refused_wherever_a_file_or_folder_is_named(
    arguments: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run_command([*arguments, option, "s3://bucket/out"]) == 11
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("eo-audit: s3://bucket/out cannot be used: only folders and files of this machine can")


def test_no_option_with_a_file_or_folder_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {command.name or command.callback.__name__ for command in cli.app.registered_commands if command.callback}
    assert commands == set(PLACES)
    for name, (_, options) in PLACES.items():
        cli.run_command([name, "--help"])
        assert re.findall(r"(?m)^ +(?:-\w, )?(--\S+) (?:DIR|FILE)\b", capsys.readouterr().out) == [o for o in options if o != "-o"]


def test_accepted_findings_do_not_go_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    assert cli.run_command([*ACCEPT, "--file", str(folder)]) == 11
    said = capsys.readouterr().err
    assert said == f"eo-audit: --file {folder} is a folder: name a file in it, such as {folder / 'accepted.yaml'}\n"
    assert list(tmp_path.rglob("*")) == [folder]


BAD_YAML = {
    "a day that is none": "a: 2026-02-30",
    "a hexadecimal number without digits": "a: 0x_",
    "4301 digits": f"a: {'9' * 4301}",
    "1000 brackets": "[" * 1000,
    "no boolean": "a: !!bool x",
    "no whole number": "a: !!int ''",
    "no number": "a: !!float ''",
    "no moment": "a: !!timestamp x",
    "a list for a name": "? [a]\n: b",
    "no UTF-8": "a: \udcff",
    "a tag of Python": "a: !!python/object:os.system x",
    "a list in a list": "findings: [{rules: [[a]], fails: true, reason: x}]\naccepted: [{until: [2]}]\nspark: [3]",
    "a moment for a day": "accepted: [{finding_id: a, what: b, who: c, why: d, until: 2026-01-01 10:00:00}]\nspark: 3\nname: 3",
}


@pytest.mark.parametrize("option", ["--accepted", "--policy", "--config"])
@pytest.mark.parametrize("text", BAD_YAML.values(), ids=BAD_YAML)
def test_yaml_that_cannot_be_used_is_12(tmp_path: Path, option: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    assert cli.run_command(["run", CLEAN, option, str(file), "--out", str(tmp_path / "out")]) == 12
    (said,) = capsys.readouterr().err.splitlines()
    assert "bad.yaml" in said and len(said) < 500


@pytest.mark.parametrize("text", ["range_bytes: abc", "range_bytes: -1", "range_bytes: 0", "range_bytes: true", "keep_audits: 0"])
def test_a_setting_of_the_wrong_kind_is_12(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "conf.yaml").write_text(text)
    assert cli.run_command(["ingest", CLEAN, "--config", str(tmp_path / "conf.yaml"), "--out", str(tmp_path / "out")]) == 12
    assert f"{text.split(':')[0]} must be" in capsys.readouterr().err


@pytest.mark.parametrize("tag", ["!!bool abc", "!!int ''", "!!float ''", "!!timestamp x", "2026-02-30", "0x_"])
def test_a_manifest_that_cannot_be_understood_stops_nothing(tmp_path: Path, tag: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(CLEAN, tmp_path / "dumps")
    (tmp_path / "dumps" / "manifest.yaml").write_text(f"cluster: c\ndumped_at: {tag}\n")
    assert cli.run_command(["ingest", str(tmp_path / "dumps"), "--out", str(tmp_path / "out")]) == 0
    assert "manifest.yaml is not understood" in capsys.readouterr().err


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device", "x"), RuntimeError("Generic error: ... (os error 28)")])
def test_a_full_disk_is_no_bug(monkeypatch: pytest.MonkeyPatch, error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def full(text: str | None) -> int:
        raise error

    monkeypatch.setattr(cli, "parse_moment", full)
    assert cli.run_command(["rebuild"]) == 11
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("eo-audit: the disk is full") and "bug" not in said


def test_a_step_that_is_refused_says_that_the_verdict_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No gate may read yesterday's pass behind a step that did not end; whoever typed it must hear so."""

    def refuse(*_: object) -> None:
        raise ArgumentError("--as-of is before the dumps")

    monkeypatch.setattr(pipeline, "ingest", refuse)
    (tmp_path / "verdict.json").write_text("{}")
    for told in (f"--as-of is before the dumps; {VERDICT_GONE}", "--as-of is before the dumps"):
        assert cli.run_command(["ingest", CLEAN, "--out", str(tmp_path)]) == 10
        assert capsys.readouterr().err == f"eo-audit: {told}\n"
    assert not (tmp_path / "verdict.json").exists()


def test_a_full_disk_is_named_where_the_error_does_not(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as raised, pipeline.writing(tmp_path / "out", pipeline.Options(), starts_spark=False):
        raise RuntimeError("Generic error: ... (os error 28)")
    assert re.fullmatch(rf"the disk is full: {tmp_path}/out \(.* left\) or .* \(.* left\)", of_machine(raised.value) or "")


@pytest.mark.parametrize("text", ["{", "", "[]", "{}", '{"exit_code": "x"}'])
def test_a_damaged_verdict_is_named(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with (warehouse := Warehouse(tmp_path)).writing():
        warehouse.publish(Step("r", "audit", finished_at_ms=1, code_version="0", inputs="[]"))
    (tmp_path / "verdict.json").write_text(text)
    assert cli.run_command(["report", "--out", str(tmp_path)]) == 11
    assert "verdict.json is" in capsys.readouterr().err


def test_a_crash_is_20_and_cannot_act_on_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def crash(text: str | None) -> int:
        raise RuntimeError("\x1b[2J")

    monkeypatch.setattr(cli, "parse_moment", crash)
    assert cli.run_command(["rebuild"]) == 20
    errors = capsys.readouterr().err
    assert "\x1b" not in errors
    assert "crashed: RuntimeError: \\x1b[2J" in errors
    assert "eo_audit/cli.py" in errors
    assert "this is a bug" in errors


@pytest.mark.parametrize(
    "said",
    [
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'end'.\n\n== SQL ==\nSELECT\n",
        "An error occurred while calling o7.sql.\n: [PARSE_SYNTAX_ERROR] Syntax error at or near 'end'.\n\tat org.apache.spark.X\n",
    ],
)
def test_of_what_java_reports_the_first_line_is_told(
    said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(text: str | None) -> int:
        raise RuntimeError(said)

    monkeypatch.setattr(cli, "parse_moment", crash)
    assert cli.run_command(["rebuild"]) == 20
    first, second = capsys.readouterr().err.splitlines()
    assert first == "eo-audit: crashed: RuntimeError: [PARSE_SYNTAX_ERROR] Syntax error at or near 'end'."
    assert "this is a bug" in second


def test_interrupted_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(text: str | None) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse_moment", interrupt)
    assert cli.run_command(["rebuild"]) == 130


@pytest.mark.parametrize("broken", ["policy", "accepted"])
@pytest.mark.parametrize("step", [["run", CLEAN], ["audit"]], ids=["run", "audit"])
def test_what_cannot_be_used_is_said_before_the_work_and_before_java(
    tmp_path: Path, broken: str, step: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no Java here, and nobody asks for it."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (tmp_path / "bad.yaml").write_text("accepted: 7\nname: [")
    assert cli.run_command([*step, f"--{broken}", str(tmp_path / "bad.yaml"), "--out", str(tmp_path / "out")]) == 12
    (said,) = capsys.readouterr().err.splitlines()
    assert "bad.yaml" in said and "Java" not in said
    assert not (tmp_path / "out").exists()


def test_small_dumps_are_ingested_without_java(tmp_path: Path) -> None:
    """Its folder says that there is one, and it leaves a trace when it is called; a process does not end before what it has begun."""
    java, trace = tmp_path / "bin" / "java", tmp_path / "called"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho >> {trace}\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    told = {}
    for step in (["ingest", CLEAN], ["rebuild"]):
        command = [*EO_AUDIT, *step, "--out", str(tmp_path / "out")]
        told[step[0]] = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "JAVA_HOME": str(tmp_path)}).returncode
        assert trace.exists() == (step[0] == "rebuild")
    assert told == {"ingest": 0, "rebuild": 12}


def dumps_of(kind: str, folder: Path) -> Path:
    """Inputs in which nothing can be judged."""
    text = {
        "checkpoint": "0\n0\n",
        "no dump at all": "permission denied\n",
        "an empty log": f"Dumping /d/a-0/{0:020}.log\nLog starting offset: 0\n",
    }
    name = "replication-offset-checkpoint" if kind == "checkpoint" else f"{0:020}.log.txt"
    (folder / "broker-1" / "a-0").mkdir(parents=True)
    (folder / "broker-1" / ("" if kind == "checkpoint" else "a-0") / name).write_text(text[kind])
    return folder


@pytest.mark.parametrize(
    ("kind", "why"), [("checkpoint", "there is no text of kafka-dump-log"), ("no dump at all", "nothing in broker-1/a-0/")]
)
def test_nothing_that_could_be_read_is_bad_input(tmp_path: Path, kind: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["ingest", str(dumps_of(kind, tmp_path / "dumps")), "--out", str(tmp_path / "out")]) == 11
    (said,) = capsys.readouterr().err.splitlines()
    assert why in said
    assert cli.run_command(["rebuild", "--out", str(tmp_path / "out")]) == 11  # nothing was added


def test_a_checkpoint_may_be_added_to_logs(tmp_path: Path) -> None:
    for dumps in (CLEAN, str(dumps_of("checkpoint", tmp_path / "more"))):
        assert cli.run_command(["ingest", dumps, "--out", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("command", [["report"], ["gate"], ACCEPT], ids=["report", "gate", "accept"])
@pytest.mark.parametrize(
    ("steps", "left"), [(["ingest"], ["rebuild", "audit"]), (["ingest", "rebuild"], ["audit"])], ids=["ingest", "rebuild"]
)
def test_before_a_first_audit_it_is_said_that_there_was_none(
    tmp_path: Path, steps: list[str], left: list[str], command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with (warehouse := Warehouse(tmp_path)).writing():
        for step in steps:
            warehouse.publish(Step("r", step, finished_at_ms=1, code_version="0", inputs="[]"))
    assert cli.run_command([*command, "--out", str(tmp_path)]) == 11
    typed = " and ".join(f"`eo-audit {step} --out {tmp_path}`" for step in left)
    assert capsys.readouterr().err == f"eo-audit: {tmp_path} holds dumps, and no audit of them yet: run {typed}\n"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1795238715265", 1795238715265), ("2026-11-21T05:25:15Z", 1795238715000), ("2026-11-21 05:25:15", 1795238715000), (None, None)],
)
def test_moments(text: str | None, milliseconds: int | None) -> None:
    assert cli.parse_moment(text) == milliseconds


def test_help_needs_nothing_heavy() -> None:
    """What makes a start slow is what it imports."""
    code = "import sys; from eo_audit.cli import run_command; run_command(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyspark", "pyarrow", "pandas", "numpy", "deltalake", "yaml", "matplotlib"} & set(done.stderr.split())


def test_show_and_export_need_no_spark(tmp_path: Path) -> None:
    code = "import sys; from eo_audit.cli import run_command; o = ['--out', sys.argv[1]]; "
    code += "run_command(['export', 'batches', *o]); run_command(['show', 'x@1', *o]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "holds no table" in done.stderr
    assert not {"pyspark", "great_expectations"} & set(done.stderr.split())


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`eo-audit --help | true` says nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*EO_AUDIT, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.stderr == ""


def test_commands_tell_their_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run_command(["--help"])
    told = capsys.readouterr().out
    for command in ("run", "ingest", "rebuild", "audit", "show", "export", "rules"):
        assert re.search(rf"^  {command} +\w", told, re.MULTILINE)
    assert "0 pass, 1 fail, 2 unknown" in told and "...\n" not in told.split("Commands:")[1]
