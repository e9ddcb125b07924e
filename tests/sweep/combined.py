"""Several things changed at once in every dump of the corpus: what is told of less, or worse, text may be less, and never more.

`python -m tests.sweep.combined --draws 1:4` (a minute each): each input with one to three of the changes below, drawn by the number of
the draw. `--pairs all` (two hours), or the name of a change: all inputs with every two of them, or with this one and each other. All
inputs make one audit, held against the truth of the corpus. It fails where something above an info is told that the truth does not name,
or that it forbids, and where the audit dies. Each change alone is a test (tests/test_invariances.py, tests/test_fewer_sources.py).
"""

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from eo_audit import pipeline
from tests.support import collected, reshaped
from tests.support.lasting import lasting_session

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
# In this order: what looks for batches and segments comes before what garbles or moves them.
CHANGES: Mapping[str, Callable[[Path], object]] = {
    "shorter": reshaped.shorter,
    "later": reshaped.later,
    "without_head": reshaped.without_head,
    "split": reshaped.split,
    "merged": reshaped.merged,
    "first_replica": partial(reshaped.one_replica, last=False),
    "last_replica": partial(reshaped.one_replica, last=True),
    "without_first_lines": reshaped.without_first_lines,
    "without_records": reshaped.without_records,
    "other_decoder": reshaped.other_decoder,
    "some_undecoded": reshaped.some_undecoded,
    "garbled": reshaped.garbled,
    "binary_values": reshaped.binary_values,
    "without_index": reshaped.without_index,
    "only_logs": reshaped.only_logs,
    "printed_by_1.1": partial(reshaped.printed_before, release="1.1"),
    "printed_by_0.11.0.0": partial(reshaped.printed_before, release="0.11.0.0"),
    "marker_records_lost": reshaped.marker_records_lost,
    "batch_lines_lost": reshaped.batch_lines_lost,
    "some_lines_lost": reshaped.some_lines_lost,
    "some_lines_cut": reshaped.some_lines_cut,
    "some_segments": collected.some_segments,
    "newest_segments": partial(collected.newest_segments, coordinators=False),
    "newest_of_coordinators": partial(collected.newest_segments, coordinators=True),
    "one_broker_earlier": collected.one_broker_earlier,
    "in_ascii": partial(reshaped.printed_elsewhere, ascii_only=True),
    "with_crlf": partial(reshaped.printed_elsewhere, crlf=True),
    "permuted": reshaped.permuted,
    "in_one_file": reshaped.in_one_file,
}


# Of these one undoes, or takes the place of, the other.
_EITHER = ({"first_replica", "last_replica"}, {"printed_by_1.1", "printed_by_0.11.0.0"}, {"in_ascii", "with_crlf"})


def main(arguments: Sequence[str]) -> int:
    """Make some audits; 1 where one of them told more than the truth."""
    options = argparse.ArgumentParser(prog="python -m tests.sweep.combined", description=__doc__)
    options.add_argument("--draws", default="1:4", help="first:last, the last one is left out")
    options.add_argument("--pairs", choices=("all", *CHANGES), help="every two changes, or this one with each other")
    chosen = options.parse_args(arguments)
    first, last = map(int, chosen.draws.split(":"))
    lots = _pairs(chosen.pairs) if chosen.pairs else ((f"draw {draw}", partial(_drawn, draw)) for draw in range(first, last))
    spark, more = lasting_session(), 0
    for lot, changes_of in lots:
        with tempfile.TemporaryDirectory() as folder:
            changed = _changed(changes_of, Path(folder, "in"))
            pipeline.run(Path(folder, "out"), [Path(folder, "in", name) for name in changed], pipeline.Options(), spark=lambda: spark)
            for name, line in _beyond_the_truth(Path(folder, "out")):
                more += 1
                sys.stdout.write(f"{lot}: {name} {' '.join(changed[name])}: {line}\n")
    sys.stdout.write(f"{more} told beyond the truth\n")
    spark.stop()
    return 1 if more else 0


def _drawn(draw: int, name: str) -> tuple[bool, Sequence[str]]:
    """Whether the directories of an input are listed, and the names of its changes."""
    drawn = random.Random(f"{draw} {name}")
    chosen = drawn.sample(sorted(CHANGES), drawn.choice((1, 1, 2, 2, 3)))
    return drawn.random() < 0.5, chosen


def _pairs(one: str) -> Iterator[tuple[str, Callable[[str], tuple[bool, Sequence[str]]]]]:
    for pair in itertools.combinations(CHANGES, 2):
        if one in ("all", *pair) and set(pair) not in _EITHER:
            yield " and ".join(pair), partial(_both, pair)


def _both(pair: Sequence[str], name: str) -> tuple[bool, Sequence[str]]:
    # Half of them: with a listing much is known that is not without one.
    return len(name) % 2 == 0, pair


def _changed(changes_of: Callable[[str], tuple[bool, Sequence[str]]], folder: Path) -> Mapping[str, Sequence[str]]:
    """The names of the changes of each input, which lies changed in a folder of its name."""
    changed = {}
    for source in sorted((CORPUS / "dumps").iterdir()):
        listed, chosen = changes_of(source.name)
        # What nobody names, and what is printed twice, is no whole log any more; a segment that is missing between others is R04's to tell;
        # and changes find lines of the tool that a payload forges as well.
        if (source / "manifest.yaml").exists() and source.name != "hostile":
            reshaped.copied(source, folder / source.name, listed=listed)
            headless = _is_whole(source) and "split" not in chosen
            changed[source.name] = [name for name in CHANGES if name in chosen and (name != "without_head" or headless)]
            for name in changed[source.name]:
                CHANGES[name](folder / source.name)
    return changed


def _is_whole(source: Path) -> bool:
    """Whether each log is one segment."""
    segments = [path.parent for path in source.rglob("*.log.txt")]
    return len(segments) == len(set(segments))


def _beyond_the_truth(out: Path) -> list[tuple[str, str]]:
    """What the corpus's own score calls a false alarm, or what must not be there, with the input of which it was told."""
    command = [sys.executable, str(CORPUS / "score.py"), str(CORPUS / "truth"), str(out)]
    told, name = [], ""
    for line in subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines():
        name = name if line.startswith(" ") else line.split(":")[0]
        if line.strip().startswith(("false alarm", "must not be there")):
            told.append((name, line.strip()))
    return told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
