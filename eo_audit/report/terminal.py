"""The end of a run on a terminal: one table that fits 100 columns, where the results lie, and what to type next.

Without a terminal there are no colours and no progress. Every text of a dump passes `visible`: no control character reaches the screen.
"""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import IO

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from eo_audit.audit.sentences import acceptances, copies_of, held_back
from eo_audit.report.content import Content, Incident, Shown
from eo_audit.report.show import Element
from eo_audit.rules.commands import address_for
from eo_audit.words import Row, brokers, moment, offset_range, place, some, visible

WIDTH = 100
MOST_INCIDENTS = 12  # a screen and a half; all of them are in report.html and findings.jsonl
MOST_REMEDIES = 5
MOST_ROWS = 8
MOST_NAMED = 4
PLACE_WIDTH = 26
RULES_WIDTH = 14
STYLES = {"fail": "bold red", "unknown": "bold yellow", "pass": "bold green", "critical": "bold red", "error": "red", "warning": "yellow"}
_COMMAND = re.compile(r"`([^`]+)`")


def console(stream: IO[str] | None = None) -> Console:
    """Where results go: at most 100 columns wide, without colours where nobody watches."""
    screen = Console(file=stream or sys.stdout, markup=False, highlight=False, emoji=False, soft_wrap=False)
    # A file or a pipe has no width: the same text everywhere, so that two runs can be compared.
    screen.width = min(screen.width, WIDTH) if screen.is_terminal else WIDTH
    return screen


@contextmanager
def watched() -> Iterator[Callable[[str, int, int], None]]:
    """Shows the steps of a run while it works, if a person watches: on standard error, gone when the run is over.

    Yields:
        A function that is told what is done, how much of it, and of how much.
    """
    screen = Console(stderr=True, highlight=False)
    # On standard error: what stands on standard output may go into a file or a mail.
    columns = (SpinnerColumn("line"), TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not (screen.is_terminal and sys.stdout.isatty())) as bars:
        steps: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in steps:
                steps[what] = bars.add_task(visible(what), total=total)
            bars.update(steps[what], completed=done, total=total)

        yield advance


def show_result(content: Content, out: Path, screen: Console) -> None:
    """Print the end of a run.

    Args:
        content: verdict, incidents and blind spots (`report.content.build_content`).
        out: the folder of the results, as the user named it.
        screen: from `console`.
    """
    with without_blanks(screen):
        screen.print()
        screen.print(summary(content, out))
        if content.covers:
            # Beside the table, whose columns would break it.
            screen.print(Text(f"Covers {content.covers}."))
        for block in (_results(out), *_next_steps(content, out, many=content.many_clusters)):
            screen.print(block, soft_wrap=isinstance(block, Text))


@contextmanager
def without_blanks(screen: Console) -> Iterator[None]:
    """Prints without blanks at the ends of lines: rich fills every cell with them, and whoever copies a line should not copy those."""
    with screen.capture() as captured:
        yield
    screen.file.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def show_element(element: Element, screen: Console) -> None:
    """Print one element of a dump file: its lines as they stand there, then its fields."""
    screen.print(Text(f"{element.what}  {visible(element.where)}", "bold"), soft_wrap=True)
    for line in element.lines:
        screen.print(Text(visible(line)), soft_wrap=True)
    width = max((len(name) for name, _ in element.fields), default=0)
    for name, value in element.fields:
        screen.print(Text(f"  {name:{width}}  {visible(value)}"), soft_wrap=True)


def summary(content: Content, out: Path) -> Table:
    """The one table: verdict, incidents, what is held back, what was not covered."""
    verdict = str(content.verdict["verdict"])
    # Only the verdict in capitals: `PASS, but` has a but to be read.
    label = content.label.replace(verdict, verdict.upper())
    title = Text.assemble((label, STYLES["unknown" if label != verdict.upper() else verdict]), "  ", visible(content.headline))
    many = content.many_clusters
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="", expand=True, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", max_width=PLACE_WIDTH)
    table.add_column(overflow="fold", max_width=17)
    table.add_column(overflow="fold", ratio=1)
    sections = (
        _incident_rows(content, out, many=many),
        _accepted_rows(content),
        _held_back_rows(content, many=many),
        _blind_rows(content),
        _transaction_rows(content.verdict),
        _input_rows(content.verdict),
    )
    for section in sections:
        for cells in section:
            table.add_row(*cells)
        table.add_section()
    return table


Cells = tuple[RenderableType, ...]


def _cell(row: Row, *, many: bool) -> str:
    """The same for a column of the table: a long one breaks behind the cluster."""
    where = _where(row, many=many)
    return where if len(where) <= PLACE_WIDTH else where.replace(":", ":\n", 1) if many else where


def _where(row: Row, *, many: bool) -> str:
    """orders-3; with the cluster in front where there are several."""
    here = place(row)
    return visible(f"{row['cluster']}:{here}" if many and here != row["cluster"] else here)


