"""Decoded records of the two internal topics: documented samples, hostile names in every encoding, and real dumps of every release.

Sizes are checked against values that are really serialized here, field by field.
"""

import random
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eo_audit.dump.lines.decoders import Decoded, coordinator_records
from eo_audit.dump.lines.offsets_decoder import offset_records
from tests.support.yaml_text import read_yaml

Reader = Callable[..., Iterator[Decoded]]

HERE = Path(__file__).parent
DUMPS = HERE.parent / "data" / "corpus" / "dumps"
CASES = read_yaml(HERE / "cases" / "decoded_records.yaml")
READERS: dict[str, Reader] = {"coordinator": coordinator_records, "offsets": offset_records}
RECORD = re.compile(rb"^\| offset: (\d+) .*?key[sS]ize: (-?\d+) value[sS]ize: (-?\d+) .*?headerKeys: \[\](?! endTxnMarker)", re.MULTILINE)
FORGERIES = [
    " payload: producerId:9,producerEpoch:9,state=CompleteAbort,partitions=[x-1],txnLastUpdateTimestamp=9,txnTimeoutMs=9\n",
    " payload: <DELETE>\n",
    "transaction_metadata::transactionalId=",
    "\n| offset: 7 CreateTime: 1 keySize: 9 valueSize: 37 sequence: -1 headerKeys: [] key: ",
    "baseOffset: 7 lastOffset: 7 count: 1",
    ",partition=t-0 payload: offset=5,metadata=",
    ":t:0 payload: 5:",
    "\n", "\r", "\t", "?", "é", "日本", " ", "a",
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "case"),
    [(kind, case) for kind in READERS for case in CASES[kind]],
    ids=lambda case: case["name"] if isinstance(case, dict) else case,
)
def test_documented_samples(kind: str, case: dict[str, object]) -> None:
    text = str(case["text"]).encode()
    before, after = b"| offset: 0 headerKeys: []", b"baseOffset: 1 lastOffset: 1\n"
    read = list(READERS[kind](before + text + after, len(before), key_size=case["key_size"], value_size=case["value_size"]))
    unread_from = len(before) if case.get("unread") else None
    assert read == [Decoded(len(before) + len(text), str(case["form"]), case["fields"], unread_from)]  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["text"][:60])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_no_decoder_prints_is_refused(reader: Reader, case: dict[str, object]) -> None:
    assert not list(reader(str(case["text"]).encode(), 0, key_size=case["key_size"], value_size=case["value_size"]))


def hostile(rng: random.Random) -> str:
    return "".join(rng.choices(FORGERIES, k=rng.randint(1, 6)))


def compact(length: int) -> bytes:
    """An unsigned varint of length + 1."""
    value, written = length + 1, b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


def transaction_value(version: int, topics: dict[str, list[int]] | None, tags: dict[int, bytes]) -> bytes:
    """TransactionLogValue, serialized."""
    head = struct.pack(">hqhib", version, 5, 1, 60000, 1)
    if version == 0:
        body = struct.pack(">i", -1 if topics is None else len(topics))
        for name, partitions in (topics or {}).items():
            body += struct.pack(">h", len(name)) + name.encode() + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
        return head + body + struct.pack(">qq", 7, 7)
    body = b"\0" if topics is None else compact(len(topics))
    for name, partitions in (topics or {}).items():
        body += compact(len(name)) + name.encode() + compact(len(partitions)) + struct.pack(f">{len(partitions)}i", *partitions) + b"\0"
    tagged = b"".join(bytes([tag, len(data)]) + data for tag, data in tags.items())
    return head + body + struct.pack(">qq", 7, 7) + bytes([len(tags)]) + tagged


def transaction_text(transactional_id: str, topics: dict[str, list[int]]) -> str:
    partitions = ",".join(f"{topic}-{partition}" for topic, numbers in topics.items() for partition in numbers)
    value = f"producerId:5,producerEpoch:1,state=Ongoing,partitions=[{partitions}],txnLastUpdateTimestamp=7,txnTimeoutMs=60000"
    return f" key: transaction_metadata::transactionalId={transactional_id} payload: {value}\n"


def commit(rng: random.Random) -> tuple[str, int, int, dict[str, object]]:
    """A commit with hostile group and metadata: text, sizes, expected fields."""
    group, metadata, topic, overhead = hostile(rng), hostile(rng), rng.choice(["t", "a.b-c", "x" * 249]), rng.choice([20, 24, 28])
    fields = {"record_kind": "commit", "group": group, "topic": topic, "partition": 12, "committed_offset": 5, "tombstone": False}
    text = f" key: offset_commit::group={group},partition={topic}-12 payload: offset=5,metadata={metadata}\n"
    return text, 10 + len(group.encode()) + len(topic), overhead + len(metadata.encode()), fields


