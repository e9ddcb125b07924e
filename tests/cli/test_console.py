"""What console consumers printed of Kafka's own topics, beside dumps and alone: told by `why` and `show`, judged by no rule."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eo_audit import pipeline
from eo_audit.cli import run_command
from eo_audit.report.results import Results
from tests.jobs.test_ingest import ingest

ROOT = Path(__file__).parent.parent.parent
LIVE = ROOT / "tests" / "dump" / "cases" / "live"
# Half a story about an id of the dumps, too: it contradicts them, and accuses nobody.
STATE = (
    "{0}::TransactionMetadata(transactionalId={0}, producerId={1}, producerEpoch=0, txnTimeoutMs=60000, state={2}, pendingState=None, "
    "topicPartitions=HashSet({3}), txnStartTimestamp=1795235480000, txnLastUpdateTimestamp=1795235486116)\n"
)
STATES = (
    ("late-writer-0", 1, "PrepareCommit", "orders-0"),
    ("late-writer-0", 1, "Ongoing", "orders-0, __consumer_offsets-3"),
    ("other", 77, "Ongoing", "orders-7"),
    ("other", 77, "CompleteAbort", ""),
)
COMMITS = (
    "[g,orders,0]::OffsetAndMetadata(offset={}, leaderEpoch=Optional.empty, metadata=, commitTimestamp=1795235486116, expireTimestamp=None)"
    "\n"
)


def written(folder: Path) -> Path:
    (folder / "states.txt").write_text("".join(STATE.format(*one) for one in STATES) + "other::NULL\nProcessed a total of 5 messages\n")
    (folder / "commits.txt").write_text(COMMITS.format(4) + COMMITS.format(9) + "[g,orders,1]::NULL\n[g,orders")
    for name in ("txn", "offsets", "groups"):
        shutil.copy(LIVE / "4.3.1" / f"console-{name}.txt", folder)
    return folder


@pytest.fixture(scope="module")
def alone(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of such texts alone, read twice: the second time adds nothing."""
    out = tmp_path_factory.mktemp("alone")
    (out / "given").mkdir()
    said: list[str] = []
    ingest(out, written(out / "given"), notice=said.append)
    pipeline.run(out, [out / "given"], pipeline.Options(notice=said.append), spark=lambda: spark)
    (told,) = set(said)
    assert told.startswith("judged by no rule, told by eo-audit why: commits.txt, console-groups.txt, console-offsets.txt and 2 more: ")
    assert "with kafka-dump-log" in told
    return out


OF_OTHER = ("states.txt: removed .a tombstone., as the console printed last", "other – – removed", "other 77 0 CompleteAbort")
OF_GROUP = (
    "a console consumer printed",
    "commits.txt g orders-0 9 ",
    "commits.txt g orders-1 deleted",
    "It prints no offsets and ends where it was stopped: what came later is not told, and commits of open and of aborted",
)
TOLD = {
    "--id late-writer-0": (
        "CompleteAbort.*, by entry",
        "states.txt: Ongoing since .*04:31:20 UTC, in __consumer_offsets-3, orders-0, timeout 1 min, as the console printed last",
        "a console consumer printed, last line first",
        "states.txt late-writer-0 1 0 Ongoing",
        "states.txt late-writer-0 1 0 PrepareCommit",
        "no rule judges by it",
        "T01 critical",
    ),
    "--id other": OF_OTHER,
    "--pid 77": ("states.txt other 77 0 CompleteAbort", "no finding about it"),
    "--group g": OF_GROUP,
    "orders-0": (
        "last stable offset",
        "a console consumer printed, last line first",
        "states.txt late-writer-0 1 0 Ongoing",
        "no rule judges by it",
        "a console consumer printed",
        "commits.txt g orders-0 9 ",
    ),
    "orders-1": ("commits.txt g orders-1 deleted",),
}


def untold(arguments: str, wanted: tuple[str, ...], out: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What `why` does not tell of what it must, in this order."""
    assert run_command(["why", *arguments.split(), "--out", str(out)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    place = 0
    for pattern in wanted:
        found = re.compile(pattern.replace(".*", ".*?")).search(said, place)
        if not found:
            return [pattern, said[place:]]
        place = found.end()
    return []


@pytest.mark.parametrize("subject", TOLD)
def test_why_tells_what_the_console_printed(subject: str, beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert untold(subject, TOLD[subject], beside, capsys) == []


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ("--id other", OF_OTHER),
        ("--group g", OF_GROUP),
        ("orders-0", ("no replica of it was dumped", "late-writer-0 1 0 Ongoing", "commits.txt g orders-0 9 ")),
        ("__consumer_offsets-3", ("no replica of it was dumped", "late-writer-0 1 0 Ongoing")),
    ],
)
def test_why_tells_it_without_dumps(subject: str, wanted: tuple[str, ...], alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert untold(subject, wanted, alone, capsys) == []


@pytest.mark.parametrize("name", ["orders-7", "orders"])
def test_what_is_over_and_what_is_no_partition_is_no_news(name: str, alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["why", name, "--out", str(alone)]) == 10
    assert f"the dumps hold no partition {name}" in capsys.readouterr().err


def test_alone_it_is_never_a_pass(alone: Path) -> None:
    verdict = Results(alone).verdict
    assert (verdict["verdict"], verdict["exit_code"]) == ("unknown", 2) and not Results(alone).findings
    # Read twice, it is there once.
    assert len(Results(alone).rows("console_records", group="g")) == 3


def test_what_is_not_read_of_it_is_counted(beside: Path) -> None:
    unread = {str(row["path"]) for row in Results(beside).rows("dump_files") if row["bytes_unread"]} - {"describe.txt", "list.txt"}
    assert {path for path in unread if "/" not in path} == {"commits.txt", "console-groups.txt", "console-offsets.txt", "console-txn.txt"}


@pytest.mark.parametrize(
    ("name", "column", "value"), [("states.txt", "status", "CompleteAbort"), ("console-offsets.txt", "group", "grp,pay ments")]
)
def test_a_record_is_shown_by_its_address(name: str, column: str, value: str, beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = Results(beside).rows("console_records", **{column: value})[0]
    assert run_command(["show", f"{name}@{row['byte_offset']}", "--out", str(beside)]) == 0
    said = capsys.readouterr().out
    assert "as a console consumer printed it" in said and re.search(rf"{column} +{value}", said)
