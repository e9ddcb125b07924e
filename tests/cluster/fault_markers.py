"""Faults of markers and of transactional data: written late, not registered, lost, flipped."""

import random
from collections.abc import Sequence
from dataclasses import replace

from eo_audit.model.alignment.clocks import ROUNDING_MS
from tests.cluster.brokers import Log, Record, Transaction, Write
from tests.cluster.planting import OPEN, VISIBLE, Planted, at_writes, index_of, insert, leader, move, pick, rules, stamped, with_data
from tests.cluster.truth import NoPlace, Scene, Truth

FEW = 4  # transactions of which too little remains when a marker is lost


def late_write(scene: Scene, rng: random.Random) -> Planted | None:
    """A produce request of an old client arrives behind the marker; the producer never comes back to the partition (KAFKA-14402)."""
    found = [
        (log, t)
        for log, t in with_data(scene)
        if not t.is_tv2 and t.marker_epoch == t.epoch and scene.listing(log.place, t.producer_id)[-1] is t and len(scene.data(log, t)) > 1
    ]
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, transaction = chosen
    at = scene.markers(log, transaction)[-1].at + rng.randrange(1, 40)
    if at > min(scene.plan.moments(log.place)):
        return None
    write = stamped(scene, log, move(log, scene.data(log, transaction)[-1], at))
    decidable = scene.is_followed(log, at, transaction)
    # While the next transaction runs elsewhere, a late record looks like one that this next one wrote without registering.
    later = any(other.producer_id == transaction.producer_id and other.number > transaction.number for other in scene.world.transactions)
    must = rules("T01", "T02|T07" if later else "T02")
    truth = Truth("late_write:hangs", must, OPEN | {"T07"}, log.place, transaction.producer_id, transaction.transactional_id)
    return at_writes(scene, truth, [write], decidable, f"data of transaction {transaction.number} stands behind its {transaction.decision}")


def late_write_merged(scene: Scene, rng: random.Random) -> Planted | None:
    """The same, but the next transaction takes it along. Order cannot tell whose it is: only a record's time hints at it."""
    found = []
    for log, t in with_data(scene):
        row = scene.listing(log.place, t.producer_id)
        after = next((other for other in row[row.index(t) + 1 :] if other.epoch == t.epoch and scene.data(log, other)), None)
        if not t.is_tv2 and after is not None and row.index(after) == row.index(t) + 1:
            found.append((log, t, after))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, transaction, after = chosen
    before = scene.data(log, after)[0].at
    at = scene.markers(log, transaction)[-1].at
    write = stamped(scene, log, move(log, scene.data(log, transaction)[-1], min(at + 3, max(before - 1, at))))
    # Running brokers were dumped before the next transaction had taken it along: then it hangs.
    told = min(moment for place in (log.place, scene.coordinator(after)) for moment in scene.plan.moments(place))
    may = frozenset({"T07", "L02", "L03"}) | (OPEN if after.ended_at is None or after.ended_at > told else frozenset())
    truth = Truth("late_write:merged", rules("T02|T15"), may, log.place, transaction.producer_id, transaction.transactional_id)
    return at_writes(scene, truth, [write], False, f"data of transaction {transaction.number} stands behind its {transaction.decision}")


