"""What live brokers answered, beside dumps: told by `why` and `show`, judged by no rule, and never the whole of what an audit needs."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from eo_audit.cli import run_command
from eo_audit.report.results import Results

ROOT = Path(__file__).parent.parent.parent
LIVE = ROOT / "tests" / "dump" / "cases" / "live" / "4.3.1"


def answers(dumps: Path) -> Path:
    """All three kinds of answers beside the dumps, one of them in the folder of a partition."""
    shutil.copy(LIVE / "describe-producers.txt", dumps / "broker-1" / "orders-0")
    for name in ("list.txt", "describe.txt"):
        shutil.copy(LIVE / name, dumps)
    return dumps


# Cells are wrapped, so words of one may stand between those of another.
TOLD = {
    "orders-0": (
        "describe-producers .*– 0 3 nothing .*open .*newest",
        "– 4 2 open .*from offset 22",
        "describe .*open-9 4 2 Ongoing, .*orders-0, .*10 min, .*15:16:30",
        "T01 critical",
    ),
    "--id open-9": ("describe .*open-9 4 2 Ongoing", "list .*open-9 4 – Ongoing", "no finding about it"),
    "--pid 6": ("no transactional id in the dumps has this producer id", "describe-producers .*– 6 0 nothing"),
}


@pytest.mark.parametrize("subject", TOLD)
def test_why_tells_what_brokers_answered(subject: str, beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["why", *subject.split(), "--out", str(beside)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    place = 0
    for wanted in TOLD[subject]:
        found = re.compile(wanted.replace(".*", ".*?")).search(said, place)
        assert found, f"{wanted}\n{said[place:]}"
        place = found.end()


def test_an_answer_is_shown_by_its_address(beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = Results(beside).rows("broker_answers", command="list", transactional_id="open-9")
    assert run_command(["show", f"list.txt@{row['byte_offset']}", "--out", str(beside)]) == 0
    said = capsys.readouterr().out
    assert "a broker's answer to kafka-transactions.sh" in said and re.search(r"status +Ongoing", said)


@pytest.mark.parametrize("told", ["findings", "partitions", "transactions", "exit_code"])
def test_they_change_nothing_that_is_judged(judged_alike: Mapping[str, tuple[object, object]], told: str) -> None:
    with_them, without = judged_alike[told]
    assert with_them == without


def test_lines_of_answers_that_are_not_read_are_counted(beside: Path) -> None:
    """The two of the id with a line feed."""
    unread = {str(row["path"]) for row in Results(beside).rows("dump_files") if row["bytes_unread"]}
    assert {path for path in unread if "console" not in path and "/" not in path} - {"commits.txt"} == {"describe.txt", "list.txt"}


def test_answers_alone_are_no_dumps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dumps").mkdir()
    shutil.copy(LIVE / "list.txt", tmp_path / "dumps")
    assert run_command(["run", str(tmp_path / "dumps"), "--out", str(tmp_path / "out")]) == 11
    assert "there is no text of kafka-dump-log" in capsys.readouterr().err
