"""No byte of a key, a value or a header key in any fact, and dumps without payloads read as those with them."""

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.files.discovery import discover
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from tests.support.dump_text import RELEASES, Batch, Rec, Style, dump
from tests.support.facts import parsed, text_of
from tests.support.without_payloads import without_payloads

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1)
PRINTED = Path(__file__).parents[1] / "data" / "printed"
CANARY = "4111111111111111"
LINES = (
    b"Error: com.acme.pay.%sException: %s",
    b"Caused by: java.io.EOFException: %s",
    b'Exception in thread "main" java.lang.%sError: %s\n\tat com.%s.Pay(Pay.java:1)',
    b'Exception in thread "main" java.lang.OutOfMemoryError: %s',
    b"WARNING: %s",
    b"[2026-01-01 00:00:00,000] WARN %s (kafka.log)",
    b"Found 3 invalid bytes at the end of /data/%s.log",
    b"Non-consecutive offsets in /data/%s.log\n  1 is followed by 3",
    b"/data/%s.index is empty.",
)
BEFORE = {
    "text": b"",
    "a line": b"ordinary\n",
    "not UTF-8": b"\xff" * 60 + b"\n",
    "accents": "zażółć gęślą jaźń ".encode() * 4 + b"\n",
    "carriage returns": b"line\r\n" * 40,
}


def read(text: bytes, *, fast: bool = True) -> RangeResult:
    return parse_range(text, context=CONTEXT, base=0, start=0, stop=len(text), state=State.initial(), final=True, fast=fast)


def words(result: RangeResult) -> list[str]:
    """All text in all facts."""
    columns = [column for facts in result.facts.values() for column in facts.columns]
    # No number and no flag is text: most columns are made into objects for nothing.
    told = (column for column in columns if not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)))
    return [value for column in told for value in column.to_pylist() if isinstance(value, str)]


def in_disguise(line: bytes) -> bytes:
    return line.replace(b"%s", CANARY.encode())


STYLES: tuple[dict[str, bool], ...] = ({}, {"ascii": True}, {"crlf": True}, {"printed": False})
WHERE = [*itertools.product(("none", "gzip"), ("value", "key", "header keys"), (0, 2))]  # codec, place in the record, batches behind it


@pytest.mark.parametrize("release", ["2.3", "2.8", "4.3"])
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("style", STYLES, ids=str)
def test_no_text_of_a_record_in_any_fact(release: str, before: bytes, style: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)
    turn = ("2.3", "2.8", "4.3").index(release) + [*BEFORE.values()].index(before) + STYLES.index(style)
    for number, line in enumerate(LINES):
        said = in_disguise(line)
        records = {
            "value": Rec(b"k", before + said),
            "key": Rec(before + said, b"v"),
            "header keys": Rec(b"k", b"v", ((before + said, 3), (b"h]\n" + said, 3))),
        }
        # Every sixth of the places, by turns: each line meets each place in each release, before each text and in each style.
        for codec, place, behind in WHERE[(turn + number) % 6 :: 6]:
            batches = [Batch([Rec(b"k", b"v")], 5, 0), Batch([Rec(b"k1", b"v1"), records[place]], 5, 1, codec=codec)]
            batches += [Batch([Rec(b"k", b"v")], 5, 3 + index) for index in range(behind)]
            text = dump(batches, Style(release, **style))
            for fast in (False, True):
                assert [word for word in words(read(text, fast=fast)) if CANARY in word] == [], said


@pytest.mark.parametrize("line", LINES)
def test_no_text_of_a_record_where_the_head_of_a_dump_is_missing(line: bytes) -> None:
    batches = [Batch([Rec(b"k", b"first\n" + in_disguise(line) + b"\n")], 5, index) for index in range(3)]
    text = dump(batches, Style())
    for cut in range(text.index(b"first\n"), text.index(b"first\n") + 8):
        assert [word for word in words(read(text[cut:])) if CANARY in word] == []


