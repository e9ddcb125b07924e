"""The coordinator's entries as they are printed: which ones a transaction has, and how a fault changes them or adds to them."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from eo_audit.model.states import STATE_OF_ID
from tests.cluster.brokers import OFFSETS, Log, Record, Transaction, Write
from tests.cluster.coordinator import TOMBSTONE, Entry, printed_entry
from tests.cluster.planting import index_of, insert, leader
from tests.cluster.truth import Scene

_TEXT = re.compile(r"producerId:(\d+),producerEpoch:(\d+),state=(\w+),.*txnTimeoutMs=(\d+)$")


@dataclass(frozen=True)
class Told:
    """What the last entry of a transactional id says, and where it stands."""

    log: Log
    write: Write
    producer_id: int
    epoch: int
    status: str
    timeout_ms: int


def entries_with(scene: Scene, name: str) -> list[tuple[Log, Write]]:
    """All entries of a transactional id, in order."""
    keys = (f"::transactionalId={name}".encode(), f'"transactionalId":"{name}"}}}}'.encode())
    found = [(log, w) for log in scene.world.coordinator_logs for w in log.writes]
    return [(log, w) for log, w in found if (w.records[0].key or b"").endswith(keys)]


def last_entries(scene: Scene) -> Iterator[tuple[str, Told]]:
    """Of each transactional id the last entry, where all copies of its log hold it."""
    for name in sorted({t.transactional_id for t in scene.world.transactions}):
        found = entries_with(scene, name)
        if found and found[-1][1].records[0].value != TOMBSTONE and scene.is_seen(found[-1][0].place, found[-1][1]):
            yield name, _told(*found[-1])


def _told(log: Log, write: Write) -> Told:
    value = (write.records[0].value or b"").decode()
    if value.startswith("{"):
        data = json.loads(value)["data"]
        status = STATE_OF_ID[data["transactionStatus"]]
        return Told(log, write, data["producerId"], data["producerEpoch"], status, data["transactionTimeoutMs"])
    found = _TEXT.match(value)
    assert found is not None
    return Told(log, write, int(found[1]), int(found[2]), found[3], int(found[4]))


def entries_of(scene: Scene, t: Transaction, status: str) -> list[Write]:
    """The entries of a transaction with one status, as they are printed."""
    number = {"Empty": 0, "Ongoing": 1, "PrepareCommit": 2, "PrepareAbort": 3, "CompleteCommit": 4, "CompleteAbort": 5}[status]
    wanted = re.compile(rf'state={status},|"transactionStatus":{number},'.encode())
    name = t.transactional_id.encode()
    log = scene.world.logs[scene.coordinator(t)]
    mine = [w for w in log.writes if t.began_at <= w.at <= (t.ended_at or 0) and (w.records[0].key or b"").find(name) >= 0]
    return [w for w in mine if wanted.search(w.records[0].value or b"")]


def ended(scene: Scene) -> Iterator[tuple[Log, Transaction, Write]]:
    """Transactions with exactly one Prepare entry, which the dump holds."""
    for t in scene.world.transactions:
        if scene.is_told(t) and t.decision is not None:
            prepared = [w for status in ("PrepareCommit", "PrepareAbort") for w in entries_of(scene, t, status)]
            if len(prepared) == 1:
                yield scene.world.logs[scene.coordinator(t)], t, prepared[0]


def rewritten(log: Log, write: Write, pattern: str, replacement: str | Callable[[re.Match[str]], str]) -> Write:
    """Put another entry in the place of one: the first match of a pattern in its value is replaced."""
    record = write.records[0]
    text = re.sub(pattern, replacement, (record.value or b"").decode(), count=1)
    changed = replace(write, records=(replace(record, value=text.encode()),))
    log.writes[index_of(log, write)] = changed
    return changed


def appended(scene: Scene, log: Log, at: int, name: str, entry: Entry) -> Write:
    """An entry by whoever leads the partition then."""
    key, value, sizes = printed_entry(name, entry, scene.world.shape.release)
    stamp, epoch = leader(scene, log, at)
    write = Write(at, stamp, epoch, (Record(key, value, stamp),), entry_sizes=sizes)
    insert(log, write)
    scene.offsets(log.place, [write])
    return write


def cut_life(scene: Scene, name: str, after: int) -> None:
    """Nothing of a transactional id and of its group was written behind a true time."""
    group = f'"group":"{name}-app"'.encode()
    entries = {id(write) for _, write in entries_with(scene, name)}
    for log in scene.world.logs.values():
        mine = {id(w) for w in log.writes if w.transaction is not None and w.transaction.transactional_id == name}
        mine |= {id(w) for w in log.writes if log.topic == OFFSETS and any(group in (r.key or b"") for r in w.records)}
        log.writes = [w for w in log.writes if w.at <= after or id(w) not in mine | entries]
