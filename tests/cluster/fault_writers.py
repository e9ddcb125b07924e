"""Faults of what producers write: sequences that overlap, begins that are lost, batches outside of transactions, records sent again under
another identity, epochs at their end, and times so old that a broker forgets who wrote."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from eo_audit.history.repeated_records import LEAST_RECORDS, REPEATS_ONE_IN
from tests.cluster.brokers import Log, Record, Transaction, Write
from tests.cluster.planting import NONE, Planted, at_writes, index_of, insert, leader, pick, rules, with_data
from tests.cluster.truth import Scene, Truth

STREAMS = re.compile(r".+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+")
TWO_DAYS_MS = 172_800_000  # producer.id.expiration.ms is one day


def _of_producer(log: Log, producer_id: int) -> list[Write]:
    return [w for w in log.writes if w.producer_id == producer_id and w.marker is None]


def _firsts(scene: Scene) -> Iterator[tuple[Log, Write, Write, list[Write]]]:
    """The first batch of an epoch of a producer and the next one of that epoch, both dumped, with what it wrote there before."""
    for log in scene.world.data_logs:
        for write in log.writes:
            if write.base_sequence == 0 and write.marker is None and scene.is_seen(log.place, write) and not log.compacted:
                mine = _of_producer(log, write.producer_id)
                at = next(n for n, w in enumerate(mine) if w is write)
                after = mine[at + 1 :][:1]
                if after and after[0].epoch == write.epoch and scene.is_seen(log.place, after[0]):
                    yield log, write, after[0], mine[:at]


def overlap(scene: Scene, rng: random.Random) -> Planted | None:
    """A retry comes in another batch: its first record is left out."""
    found = [
        (log, w)
        for log in scene.world.data_logs
        for w in log.writes
        if w.base_sequence >= 0 and w.marker is None and len(w.records) > 1 and scene.is_seen(log.place, w)
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write = chosen
    again = replace(write, base_sequence=write.base_sequence + 1, records=write.records[1:])
    log.writes.insert(index_of(log, write) + 1, again)
    truth = Truth("overlap", rules("P03"), frozenset({"P12"}), log.place, write.producer_id)
    return at_writes(scene, truth, [write, again], True, f"sequences from {again.base_sequence} stand twice, in two shapes")


def lost_epoch_begin(scene: Scene, rng: random.Random) -> Planted | None:
    """The first batch of a new epoch is lost."""
    found = [(log, w, after) for log, w, after, before in _firsts(scene) if before and scene.is_seen(log.place, before[-1])]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write, after = chosen
    log.writes = [w for w in log.writes if w is not write]
    truth = Truth("lost_epoch_begin", rules("P06"), NONE, log.place, write.producer_id)
    return at_writes(scene, truth, [after], True, f"the first batch of epoch {write.epoch} is gone")


def lost_begin(scene: Scene, rng: random.Random) -> Planted | None:
    """The very first batch of a producer is lost."""
    chosen = pick(rng, [(log, w, after) for log, w, after, before in _firsts(scene) if not before])
    if chosen is None:
        return None
    log, write, after = chosen
    log.writes = [w for w in log.writes if w is not write]
    # One case for all producers of a log that begin so. A marker that stands there before, of a transaction that wrote nothing here, tells
    # of an older epoch, and the new one does not begin at 0.
    earlier = [w for w in log.writes[: index_of(log, after)] if w.producer_id == write.producer_id and w.marker]
    marked = any(w.epoch != write.epoch for w in earlier)
    tells = {} if marked else {"tells": rules("P07")}
    proves, tells = (rules("P06"), ()) if marked else ((), rules("P07"))
    truth = Truth("lost_begin", proves, frozenset({"P07"}), log.place, tells=tells)
    return at_writes(scene, truth, [after], True, f"the first batch of producer {write.producer_id} is gone")


def plain_inside(scene: Scene, rng: random.Random) -> Planted | None:
    """A batch inside a transaction lacks the transactional flag."""
    found = [(log, t, data[1]) for log, t in with_data(scene) if len(data := scene.data(log, t)) > 1]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, write = chosen
    plain = replace(write, transaction=None)
    log.writes[index_of(log, write)] = plain
    truth = Truth("plain_inside", rules("P08"), frozenset({"P09"}), log.place, t.producer_id)
    return at_writes(scene, truth, [plain], True, f"a plain batch in transaction {t.number}")


def plain_outside(scene: Scene, rng: random.Random) -> Planted | None:
    """A producer writes without a transaction behind its last one."""
    found = []
    for log, t in with_data(scene):
        later = [w for w in log.writes if w.producer_id == t.producer_id and w.at > scene.data(log, t)[-1].at]
        if later == scene.markers(log, t) and len(later) == 1:
            found.append((log, t, later[0]))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, marker = chosen
    same = [w for w in _of_producer(log, t.producer_id) if w.epoch == marker.epoch]
    first = max((w.base_sequence + len(w.records) for w in same), default=0)
    told = scene.data(log, t)[-1].records[-1].timestamp_ms
    record = Record(b"plain", b"outside", marker.broker_ms if log.append_time else told)
    plain = Write(marker.at, marker.broker_ms, marker.leader_epoch, (record,), t.producer_id, marker.epoch, first)
    log.writes.insert(index_of(log, marker) + 1, plain)
    truth = Truth("plain_outside", rules("P09"), NONE, log.place, t.producer_id)
    return at_writes(scene, truth, [plain], True, f"a plain batch behind transaction {t.number}")


def _tails(scene: Scene) -> list[tuple[Log, int, list[Write]]]:
    """Of producers without transactions in logs that nobody cleans, the last batches with three records at least, and nothing behind."""
    found = []
    for log in scene.world.data_logs:
        plain = {w.producer_id for w in log.writes if w.producer_id >= 0 and not w.is_transactional}
        for producer_id in sorted(plain):
            last = _of_producer(log, producer_id)[-3:]
            same = len({w.epoch for w in last}) == 1 and all(scene.is_seen(log.place, w) for w in last)
            if same and sum(len(w.records) for w in last) >= 3 and not log.compacted:
                found.append((log, producer_id, last))
    return found


def _again(scene: Scene, log: Log, last: list[Write], producer_id: int, epoch: int, *, first: int = 0) -> list[Write]:
    """The same records once more, under another identity and from a sequence on."""
    at, planted = last[-1].at + 1, []
    for write in last:
        broker_ms, leader_epoch = leader(scene, log, at)
        records = tuple(replace(r, timestamp_ms=broker_ms) if log.append_time else r for r in write.records)
        planted.append(Write(at, broker_ms, leader_epoch, records, producer_id, epoch, first))
        insert(log, planted[-1])
        first += len(records)
    return planted


def resent_by_another(scene: Scene, rng: random.Random) -> Planted | None:
    """An application starts again under a new producer id, and sends its last records once more."""
    chosen = pick(rng, _tails(scene) if scene.world.shape.has("payloads") else [])
    if chosen is None:
        return None
    log, producer_id, last = chosen
    planted = _again(scene, log, last, producer_id + 50_000, 0)
    truth = Truth("resent_by_another", rules("P12"), NONE, log.place, producer_id + 50_000)
    return at_writes(scene, truth, planted, True, f"the last records of producer {producer_id} stand again")


def resent_in_next_epoch(scene: Scene, rng: random.Random) -> Planted | None:
    """A client gives batches up whose answer was lost, raises its epoch and sends them again."""
    chosen = pick(rng, _tails(scene) if scene.world.shape.has("payloads") else [])
    if chosen is None:
        return None
    log, producer_id, last = chosen
    planted = _again(scene, log, last, producer_id, last[-1].epoch + 1)
    truth = Truth("resent_in_next_epoch", rules("P13"), NONE, log.place, producer_id)
    return at_writes(scene, truth, planted, True, f"epoch {last[-1].epoch + 1} begins with the last records of the one before")


def resent_under_next_sequences(scene: Scene, rng: random.Random) -> Planted | None:
    """An application gets no answer in time, and gives its producer the last records once more."""
    found = [(log, producer_id, last) for log, producer_id, last in _tails(scene) if _differ(scene, log, last)]
    chosen = pick(rng, found if scene.world.shape.has("payloads") else [])
    if chosen is None:
        return None
    log, producer_id, last = chosen
    behind = last[-1].base_sequence + len(last[-1].records)
    planted = _again(scene, log, last, producer_id, last[-1].epoch, first=behind)
    truth = Truth("resent_under_next_sequences", rules("P16"), NONE, log.place, producer_id)
    return at_writes(scene, truth, planted, True, f"producer {producer_id} wrote its last records again from sequence {behind} on")


def _differ(scene: Scene, log: Log, last: list[Write]) -> bool:
    """Whether records of the log are as different as it takes to call equal ones a repeat, with these written once more."""
    seen = [write for write in log.writes if scene.is_seen(log.place, write)]
    written = [(record.key, record.value) for write in seen for record in write.records]
    again = [(record.key, record.value) for write in last for record in write.records]
    copies = Counter(written + again)
    repeats = sum(times - 1 for times in copies.values())
    return (
        len(written) >= LEAST_RECORDS and repeats * REPEATS_ONE_IN <= len(written) + len(again) and max(copies[one] for one in again) == 2
    )


def last_epochs(scene: Scene, rng: random.Random) -> Planted | None:
    """A producer without transactions has used up nearly all of its epochs."""
    chosen = pick(rng, _tails(scene))
    if chosen is None:
        return None
    log, producer_id, last = chosen
    write = replace(last[-1], epoch=32_400 + rng.randrange(300), base_sequence=0)
    log.writes[index_of(log, last[-1])] = write
    truth = Truth("last_epochs", (), NONE, log.place, producer_id, tells=rules("P14"))
    return at_writes(scene, truth, [write], True, f"epoch {write.epoch}")


def backfill(scene: Scene, rng: random.Random) -> Planted | None:
    """A producer without transactions writes records of the day before yesterday, on a topic with CreateTime."""
    found = []
    for log in scene.world.data_logs:
        seen = [w for w in log.writes if w.producer_id >= 0 and not w.is_transactional and scene.is_seen(log.place, w)]
        for n, write in enumerate(seen):
            if not (log.append_time or log.compacted) and any(w.producer_id == write.producer_id for w in seen[:n]):
                found.append((log, write))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, write = chosen
    truth = Truth("backfill", (), NONE, log.place, write.producer_id, tells=rules("P15"))
    return at_writes(scene, truth, [_older(log, write)], True, f"producer {write.producer_id} writes old records")


def _older(log: Log, write: Write) -> Write:
    records = tuple(replace(record, timestamp_ms=record.timestamp_ms - TWO_DAYS_MS) for record in write.records)
    older = replace(write, records=records)
    log.writes[index_of(log, write)] = older
    return older


def siblings(scene: Scene, rng: random.Random) -> Planted | None:
    """Two transactional ids do the same work at the same time: the records of one have the keys of the other's."""
    found: list[tuple[Log, Transaction, Transaction]] = []
    pairs = list(with_data(scene))
    for log, one in pairs:
        for where, other in pairs:
            first, second = scene.data(log, one), scene.data(log, other) if where is log else []
            # Ids as Kafka Streams makes them are fenced by their group.
            alone = one.producer_id == other.producer_id or all(STREAMS.fullmatch(t.transactional_id) for t in (one, other))
            if second and not alone and first[0].at < second[0].at < scene.markers(log, one)[0].at:
                found.append((log, one, other))
    chosen = pick(rng, found if scene.world.shape.has("payloads") else [])
    if chosen is None:
        return None
    log, one, other = chosen
    keys = [r.key for w in _of_producer(log, one.producer_id) for r in w.records]
    decidable = all(scene.is_seen(log.place, w) for t in (one, other) for w in _of_producer(log, t.producer_id))
    number = 0
    for write in _of_producer(log, other.producer_id):
        records = tuple(replace(r, key=keys[(number + n) % len(keys)]) for n, r in enumerate(write.records))
        number += len(records)
        log.writes[index_of(log, write)] = replace(write, records=records)
    truth = Truth("siblings", (), NONE, log.place, tells=rules("I06"), why=f"{one.transactional_id} and {other.transactional_id}")
    return Planted(replace(truth, decidable=decidable))
