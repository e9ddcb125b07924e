"""What the first run fetches is said in one line, pinned and checked; a machine without a network is told what to do."""

from pathlib import Path

import pytest

from eo_audit.cli import run_command
from eo_audit.store import jars

NO_NETWORK = "-Duser.home={home} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The cache of a user who has installed the package, and runs it for the first time."""
    monkeypatch.setattr(jars, "CHECKOUT", tmp_path / "site-packages")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "eo-audit" / "jars"


def test_a_bundles_jars_are_checked_and_kept(installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    assert run_command(["setup", "--jars", str(bundle)]) == 12
    for name in jars.JARS:
        (bundle / name).write_bytes(b"something else")
    assert run_command(["setup", "--jars", str(bundle)]) == 12
    said = capsys.readouterr().err
    assert f"does not hold {next(iter(jars.JARS))}" in said and "is not the pinned file" in said
    assert not jars.are_there() and not list(installed.glob("*.jar"))


@pytest.mark.spark
def test_without_a_network_one_line_says_what_was_wanted_and_what_to_do(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", NO_NETWORK.format(home=tmp_path))
    assert run_command(["setup"]) == 12
    wanted, failed = capsys.readouterr().err.splitlines()
    assert wanted == f"eo-audit: fetching 2 jars of Delta (9.6 MB, pinned and checked) into {installed}, once"
    assert "could not be fetched" in failed and failed.endswith("run `eo-audit setup --jars FOLDER`")
    assert not list(installed.iterdir())


@pytest.mark.spark
def test_jars_that_were_copied_serve_the_next_run(installed: Path) -> None:
    ours = Path(__file__).parents[2] / ".cache" / "jars"
    assert jars.take_jars(ours) == installed
    assert jars.are_there() and jars.fetch_jars() == installed
