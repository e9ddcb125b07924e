"""Ctrl-C at any moment: 130, a sentence that is true, no stack. Real processes with real signals."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import eo_audit
from eo_audit.cli import run_command
from eo_audit.errors import WarehouseError
from eo_audit.store.tables import Warehouse

CLEAN = str(Path(__file__).parents[2] / "examples" / "clean" / "dumps")
EO_AUDIT = [sys.executable, "-c", "from eo_audit.cli import main; main()"]
AS_THEY_WERE = "eo-audit: interrupted; results of earlier runs are as they were\n"
VERDICT_GONE = "eo-audit: interrupted; findings and report of the last finished audit stand, verdict.json is gone until a run has ended\n"
AGAIN = "eo-audit: interrupted again, stopped at once; the next run takes back what is half done\n"
# As in a terminal, what it starts gets the signal too. Who starts the tests in the background hands down that interrupts are ignored.
HEEDS = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}


@contextmanager
def at_work(out: Path, begun: Callable[[], bool]) -> "Iterator[subprocess.Popen[str]]":
    """A run that has come so far."""
    command = [*EO_AUDIT, "run", CLEAN, "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **HEEDS) as process:
        deadline = time.monotonic() + 120
        while not begun():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        yield process


def groups_of_children(process: int) -> set[int]:
    """The process groups of what it has started."""
    listed = subprocess.run(["ps", "-o", "pgid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return {int(group) for group in listed.stdout.split()}


def test_it_says_what_became_of_the_results(tmp_path: Path) -> None:
    with at_work(tmp_path / "out", (tmp_path / "out" / "warehouse" / "dump_files").exists) as process:
        # A terminal asks a whole group; Java is not in it.
        while not (groups := groups_of_children(process.pid)) or process.pid in groups:
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        said, errors = process.communicate(timeout=300)
    assert (process.returncode, said, errors) == (130, "", AS_THEY_WERE), errors


@pytest.mark.parametrize("step", ["nothing", "ingest"])
def test_over_an_earlier_audit_the_sentence_is_true(hanging_example: Path, tmp_path: Path, step: str) -> None:
    """Interrupted when verdict.json has just gone, and when a step has published."""
    out = shutil.copytree(hanging_example, tmp_path / "out")
    findings, page, lines = eo_audit.open(out).findings, (out / "report.html").read_bytes(), (out / "findings.jsonl").read_bytes()

    def begun() -> bool:
        return not (out / "verdict.json").exists() and (step == "nothing" or Warehouse(out).runs()[-1]["step"] == step)

    with at_work(out, begun) as process:
        os.killpg(process.pid, signal.SIGINT)
        said, errors = process.communicate(timeout=300)
    assert (process.returncode, said, errors) == (130, "", VERDICT_GONE), errors
    assert eo_audit.open(out).findings == findings
    assert ((out / "report.html").read_bytes(), (out / "findings.jsonl").read_bytes()) == (page, lines)
    with pytest.raises(WarehouseError, match=r"verdict\.json is not there"):
        _ = eo_audit.open(out).verdict


# Whoever looks for a module of this name is interrupted, by a signal.
AT_IMPORT = """
import signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from eo_audit.cli import main
main()
"""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("typer", "eo-audit: interrupted before it began\n"),
        ("eo_audit.commands.reading", "eo-audit: interrupted before it began\n"),
        ("eo_audit.words", "eo-audit: interrupted before it began\n"),
        ("eo_audit.pipeline", AS_THEY_WERE),
        ("pyarrow", AS_THEY_WERE),
        ("rich.progress", AS_THEY_WERE),
    ],
)
def test_while_the_program_is_loaded(hanging_example: Path, tmp_path: Path, module: str, said: str) -> None:
    out = shutil.copytree(hanging_example, tmp_path / "out")
    command = [sys.executable, "-c", AT_IMPORT.format(name=module), "run", CLEAN, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **HEEDS)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)
    assert eo_audit.open(out).verdict["verdict"] == "fail"


# What is raised in a destructor is dropped by Python, with a stack on standard error.
AT_DESTRUCTOR = """
import signal, sys
class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "pyarrow":
            Interrupted()
sys.meta_path.insert(0, Interrupts())
from eo_audit.cli import main
main()
"""


def test_while_an_object_is_destroyed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", AT_DESTRUCTOR, "run", CLEAN, "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **HEEDS)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", AS_THEY_WERE)


# Java is about to be started when the terminal asks the whole group: the child has been forked and is not Java yet.
AT_FORK = """
import os, signal
import eo_audit.cli
os.register_at_fork(after_in_child=lambda: os.killpg(0, signal.SIGINT))
eo_audit.cli.main()
"""


def test_while_java_is_started(hanging_example: Path, tmp_path: Path) -> None:
    out = shutil.copytree(hanging_example, tmp_path / "out")
    command = [sys.executable, "-c", AT_FORK, "run", CLEAN, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **HEEDS)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", VERDICT_GONE)


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.1])
def test_twice_and_more_is_130_too(tmp_path: Path, gap: float) -> None:
    """Until it is gone: while it is cleaned up, while its threads are waited for, while Python ends."""
    out = tmp_path / "out"
    with at_work(out, (out / "warehouse" / "dump_files").exists) as process:
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(gap)
        said, errors = process.communicate(timeout=300)
    assert (process.returncode, said) == (130, "")
    assert errors in (AS_THEY_WERE, AGAIN, AS_THEY_WERE + AGAIN)
    assert run_command(["ingest", CLEAN, "--out", str(out)]) == 0
