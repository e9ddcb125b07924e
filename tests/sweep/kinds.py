"""What is changed: each kind of change at each batch that it fits, as edits of `tests.support.mutated`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.mutated import BROKER, Segment
from tests.sweep.change import Change

DAY_MS = 86_400_000
NOBODY = 4711  # a producer id that no coordinator gave out
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")
# Kinds that some rule, or an info, must tell wherever they are: the others may look like what a sound broker writes, such as a batch less
# with the offsets closed up, or the newest marker from a later coordinator.
ALWAYS_SEEN = frozenset({"bad checksum", "other outcome", "other producer", "epoch higher", "no producer", "other timeout", "state Dead"})
# What a broker whose clock is set brings about, and may be told of: times that go back, and waits that only the clock has measured.
OF_A_CLOCK = frozenset({"C05", "T14"})
CLOCK_SET = {
    "clock two minutes back from here": -120_000,
    "clock an hour back from here": -DAY_MS // 24,
    "clock an hour on from here": DAY_MS // 24,
}


@dataclass(frozen=True)
class Batch:
    """A batch as it was printed, and what stands around it: where it is, and where the next one begins, or `end`."""

    text: str
    at: str
    behind: str

    def number(self, name: str) -> int:
        """A field of its first line."""
        found = re.search(rf"(?<!\w){name}: (-?\d+)", self.text)
        return int(found[1]) if found else -1

    @property
    def clocks(self) -> list[int]:
        """All times in it: of today they are the only numbers of 13 digits. That of the batch is the first."""
        return [int(found) for found in re.findall(r"(?<!\d)1\d{12}(?!\d)", self.text)]

    def later(self, by_ms: int, since_ms: int = 0) -> Mapping[str, Any]:
        """The edit that makes its times later, those before `since_ms` left alone."""
        return {"change": self.at, "words": {str(at): str(at + by_ms) for at in self.clocks if at >= since_ms}}

    def written(self, kind: str, **fields: object) -> Change:
        """The same with other fields."""
        return Change(kind, self.at, [{"change": self.at, "fields": fields}])

    def worded(self, kind: str, old: str, new: str) -> Change:
        """The same with other words."""
        return Change(kind, self.at, [{"change": self.at, "words": {old: new}}])


def changes(source: Path) -> Iterator[Change]:
    """All changes of a dump of one broker.

    Args:
        source: a folder of the corpus, in plain text.
    """
    for folder in sorted(path for path in (source / BROKER).iterdir() if path.is_dir() and path.name != "__cluster_metadata-0"):
        is_coordinator = folder.name.startswith("__transaction_state")
        batches = list(_batches(folder))
        yield from _of_clock(batches)
        for batch in batches:
            yield from _of_any(batch)
            if is_coordinator:
                yield from _of_entry(batch)
            elif folder.name.startswith("__consumer_offsets") and "endTxnMarker" not in batch.text:
                yield from _of_commit(batch)
            elif "endTxnMarker" in batch.text:
                yield from _of_marker(batch)
            elif batch.number("producerId") >= 0:
                yield from _of_data(batch)


def _batches(folder: Path) -> Iterator[Batch]:
    texts = [text for path in sorted(folder.glob("*.log.txt")) for text in Segment.of(path).batches]
    places = [f"{folder.name}@{text.split(maxsplit=2)[1]}" for text in texts]  # baseOffset: 12 ...
    # An empty log has an end and no batch.
    for text, at, behind in zip(texts, places, [*places[1:], f"{folder.name}@end"], strict=False):
        yield Batch(text, at, behind)


def _of_clock(batches: Sequence[Batch]) -> Iterator[Change]:
    """The clock of the log's leader is set: all it writes from then on."""
    for number, first in enumerate(batches[1:], 1):
        for kind, by_ms in CLOCK_SET.items():
            yield Change(kind, first.at, [batch.later(by_ms, first.clocks[0]) for batch in batches[number:]])


