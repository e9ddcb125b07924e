"""The reader on real dumps, on generated ones whose truth is known, and on what attackers put into payloads and header keys."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.files.discovery import DumpFile
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from tests.support.dump_text import RELEASES, Batch, Rec, Style, dump, forged_lines, forged_marker, random_batches, swallowing_batches
from tests.support.facts import CORPUS, SALT, context_of, corpus_files, parsed, text_of

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1, salt=SALT)
HERE = Path(__file__).parent
INPUTS = sorted((CORPUS / "dumps").iterdir())
FLAT = ("@0.11.0.3", "@1.1.1", "@2.0.1")
Row = dict[str, object]


@pytest.fixture(scope="module")
def corpus() -> list[tuple[DumpFile, RangeResult]]:
    """Every file of the corpus, read as one range."""
    return [(file, parsed(file)) for file in corpus_files()]


@pytest.fixture(params=[False, True], ids=["exact", "fast"])
def fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With and without the fast path, on texts of any length."""
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)
    return bool(request.param)


def read(text: bytes, *, fast: bool = True, context: FileContext = CONTEXT) -> RangeResult:
    """A whole text as one range."""
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True, fast=fast)


def rows(result: RangeResult, table: str) -> list[Row]:
    """Rows of one table."""
    return result.facts[table].to_pylist() if table in result.facts else []


# the byte ledger


def owners(result: RangeResult) -> list[tuple[int, int]]:
    """The stretches of text that rows own, in order; a decoded record stands in two tables."""
    tables = set(result.facts) - {"dump_sections", "manifest_entries"}
    owned = ([result.facts[table][name].to_pylist() for name in ("byte_offset", "length")] for table in tables)
    return sorted({(start, start + length) for starts, lengths in owned for start, length in zip(starts, lengths, strict=True)})


def test_every_byte_of_the_corpus_has_one_owner(corpus: list[tuple[DumpFile, RangeResult]]) -> None:
    for file, result in corpus:
        size = len(text_of(file))
        assert (result.end_byte, result.ledger.total) == (size, size), file.path
        stretches = owners(result)
        assert all(first[1] <= second[0] for first, second in pairwise(stretches)), file.path
        if "manifest_entries" not in result.facts:
            assert sum(end - start for start, end in stretches) + result.ledger.preamble == size, file.path


def test_nothing_is_unread_but_cut_ends(corpus: list[tuple[DumpFile, RangeResult]]) -> None:
    reasons = defaultdict(set)
    for file, result in corpus:
        for row in rows(result, "unread_spans"):
            reasons[row["reason"]].add(file.cluster)
    assert set(reasons) == {"truncated_record"}
    ended_by_exception = (*FLAT, "@2.3.1", "@2.8.2", "@3.3.2")  # their decoders do not know the values of newer brokers
    assert {cluster for cluster in reasons["truncated_record"] if not cluster.endswith(ended_by_exception)} == {"syn_text_truncated"}


def test_sections_know_their_dialect(corpus: list[tuple[DumpFile, RangeResult]]) -> None:
    dialects = defaultdict(set)
    for file, result in corpus:
        for row in rows(result, "dump_sections"):
            dialects[file.cluster.rpartition("@")[2]].add(row["dialect"])
    expected = {"0.11.0.3": "0.11", "2.0.1": "0.11", "2.3.1": "2.2", "2.8.2": "2.8", "3.3.2": "3.3", "4.3.1": "3.3"}
    dialects["2.8.2"].remove("2.2")  # without record lines 2.8 prints what 2.2 prints
    assert {release: dialects[release] - {None} for release in expected} == {release: {dialect} for release, dialect in expected.items()}


def test_sections_know_what_they_show(corpus: list[tuple[DumpFile, RangeResult]]) -> None:
    shown = {(row["topic"], row["decoder"]) for _, result in corpus for row in rows(result, "dump_sections") if row["payload_printed"]}
    assert {decoder for topic, decoder in shown if topic == "__transaction_state"} == {"transaction_text", "transaction_json"}
    assert {decoder for topic, decoder in shown if topic == "__consumer_offsets"} == {"offsets_text", "offsets_json"}
    assert {decoder for topic, decoder in shown if not str(topic).startswith("__")} == {"plain"}
    shallow = [row["deep"] for file, result in corpus if file.path.endswith(".shallow.txt") for row in rows(result, "dump_sections")]
    assert shallow and not any(shallow)


# the truth of the corpus


