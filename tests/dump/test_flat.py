"""Dumps of 0.11.0 to 2.1: one line for each record, none for its batch; what they say is what later tools say of the same log."""

import re
from collections.abc import Iterable

import pyarrow as pa
import pytest

from eo_audit.dump.files.identity import parse_path
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from tests.support.dump_text import FLAT_RELEASES, Batch, Rec, Style, dump, forged_lines, random_batches
from tests.support.facts import SALT, context_of, corpus_files, parsed, text_of

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1, salt=SALT)
OF_BATCH = (
    *("base_offset", "last_offset", "base_sequence", "last_sequence", "producer_id", "producer_epoch", "is_transactional", "is_control"),
    *("marker_type", "coordinator_epoch", "timestamp_type", "max_timestamp_ms", "position", "codec", "magic", "count", "records_seen"),
)
OF_RECORD = ("base_offset", "offset", "timestamp_ms", "sequence", "key_size", "value_size")
HASHES = ("key_hash", "value_hash")
UNPRINTED = ("partition_leader_epoch", "crc", "crc_valid")


def read(text: bytes, context: FileContext = CONTEXT) -> RangeResult:
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True)


def told(result: RangeResult, table: str, columns: Iterable[str]) -> list[dict[str, object]]:
    """The rows of a table, with some columns of them."""
    return result.facts[table].select(list(columns)).to_pylist() if table in result.facts else []


def unread(result: RangeResult) -> list[object]:
    return [row["reason"] for row in told(result, "unread_spans", ["reason"])]


@pytest.mark.parametrize("release", ["0.11.0.3", "1.1.1", "2.0.1"])
@pytest.mark.parametrize("scenario", ["dialects_tv2", "compressed", "hostile", "dialects_tombstone_k23"])
def test_a_log_says_the_same_in_both_dialects(scenario: str, release: str) -> None:
    inputs = {
        name: {file.path: file for file in corpus_files() if file.cluster == name}
        for name in (f"{scenario}@{release}", f"{scenario}@2.3.1")
    }
    flat, later = (inputs[name] for name in inputs)
    compared = 0
    for path in sorted(flat.keys() & later.keys()):
        # What a tool cannot decode it dies of, each release somewhere else.
        if path.endswith((".log.txt", ".shallow.txt")) and "/__" not in f"/{path}" and "zstd" not in path:
            old, new = parsed(flat[path]), parsed(later[path])
            columns = [name for name in OF_BATCH if name not in ("count", "is_control") or release == "2.0.1" or "shallow" not in path]
            assert told(old, "batches", columns) == told(new, "batches", columns), path
            assert told(old, "records", OF_RECORD) == told(new, "records", OF_RECORD), path
            # Of the last batch, where it is compressed, no size proves what its text holds.
            hashes = zip(told(old, "records", HASHES), told(new, "records", HASHES), strict=True)
            assert all(mine == theirs or set(mine.values()) == {None} for mine, theirs in hashes), path
            compared += old.facts["batches"].num_rows
    assert compared > 10 or not flat or scenario == "dialects_tombstone_k23"


@pytest.mark.parametrize("release", FLAT_RELEASES)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("shape", [{}, {"legacy": True}, {"codecs": ("gzip",)}])
def test_a_generated_log_says_the_same_in_both_dialects(seed: int, release: str, shape: dict[str, object]) -> None:
    batches = random_batches(seed, 12, **shape)  # type: ignore[arg-type]
    old, new = (read(dump(batches, Style(one))) for one in (release, "2.3"))
    assert not unread(new)
    # Nothing but what a header key might hide is left unread, and only from there on.
    assert set(unread(old)) <= {"ambiguous"}
    # The generator gives a batch the time of its last record, a broker the newest.
    untold = ("max_timestamp_ms", "producer_epoch") if release == "0.11.0.0" else ("max_timestamp_ms",)
    of_batch = [name for name in OF_BATCH if name not in untold]
    for table, columns in (("batches", of_batch), ("records", OF_RECORD)):
        said = told(old, table, columns)
        assert said == told(new, table, columns)[: len(said)]
    assert len(told(old, "batches", OF_BATCH)) == 12 or unread(old)


def test_what_no_line_prints_is_null() -> None:
    result = read(dump([Batch([Rec(b"k", b"v")], 5, 0, transactional=True) for _ in range(2)], Style("2.1")))
    first, last = result.facts["batches"].to_pylist()
    assert [first[name] for name in UNPRINTED] == [None] * 3
    assert (first["size_bytes"], last["size_bytes"]) == (last["position"], None), "the size of the last batch nobody tells"


