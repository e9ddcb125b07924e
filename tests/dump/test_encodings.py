"""What shells and editors put around dump text."""

from pathlib import Path

import pytest

from eo_audit import pipeline
from eo_audit.dump.files.discovery import discover, look_through
from eo_audit.dump.files.recognised import spoilt
from eo_audit.errors import InputError
from tests.support.dump_text import Batch, Rec, Style, dump
from tests.support.facts import parsed

BOM = b"\xef\xbb\xbf"
INDEX = b"Dumping /data/orders-0/00000000000000000000.txnindex\nversion: 0 producerId: 1 firstOffset: 0 lastOffset: 3 lastStableOffset: 4\n"


@pytest.mark.parametrize(
    "text", [dump([Batch([Rec(b"k", b"v")], 5, n) for n in range(3)], Style()), INDEX, INDEX.partition(b"\n")[0] + b"\n"]
)
@pytest.mark.parametrize("name", ["loose.txt", "broker-1/orders-0/00000000000000000000.err.txt"])
def test_a_byte_order_mark_costs_nothing(text: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    read = []
    for before in (b"", BOM):
        path.write_bytes(before + text)
        file = discover([tmp_path])[0]
        read.append(parsed(file))
        assert file.kind_hint == "text"
    bare, marked = read
    assert marked.ledger.unread == 0 and marked.ledger.total == len(BOM + text)
    assert marked.ledger.facts == bare.ledger.facts
    sections = [result.facts["dump_sections"].to_pylist()[0] for result in read]
    assert sections[0]["dumped_path"] == sections[1]["dumped_path"] is not None
    assert (sections[1]["byte_offset"], sections[1]["length"]) == (len(BOM), len(text))


@pytest.mark.parametrize("name", ["a b.txt", "manifest.yaml", "listing.txt", "orders-0/00000000000000000000.log.txt", "x.err.txt"])
@pytest.mark.parametrize(("encoding", "called"), [("utf-16", "UTF-16"), ("utf-16-be", "UTF-16"), ("utf-16-le", "UTF-16LE")])
def test_utf16_says_what_to_do(name: str, encoding: str, called: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xfe\xff" * (encoding == "utf-16-be") + "Dumping x\ncluster: a\n".encode(encoding))
    (tmp_path / "good.txt").write_bytes(INDEX)
    problems = look_through([tmp_path]).problems
    assert [Path(problem.path).name for problem in problems] == [path.name]
    assert f"iconv -f {called} -t UTF-8" in problems[0].text and "cmd.exe" in problems[0].text
    with pytest.raises(InputError, match="UTF-16"):
        discover([path])


def before_each(before: str, text: bytes = INDEX) -> bytes:
    """What a collector made of a dump: `%d` counts the lines."""
    return b"".join((before % n if "%" in before else before).encode() + line for n, line in enumerate(text.splitlines(keepends=True), 9))


PUT_BEFORE = {
    "kafka-1  | ": "with 'kafka-1  | ' before each line: take that off (`cut -b 12-`)",
    "[pod/kafka-0/kafka] 2026-11-21T04:25:11.123456789Z ": "(`cut -b 52-`)",
    "\x1b[36mkafka |\x1b[0m ": r"'\x1b[36mkafka |\x1b[0m ' before each line",
    "%6d\t": r"with '     9\t' before each line: take that off (`cut -b 8-`)",
    "%d:": "with something before each line ('9:' before the first)",
    '{"log":"': "wrapped in JSON, line by line",
}


@pytest.mark.parametrize("before", PUT_BEFORE)
@pytest.mark.parametrize("name", ["loose.txt", "orders-0/00000000000000000000.txnindex.txt"])
def test_what_a_collector_puts_before_each_line_is_named(before: str, name: str, tmp_path: Path) -> None:
    path, said = tmp_path / name, list[str]()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before_each(before))
    (tmp_path / "good.txt").write_bytes(dump([Batch([Rec(b"k", b"v")], 5, 0)], Style()))
    pipeline.discover([tmp_path], pipeline.Options(notice=said.append))
    (sentence,) = said
    assert f"{path.name} is a dump w" in sentence and PUT_BEFORE[before] in sentence


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        (b"\r\r\n", r"two carriage returns behind each line: take them off (`tr -d '\r'`)"),
        (b"\r", r"with carriage returns for ends of lines: make them so (`tr '\r' '\n'`)"),
        (b"\x1b[m\n", "with the colours of a terminal in its lines"),
        (b"\n\n", "with a blank line behind each line: take them out (`sed 'n;d'`)"),
        (b"\r\n\r\n", "with a blank line behind each line"),
        (b"   \n", "with blanks behind its lines, as a terminal fills them up: take them off (`sed 's/ *$//'`)"),
    ],
)
def test_what_became_of_the_ends_of_lines_is_named(ends: bytes, says: str, tmp_path: Path) -> None:
    path, said = tmp_path / "orders-0" / "00000000000000000000.txnindex.txt", list[str]()
    path.parent.mkdir()
    path.write_bytes(INDEX.replace(b"\n", ends))
    (tmp_path / "good.txt").write_bytes(dump([Batch([Rec(b"k", b"v")], 5, 0)], Style()))
    pipeline.discover([tmp_path], pipeline.Options(notice=said.append))
    assert len(said) == 1 and says in said[0]
    assert parsed(discover([path])[0]).ledger.unread > 0


@pytest.mark.parametrize("width", [80, 132, 211])
def test_lines_that_a_terminal_wrapped_are_named(width: int) -> None:
    whole = dump([Batch([Rec(b"k", b"v" * 300)], 5, 0), Batch([Rec(b"k", b"v")], 5, 1)], Style())
    wrapped = b"".join(line[at : at + width] + b"\n" for line in whole.splitlines() for at in range(0, len(line), width))
    assert spoilt(whole) is None
    assert (spoilt(wrapped) or "").startswith("with its lines broken, as a terminal or an editor wraps them: print the dump again")


@pytest.mark.parametrize(
    "text",
    [
        dump([Batch([Rec(b"k", b"\n\nx\n\n" * 9)], 5, 0)], Style()),
        dump([Batch([Rec(b"k", b"\nbaseOffset: 3" * 9)], 5, 0)], Style()),
        dump([Batch([Rec(b"k", b"v")], 5, 0)], Style())[:200],
        dump([Batch([Rec(b"k", b"\n  baseOffset: 3\n  Dumping x" * 9)], 5, 0)], Style()),
        dump([Batch([Rec(b"k", b"\x1b[31mred\x1b[m\r\r\n" * 9)], 5, 0)], Style()),
        BOM + INDEX,
        INDEX.replace(b"\n", b"\r\n"),
        b"INFO saw baseOffset: 1\n" + b"INFO nothing of importance\n" * 9,
        b"INFO saw baseOffset: 1\n",
        b"",
    ],
)
def test_a_dump_as_it_was_printed_and_the_log_of_a_program_are_not_spoilt(text: bytes) -> None:
    assert spoilt(text) is None
