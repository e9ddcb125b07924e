"""Clocks of brokers and clients, each with its own idea of the time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.cluster.shape import Shape

BEGIN_MS = 1_795_300_000_000


@dataclass(frozen=True)
class Clock:
    """One machine's clock: milliseconds since the epoch, from the true ones."""

    offset_ms: int = 0
    drift_ppm: int = 0
    jump_at: int | None = None
    jump_ms: int = 0

    def read(self, at: int) -> int:
        """What it shows at a true time."""
        jumped = self.jump_ms if self.jump_at is not None and at >= self.jump_at else 0
        return at + self.offset_ms + (at - BEGIN_MS) * self.drift_ppm // 1_000_000 + jumped


def broker_clocks(shape: Shape, length_ms: int) -> dict[int, Clock]:
    """A clock for each broker."""
    rng = shape.stream("clocks")
    scale = rng.choice((300, 300, 2_500, 30_000))
    clocks = {}
    for broker in range(1, shape.brokers + 1):
        offset = rng.choice((0, rng.choice((-1, 1)) * scale, rng.randrange(-scale, scale + 1)))
        drift, jump_ms = rng.randrange(-200, 201), rng.choice((-2_500, -300, 300, 2_500))
        jump_at = BEGIN_MS + rng.randrange(length_ms) if rng.random() < 0.4 else None
        clocks[broker] = Clock(
            offset if shape.has("clocks") else 0,
            drift if shape.has("drift") else 0,
            jump_at if shape.has("jumps") else None,
            jump_ms,
        )
    for feature, direction in (("steps", -1), ("leaps", 1)):
        if shape.has(feature):
            clocks |= _set(shape, feature, direction, clocks, length_ms)
    return clocks


def _set(shape: Shape, feature: str, direction: int, clocks: Mapping[int, Clock], length_ms: int) -> dict[int, Clock]:
    """The clock of one broker, set by far more than clocks differ."""
    rng = shape.stream(feature)
    broker = rng.randrange(1, shape.brokers + 1)
    far_ms = direction * rng.choice((40_000, 120_000, 3_600_000, 86_400_000))
    return {broker: replace(clocks[broker], jump_at=BEGIN_MS + rng.randrange(length_ms), jump_ms=far_ms)}


def client_clock(shape: Shape, name: str) -> Clock:
    """The clock of one producer's machine."""
    rng = shape.stream("client", name)
    return Clock(rng.choice((0, -150, 400, -2_000, 5_000, -40_000)) if shape.has("client_clocks") else 0)
