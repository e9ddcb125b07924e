"""What somebody wrote into a record is in no file that an audit leaves, scratch included: after a kill, a crash, a whole run."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.dump_text import Batch, Rec, Style, dump

ROOT = Path(__file__).parents[2]
CANARY = b"Canary4111x1111x1111"
DISGUISES = (
    b"%s",
    b"\xff" * 40 + b"\nError: com.acme.pay.CardException: %s",
    b"ordinary\nCaused by: java.io.EOFException: %s\n\tat com.%s.Pay(Pay.java:1)",
    b"\xff" * 40 + b'\nException in thread "main" java.lang.%sError: %s',
    b"\xc3(" * 30 + b"\nWARNING: %s",
    b"x\nFound 3 invalid bytes at the end of /data/%s.log",
)
RUN = (sys.executable, "-c", "from eo_audit.cli import main; main()")
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


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A real incident, and beside it two logs with the canary in every place of a record; one of them is cut off."""
    folder = tmp_path / "dumps"
    shutil.copytree(ROOT / "examples/hanging-transaction/dumps", folder)
    said = [line.replace(b"%s", CANARY) for line in DISGUISES]
    records = [
        rec for line in said for rec in (Rec(b"k", line), Rec(line, None), Rec(b"k", b"v", ((b"h", 3), (line, 3), (b"h]\n" + line, 3))))
    ]
    for partition, style in enumerate((Style(), Style(printed=False), Style(ascii=True))):
        batches = [
            Batch([Rec(b"k", b"v"), record], 5, 2 * number, codec=("none", "gzip")[number % 2]) for number, record in enumerate(records)
        ]
        text = dump(batches, style, path=f"/data/pay-{partition}/00000000000000000000.log")
        log = folder / f"broker-1/pay-{partition}/00000000000000000000.log.txt"
        log.parent.mkdir()
        log.write_bytes(text[: text.rindex(CANARY) + 5] if partition == 2 else text)
    return folder


def pieces(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """All bytes below a folder, unpacked where they are packed, with the names."""
    for path in folder.rglob("*"):
        yield path, os.fsencode(path)
        if path.is_file():
            stored = path.read_bytes()
            yield path, stored
            if stored[:4] == stored[-4:] == b"PAR1":
                yield path, repr(pq.read_table(path, partitioning=None).to_pydict()).encode()
            elif stored[:2] == b"\x1f\x8b":
                yield path, gzip.decompress(stored)


def holding(*folders: Path) -> list[Path]:
    """Files that hold the canary."""
    return [path for folder in folders for path, content in pieces(folder) if CANARY in content]


def test_no_payload_at_rest(dumps: Path, tmp_path: Path) -> None:
    out, scratch, cwd = tmp_path / "out", tmp_path / "scratch", tmp_path / "cwd"
    for folder in (scratch, cwd):
        folder.mkdir()
    java = f"-Djava.io.tmpdir={scratch}"
    env = {**os.environ, "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch), "JAVA_TOOL_OPTIONS": java, "PYTHONPATH": str(ROOT)}
    audit = ["run", str(dumps), "--out", str(out)]

    killed = subprocess.Popen([*RUN, *audit], env=env, cwd=cwd, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    give_up = time.monotonic() + 120
    while not list(out.glob("**/producer_history/**/*.parquet")) and killed.poll() is None and time.monotonic() < give_up:
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    said = killed.communicate()[0]
    assert killed.returncode == -signal.SIGKILL, said
    assert list(out.rglob("*.parquet")) and list(scratch.iterdir()), "it was killed before it wrote anything"
    assert holding(out, scratch, cwd) == [] and CANARY not in said

    crashed = subprocess.run([sys.executable, "-c", DIES, *audit], env=env, cwd=cwd, capture_output=True, check=False)
    assert crashed.returncode == 20, crashed.stderr.decode()
    assert b"a bug of ours" in crashed.stderr
    assert holding(out, scratch, cwd) == [] and CANARY not in crashed.stdout + crashed.stderr

    whole = subprocess.run([*RUN, *audit], env=env, cwd=cwd, capture_output=True, check=False)
    assert whole.returncode in (1, 2), whole.stderr.decode()
    assert (out / "report.html").exists() and (out / "verdict.json").exists()
    assert holding(out, scratch, cwd) == [] and CANARY not in whole.stdout + whole.stderr
    assert holding(dumps), "the search finds it where it is"
