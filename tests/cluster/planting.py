"""What all planters of faults share: where a fault can be, and how a log is changed."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tests.cluster import printing
from tests.cluster.brokers import Log, Place, Transaction, Write
from tests.cluster.edits import Edit
from tests.cluster.replay import Placed, State
from tests.cluster.truth import NoPlace, Scene, Truth

Chosen = TypeVar("Chosen")

NONE: frozenset[str] = frozenset()
OPEN = frozenset({"T01", "L01"})
VISIBLE = frozenset({"L02", "L03", "T05", "T06", "T15", "T13", "S02", "S03"})
HIGHEST_EPOCH = 32_767  # an epoch is a short


@dataclass
class Planted:
    """The truth of a fault, and the index entries that are lost."""

    truth: Truth
    lost_index: frozenset[tuple[Place, int]] = field(default_factory=frozenset)


def rules(*codes: str) -> tuple[frozenset[str], ...]:
    """`must`: of each word, rules separated by a stroke, one."""
    return tuple(frozenset(code.split("|")) for code in codes)


def pick(rng: random.Random, candidates: list[Chosen]) -> Chosen | None:
    """One of some places where a fault can be."""
    return rng.choice(candidates) if candidates else None


def with_data(scene: Scene) -> Iterator[tuple[Log, Transaction]]:
    """Ended transactions whose data and markers all copies of a log hold, and whose entries the coordinator's dump holds."""
    for log in scene.world.data_logs:
        for transaction in scene.world.transactions:
            data, markers = scene.data(log, transaction), scene.markers(log, transaction)
            if data and markers and all(scene.is_seen(log.place, w) for w in (*data, *markers)) and scene.is_told(transaction):
                yield log, transaction


def move(log: Log, write: Write, at: int) -> Write:
    """The same batch, appended at another time."""
    moved = replace(write, at=at)
    log.writes.remove(write)
    insert(log, moved)
    return moved


def insert(log: Log, write: Write) -> None:
    """Behind everything up to its time."""
    place = sum(other.at <= write.at for other in log.writes)
    log.writes.insert(place, write)


def leader(scene: Scene, log: Log, at: int) -> tuple[int, int]:
    """The clock and the epoch of the leader at a time."""
    return scene.world.clock(log.place, at), log.leadership.term(at).epoch


def index_of(log: Log, write: Write) -> int:
    """Where a write stands in its log."""
    return next(n for n, other in enumerate(log.writes) if other is write)


def stamped(scene: Scene, log: Log, write: Write) -> Write:
    """With the leader's clock and epoch of its time, and with LogAppendTime where the topic has it."""
    broker_ms, leader_epoch = leader(scene, log, write.at)
    records = tuple(replace(record, timestamp_ms=broker_ms) if log.append_time else record for record in write.records)
    stamped = replace(write, broker_ms=broker_ms, leader_epoch=leader_epoch, records=records)
    log.writes[index_of(log, write)] = stamped
    return stamped


def at_writes(scene: Scene, truth: Truth, writes: list[Write], decidable: bool, why: str) -> Planted:
    """The truth with the offsets of what was changed."""
    assert truth.place is not None
    return Planted(replace(truth, offsets=scene.offsets(truth.place, writes), decidable=decidable, why=why))


def placed(scene: Scene, log: Log, write: Write) -> Placed:
    """Where a batch stands in the shortest copy of its log, as the log is now.

    Raises:
        NoPlace: it stands there no more.
    """
    state = scene.state(log.place)
    found = [batch for batch in state.batches if batch.write is write and batch.base >= state.log_start]
    if not found:
        raise NoPlace
    return found[0]


def edit_batch(scene: Scene, log: Log, write: Write, pattern: str, replacement: str) -> None:
    """The line of a batch is printed otherwise: the first match of a pattern is replaced.

    Raises:
        NoPlace: there is no such line.
    """
    state, batch = scene.state(log.place), placed(scene, log, write)
    line = re.compile(rf"^(baseOffset: {batch.base} .*?){pattern}", re.MULTILINE)
    text, _ = printing.segment_text(state, batch.segment, payloads=scene.world.shape.has("payloads"))
    edit_file(scene, state, f"{state.bases[batch.segment]:020d}.log", text, line, rf"\g<1>{replacement}")


def edit_file(scene: Scene, state: State, name: str, text: str, pattern: re.Pattern[str], replacement: str) -> None:
    """A file beside a log, or a segment of it, is printed otherwise.

    Args:
        scene: gets the edit.
        state: the log.
        name: of the file on disk.
        text: as it is printed of the shortest copy.
        pattern: its first match is replaced.
        replacement: as in `re.sub`.

    Raises:
        NoPlace: the pattern stands nowhere in the text.
    """
    if not pattern.search(text):
        raise NoPlace
    scene.plan.edits.append(Edit(f"{printing.name_of(state)}/{name}.txt", lambda printed: pattern.sub(replacement, printed, count=1)))
