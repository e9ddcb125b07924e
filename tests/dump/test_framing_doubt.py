"""Behind damage nothing is believed that could be somebody's payload; honest text is believed again soon; a segment's size bounds it."""

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from tests.dump.test_framing_forged import forged_chain, lying
from tests.support.dump_text import Batch, Rec, Style, dump, forged_lines, forged_marker

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1)
Line = tuple[object, object, object]


@pytest.fixture(autouse=True)
def _fast_path_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)


def read(text: bytes, context: FileContext = CONTEXT) -> tuple[list[Line], RangeResult]:
    """The batches of a text, read whole; both readers agree."""
    fast, careful = (
        parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True, fast=fast)
        for fast in (True, False)
    )
    assert fast.ledger == careful.ledger and fast.state_out == careful.state_out and fast.facts.keys() == careful.facts.keys()
    assert all(facts.equals(careful.facts[table]) for table, facts in fast.facts.items())
    rows = fast.facts["batches"].to_pylist() if "batches" in fast.facts else []
    return [(row["base_offset"], row["position"], row["size_bytes"]) for row in rows], fast


def written(batches: list[Batch]) -> list[Line]:
    """The batches that were dumped."""
    return [(batch.offset, batch.position, batch.size_bytes) for batch in batches]


def long_chain(batch: Batch, style: Style) -> Rec:
    """A record whose value forges more text than was looked at before: 40 KB of markers that go on from its batch."""
    return Rec(b"k", b"v\n" + forged_chain(batch, style, 90) + b"\nbehind")


@pytest.mark.parametrize(("codec", "lost"), [("none", b"baseOffset: 2 "), ("none", b"| offset: 2 "), ("gzip", b"| offset: 2 ")])
def test_a_lost_line_makes_no_batch_of_a_long_payload(codec: str, lost: bytes) -> None:
    text, batches = lying(Style(), codec, long_chain, behind=40)
    at = text.index(lost)
    found, result = read(text[:at] + text[text.index(b"\n", at) + 1 :])
    assert set(found) <= set(written(batches)) and result.ledger.unread > 30_000
    assert (found[-1] == written(batches)[-1]) == (codec == "none")


def test_a_batch_line_at_another_position_is_not_believed_for_its_looks() -> None:
    style = Style()
    text, batches = lying(style, "none", lambda b, s: Rec(b"k", b"v\n" + forged_chain(b, s, 3)), behind=40)
    start, stop = text.index(b"baseOffset: 1 "), text.index(forged_chain(batches[2], style, 3))
    found, _ = read(text[:start] + text[stop:])
    assert set(found) <= set(written(batches)) and found[-1] == written(batches)[-1]


def test_a_section_of_which_nothing_is_printed_proves_nothing() -> None:
    forged = b"v\nDumping /x/other-1/00000000000000000000.log\nLog starting offset: 0"
    text, _ = lying(Style(), "none", lambda b, s: Rec(b"k", forged), behind=3)
    at = text.index(b"| offset: 2 ")
    _, result = read(text[:at] + text[text.index(b"\n", at) + 1 :])
    assert result.facts["dump_sections"].num_rows == 1


OTHER = "/x/other-1/00000000000000000000.log"
SECTION = f"v\nDumping {OTHER}\nLog starting offset: 0".encode()