@pytest.mark.parametrize("release", FLAT_RELEASES)
@pytest.mark.parametrize("shape", [{}, {"legacy": True}, {"codecs": ("gzip",)}])
def test_where_the_last_batch_ends_at_the_latest(release: str, shape: dict[str, object]) -> None:
    """So that a listing tells whether its text is whole: of no text too early, and of few much too late."""
    known = []
    for seed in range(40):
        batches = random_batches(seed, 6, **shape)  # type: ignore[arg-type]
        old, new = (read(dump(batches, Style(one))) for one in (release, "2.3"))
        (section,), (*_, last) = (
            told(*of) for of in ((old, "dump_sections", ["end_at_most"]), (new, "batches", ["position", "size_bytes"]))
        )
        assert (section["end_at_most"] is None) == any(record.headers for record in batches[-1].records) or unread(old)
        if section["end_at_most"] is not None:
            known.append(section["end_at_most"] - last["position"] - last["size_bytes"])  # type: ignore[operator]
    assert len(known) >= 10 and min(known) >= 0


def test_a_record_of_an_old_format_tells_its_checksum() -> None:
    result = read(dump(random_batches(3, 4, legacy=True), Style("2.1")))
    assert result.facts["batches"]["crc_valid"].to_pylist() == [True] * 4


@pytest.mark.parametrize("release", FLAT_RELEASES)
def test_without_records_the_batches_are_told(release: str) -> None:
    batches = [Batch([Rec(b"k", b"v")] * 3, 5, 0, transactional=True), Batch([Rec(b"", b"")], 5, transactional=True, marker="COMMIT")]
    result = read(dump(batches, Style(release, deep=False)))
    assert told(result, "dump_sections", ["dialect", "deep"]) == [{"dialect": "0.11", "deep": False}]
    kinds = told(result, "batches", ["is_control", "marker_type", "last_offset", "crc_valid"])
    assert [tuple(row.values()) for row in kinds] == [(False, None, 2, True), (True, None, 3, True)]


@pytest.mark.parametrize("printed", [True, False])
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("others", [0, 2])
def test_records_in_a_header_key_are_not_believed(others: int, codec: str, printed: bool) -> None:
    batches = [Batch([Rec(b"k", b"v")] * (1 + others), 5, 10 * n, codec=codec) for n in range(6)]
    text = forged_lines(batches, 2, Style("2.1", printed=printed))
    result = read(text)
    assert unread(result) == ["ambiguous"]
    assert told(result, "batches", ["base_offset"]) == [{"base_offset": batch.offset} for batch in batches[:2]]
    assert result.ledger.total == len(text)


@pytest.mark.parametrize("release", FLAT_RELEASES)
def test_values_that_printing_changed_are_told_up_to_the_end_of_the_text(release: str) -> None:
    """A changelog of Kafka Streams: counts of eight bytes, whose last one U+FFFD stands for."""
    batches = [Batch([Rec(b"g%d" % n, (1700 + n + at).to_bytes(8, "big")) for n in range(3)], 5, 3 * at, True) for at in range(12)]
    result = read(dump(batches, Style(release)))
    assert unread(result) == []
    assert told(result, "batches", ["base_offset", "count"]) == [{"base_offset": 3 * at, "count": 3} for at in range(12)]


@pytest.mark.parametrize("release", FLAT_RELEASES)
def test_a_value_that_printing_changed_and_that_ends_in_a_bracket_is_no_header_key(release: str) -> None:
    """Packed values of a real 1.1.1: its first record looks like one of a dump without payloads, whose header keys end where it ends."""
    batches = [Batch([Rec(b"k%d" % n, b"\xcdz\xb5\xe3\xf5r:]") for n in range(2)], 5, 2 * at, True) for at in range(6)]
    result = read(dump(batches, Style(release)))
    assert unread(result) == []
    assert told(result, "batches", ["base_offset", "count"]) == [{"base_offset": 2 * at, "count": 2} for at in range(6)]
    assert told(result, "dump_sections", ["payload_printed"]) == [{"payload_printed": True}]


@pytest.mark.parametrize("release", FLAT_RELEASES)
@pytest.mark.parametrize("deep", [True, False])
def test_an_old_dump_is_read_where_it_begins_with_the_first_line_of_its_segment(release: str, deep: bool) -> None:
    text = dump([Batch([Rec(b"k", b"v")], 5, n) for n in range(3)], Style(release, deep=deep))
    for lines in (1, 2):
        result = read(text.split(b"\n", lines)[lines])
        assert result.facts["batches"].num_rows == 3 and not unread(result)


