"""`eo-audit why --group payments-app`: which offsets of a group count, which wait for a marker, and whether its lag can be read at all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from eo_audit.errors import ArgumentError
from eo_audit.report.results import Results
from eo_audit.report.subject import MOST_ROWS, Copy, Subject, at, cells, in_one, instances_of, of_broker, table_of, told_once, with_rest
from eo_audit.report.values import maybe
from eo_audit.report.why_console import printed_of_group
from eo_audit.words import Row, count, digits, place

_OUTSIDE = "the dumps tell of a group {}, but of no offsets that it committed in transactions, and so of none that wait for a marker"
# KIP-932: the share coordinator keeps the offsets of its groups in a topic of its own, and in no transaction.
_NOWHERE = (
    "no dump of __consumer_offsets tells of offsets that a group {} committed in transactions; those of a share group lie in "
    "__share_group_state, and never wait for a marker"
)


def group(name: str, results: Results, cluster: str | None = None) -> Subject:
    """A consumer group that commits offsets in transactions: the offsets that count, and those that wait for a marker.

    Args:
        name: of the group.
        results: of a finished audit.
        cluster: its name, where several have such a group.

    Raises:
        ArgumentError: no dump of __consumer_offsets tells of such a commit, though it may tell of the group.
    """
    logs = {row["replica_log_id"]: row for row in in_one(results.rows("visibility", topic="__consumer_offsets"), cluster)}
    commits = [row for row in results.rows("group_offsets", group=name) if row["replica_log_id"] in logs]
    printed = list(printed_of_group(name, results, cluster))
    if not (commits or printed):
        known = any(row["replica_log_id"] in logs for row in results.rows("offset_commits", group=name))
        raise ArgumentError(_OUTSIDE.format(name) if known else _NOWHERE.format(name))
    copies = [
        _copy(logs[log_id], [row for row in commits if row["replica_log_id"] == log_id], results)
        for log_id in sorted({row["replica_log_id"] for row in commits}, key=lambda one: of_broker(logs[one]))
    ]
    blocks = [*told_once(copies, results), *printed]
    clusters = {logs[row["replica_log_id"]]["cluster"] for row in commits}
    return Subject(f"group {name}", lambda row: row["group"] == name and row["cluster"] in clusters, blocks)


def _copy(log: Row, commits: Sequence[Row], results: Results) -> Copy:
    """What one copy of a partition of __consumer_offsets tells of a group."""
    pending = [row for row in commits if row["outcome"] == "pending"]
    line = Text(f"nothing is pending in {place(log)}")
    if pending:
        waits = f"{count(len(pending), 'commit')} of open transactions in {place(log)}: the group cannot fetch those offsets"
        line = Text(waits, "yellow")
    return Copy(log, line, list(_committed(log, commits, results)))


def _committed(log: Row, commits: Sequence[Row], results: Results) -> Iterator[RenderableType]:
    """What `kafka-consumer-groups.sh --describe` would say, and what makes OffsetFetch wait (KIP-447: UNSTABLE_OFFSET_COMMIT)."""
    instances = instances_of([row["instance_id"] for row in commits], results)
    table = table_of("", "partition", "offset", "lag", "to read", "committed", "transactional id", "producer", "pending", "of")
    idle: list[str] = []
    newest: dict[tuple[str, int], dict[str, Row]] = {}
    for row in sorted(commits, key=lambda row: maybe(row, "effective_offset") or maybe(row, "record_offset") or 0):
        kind = "pending" if row["outcome"] == "pending" else "counts" if row["wins"] or row["tombstone"] else "other"
        newest.setdefault((str(row["topic"]), maybe(row, "partition") or 0), {})[kind] = row
    for (topic, number), kinds in sorted(newest.items())[:MOST_ROWS]:
        counts, waiting = kinds.get("counts", {}), kinds.get("pending", {})
        offset = None if counts.get("tombstone") else maybe(counts, "committed_offset")
        lag = _lag(results, cluster=str(log["cluster"]), topic=topic, partition=number, offset=offset)
        idle += lag.idle
        who = (_id_of(counts, instances), counts.get("producer_id"))
        reach = ("deleted" if counts.get("tombstone") else offset, lag.offsets, lag.records, at(counts.get("commit_timestamp_ms"), results))
        table.add_row(*cells(f"{topic}-{number}", *reach, *who, waiting.get("committed_offset"), _id_of(waiting, instances)))
    yield from with_rest(table, len(newest))
    yield from (Text(sentence) for sentence in idle)


@dataclass(frozen=True)
class _Lag:
    """How far a group is behind in one partition: in offsets, as `kafka-consumer-groups.sh` counts them, and in records that it can read.

    None where the dumps do not tell. `idle` says why a lag will not go away by waiting for the group.
    """

    offsets: int | None = None
    records: int | None = None
    idle: tuple[str, ...] = ()


def _lag(results: Results, *, cluster: str, topic: str, partition: int, offset: int | None) -> _Lag:
    """Behind which offsets of the newest copy of the partition a group stands."""
    copies = results.rows("visibility", cluster=cluster, topic=topic, partition=partition)
    empty: Row = {}
    log = max(copies, key=lambda row: (maybe(row, "last_leader_epoch") or -1, maybe(row, "leo") or -1), default=empty)
    stable, end, known_from = maybe(log, "lso"), maybe(log, "hw"), maybe(log, "index_known_from")
    if offset is None or stable is None or end is None:
        return _Lag()
    lag = max(0, end - offset)
    if log["coverage"] != "full" or known_from is None or known_from > offset:
        return _Lag(lag)
    seen = results.rows("visible_ranges", replica_log_id=log["replica_log_id"], view="read_committed", reader="log_start")
    runs = ((maybe(row, "first_offset") or 0, maybe(row, "last_offset") or 0) for row in seen)
    records = sum(max(0, last - max(first, offset) + 1) for first, last in runs)
    if not lag or records:
        return _Lag(lag, records)
    # Markers and aborted records take offsets that no application ever gets (KIP-98), and the group's position stays before them.
    behind = "" if stable >= end else f", and what lies behind {stable} waits for an open transaction (eo-audit why {topic}-{partition})"
    why = f"up to {digits(min(stable, end))} there are only markers and aborted records{behind}"
    return _Lag(lag, 0, (f"{topic}-{partition}: lag {digits(lag)}, and nothing to read: {why}",))


def _id_of(commit: Row, instances: Mapping[object, Row]) -> object:
    return instances.get(commit.get("instance_id"), {}).get("transactional_id")
