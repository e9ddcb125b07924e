"""Arguments in, exit codes out: 10 bad arguments, 11 bad input, 12 bad configuration, 20 crash, one clear sentence each."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eo_audit import cli

DUMPS = Path(__file__).parent.parent / "data/corpus/dumps"
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
    ],
)
def test_exit_codes(arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(arguments) == code
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors
    assert code in (0, 10) or len(errors.splitlines()) == 1


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


def test_interrupted_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(text: str | None) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse_moment", interrupt)
    assert cli.run_command(["rebuild"]) == 130


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
    assert "0 pass, 1 fail, 2 unknown" in told