@pytest.mark.parametrize("release", FLAT_RELEASES)
def test_without_its_beginning_an_old_dump_is_not_read(release: str) -> None:
    text = dump([Batch([Rec(b"k", b"v")], 5, n) for n in range(3)], Style(release))
    result = read(text.split(b"\n", 3)[3])
    assert unread(result) == ["unsupported_dialect"] and "batches" not in result.facts


@pytest.mark.parametrize("scenario", ["dialects_tv2", "compressed", "hostile"])
def test_a_real_log_without_epochs_says_all_the_rest(scenario: str) -> None:
    """What 0.11.0.1 printed is what 0.11.0.2 printed of the same log, less ` producerEpoch: N`: that is the one change between them."""
    files = [file for file in corpus_files() if file.cluster == f"{scenario}@0.11.0.3" and file.path.endswith(".log.txt")]
    for file in files:
        told_all = parsed(file)
        text = re.sub(rb"(?<= producerId: )(-?\d+) producerEpoch: -?\d+(?= sequence: )", rb"\1", text_of(file))
        first = read(text, context_of(file, text))
        for table, columns in (("batches", OF_BATCH), ("records", OF_RECORD)):
            columns = [name for name in columns if name != "producer_epoch"]
            assert told(first, table, columns) == told(told_all, table, columns)
        assert not any(row["producer_epoch"] is not None for row in told(first, "batches", ["producer_epoch"]))
    assert files or scenario != "dialects_tv2"


@pytest.mark.parametrize("release", FLAT_RELEASES)
def test_all_records_of_a_segment_tell_their_epoch_or_none_does(release: str) -> None:
    other = "1.1" if release == "0.11.0.0" else "0.11.0.0"
    batches = [Batch([Rec(b"k", b"v")], 5, n) for n in range(4)]
    lines, others = (dump(batches, Style(one)).splitlines(keepends=True) for one in (release, other))
    result = read(b"".join([*lines[:4], *others[4:]]))
    assert result.facts["batches"].num_rows < 4 and unread(result)


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_text_that_ends_early_loses_its_last_batch_only(cut: int) -> None:
    text = dump([Batch([Rec(b"key", b"value")] * 2, 5, 2 * n) for n in range(3)], Style("2.1"))
    result = read(text[:-cut])
    assert told(result, "batches", ["base_offset"]) == [{"base_offset": 0}, {"base_offset": 2}]
    assert told(result, "dump_sections", ["end_reason"]) == [{"end_reason": "truncated"}]


@pytest.mark.parametrize("release", [*FLAT_RELEASES, "2.3", "4.3"])
@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize("head", [0, 1, 2])
def test_a_text_that_ends_in_its_first_line_is_the_beginning_of_a_log(head: int, deep: bool, release: str) -> None:
    """With its preamble or without: never text that is no dump, nor an old one without its head."""
    text = dump([Batch([Rec(b"k", b"v")], 5, n) for n in range(3)], Style(release, deep=deep))
    lines = text.splitlines(keepends=True)
    before, first = b"".join(lines[head:2]), lines[2].rstrip(b"\n")
    lengths = range(len(b"offset: 0 position: 0 C"), len(first) + 1)
    # Each behind one of the heads: what stands before a line does not tell where in it the text ends.
    for length in (*lengths[head::3], len(first)):
        result = read(before + first[:length])
        assert told(result, "dump_sections", ["kind"]) == [{"kind": "log"}]
        assert set(unread(result)) <= {"truncated_line", "truncated_record"}
        # What lacks nothing but its line end may be whole.
        assert unread(result) or length == len(first)
        assert result.ledger.total == len(before) + length


def test_the_name_of_a_file_tells_what_few_bytes_do_not() -> None:
    result = read(b"offset: 28 posi", FileContext("c", CONTEXT.path, 1, salt=SALT, own=parse_path(CONTEXT.path)))
    assert (told(result, "dump_sections", ["kind"]), unread(result)) == ([{"kind": "log"}], ["truncated_line"])


@pytest.mark.parametrize("path", ["x.txt", "broker-1/orders-0/00000000000000000000.index.txt"])
def test_the_beginning_of_an_index_is_of_no_log(path: str) -> None:
    result = read(b"offset: 28 position: 41", FileContext("c", path, 1, salt=SALT, own=parse_path(path)))
    assert told(result, "dump_sections", ["kind"]) == [{"kind": "index" if "index" in path else "unknown"}]


def test_several_segments_in_one_text() -> None:
    texts = [dump([Batch([Rec(b"k", b"v")], 5, 0)], Style("2.1"), path=f"/data/orders-0/0000000000000000000{n}.log") for n in range(3)]
    result = read(b"".join(texts))
    assert result.facts["dump_sections"].num_rows == 3 and not unread(result)
    assert pa.compute.all(pa.compute.equal(result.facts["batches"]["position"], 0)).as_py()


