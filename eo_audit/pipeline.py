"""The audit in three steps. Start reading here.

    dump text --ingest--> facts --rebuild--> histories --audit--> findings, verdict

Each step takes a warehouse that this process is writing, and ends with a row in `runs`: until then nobody else sees what it wrote.
`run` takes the three in one session, so each goes on with what the one before it has just written.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from eo_audit import __version__
from eo_audit.audit import accepted_findings
from eo_audit.audit.policy import Policy
from eo_audit.audit.policy import load as load_policy
from eo_audit.audit.unread import holds_dumps
from eo_audit.config import DEFAULT_ACCEPTED, Config, load
from eo_audit.dump.files.discovery import Discovery, look_through
from eo_audit.dump.lines.console import HEADS as CONSOLE_FORMATTERS
from eo_audit.errors import VERDICT_GONE, InputError, WarehouseError, note_folder
from eo_audit.ingest.step import check_brokers, check_parser, ingest_files
from eo_audit.store import upkeep
from eo_audit.store.delta_table import DamagedError
from eo_audit.store.folders import make_folder
from eo_audit.store.keys import Keys
from eo_audit.store.schemas import table_names
from eo_audit.store.session import Starting
from eo_audit.store.tables import Step, Warehouse
from eo_audit.store.tasks import Progress, Tasks, silent
from eo_audit.words import count, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A file of nothing else beside them is no audit; of what a console printed nothing is judged, and `eo-audit why` tells it.
_OF_RECORDS = {"text", *CONSOLE_FORMATTERS}


def unheard(notice: str) -> None:
    """A `notice` that nobody hears."""


@dataclass(frozen=True)
class Options:
    """What a person may set.

    `as_of_ms` is the audit's now; `policy` replaces `conf/policy.yaml`; `accepted` holds the accepted findings, if it is there; `notice`
    hears what is left out; `forget_key` throws the key of the hashes away after the run; `break_lock` takes the lock from whoever holds it.
    """

    config: Config = field(default_factory=load)
    cluster: str | None = None
    as_of_ms: int | None = None
    policy: Path | None = None
    progress: Progress = silent
    notice: Callable[[str], None] = unheard
    accepted: Path = DEFAULT_ACCEPTED
    forget_key: bool = False
    break_lock: bool = False

    def policy_and_accepted(self) -> tuple[Policy, tuple[accepted_findings.Accepted, ...]]:
        """The policy and the accepted findings.

        Raises:
            ConfigurationError: one of them cannot be used.
        """
        return load_policy(self.policy), accepted_findings.load(self.accepted)


def run(out: Path, inputs: Sequence[Path], options: Options, *, spark: "Callable[[], SparkSession] | None" = None) -> None:
    """Ingest, rebuild and audit in one session.

    Args:
        out: the output folder.
        inputs: files and folders of dumps.
        options: what a person may set.
        spark: a session that is there already; else one is started while the dumps are read.
    """
    # Only to hear that they cannot be used: before an hour of reading, not behind it.
    options.policy_and_accepted()
    dumps = discover(inputs, options, out=out)
    with writing(out, options, input_bytes=stored_bytes(dumps), spark=spark) as warehouse:
        ingest(warehouse, dumps, options)
        rebuild(warehouse, options)
        audit(warehouse, options)


def discover(inputs: Sequence[Path], options: Options, *, out: Path | None = None) -> Discovery:
    """The dump files of some inputs; what is left out is told to `notice`.

    Args:
        inputs: files and folders of dumps.
        options: what a person may set.
        out: where their facts will be added; a checkpoint alone may be added to logs, and is nothing by itself.

    Raises:
        InputError: an input cannot be used, or none of them holds text of kafka-dump-log or of a console consumer over Kafka's own topics.
    """
    dumps = look_through(inputs, options.cluster)
    if not any(file.kind_hint in _OF_RECORDS for file in dumps.files) and not (out and Warehouse(out).exists("dump_sections")):
        why = "; ".join(f"{problem.path} {problem.text}" for problem in dumps.problems[:1]) or f"only {_some(dumps)}"
        raise InputError(f"there is no text of kafka-dump-log in {', '.join(map(str, inputs))}: {why}")
    for problem in dumps.problems:
        options.notice(f"left out: {problem.path} {problem.text}")
    if unread := [file for file in dumps.files if file.spoilt]:
        others = f"; {count(len(unread) - 1, 'more file')} of this kind" if len(unread) > 1 else ""
        options.notice(f"not read: {unread[0].path} is a dump {unread[0].spoilt}{others}")
    if printed := [file.path for file in dumps.files if file.kind_hint in CONSOLE_FORMATTERS]:
        what = "what a console consumer prints has no offsets and no end; to have it judged, print the segments of __transaction_state and"
        how = "__consumer_offsets with kafka-dump-log (collect-dumps.sh does)"
        options.notice(f"judged by no rule, told by eo-audit why: {some(printed, most=3)}: {what} {how}")
    return dumps


def _some(dumps: Discovery) -> str:
    return some([file.path for file in dumps.files], most=3)


def ingest(warehouse: Warehouse, dumps: Discovery, options: Options) -> None:
    """Dump text to facts; what is there already adds nothing.

    Raises:
        InputError: as `ingest_files`, or nothing in the tables is text of kafka-dump-log.
    """
    # Up to this size the dumps are read before Java has started.
    here = stored_bytes(dumps) <= options.config.ingest_here_bytes
    tasks = Tasks(None if here else warehouse.session, options.progress)
    for file in ingest_files(warehouse, dumps.files, range_bytes=options.config.range_bytes, tasks=tasks):
        if file.damage is not None:
            options.notice(f"{file.file.absolute} {file.damage}")
    if not holds_dumps(warehouse):
        raise InputError(f"nothing in {_some(dumps)} could be read as text of kafka-dump-log")
    for warning in check_brokers(warehouse):
        options.notice(warning)
    publish(warehouse, "ingest", options)


def rebuild(warehouse: Warehouse, options: Options) -> None:
    """Facts to histories."""
    from eo_audit.rebuild.step import rebuild_histories

    # pyspark and the plans of the histories are imported only here: commands that read results start without them.
    _need(warehouse, "ingest")
    rebuild_histories(warehouse, as_of_ms=options.as_of_ms, small=warehouse.small, progress=options.progress)
    publish(warehouse, "rebuild", options)


def audit(warehouse: Warehouse, options: Options) -> None:
    """Histories to findings, report.html and a verdict; verdict.json is written last."""
    from eo_audit.audit import findings, verdict
    from eo_audit.audit.step import audit_histories
    from eo_audit.report import build

    _need(warehouse, "rebuild")
    # Beside the queries, which keep Java busy and not this process.
    build.warm_up()
    options.progress("auditing the histories", 0, 1)
    audited = audit_histories(
        warehouse,
        policy=options.policy,
        accepted=options.accepted,
        inputs=inputs_of(warehouse),
        run_id=run_id(warehouse),
        code_version=__version__,
    )
    warehouse.overwrite_arrow("findings", findings.table(audited.findings))
    # For people and programs in the order in which they may believe it: findings, the pinned tables, the report, the verdict.
    warehouse.still_held()
    findings.write(warehouse.out, audited.findings)
    publish(warehouse, "audit", options, rule_set=str(audited.verdict["rule_set"]), verdict=str(audited.verdict["verdict"]))
    build.write_report(warehouse.out, audited.verdict, check=warehouse.still_held)
    warehouse.still_held()
    verdict.write(warehouse.out, audited.verdict)
    tidy(warehouse, options)


def tidy(warehouse: Warehouse, options: Options) -> None:
    """Remove what no reader needs any more; a file system that does not let go of it is no reason to fail."""
    try:
        upkeep.tidy(warehouse, keep_audits=options.config.keep_audits)
    except (OSError, DamagedError) as error:
        options.notice(f"what older audits left in {warehouse.folder} could not be removed: {error}")


def prune(warehouse: Warehouse, files: Sequence[upkeep.Superseded], options: Options) -> int:
    """Remove the facts of dump files that newer dumps replaced (`upkeep.superseded`), and return how many rows went."""
    rows = upkeep.prune(warehouse, files, told=lambda name, rows: options.progress(f"removing facts: {name}", 0, 1))
    publish(warehouse, "prune", options)
    tidy(warehouse, options)
    return rows


@contextmanager
def writing(
    out: Path,
    options: Options,
    *,
    input_bytes: int = 0,
    after: str | None = None,
    keeps_verdict: bool = False,
    starts_spark: bool = True,
    spark: "Callable[[], SparkSession] | None" = None,
) -> Iterator[Warehouse]:
    """The warehouse of an output folder, locked for this process, with Spark starting in the background.

    Args:
        out: the output folder.
        options: what a person may set.
        input_bytes: what will be added to what the tables hold.
        after: the step that must have finished there.
        keeps_verdict: what is written changes no verdict; then verdict.json stays, and Spark is not started before it is needed.
        starts_spark: the work needs Spark in any case, but not at once; else it is started when it is first needed.
        spark: a session that is there already.

    Raises:
        WarehouseError: another process writes there, nobody can, or that step has not finished.
    """
    if after is not None:
        _need(Warehouse(out), after)
    make_folder(out)
    keys = Keys(forget=options.forget_key or options.config.forget_key, notice=options.notice)
    # Histories are made of all facts, so what lies there already counts as well.
    size = input_bytes + Warehouse(out).text_bytes()
    starting = spark or Starting(options.config, input_bytes=size, notice=options.notice)
    warehouse = Warehouse(out, starting, small=size <= options.config.small_input_bytes, keys=keys)
    with warehouse.writing(break_lock=options.break_lock, remakes=after != "rebuild") as before:
        if before.broken:
            options.notice(f"{out} was taken from {before.broken}: if that run is at work still, it writes nothing more")
        elif before.died:
            options.notice(f"an earlier run in {out} died before it had finished: what it left half done is taken back")
        for sentence in before.lost:
            options.notice(sentence)
        check_parser(warehouse)
        with nullcontext() if keeps_verdict else _without_verdict(warehouse, warehouse.out / "verdict.json"):
            if isinstance(starting, Starting) and starts_spark and not keeps_verdict:
                starting.begin()
            yield warehouse


@contextmanager
def _without_verdict(warehouse: Warehouse, path: Path) -> Iterator[None]:
    """Remove verdict.json, so that nobody reads yesterday's verdict of a run that dies today; whatever ends the run tells of it."""
    stood = path.exists()
    try:
        warehouse.still_held()
        path.unlink(missing_ok=True)
        yield
    except BaseException as error:
        note_folder(error, warehouse.out)
        if stood and not path.exists():
            error.add_note(VERDICT_GONE)
        raise


