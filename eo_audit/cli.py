"""The command line: arguments in, an exit code out. Nothing heavy is imported before it is needed.

Exit codes: 0 pass, 1 fail, 2 unknown; 10 bad arguments, 11 bad input, 12 bad configuration, 20 crash; 130 interrupted.
"""

import signal
import sys

try:
    import atexit
    import logging
    import os
    import traceback
    from collections.abc import Iterator, Sequence
    from contextlib import contextmanager, suppress
    from dataclasses import replace
    from pathlib import Path
    from threading import Timer, main_thread
    from typing import TYPE_CHECKING, Annotated

    import typer
    from typer.exceptions import TyperException

    from eo_audit import __version__
    from eo_audit.commands import reading
    from eo_audit.commands.arguments import (
        AcceptedFile,
        AsOf,
        BreakLock,
        ClusterName,
        ConfigFile,
        Dumps,
        ForgetKey,
        Out,
        Policy,
        complain,
    )
    from eo_audit.commands.moments import parse_moment
    from eo_audit.commands.setup import setup
    from eo_audit.config import DEFAULT_ACCEPTED
    from eo_audit.errors import CRASH, INTERRUPTED, VERDICT_GONE, ArgumentError, AuditError, InterruptionError, WarehouseError, of_machine
    from eo_audit.words import in_bytes, moment, visible
except KeyboardInterrupt:  # most of a short command is its imports
    sys.stderr.write("eo-audit: interrupted before it began\n")
    sys.exit(130)

if TYPE_CHECKING:
    from eo_audit.pipeline import Options

BAD_ARGUMENTS = ArgumentError.exit_code

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
    forget_key: ForgetKey = False,
    break_lock: BreakLock = False,
) -> None:
    """Ingest, rebuild and audit; prints the verdict.

    Example: eo-audit run dumps/ --out out. The same dumps again add nothing; more dumps into the same --out are judged together.
    """
    from eo_audit import pipeline

    with _options(cluster, as_of, policy, config, accepted=accepted, forget_key=forget_key, break_lock=break_lock) as options:
        pipeline.run(out, dumps, options)
    raise typer.Exit(_show_result(out))


@app.command()
def ingest(
    dumps: Dumps,
    out: Out = Path("out"),
    cluster: ClusterName = None,
    config: ConfigFile = None,
    forget_key: ForgetKey = False,
    break_lock: BreakLock = False,
) -> None:
    """Step 1: dump text to facts, added to those in --out."""
    from eo_audit import pipeline

    with _options(cluster, None, None, config, forget_key=forget_key, break_lock=break_lock) as options:
        found = pipeline.discover(dumps, options, out=out)
        # Small dumps are read without Spark, and large ones by its tasks from the first byte: there is nothing to do while it starts.
        with pipeline.writing(out, options, input_bytes=pipeline.stored_bytes(found), starts_spark=False) as warehouse:
            pipeline.ingest(warehouse, found, options)
    sys.stdout.write(f"Facts of {len(found.files)} files are in {out}. Next: eo-audit rebuild --out {out}\n")


@app.command()
def rebuild(out: Out = Path("out"), as_of: AsOf = None, config: ConfigFile = None, break_lock: BreakLock = False) -> None:
    """Step 2: facts to histories (what happened, in order)."""
    from eo_audit import pipeline

    with _options(None, as_of, None, config, break_lock=break_lock) as options, pipeline.writing(out, options, after="ingest") as warehouse:
        pipeline.rebuild(warehouse, options)
    sys.stdout.write(f"Histories are in {out}. Next: eo-audit audit --out {out}\n")


@app.command()
def audit(
    out: Out = Path("out"),
    policy: Policy = None,
    accepted: AcceptedFile = DEFAULT_ACCEPTED,
    config: ConfigFile = None,
    break_lock: BreakLock = False,
) -> None:
    """Step 3: histories to findings and the verdict.

    The audit's now is the one of the histories: eo-audit rebuild --as-of sets it.
    """
    from eo_audit import pipeline

    with _options(None, None, policy, config, accepted=accepted, break_lock=break_lock) as options:
        options.policy_and_accepted()
        with pipeline.writing(out, options, after="rebuild") as warehouse:
            pipeline.audit(warehouse, options)
    raise typer.Exit(_show_result(out))


