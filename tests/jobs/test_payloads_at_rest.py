"""What somebody wrote into a record is in no file that an audit leaves, scratch included: after a kill, a crash, a whole run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.canaries import CANARY, RUN, WholeRun, holding, places

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


def test_no_payload_at_rest(whole_run: WholeRun, tmp_path: Path) -> None:
    out, scratch, cwd, env = places(tmp_path)
    dumps = whole_run.dumps
    audit = ["run", str(dumps), "--out", str(out)]

    # The crash first, into an empty folder: its tenth commit is one of facts, while the dumps are read, the one step that holds payloads.
    # That needs no Java: what Java leaves, the kill shows.
    crashed = subprocess.run([sys.executable, "-c", DIES, "ingest", *audit[1:]], env=env, cwd=cwd, capture_output=True, check=False)
    assert crashed.returncode == 20, crashed.stderr.decode()
    assert b"a bug of ours" in crashed.stderr
    assert list(out.rglob("*.parquet")), "it crashed before it wrote anything"
    assert holding(out, scratch, cwd) == [] and CANARY not in crashed.stdout + crashed.stderr

    # Half-way: Java has read the facts of all records by then, and has histories in its hands that are not written yet.
    killed = subprocess.Popen([*RUN, *audit], env=env, cwd=cwd, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    give_up = time.monotonic() + 600  # a machine may be busy; a kill before that proves nothing
    while not list(out.glob("**/transaction_spans/**/*.parquet")) and killed.poll() is None and time.monotonic() < give_up:
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    said = killed.communicate()[0]
    assert killed.returncode == -signal.SIGKILL, said
    assert list(out.glob("**/transaction_spans/**/*.parquet")) and list(scratch.iterdir()), "it was killed before it wrote anything"
    assert holding(out, scratch, cwd) == [] and CANARY not in said


def test_a_whole_run_leaves_no_payload(whole_run: WholeRun) -> None:
    assert whole_run.exit_code in (1, 2), whole_run.said.decode()
    assert (whole_run.out / "report.html").exists() and (whole_run.out / "verdict.json").exists()
    assert holding(whole_run.out, whole_run.scratch, whole_run.cwd) == [] and CANARY not in whole_run.said
    assert holding(whole_run.dumps), "the search finds it where it is"