def unregistered(scene: Scene, rng: random.Random) -> Planted | None:
    """A client writes to a partition that the coordinator never heard of, in no later transaction either (verification off)."""
    found = []
    for t in scene.world.transactions:
        for log in scene.world.data_logs:
            later = [other for other in scene.listing(log.place, t.producer_id) if other.number >= t.number]
            if not t.is_tv2 and scene.is_told(t) and not later and t.began_at + 1 < min(scene.plan.moments(log.place)):
                found.append((log, t))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t = chosen
    at = t.began_at + 1
    broker_ms, leader_epoch = leader(scene, log, at)
    same = [w for w in log.writes if w.producer_id == t.producer_id and w.epoch == t.epoch and w.marker is None]
    first = max((w.base_sequence + len(w.records) for w in same), default=0)
    record = Record(b"unregistered", b"stray", broker_ms if log.append_time else at)
    write = Write(at, broker_ms, leader_epoch, (record,), t.producer_id, t.epoch, first, transaction=t)
    insert(log, write)
    never = not scene.listing(log.place, t.producer_id)
    # The one before may have listed the partition, for all that the cleaner left of it.
    before = [other for other in scene.world.transactions if other.producer_id == t.producer_id and other.number < t.number][-1:]
    # Where the head of the log was deleted, one that did list it may have lost its marker as well: its data would look the same.
    cut = scene.world.shape.has("retention") or scene.world.shape.has("delete_records")
    whose = "T02|T05|T07" if cut else "T02|T07"
    told = all(map(scene.is_told, before)) and not scene.world.shape.has("cleaned_coordinator")  # what is left may lack its partitions
    # What went with the head of the coordinator's log may have listed the partition: order does not tell.
    headless = never and not scene.whole_head(scene.coordinator(t))
    must = rules("T01") if headless else rules("T01", "T07") if never else rules("T01", whose) if told else rules("T01")
    truth = Truth("unregistered", must, OPEN | {"T02", "T07"} | ({"T05"} if cut else set()), log.place, t.producer_id, t.transactional_id)
    return at_writes(scene, truth, [write], scene.is_followed(log, at, t), f"transaction {t.number} does not list the partition")


def lost_marker(scene: Scene, rng: random.Random) -> Planted | None:
    """A partition never got its marker, or lost it."""
    chosen = pick(rng, list(with_data(scene)))
    if chosen is None:
        return None
    log, t = chosen
    decidable = scene.can_count(log, t) and scene.is_followed(log, t.ended_at or 0, t)
    # So few markers fit other transactions as well, by a clock that was set once.
    if not scene.is_named_by_epoch(t) and not scene.is_stopped(log, t):
        listing = scene.listing(log.place, t.producer_id)
        # Behind a new leader, whose clock nobody knows, the markers that are left may be those of the first transactions or of the last.
        led_anew = log.leadership.change_between(listing[0].began_at, listing[-1].began_at) is not None
        decidable = decidable and len(listing) > FEW and not led_anew and not _fit_those_before(scene, log, t, listing)
    writes = scene.data(log, t)
    markers = {id(w) for w in scene.markers(log, t)}
    log.writes = [w for w in log.writes if id(w) not in markers]
    truth = Truth("lost_marker", rules("T05|T06|T15"), OPEN | VISIBLE | {"T10", "T02"}, log.place, t.producer_id, t.transactional_id)
    planted = at_writes(scene, truth, writes, decidable, f"the {t.decision} of transaction {t.number} is missing")
    # Of equal markers in a row any may be the one that is missing.
    return planted if scene.is_named_by_epoch(t) else replace(planted, truth=replace(planted.truth, offsets=None))


def _fit_those_before(scene: Scene, log: Log, lost: Transaction, listing: Sequence[Transaction]) -> bool:
    """Whether each marker that is left fits the transaction before its own, by one distance of the clocks: then the last transaction's is
    still to come, and nothing is missing."""
    dumped = (scene.markers(log, t)[:1] for t in listing if t is not lost)
    left = [marker for markers in dumped for marker in markers if scene.is_seen(log.place, marker)]
    ended = [t for t in listing if t.ended_at is not None]
    pairs = [(marker, t, t.ended_at or 0) for marker, t in zip(left, ended, strict=False)]
    least = max((marker.broker_ms - ended_at for marker, _, ended_at in pairs), default=0)
    most = min((marker.broker_ms - (t.decided_at or 0) for marker, t, _ in pairs), default=0)
    return all(marker.marker == t.decision for marker, t, _ in pairs) and least <= most + ROUNDING_MS