def record_offsets(result: list[tuple[DumpFile, RangeResult]]) -> dict[tuple[str, int], set[int]]:
    """Offsets of records by topic and partition."""
    found: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for _, facts in result:
        sections = {row["section_id"]: (row["topic"], row["partition"]) for row in rows(facts, "dump_sections")}
        for row in rows(facts, "records"):
            found[sections[row["section_id"]]].add(row["offset"])
    return found


def test_record_offsets_are_those_that_consumers_got(corpus: list[tuple[DumpFile, RangeResult]]) -> None:
    compared = 0
    for path in INPUTS:
        truth = json.loads((CORPUS / "truth" / f"{path.name.partition('@')[0]}.json").read_text())
        answers = list(truth.get("oracles", {}).values())
        found = record_offsets([(file, result) for file, result in corpus if file.cluster == path.name])
        for answer in answers[-1].get("partitions", []) if answers else []:
            log = (answer["topic"], answer["partition"])
            if log in found:
                got = {offset for first, last in answer["read_uncommitted"] for offset in range(first, last + 1)}
                assert {offset for offset in found[log] if offset >= answer["log_start"]} == got, (path.name, log)
                compared += 1
    assert compared > 130


@pytest.mark.parametrize("release", ["", "@2.0.1", "@2.3.1", "@2.8.2", "@3.3.2", "@3.9.1", "@4.1.0", "@4.3.1"])
def test_hostile_dumps_hold_exactly_what_was_written(corpus: list[tuple[DumpFile, RangeResult]], release: str) -> None:
    found: dict[str, tuple[list[object], list[object]]] = {}
    for file, result in corpus:
        if file.cluster == f"hostile{release}" and file.path.endswith(".log.txt"):
            batches = rows(result, "batches")
            log = file.path.split("/")[-2]
            markers = [batch["marker_type"] for batch in batches if batch["is_control"]]
            found[log] = markers, [row["value_size"] for row in rows(result, "records")]
            assert all(batch["payload_verified"] for batch in batches) or "__" in log
            assert all(batch["records_seen"] == batch["count"] for batch in batches) or "__" in log
    assert found["forged-0"] == (["ABORT"], [39, 456, 103])
    assert found["forged-2"] == (["ABORT"], found["forged-2"][1])
    markers, sizes = found["a.b-c.d-0-0"]
    assert markers == ["COMMIT"]
    assert sizes == [23, 6, 75, 131, 96, 121, 75, 32, 22, 11, 14, 6, 4, 8, 61, 18, 0, -1, 3, 16, 12, 97]
    assert found["orders-1-0"] == ([], [1] * 6 + [75, 131, 96, 121, 75, 32])


# generated dumps


def truth(batches: list[Batch], style: Style) -> tuple[list[object], list[object]]:
    """Batches as (last offset, position, marker), records as (offset, key size, value size, header keys are not counted)."""
    lines = [(batch.offset + max(len(batch.records), 1) - 1, batch.position, batch.marker if style.deep else None) for batch in batches]
    records = [
        (batch.offset + index, *(-1 if part is None else len(part) for part in (record.key, record.value)))
        for batch in batches
        if style.deep and not batch.marker
        for index, record in enumerate(batch.records)
    ]
    return lines, records


def seen(result: RangeResult) -> tuple[list[object], list[object]]:
    """The same of what was read."""
    lines = [(row["last_offset"], row["position"], row["marker_type"]) for row in rows(result, "batches")]
    return lines, [(row["offset"], row["key_size"], row["value_size"]) for row in rows(result, "records")]


