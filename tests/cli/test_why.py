"""What is open, whose it is, who waits, what ended it: `eo-audit why` over the examples, which are dumps of real brokers."""

import re
from pathlib import Path

import pytest
from rich.text import Text

import eo_audit
from eo_audit.cli import run_command
from eo_audit.report.subject import Copy, table_of, told_once
from eo_audit.report.why_partition import how_far
from tests.conftest import EXAMPLES

# Arguments -> what must be told, in this order.
ANSWERS = {
    "orders-0 --cluster hanging_txn_k39": (
        "offsets 0 to 14, high watermark 14, last stable offset 6",
        "consumers are stuck at offset 6 since .* behind late-writer-0 .producer 1.",
        "late-writer-0 +1 +0 +6 +3 .*nobody",
        "late-writer-0 +1 +0 +2-3 +2 +5 +aborted at .*client abort",
        "T01 +critical",
        "kafka-transactions.sh .* abort --topic orders --partition 0 --start-offset 6$",
    ),
    "payments-0": (
        "cluster clean_tv2, broker 1: .*no transaction is open here",
        "cluster payments-prod, broker 1: .*last stable offset 0",
        "consumers wait at offset 0 for settlement-7f3a .producer 0., open for 40 of 60 min",
        "settlement-7f3a +0 +0 +0 +3 .*its coordinator will end it",
    ),
    "--id settlement-7f3a": ("^Ongoing .*entry 1 of __transaction_state-2", "open since .*, in payments-0", "open .Ongoing.", "T12 +info"),
    "settlement-7f3a": ("^Ongoing .*entry 1 of __transaction_state-2", "open since .*, in payments-0", "T12 +info"),
    "--id order-writer-0 --cluster clean_tv2": ("^CompleteCommit", "TV2|transaction timeout", "commit", "no finding about it"),
    "--pid 1 --cluster hanging_txn_k39": ("the producer of late-writer-0", "orders-0 +1 +0 +2-8 +5 .* 6 +ABORT at 5", "T02 +critical"),
    "--group payments-app": (
        "cluster clean_tv2, broker 1: nothing is pending in __consumer_offsets-.",
        "orders-0 +52 +2 +0 .*payments-app-0 +5",
        "orders-2 +4 +43 +22 ",
        "orders-0: lag 2, and nothing to read: up to 54 there are only markers and aborted records",
    ),
}
REFUSED = {
    "orders-77": "the dumps hold no partition orders-77; they hold ",
    "orders": "the dumps hold no partition orders; they hold ",
    "--id nobody": "no dump of __transaction_state tells of the id nobody",
    "--pid 4711": "no dump tells of a producer 4711",
    "--group nobody": "no dump of __consumer_offsets tells of offsets that a group nobody committed in transactions",
    "--group console-consumer-531": "the dumps tell of a group console-consumer-531, but of no offsets that it committed in transactions",
    "orders-0 --pid 1": "name one thing: a partition such as orders-0, --id ID, --pid N or --group GROUP",
    "": "name one thing: a partition such as orders-0, --id ID, --pid N or --group GROUP",
}


def told(arguments: str, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run_command(["why", *arguments.split(), "--out", str(out)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", ANSWERS)
def test_it_tells(arguments: str, all_examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(arguments, all_examples, capsys)
    place = 0
    for wanted in ANSWERS[arguments]:
        # Cells of a table are wrapped: any blanks will do between words.
        pattern = re.compile(wanted.replace(".*", ".*?").replace(" ", r"\s+").replace("^", r"^\s*"), re.MULTILINE | re.DOTALL)
        found = pattern.search(said, place)
        assert found, f"{wanted}\n{said[place:]}"
        place = found.end()
    # What a command takes for granted is said once above it, and only where there is one.
    assert said.count("First say where brokers can be reached: BOOTSTRAP=host:9092") == ("--bootstrap-server $BOOTSTRAP" in said)
    assert said.find("--command-config client.properties") <= said.find("--bootstrap-server $BOOTSTRAP")
    assert not [line for line in said.splitlines() if line != line.rstrip()]
    assert not [line for line in said.splitlines() if len(line) > 100 and "kafka-transactions.sh" not in line]


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_is_not_there_is_said_in_one_sentence(arguments: str, all_examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["why", *arguments.split(), "--out", str(all_examples)]) == 10
    assert capsys.readouterr().err.startswith(f"eo-audit: {REFUSED[arguments]}")


def test_before_the_histories_are_made_nobody_is_told_that_dumps_hold_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert run_command(["ingest", str(EXAMPLES / "clean" / "dumps"), "--out", out]) == 0
    capsys.readouterr()
    for arguments in (["orders-0"], ["--id", "order-writer-0"], ["--pid", "0"], ["--group", "payments-app"]):
        assert run_command(["why", *arguments, "--out", out]) == 11
        said = capsys.readouterr().err
        assert said.endswith(f"no audit of them yet: run `eo-audit rebuild --out {out}` and `eo-audit audit --out {out}`\n")


def test_copies_that_nothing_tells_apart_are_told_once(all_examples: Path) -> None:
    table = table_of("", "transactional id")
    table.add_row("[/no-markup]")  # somebody's id: only text
    copies = [(1, "prod", "at 6"), (2, "prod", "at 5"), (3, "prod", "at 6"), (4, "test", "at 6"), (None, "test", "at 5")]
    blocks = told_once(
        [Copy({"cluster": cluster, "broker": broker}, Text(line), [table]) for broker, cluster, line in copies],
        eo_audit.open(all_examples),
    )
    assert [str(block) for block in blocks if block is not table and str(block)] == [
        "cluster prod, brokers 1, 3: at 6",
        "cluster prod, broker 2: at 5",
        "cluster test, broker 4: at 6",
        "cluster test: at 5",
    ]


def test_the_page_shows_what_it_prints(hanging_example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "operate.md").read_text(encoding="utf-8")
    assert told("orders-0", hanging_example, capsys).strip() in page


LOG = {"log_start": 0, "leo": 10, "hw": 10, "lso": 10, "hw_source": "leo", "tail_intact": True, "coverage": "full"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "high watermark 10, last stable offset 10"),
        ({"tail_intact": False}, "high watermark at least 10, last stable offset at least 10"),
        ({"tail_intact": False, "lso": 6}, "high watermark at least 10, last stable offset 6"),
        ({"tail_intact": False, "lso": None}, "high watermark at least 10, last stable offset –"),
        ({"tail_intact": False, "hw_source": "checkpoint", "hw": 12}, "high watermark 12, last stable offset 10"),
    ],
)
def test_behind_a_dump_that_is_cut_the_log_goes_on(changed: dict[str, object], said: str) -> None:
    assert said in how_far(LOG | changed).plain
