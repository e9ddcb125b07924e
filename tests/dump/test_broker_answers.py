"""Answers of live brokers: recognised by their text, read where their widths prove the rows, and every byte has an owner.

The texts below `cases/live` are what the tools of those releases printed of real brokers (3.9.1 and 4.3.1): transactional ids with a blank,
with letters beyond ASCII and with a line feed, one transaction open.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from eo_audit.dump.files.broker_answers import TABLES, is_head
from eo_audit.dump.files.identity import ManifestHint, identify, parse_path
from eo_audit.dump.files.recognised import printed_by
from eo_audit.dump.files.sidecars import ANSWERS, SidecarFacts, SidecarFile, read_sidecar
from eo_audit.store.schemas import schema

LIVE = Path(__file__).parent / "cases" / "live"
COMMANDS = ("list", "describe", "describe-producers", "find-hanging")
RELEASES = ("3.9.1", "4.3.1")
DUMP = b"Dumping /d/orders-0/00000000000000000000.log\nLog starting offset: 0\n"


def read(content: bytes, path: str = "broker-1/orders-0/answers.txt") -> SidecarFacts:
    whose = identify("c", manifest=ManifestHint(), dumped_path=None, own=parse_path(path))
    facts = read_sidecar(content, SidecarFile(7, ANSWERS, whose))
    assert sum(facts.bytes_by_owner.values()) == len(content) == facts.section["length"]
    pa.Table.from_pylist(facts.rows["broker_answers"], schema=schema("broker_answers").arrow()).validate(full=True)
    return facts


def printed(command: str, *rows: tuple[str, ...]) -> bytes:
    """A table as `ToolsUtils.prettyPrintTable` prints it."""
    lines = [tuple(name for name, _, _ in TABLES[command]), *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "".join("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)) + "\n" for line in lines).encode()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("command", COMMANDS)
def test_real_answers_are_recognised_and_read(release: str, command: str) -> None:
    content = (LIVE / release / f"{command}.txt").read_bytes()
    assert printed_by(content) == ANSWERS
    facts = read(content)
    rows = facts.rows["broker_answers"]
    assert {row["command"] for row in rows} <= {command}
    # What is not read is the one id that holds a line feed, on its two lines: `nl` and `id`.
    unread = [content[int(one["byte_offset"] or 0) :][: int(one["length"] or 0)] for one in facts.rows["unread_spans"]]
    broken = command in ("list", "describe")
    assert [text.count(b"\n") for text in unread] == [2] * broken and all(b"nl\nid " in text for text in unread)
    assert len(rows) == {"list": 5, "describe": 5, "describe-producers": 6, "find-hanging": 0}[command]


def test_what_an_open_transaction_looks_like() -> None:
    of = {command: read((LIVE / "4.3.1" / f"{command}.txt").read_bytes()).rows["broker_answers"] for command in COMMANDS}
    (described,) = (row for row in of["describe"] if row["transactional_id"] == "open-9")
    partitions = [{"topic": topic, "partition": number} for topic, number in (("orders", 0), ("orders", 1), ("audit.log", 0))]
    assert described["partitions"] == partitions
    assert (described["producer_id"], described["producer_epoch"], described["status"]) == (4, 2, "Ongoing")
    assert (described["timeout_ms"], described["start_ms"], described["duration_ms"]) == (600_000, 1795446934171, 56711)
    assert [row["current_txn_first_offset"] for row in of["describe-producers"]] == [None, None, None, 22, None, None]
    # Of which partition it is, only the folder tells.
    assert {(row["topic"], row["partition"]) for row in of["describe-producers"]} == {("orders", 0)}
    assert {row["transactional_id"] for row in of["list"]} >= {"pay ments", "zażółć", "idle-0"}


def test_an_answer_in_no_folder_of_a_partition_is_of_no_partition() -> None:
    facts = read((LIVE / "4.3.1" / "describe-producers.txt").read_bytes(), "broker-1/answers.txt")
    assert {row["topic"] for row in facts.rows["broker_answers"]} == {None}


def test_a_hanging_transaction() -> None:
    content = printed("find-hanging", ("orders", "0", "4", "2", "-1", "22", "1795446934139", "17"))
    (row,) = read(content).rows["broker_answers"]
    assert (row["topic"], row["partition"], row["current_txn_first_offset"], row["duration_minutes"]) == ("orders", 0, 22, 17)


@pytest.mark.parametrize("command", ("list", "describe"))
def test_a_row_inside_an_id_is_not_believed(command: str) -> None:
    names = [column for _, column, _ in TABLES[command]]
    values = {"transactional_id": "a", "coordinator": "1", "producer_id": "666", "status": "Ongoing", "producer_epoch": "0"}
    row = tuple(values.get(name, "" if name == "partitions" else "1") for name in names)
    inner = printed(command, row).decode().splitlines()[1]
    forged = tuple(f"x\n{inner}\ny" if name == "transactional_id" else value for name, value in zip(names, row, strict=True))
    facts = read(printed(command, forged, row))
    # The row of its own is read, the forgery inside the id is not.
    assert [one["producer_id"] for one in facts.rows["broker_answers"]] == [666] and facts.bytes_by_owner["unread"] > len(inner)
    honest = read(printed(command, row))
    assert len(honest.rows["broker_answers"]) == 1 and honest.bytes_by_owner["unread"] == 0


def test_without_its_tabs_a_table_is_recognised_and_no_row_is_believed() -> None:
    content = (LIVE / "4.3.1" / "list.txt").read_bytes().replace(b"\t", b" ")
    assert printed_by(content) == ANSWERS
    facts = read(content)
    assert not facts.rows["broker_answers"] and facts.bytes_by_owner["unread"] > 200


@pytest.mark.parametrize("line_end", (b"\n", b"\r\n"))
def test_several_tables_behind_noise(line_end: bytes) -> None:
    tables = [(LIVE / "3.9.1" / f"{command}.txt").read_bytes() for command in COMMANDS]
    content = b"".join([b"Picked up JAVA_TOOL_OPTIONS: -Dx=y\n", *tables]).replace(b"\n", line_end)
    facts = read(content)
    assert printed_by(content) == ANSWERS
    assert [len([row for row in facts.rows["broker_answers"] if row["command"] == command]) for command in COMMANDS] == [5, 5, 6, 0]
    assert len(facts.rows["tool_messages"]) == 1


def test_a_file_cut_at_any_byte_balances() -> None:
    whole = (LIVE / "4.3.1" / "describe.txt").read_bytes()[:700]
    numbers = [len(read(whole[:size]).rows["broker_answers"]) for size in range(len(whole))]
    assert numbers == sorted(numbers) and numbers[0] == 0 and numbers[-1] == 2


def test_what_a_dump_holds_is_of_the_dump_and_what_an_id_holds_is_of_the_answer() -> None:
    answer, console = ((LIVE / "3.9.1" / name).read_bytes() for name in ("list.txt", "console-txn-old.txt"))
    assert printed_by(DUMP + b"| offset: 0 payload: \n" + answer) == printed_by(DUMP + console) == "text"
    assert printed_by(answer + DUMP) == ANSWERS
    assert printed_by(b"TransactionalId\n") is None and not is_head(b"ProducerId\tProducerEpoch\t")
