"""What somebody wrote into a record is in no file that an audit leaves, scratch included: after a crash, half-way, after a whole run."""

import subprocess
import sys
from pathlib import Path

from tests.support.canaries import CANARY, WholeRun, holding, places

DIES = """
import sys
from eo_audit import cli
from eo_audit.store.tables import Warehouse
commit, left = Warehouse._commit, [10]
def commit_or_die(self, *arguments, **named):
    left[0] -= 1
    if left[0] == 0:
        raise RuntimeError("a bug of ours")
    return commit(self, *arguments, **named)
Warehouse._commit = commit_or_die
raise SystemExit(cli.run_command(sys.argv[1:]))
"""


def test_a_crash_leaves_no_payload(whole_run: WholeRun, tmp_path: Path) -> None:
    """Into an empty folder: its tenth commit is one of facts, while the dumps are read, the one step that holds payloads.

    That needs no Java: what Java leaves, the run that is stopped half-way shows.
    """
    out, scratch, cwd, env = places(tmp_path)
    command = [sys.executable, "-c", DIES, "ingest", *map(str, whole_run.dumps), "--out", str(out)]
    crashed = subprocess.run(command, env=env, cwd=cwd, capture_output=True, check=False)
    assert crashed.returncode == 20, crashed.stderr.decode()
    assert b"a bug of ours" in crashed.stderr
    assert list(out.rglob("*.parquet")), "it crashed before it wrote anything"
    assert holding(out, scratch, cwd) == [] and CANARY not in crashed.stdout + crashed.stderr


def test_a_run_that_is_stopped_half_way_leaves_no_payload(whole_run: WholeRun) -> None:
    """What it would leave if it were killed then."""
    written = [path for path in whole_run.half_way if path.suffix == ".parquet" and "transaction_spans" in path.parts]
    assert written and any(path.is_relative_to(whole_run.scratch) for path in whole_run.half_way), "it was stopped before it wrote anything"
    assert not any(path.name == "verdict.json" for path in whole_run.half_way), "it was not stopped before it had ended"
    assert whole_run.holding_then == ()


def test_a_whole_run_leaves_no_payload(whole_run: WholeRun) -> None:
    assert whole_run.exit_code in (1, 2), whole_run.said.decode()
    assert (whole_run.out / "report.html").exists() and (whole_run.out / "verdict.json").exists()
    assert holding(whole_run.out, whole_run.scratch, whole_run.cwd) == [] and CANARY not in whole_run.said
    assert holding(*whole_run.dumps), "the search finds it where it is"
