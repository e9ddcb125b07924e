"""Long logs whose markers only order can tell apart: seconds of the law itself (`model.alignment`), without Spark.

The markers and decisions of one epoch, some aborts among them, a clock half a minute ahead: nothing but order and one distance of the
clocks pairs them. The peer is the same log with both heads and tails known, where places alone would do.

    python -m benchmarks.alignment [--markers 2000]
"""

import argparse
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from eo_audit.model.alignment.align import align
from eo_audit.model.alignment.clocks import Decided, Marker
from eo_audit.model.alignment.producer import Producer

AHEAD_MS = 30_000
TOLD = 25  # of a coordinator's log that is compacted
SKEW_MS = 2_000  # conf/default.yaml
ANCHORED = {"newer_markers": False, "newer_decided": False}
HEADLESS = {"older_markers": True, "older_decided": True}


def producer(count: int, seed: int, ends: Mapping[str, bool], lost: Sequence[int] = ()) -> Producer:
    """A producer of so many transactions, each with its marker but the lost ones.

    Args:
        count: of transactions.
        seed: of types and times.
        ends: which ends of the logs are missing (`Producer`).
        lost: which markers are not in the log.
    """
    rng, at_ms = random.Random(seed), 0
    markers, decided = [], []
    for at in range(count):
        at_ms, kind = at_ms + rng.randrange(50, 400), rng.choice(("COMMIT", "COMMIT", "COMMIT", "ABORT"))
        place = 3 * at
        decided.append(
            Decided(
                place, 0, kind, at_ms, at_ms + 10, first_leader_epoch=0, last_leader_epoch=0, decided_at=place + 1, completed_at=place + 2
            )
        )
        if at not in lost:
            seen_ms = at_ms + 5 + AHEAD_MS
            markers.append(Marker(offset=100 * at + seed, type=kind, epoch=0, at_ms=seen_ms, closes=True, leader_epoch=0))
    return replace(Producer(markers, decided), **ends)  # type: ignore[arg-type]


def logs(count: int) -> dict[str, dict[int, Producer]]:
    """By name, the producers of a log."""
    few = count // 4
    whole = producer(count, 1, HEADLESS)
    compacted = replace(whole, decided=whole.decided[-TOLD:])
    return {
        "peer: both ends known": {1: producer(count, 1, ANCHORED)},
        "both heads gone": {1: producer(count, 1, HEADLESS)},
        "25 decisions told": {1: compacted},
        "8 producers, both heads gone": {seed: producer(few, seed, HEADLESS) for seed in range(8)},
        "both ends known, 3 markers lost": {1: producer(few, 1, ANCHORED, lost=(few // 4, few // 2, few // 2 + 9))},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """One line for each kind of log: processor seconds, markers a second, and how many were told; the command line by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markers", type=int, default=2_000)
    for name, log in logs(parser.parse_args(arguments).markers).items():
        began = time.process_time()
        told = align(log, skew_ms=SKEW_MS)
        seconds = time.process_time() - began
        matches = [match for each in told.values() for match in each.matches]
        sure = sum(match.decided is not None and not match.doubtful for match in matches)
        sys.stdout.write(f"{name:34} {seconds:7.2f} s CPU {len(matches) / seconds:9.0f} markers/s, {sure} of {len(matches)} told\n")


if __name__ == "__main__":
    main()