@pytest.mark.parametrize("head", [b"", b"\0"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_section_is_none_where_a_record_line_announces_more_text(codec: str, head: bytes) -> None:
    """The batch line behind a payload prints position 0: it was moved there, or its number is damaged."""
    batches = [Batch([Rec(b"k", SECTION)], 5, 0, codec=codec), Batch([Rec(b"k", b"v")], 5, 1, codec=codec)]
    first, record, last = re.split(rb"(?=\| offset: 0 )|(?=baseOffset: 1 )", dump(batches, Style()))
    start = first.index(b"baseOffset: ")
    last = last.replace(b"position: %d" % batches[1].position, b"position: 0")
    for text in (first[:start] + record + first[start:], first[:start] + record + last, first + record + last):
        _, result = read(head + text)
        assert OTHER not in result.facts["dump_sections"]["dumped_path"].to_pylist()


def test_a_section_is_none_in_a_compressed_batch_of_a_log_that_nobody_saw_begin() -> None:
    """A header key prints as much as it likes: no size says how much."""
    forged = b"h] key: k payload: v\n" + dump([Batch([Rec(b"k", b"w" * 900)], 5, 0)], Style(), path=OTHER)
    text = dump([Batch([Rec(b"k", b"v", ((forged, 0),))], 5, 0, codec="gzip"), Batch([Rec(b"k", b"v")], 5, 1)], Style())
    _, result = read(b"\0" + text)
    assert OTHER not in result.facts["dump_sections"]["dumped_path"].to_pylist()


def test_a_section_behind_damage_is_one_only_where_its_text_is_whole() -> None:
    """The batch line behind a payload is another one's, whose own records stand elsewhere."""
    batches = [Batch([Rec(b"k", b"v")], 5, first) for first in (0, 1)]
    text = dump(batches, Style())
    own, orphan = text.index(b"baseOffset: 0 "), text.index(b"| offset: 0 ")
    second = text[text.index(b"baseOffset: 1 ") :].replace(b"| offset: 1 ", b"| offset: 7 ")
    second = second.replace(b"position: %d" % batches[1].position, b"position: 0")
    lost = text[:own] + text[orphan : text.index(b"\n", orphan) + 1] + SECTION.removeprefix(b"v\n") + b"\n"
    assert read(lost + second)[1].facts["dump_sections"].num_rows == 1
    assert read(lost + second.replace(b"| offset: 7 ", b"| offset: 1 "))[1].facts["dump_sections"].num_rows == 2


@pytest.mark.parametrize(
    "damage",
    [
        (b"lastOffset: 1 ", b"lastOffset: 99 "),
        (b"lastSequence: 1 ", b"lastSequence: 2 "),
        (b"baseSequence: 0 ", b"baseSequence: -1 "),
        (b"partitionLeaderEpoch: 0", b"partitionLeaderEpoch: 00"),
        (b" CreateTime: ", b" CreateTime: 0"),
        (b"producerEpoch: 0", b"producerEpoch: -0"),
    ],
)
def test_what_the_tool_cannot_have_printed_is_no_batch_line(damage: tuple[bytes, bytes]) -> None:
    """A last sequence that does not follow from the first, zeros before a number."""
    batches = [Batch([Rec(b"k", b"v"), Rec(b"k", b"v")], 5, 0), *(Batch([Rec(b"k", b"v" * 400)], 5, at) for at in range(2, 9))]
    honest = dump(batches, Style())
    assert damage[0] in honest
    found, result = read(honest.replace(*damage, 1))
    assert written(batches)[0] not in found and set(found) <= set(written(batches)) and found[-1] == written(batches)[-1]
    assert result.ledger.unread > 0


def test_the_tool_prints_no_batch_behind_its_own_end() -> None:
    batches = [Batch([Rec(b"k", b"v")], 5, at) for at in range(2)]
    lines = dump(batches, Style(deep=False)).splitlines(keepends=True)
    died = [*lines[:-1], b'Exception in thread "main" java.lang.NullPointerException\n', lines[-1]]
    assert "tool_messages" not in read(b"".join(died))[1].facts
    assert "tool_messages" in read(b"".join(died[:-1]))[1].facts


def test_a_record_is_not_the_first_of_a_batch_whose_line_contradicts_itself() -> None:
    """Without its first record line, which printed the base offset: the next may be in a header key of that one."""
    batches = [Batch([Rec(b"k", b"v"), Rec(b"k", b"v")], 5, 0), Batch([Rec(b"k", b"v")], 5, 2)]
    text = dump(batches, Style()).replace(b"count: 2", b"count: 3", 1)
    assert read(text)[1].facts["records"]["offset"].to_pylist()[0] == 0
    start = text.index(b"| offset: 0 ")
    _, result = read(text[:start] + text[text.index(b"| offset: 1 ") :])
    assert result.facts["records"]["offset"].to_pylist() == [2]


def test_a_batch_that_does_not_close_is_its_first_record() -> None:
    """The others may be printed by a header key of the first."""
    batches = [Batch([Rec(b"k%d" % n, b"v" * 20) for n in range(4)], 5, 0), Batch([Rec(b"k", b"v")], 5, 4)]
    text = dump(batches, Style()).replace(b"| offset: 2 CreateTime", b"| offset: 2 Cr\0ateTime")
    _, result = read(text)
    assert [row["offset"] for row in result.facts["records"].to_pylist()] == [0, 4]


# what honest text loses


@pytest.mark.parametrize(("lost", "most"), [(1, 3_000), (4_096, 22_000), (65_536, 270_000)])
def test_honest_text_is_believed_again_soon(lost: int, most: int) -> None:
    batches = [Batch([Rec(b"k%d" % n, b"v" * 300) for n in range(3)], 5, 3 * number) for number in range(1000)]
    text = dump(batches, Style())
    at = text.index(b"| offset: 150 ") + 3
    found, result = read(text[:at] + text[at + lost :])
    assert set(found) < set(written(batches)) and found[-1] == written(batches)[-1]
    assert result.ledger.unread < most


@pytest.mark.parametrize(("start", "stop", "lost"), [(-60, -20, 1), (0, 49, 3), (-200, 200, 6)])
def test_a_lost_line_between_two_sections_costs_no_third_one(start: int, stop: int, lost: int) -> None:
    """In the last record of a section; the line that begins the next one; both, and more."""
    sections = [
        dump([Batch([Rec(b"k", b"v" * 100) for _ in range(3)], 5, 0) for _ in range(3)], Style(), path=f"/data/orders-{number}/{0:020}.log")
        for number in range(9)
    ]
    at = len(b"".join(sections[:4]))
    text = b"".join(sections)
    found, _ = read(text[: at + start] + text[at + stop :])
    assert len(found) >= 27 - lost


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_without_payloads_only_header_keys_lie(codec: str) -> None:
    batches = [Batch([Rec(b"k", b"v" * 300) for _ in range(3)], 5, 3 * number, codec=codec) for number in range(1000)]
    text = dump(batches, Style(printed=False))
    at = text.index(b"\nbaseOffset: 150 ") + 1
    found, result = read(text[:at] + text[text.index(b"\n", at) + 1 :])
    assert found[-1] == written(batches)[-1] and result.ledger.unread < 90_000


def test_a_payload_of_a_compressed_batch_has_a_megabyte_at_most() -> None:
    rng = random.Random(1)
    batches = [Batch([Rec(b"k", rng.randbytes(5_000).hex().encode())], 5, number, codec="gzip") for number in range(150)]
    text = dump(batches, Style())
    at = text.index(b"\nbaseOffset: 10 ") + 1
    found, result = read(text[:at] + text[text.index(b"\n", at) + 1 :])
    assert found[-1] == written(batches)[-1]
    assert 1 << 20 < result.ledger.unread < (1 << 20) + 60_000


# the size of a segment


def test_no_batch_ends_behind_the_end_of_its_segment() -> None:
    """A header key of the last record of a compressed log prints what a few more batches would print."""
    for style in (Style(), Style(printed=False), Style("2.7")):
        batches = [Batch([Rec(b"k%d" % number, b"v")], 5, number, codec="gzip") for number in range(4)]
        text = forged_lines(batches, 3, style)
        size = batches[3].position + batches[3].size_bytes
        assert len(read(text)[0]) > 4  # where nobody knows the size
        found, _ = read(text, replace(CONTEXT, dumped_bytes=size))
        assert found == written(batches)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("printed", [True, False])
def test_a_forged_batch_is_not_believed_where_damage_hides_the_genuine_one(codec: str, printed: bool) -> None:
    """A header key holds a batch at the next position, and the genuine batch line there was lost."""
    style = Style(printed=printed)
    batches = [Batch([Rec(b"k", b"v%d" % number)], 5, number, codec=codec) for number in range(9)]
    text = forged_lines(batches, 4, style)
    at = text.index(b"\nbaseOffset: 5 lastOffset: 5 ", text.index(b"sequence: 9 ")) + 1
    found, _ = read(text[:at] + text[text.index(b"\n", at) + 1 :])
    assert set(found) <= set(written(batches))


def test_damage_behind_a_batch_without_room_costs_nothing_before_it() -> None:
    batches = [Batch([Rec(b"k", b"v" * 300)], 5, number) for number in range(60)]
    text = dump(batches, Style())
    at = text.index(b"\nbaseOffset: 30 ") + 1
    found, _ = read(text[:at] + text[text.index(b"\n", at) + 1 :])
    assert found == [line for line in written(batches) if line[0] != 30]


THROWN = b"java.lang.NullPointerException\n\tat kafka.tools.DumpLogSegments$.main\n"
WARNED = b"OpenJDK 64-Bit Server VM warning: old\n"


@pytest.mark.parametrize(
    ("said", "behind", "messages"),
    [
        (THROWN, b"| offset: 1 ", 0),
        (WARNED, b"| offset: 1 ", 0),
        (THROWN, b"baseOffset: 1 ", 0),
        (WARNED, b"baseOffset: 1 ", 1),
        (THROWN, b"baseOffset: 0 ", 1),
        (THROWN, b"Dumping ", 1),
    ],
)
def test_a_message_is_none_where_the_line_behind_it_lacks_what_stood_before(said: bytes, behind: bytes, messages: int) -> None:
    """The head of a dump that was cut inside a payload."""
    text = dump([Batch([Rec(b"k", b"v%d" % number)], 5, number) for number in range(9)], Style())
    found, result = read(said + text[text.index(behind) :])
    assert (result.facts["tool_messages"].num_rows if "tool_messages" in result.facts else 0) == messages
    assert result.facts["dump_sections"].num_rows == 1 + messages and found[-1][0] == 8


def test_a_dump_behind_a_line_that_was_cut_is_no_part_of_the_log_before() -> None:
    texts = [
        dump([Batch([Rec(b"k", b"v")], number, offset) for offset in range(3)], Style(), path=f"/data/t-{number}/0.log")
        for number in range(3)
    ]
    _, result = read(texts[0] + b"Dumping /data/t-9/000" + texts[1] + texts[2])
    assert result.facts["dump_sections"]["dumped_path"].to_pylist() == ["/data/t-0/0.log"]
    assert result.facts["batches"]["producer_id"].to_pylist() == [0, 0, 0]


@pytest.mark.parametrize("kept", [(), (0,), (0, 1, 2)], ids=["first lines lost", "first batch left", "lost in the middle"])
def test_a_dump_that_lost_its_first_lines_is_no_part_of_a_damaged_log_before_it(kept: tuple[int, ...]) -> None:
    """No batch at position 0 follows such a `Dumping` line: a payload could print it, too. The next whole dump is read."""
    texts = []
    for number in range(4):
        batches = [Batch([Rec(b"k", b"v" * 99)], number, offset) for offset in range(12)]
        lines = dump(batches, Style(), path=f"/data/t-{number}/00000000000000000000.log").split(b"\n")
        lost = [line for at in range(8) if number < 3 and at not in (kept if number == 0 else ()) for line in (2 + 2 * at, 3 + 2 * at)]
        texts.append(b"\n".join(line for at, line in enumerate(lines) if at not in lost))
    _, result = read(b"".join(texts))
    sections = result.facts["dump_sections"].to_pylist()
    read_of = Counter(result.facts["batches"]["producer_id"].to_pylist())
    assert read_of[1] == read_of[2] == 0 and read_of[3] == 12 and read_of[0] >= len(kept)
    assert [section["dumped_path"][6:9] for section in sections][-1] == "t-3"


@pytest.mark.parametrize(("cut", "believed"), [(b" lastOffset: ", True), (b"astOffset: ", False), (b" position: ", False)])
def test_a_last_line_that_was_cut_shows_that_the_batch_before_it_is_a_payloads(cut: bytes, believed: bool) -> None:
    """A record line was printed twice, and the batch in its payload closes the longer text. Only the number of the cut line tells."""
    batches = [Batch([Rec(b"k", b"v")], 5, 0), Batch([Rec(b"k", b"v")], 5, 1)]
    for _ in range(3):
        text = dump(batches, Style())
        batches[0].records[0] = Rec(b"k", b"\xff" * 300 + b"\n" + forged_marker(batches[0], Style()))
    text = dump(batches, Style())
    start = text.index(b"| offset: 0 ")
    stop, genuine = text.index(b"\n", start) + 1, text.rindex(b"baseOffset: 1 ")
    found, _ = read(text[:stop] + text[start : text.index(cut, genuine)])
    assert found[1:] == ([(1, batches[0].size_bytes, 78)] if believed else [])


@pytest.mark.parametrize("crlf", [True, False])
def test_a_value_that_the_end_of_a_file_cut_is_no_text_of_a_decoder(crlf: bool) -> None:
    value = b'v\nException in thread "main" java.lang.NullPointerException\nand more'
    text = dump([Batch([Rec(b"k", value)], 5, 0)], Style(crlf=crlf))
    _, result = read(text[: text.index(b"and more")])
    assert result.facts.keys() == {"dump_sections", "batches", "unread_spans"}


@pytest.mark.parametrize("printed", [b"| offset: 9 ", b"| offset: 1 ", b"| offset: 0 ", b"| offset: 4 "])
def test_a_record_of_another_batch_is_none_of_its_records(printed: bytes) -> None:
    """A line that damage moved: only its offset tells."""
    batches = [Batch([Rec(b"k", b"v") for _ in range(4)], 5, first) for first in (0, 4, 8)]
    text = dump(batches, Style(printed=False)).replace(b"| offset: 2 ", printed)
    _, result = read(text)
    assert [offset for offset in result.facts["records"]["offset"].to_pylist() if offset < 4] == [0]


def test_plain_text_that_grew_by_a_byte_is_no_text_of_a_decoder() -> None:
    batches = [Batch([Rec(b"k", b"v")], 5, 0, codec="gzip")]
    for _ in range(3):
        text = dump(batches, Style())
        batches[0].records[0] = Rec(b"k", b"v" * 90 + b"\n" + forged_marker(batches[0], Style()))
    assert len(read(text)[0]) == 1
    for grown in (b"isvalid: false", b"isvalid: true\r"):
        found, _ = read(grown.join(text.rsplit(b"isvalid: true", 1)))
        assert len(found) == 1


@pytest.mark.parametrize("last", [2, 7, 8, 12])
def test_a_wrapper_of_magic_0_or_1_owes_the_message_of_its_own_offset(last: int) -> None:
    """Without it what stands behind may be that message's payload; behind it, it is the tool's."""
    text = (Path(__file__).parent / "cases" / "magic_0_1_2.log.txt").read_bytes()
    line = re.search(rb"\| offset: %d [^\n]*\n" % last, text)
    assert line is not None
    said = b"Found 9 invalid bytes at the end of 00000000000000000000.log\n"
    _, result = read(text[: line.end()] + said + text[line.end() :])
    assert len(result.facts["tool_messages"]) == 1 and result.ledger.unread == 0
    _, result = read(text[: line.start()] + said + text[line.end() :])
    assert "tool_messages" not in result.facts and last in result.facts["batches"]["last_offset"].to_pylist()
    assert set(result.facts["unread_spans"]["reason"].to_pylist()) == {"missing_record"}


def test_a_message_in_place_of_the_first_record_is_none() -> None:
    batches = [Batch([Rec(b"k", b"v"), Rec(b"k", b"v")], 5, first) for first in (0, 2, 4)]
    text = dump(batches, Style())
    line, said = re.search(rb"\| offset: 2 [^\n]*\n", text), b"WARNING: these words may be a payload's\n"
    assert line is not None
    _, result = read(text[: line.start()] + said + text[line.start() :])
    assert len(result.facts["tool_messages"]) == 1 and result.ledger.unread == 0
    for lost in (b"", text[line.end() :].split(b"\n")[0] + b"\n"):
        _, result = read(text[: line.start()] + said + text[line.end() + len(lost) :])
        assert "tool_messages" not in result.facts and 2 in result.facts["batches"]["base_offset"].to_pylist()


def test_a_value_with_a_section_before_a_batch_line_of_a_wrong_position_is_no_text_of_a_decoder() -> None:
    value = b"v\nDumping /data/other-0/00000000000000000000.log\nLog starting offset: 0"
    batches = [Batch([Rec(b"k", value)], 5, 0), Batch([Rec(b"k", b"v")], 5, 1)]
    text = dump(batches, Style(crlf=True))
    _, result = read(text.replace(b" position: %d " % batches[1].position, b" position: 0 "))
    assert len(result.facts["dump_sections"]) == 1


@pytest.mark.parametrize("crlf", [True, False])
def test_text_of_a_decoder_before_a_section(crlf: bool) -> None:
    logs = [[Batch([Rec(b"k", b"v" * size)], 5, first) for first in range(3)] for size in (40, 1)]
    text = b"".join(dump(batches, Style(crlf=crlf)) for batches in logs)
    found, result = read(re.sub(rb"payload: [^\r\n]*", b"payload: [B@1b2c3d4", text))
    assert found == [line for batches in logs for line in written(batches)] and result.ledger.unread == 0
    assert result.facts["dump_sections"]["decoder"].to_pylist() == ["other", "other"]
