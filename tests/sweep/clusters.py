"""Healthy model clusters whose dumps lose lines, or are changed as tools and copies change them: nothing above an info is told of them.

`python -m tests.sweep.clusters --seeds 0:100 --lose 12` (a minute): of every log one line of so many is lost, wherever it stands.
`--changes some_lines_cut,permuted`: changes of `tests.sweep.combined` instead. It fails where something is told that is not true of the
cluster as it lived. What is unknown of what is left is no fault here, nor is R04: lines at the end of an older segment leave no trace.
"""

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.cluster.audit import audit
from tests.cluster.held import SURE_DUMPS, SURE_FEATURES
from tests.cluster.properties import Case, Made, Result, make_all
from tests.cluster.properties import compare as compared
from tests.cluster.shape import draw
from tests.support.lasting import lasting_session
from tests.support.reshaped import copied
from tests.sweep.combined import CHANGES

LOSE = "loss"
_LINE = re.compile(r"(?:\| offset|baseOffset): ")
_NO_FAULT = ("unknown ", "missed ", "R04 ")


def main(arguments: Sequence[str]) -> int:
    """Make one audit; 1 where it accused a cluster."""
    options = argparse.ArgumentParser(prog="python -m tests.sweep.clusters", description=__doc__)
    options.add_argument("--seeds", default="0:100", help="first:last, the last one is left out")
    how = options.add_mutually_exclusive_group()
    how.add_argument("--lose", type=int, default=12, help="one line of so many")
    how.add_argument("--changes", help=f"of {', '.join(CHANGES)}")
    chosen = options.parse_args(arguments)
    first, last = map(int, chosen.seeds.split(":"))
    spark = lasting_session()
    with tempfile.TemporaryDirectory() as folder:
        made = changed(range(first, last), chosen.changes or f"{LOSE}:{chosen.lose}", Path(folder, "in"))
        said = audit(spark, [Path(folder, "in", name) for name in made], Path(folder, "out"))
        accused = [(result.case.name, line) for result in compared(made, said) for line in accusations(result)]
    spark.stop()
    sys.stdout.writelines(f"{name} {line}\n" for name, line in accused)
    sys.stdout.write(f"{len(accused)} told of {len(made)} healthy clusters\n")
    return 1 if accused else 0


def changed(seeds: Iterable[int], how: str, folder: Path) -> Made:
    """Healthy clusters whose dumps, in folders of their names, were changed; those without a manifest are left out.

    Args:
        seeds: of the clusters.
        how: `loss:12`, one line of so many, or names of changes with commas between.
        folder: where the dumps go.
    """
    cases = [Case(draw(seed, features=SURE_FEATURES, dumps=SURE_DUMPS), label=label_of(how)) for seed in seeds]
    with tempfile.TemporaryDirectory() as whole:
        lived = make_all(cases, Path(whole))
        made = {name: one for name, one in lived.items() if Path(whole, name, "manifest.yaml").exists()}
        for name, (case, *_) in made.items():
            drawn = random.Random(f"s{case.shape.seed}/{how}")
            copied(Path(whole, name), folder / name, listed=drawn.random() < 0.5)
            _change(folder / name, how, drawn)
    return made


def label_of(how: str) -> str:
    """What tells the clusters that were changed so from others of their seeds, behind the seed in their names."""
    return how.replace(":", "").replace(",", "-")


def accusations(result: Result) -> list[str]:
    """What is told above an info that is not true."""
    return [line for line in result.wrong if not line.startswith(_NO_FAULT)]


def _change(folder: Path, how: str, drawn: random.Random) -> None:
    if how.startswith(LOSE):
        _lose_lines(folder, int(how.partition(":")[2]), drawn)
    else:
        for name in (name for name in CHANGES if name in how.split(",")):
            CHANGES[name](folder)


def _lose_lines(folder: Path, one_of: int, drawn: random.Random) -> None:
    for path in sorted(folder.rglob("*.log.txt")):
        lines = path.read_text(errors="surrogateescape").splitlines(keepends=True)
        kept = [line for line in lines if not (_LINE.match(line) and drawn.random() < 1 / one_of)]
        path.write_text("".join(kept), errors="surrogateescape")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