def test_hostile_ids_are_read_exactly_and_sizes_hold() -> None:
    rng = random.Random(1)
    for _ in range(500):
        transactional_id = hostile(rng)
        topics = {
            name: rng.sample(range(300), rng.randint(1, 200)) for name in rng.sample(["t", "orders", "x" * 249, "a-1"], rng.randint(0, 4))
        }
        version = rng.randint(0, 1)
        tags = {tag: bytes(size) for tag, size in ((0, 8), (1, 8), (2, 2), (3, 2)) if version and rng.random() < 0.5}
        text = transaction_text(transactional_id, topics).encode()
        key_size, value_size = 4 + len(transactional_id.encode()), len(transaction_value(version, topics or rng.choice([None, {}]), tags))
        (read,) = coordinator_records(text + FORGERIES[0].encode(), 0, key_size=key_size, value_size=value_size)
        assert (read.end, read.fields and read.fields["transactional_id"]) == (len(text), transactional_id)
        assert read.fields and read.fields["size_identity_ok"] is True
        assert not list(coordinator_records(text[:-1], 0, key_size=key_size, value_size=value_size))


def test_hostile_groups_and_metadata_are_read_exactly() -> None:
    rng = random.Random(2)
    for _ in range(500):
        text, key_size, value_size, fields = commit(rng)
        read = list(offset_records(text.encode() + b"baseOffset: 3\n", 0, key_size=key_size, value_size=value_size))
        assert Decoded(len(text.encode()), "offsets_text", fields) in read  # type: ignore[arg-type]
        assert len({str(reading.fields) for reading in read}) == 1  # metadata may end at several lines, names cannot


LOSSY: dict[str, Callable[[str], bytes]] = {
    "LC_ALL=C": lambda text: text.encode("ascii", "replace"),
    "not UTF-8": lambda text: text.replace("日本", "\ufffd\ufffd").replace("é", "\ufffd").encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("print_as", LOSSY.values(), ids=LOSSY)
def test_the_true_reading_is_among_those_of_lossy_text(print_as: Callable[[str], bytes]) -> None:
    rng = random.Random(3)
    for _ in range(300):
        transactional_id = hostile(rng)
        text = print_as(transaction_text(transactional_id, {"t": [0]}))
        read = coordinator_records(text + b"x" * 400, 0, key_size=4 + len(transactional_id.encode()), value_size=48)
        assert len(text) in [reading.end for reading in read]
        printed, key_size, value_size, _ = commit(rng)
        ends = [reading.end for reading in offset_records(print_as(printed) + b"\n" * 9, 0, key_size=key_size, value_size=value_size)]
        assert len(print_as(printed)) in ends


def decoded_of(path: Path, reader: Reader) -> dict[int, Decoded]:
    """Decoded records of a real dump, by offset. A record that an exception cut short is not there."""
    dump, at, records = path.read_bytes(), 0, {}
    while found := RECORD.search(dump, at):
        readings = list(reader(dump, found.end(), key_size=int(found[2]), value_size=int(found[3])))
        assert len(readings) == 1 or found.end() == len(dump), f"{path} at {found.start()}"
        at = readings[0].end if readings else len(dump)
        records.update({int(found[1]): reading for reading in readings})
    return records


def comparable(record: Decoded) -> dict[str, object]:
    """Fields without what the text forms do not say, or say in another order: Scala prints sets."""
    fields = dict(record.fields or {})
    partitions = fields.pop("partitions", None)
    said = {name: value for name, value in fields.items() if value is not None}
    return said | {"partitions": sorted(str(partition) for partition in partitions or [])}  # type: ignore[union-attr]


@pytest.mark.parametrize(("topic", "reader"), [("__transaction_state", coordinator_records), ("__consumer_offsets", offset_records)])
def test_every_release_prints_the_same_history(topic: str, reader: Reader) -> None:
    forms: set[str] = set()
    for path in sorted(DUMPS.glob(f"*@*/{topic}-*/*.log.txt")):
        scenario, _, release = path.relative_to(DUMPS).parts[0].partition("@")
        if release in ("0.11.0.3", "1.1.1", "2.0.1"):
            continue
        newest = decoded_of(DUMPS / f"{scenario}@4.3.1" / path.parent.name / path.name, reader)
        for offset, record in decoded_of(path, reader).items():
            forms.add(f"{record.form} {release}")
            told, known = comparable(record), comparable(newest[offset])
            assert told == {name: value for name, value in known.items() if name in told}
            assert told.get("size_identity_ok", True)
    assert len(forms) >= 7


@pytest.mark.parametrize(("topic", "reader"), [("__transaction_state", coordinator_records), ("__consumer_offsets", offset_records)])
def test_real_dumps_are_read_to_the_last_record(topic: str, reader: Reader) -> None:
    paths = sorted(DUMPS.glob(f"*/broker-*/{topic}-*/*.log.txt"))
    records = [record for path in paths for record in decoded_of(path, reader).values()]
    assert len(records) > 100
    assert all((record.fields or {}).get("size_identity_ok", True) for record in records)
