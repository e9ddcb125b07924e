"""Payloads that are no text: the fast path reads those whose lines say where they end, as the exact reader reads all of them."""

import random

import pytest

from eo_audit.dump.fast import odd_lines
from tests.support.dump_text import Batch, Rec, Style, dump
from tests.support.lossy_text import FIRST, forged_piece, lossy_batches
from tests.support.readers import CONTEXT, assert_same, exact_reading

BATCHES = 300
UTF_8, C_LOCALE = Style(), Style(ascii=True)


def binary_batches(codec: str, records: int) -> list[Batch]:
    """Line feeds, question marks, and bytes that are no UTF-8 or no ASCII."""
    rng = random.Random(7)
    some = [[Rec(b"k%d" % index, rng.randbytes(rng.randint(20, 60))) for index in range(records)] for _ in range(BATCHES)]
    return [FIRST, *(Batch(found, 5, 1 + number * records, codec=codec) for number, found in enumerate(some))]


@pytest.mark.parametrize("records", [1, 6])
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("style", [UTF_8, C_LOCALE, Style("2.7"), Style("3.1")], ids=["utf-8", "c locale", "2.7", "3.1"])
def test_they_are_taken(style: Style, codec: str, records: int, taken: list[int]) -> None:
    text = dump(binary_batches(codec, records), style)
    assert assert_same(text) == 1 + BATCHES
    assert exact_reading(text, CONTEXT).ledger.unread == 0
    assert sum(taken) > 0.95 * BATCHES


@pytest.mark.parametrize("seed", range(6))
def test_both_readers_agree(seed: int, stretches: None) -> None:
    rng = random.Random(seed)
    text = dump(lossy_batches(rng), Style(rng.choice(("4.3", "3.1", "2.7", "2.3")), ascii=seed % 3 == 0))
    assert_same(text)
    at = rng.randrange(len(text))
    assert_same(text[:at] + rng.choice((b"", forged_piece(rng, 30, 900))) + text[at + rng.choice((0, 1, 200)) :])


ODD = {
    "a second separator": b"\xff\xff payload: x",
    "a second end of header keys": b"\xff] key: x payload: y",
    "line feeds at which its bytes could end": b"\xff" * 12 + b"\n" + b"ab\n" * 8,
    "a message at its end": b'\xff\xff\nException in thread "main" java.io.IOException: x\n\tat a.B.c(D.java:1)',
    "a record line of its own batch": b"\xff\xff\n| offset: 9 CreateTime: 1 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [] key: k",
    "another section": b"\xff\xff\nDumping /d/orders-0/00000000000000000000.log\nLog starting offset: 0",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("style", [UTF_8, C_LOCALE], ids=["utf-8", "c locale"])
def test_what_could_be_read_in_two_ways_is_no_matter_of_lines(style: Style, odd: str, taken: list[int]) -> None:
    batches = binary_batches("none", 1)
    for place in range(40, BATCHES, 40):
        batches[place] = Batch([Rec(b"k", ODD[odd])], 5, place)
    assert_same(dump(batches, style))
    assert sum(taken) > 0.25 * BATCHES


def test_thousands_of_sections_in_print_are_not_looked_at_one_by_one(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    looked, starts_section = list[int](), odd_lines.starts_section
    monkeypatch.setattr(odd_lines, "starts_section", lambda window, at: looked.append(at) or starts_section(window, at))
    batches = binary_batches("none", 1)
    for number, sections in ((100, 6_000), (200, 20)):
        batches[number] = Batch([Rec(b"k", b"\nDumping x" * sections)], 5, number)
    text = dump(batches, UTF_8)
    assert_same(text)
    assert not looked and sum(taken) > 0
    assert_same(dump([*batches[:100], *batches[101:]], UTF_8))
    assert len(looked) == 20