OPTIONS = {
    "printed": Style(),
    "deep": Style(printed=False),
    "shallow": Style(deep=False),
    "terminal": Style(crlf=True),
    "no locale": Style(ascii=True),
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("release", RELEASES)
def test_generated_dumps(release: str, option: str, fast: bool) -> None:
    style = Style(**{**vars(OPTIONS[option]), "release": release})
    for seed in range(2):
        for codecs in (("none",), ("none", "lz4")):
            batches = random_batches(seed, 12, codecs=codecs)
            result = read(dump(batches, style), fast=fast)
            assert seen(result) == truth(batches, style)
            assert result.ledger.unread == 0
            verified = [row["payload_verified"] for row in rows(result, "batches")]
            assert verified == [None] * 12 if not style.deep else all(verified[:-1])
            assert style.printed is False or all(verified) or not style.deep
            assert (result.crlf, result.ascii_lossy) == (style.crlf, style.ascii and style.deep)


@pytest.mark.parametrize("kind", ["legacy", "malformed"])
@pytest.mark.parametrize("release", RELEASES)
def test_generated_dumps_of_other_bytes(release: str, kind: str, fast: bool) -> None:
    for seed in range(3):
        batches = random_batches(seed, 12, **{kind: True})
        result = read(dump(batches, Style(release)), fast=fast)
        assert seen(result) == truth(batches, Style(release))
        assert result.ledger.unread == 0 and all(row["payload_verified"] for row in rows(result, "batches"))


# Kafka 3.9.1 wrote and printed it: three records of magic 0 in gzip, one plain, four of magic 1 in snappy, one in gzip, two plain, two
# in lz4, three of magic 2, and two of magic 1 behind them.
OLD_BATCHES = [(0, 2), (3, 3), (4, 7), (8, 8), (9, 9), (10, 10), (11, 12), (13, 15), (16, 17)]


def test_compressed_batches_of_magic_0_and_1_begin_at_their_first_record(fast: bool) -> None:
    text = (HERE / "cases" / "magic_0_1_2.log.txt").read_bytes()
    result = read(text, fast=fast)
    assert result.ledger.unread == 0
    assert [(row["base_offset"], row["last_offset"]) for row in rows(result, "batches")] == OLD_BATCHES
    held = [first for first, last in OLD_BATCHES for _ in range(first, last + 1)]
    assert [(row["base_offset"], row["offset"]) for row in rows(result, "records")] == [*zip(held, range(18), strict=True)]


def test_a_shallow_dump_does_not_print_where_they_begin(fast: bool) -> None:
    text = (HERE / "cases" / "magic_0_1_2.log.txt").read_bytes()
    shallow = b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"| "))
    found = [(row["base_offset"], row["last_offset"], row["magic"]) for row in rows(read(shallow, fast=fast), "batches")]
    assert found == [(first if first == 13 else last, last, 2 if first == 13 else min(first // 4, 1)) for first, last in OLD_BATCHES]


def test_header_keys_over_line_ends_beside_values_that_printing_changed(fast: bool) -> None:
    """What no length delimits may swallow what follows. Then it is at least no proof, and that is rare: behind the last batches only."""
    wrong = 0
    for seed in range(150):
        style = Style(RELEASES[seed % len(RELEASES)])
        batches = swallowing_batches(seed, 3 + seed % 10)
        result = read(dump(batches, style), fast=fast)
        if seen(result) != truth(batches, style):
            assert not all(row["payload_verified"] for row in rows(result, "batches"))
            wrong += 1
    assert wrong <= 6


def test_hashes_tell_payloads_apart(fast: bool) -> None:
    values = [b"", b"a", b"a\n", b"sixteen bytes ...", b"x" * 63, b"x" * 64, b"x" * 65, b"y" * 5000, b"y" * 5001, b"z" * 1_000_000, None]
    batches = [Batch([Rec(value, value)], 5, 0) for value in (*values, *values)]
    records = rows(read(dump(batches, Style()), fast=fast), "records")
    hashes = [record["value_hash"] for record in records]
    assert hashes[: len(values)] == hashes[len(values) :] == [record["key_hash"] for record in records[: len(values)]]
    assert len(set(hashes)) == len(values) and hashes[len(values) - 1] is None
    other = read(dump(batches, Style()), fast=fast, context=FileContext("cluster", CONTEXT.path, 1, salt=b"another salt"))
    assert not set(hashes) - {None} & {record["value_hash"] for record in rows(other, "records")}


def test_text_that_lost_bytes_has_no_hash() -> None:
    batches = [Batch([Rec(b"key", b"\xff\xfe")], 5, 0), Batch([Rec(b"key", "ż".encode())], 5, 1)]
    first, second = rows(read(dump(batches, Style())), "records")
    assert first["value_hash"] is None and first["key_hash"] is not None and second["value_hash"] is not None


# header keys that hold whole batches

FORGED = [
    (release, printed, codec, place)
    for release in ("2.7", "2.8", "4.3")
    for printed in (True, False)
    for codec in ("none", "lz4")
    for place in ("first", "middle", "of several", "last")
    if (codec, place) != ("lz4", "last")  # the end of a file with compressed batches: no length and no line behind could tell
]


@pytest.mark.parametrize(("release", "printed", "codec", "place"), FORGED)
def test_batches_forged_in_header_keys(release: str, printed: bool, codec: str, place: str, fast: bool) -> None:
    style = Style(release, printed=printed)
    batches = [
        Batch([Rec(b"k", b"v0")], 5, 0, codec=codec),
        Batch([Rec(b"", b"")], 5, transactional=True, marker="COMMIT"),
        Batch([Rec(b"k", b"v")], 5, 1, codec=codec),
        Batch([Rec(b"k", b"v2"), Rec(b"kk", b"v22")], 5, 2, codec=codec),
        Batch([Rec(b"k", b"v5")], 5, 4, codec=codec),
    ]
    text = forged_lines(batches, {"first": 0, "middle": 2, "of several": 3, "last": 4}[place], style)
    result = read(text, fast=fast)
    lines, records = truth(batches, style)
    read_lines, read_records = seen(result)
    victim = {"first": 0, "middle": 2, "of several": 3, "last": 4}[place]
    assert lines[: victim + 1] == read_lines[: victim + 1]  # its batch line is the tool's own in each reading
    assert set(read_lines) <= set(lines) and set(read_records) <= set(records)
    assert {row["reason"] for row in rows(result, "unread_spans")} == {"ambiguous"}


@pytest.mark.parametrize("length", [17, 70 << 10])
def test_a_tail_that_could_be_forged_is_not_believed(length: int, fast: bool) -> None:
    batches = [Batch([Rec(b"k", b"v0")], 5, 0), Batch([Rec(b"k", b"v5")], 5, 4)]
    result = read(forged_lines(batches, 1, Style(), before=b"h" * length), fast=fast)
    assert [row["payload_verified"] for row in rows(result, "batches")] == [True, False]
    assert [row["reason"] for row in rows(result, "unread_spans")] == ["ambiguous"]


# what else a file may hold


def section(*lines: bytes, end: bytes = b"\n") -> bytes:
    """Lines as text."""
    return b"".join(line + end for line in lines)


@pytest.fixture
def batches() -> Iterator[list[Batch]]:
    """Three batches."""
    yield [Batch([Rec(b"k", b"value %d" % number), Rec(None, b"b")], 5, 2 * number) for number in range(3)]


def test_an_exception_in_the_middle_of_a_line(batches: list[Batch]) -> None:
    text = dump(batches, Style())
    cut = text.rindex(b" key: k payload: value 2")
    exception = b'Exception in thread "main" java.lang.IllegalStateException: Unknown version 1\n\tat kafka.tools.DumpLogSegments$.main\n'
    result = read(text[:cut] + exception)
    assert [row["records_seen"] for row in rows(result, "batches")] == [2, 2, 0]
    assert [row["reason"] for row in rows(result, "unread_spans")] == ["undecodable_record"]
    assert [row["text_kind"] for row in rows(result, "tool_messages")] == ["exception"]
    assert [row["end_reason"] for row in rows(result, "dump_sections")] == ["exception"]
    assert result.ledger.tool_messages == len(exception)


def test_messages_between_lines(batches: list[Batch], fast: bool) -> None:
    text = dump(batches, Style())
    noise = b"[2026-01-01 00:00:00,000] WARN something (kafka.log)\n"
    tail = b"Found 17 invalid bytes at the end of 00000000000000000000.log\n"
    inside, between = text.rindex(b"| offset: 5"), text.index(b"baseOffset: 2")
    said = text[:between] + noise + text[between:inside] + noise + text[inside:] + tail
    result = read(said, fast=fast)
    assert seen(result) == truth(batches, Style())
    assert [row["text_kind"] for row in rows(result, "tool_messages")] == ["jvm_warning", "jvm_warning", "invalid_bytes"]
    assert rows(result, "dump_sections")[0]["invalid_tail_bytes"] == 17
    assert result.ledger.unread == 0


PROMPTS = [b"$ ", b"[appuser@kafka-0 ~]$ ", b"root@kafka-0:/# exit\nexit\n"]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_prompt_of_a_shell_around_a_dump(batches: list[Batch], prompt: bytes, fast: bool) -> None:
    asked = b"[appuser@kafka-0 ~]$ kafka-dump-log.sh --files x\n"
    snapshot = b"Dumping /data/orders-0/00000000000000000006.snapshot\n"
    for text in (asked + dump(batches, Style()) + prompt, dump(batches, Style()) + asked + snapshot + prompt):
        result = read(text, fast=fast)
        assert seen(result) == truth(batches, Style())
        assert rows(result, "dump_sections")[-1]["end_reason"] == "eof"
        assert result.ledger.unread == 0


@pytest.mark.parametrize("ending", [b".log.", b".snapshot.", b".txnindex."], ids=str)
def test_a_text_that_lost_its_last_line_end_says_so_and_is_read_where_lengths_prove_it(
    corpus: list[tuple[DumpFile, RangeResult]], ending: bytes
) -> None:
    """A number may have lost digits: its line is not read."""
    reasons = set[str]()
    for file, whole in corpus:
        text = text_of(file)
        is_sound = whole.ledger.unread == 0 and text.endswith(b"\n") and len(text) < 60_000
        # Older tools print lines that tell less.
        if not is_sound or file.cluster.endswith(FLAT) or ending.decode() not in file.path or file.kind_hint != "text":
            continue
        result = parse_range(
            text[:-1], context=context_of(file, text), base=0, start=0, stop=len(text) - 1, state=State.initial(), final=True
        )
        found = {str(row["reason"]) for row in rows(result, "unread_spans")}
        reasons |= found
        assert (rows(result, "dump_sections")[-1]["end_reason"] == "truncated") == bool(found), file.path
    assert reasons == {"no_line_end"}


def test_sections_of_several_files_in_one(batches: list[Batch], fast: bool) -> None:
    first = dump(batches, Style(), path="/data/orders-0/00000000000000000000.log")
    second = dump(batches, Style("2.7"), path="/data/orders-1/00000000000000000000.log")
    index = b"Dumping /data/orders-1/00000000000000000000.txnindex\n"
    index += b"version: 0 producerId: 5 firstOffset: 0 lastOffset: 3 lastStableOffset: 4\n"
    result = read(first + second + index, fast=fast)
    sections = rows(result, "dump_sections")
    assert [(row["kind"], row["partition"], row["dialect"], row["end_reason"]) for row in sections] == [
        ("log", 0, "3.3", "next"),
        ("log", 1, "2.2", "next"),
        ("txnindex", 1, None, "eof"),
    ]
    assert [row["length"] for row in sections] == [len(first), len(second), len(index)]
    assert len(rows(result, "batches")) == 6 and len(rows(result, "aborted_transactions")) == 1


@pytest.mark.parametrize("style", [Style(), Style(deep=False), Style("2.7")], ids=str)
def test_files_of_windows_that_were_joined(style: Style, fast: bool) -> None:
    """A byte order mark stands before each `Dumping` line, behind a log with batches, an empty one and an index."""
    mark, files = b"\xef\xbb\xbf", list[bytes]()
    for number in range(3):
        batches = [Batch([Rec(b"k", b"value %d" % offset)], 5, offset, offset=offset) for offset in range(number)]
        files.append(dump(batches, style, path=f"/data/orders-{number}/00000000000000000000.log"))
    files.append(b"Dumping /data/orders-1/00000000000000000000.txnindex\n")
    plain, marked = read(b"".join(files), fast=fast), read(mark + mark.join(files), fast=fast)
    assert marked.ledger.unread == plain.ledger.unread == 0
    for name in ("batches", "records", "dump_sections"):
        assert len(rows(marked, name)) == len(rows(plain, name)), name


@pytest.mark.parametrize(("begins", "lost_batches"), [(b"", 0), (b"Log starting offset: 0\n", 0), (b"Log starting offset: 0\n", 1)])
def test_a_lost_dumping_line_counts_no_batch_to_the_log_before(begins: bytes, lost_batches: int, fast: bool) -> None:
    """The log behind it is longer: at some of its batches the one before could have gone on."""
    logs = [[Batch([Rec(b"k", b"value %d" % offset)], 5, offset, offset=offset) for offset in range(count)] for count in (6, 300, 2)]
    first, lost, last = (
        dump(log, Style(printed=False), path=f"/data/orders-{number}/00000000000000000000.log") for number, log in enumerate(logs)
    )
    behind = begins + lost[[found.start() for found in re.finditer(rb"^baseOffset: ", lost, re.MULTILINE)][lost_batches] :]
    result = read(first + behind + last, fast=fast)
    assert len(rows(result, "batches")) == 8 and result.ledger.unread == len(behind)


def test_a_decoder_that_nobody_knows() -> None:
    batches = [Batch([Rec(b"k", b"%d" % number), Rec(b"k", b"+%d" % number)], 5, 2 * number) for number in range(3)]
    text = re.sub(rb"payload: .*", b"payload: [B@1b2c3d4", dump(batches, Style()))
    result = read(text)
    assert seen(result) == truth(batches, Style())
    assert {row["payload_verified"] for row in rows(result, "batches")} == {False}
    assert {row["value_hash"] for row in rows(result, "records")} == {None}
    assert rows(result, "dump_sections")[0]["decoder"] == "other"


NO_DUMPS = [(b"hello\nworld\n", "not_a_dump"), (b"Dumping /a/b-0/0", "truncated_line"), (b"\0" * 5000, "not_a_dump")]


@pytest.mark.parametrize(("text", "reason"), NO_DUMPS)
def test_text_that_is_no_dump(text: bytes, reason: str) -> None:
    result = read(text)
    assert (result.ledger.unread, [row["reason"] for row in rows(result, "unread_spans")]) == (len(text), [reason])


def test_an_empty_file_has_no_facts() -> None:
    result = read(b"")
    assert (result.facts, result.ledger.total) == ({}, 0)


# damage


@pytest.mark.parametrize("release", ["2.7", "4.3"])
def test_damage_costs_one_batch(batches: list[Batch], release: str, fast: bool) -> None:
    """A payload that lost a byte is unread up to the next batch line at the expected position."""
    whole = dump(batches, Style(release))
    result = read(whole.replace(b"value 1", b"valu 1"), fast=fast)
    assert [row["records_seen"] for row in rows(result, "batches")] == [2, 0, 2]
    assert [row["reason"] for row in rows(result, "unread_spans")] == ["undelimited_record"]


def test_a_forged_batch_in_a_damaged_payload_is_not_believed(batches: list[Batch], fast: bool) -> None:
    style = Style()
    dump(batches, style)
    batches[1].records[0] = Rec(b"k", b"before\n")
    for _ in range(3):
        batches[1].records[0] = Rec(b"k", b"before\n" + forged_marker(batches[1], style) + b"\nafter")
        dump(batches, style)
    result = read(dump(batches, style).replace(b"before\n", b"befor\n"), fast=fast)
    assert [row["marker_type"] for row in rows(result, "batches")] == [None] * 3


def test_a_cut_payload_proves_nothing(batches: list[Batch], fast: bool) -> None:
    """The end of the file falls behind a forged COMMIT inside a payload: all of the record is unread."""
    style = Style()
    for _ in range(3):
        batches[2].records[0] = Rec(b"k", b"before\n" + forged_marker(batches[2], style) + b"\nafter")
        text = dump(batches, style)
    result = read(text[: text.index(b"\nafter") + 1], fast=fast)
    assert [row["marker_type"] for row in rows(result, "batches")] == [None] * 3
    assert [row["reason"] for row in rows(result, "unread_spans")] == ["truncated_record"]
    assert rows(result, "dump_sections")[0]["end_reason"] == "truncated"


SNAPSHOT = b"Dumping /d/a-0/00000000000000000009.snapshot\n"
SPANS = {
    "an empty line": (b"\n", [(b"\n", "blank_line")]),
    "of Windows": (b"\r\n", [(b"\r\n", "blank_line")]),
    "several": (b"\n\n\r\n", [(b"\n\n\r\n", "blank_line")]),
    "a short word": (b"quit\n", [(b"quit\n", "unknown_line")]),
    "one character": (b"x\n", [(b"x\n", "unknown_line")]),
    "a word between empty lines": (b"\nquit\n\n", [(b"\n", "blank_line"), (b"quit\n\n", "unknown_line")]),
}


@pytest.mark.parametrize("behind", ["log", "snapshot"])
@pytest.mark.parametrize(("text", "expected"), SPANS.values(), ids=SPANS)
def test_only_line_ends_are_blank(text: bytes, expected: list[tuple[bytes, str]], behind: str, fast: bool) -> None:
    whole = dump([Batch([Rec(b"k", b"v")])], Style()) + (SNAPSHOT if behind == "snapshot" else b"") + text
    spans = read(whole, fast=fast).facts["unread_spans"].to_pylist()
    found = [(whole[row["byte_offset"] : row["byte_offset"] + row["length"]], row["reason"]) for row in spans]
    if behind == "snapshot" and text.startswith(b"\nquit"):  # nothing in a snapshot puts the line behind it into doubt
        expected = [*expected[:1], (b"quit\n", "unknown_line"), (b"\n", "blank_line")]
    assert found == expected