def flipped_marker(scene: Scene, rng: random.Random) -> Planted | None:
    """A partition says COMMIT where the coordinator decided ABORT, or the other way."""
    chosen = pick(rng, list(with_data(scene)))
    if chosen is None:
        return None
    log, t = chosen
    other = "ABORT" if t.decision == "COMMIT" else "COMMIT"
    decidable = scene.can_count(log, t) and (scene.is_named_by_epoch(t) or scene.is_stopped(log, t))
    log.writes = [replace(w, marker=other) if w.transaction is t and w.marker else w for w in log.writes]
    must = rules("T06")
    if not scene.is_named_by_epoch(t) and scene.has_empty(log, t):
        must = (must[0] | {"T15"},)  # or the right marker is missing, and the next one was sent twice
    truth = Truth(f"flipped_marker:{other}", must, VISIBLE | {"T10"}, log.place, t.producer_id, t.transactional_id)
    writes = [w for w in log.writes if w.transaction is t]
    return at_writes(scene, truth, writes, decidable, f"{other} where transaction {t.number} was decided {t.decision}")


def cleaned_marker(scene: Scene, rng: random.Random) -> Planted | None:
    """The cleaner took a COMMIT while records of its transaction are left (KAFKA-14055)."""
    found = []
    for log in scene.world.data_logs:
        state = scene.states[log.place]
        below = [batch for batch in state.batches if state.log_start <= batch.base < (state.cleaned_to or 0)]
        for at, batch in enumerate(below):
            mine = [b for b in below if b.write.transaction is not None and b.write.producer_id == batch.write.producer_id]
            data = [b for b in below[:at] if b.write.transaction is batch.write.transaction and b.write.marker is None and b.records]
            sent = [b for b in below if b.write.marker and b.write.transaction is batch.write.transaction]
            later = [b for b in mine if b.base > batch.base and b.write.epoch != batch.write.epoch]
            after = next((b for b in mine if b.base > batch.base), None)
            # Else the next marker of the epoch closes what this one should have closed, and nothing is to be seen.
            if (
                batch.write.marker == "COMMIT"
                and sent == [batch]  # of two copies the first one has closed the data
                and data
                and after is not None
                and after.records
                and after in later
                and not after.write.marker
            ):
                found.append((log, batch, data))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, batch, data = chosen
    t = batch.write.transaction
    assert t is not None
    scene.plan.cleaned_markers.add(id(batch.write))
    may = OPEN | VISIBLE | {"T10", "T02", "T07"}
    truth = Truth("cleaned_marker", rules("X02"), may, log.place, t.producer_id, t.transactional_id)
    truth = replace(truth, decidable=scene.plan.checkpoints, why=f"the cleaner took the COMMIT of transaction {t.number}")
    return Planted(truth)


def cleaned_abort(scene: Scene, rng: random.Random) -> Planted | None:
    """The cleaner took an ABORT and left its records, and the COMMIT behind it has the same epoch (TV0 and TV1)."""
    found = []
    for log in scene.world.data_logs:
        state = scene.states[log.place]
        cleaned = {id(batch.write) for batch in state.batches if state.log_start <= batch.base < (state.cleaned_to or 0)}
        for t in scene.world.transactions:
            listing, markers = scene.listing(log.place, t.producer_id), scene.markers(log, t)
            after = next(iter(listing[listing.index(t) + 1 :]), None) if t in listing else None
            is_taken = t.decision == "ABORT" and not t.is_tv2 and len(markers) == 1 and id(markers[0]) in cleaned
            is_followed = (
                after is not None and after.decision == "COMMIT" and t.marker_epoch == t.epoch == after.epoch and scene.is_told(after)
            )
            if is_taken and is_followed and after is not None and scene.data(log, after) and scene.data(log, t) and scene.is_told(t):
                found.append((log, t, after, markers[0]))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, after, marker = chosen
    scene.plan.cleaned_before.add(id(marker))
    batches = scene.state(log.place).batches
    left = [batch for batch in batches if batch.write.transaction is t and batch.records]
    if not left:
        raise NoPlace
    end = next(batch.base for batch in batches if batch.write.transaction is after and batch.write.marker)
    between = [batch.write.transaction for batch in batches if left[0].base < batch.base < end and batch.write.marker]
    # Nothing but order tells: a marker between them, of a transaction that was completed before the next one began. A client whose clock is
    # behind makes them look like late data of an older one.
    decidable = not any(map(scene.world.shape.has, ("client_clocks", "event_times"))) and any(
        one is not None and scene.coordinator(one) == scene.coordinator(t) and scene.is_told(one) and (one.ended_at or 0) < after.began_at
        for one in between
    )
    why = f"the cleaner took the ABORT of transaction {t.number}, and left offset {left[0].base}"
    truth = Truth("cleaned_abort", rules("T15", "L02"), OPEN | VISIBLE | {"T10", "T02"}, log.place, t.producer_id, t.transactional_id)
    return Planted(replace(truth, decidable=decidable, why=why), frozenset({(log.place, t.number)}))


