"""Text that lies: payloads, keys, header keys and ids that hold forged batches. None is believed where two readings close, and what every
reading shares is; honest binary payloads are read; time follows the text."""

import gc
import random
import time
import weakref

import pytest

from eo_audit.audit.unread import Unread, told
from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.log.marks import Marks
from eo_audit.dump.log.text import Window
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from tests.support import dump_text
from tests.support.dump_text import Batch, Rec, Style, dump, forged_marker

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1)
COORDINATOR = FileContext("cluster", "broker-1/__transaction_state-0/00000000000000000000.log.txt", 1)
RELEASES = ("2.7", "2.8", "3.1", "4.3")
CODECS = ("none", "gzip")
Row = dict[str, object]


@pytest.fixture(autouse=True)
def _fast_path_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)


def read(text: bytes, *, fast: bool = True, context: FileContext = CONTEXT) -> RangeResult:
    """A whole text as one range."""
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True, fast=fast)


def rows(result: RangeResult, table: str) -> list[Row]:
    """Rows of one table."""
    return result.facts[table].to_pylist() if table in result.facts else []


def both(text: bytes, context: FileContext = CONTEXT) -> RangeResult:
    """What both readers read; they agree, and every byte has an owner."""
    careful, fast = read(text, fast=False, context=context), read(text, context=context)
    assert (careful.ledger, careful.state_out) == (fast.ledger, fast.state_out)
    assert careful.facts.keys() == fast.facts.keys()
    assert all(facts.equals(careful.facts[table]) for table, facts in fast.facts.items())
    assert fast.ledger.total == len(text)
    return fast


def lines(result: RangeResult) -> list[tuple[object, ...]]:
    """The batches read."""
    return [(row["base_offset"], row["position"], row["size_bytes"], row["marker_type"]) for row in rows(result, "batches")]


def written(batches: list[Batch]) -> list[tuple[object, ...]]:
    """The batches that were dumped."""
    return [(batch.offset, batch.position, batch.size_bytes, batch.marker) for batch in batches]


def reasons(result: RangeResult) -> set[object]:
    """Why text is unread."""
    return {row["reason"] for row in rows(result, "unread_spans")}


def assert_doubted(text: bytes, batches: list[Batch], victim: int) -> None:
    """Nothing is invented, the batch that lies is a batch without records, and the readings meet again."""
    result = both(text)
    assert set(lines(result)) <= set(written(batches))
    assert lines(result)[: victim + 1] == written(batches)[: victim + 1]
    assert rows(result, "batches")[victim]["records_seen"] == 0
    assert lines(result)[-1] == written(batches)[-1]
    assert reasons(result) == {"ambiguous"}


def forged_chain(batch: Batch, style: Style, count: int) -> bytes:
    """Markers that chain on from a batch."""
    position, found = batch.position + batch.size_bytes, []
    for number in range(count):
        marker = Batch([Rec(b"", b"")], 5, transactional=True, marker="COMMIT")
        marker.offset, marker.position, marker.size_bytes = batch.offset + 1 + number, position + 78 * number, 78
        found += [dump_text._batch_line(marker, style), dump_text._record_line(marker, 0, style)]
    return b"\n".join(found)


def lying(style: Style, codec: str, record: "object", *, behind: int = 3) -> tuple[bytes, list[Batch]]:
    """A dump whose third batch holds what `record` makes of it: sizes and positions fit each other."""
    batches = [Batch([Rec(b"k%d" % number, b"v%d" % number)], 5, number, transactional=True) for number in range(3 + behind)]
    batches[2].codec = codec
    for _ in range(6):
        dump(batches, style)
        batches[2].records = [record(batches[2], style)]  # type: ignore[operator]
    return dump(batches, style), batches


# values that printing made longer or shorter


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_batch_forged_behind_bytes_that_are_no_text(release: str, codec: str) -> None:
    text, batches = lying(Style(release), codec, lambda b, s: Rec(b"k", b"\xff" * 300 + b"\n" + forged_marker(b, s)))
    assert_doubted(text, batches, 2)


