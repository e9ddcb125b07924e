"""`python -m tests.kills --times 100 [--seed 1] [--ingest] [--full]`: runs killed at random moments, or on full disks.

Each time: results of an earlier audit, a second one with more dumps in a process group of its own, SIGKILL after a random time. Then every
table and file must be as before or as after, never mixed; the same command again must end as if nothing had been, and leave nothing in the
temporary folder. With `--full` the disk is a tmpfs of a random size instead (needs root): one sentence, 11 or 12, then space again.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from eo_audit.store.schemas import table_names
from eo_audit.store.tables import Warehouse

ROOT = Path(__file__).parent.parent
DUMPS = ROOT / "tests" / "data" / "corpus" / "dumps"
FIRST, SECOND = DUMPS / "syn_gap", DUMPS / "hanging_txn_k39"
_OWN = {"ingest_id", "input_path"}
_ENDINGS = {0, 1, 2}
STEP = ["run"]


def command(out: Path, *dumps: Path) -> list[str]:
    """`eo-audit run`, or the step that is named."""
    return [sys.executable, "-c", "from eo_audit.cli import main; main()", STEP[0], *map(str, dumps), "--out", str(out)]


def environment(folder: Path) -> dict[str, str]:
    """Temporary folder and keys of one trial."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    return {**os.environ, "TMPDIR": str(folder / "tmp"), "XDG_CONFIG_HOME": str(folder / "config"), "PYTHONPATH": str(ROOT)}


def run(folder: Path, out: Path, *dumps: Path) -> tuple[int, str]:
    """A run to its end: exit code and what it said."""
    done = subprocess.run(command(out, *dumps), env=environment(folder), capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def state(out: Path) -> dict[str, object]:
    """All tables and files, whatever the order of rows: what must be old or new."""
    warehouse = Warehouse(out)
    found: dict[str, object] = {}
    for name in table_names():
        if name != "runs":
            table = warehouse.arrow(name)
            rows = table.select([column for column in table.column_names if column not in _OWN]).to_pylist()
            found[name] = sorted(map(repr, rows))
    found["steps"] = [(row["step"], row["verdict"]) for row in warehouse.runs()]
    return found


def files(out: Path) -> dict[str, object]:
    """What a person reads; the one moment of the machine's clock left out."""
    verdict = json.loads((out / "verdict.json").read_text()) if (out / "verdict.json").is_file() else {}
    findings = out / "findings.jsonl"
    return {
        "findings": findings.read_bytes() if findings.is_file() else b"",
        "verdict": {k: v for k, v in verdict.items() if k != "finished_at_ms"},
    }


def between(old: dict[str, object], new: dict[str, object], found: dict[str, object]) -> str:
    """Which of the published states it is: facts, histories and findings are published one after the other."""
    for step, families in {
        "old": (),
        "ingested": ("facts",),
        "rebuilt": ("facts", "histories"),
        "new": ("facts", "histories", "results"),
    }.items():
        after = {name for family in families for name in table_names(family)}
        if all(found[name] == (new if name in after else old)[name] for name in found if name != "steps"):
            return step
    return "MIXED"


def killed(folder: Path, out: Path, seconds: float) -> bool:
    """A second run, killed with all it has started; False where it had ended before."""
    with subprocess.Popen(
        command(out, SECOND), env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        time.sleep(seconds)
        ended = process.poll() is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return not ended


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A tmpfs of some size."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def prepare(folder: Path) -> tuple[Path, dict[str, object], dict[str, object], dict[str, object], float]:
    """The results before; their state, the state and files after an undisturbed second run, and how long that took."""
    base, clean = folder / "base", folder / "clean"
    assert run(folder, base, FIRST)[0] in _ENDINGS
    old = state(base)
    shutil.copytree(base, clean)
    began = time.monotonic()
    assert run(folder, clean, SECOND)[0] in _ENDINGS
    return base, old, state(clean), files(clean), time.monotonic() - began


def kill_once(folder: Path, base: Path, old: dict[str, object], new: dict[str, object], end: dict[str, object], seconds: float) -> str:
    """One kill and what came of it."""
    out = folder / "out"
    shutil.copytree(base, out)
    died = killed(folder, out, seconds)
    found = between(old, new, state(out))
    code, said = run(folder, out, SECOND)
    left = [path for path in (folder / "tmp").rglob("*") if path.name.startswith(("blockmgr", "spark-", "artifacts"))]
    young = [path for path in left if path.is_relative_to(folder / "tmp" / f"eo-audit-{os.getuid()}")]
    fine = code in _ENDINGS and state(out) == new and files(out) == end and left == young and found != "MIXED"
    shutil.rmtree(out)
    return f"{found if died else 'ended'}{'' if fine else f': WRONG, exit code {code} {said[-300:]}'}"


def fill_once(folder: Path, base: Path, new: dict[str, object], end: dict[str, object], kilobytes: int) -> str:
    """One full disk and what came of it."""
    with small_disk(folder, kilobytes) as disk:
        own = environment(disk)
        own["TMPDIR"] = environment(folder)["TMPDIR"]
        shutil.copytree(folder / "config", disk / "config")
        shutil.copytree(base, disk / "out")
        done = subprocess.run(command(disk / "out", SECOND), env=own, capture_output=True, text=True, check=False)
        sentences = [line for line in done.stderr.splitlines() if line.startswith("eo-audit: ")]
        told = done.returncode in (11, 12) and bool(sentences)
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        again = subprocess.run(command(disk / "out", SECOND), env=own, capture_output=True, text=True, check=False)
        fine = again.returncode in _ENDINGS and state(disk / "out") == new and files(disk / "out") == end
    if done.returncode in _ENDINGS:
        return "room enough" if fine else "room enough: WRONG"
    return f"exit code {done.returncode}" + (
        "" if fine and told else f": WRONG {done.stderr[-600:]} / {again.returncode} {again.stderr[-300:]}"
    )


def main() -> int:
    """Figures to standard output; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="full disks instead of kills")
    parser.add_argument("--ingest", action="store_true", help="only the step that adds facts: seconds each, no Java")
    arguments = parser.parse_args()
    STEP[0] = "ingest" if arguments.ingest else "run"
    chance = random.Random(arguments.seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
        base, old, new, end, seconds = prepare(folder)
        stored = sum(4 * (path.stat().st_size // 4_096 + 1) for path in base.rglob("*")) + 16  # a tmpfs gives pages
        for number in range(arguments.times):
            if arguments.full:
                outcome = fill_once(folder, base, new, end, stored + chance.randrange(300 if arguments.ingest else 1_500))
                shutil.rmtree(folder / "disk")
            else:
                outcome = kill_once(folder, base, old, new, end, chance.uniform(0.3, seconds))
            counts[outcome] += 1
            sys.stdout.write(f"{number + 1}: {outcome}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{arguments.times} times, seed {arguments.seed}: {dict(counts)}\n")
    return int(any("WRONG" in outcome or "MIXED" in outcome for outcome in counts))


if __name__ == "__main__":
    sys.exit(main())
