"""What a console consumer printed of Kafka's own topics, beside what the dumps tell: for `eo-audit why`. It is told, and no rule judges it.

Its records have no offsets and no partitions: of one id, or of one group and partition, they are told in the order of print, which is that
of their log, and for each file by itself, as nothing says which of two files is the newer one.
"""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from eo_audit.report.results import Results
from eo_audit.report.subject import MOST_ROWS, at, cells, in_one, listed, table_of, with_rest
from eo_audit.report.values import maybe
from eo_audit.words import Row, place, timeout, visible

_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_TITLE = "a console consumer printed"
_END = "It prints no offsets and ends where it was stopped: what came later is not told"


def printed_of_id(name: str, results: Results, cluster: str | None) -> Iterator[RenderableType]:
    """What was printed of a transactional id: in which state it was last, since when, and its newest records."""
    found = _printed(results.rows("console_records", record_kind="transaction", transactional_id=name), results, cluster)
    for path, rows in found:
        yield Text(f"{visible(path)}: {_last_state(rows[-1], results)}")
    yield from _records([row for _, rows in found for row in reversed(rows)], dict(_paths(results)), results)


def printed_of_producer(number: int, results: Results, cluster: str | None) -> Iterator[RenderableType]:
    """What was printed of a producer id: whose it is, and its newest records."""
    found = _printed(results.rows("console_records", record_kind="transaction", producer_id=number), results, cluster)
    yield from _records([row for _, rows in found for row in reversed(rows)], dict(_paths(results)), results)


def printed_of_group(name: str, results: Results, cluster: str | None) -> Iterator[RenderableType]:
    """What was printed of a consumer group: of each partition the last offset that it committed."""
    found = _printed(results.rows("console_records", record_kind="commit", group=name), results, cluster)
    newest = [(path, {(str(row["topic"]), maybe(row, "partition") or 0): row for row in rows}) for path, rows in found]
    yield from _offsets([(path, row) for path, rows in newest for _, row in sorted(rows.items())], results)


def _offsets(last: list[tuple[str, Row]], results: Results) -> Iterator[RenderableType]:
    if not last:
        return
    table = table_of(_TITLE, "in", "group", "partition", "offset", "committed")
    for path, row in last[:MOST_ROWS]:
        offset = "deleted" if row["tombstone"] else row["committed_offset"]
        table.add_row(*cells(path, row["group"], place(row), offset, at(row["commit_timestamp_ms"], results)))
    yield from with_rest(table, len(last))
    yield Text(f"{_END}, and commits of open and of aborted transactions look like all others; no rule judges by it")


def printed_of_partition(name: str, results: Results, cluster: str | None) -> Iterator[RenderableType]:
    """What was printed of a partition: the ids whose last record leaves a transaction open there, and of each group its last offset."""
    topic, _, number = name.rpartition("-")
    if not number.isdecimal():
        return
    open_there = [row for row in results.rows("console_records", record_kind="transaction", status=list(_OPEN)) if _lists(row, name)]
    ids = {row["transactional_id"] for row in open_there}
    found = _printed(results.rows("console_records", record_kind="transaction", transactional_id=ids), results, cluster) if ids else []
    last = [row for _, rows in found for row in {row["transactional_id"]: row for row in rows}.values()]
    yield from _records([row for row in last if row["status"] in _OPEN and _lists(row, name)], dict(_paths(results)), results)
    commits = _printed(results.rows("console_records", record_kind="commit", topic=topic, partition=int(number)), results, cluster)
    newest = [(path, {str(row["group"]): row for row in rows}) for path, rows in commits]
    yield from _offsets([(path, row) for path, rows in newest for _, row in sorted(rows.items())], results)


def _lists(row: Row, name: str) -> bool:
    found = row["partitions"]
    return isinstance(found, list) and any(place(one) == name for one in found)


def _printed(rows: Iterable[Row], results: Results, cluster: str | None) -> list[tuple[str, list[Row]]]:
    """Rows by the file that they are in, in the order of print; of a file that was printed anew on a later night only the newest."""
    paths, files = dict(_paths(results)), dict[str, list[Row]]()
    printed = [row for row in in_one(rows, cluster) if row["section_id"] in paths]
    for row in sorted(printed, key=lambda row: (paths[row["section_id"]], maybe(row, "byte_offset") or 0)):
        files.setdefault(paths[row["section_id"]], []).append(row)
    return list(files.items())


def _paths(results: Results) -> Iterator[tuple[object, str]]:
    return ((row["section_id"], str(row["path"])) for row in results.rows("section_status", kind="console_records", is_read=True))


def _last_state(last: Row, results: Results) -> str:
    """In which state an id was, when the console was stopped."""
    if last["tombstone"]:
        return "removed (a tombstone), as the console printed last"
    start = maybe(last, "start_ms")
    since = f" since {at(start, results)}" if last["status"] in _OPEN and start is not None and start >= 0 else ""
    where = f", in {listed(last['partitions'], most=6)}" if last["partitions"] else ""
    limit = f", timeout {timeout(maybe(last, 'timeout_ms'))}"
    return f"{visible(last['status'])}{since}{where}{limit}, as the console printed last"


def _records(rows: list[Row], paths: dict[object, str], results: Results) -> Iterator[RenderableType]:
    if not rows:
        return
    table = table_of(f"{_TITLE}, last line first", "in", "transactional id", "producer", "epoch", "state", "updated", "partitions")
    for row in rows[:MOST_ROWS]:
        state = "removed" if row["tombstone"] else row["status"]
        who = (paths[row["section_id"]], row["transactional_id"], row["producer_id"], row["producer_epoch"])
        table.add_row(*cells(*who, state, at(row["last_update_ms"], results), listed(row["partitions"], most=3)))
    yield from with_rest(table, len(rows))
    yield Text(f"{_END}; no rule judges by it")
