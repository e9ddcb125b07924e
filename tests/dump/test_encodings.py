"""What shells and editors put around dump text."""

from pathlib import Path

import pytest

from eo_audit.dump.files.discovery import discover, look_through
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
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_says_what_to_do(name: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xfe\xff" * (encoding == "utf-16-be") + "Dumping x\ncluster: a\n".encode(encoding))
    (tmp_path / "good.txt").write_bytes(INDEX)
    problems = look_through([tmp_path]).problems
    assert [Path(problem.path).name for problem in problems] == [path.name]
    assert "iconv -f UTF-16 -t UTF-8" in problems[0].text and "cmd.exe" in problems[0].text
    with pytest.raises(InputError, match="UTF-16"):
        discover([path])
