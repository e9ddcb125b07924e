"""The commands that read results: nothing here writes tables. Nothing heavy is imported before it is needed."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from eo_audit.commands.arguments import Docs, Expectations, Out, ToFile, complain
from eo_audit.config import DEFAULT_ACCEPTED
from eo_audit.errors import ArgumentError, InputError, WarehouseError


def show(
    address: Annotated[str, typer.Argument(metavar="FILE@OFFSET", help="As in a finding's evidence.")],
    out: Out = Path("out"),
    cluster: Annotated[str | None, typer.Option("--cluster", metavar="NAME", help="Where several clusters have such a file.")] = None,
) -> None:
    """The dump line behind a piece of evidence, with its fields named.

    A record line is shown up to its header keys: keys and payloads never leave the dump.
    """
    from eo_audit.report import show as shown
    from eo_audit.report.terminal import console, show_element
    from eo_audit.store.tables import Warehouse

    show_element(shown.show(address, Warehouse(out), cluster=cluster), console())


def export(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="Such as findings or producer_history; or a step of a history: visibility.shown.")
    ],
    out: Out = Path("out"),
) -> None:
    """Any table as JSON lines for jq and friends. Rows in the order of its key; a step of a history is made anew, in no order."""
    # Line by line: a table may be larger than memory, and `head` may have heard enough.
    for line in _exported(table, out):
        sys.stdout.write(line + "\n")


def _exported(table: str, out: Path) -> Iterator[str]:
    from eo_audit.store.tables import Warehouse

    if "." not in table:
        from eo_audit.report.export import export as exported

        return exported(table, Warehouse(out))
    from eo_audit.config import load
    from eo_audit.rebuild.looking import lines, step_of
    from eo_audit.store.session import Starting

    config = load()
    text_bytes = Warehouse(out).text_bytes()
    return lines(step_of(table, out, Starting(config, input_bytes=text_bytes), small=text_bytes <= config.small_input_bytes))


def rules(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="Its code or its name, such as seq-gap; without one, all of them.")
    ] = None,
) -> None:
    """The catalogue of rules. What each proves, a bad history, a legal look-alike."""
    from eo_audit.report.catalogue import show_rules
    from eo_audit.report.terminal import console

    show_rules(code, console())


def explain(
    error: Annotated[
        list[str], typer.Argument(metavar="ERROR...", help="Its name, its code, or the line that a client logged: PRODUCER_FENCED, 90.")
    ],
    out: Out = Path("out"),
) -> None:
    """What an error of a producer means. Which findings to look for, what to change; and, after an audit, to whom it happened."""
    from eo_audit.report.client_errors import explain as explained
    from eo_audit.report.results import Results
    from eo_audit.report.terminal import console
    from eo_audit.store.tables import Warehouse

    # Whoever has only the exception in hand has no results yet.
    results = Results(out) if Warehouse(out).exists("findings") else None
    explained(" ".join(error), console(), results)


def why(
    partition: Annotated[str | None, typer.Argument(metavar="[PARTITION]", help="Such as orders-0; else a transactional id.")] = None,
    transactional_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="A transactional id.")] = None,
    producer_id: Annotated[int | None, typer.Option("--pid", metavar="N", help="A producer id.")] = None,
    group: Annotated[str | None, typer.Option("--group", metavar="GROUP", help="A group that commits offsets in transactions.")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", metavar="NAME", help="Where several clusters have it.")] = None,
    out: Out = Path("out"),
) -> None:
    """What is open in a partition, of an id, a producer or a group. Since when, whose it is, who waits for it, what ended it."""
    from eo_audit.report import why as told
    from eo_audit.report.results import Results
    from eo_audit.report.terminal import console
    from eo_audit.report.why_group import group as of_group

    given = [value for value in (partition, transactional_id, producer_id, group) if value is not None]
    if len(given) != 1:
        raise ArgumentError("name one thing: a partition such as orders-0, --id ID, --pid N or --group GROUP")
    results = Results(out)
    _ = results.verdict  # else what is in no history yet would be called a thing that no dump holds
    if producer_id is not None:
        subject = told.producer(producer_id, results, cluster)
    elif transactional_id is not None:
        subject = told.transactional_id(transactional_id, results, cluster)
    else:
        subject = of_group(group, results, cluster) if group is not None else told.partition_or_id(str(partition), results, cluster)
    told.why(subject, results, console())


def report(out: Out = Path("out")) -> None:
    """Write report.html anew from the results in --out."""
    from eo_audit.report.build import write_report

    sys.stdout.write(f"{write_report(out)}\n")


def gate(
    out: Out = Path("out"),
    expectations: Expectations = None,
    docs: Docs = None,
) -> None:
    """The data-quality gate over the results in --out. Exit code 0 met, 1 not met, 2 met, but the verdict is unknown."""
    from eo_audit.config import conf_folder
    from eo_audit.report.gate import gate as checked

    result = checked(out, expectations=expectations or conf_folder() / "expectations", docs=docs)
    for sentence in result.unmet:
        complain(sentence)
    outcome = {0: "met", 1: "not met", 2: "met, but the verdict is unknown"}[result.exit_code]
    sys.stdout.write(f"Expectations {outcome}. Data Docs: {result.docs}\n")
    raise typer.Exit(result.exit_code)


def accept(
    finding_ids: Annotated[list[str], typer.Argument(metavar="FINDING_ID...", help="As in the report; the first characters will do.")],
    who: Annotated[str, typer.Option("--who", help="Who accepts it.")],
    why: Annotated[str, typer.Option("--why", help="Why, for whoever reads the report.")],
    until: Annotated[str, typer.Option("--until", metavar="DAY", help="The last day (UTC), such as 2026-12-31; then it counts again.")],
    out: Out = Path("out"),
    file: ToFile = DEFAULT_ACCEPTED,
) -> None:
    """Accept known findings. They are still found and shown, and fail no audit until a day.

    From the next audit on. `run` and `audit` read accepted.yaml in the current folder (or --accepted FILE); review it like code.
    """
    import eo_audit
    from eo_audit.audit import accepted_findings
    from eo_audit.report.values import maybe

    if not file.absolute().parent.is_dir():
        raise InputError(f"--file {file} cannot be written: there is no folder {file.parent}")
    if file.is_dir():
        raise InputError(f"--file {file} is a folder: name a file in it, such as {file / DEFAULT_ACCEPTED}")
    # The finding is looked up in the results: an id with a slip in it would accept nothing, in silence.
    results = eo_audit.open(out)
    as_of_ms = maybe(results.verdict, "as_of_ms")
    for finding in [results.finding(name) for name in finding_ids]:  # all of them, or none
        entry = accepted_findings.accept(file, finding, who=who, why=why, until=until, as_of_ms=as_of_ms)
        sys.stdout.write(f"{entry.what} ({entry.finding_id[:12]}) is accepted until {entry.until}: {file}\n")
    left = accepted_findings.of_same_incidents(results.findings, accepted_findings.load(file))
    if left:
        sys.stdout.write(f"Of the same incident, and still counting: {' '.join(left)}\n")


def history(
    out: Out = Path("out"),
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many audits, from the newest back.")] = 10,
) -> None:
    """How findings came and went between the audits of --out. New, still there, gone."""
    from eo_audit.report.audit_list import show_audits
    from eo_audit.report.audits import audits_of, newest_first
    from eo_audit.report.terminal import console
    from eo_audit.store.tables import Warehouse

    audits = audits_of(Warehouse(out))
    if not audits:
        raise WarehouseError(f"{out} holds no finished audit: run 'eo-audit run DUMPS --out {out}' first")
    show_audits(newest_first(audits, last), console())


COMMANDS = (show, export, why, rules, explain, report, gate, accept, history)