@pytest.mark.parametrize("codec", CODECS)
def test_the_exact_length_may_be_the_forged_one(codec: str) -> None:
    def record(batch: Batch, style: Style) -> Rec:
        forged = forged_marker(batch, style)
        forged += b"z" * (1 - len(forged) % 2)
        return Rec(b"k", b"\xff" * ((1 + len(forged)) // 2) + b"\n" + forged)

    text, batches = lying(Style(), codec, record)
    assert_doubted(text, batches, 2)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("style", [Style(ascii=True), Style("2.7", ascii=True), Style(crlf=True)], ids=["4.3", "2.7", "crlf"])
def test_text_that_became_shorter_or_longer(style: Style, codec: str) -> None:
    filler = b"\n" * 500 if style.crlf else "é".encode() * 450 + b"\n"
    text, batches = lying(style, codec, lambda b, s: Rec(b"k", filler + forged_marker(b, s)))
    result = both(text)
    assert set(lines(result)) <= set(written(batches))
    assert lines(result)[:3] == written(batches)[:3]


def swallowing(codec: str, style: Style, *, header: bool, tail: int) -> tuple[bytes, list[Batch]]:
    """A forged COMMIT and a forged batch that swallows the genuine ABORT, so that all positions fit in the forged reading, too."""
    victim = Batch([Rec(b"v", b"order 1"), Rec(b"v", b"order 2")], 5, 0, transactional=True)
    liar, abort = Batch([Rec(b"k", b"v")], 9, 0, codec=codec), Batch([Rec(b"", b"")], 5, transactional=True, marker="ABORT")
    plain = Batch([Rec(b"k", b"plain")], 9, 1, codec="gzip")
    batches = [victim, liar, abort, plain, *(Batch([Rec(b"k", b"p%d" % number)], 9, 2 + number) for number in range(tail))]
    for _ in range(8):
        dump(batches, style)
        commit = Batch([Rec(b"", b"")], 5, transactional=True, marker="COMMIT")
        commit.offset, commit.position, commit.size_bytes = abort.offset, abort.position, 78
        close = (b"]" + (b" key: k payload: v" if style.printed else b"")) if header else b""
        genuine = [dump_text._batch_line(b, style) + b"\n" + dump_text._record_line(b, 0, style) for b in (abort, plain)]
        swallowed = close + b"\n" + b"\n".join(genuine)
        last = Batch([Rec(None, b"x" * len(swallowed))], 9, 1, codec="gzip")
        last.offset, last.position, last.size_bytes = plain.offset, plain.position, plain.size_bytes
        begun = dump_text._record_line(last, 0, style)
        begun = begun[: -len(swallowed)] if style.printed else begun[:-1]
        forged = [dump_text._batch_line(commit, style), dump_text._record_line(commit, 0, style), dump_text._batch_line(last, style), begun]
        chain = b"\n".join(forged)
        key = (b"h" + close + b"\n" + chain, 1)
        liar.records[0] = Rec(b"k", b"v", (key,)) if header else Rec(b"k", b"\xff" * (len(chain) // 2 + 10) + b"\n" + chain)
    return dump(batches, style), batches


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("release", ["2.7", "2.8", "4.3"])
@pytest.mark.parametrize("header", [False, True], ids=["value", "header key"])
def test_an_abort_does_not_become_a_commit(release: str, codec: str, header: bool) -> None:
    for printed in (True, False) if header else (True,):
        for tail in (6, 100):
            text, batches = swallowing(codec, Style(release, printed=printed), header=header, tail=tail)
            assert_doubted(text, batches, 1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("style", [Style(), Style("2.7"), Style(printed=False), Style(crlf=True), Style(ascii=True)])
def test_long_header_keys(style: Style, codec: str) -> None:
    """Both readers agree on a header key longer than what is looked through at once, and believe no batch inside."""
    for close in (b"", b"]" + (b" key: k payload: v" if style.printed else b"")):
        text, batches = lying(
            style,
            codec,
            lambda b, s, close=close: Rec(b"k", b"v", ((b"x" * 70_000 + close + b"\n" + forged_chain(b, s, 3), 0),)),
        )
        result = both(text)
        assert set(lines(result)) <= set(written(batches))
        assert lines(result)[:3] == written(batches)[:3]


def test_a_transactional_id_without_a_locale() -> None:
    """An id outside ASCII is printed shorter than it is: what it holds must not become somebody's transaction."""

    def batch(offset: int, position: int, size: int) -> str:
        return (
            f"baseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
            f"partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: {position} "
            f"CreateTime: 1700000000000 size: {size} magic: 2 compresscodec: none crc: 1 isvalid: true\n"
        )

    def entry(offset: int, name: str, pid: int, status: str) -> str:
        value = f"producerId:{pid},producerEpoch:0,state={status},partitions=[],txnLastUpdateTimestamp=1700000000000,txnTimeoutMs=60000"
        head = f"| offset: {offset} CreateTime: 1700000000000 keySize: {len(name.encode()) + 4} valueSize: 37 sequence: -1 headerKeys: [] "
        return f"{head}key: transaction_metadata::transactionalId={name} payload: {value}\n"

    size, name = 0, ""
    for _ in range(4):
        forged = batch(1, size, 300) + entry(1, "victim", 7, "CompleteAbort").rpartition(" payload: ")[0]
        name = "é" * 600 + entry(0, "A", 66, "CompleteCommit").partition("transactionalId=")[2] + forged
        size = 70 + len(name.encode()) + 37 + 10
    tail = batch(1, size, 123) + entry(1, "victim", 7, "Ongoing") + batch(2, size + 123, 123) + entry(2, "x", 8, "Empty")
    head = "Dumping /x/__transaction_state-0/00000000000000000000.log\nLog starting offset: 0\n"
    for encoding in ("utf-8", "ascii"):
        first = entry(0, name, 66, "Empty").encode(encoding, "replace")
        result = both((head + batch(0, 0, size)).encode() + first + tail.encode(), COORDINATOR)
        entries = {(row["entry_offset"], row["producer_id"], row["status"]) for row in rows(result, "coordinator_entries")}
        assert entries <= {(0, 66, "Empty"), (1, 7, "Ongoing"), (2, 8, "Empty")}
        assert (2, 8, "Empty") in entries
        assert reasons(result) == (set() if encoding == "utf-8" else {"ambiguous"})


def test_a_line_of_a_payload_is_no_message() -> None:
    for value, style in (
        (b"\x00\xff" * 15 + b"request failed\nCaused by: java.io.EOFException: SECRET", Style()),
        (b"\xff" * 40 + b"\nError: com.acme.pay.CardException: 4111111111111111 SECRET", Style()),
        ("zażółć gęślą jaźń zażółć gęślą jaźń".encode() + b"\nCaused by: a.b.CException: SECRET", Style(ascii=True)),
        (b"line\r\n" * 40 + b"Caused by: a.b.CException: SECRET", Style(crlf=True)),
        (b"\xff" * 40 + b"\nDumping SECRET of somebody", Style()),
    ):
        for codec in CODECS:
            batches = [Batch([Rec(b"k%d" % number, b"v")]) for number in range(3)]
            batches[1].records, batches[1].codec = [Rec(b"k", value)], codec
            result = both(dump(batches, style))
            assert lines(result) == written(batches)
            assert rows(result, "tool_messages") == [] and len(rows(result, "dump_sections")) == 1
            assert rows(result, "dump_sections")[0]["end_reason"] == "eof"


# after damage


def test_a_lost_head_makes_no_batch_of_a_payload() -> None:
    style = Style()
    text, batches = lying(style, "none", lambda b, s: Rec(b"k", b"v\n" + forged_chain(b, s, 3) + b"\nbehind"), behind=200)
    cut = text.index(b"\nbaseOffset: ", text.index(b"payload: v\n")) + 1
    for start in (cut - 1, cut - 200, cut - 300):
        result = both(text[start:])
        assert set(lines(result)) <= set(written(batches)) and lines(result)[-1] == written(batches)[-1]


DAMAGE = [
    (b"payload: v\n", b"payload: \0v\n"),
    (b"payload: v\n", b"payload: \n"),
    (b"sequence: 2 headerKeys", b"seque"),
    (b"valueSize: 13", b"valueSize: 1"),
]


@pytest.mark.parametrize("change", DAMAGE)
def test_damage_in_a_record_makes_no_batch_of_its_payload(change: tuple[bytes, bytes]) -> None:
    text, batches = lying(Style(), "none", lambda b, s: Rec(b"k", b"v\n" + forged_chain(b, s, 3) + b"\nbehind"))
    at = text.index(b"| offset: 2 ")
    damaged = text[:at] + text[at:].replace(*change, 1)
    result = both(damaged)
    assert damaged != text
    assert set(lines(result)) <= set(written(batches)) and lines(result)[-1] == written(batches)[-1]


@pytest.mark.parametrize("change", [(b": v\n", b": \0v\n"), (b"sequence: 2 headerKeys", b"seque")])
def test_behind_damage_the_last_record_of_a_log_proves_nothing(change: tuple[bytes, bytes]) -> None:
    text, batches = lying(Style(), "none", lambda b, s: Rec(b"k", b"v\n" + forged_chain(b, s, 2)), behind=0)
    at = text.index(b"| offset: 2 ")
    result = both(text[:at] + text[at:].replace(*change, 1))
    assert lines(result) == written(batches)


# honest binary payloads


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("size", "count"), [(1_000_000, 1), (100_000, 10), (10_000, 100), (1_000, 500)])
def test_random_bytes_in_large_batches(size: int, count: int, codec: str) -> None:
    """Only behind the last of them may the text be read in two ways: no line closes it but the end of the file."""
    rng = random.Random(1)
    large = [Batch([Rec(b"k%d" % n, rng.randbytes(size)) for n in range(count)], 5, 1, codec=codec) for _ in range(3)]
    small = [Batch([Rec(b"k", b"value")], 5, number) for number in range(60)]
    batches = [small[0], *large, *small[1:]]
    result = read(dump(batches, Style()))
    assert lines(result) == written(batches)
    assert (len(rows(result, "records")), result.ledger.unread) == (60 + 3 * count, 0)


@pytest.mark.parametrize("kind", ["text", "binary"])
def test_a_dropped_line_costs_one_batch(kind: str) -> None:
    rng = random.Random(1)

    def value() -> bytes:
        return rng.randbytes(300) if kind == "binary" else b"v" * 300

    batches = [Batch([Rec(b"k%d" % n, value()) for n in range(3)], 5, 3 * number) for number in range(400)]
    text = dump(batches, Style())
    at = text.index(b"\nbaseOffset: 150 ") + 1
    result = read(text[:at] + text[text.index(b"\n", at) + 1 :])
    assert lines(result) == [line for line in written(batches) if line[0] != 150]
    assert result.ledger.unread < 6000


# time, memory, windows


def test_time_follows_the_text() -> None:
    """A record of 56 KB whose header key, key and value could end at thousands of places took 39 seconds."""
    key = b"\xff payload: " * 2000
    liar = Batch([Rec(key, b"\xff\n" * 2000, ((b"] key: " * 3000, 1),))], 5, 1)
    text = dump([Batch([Rec(b"k", b"v")], 5, 0), liar, Batch([Rec(b"k", b"v")], 5, 2)], Style())
    begin = time.process_time()
    result = read(text)
    assert time.process_time() - begin < 2
    assert len(lines(result)) == 3


def test_a_large_value_of_short_lines_takes_no_time() -> None:
    large = Batch([Rec(b"k", b"\xff\n" * (2 << 20))], 5, 1)
    batches = [Batch([Rec(b"k", b"v")], 5, 0), large, Batch([Rec(b"k", b"v")], 5, 2)]
    text = dump(batches, Style())
    for damaged in (text, text.replace(b"headerKeys: [] key: k payload: \xef", b"headerKeys: [] key: k payload; \xef")):
        begin = time.process_time()
        assert lines(read(damaged)) == written(batches)
        assert time.process_time() - begin < 4


@pytest.mark.parametrize("head", [b"", b"Dumping /x/orders-0/00000000000000000000.log\n", b"Dumping /x/0.snapshot\n"])
def test_a_line_without_an_end_needs_no_larger_window(head: bytes) -> None:
    window = head + bytes(1 << 20)
    result = parse_range(window, context=CONTEXT, base=0, start=0, stop=1 << 19, state=State.initial(), final=False)
    assert result.end_byte >= 1 << 19 and result.ledger.total == result.end_byte


def test_a_window_is_freed_as_soon_as_nobody_reads_it() -> None:
    """Windows that waited for the garbage collector made a few hundred MB of a file without line ends."""
    gc.disable()
    try:
        window = Window(b"text", True)
        window.known(Marks).cover(window, 0, 4)
        gone = weakref.ref(window)
        del window
        assert gone() is None
    finally:
        gc.enable()


def test_a_record_may_be_null_and_hide_its_key_in_old_releases() -> None:
    """Kafka 2.3 prints no key of a record without a value, so header keys that run up to a payload are the poorer reading."""
    hidden, said = Rec(b"k" * 56, None), Rec(b"k" * 56, b'v\nException in thread "main" java.lang.NullPointerException')
    batches = [Batch([hidden], 5, 0, codec="gzip"), Batch([said], 5, 1), Batch([Rec(b"k" * 56, None), said], 5, 2, codec="gzip")]
    batches += [Batch([Rec(b"k", b"v")], 5, 4 + number) for number in range(3)]
    result = both(dump(batches, Style("2.3")))
    assert lines(result) == written(batches) and rows(result, "tool_messages") == []


def test_the_end_of_a_window_is_not_the_end_of_the_file() -> None:
    """A damaged record line that crosses the end of a window made the rest of the file `truncated`."""
    batches = [Batch([Rec(b"k", b"v" * 100)], 5, 0), Batch([Rec(b"k", b"w" * 300_000)] * 2, 5, 1, codec="gzip")]
    text = dump([*batches, Batch([Rec(b"k", b"v")], 5, 3)], Style())
    at = text.index(b"| offset: 2 ")
    text = text[:at] + text[at:].replace(b"keySize", b"keyS\0ze", 1)
    whole = read(text)
    result = parse_range(text[: at + 200_000], context=CONTEXT, base=0, start=0, stop=at, state=State.initial(), final=False)
    assert rows(whole, "dump_sections")[0]["end_reason"] == "eof"
    assert result.state_out is not None and result.state_out.section is not None
    assert result.state_out.section.end_reason is None


def test_what_to_do_about_text_that_can_be_read_in_two_ways() -> None:
    why, action = told([Unread("broker-1/a.log.txt", 1, 9, "unknown_line", "log"), Unread("broker-1/b.log.txt", 5, 3, "ambiguous", "log")])
    assert "broker-1/b.log.txt can be read in more than one way" in why
    assert action.startswith("Dump broker-1/b.log.txt again without --print-data-log")
    _, action = told([Unread("broker-1/__transaction_state-0/a.log.txt", 5, 3, "ambiguous", "log")])
    assert action.startswith("Dump broker-1/__transaction_state-0/a.log.txt again in a UTF-8 locale")


def test_a_line_that_nobody_knows_is_taken_out_before_payloads_are_left_out() -> None:
    _, action = told([Unread("all.txt", 20, 24_000, "ambiguous", "log"), Unread("all.txt", 0, 20, "not_a_dump", "unknown")])
    assert action.startswith("A line stands in all.txt that kafka-dump-log did not print (`eo-audit show all.txt@0`): take it out")
    assert "--print-data-log" not in action
