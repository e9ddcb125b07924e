"""Truncations, splices and byte flips of real dumps: nothing raises, every byte has an owner, nothing is invented, no payload leaks."""

import random
import re
from functools import cache

import pyarrow as pa
import pytest

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.files.discovery import DumpFile
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from tests.support.dump_text import Batch, Rec, Style, dump, forged_marker
from tests.support.facts import context_of, corpus_files, text_of

LARGEST = 30_000  # bytes: damage to larger files is the same, and slower
Row = dict[str, object]


@pytest.fixture(autouse=True)
def _fast_path_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)


@cache
def corpus() -> list[tuple[DumpFile, bytes]]:
    """Files of every kind, the hostile ones more than once."""
    texts = [(file, text_of(file)) for file in corpus_files() if file.stored_bytes < LARGEST]
    return texts + 3 * [(file, text) for file, text in texts if file.cluster.startswith("hostile") and ".log." in file.path]


def read(text: bytes, context: FileContext, *, fast: bool = True) -> RangeResult:
    """A whole text as one range."""
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True, fast=fast)


def damaged(rng: random.Random, text: bytes) -> bytes:
    """The text cut off, with a stretch of another file in place of one of its own, or with some bytes changed."""
    kind, at = rng.random(), rng.randrange(len(text) + 1)
    if kind < 0.3:
        return text[:at]
    if kind < 0.65:
        _, other = rng.choice(corpus())
        begin = rng.randrange(len(other) + 1)
        lost, gained = (rng.choice((0, 1, 40, 400, 20_000)) for _ in range(2))
        return text[:at] + other[begin : begin + gained] + text[at + lost :]
    changed = bytearray(text or b"\n")
    for _ in range(rng.choice((1, 1, 3, 30))):
        changed[rng.randrange(len(changed))] = rng.choice((10, 13, 32, 45, 48, 57, 91, 93, rng.randrange(256)))
    return bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_dumps_balance_and_never_raise(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(350):
        file, text = rng.choice(corpus())
        for _ in range(rng.choice((1, 1, 2))):
            text = damaged(rng, text)
        context = context_of(file, text)
        result = read(text, context)
        assert (result.end_byte, result.ledger.total) == (len(text), len(text)), (file.path, number)
        unread = result.facts["unread_spans"]["length"].to_pylist() if "unread_spans" in result.facts else []
        assert sum(unread) == result.ledger.unread
        if number % 4 == 0:
            exact = read(text, context, fast=False)
            assert exact.facts.keys() == result.facts.keys() and exact.ledger == result.ledger
            assert all(facts.equals(exact.facts[table]) for table, facts in result.facts.items()), (file.path, number)


def by_place(result: RangeResult, table: str) -> dict[int, Row]:
    """Rows of a table by their place in the file."""
    return {row["byte_offset"]: row for row in (result.facts[table].to_pylist() if table in result.facts else [])}


def without(row: Row, *names: str) -> Row:
    """A row without some columns."""
    return {name: value for name, value in row.items() if name not in names}


def test_a_cut_file_says_nothing_that_the_whole_file_does_not_say() -> None:
    rng = random.Random(1)
    logs = [(file, text) for file, text in corpus() if ".log." in file.path and len(text) > 400]
    for file, text in rng.sample(logs, 60):
        context = context_of(file, text)
        whole = read(text, context)
        batches, records = by_place(whole, "batches"), by_place(whole, "records")
        for _ in range(5):
            cut = read(text[: rng.randrange(len(text))], context)
            for place, row in by_place(cut, "records").items():
                unsure = ("length", "key_hash", "value_hash")
                assert without(row, *unsure) == without(records[place], *unsure)
            found = list(by_place(cut, "batches").items())
            assert all(row == batches[place] for place, row in found[:-1])
            for place, row in found[-1:]:
                unsure = ("records_seen", "payload_verified", "length", "marker_type", "control_type", "coordinator_epoch")
                assert without(row, *unsure) == without(batches[place], *unsure)
                assert row["marker_type"] in (None, batches[place]["marker_type"])


SECRET = b"S3CRET"


def secret_dump(style: Style, codec: str) -> bytes:
    """A dump whose keys, payloads and header keys all hold the secret, some in the form of a batch."""
    records = [Rec(SECRET, SECRET + b"\n" + SECRET, ((SECRET, 5),)), Rec(b"] key: " + SECRET, b"\xff" + SECRET)]
    batches = [Batch(list(records), 5, 2 * number, codec=codec) for number in range(6)]
    dump(batches, style)
    for batch in batches[::2]:
        batch.records[0] = Rec(SECRET, SECRET + b"\n" + forged_marker(batch, style) + b"\n" + SECRET)
    return dump(batches, style)


@pytest.mark.parametrize("style", [Style(), Style("2.7"), Style("2.8"), Style(crlf=True)], ids=["4.3", "2.7", "2.8", "crlf"])
def test_no_payload_ever_lands_in_a_fact(style: Style) -> None:
    rng = random.Random(style.release)
    context = FileContext("cluster", "orders-0/00000000000000000000.log.txt", 1)
    for _ in range(60):
        text = secret_dump(style, rng.choice(("none", "lz4")))
        result = read(damaged(rng, text) if rng.random() < 0.9 else text, context)
        for table, facts in result.facts.items():
            # No number and no flag holds a text.
            kinds = {field.name: field.type for field in facts.schema}
            for column in (name for name, kind in kinds.items() if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind))):
                values = facts[column].to_pylist()
                assert not any(isinstance(value, str) and SECRET.decode() in value for value in values), (table, column)


def test_a_file_cut_inside_a_decoded_record_is_truncated() -> None:
    """Else a coordinator log that was cut off counts as whole, and what it lacks as never written."""
    rng = random.Random(9)
    topics = ("__transaction_state", "__consumer_offsets")
    # Of a log that is the same on several brokers one dump.
    decoded = {text: file for file, text in corpus() if ".log." in file.path and any(topic in file.path for topic in topics)}
    cuts = 0
    for text, file in decoded.items():
        starts = [found.start() + 1 for found in re.finditer(rb"\n\| offset: ", text)]
        for start in rng.sample(starts, min(len(starts), 2)):
            key, line_end = text.find(b" key: ", start), text.find(b"\n", start)
            if 0 <= key < line_end:
                cut = text[: rng.randrange(key, line_end)]
                sections = read(cut, context_of(file, cut)).facts["dump_sections"].to_pylist()
                assert sections[-1]["end_reason"] == "truncated", (file.path, cut[-80:])
                cuts += 1
    assert cuts > 100
