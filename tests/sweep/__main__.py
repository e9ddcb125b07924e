"""One thing changed at every place of real dumps, all in one audit: which kinds of change no rule sees, and where.

`python -m tests.sweep synthetic_base_k39 synthetic_base_tv2` (names of the corpus, of one broker) takes some minutes for a thousand
changes; `--most 200` draws so many, `--seed` others; `--sidecars` changes the files beside the logs. It fails where a change that must
always be seen was not, and where a clock that was set is told as more than that.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from eo_audit.audit.findings import Finding
from tests.cluster.audit import Said, audit
from tests.support.lasting import lasting_session
from tests.support.mutated import mutated
from tests.sweep.change import Change
from tests.sweep.kinds import ALWAYS_SEEN, CLOCK_SET, OF_A_CLOCK, changes
from tests.sweep.sidecars import INDEX_ALWAYS_SEEN, sidecar_changes

CORPUS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
MOST_SHOWN = 6


def main(arguments: Sequence[str]) -> int:
    """Run a sweep; 1 when something that must be seen was not."""
    options = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    options.add_argument("inputs", nargs="*", default=["synthetic_base_k39", "synthetic_base_tv2"])
    options.add_argument("--most", type=int, default=0, help="draw so many changes of each input; 0: all")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--sidecars", action="store_true", help="change the files beside the logs instead")
    chosen = options.parse_args(arguments)
    spark = lasting_session()
    unseen = 0
    for name in chosen.inputs:
        made = list((sidecar_changes if chosen.sidecars else changes)(CORPUS / name))
        made = random.Random(chosen.seed).sample(made, min(chosen.most or len(made), len(made)))
        with tempfile.TemporaryDirectory() as folder:
            said = audit(spark, _written(CORPUS / name, made, Path(folder), listed=chosen.sidecars), Path(folder, "out"))
        unseen += _told(name, made, said)
    spark.stop()
    return 1 if unseen else 0


def _written(source: Path, made: Iterable[Change], folder: Path, *, listed: bool) -> list[Path]:
    """A folder for each change, and one as it is."""
    inputs = {"as_it_is": [], **{change.name: change.edits for change in made}}
    for name, edits in inputs.items():
        mutated(source, folder / name, edits, listed=listed)
    return [folder / name for name in inputs]


def _told(name: str, made: Sequence[Change], said: Mapping[str, Said]) -> int:
    """Print what was found, by kind of change; how many were not seen that must be, or were told as what they are not."""
    as_it_is = {_what(finding) for finding in said["as_it_is"].findings}
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    nothing: dict[str, list[str]] = defaultdict(list)
    more = 0
    for change in made:
        new = [finding for finding in said[change.name].findings if _what(finding) not in as_it_is]
        codes = " ".join(sorted({finding.rule if finding.severity != "info" else finding.rule.lower() for finding in new}))
        by_kind[change.kind][codes or "nothing"] += 1
        if not new:
            nothing[change.kind].append(change.at)
        if change.kind in CLOCK_SET and {finding.rule for finding in new if finding.severity != "info"} - OF_A_CLOCK:
            more += 1
            _say(f"{name}: {change.kind}: {codes} at {change.at}")
    for kind, found in sorted(by_kind.items()):
        _say(f"{name}: {kind}: " + ", ".join(f"{count} {codes}" for codes, count in found.most_common()))
        if nothing[kind]:
            _say(f"  nothing at {', '.join(nothing[kind][:MOST_SHOWN])}")
    return sum(len(places) for kind, places in nothing.items() if kind in ALWAYS_SEEN | INDEX_ALWAYS_SEEN) + more


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _what(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.topic, finding.partition, finding.first_offset


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