def stored_bytes(dumps: Discovery) -> int:
    """Size on disk of all dump files."""
    return sum(file.stored_bytes for file in dumps.files)


def inputs_of(warehouse: Warehouse) -> list[dict[str, object]]:
    """Path, digest, bytes and unread bytes of each input that the tables hold."""
    columns = ["input_path", "dump_file_id", "text_bytes", "bytes_unread"]
    files, path_of = warehouse.arrow("dump_files").select(columns).to_pylist(), itemgetter("input_path")
    inputs = []
    for path, rows in groupby(sorted(files, key=path_of), path_of):
        own = list(rows)
        # Ids hold path and content: the digest changes with either, and not with the order in which files were found.
        content = json.dumps(sorted(row["dump_file_id"] for row in own))
        sizes = {"bytes": sum(row["text_bytes"] for row in own), "unread_bytes": sum(row["bytes_unread"] for row in own)}
        inputs.append({"path": path, "digest": hashlib.sha256(content.encode()).hexdigest(), **sizes})
    return inputs


def run_id(warehouse: Warehouse) -> str:
    """Id of a run: the same dumps read by the same code have the same one."""
    about = json.dumps([__version__, [entry["digest"] for entry in inputs_of(warehouse)]])
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def publish(warehouse: Warehouse, step: str, options: Options, *, rule_set: str | None = None, verdict: str | None = None) -> None:
    """Make what a step wrote visible to everyone."""
    warehouse.publish(
        Step(
            run_id=run_id(warehouse),
            step=step,
            # The machine's clock is noted, and nothing is judged by it: the audit's now comes from the dumps (`history.clusters`).
            finished_at_ms=time.time_ns() // 1_000_000,
            code_version=__version__,
            inputs=json.dumps(inputs_of(warehouse)),
            rule_set=rule_set,
            as_of_ms=options.as_of_ms,
            verdict=verdict,
        )
    )


def _need(warehouse: Warehouse, step: str) -> None:
    """The step before must have finished, and after the one before it."""
    # The last of the two counts: an ingest behind a rebuild has made the histories old.
    done = [run["step"] for run in warehouse.runs() if run["step"] in ("ingest", step)]
    command = f"run `eo-audit {step} --out {warehouse.out}` first"
    if step not in done:
        raise WarehouseError(f"{warehouse.out} has no finished {step}: {command}")
    if done[-1] != step:
        raise WarehouseError(f"the histories in {warehouse.out} are older than the facts: {command}")
    if step == "rebuild" and not all(warehouse.exists(name) for name in table_names("histories")):
        raise WarehouseError(f"histories in {warehouse.out} were damaged and are gone: {command}")
