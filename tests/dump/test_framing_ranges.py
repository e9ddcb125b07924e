"""Ranges of one file, read on their own: windows of any size give the same facts, and a forged start is never accepted."""

import random
from collections import defaultdict

import pyarrow as pa
import pytest

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.files.discovery import discover
from eo_audit.dump.parse import FileContext, Ledger, RangeResult, State, parse_range, probe_section
from tests.support.dump_text import Batch, Rec, Style, dump, forged_marker, random_batches
from tests.support.facts import CORPUS, context_of, text_of

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1)


@pytest.fixture(autouse=True)
def _fast_path_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)


def whole(text: bytes, context: FileContext = CONTEXT) -> RangeResult:
    """A text as one range."""
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True)


def in_blocks(text: bytes, context: FileContext, *, block: int, ahead: int) -> tuple[dict[str, pa.Table], Ledger, State]:
    """A text read block by block, each window with a little text ahead; more where an element needs it."""
    at, state, ledger, more = 0, State.initial(), Ledger(), ahead
    facts: defaultdict[str, list[pa.Table]] = defaultdict(list)
    while at < len(text):
        stop = min(at + block, len(text))
        end = min(stop + more, len(text))
        result = parse_range(text[at:end], context=context, base=at, start=at, stop=stop, state=state, final=end == len(text))
        assert result.state_out is not None
        ledger += result.ledger
        for table, rows in result.facts.items():
            facts[table].append(rows)
        more = 2 * more if result.end_byte == at else ahead
        at, state = result.end_byte, result.state_out
    return {table: pa.concat_tables(rows) for table, rows in facts.items()}, ledger, state


def assert_blocks_agree(text: bytes, context: FileContext, rng: random.Random) -> None:
    """Blocks of some size give what one range gives."""
    expected = whole(text, context)
    facts, ledger, state = in_blocks(text, context, block=rng.choice((1, 200, 3000)), ahead=rng.choice((1, 300, 5000)))
    assert (ledger, state) == (expected.ledger, expected.state_out)
    assert facts.keys() == expected.facts.keys()
    for table, rows in facts.items():
        key = [(name, "ascending") for name in ("byte_offset", "length")]
        assert rows.sort_by(key).equals(expected.facts[table].sort_by(key)), table


def test_windows_of_any_size_read_the_same() -> None:
    rng = random.Random(1)
    inputs = [path for path in sorted((CORPUS / "dumps").iterdir()) if path.name.startswith(("hostile", "dialects_tv2@", "compressed"))]
    files = [file for path in inputs for file in discover([path]) if file.kind_hint == "text" and file.stored_bytes < 30_000]
    for file in rng.sample(files, 50):
        text = text_of(file)
        assert_blocks_agree(text, context_of(file, text), rng)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_windows_of_any_size_read_the_same_damage(codec: str) -> None:
    rng = random.Random(codec)
    for _ in range(20):
        text = bytearray(dump(random_batches(rng.randrange(1 << 30), 8, codecs=(codec,)), Style(rng.choice(("2.7", "2.8", "4.3")))))
        for _ in range(rng.choice((0, 1, 3))):
            text[rng.randrange(len(text))] = rng.choice((10, 48, 93, rng.randrange(256)))
        assert_blocks_agree(bytes(text), CONTEXT, rng)


# ranges that begin in the middle of a file


def hostile_dump() -> tuple[bytes, set[int]]:
    """A dump with forged batches in payloads, and where its true batch lines start."""
    batches = [Batch([Rec(b"k", b"value %d" % number), Rec(b"k", None)], 5, 2 * number) for number in range(12)]
    style = Style()
    dump(batches, style)
    for batch in batches[2::3]:
        for _ in range(3):  # the forged text holds its own position, which depends on its length
            batch.records[0] = Rec(b"k", b"v\n" + forged_marker(batch, style) + b"\n" + forged_marker(batch, style))
            dump(batches, style)
    text = dump(batches, style)
    return text, {row["byte_offset"] for row in whole(text).facts["batches"].to_pylist()}


def from_the_middle(text: bytes, start: int) -> RangeResult:
    """The rest of a text from a byte on, of which nothing is known but where its section seems to begin."""
    guess = probe_section(text[:4096], context=CONTEXT, base=0)
    return parse_range(text[start:], context=CONTEXT, base=start, start=start, stop=len(text), state=None, final=True, guess=guess)


def test_a_range_is_accepted_just_when_it_begins_at_a_true_line() -> None:
    """The right range's first byte and state are what its left neighbour ends with, or it began inside a payload."""
    text, true_starts = hostile_dump()
    expected, forged = whole(text), 0
    starts = [at for at in range(1, len(text)) if text.startswith(b"\nbaseOffset: ", at - 1)]
    for start in starts[1:]:
        left = parse_range(text, context=CONTEXT, base=0, start=0, stop=start, state=State.initial(), final=True)
        right = from_the_middle(text, start)
        assert right.sync_byte == start
        accepted = (left.end_byte, left.state_out) == (right.sync_byte, right.state_in)
        assert accepted == (start in true_starts)
        if accepted:
            joined = pa.concat_tables([left.facts["batches"], right.facts["batches"]])
            assert joined.equals(expected.facts["batches"])
            assert (left.ledger + right.ledger, right.state_out) == (expected.ledger, expected.state_out)
        forged += not accepted
    assert forged == 8


def test_a_range_begins_at_the_first_line_that_can_be_one() -> None:
    text, _ = hostile_dump()
    first = text.index(b"baseOffset: 4 ")
    assert from_the_middle(text, first - 100).sync_byte == first
    assert from_the_middle(text, first).sync_byte == first


def test_a_range_without_such_a_line_reads_nothing() -> None:
    text = dump([Batch([Rec(b"k", b"x\n" * 3000)], 5, 0)], Style())
    result = from_the_middle(text, len(text) - 2000)
    assert (result.sync_byte, result.state_in, result.end_byte, result.facts) == (len(text), None, len(text), {})


def test_a_window_that_ends_inside_a_record_leaves_it() -> None:
    text = dump([Batch([Rec(b"k", b"x" * 3000)], 5, 0), Batch([Rec(b"k", b"y")], 5, 1)], Style())
    begin = text.index(b"baseOffset: 0")
    result = parse_range(text[:2000], context=CONTEXT, base=0, start=0, stop=2000, state=State.initial(), final=False)
    assert result.end_byte == begin and "batches" not in result.facts
