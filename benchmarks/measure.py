"""Seconds, CPU and memory of this process and everything it started.

CPU is sampled from the process tree: Spark's Python daemon ignores SIGCHLD, so the kernel's own sums miss its workers.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

PERIOD_SECONDS = 0.1


@dataclass
class Figures:
    """Wall and CPU seconds of a block, and the largest sum of private memory of its processes, bytes."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_bytes: int = 0
    _seen: dict[int, float] = field(default_factory=dict, repr=False)

    def sample(self) -> None:
        """Look at all processes once."""
        memory = 0
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            try:
                times, used = process.cpu_times(), process.memory_info()
            except psutil.Error:
                continue
            self._seen[process.pid] = times.user + times.system
            memory += used.rss - used.shared
        self.peak_bytes = max(self.peak_bytes, memory)

    def total(self) -> float:
        """CPU seconds of all processes seen so far."""
        return sum(self._seen.values())


@contextmanager
def measured() -> Iterator[Figures]:
    """Fill in the figures of the block that runs inside."""
    figures, stop = Figures(), threading.Event()
    figures.sample()
    before, began = figures.total(), time.perf_counter()

    def watch() -> None:
        while not stop.wait(PERIOD_SECONDS):
            figures.sample()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield figures
    finally:
        figures.wall = time.perf_counter() - began
        stop.set()
        watcher.join()
        figures.sample()
        figures.cpu = figures.total() - before
