"""Batches of hundreds of records, as producers with linger.ms write them: with header keys, with payloads that are no text, packed or not,
all of it is read, up to the end of the file."""

import random

import pytest

from tests.support.dump_text import Batch, Rec, Style, dump
from tests.support.readers import CONTEXT, assert_same, exact_reading

HEADERS = {"no headers": (), "headers": ((b"traceparent", 55), (b"source", 8))}
BATCHES, RECORDS = 3, 300
TAKEN = 100  # records of each batch that the cleaner took


def values(kind: str, count: int, rng: random.Random) -> list[bytes]:
    if kind == "text":
        return [b'{"order": %d, "paid": "yes"}' % rng.randrange(10**9) for _ in range(count)]
    # As Avro, Protobuf and packed payloads are: line feeds, question marks, and bytes that print as U+FFFD.
    return [rng.randbytes(rng.randint(20, 60)) for _ in range(count)]


@pytest.mark.parametrize("kind", ["text", "binary"])
@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("style", [Style(), Style(release="2.3")], ids=["4.3", "2.3"])
@pytest.mark.parametrize("cleaned", [False, True], ids=["whole", "cleaned"])
def test_all_of_it_is_read(kind: str, headers: str, codec: str, style: Style, *, cleaned: bool) -> None:
    rng = random.Random(7)
    # The first record shows that payloads are printed; keys tell which record is which.
    batches = [Batch([Rec(b"first", b"plain")], producer_id=5, base_sequence=0)]
    for batch in range(BATCHES):
        found = [Rec(b"k%d" % index, value, HEADERS[headers]) for index, value in enumerate(values(kind, RECORDS, rng))]
        gone = frozenset(rng.sample(range(1, RECORDS), TAKEN if cleaned else 0))
        batches.append(Batch(found, producer_id=5, base_sequence=1 + batch * RECORDS, codec=codec, gone=gone))
    text = dump(batches, style)
    assert assert_same(text) == 1 + BATCHES
    read = exact_reading(text, CONTEXT)
    assert read.ledger.unread == 0
    left = 1 + BATCHES * (RECORDS - TAKEN * cleaned)
    assert read.facts["records"].num_rows == left
    # A text that may have changed in printing has no hash; one that is the bytes of the record has.
    hashed = left - read.facts["records"]["value_hash"].null_count
    assert hashed == left if kind == "text" else 1 <= hashed < left / 10


def test_of_a_record_line_in_a_header_key_both_readings_are_left_open() -> None:
    """The same lines once more, in the header keys of a record: in the one reading they are records, in the other they are text."""
    small = dump([Batch([Rec(b"k", b"v")] * 2)], Style())
    record_lines = b"\n" + b"\n".join(line for line in small.split(b"\n") if line.startswith(b"| offset: 1 ")) + b"\n"
    records = [Rec(b"k", b"v", ((record_lines, 300),)), *[Rec(b"k", b"v", ((b"source", 8),))] * (RECORDS - 1)]
    text = dump([Batch([Rec(b"first", b"plain")]), Batch(records), Batch([Rec(b"k", b"v")])], Style())
    assert_same(text)
    assert exact_reading(text, CONTEXT).ledger.unread > 0
