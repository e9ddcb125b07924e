"""What an audit costs against how much there is to audit, and what a second worker takes off it.

Each size is ingested, rebuilt and audited in a process of its own, whose session has seen nothing else; the largest again with one worker.
Prints one line for each step, the cost of each further gigabyte, and a chart for `docs/performance.md`.

    python -m benchmarks.sizes [--gigabytes 1,2,5] [--folder DIR]
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from benchmarks.dump_text import write_dumps
from benchmarks.measure import Figures, measured
from eo_audit import pipeline
from eo_audit.config import load
from eo_audit.store.session import Starting

STEPS = ("ingest", "rebuild", "audit")
GIGABYTE = 1_000_000_000
ALL = 2  # workers

Costs = dict[str, Figures]


def audit(dumps: Path, out: Path, workers: int) -> Costs:
    """The three steps on a folder of dumps in this process, with so many workers."""
    config = load(master=f"local[{workers}]")
    options = pipeline.Options(config=config)
    size = sum(path.stat().st_size for path in dumps.rglob("*") if path.is_file())
    spark = Starting(config, input_bytes=size)
    spark()
    found, costs = pipeline.discover([dumps], options), Costs()
    for step in STEPS:
        with pipeline.writing(out, options, input_bytes=size, spark=spark) as warehouse, measured() as costs[step]:
            pipeline.ingest(warehouse, found, options) if step == "ingest" else getattr(pipeline, step)(warehouse, options)
    spark().stop()
    return costs


def in_a_process(dumps: Path, out: Path, workers: int) -> Costs:
    """The same in a process of its own."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.sizes", "--one", str(dumps), "--out", str(out), "--workers", str(workers)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    shutil.rmtree(out)
    return {step: Figures(**figures) for step, figures in json.loads(said.splitlines()[-1]).items()}


def tell(gigabytes: float, workers: int, costs: Costs) -> None:
    """One line for each step."""
    for step, figures in costs.items():
        cost = f"{figures.wall:7.1f} s wall {figures.cpu:7.1f} s CPU {figures.peak_bytes / 2**20:7.0f} MiB peak"
        sys.stdout.write(f"{gigabytes:5g} GB, {workers} worker{'s'[: workers - 1]}, {step:8} {cost}\n")
    sys.stdout.flush()


def per_gigabyte(told: dict[float, Costs]) -> None:
    """What each further gigabyte costs, from one size to the next."""
    for (small, before), (large, after) in pairwise(sorted(told.items())):
        for what in (("ingest",), ("rebuild", "audit")):
            wall, cpu = (sum(getattr(after[s], of) - getattr(before[s], of) for s in what) / (large - small) for of in ("wall", "cpu"))
            sys.stdout.write(f"{small:g} to {large:g} GB: {' and '.join(what)} {wall:.1f} s wall, {cpu:.1f} s CPU for each further GB\n")


def chart(told: dict[float, Costs]) -> None:
    """Processor seconds against size, for `docs/performance.md`."""
    lines = [f"  line [{', '.join(f'{told[size][step].cpu:.0f}' for size in sorted(told))}]" for step in STEPS]
    axis = ", ".join(f'"{size:g} GB"' for size in sorted(told))
    sys.stdout.write("\n".join(["```mermaid", "xychart-beta", f"  x-axis [{axis}]", '  y-axis "processor seconds"', *lines, "```", ""]))


def main(arguments: Sequence[str] | None = None) -> None:
    """All sizes, or (`--one`) the three steps on one folder, told as JSON."""
    parser = argparse.ArgumentParser(description="What an audit costs against how much there is to audit.")
    parser.add_argument("--gigabytes", default="1,2,5")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"))
    parser.add_argument("--one", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=ALL)
    chosen = parser.parse_args(arguments)
    if chosen.one is not None:
        costs = audit(chosen.one, chosen.out, chosen.workers)
        told_as = {step: {name: value for name, value in asdict(figures).items() if name != "_seen"} for step, figures in costs.items()}
        sys.stdout.write(json.dumps(told_as) + "\n")
        return
    told = dict[float, Costs]()
    for size in sorted(map(float, chosen.gigabytes.split(","))):
        dumps = chosen.folder / f"clean-{size * 1000:.0f}"
        if not dumps.is_dir():
            write_dumps(dumps, text_bytes=int(size * GIGABYTE), variant="clean")
        told[size] = in_a_process(dumps, chosen.folder / "sizes", ALL)
        tell(size, ALL, told[size])
    per_gigabyte(told)
    alone = in_a_process(dumps, chosen.folder / "sizes", 1)
    tell(size, 1, alone)
    one, two = (sum(figures.wall for figures in costs.values()) for costs in (alone, told[size]))
    sys.stdout.write(f"{size:g} GB: one worker takes {one / two:.2f} times as long as {ALL}\n")
    chart(told)


if __name__ == "__main__":
    main()