def repeated_marker(scene: Scene, rng: random.Random) -> Planted | None:
    """A marker whose request was delayed arrives a second time, in the middle of the producer's next transaction (KAFKA-19446)."""
    found = []
    for log, t in with_data(scene):
        later = scene.listing(log.place, t.producer_id)
        nexts = later[later.index(t) + 1 :][:1]
        data = scene.data(log, nexts[0]) if nexts else []
        if data and scene.is_named_by_epoch(t) and nexts[0].epoch == t.marker_epoch and all(scene.is_seen(log.place, w) for w in data):
            found.append((log, t, nexts[0], data[0]))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, cut, before = chosen
    marker = scene.markers(log, t)[0]
    copy = replace(marker, at=before.at, broker_ms=before.broker_ms, leader_epoch=before.leader_epoch)
    log.writes.insert(index_of(log, before) + 1, copy)
    may = OPEN | VISIBLE | {"T02", "T05", "T07", "T10", "T04"}
    # Under the next transaction's data an ABORT of before looks like an operator's: it has that data's epoch.
    by_tool = t.decision == "ABORT"
    must, tells = rules("T11|T06" if by_tool else "T11"), rules()
    if by_tool and cut.decision == "ABORT":
        must, tells = rules(), rules("T11|T13")
    truth = Truth("repeated_marker", must, may, log.place, t.producer_id, t.transactional_id, tells=tells)
    return at_writes(scene, truth, [before, copy], True, f"the {t.decision} of transaction {t.number} came again")


def cut_off_marker(scene: Scene, rng: random.Random) -> Planted | None:
    """All replicas lost their last bytes, a marker, in a power cut; they were dumped seconds after its transaction was complete."""
    found = []
    for log, t in with_data(scene):
        marker, (copy, *others) = scene.markers(log, t)[-1], scene.copies(log.place)
        last = max((write for write in log.writes if write.at <= copy.moment), key=lambda write: write.at)
        if scene.plan.times and not others and last is marker and scene.markers(log, t) == [marker] and scene.can_count(log, t):
            found.append((log, t, marker, copy))
    chosen = pick(rng, found)
    if chosen is None:
        return None
    log, t, marker, copy = chosen
    log.writes.remove(marker)
    # One replica alone may be a follower's that lags: then nobody knows.
    brokers = rng.sample(sorted(scene.world.clocks), rng.choice((1, 2, 2)))
    scene.plan.copies.remove(copy)
    copies = [*(replace(copy, broker=broker) for broker in brokers), *scene.plan.copies]
    scene.plan.copies = [replace(other, late_ms=12_000) for other in copies]
    truth = Truth("cut_off_marker", rules("T05"), OPEN | VISIBLE | {"T10", "T02"}, log.place, t.producer_id, t.transactional_id)
    return at_writes(scene, truth, scene.data(log, t), True, f"the {t.decision} of transaction {t.number} was cut off")