def _incident_rows(content: Content, out: Path, *, many: bool) -> Iterator[Cells]:
    """One row per incident: what blocks first; those that are only information share one, but for what consumers wait for."""
    told = [incident for incident in content.incidents if incident.severity != "info" or content.is_waiting(incident)]
    for incident in told[:MOST_INCIDENTS]:
        yield _incident_row(incident, many=many, waiting=content.is_waiting(incident))
    rest = Counter("waiting" if content.is_waiting(incident) else incident.severity for incident in told[MOST_INCIDENTS:])
    if rest:
        yield "", "", "", f"and {_counted(rest)} more: eo-audit export findings --out {shlex.quote(str(out))}"
    # Notes by rule and number: a healthy cluster may have thousands, of empty markers alone.
    quiet = [incident for incident in content.incidents if incident.severity == "info" and not content.is_waiting(incident)]
    notes = Counter(f"{incident.cause.row['rule']} {incident.cause.row['slug']}" for incident in quiet)
    if notes:
        yield "info", "", "", "only for information: " + ", ".join(f"{name} ({count})" for name, count in sorted(notes.items()))


def _incident_row(incident: Incident, *, many: bool, waiting: bool) -> Cells:
    row = incident.cause.row
    what = Text.assemble((f"{row['rule']} {row['slug']}", "bold"), "  ", visible(row["message"]))
    also = _effects(incident.effects, many=many)
    severity = Text(incident.severity, STYLES.get(incident.severity, ""))
    if incident.muted or waiting:
        severity = Text("accepted", "dim") if incident.muted else Text("waiting", STYLES["warning"])
    where = "\n".join(filter(None, (_cell(row, many=many), incident.cause.brokers)))
    return severity, where, offset_range(row), Text("\n").join([what, Text(also)] if also else [what])


def _effects(effects: Sequence[Shown], *, many: bool) -> str:
    """`also T02 late-write (orders-0), L01 lso-stuck (orders-0, orders-1)`."""
    places: dict[str, list[str]] = {}
    for effect in effects:
        places.setdefault(f"{effect.row['rule']} {effect.row['slug']}", []).append(_where(effect.row, many=many))
    return "also " + ", ".join(f"{name} ({some(_each_once(where), most=MOST_NAMED)})" for name, where in places.items()) if places else ""


def _accepted_rows(content: Content) -> Iterator[Cells]:
    """Who accepted how many findings until when, and why."""
    for sentence in acceptances(content.accepted):
        yield "accepted", "", "", visible(sentence)


def _held_back_rows(content: Content, *, many: bool) -> Iterator[Cells]:
    """Partitions whose LSO lies below their high watermark, by the copies that reach furthest; those that agree share a row."""
    rows: dict[tuple[object, ...], list[Row]] = {}
    for log in _furthest(content.partitions):
        lso, hw = log.get("lso"), log.get("hw")
        if isinstance(lso, int) and isinstance(hw, int) and lso < hw:
            rows.setdefault((log["cluster"], log["topic"], log["partition"], lso, hw), []).append(log)
    copies = copies_of(content.partitions)
    for (*_, lso, hw), logs in list(rows.items())[:MOST_ROWS]:
        # One speaks for all that say the same: one that knows behind whom. A follower whose leader epoch is not the newest names nobody.
        told = next((log for log in logs if log.get("blocker")), logs[0])
        numbers = [log["broker"] for log in logs if log["broker"] is not None]
        is_of_some = numbers and len(logs) < len(copies[logs[0]["cluster"], place(logs[0])])
        where = "\n".join([_cell(logs[0], many=many), *([brokers(numbers)] if is_of_some else [])])
        least = "at least " if told.get("hw_at_least") else ""
        yield "held back", where, f"{lso}-{_before(hw)}", f"LSO {lso}, HW {least}{hw}: {visible(held_back(told))}"
    if len(rows) > MOST_ROWS:
        yield "", "", "", f"and {len(rows) - MOST_ROWS} more partitions: verdict.json, partitions"


def _furthest(logs: Sequence[Row]) -> Iterator[Row]:
    """The copies of each partition with the highest high watermark: brokers at work are dumped one after another."""
    most: dict[tuple[object, str], int] = {}
    for log in logs:
        key, hw = (log["cluster"], place(log)), log.get("hw")
        most[key] = max(most.get(key, -1), hw if isinstance(hw, int) else -1)
    return (log for log in logs if log.get("hw") == most[log["cluster"], place(log)])


def _before(offset: object) -> int:
    return offset - 1 if isinstance(offset, int) else 0


def _blind_rows(content: Content) -> Iterator[Cells]:
    """What could not be judged, and which dump to bring."""
    for blind in content.blind[:MOST_ROWS]:
        what = Text(visible(blind.why))
        if blind.bring:
            what.append(f"\nbring: {visible(blind.bring)}", "bold")
        # Three rules a line, as wide as most places are: a longer line would widen the column for all rows.
        yield "not covered", "\n".join(wrap(some(_each_once(blind.rules), most=MOST_NAMED), RULES_WIDTH)), "", what
    if len(content.blind) > MOST_ROWS:
        yield "", "", "", f"and {len(content.blind) - MOST_ROWS} more reasons: verdict.json, rules"


