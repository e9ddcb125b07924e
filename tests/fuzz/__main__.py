"""`make fuzz`: thousands of mutants, all processors. Each is made of its seed alone: `make fuzz SEED=4711 COUNT=1` makes one again."""

import argparse
import os
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from tests.fuzz.checks import Fault, faults
from tests.fuzz.coordinator import coordinator_mutant
from tests.fuzz.mutants import mutant

CHUNK = 50
MOST_SHOWN = 5
# Counted: text that two histories print alike (docs/reliability.md).
TOLERATED = frozenset(
    {
        "a fact from a header key, behind the last line of a log",
        "a fact from a payload, in text that an honest tool prints",
        "a fact from a payload, behind damage in the last batch of a log",
        "a path from a payload, in the head of a text",
        "a message from a payload, in the head of a text",
    }
)
# Of processor time, all readings of a mutant together: blocks of a few hundred bytes read a header key of 70 KB again and again.
SLOW_SECONDS, SLOW_PER_BYTE = 8.0, 40e-6

Found = list[tuple[int, str, str, str]]


def tried(first: int, count: int) -> tuple[Found, int, int]:
    """Mutants of some seeds, a data log and a coordinator's log of each.

    Returns:
        (seed, kind, what, how it was made) of each fault, the bytes of all, and how many were undamaged.
    """
    found: Found = []
    size = undamaged = 0
    for seed, make in product(range(first, first + count), (mutant, coordinator_mutant)):
        made = make(seed)
        size, undamaged = size + len(made.text), undamaged + made.undamaged
        began = time.process_time()
        try:
            broken = list(faults(made, seed))
        except Exception:
            broken = [Fault("exception", traceback.format_exc().strip().splitlines()[-1] + traceback.format_exc()[-600:])]
        took = time.process_time() - began
        if took > SLOW_SECONDS and took > len(made.text) * SLOW_PER_BYTE:
            broken.append(Fault("slow", f"{took:.1f} s for {len(made.text)} bytes"))
        found += [(seed, fault.kind, fault.what, ", ".join(made.made_by)) for fault in broken]
    return found, size, undamaged


def main(arguments: Sequence[str]) -> int:
    """Run a campaign; 1 when a promise was broken."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--seed", type=int, default=None, help="of the first mutant (default: the clock)")
    options.add_argument("--count", type=int, default=5000, help="seeds; each makes a data log and a coordinator's log")
    given = options.parse_args(arguments)
    seed = given.seed if given.seed is not None else int(time.time()) * 1000
    print(f"seeds {seed} to {seed + given.count - 1}", flush=True)
    began, done, size, undamaged = time.monotonic(), 0, 0, 0
    kinds: Counter[str] = Counter()
    shown: defaultdict[str, int] = defaultdict(int)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        chunks = [(first, min(CHUNK, seed + given.count - first)) for first in range(seed, seed + given.count, CHUNK)]
        for (_, count), (found, read, whole) in zip(chunks, pool.map(tried, *zip(*chunks, strict=True)), strict=True):
            done, size, undamaged = done + count, size + read, undamaged + whole
            for number, kind, what, how in found:
                kinds[kind] += 1
                shown[kind] += 1
                if kind not in TOLERATED and shown[kind] <= MOST_SHOWN:
                    print(f"FAULT seed {number}: {kind}: {what} [{how}]", flush=True)
            if done % 1000 < count:
                print(f"{done} seeds, {done / (time.monotonic() - began):.0f} a second, {dict(kinds)}", flush=True)
    rate = done / (time.monotonic() - began)
    both = f"{done} mutants of data logs and as many of coordinators' logs ({undamaged} undamaged)"
    print(f"{both}, {size / 1e6:.1f} MB, {rate:.0f} seeds a second; {dict(kinds) or 'no fault'}")
    return int(any(kind not in TOLERATED for kind in kinds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