def test_a_message_is_kept_where_no_record_can_stand() -> None:
    """What ended the dump before its first record, and beside indexes; among records only the tool's own words."""
    said = b'Exception in thread "main" org.apache.kafka.common.KafkaException: Failed to read /data/x.log\n'
    start = b"Dumping /data/orders-0/00000000000000000000.log\nLog starting offset: 0\n"
    index = b"Dumping /data/orders-0/00000000000000000000.txnindex\n"
    records = dump([Batch([Rec(b"k", b"v")], 5, 0)], Style())
    kept = [row["text"] for text in (start + said, index + said) for row in read(text).facts["tool_messages"].to_pylist()]
    assert kept == [said.decode().rstrip()] * 2
    result = read(records + said + b"Found 7 invalid bytes at the end of orders-0/00000000000000000000.log\n")
    assert [row["text"] for row in result.facts["tool_messages"].to_pylist()] == [
        'Exception in thread "main" org.apache.kafka.common.KafkaException (94 bytes, not kept: they may be part of a record)',
        "Found 7 invalid bytes at the end of orders-0/00000000000000000000.log",
    ]
    assert [row["end_reason"] for row in result.facts["dump_sections"].to_pylist()] == ["exception"]


@pytest.mark.parametrize("fast", [False, True])
def test_a_dump_that_goes_on_was_not_cut_off(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)
    text = dump([Batch([Rec(b"k", b"v%d" % index)], 5, index) for index in range(4)], Style())
    at = text.rindex(b"baseOffset")
    said = text[:at] + b"java.io.IOException: a library said so\n" + text[at:]
    result = read(said, fast=fast)
    assert [row["end_reason"] for row in result.facts["dump_sections"].to_pylist()] == ["eof"]
    assert result.facts["tool_messages"].num_rows == 1 and result.facts["batches"].num_rows == 4


@pytest.mark.parametrize("version", ["3.9.1", "4.3.1"])
def test_the_same_segment_printed_with_and_without_payloads(version: str) -> None:
    with_them, without = (discover([PRINTED / f"{version}-{how}.log.txt"])[0] for how in ("with-payloads", "without"))
    records = parsed(with_them).facts["records"].select(["byte_offset", "length", "key_size", "value_size"]).to_pylist()
    bare = without_payloads(text_of(with_them), [tuple(row.values()) for row in records])
    assert bare == text_of(without)
    assert facts(parsed(with_them)) == facts(parsed(without))


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_with_and_without_payloads(release: str) -> None:
    batches = [
        Batch([Rec(b"k%d" % index, None if index % 5 == 4 else b"v" * index), Rec(None, b"x\ny")], 5, 2 * index) for index in range(9)
    ]
    batches.insert(4, Batch([Rec(b"", b"")], producer_id=5, transactional=True, marker="COMMIT"))
    with_them, without = (facts(read(dump(batches, Style(release, printed=printed)))) for printed in (True, False))
    assert with_them == without and len(with_them["batches"]) == 10


def facts(result: RangeResult) -> dict[str, list[dict[str, object]]]:
    """Batches and records less what differs: where their text stands, and the hashes of what is printed."""
    left_out = {"section_id", "byte_offset", "length", "key_hash", "value_hash", "payload_verified"}
    return {
        name: [{key: value for key, value in row.items() if key not in left_out} for row in result.facts[name].to_pylist()]
        for name in ("batches", "records")
    }


def test_no_section_is_named_by_a_record() -> None:
    batches = [Batch([Rec(b"k", b"v")], 5, 0), Batch([Rec(b"k", b"\xff" * 40 + in_disguise(b"\nDumping %s of somebody"))], 5, 1)]
    text = dump([*batches, Batch([Rec(b"k", b"v")], 5, 2)], Style())
    assert [word for word in words(read(text)) if CANARY in word] == []
