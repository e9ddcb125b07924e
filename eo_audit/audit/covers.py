"""What a verdict is about: how many partitions were judged, and from when to when their records are.

A data batch of a topic with CreateTime holds the word of its client, which may be of any year; markers, other control batches and batches
with LogAppendTime are stamped by the broker that leads the partition. Both ranges are told, and never mixed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eo_audit.rules.replica_log import Log
from eo_audit.words import Row, count, moment_range

# Client clocks that differ by less from the brokers' say nothing that these do not.
_WORTH_TELLING_MS = 3_600_000


@dataclass(frozen=True)
class Times:
    """First and last batch timestamp (ms) of what was judged of a log: by a broker's clock, and by those of its clients."""

    broker: tuple[int, int] | None = None
    clients: tuple[int, int] | None = None


def covers(logs: Iterable[Log], times: Mapping[int, Times]) -> dict[str, object]:
    """What verdict.json says of it.

    Args:
        logs: every replica log of which anything was dumped.
        times: of each log with a judged batch, by its id.
    """
    read = [log for log in logs if log.numbers.text("coverage") not in ("none", None)]
    # Kafka's own topics are read as witnesses; what they say goes back further than the records in question.
    told = [log for log in read if not log.numbers.flag("is_internal")] or read
    own = [_as_stamped(log, times[log.log_id]) for log in told if log.log_id in times]
    by_brokers, by_clients = _whole(item.broker for item in own), _whole(item.clients for item in own)
    return {
        "partitions": len({log.place for log in told}),
        "replica_logs": len(told),
        "broker_first_ms": by_brokers[0],
        "broker_last_ms": by_brokers[1],
        "client_first_ms": by_clients[0],
        "client_last_ms": by_clients[1],
    }


def _as_stamped(log: Log, found: Times) -> Times:
    """The clients that write to Kafka's own topics are brokers."""
    first, last = _whole((found.broker, found.clients))
    return found if not log.numbers.flag("is_internal") or first is None or last is None else Times(broker=(first, last))


def _whole(ranges: Iterable[tuple[int, int] | None]) -> tuple[int, int] | tuple[None, None]:
    known = [each for each in ranges if each is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else (None, None)


def sentence(covered: Row) -> str:
    """`6 partitions (18 logs), 2026-11-21 04:15:10 to 04:16:23 UTC by brokers' clocks`.

    Args:
        covered: from `covers`.
    """
    partitions, logs = (_number(covered, name) for name in ("partitions", "replica_logs"))
    what = count(partitions, "partition") + f" ({count(logs, 'log')})" * (logs != partitions)
    by_brokers, by_clients = (_told(covered, whose) for whose in ("broker", "client"))
    if by_brokers is None:
        return f"{what}, {'no batch with a time' if by_clients is None else f'{moment_range(*by_clients)} as their clients say'}"
    said = f"{what}, {moment_range(*by_brokers)} by brokers' clocks"
    if by_clients is None or (by_clients[0] >= by_brokers[0] - _WORTH_TELLING_MS and by_clients[1] <= by_brokers[1] + _WORTH_TELLING_MS):
        return said
    return f"{said}; as clients say, {moment_range(*by_clients)}"


def _number(covered: Row, name: str) -> int | None:
    value = covered[name]
    return value if isinstance(value, int) else None


def _told(covered: Row, whose: str) -> tuple[int, int] | None:
    first, last = (_number(covered, f"{whose}_{which}_ms") for which in ("first", "last"))
    return None if first is None or last is None else (first, last)
