"""What the answers of `eo-audit why` are made of: a subject, tables of a few rows, and names for where something lies."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eo_audit.report.results import Results
from eo_audit.report.terminal import console
from eo_audit.report.values import maybe
from eo_audit.words import Row, brokers, moment, partitions, shown, visible

MOST_ROWS = 10


@dataclass(frozen=True)
class Subject:
    """Of what `why` is asked: its words, a name for the findings about it, and what is told of it."""

    name: str
    is_about: Callable[[Row], bool]
    blocks: Sequence[RenderableType]


@dataclass(frozen=True)
class Copy:
    """What is told of one copy of a partition: a line, before which it is said whose copy that is, and what stands below the line."""

    log: Row
    line: Text
    below: Sequence[RenderableType]


def in_one(rows: Iterable[Row], cluster: str | None) -> list[Row]:
    """The rows of a cluster, or of all of them."""
    return [row for row in rows if cluster is None or row["cluster"] == cluster]


def clusters_of(results: Results, cluster: str | None) -> list[str]:
    """All clusters of the audit, or the one that was asked for."""
    return sorted(name for row in results.rows("clusters") if cluster in (None, name := str(row["cluster"])))


def of_broker(log: Row) -> tuple[str, int]:
    """Puts the copies of a partition in an order."""
    return str(log["cluster"]), -1 if log["broker"] is None else maybe(log, "broker") or 0


def told_once(copies: Iterable[Copy], results: Results) -> Iterator[RenderableType]:
    """What is told of copies, in their order; of copies of one cluster that nothing tells apart, once."""
    alike: dict[tuple[object, str], list[Copy]] = {}
    for copy in copies:
        alike.setdefault((copy.log["cluster"], _as_text(copy)), []).append(copy)
    for number, same in enumerate(alike.values()):
        if number:
            yield Text("")
        where = _copies([copy.log for copy in same], results)
        yield Text.assemble(f"{where}: " if where else "", same[0].line, style=same[0].line.style)
        yield from same[0].below


def _as_text(copy: Copy) -> str:
    screen = console(StringIO())
    with screen.capture() as said:
        screen.print(copy.line, *copy.below)
    return said.get()


def _copies(logs: Sequence[Row], results: Results) -> str:
    """Whose copies of a partition these logs are: of which cluster, where the audit has several, and of whom, where the dumps name it."""
    named = [f"cluster {shown(str(logs[0]['cluster']))}"] if len(results.rows("clusters")) > 1 else []
    numbers = [log["broker"] for log in logs if log["broker"] is not None]
    return ", ".join([*named, *([brokers(numbers)] if numbers else [])])


def in_cluster(row: Row, results: Results) -> str:
    """Of which cluster a row is, where the audit has several."""
    return f" of {shown(str(row['cluster']))}" if len(results.rows("clusters")) > 1 else ""


def instances_of(ids: Iterable[object], results: Results) -> dict[object, Row]:
    """Transactions by their ids; nobody's are left out."""
    wanted = {one for one in ids if one is not None}
    return {row["instance_id"]: row for row in results.rows("transaction_instances", instance_id=wanted)} if wanted else {}


def listed(places: object, *, most: int) -> str:
    """Partitions of a list of rows or structs, the first ones by name; nothing where there is no list."""
    return partitions(((one["topic"], one["partition"]) for one in places), most=most) if isinstance(places, list) else ""


def at(ms: object, results: Results) -> str:
    """A time; on the day of the audit without its date."""
    return moment(ms, results.verdict.get("as_of_ms"))


def known(value: object) -> str:
    """A number as it is; a dash where nobody knows."""
    return "–" if value is None else str(value)


def table_of(title: str, *columns: str) -> Table:
    """A table without rows."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False, show_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def cells(*values: object) -> Iterator[str]:
    """Values as cells, a dash where nobody knows."""
    return (visible(known(value)) for value in values)


def with_rest(table: Table, number: int) -> Iterator[RenderableType]:
    """A table of the first rows, and how many there are beside them."""
    yield table
    if number > MOST_ROWS:
        yield Text(f"and {number - MOST_ROWS:,} more")


def cause(instance: Row) -> str:
    """Who aborted it, as far as the coordinator's log tells."""
    cause = instance.get("abort_cause")
    return f" ({str(cause).replace('_', ' ')})" if cause else ""
