"""The command line: arguments in, an exit code out. Nothing heavy is imported before it is needed.

Exit codes: 0 pass, 1 fail, 2 unknown; 10 bad arguments, 11 bad input, 12 bad configuration, 20 crash; 130 interrupted.
"""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from eo_audit import __version__
from eo_audit.errors import CRASH, ArgumentError, AuditError, InputError
from eo_audit.moments import parse_moment

if TYPE_CHECKING:
    from eo_audit.pipeline import Options

DEFAULT_ACCEPTED = Path("accepted.yaml")
BAD_ARGUMENTS = ArgumentError.exit_code
INTERRUPTED = 130

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Was delivery exactly once? Audits the log dumps of a Kafka cluster (text of kafka-dump-log): "
    "which records, whose fault, what to do now.",
    epilog="Exit code of run and audit: 0 pass, 1 fail, 2 unknown (a dump is missing; the table names it). "
    "Of every command: 10 bad arguments, 11 bad input, 12 bad configuration, 20 crash.",
)

Dumps = Annotated[
    list[Path], typer.Argument(metavar="DUMPS", help="Folders or files of dumps, plain or gzip, as collect-dumps.sh makes them.")
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the results are.")]
ClusterName = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Name of the cluster, instead of the manifest's or the input folder's.")
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="The audit's now, ISO 8601 or epoch ms (default: when the dumps were made)."),
]
Policy = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="What fails a run, instead of conf/policy.yaml.")]
AcceptedFile = Annotated[
    Path, typer.Option("--accepted", metavar="FILE", help="Accepted findings (see eo-audit accept); none where there is no such file.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Where Spark runs, instead of conf/local.yaml.")]


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        sys.stdout.write(f"eo-audit {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stderr.write(context.get_help() + "\n")
        raise typer.Exit(BAD_ARGUMENTS)


@app.command()
def run(
    dumps: Dumps,
    out: Out = Path("out"),
    cluster: ClusterName = None,
    as_of: AsOf = None,
    policy: Policy = None,
    accepted: AcceptedFile = DEFAULT_ACCEPTED,
    config: ConfigFile = None,
) -> None:
    """Ingest, rebuild and audit; prints the verdict.

    Example: eo-audit run dumps/ --out out. The same dumps again add nothing; more dumps into the same --out are judged together.
    """
    from eo_audit import pipeline

    with _options(cluster, as_of, policy, config, accepted=accepted) as options:
        pipeline.run(out, dumps, options)
    raise typer.Exit(_show_result(out))


@app.command()
def ingest(dumps: Dumps, out: Out = Path("out"), cluster: ClusterName = None, config: ConfigFile = None) -> None:
    """Step 1: dump text to facts, added to those in --out."""
    from eo_audit import pipeline

    with _options(cluster, None, None, config) as options:
        found = pipeline.discover(dumps, options, out=out)
        with pipeline.writing(out, options, input_bytes=pipeline.stored_bytes(found)) as warehouse:
            pipeline.ingest(warehouse, found, options)
    sys.stdout.write(f"Facts of {len(found.files)} files are in {out}. Next: eo-audit rebuild --out {out}\n")


@app.command()
def rebuild(out: Out = Path("out"), as_of: AsOf = None, config: ConfigFile = None) -> None:
    """Step 2: facts to histories (what happened, in order)."""
    from eo_audit import pipeline

    with _options(None, as_of, None, config) as options, pipeline.writing(out, options, after="ingest") as warehouse:
        pipeline.rebuild(warehouse, options)
    sys.stdout.write(f"Histories are in {out}. Next: eo-audit audit --out {out}\n")


@app.command()
def audit(
    out: Out = Path("out"),
    as_of: AsOf = None,
    policy: Policy = None,
    accepted: AcceptedFile = DEFAULT_ACCEPTED,
    config: ConfigFile = None,
) -> None:
    """Step 3: histories to findings and the verdict."""
    from eo_audit import pipeline

    with _options(None, as_of, policy, config, accepted=accepted) as options:
        options.judging()
        with pipeline.writing(out, options, after="rebuild") as warehouse:
            pipeline.audit(warehouse, options)
    raise typer.Exit(_show_result(out))


@app.command()
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
    from eo_audit.tables import Warehouse

    show_element(shown.show(address, Warehouse(out), cluster=cluster), console())


@app.command()
def export(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Such as findings, batches or producer_history.")],
    out: Out = Path("out"),
) -> None:
    """Any table as JSON lines, in the order of its key, for jq and friends."""
    from eo_audit.report.export import export as exported
    from eo_audit.tables import Warehouse

    for line in exported(table, Warehouse(out)):
        sys.stdout.write(line + "\n")


@app.command()
def rules(code: Annotated[str | None, typer.Argument(metavar="CODE", help="Such as P04; without one, all of them.")] = None) -> None:
    """The catalogue: what each rule proves, a bad history, a legal look-alike."""
    from eo_audit.report.catalogue import show_rules
    from eo_audit.report.terminal import console

    show_rules(code, console())


@app.command()
def report(out: Out = Path("out")) -> None:
    """Write report.html anew from the results in --out."""
    from eo_audit.report.build import write_report

    sys.stdout.write(f"{write_report(out)}\n")


@app.command()
def gate(
    out: Out = Path("out"),
    expectations: Annotated[
        Path | None, typer.Option("--expectations", metavar="DIR", help="Suites of Great Expectations, instead of conf/expectations.")
    ] = None,
    docs: Annotated[Path | None, typer.Option("--docs", metavar="DIR", help="Where the Data Docs go, instead of DIR/data-docs.")] = None,
) -> None:
    """The data-quality gate over the results in --out: exit code 0 met, 1 not met, 2 met, but the verdict is unknown."""
    from eo_audit.config import conf_folder
    from eo_audit.gate import gate as checked

    result = checked(out, expectations=expectations or conf_folder() / "expectations", docs=docs)
    for sentence in result.unmet:
        complain(sentence)
    outcome = {0: "met", 1: "not met", 2: "met, but the verdict is unknown"}[result.exit_code]
    sys.stdout.write(f"Expectations {outcome}. Data Docs: {result.docs}\n")
    raise typer.Exit(result.exit_code)


@app.command()
def accept(
    finding_ids: Annotated[list[str], typer.Argument(metavar="FINDING_ID...", help="As in the report; the first characters will do.")],
    who: Annotated[str, typer.Option("--who", help="Who accepts it.")],
    why: Annotated[str, typer.Option("--why", help="Why, for whoever reads the report.")],
    until: Annotated[str, typer.Option("--until", metavar="DAY", help="The last day (UTC), such as 2026-12-31; then it counts again.")],
    out: Out = Path("out"),
    file: Annotated[Path, typer.Option("--file", metavar="FILE", help="Where it is written down.")] = DEFAULT_ACCEPTED,
) -> None:
    """Accept known findings: they are still found and shown, and fail no audit until a day.

    From the next audit on. `run` and `audit` read accepted.yaml in the current folder (or --accepted FILE); review it like code.
    """
    import eo_audit
    from eo_audit import baseline
    from eo_audit.report.values import maybe

    if not file.absolute().parent.is_dir():
        raise InputError(f"--file {file} cannot be written: there is no folder {file.parent}")
    results = eo_audit.open(out)
    as_of_ms = maybe(results.verdict, "as_of_ms")
    for finding in [results.finding(name) for name in finding_ids]:  # all of them, or none
        entry = baseline.accept(file, finding, who=who, why=why, until=until, as_of_ms=as_of_ms)
        sys.stdout.write(f"{entry.what} ({entry.finding_id[:12]}) is accepted until {entry.until}: {file}\n")
    left = baseline.of_same_incidents(results.findings, baseline.load(file))
    if left:
        sys.stdout.write(f"Of the same incident, and still counting: {' '.join(left)}\n")


@app.command()
def history(
    out: Out = Path("out"),
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many audits, from the newest back.")] = 10,
) -> None:
    """How findings came and went between the audits of --out: new, still there, gone."""
    from eo_audit.errors import WarehouseError
    from eo_audit.report.history import show_history
    from eo_audit.report.terminal import console
    from eo_audit.run_history import finding_history, newest_first
    from eo_audit.tables import Warehouse

    audits = finding_history(Warehouse(out))
    if not audits:
        raise WarehouseError(f"{out} holds no finished audit: run 'eo-audit run DUMPS --out {out}' first")
    show_history(newest_first(audits, last), console())


@contextmanager
def _options(
    cluster: str | None, as_of: str | None, policy: Path | None, config: Path | None, *, accepted: Path = DEFAULT_ACCEPTED
) -> "Iterator[Options]":
    """What the pipeline is told, while its progress is shown."""
    from eo_audit.config import load
    from eo_audit.pipeline import Options
    from eo_audit.report.terminal import watched

    # A reader of the table that goes away must not take the run with it.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with watched() as progress:
        if accepted != DEFAULT_ACCEPTED and not accepted.is_file():
            raise ArgumentError(f"--accepted {accepted} is not there")
        yield Options(load(config), cluster, parse_moment(as_of), policy, progress, notice=complain, accepted=accepted)


def _show_result(out: Path) -> int:
    """Print the end of a run; its exit code."""
    import eo_audit
    from eo_audit.report.content import build_content
    from eo_audit.report.terminal import console, show_result

    results = eo_audit.open(out)
    code = results.verdict["exit_code"]
    assert isinstance(code, int)
    try:
        show_result(build_content(results.verdict, results.findings, lambda *_: None), out, console())
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the verdict stands, whoever reads it
    return code


def complain(text: str) -> None:
    """One line on standard error, without control characters."""
    from eo_audit.report.terminal import plain

    sys.stderr.write(f"eo-audit: {plain(text)}\n")


def run_command(arguments: Sequence[str]) -> int:
    """One command line.

    Args:
        arguments: without the program's name.

    Returns:
        The exit code. Every error a user can cause is one sentence on standard error.
    """
    try:
        code = app(args=list(arguments), prog_name="eo-audit", standalone_mode=False)
        if code == INTERRUPTED:  # Typer makes this of Ctrl-C, and says nothing
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except TyperException as error:
        complain(f"{error.format_message()} ('eo-audit --help' tells more)")
        return BAD_ARGUMENTS
    except AuditError as error:
        complain(str(error))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted; results of earlier runs are as they were")
        return INTERRUPTED
    except Exception as error:
        complain(f"crashed: {type(error).__name__}: {error}")
        complain(f"at {_own_frames(error)}; this is a bug, results of earlier runs are as they were")
        return CRASH


def _own_frames(error: Exception) -> str:
    """Where in this package an error arose, the innermost first; whole stacks of Spark help nobody at 3 a.m."""
    package = Path(__file__).parent
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(package)]
    return ", ".join(f"{Path(frame.filename).relative_to(package.parent)}:{frame.lineno} {frame.name}" for frame in reversed(own))


def main() -> None:
    """The `eo-audit` program."""
    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs the stack of the call that Ctrl-C interrupts
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(run_command(sys.argv[1:]))
