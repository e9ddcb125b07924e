"""A topic that was deleted and created anew under its name: its logs begin again at offset 0, and what stood in them is nowhere."""

from dataclasses import replace

from tests.cluster.brokers import Leadership, Log, Term, World

TOPIC = "orders"


def create_anew(world: World) -> None:
    """While all producers are stopped; where a transaction that lists the topic runs all the same, it stays as it is.

    Nor where transaction.version was lowered: under 2 a leader refuses the first batch of a producer in a new log that goes on with the
    sequences of its epoch (`ProducerAppendInfo.checkSequence`), and all other epochs of that version begin at 0.
    """
    if world.lowered:
        return
    at = world.away.stop
    listing = [t for t in world.transactions if any(topic == TOPIC for topic, _ in t.partitions)]
    if all(t.began_at >= at or (t.ended_at is not None and t.ended_at < at - 500) for t in listing):
        for log in world.logs.values():
            if log.topic == TOPIC:
                _begin_anew(log, at)


def _begin_anew(log: Log, at: int) -> None:
    """A producer goes on with its sequences (`TransactionManager` keeps them by topic and partition); leader epochs begin at 0."""
    term = log.leadership.elected(at)
    before = log.leadership.term(at).epoch
    log.writes = [replace(write, leader_epoch=write.leader_epoch - before) for write in log.writes if write.at >= at]
    later = [replace(one, epoch=one.epoch - term.epoch) for one in log.leadership.terms if one.at > at]
    first = Term(log.leadership.terms[0].at, term.broker, 0)
    log.leadership = Leadership((first, *later), tuple(raised for raised in log.leadership.raised if raised > at))
