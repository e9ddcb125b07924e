"""Dumps with a canary in every place of a record, one run of the program over them, and the search for it in what a run leaves."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from tests.support.dump_text import Batch, Rec, Style, dump

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "hanging-transaction" / "dumps"
CANARY = b"Canary4111x1111x1111"
DISGUISES = (
    b"%s",
    b"\xff" * 40 + b"\nError: com.acme.pay.CardException: %s",
    b"ordinary\nCaused by: java.io.EOFException: %s\n\tat com.%s.Pay(Pay.java:1)",
    b"\xff" * 40 + b'\nException in thread "main" java.lang.%sError: %s',
    b"\xc3(" * 30 + b"\nWARNING: %s",
    b"x\nFound 3 invalid bytes at the end of /data/%s.log",
)
CANARY_TOPIC = "pay"
RUN = (str(Path(sys.executable).parent / "eo-audit"),)  # as an installation brings it


@dataclass(frozen=True)
class WholeRun:
    """One run of the program from its start to its end, into folders of its own.

    Attributes:
        dumps: what it audited.
        out: its results.
        scratch: where it and Java put what they need for a while.
        cwd: where it was started.
        exit_code: how it ended.
        said: what it printed.
        half_way: what stood in results and scratch when it was stopped for a moment, some histories written; no such moment: nothing.
        holding_then: files that held the canary then.
    """

    dumps: tuple[Path, ...]
    out: Path
    scratch: Path
    cwd: Path
    exit_code: int
    said: bytes
    half_way: tuple[Path, ...]
    holding_then: tuple[Path, ...]


def places(folder: Path) -> tuple[Path, Path, Path, dict[str, str]]:
    """Results, scratch and current folder of a run below a folder, and the environment in which it leaves files nowhere else."""
    out, scratch, cwd = folder / "out", folder / "scratch", folder / "cwd"
    for made in (scratch, cwd):
        made.mkdir(parents=True)
    java = f"-Djava.io.tmpdir={scratch}"
    own = {"TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch), "JAVA_TOOL_OPTIONS": java, "PYTHONPATH": str(ROOT)}
    return out, scratch, cwd, {**os.environ, **own}


def run_whole(dumps: Sequence[Path], folder: Path) -> WholeRun:
    """Run the program over dumps; it may find what it will.

    Half-way it is stopped and its folders are searched: a process that is stopped leaves the files that one that is killed leaves, and
    then this one goes on. By then Java has read the facts of all records, and has histories in its hands that are not written yet.
    """
    out, scratch, cwd, env = places(folder)
    command = [*RUN, "run", *map(str, dumps), "--out", str(out)]
    seen, held = list[Path](), list[Path]()
    with (folder / "said").open("w+b") as said:
        running = subprocess.Popen(command, env=env, cwd=cwd, start_new_session=True, stdout=said, stderr=subprocess.STDOUT)
        while not list(out.glob("**/transaction_spans/**/*.parquet")) and running.poll() is None:
            time.sleep(0.05)
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGSTOP)
            try:
                seen = [path for part in (out, scratch) for path in part.rglob("*")]
                held = holding(out, scratch, cwd)
            finally:
                os.killpg(running.pid, signal.SIGCONT)
        exit_code = running.wait()
        said.seek(0)
        return WholeRun(tuple(dumps), out, scratch, cwd, exit_code, said.read(), tuple(seen), tuple(held))


def canary_dumps(folder: Path) -> Path:
    """A real incident, and beside it three logs with the canary in every place of a record; one of them is cut off."""
    shutil.copytree(EXAMPLE, folder)
    said = [line.replace(b"%s", CANARY) for line in DISGUISES]
    records = [
        rec for line in said for rec in (Rec(b"k", line), Rec(line, None), Rec(b"k", b"v", ((b"h", 3), (line, 3), (b"h]\n" + line, 3))))
    ]
    for partition, style in enumerate((Style(), Style(printed=False), Style(ascii=True))):
        batches = [
            Batch([Rec(b"k", b"v"), record], 5, 2 * number, codec=("none", "gzip")[number % 2]) for number, record in enumerate(records)
        ]
        text = dump(batches, style, path=f"/data/{CANARY_TOPIC}-{partition}/00000000000000000000.log")
        log = folder / f"broker-1/{CANARY_TOPIC}-{partition}/00000000000000000000.log.txt"
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