def _transaction_rows(verdict: Row) -> Iterator[Cells]:
    """How transactions that did not commit ended, and how many have not ended."""
    found = verdict.get("transactions")
    transactions = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
    aborted = [row for row in transactions if row.get("decision") == "ABORT"]
    causes = Counter(str(row.get("abort_cause") or "unknown cause").replace("_", " ") for row in aborted)
    unfinished = [row for row in transactions if row.get("decision") not in ("ABORT", "COMMIT")]
    if causes:
        yield "aborts", "", "", ", ".join(f"{count} {cause}" for cause, count in causes.most_common())
    if unfinished:
        ids = some(_each_once([visible(row.get("transactional_id")) for row in unfinished]), most=MOST_NAMED)
        yield "not finished", "", "", f"{len(unfinished)}: {ids}"


def _input_rows(verdict: Row) -> Iterator[Cells]:
    """How much was read, on which clock it was judged."""
    found = verdict.get("inputs")
    inputs = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
    size, unread = sum(int(row["bytes"]) for row in inputs), sum(int(row["unread_bytes"]) for row in inputs)
    left = f", {unread:,} bytes of them not understood (eo-audit export unread_spans)" if unread else ""
    known = verdict.get("as_of_ms") is not None
    as_of = f"judged as of {moment(verdict['as_of_ms'])} ({visible(verdict.get('as_of_source'))})" if known else "no clock in them"
    yield "read", "", "", f"{size:,} bytes of dumps{left}; {as_of}"


def _results(out: Path) -> Text:
    purposes = {"report.html": "to read", "findings.jsonl": "and", "verdict.json": "for programs", "warehouse": "to query"}
    there = [f"{name} {purpose}" for name, purpose in purposes.items() if (out / name).exists()]
    return Text(f"Results in {visible(out)}: {', '.join(there).replace(' and,', ' and')}.")


def _next_steps(content: Content, out: Path, *, many: bool) -> Iterator[RenderableType]:
    """What to do, in the order of the report and never less than for all critical incidents; those with one remedy share it."""
    told = [i for i in content.incidents if (i.severity != "info" or content.is_waiting(i)) and not i.muted]
    same: dict[tuple[object, ...], list[Incident]] = {}
    for incident in told:
        row = incident.cause.row
        same.setdefault((row["rule"], row["remedy"], row["cluster"]), []).append(incident)
    blocks = list(same.values())
    shown = [block for number, block in enumerate(blocks) if number < MOST_REMEDIES or any(i.severity == "critical" for i in block)]
    if shown:
        yield Text("\nWhat to do now", "bold")
        yield from remedy_of(address_for(block[0].cause.row["remedy"] for block in shown) or "")
    for block in shown:
        yield from _next_step(block, out, many=many)
    left = len(told) - sum(map(len, shown))
    if left:
        yield Text(f"\nWhat to do about the other {left:,} is in report.html.")


def _next_step(block: Sequence[Incident], out: Path, *, many: bool) -> Iterator[RenderableType]:
    """The remedy with its commands, and the command that shows the evidence of the first of some incidents that share it."""
    row = block[0].cause.row
    offset = f", offset {offset_range(row)}" if offset_range(row) and len(block) == 1 else ""
    places = [f"{_where(i.cause.row, many=many)}{' of ' * bool(i.cause.brokers)}{i.cause.brokers}" for i in block]
    yield Text(f"\n{row['rule']} {some(_each_once(places), most=MOST_NAMED)}{offset}", "bold")
    yield from remedy_of(str(row["remedy"]))
    for evidence in block[0].cause.evidence[:1]:
        yield from _prose("The line that shows it:")
        # Two clusters may have dump files of one name.
        whose = ["--cluster", str(row["cluster"])] if many else []
        yield _command(shlex.join(["eo-audit", "show", evidence.address, *whose, "--out", str(out)]))


def remedy_of(remedy: str) -> Iterator[RenderableType]:
    """Prose, wrapped; each command that has arguments on an unbroken line of its own, so that it can be copied."""
    prose = ""
    for number, part in enumerate(_COMMAND.split(remedy)):
        # `split` by a group gives prose and command in turn; a single word is a name, not a command.
        if number % 2 == 0 or " " not in part:
            prose += part
            continue
        yield from _prose(prose)
        yield _command(part)
        prose = ""
    yield from _prose(prose)


def _prose(text: str) -> Iterator[RenderableType]:
    if text := text.strip().lstrip(".;,: "):
        yield Padding(Text(visible(text)), (0, 0, 0, 2))


def _command(command: str) -> Text:
    return Text(f"    {visible(command)}", "cyan")


def _each_once(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