@app.command()
def prune(
    keep: Annotated[str, typer.Option("--keep", metavar="AGE", help="Such as 90d or 12w, back from the newest dump.")],
    out: Out = Path("out"),
    yes: Annotated[bool, typer.Option("--yes", help="Remove them; without it, only say what would go.")] = False,
    config: ConfigFile = None,
    break_lock: BreakLock = False,
) -> None:
    """Remove facts of dumps that newer dumps replaced. No audit reads them any more; verdict and findings stay as they are."""
    from eo_audit import pipeline
    from eo_audit.store import upkeep

    keep_ms = upkeep.parse_age(keep)
    with (
        _options(None, None, None, config, break_lock=break_lock) as options,
        pipeline.writing(out, options, after="rebuild", keeps_verdict=True) as warehouse,
    ):
        # What would go is said in any case, and goes only with --yes.
        files = upkeep.superseded(warehouse, keep_ms=keep_ms)
        for file in files:
            sys.stdout.write(f"{visible(file.path)}  dumped {moment(file.dumped_at_ms)}, {in_bytes(file.text_bytes)} of text\n")
        before = warehouse.stored_bytes()
        rows = pipeline.prune(warehouse, files, options) if yes and files else 0
        after = warehouse.stored_bytes()
    if not files:
        sys.stdout.write(f"Nothing to remove: no dump file that newer dumps replaced is older than {keep}.\n")
        return
    what = f"{len(files)} dump files that newer dumps replaced, older than {keep}"
    if yes:
        sys.stdout.write(f"Removed the facts of {what}: {rows} rows. What readers may be at now goes with the first run in an hour.\n")
        sys.stdout.write(f"{out / 'warehouse'} takes {in_bytes(after)}, before {in_bytes(before)}.\n")
    else:
        sys.stdout.write(f"Would remove the facts of {what}; add --yes to do it. {out / 'warehouse'} takes {in_bytes(before)}.\n")


for _command in (*reading.COMMANDS, setup):
    app.command()(_command)


@contextmanager
def _options(
    cluster: str | None,
    as_of: str | None,
    policy: Path | None,
    config: Path | None,
    *,
    accepted: Path = DEFAULT_ACCEPTED,
    forget_key: bool = False,
    break_lock: bool = False,
) -> "Iterator[Options]":
    """What the pipeline is told, while its progress is shown."""
    from eo_audit.config import load
    from eo_audit.pipeline import Options
    from eo_audit.report.terminal import watched

    # A reader of the table that goes away must not take the run with it.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with watched() as progress:
        # The default need not be there; a file that somebody names must.
        if accepted != DEFAULT_ACCEPTED and not accepted.is_file():
            raise ArgumentError(f"--accepted {accepted}: there is no such file ('eo-audit accept --file {accepted}' begins one)")
        told = Options(load(config), cluster, parse_moment(as_of), policy, progress, notice=complain, accepted=accepted)
        try:
            yield replace(told, forget_key=forget_key, break_lock=break_lock)
        except KeyboardInterrupt as error:  # before Typer makes a bare number of it
            raise InterruptionError(f"interrupted; {_what_stands(error)}") from None


def _what_stands(error: BaseException) -> str:
    """What became of the results of earlier runs when something ended this one."""
    return VERDICT_GONE if VERDICT_GONE in getattr(error, "__notes__", ()) else "results of earlier runs are as they were"


