"""Thousands of clusters: python -m tests.cluster --seeds 0:300 [--faults] [--shrink] [--features clocks,...] [--dumps stopped,...].

Prints every seed that fails with what was said, and figures at the end. Exit code 1 when one failed.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from tests.cluster.faults import FAULTS
from tests.cluster.held import held
from tests.cluster.properties import Case, Result, check
from tests.cluster.shape import DUMPS, FEATURES, STOPPED, draw
from tests.cluster.shrinking import kinds, shrink
from tests.support.lasting import lasting_session

HARD = ("clocks", "drift", "jumps", "steps", "leaps", "client_clocks", "event_times", "append_time", "unheard_ghosts")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds in lots; 0 when all held."""
    options = _options(arguments)
    first, last = (int(part) for part in options.seeds.split(":"))
    spark = lasting_session()
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    started, results = time.monotonic(), list[Result]()
    try:
        for at in range(first, last, options.lot):
            seeds = range(at, min(at + options.lot, last))
            cases = [*held(healthy=True, also_open=True), *held(healthy=False, also_open=True)] if options.held else []
            cases += [case for seed in seeds for case in (_compared(seed) if options.table else _cases(seed, options))]
            lot = _in_folder(spark, cases, folder / str(at))
            results += lot
            failed = [result for result in lot if result.wrong]
            if options.table and not options.verbose:
                continue
            for result in failed:
                _show(result)
            _say(f"seeds {seeds.start} to {seeds.stop - 1}: {len(failed)} of {len(lot)} failed, {time.monotonic() - started:.0f} s")
            if options.shrink and failed:
                _shrunk(spark, _different(failed)[: options.most], folder / "shrink")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    _figures(results, time.monotonic() - started)
    if options.table:
        _table(results)
    return 1 if any(result.wrong for result in results) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--seeds", default="0:100", help="first:last, the last one is left out")
    parser.add_argument("--lot", type=int, default=300, help="seeds of one audit")
    parser.add_argument("--faults", nargs="?", const=",".join(FAULTS), default="", help="plant one of these faults in each cluster")
    parser.add_argument("--shrink", action="store_true", help="make failing clusters smaller, as long as they fail")
    parser.add_argument("--table", action="store_true", help="each seed calm and with one thing that is hard: what fails where")
    parser.add_argument("--held", action="store_true", help="the held cases as well, also those that are open")
    parser.add_argument("--verbose", action="store_true", help="with --table: say what was said")
    parser.add_argument("--most", type=int, default=5, help="of each lot, shrink so many")
    parser.add_argument("--features", default=",".join(FEATURES), help="only these")
    parser.add_argument("--without", default="", help="not these features")
    parser.add_argument("--having", default="", help="only seeds that have all these features")
    parser.add_argument("--dumps", default=",".join(DUMPS), help="only these ways of dumping")
    return parser.parse_args(arguments)


def _cases(seed: int, options: argparse.Namespace) -> Iterator[Case]:
    features = set(filter(None, options.features.split(","))) - set(options.without.split(","))
    dumps = options.dumps.split(",")
    unknown = (features - set(FEATURES)) | (set(dumps) - set(DUMPS))
    if unknown:
        raise SystemExit(f"there is no {', '.join(sorted(unknown))}")
    shape = draw(seed, features=features, dumps=dumps)
    if not shape.features.issuperset(filter(None, options.having.split(","))):
        return
    faults = list(filter(None, options.faults.split(",")))
    yield Case(shape, faults[seed % len(faults)] if faults else None)


def _compared(seed: int) -> Iterator[Case]:
    """A calm cluster, and the same with one thing that is hard to bear."""
    calm = draw(seed, features=set(FEATURES) - set(HARD), dumps=[STOPPED])
    calm = replace(calm, brokers=max(calm.brokers, 2))
    yield Case(calm, label="calm")
    for feature in HARD:
        yield Case(replace(calm, features=calm.features | {feature}), label=feature)
    for dump in DUMPS:
        yield Case(replace(calm, dump=dump), label=dump)
        yield Case(replace(calm, dump=dump, features=calm.features | {"clocks"}), label=f"clocks+{dump}")


def _in_folder(spark: SparkSession, cases: Sequence[Case], folder: Path) -> list[Result]:
    try:
        return check(spark, cases, folder)
    finally:
        spark.catalog.clearCache()
        shutil.rmtree(folder, ignore_errors=True)


def _shrunk(spark: SparkSession, failed: Sequence[Result], folder: Path) -> None:
    for result in shrink(failed, lambda cases: _in_folder(spark, cases, folder)):
        _say(f"  smallest: {result.case.shape}")
        _show(result)


def _different(failed: Sequence[Result]) -> list[Result]:
    """Those first that fail in a way that none before them did."""
    seen: set[str] = set()
    first, rest = list[Result](), list[Result]()
    for result in failed:
        (rest if kinds(result) <= seen else first).append(result)
        seen |= kinds(result)
    return first + rest


def _show(result: Result) -> None:
    shape = result.case.shape
    _say(f"{result.case.name} {shape.protocol} {shape.release} {shape.dump} {' '.join(sorted(shape.features))}")
    for line in result.wrong[:12]:
        _say(f"    {line}")


def _figures(results: Sequence[Result], seconds: float) -> None:
    failed = [result for result in results if result.wrong]
    transactions = sum(result.transactions for result in results)
    _say(f"{len(results)} clusters, {transactions} transactions, {len(failed)} failed, {seconds:.0f} s")
    for kind, planted in sorted(Counter(result.truth.kind for result in results if result.truth).items()):
        mine = [result for result in results if result.truth and result.truth.kind == kind]
        decidable = [result for result in mine if result.truth and result.truth.demands]
        left_open = sum(result.open for result in decidable)
        found = sum(not any(line.startswith("missed") for line in result.wrong) for result in decidable) - left_open
        beside = sum(any(not line.startswith("missed") for line in result.wrong) for result in mine)
        told = f"{found} of {len(decidable)} that can be decided found, {left_open} unknown where dumps or clocks leave it open"
        _say(f"  {kind}: {planted} planted, {told}, {beside} with something beside")
    left_open = sum(result.open and result.truth is None for result in results)
    _say(f"  healthy, and unknown because a clock moved between the markers of a log: {left_open}")
    rules = Counter(rule for result in failed for rule in {line.split()[0] for line in result.wrong if not result.truth})
    if rules:
        _say("  said of healthy clusters: " + ", ".join(f"{rule} in {count}" for rule, count in rules.most_common()))


def _table(results: Sequence[Result]) -> None:
    for label in dict.fromkeys(result.case.label for result in results):
        mine = [result for result in results if result.case.label == label]
        failed = [result for result in mine if result.wrong]
        said = Counter(kind for result in failed for kind in kinds(result))
        words = ", ".join(f"{kind} {count}" for kind, count in said.most_common())
        seeds = " ".join(str(result.case.shape.seed) for result in failed[:6])
        _say(f"  {label}: {len(failed)} of {len(mine)} fail; {words or 'nothing'}; seeds {seeds}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