def _of_any(batch: Batch) -> Iterator[Change]:
    yield Change("lost", batch.at, [{"drop": batch.at}])
    yield Change("lost and closed up", batch.at, [{"drop": batch.at, "close_up": True}])
    yield Change("twice", batch.at, [{"repeat": [batch.at], "before": batch.behind}])
    yield Change("again at the end", batch.at, [{"repeat": [batch.at], "before": f"{batch.at.partition('@')[0]}@end"}])
    yield batch.worded("bad checksum", "isvalid: true", "isvalid: false")
    yield batch.written("later leader", partitionLeaderEpoch=batch.number("partitionLeaderEpoch") + 7)
    yield batch.written("one record less", count=batch.number("count") - 1)
    yield batch.written("one record more", count=batch.number("count") + 1)
    yield batch.written("one offset more", lastOffset=batch.number("lastOffset") + 1)
    for kind, by_ms in (("a day earlier", -DAY_MS), ("an hour later", DAY_MS // 24), ("a day later", DAY_MS)):
        yield Change(kind, batch.at, [batch.later(by_ms)])


def _of_marker(batch: Batch) -> Iterator[Change]:
    outcome, other = ("COMMIT", "ABORT") if "COMMIT" in batch.text else ("ABORT", "COMMIT")
    yield batch.worded("other outcome", f"endTxnMarker: {outcome}", f"endTxnMarker: {other}")
    yield from _of_producer(batch)
    yield batch.written("later coordinator", coordinatorEpoch=batch.number("coordinatorEpoch") + 5)


def _of_producer(batch: Batch) -> Iterator[Change]:
    yield batch.written("other producer", producerId=NOBODY)
    epoch = batch.number("producerEpoch")
    yield batch.written("epoch higher", producerEpoch=epoch + 1)
    if epoch:
        yield batch.written("epoch lower", producerEpoch=epoch - 1)


def _of_data(batch: Batch) -> Iterator[Change]:
    yield from _of_producer(batch)
    mode, other = ("true", "false") if "isTransactional: true" in batch.text else ("false", "true")
    yield batch.worded("other mode", f"isTransactional: {mode}", f"isTransactional: {other}")
    if mode == "true":
        yield batch.written("no producer", producerId=-1, producerEpoch=-1, baseSequence=-1, lastSequence=-1)
    base, last = batch.number("baseSequence"), batch.number("lastSequence")
    if base >= 0:
        # A tool prints the sequences of records by those of their batch.
        records = {f" sequence: {n} ": f" sequence: {n + 5} " for n in range(last, base - 1, -1)}
        numbered = {"change": batch.at, "fields": {"baseSequence": base + 5, "lastSequence": last + 5}}
        yield Change("later sequence", batch.at, [numbered, {"change": batch.at, "words": records}])


def _of_entry(batch: Batch) -> Iterator[Change]:
    state, epoch = re.search(r"state=(\w+)", batch.text), re.search(r"producerEpoch:(\d+)", batch.text)
    owner = re.search(r"payload: producerId:(\d+)", batch.text)
    if state is None or epoch is None or owner is None:
        return
    yield from (batch.worded(f"state {other}", state[0], f"state={other}") for other in STATES if other != state[1])
    yield batch.worded("epoch higher", epoch[0], f"producerEpoch:{int(epoch[1]) + 1}")
    yield batch.worded("other producer", f"{owner[0]},", f"payload: producerId:{NOBODY},")
    yield from (batch.worded("other timeout", found[0], "txnTimeoutMs=30000") for found in re.finditer(r"txnTimeoutMs=60000", batch.text))
    listed = re.search(r"partitions=\[([^\]]+)\]", batch.text)
    if listed is not None:
        yield batch.worded("one partition less", listed[0], f"partitions=[{','.join(listed[1].split(',')[1:])}]")


def _of_commit(batch: Batch) -> Iterator[Change]:
    """Of one group's offsets of one batch."""
    yield from _of_producer(batch)
    for found in re.finditer(r'"offset":(\d+)', batch.text):
        for kind, by in (("offset back", -1), ("offset ahead", 1), ("offset far ahead", 1_000)):
            yield batch.worded(kind, found[0], f'"offset":{int(found[1]) + by}')