def _show_result(out: Path) -> int:
    """Print the end of a run; its exit code."""
    import eo_audit
    from eo_audit.report.content import build_content
    from eo_audit.report.terminal import console, show_result

    results = eo_audit.open(out)
    code = results.verdict["exit_code"]
    assert isinstance(code, int)
    try:
        # The table quotes no lines, so no dump is opened for it.
        show_result(build_content(results.verdict, results.findings, lambda *_: None), out, console())
        sys.stdout.write(f"\n{out / 'warehouse'} takes {in_bytes(results.warehouse.stored_bytes())}.\n")
        sys.stdout.flush()
    except KeyboardInterrupt:
        raise InterruptionError(f"interrupted; the audit had finished, its results are in {out}") from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the verdict stands, whoever reads it
    return code


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
    # Typer would end the process with 2, which is `unknown` here.
    except TyperException as error:
        complain(f"{error.format_message()} ('eo-audit --help' tells more)")
        return BAD_ARGUMENTS
    except AuditError as error:
        complain(f"{error}; {VERDICT_GONE}" if VERDICT_GONE in getattr(error, "__notes__", ()) else str(error))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted; results of earlier runs are as they were")  # by a command that only reads
        return INTERRUPTED
    except Exception as error:
        refused = of_machine(error) or (f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else None)
        refused = refused or _how_java_ended()  # last: it waits a moment for Java's end
        if refused is not None:
            complain(f"{refused}; {_what_stands(error)}: run it again when that is mended")
            return WarehouseError.exit_code
        complain(f"crashed: {type(error).__name__}: {_first_line(error)}")
        complain(f"at {_own_frames(error)}; this is a bug; {_what_stands(error)}")
        return CRASH


def _first_line(error: Exception) -> str:
    """What Java reports is followed by a query and by frames of its own; py4j puts a line of its own before it."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("An error occurred while calling")]
    return lines[0].removeprefix(": ") if lines else ""


def _how_java_ended() -> str | None:
    """What became of Java, if this command has started one."""
    session = sys.modules.get("eo_audit.store.session")
    return None if session is None else session.how_java_ended()


def _own_frames(error: Exception) -> str:
    """Where in this package an error arose, the innermost first; whole stacks of Spark help nobody at 3 a.m."""
    package = Path(__file__).parent
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(package)]
    return ", ".join(f"{Path(frame.filename).relative_to(package.parent)}:{frame.lineno} {frame.name}" for frame in reversed(own))


def main() -> None:
    """The `eo-audit` program."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in the background of a shell
    if listens:
        process = os.getpid()
        signal.signal(signal.SIGINT, lambda *_: _interrupt(process))
        sys.unraisablehook = lambda unraisable: _interrupt_once_more(process, unraisable)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the first one runs last: then Python hears nothing more
    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs the stack of the call that Ctrl-C interrupts
    # `eo-audit export ... | head` ends like any other program of a pipe.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        code = run_command(sys.argv[1:])
    except KeyboardInterrupt:  # between two of its lines
        code = INTERRUPTED
    with suppress(OSError):
        sys.stdout.flush()
    if listens:
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))  # all is said: whoever does not wait for Java's end gets the same code
    sys.exit(code)


def _interrupt(process: int) -> None:
    """Ctrl-C ends the work, and what it has begun is cleaned up; a second one does not wait for that."""
    if os.getpid() != process:  # a terminal asks the whole group: a child that is about to become Java has nothing to end
        return
    signal.signal(signal.SIGINT, lambda *_: _interrupt_again(process))
    raise KeyboardInterrupt


def _interrupt_once_more(process: int, unraisable: "sys.UnraisableHookArgs") -> None:
    """Python drops what is raised in a destructor, and writes a stack: a Ctrl-C that falls into one comes again a moment later."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGINT, lambda *_: _interrupt(process))
    # Not at once: that would be within the destructor still. To the thread itself, which may be waiting for Java.
    Timer(0.01, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()


def _interrupt_again(process: int) -> None:
    if os.getpid() != process:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a third one would say it twice
    shows_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # progress hides it
    # Not through `sys.stderr`, which may be at work. What a kill leaves is taken back by the next run, and so is this.
    os.write(2, f"{shows_cursor}eo-audit: interrupted again, stopped at once; the next run takes back what is half done\n".encode())
    os._exit(INTERRUPTED)