def test_lines_of_a_later_tool_in_a_payload_are_its_payload() -> None:
    forged = b"v\n" + dump([Batch([Rec(b"k", b"v")], 5, 0)], Style("4.3"))
    batches = [Batch([Rec(b"k", forged)], 5, n) for n in range(3)]
    result = read(dump(batches, Style("1.1")))
    assert told(result, "records", ["value_size"]) == [{"value_size": len(forged)}] * 3


def moved(text: bytes, number: bytes, by: int) -> bytes:
    """A dump with all its offsets, or all its positions, so much higher."""
    return re.sub(rb"(?<=%s: )\d+" % number, lambda found: b"%d" % (int(found[0]) + by), text)


@pytest.mark.parametrize("release", FLAT_RELEASES)
@pytest.mark.parametrize("emptied", [1, 3])
def test_a_segment_may_begin_with_batches_that_the_cleaner_emptied(release: str, emptied: int) -> None:
    """They are 61 bytes each, and no line tells of them: the first line stands behind them."""
    batches = [Batch([Rec(b"k", b"v")], 5, n) for n in range(3)]
    text = dump(batches, Style(release))
    cleaned = moved(text, b"position", 61 * emptied)
    result = read(cleaned)
    assert told(result, "batches", ["position"]) == [{"position": batch.position + 61 * emptied} for batch in batches]
    assert not unread(result)
    # Behind another segment, too.
    both = read(text + moved(cleaned, b"offset", 10).replace(b"00000000000000000000.log", b"00000000000000000010.log"))
    assert both.facts["batches"].num_rows == 6 and not unread(both)


@pytest.mark.parametrize("release", FLAT_RELEASES)
@pytest.mark.parametrize("lost", range(1, 9))
def test_a_record_line_that_was_lost_is_no_hole(release: str, lost: int) -> None:
    """Positions tell that more stood there, if it was larger than the varints of a record differ: the batch that lost it is not read, those
    behind are."""
    lines = dump([Batch([Rec(b"k", b"v" * 40)] * 3, 5, 3 * n) for n in range(4)], Style(release)).splitlines(keepends=True)
    told_of = {row["base_offset"] for row in told(read(b"".join(lines)), "batches", ["base_offset"])}
    result = read(b"".join(line for line in lines if not line.startswith(b"offset: %d " % lost)))
    assert unread(result) == ["missing_record"]
    # Of a batch that lost its first line, the one before it may have lost its last.
    assert told_of - {row["base_offset"] for row in told(result, "batches", ["base_offset"])} == {lost - lost % 3}


@pytest.mark.parametrize("release", FLAT_RELEASES)
def test_a_batch_that_was_lost_takes_the_one_before_it(release: str) -> None:
    lines = dump([Batch([Rec(b"k", b"v" * 40)], 5, n) for n in range(4)], Style(release)).splitlines(keepends=True)
    result = read(b"".join(line for line in lines if not line.startswith(b"offset: 2 ")))
    assert unread(result) == ["missing_record"]
    assert told(result, "batches", ["base_offset"]) == [{"base_offset": 0}, {"base_offset": 3}]


@pytest.mark.parametrize("release", FLAT_RELEASES)
@pytest.mark.parametrize("emptied", [1, 2])
def test_what_the_cleaner_emptied_between_batches_is_no_text_that_was_lost(release: str, emptied: int) -> None:
    """The head of a batch is kept for its producer, 61 bytes of which no line tells; its offsets are missing."""
    first, behind = [Batch([Rec(b"k", b"v")] * 2, 5, 0)], [Batch([Rec(b"k", b"v")], 5, 6 + n) for n in range(2)]
    text, size = dump(first, Style(release)), first[0].size_bytes
    rest = b"".join(dump(behind, Style(release)).splitlines(keepends=True)[2:])
    result = read(text + moved(moved(rest, b"offset", 6), b"position", size + 61 * emptied))
    assert (result.facts["batches"].num_rows, unread(result)) == (3, [])


@pytest.mark.parametrize("release", FLAT_RELEASES)
def test_a_segment_begins_behind_no_other_bytes(release: str) -> None:
    text = dump([Batch([Rec(b"k", b"v")], 5, n) for n in range(3)], Style(release))
    # Nor where the tool's own words are gone.
    for later in (moved(text, b"position", 60), moved(text, b"position", 70), moved(text, b"position", 61).split(b"\n", 2)[2]):
        assert unread(read(later)) == ["unsupported_dialect"]
