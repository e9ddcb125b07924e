"""What live brokers said (`kafka-transactions.sh`), beside what the dumps tell: for `eo-audit why`. It is told, and no rule judges it."""

from collections.abc import Callable, Iterator

from rich.console import RenderableType

from eo_audit.report.results import Results
from eo_audit.report.subject import MOST_ROWS, at, cells, in_one, listed, table_of, with_rest
from eo_audit.report.values import maybe
from eo_audit.words import Row, place, timeout


def of_partition(name: str, results: Results, cluster: str | None) -> Iterator[RenderableType]:
    """What was answered of a partition: who writes there, what is open or hangs there, whose transaction lists it."""
    # An id may be called like a partition: only what has a topic is a place.
    yield from _told(lambda row: any(place(one) == name for one in (row, *_partitions(row)) if one["topic"] is not None), results, cluster)


def of_id(name: str, results: Results, cluster: str | None) -> Iterator[RenderableType]:
    """What was answered of a transactional id."""
    yield from _told(lambda row: row["transactional_id"] == name, results, cluster)


def of_producer(number: int, results: Results, cluster: str | None) -> Iterator[RenderableType]:
    """What was answered of a producer id."""
    yield from _told(lambda row: row["producer_id"] == number, results, cluster)


def _partitions(row: Row) -> list[Row]:
    found = row["partitions"]
    return found if isinstance(found, list) else []


def _told(is_about: Callable[[Row], bool], results: Results, cluster: str | None) -> Iterator[RenderableType]:
    # What was answered on an earlier night, and again since, says nothing of now.
    paths = {row["section_id"]: row["path"] for row in results.rows("section_status", kind="broker_answers", is_read=True)}
    found = [row for row in in_one(results.rows("broker_answers"), cluster) if row["section_id"] in paths and is_about(row)]
    if not found:
        return
    found.sort(key=lambda row: (str(paths[row["section_id"]]), maybe(row, "byte_offset") or 0))
    table = table_of("brokers answered", "to", "in", "transactional id", "producer", "epoch", "answer")
    for row in found[:MOST_ROWS]:
        who = (row["transactional_id"], row["producer_id"], row["producer_epoch"])
        table.add_row(*cells(row["command"], paths[row["section_id"]], *who, _answer(row, results)))
    yield from with_rest(table, len(found))


def _answer(row: Row, results: Results) -> str:
    """One answer in words: the state of an id, or what is open in a partition."""
    if row["status"] is not None:
        start, lasted, names = maybe(row, "start_ms"), maybe(row, "duration_ms"), listed(row["partitions"], most=6)
        asked = f", asked at {at(start + lasted, results)}" if start is not None and lasted is not None else ""
        where = f", in {names}" if names else ""
        limit = f", timeout {timeout(maybe(row, 'timeout_ms'))}" if row["timeout_ms"] is not None else ""
        return f"{row['status']}{where}{limit}{asked}"
    where = "" if row["topic"] is None else f" in {place(row)}"
    opened = row["current_txn_first_offset"]
    state = "hangs" if row["command"] == "find-hanging" else "open"
    begins = f"nothing is open{where}" if opened is None else f"{state}{where} from offset {opened}"
    return f"{begins}, newest batch or marker at {at(row['last_timestamp_ms'], results)}"
