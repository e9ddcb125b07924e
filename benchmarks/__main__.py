"""`make bench`: the figures of the project, side by side with what a user would do instead, in one run.

    python -m benchmarks [--megabytes 1000] [--batches 20000000] [--folder DIR] [--only small,ingest,coordinator,batches,alignment,sizes]

- ingest: dump text of the chosen size in the real grammar (clean; pretty-printed payloads; payloads that are no text; 5 % hostile) to
  Delta, cold and warm; then rebuild and audit of the clean one. The peer is DuckDB, which splits the same lines into Parquet and does not
  notice forged ones.
- small: wall time of whole `eo-audit run` processes on the smallest example. The peer is a bare Spark session that writes one Delta table,
  in turns with them.
- coordinator: a coordinator's log of 200 MB with 100,000 ids, decoded, on one core: the fast path beside the exact reader
  (`benchmarks.coordinator_log`).
- sizes: what an audit costs against its size, and one worker against two (`benchmarks.sizes`; 1, 2 and 5 GB). Not by default: half an hour.
- batches: producer histories of 20 million batches, half of them of one producer (`benchmarks.sequences`).
- alignment: long logs whose markers only order can tell apart, beside one that places tell (`benchmarks.alignment`).
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import alignment, coordinator_log, sequences, sizes
from benchmarks.dump_text import VARIANTS, write_dumps
from benchmarks.measure import Figures, measured
from benchmarks.peer import duckdb_to_parquet
from eo_audit import pipeline
from eo_audit.config import load
from eo_audit.store.session import Starting

ROOT = Path(__file__).parents[1]
SMALL_RUNS = 5


def tell(what: str, figures: Figures, megabytes: float | None = None) -> None:
    """One line of figures."""
    rate = "" if megabytes is None else f"{megabytes / figures.wall:7.0f} MB/s"
    memory = f"{figures.peak_bytes / 2**20:7.0f} MiB peak"
    sys.stdout.write(f"{what:34} {figures.wall:7.1f} s wall {figures.cpu:7.1f} s CPU {memory} {rate}\n")
    sys.stdout.flush()


def ingest(folder: Path, megabytes: int) -> None:
    """Ingest each variant cold and warm, the peer on the same file, and the two later steps on the clean one."""
    for variant in VARIANTS:
        dumps = folder / f"{variant}-{megabytes}"
        if not dumps.is_dir():
            write_dumps(dumps, text_bytes=megabytes * 1_000_000, variant=variant)
        size = sum(path.stat().st_size for path in dumps.rglob("*") if path.is_file())
        sys.stdout.write(f"\n{variant}: {size / 1e6:.0f} MB of dump text\n")
        spark = Starting(load(), input_bytes=size)
        with measured() as figures:
            spark()
        tell("  start of Spark", figures)
        for run in ("cold", "warm"):
            out = folder / "out"
            shutil.rmtree(out, ignore_errors=True)
            _step(f"  ingest to Delta, {run}", out, dumps, spark, size=size)
        if variant == VARIANTS[0]:
            _later_steps(folder / "out", spark)
        spark().stop()
        with measured() as figures:
            duckdb_to_parquet(dumps, folder / "peer.parquet")
        tell("  peer: DuckDB to Parquet", figures, size / 1e6)


def _step(what: str, out: Path, dumps: Path, spark: Callable[[], object], *, size: int) -> None:
    options = pipeline.Options()
    found = pipeline.discover([dumps], options)
    with pipeline.writing(out, options, input_bytes=size, spark=spark) as warehouse, measured() as figures:  # type: ignore[arg-type]
        pipeline.ingest(warehouse, found, options)
    tell(what, figures, size / 1e6)


def _later_steps(out: Path, spark: Callable[[], object]) -> None:
    options = pipeline.Options()
    for step in (pipeline.rebuild, pipeline.audit):
        with pipeline.writing(out, options, spark=spark) as warehouse, measured() as figures:  # type: ignore[arg-type]
            step(warehouse, options)
        tell(f"  {step.__name__}", figures)


# What anybody pays who writes one table with Spark and Delta: the session and its jars are those of an audit.
BARE = """import sys
from eo_audit.config import load
from eo_audit.store.session import session
spark = session(load(), input_bytes=0)
spark.range(1000).write.format("delta").mode("overwrite").save(sys.argv[1])
spark.stop()
"""


def small(folder: Path) -> None:
    """Whole processes on the smallest example, in turns with the peer."""
    example = min((ROOT / "examples").glob("*/dumps"), key=lambda path: sum(f.stat().st_size for f in path.rglob("*") if f.is_file()))
    audit = [str(Path(sys.executable).parent / "eo-audit"), "run", str(example), "--out", str(folder / "small")]
    bare = [sys.executable, "-c", BARE, str(folder / "small")]
    seconds: dict[str, list[float]] = {"eo-audit run": [], "peer: bare Spark, one Delta table": []}
    for _ in range(SMALL_RUNS):
        for (what, taken), command in zip(seconds.items(), (audit, bare), strict=True):
            taken.append(_whole_process(what, command, folder / "small"))
    sys.stdout.write(f"\n{example.relative_to(ROOT)}, {SMALL_RUNS} whole processes each\n")
    for what, taken in seconds.items():
        sys.stdout.write(f"{what:34} min {min(taken):.1f}, median {statistics.median(taken):.1f}, max {max(taken):.1f} s\n")
    ours, theirs = map(statistics.median, seconds.values())
    sys.stdout.write(f"an audit takes {ours / theirs:.2f} times as long as the peer\n")


def _whole_process(what: str, command: list[str], out: Path) -> float:
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode > 2:
        raise SystemExit(f"{what} failed")
    return time.perf_counter() - began


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description="The figures of the project, side by side with what a user would do instead.")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "bench")
    parser.add_argument("--only", default="small,ingest,coordinator,batches,alignment")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    parts = chosen.only.split(",")
    if "small" in parts:
        small(chosen.folder)
    if "ingest" in parts:
        ingest(chosen.folder, chosen.megabytes)
    if "coordinator" in parts:
        sys.stdout.write("\na coordinator's log, decoded, without Spark\n")
        coordinator_log.main([])
    if "batches" in parts:
        sys.stdout.write(f"\n{chosen.batches:,} batches, half of one producer\n")
        sequences.main(["--batches", str(chosen.batches)])
    if "sizes" in parts:
        sys.stdout.write("\ncost against size\n")
        sizes.main(["--folder", str(chosen.folder)])
    if "alignment" in parts:
        sys.stdout.write("\nmarkers that only order tells apart\n")
        alignment.main([])


if __name__ == "__main__":
    main()
