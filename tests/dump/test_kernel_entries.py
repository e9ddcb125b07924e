"""Logs of the coordinators: the fast path reads what the exact reader reads, and takes what a tool prints on most days."""

import random
import re
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.fast.kernel import Stretch
from eo_audit.dump.fast.partitions import read_partitions, unsigned_varint_sizes
from eo_audit.dump.lines.scan import Octets
from eo_audit.dump.parse import FileContext, Section
from tests.support import commit_text, facts
from tests.support.coordinator_text import FORGED_RECORD, FORGED_VALUE, HOSTILE, PATH, Value, random_log, random_value, record
from tests.support.dump_text import RELEASES, Batch, Style, dump
from tests.support.readers import CONTEXT, assert_same, exact_reading

TAKEN = ("2.7", "3.1", "3.2", "3.9", "4.3")  # releases whose decoder the fast path knows: not Scala's sets, nor the superset line of 2.8


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many decoded records the fast path took, stretch by stretch."""
    counts: list[int] = []
    tables_of = kernel_reader.tables_of

    def counted(stretch: Stretch, section: Section, *, base: int, salt: bytes) -> dict[str, pa.Table]:
        tables = tables_of(stretch, section, base=base, salt=salt)
        counts.append(sum(tables[name].num_rows for name in ("coordinator_entries", "offset_commits") if name in tables))
        return tables

    monkeypatch.setattr(kernel_reader, "LEAST_BYTES", 1)
    monkeypatch.setattr(kernel_reader, "tables_of", counted)
    return counts


@cache
def logs() -> list[tuple[bytes, FileContext]]:
    """All logs of the coordinators in the corpus; of one that is the same on several brokers, one dump."""
    files = [
        file for file in facts.corpus_files() if re.search("__transaction_state|__consumer_offsets", file.path) and ".log." in file.path
    ]
    return list({text: (text, facts.context_of(file, text)) for file in files if (text := facts.text_of(file))}.values())


def test_on_the_corpus(stretches: None) -> None:
    assert sum(assert_same(text, context) for text, context in logs()) > 2500


@cache
def generated(release: str) -> list[bytes]:
    """Logs of a release with every kind of id and value: two in a row, the second cut off."""
    rng, texts = random.Random(release), []
    for hostile in (0.0, 0.1, 0.5):
        for plain in (True, False):
            style = Style(release, ascii=not plain and rng.random() < 0.5, crlf=not plain and rng.random() < 0.3)
            text = dump(random_log(rng, 25, style, hostile=hostile), style, path=PATH)
            texts.append(text + text[: rng.randrange(len(text))])
    return texts


@pytest.mark.parametrize("release", RELEASES)
def test_on_generated_logs(release: str, stretches: None) -> None:
    for text in generated(release):
        assert_same(text)


@pytest.mark.parametrize("release", TAKEN)
def test_it_takes_what_is_regular(release: str, taken: list[int]) -> None:
    """Else the tests above would compare the exact reader with itself."""
    style = Style(release)
    text = dump(random_log(random.Random(release), 300, style, hostile=0.0), style, path=PATH)
    assert assert_same(text) == 300
    entries = exact_reading(text, CONTEXT).facts["coordinator_entries"].num_rows
    assert sum(taken) > 0.98 * entries


@cache
def commits(release: str) -> list[bytes]:
    """Logs of offset commits with every kind of group and value: two in a row, the second cut off."""
    rng, texts = random.Random(release), []
    for hostile in (0.0, 0.1, 0.5):
        for plain in (True, False):
            style = Style(release, ascii=not plain and rng.random() < 0.5, crlf=not plain and rng.random() < 0.3)
            text = dump(commit_text.random_log(rng, 25, style, hostile=hostile), style, path=commit_text.PATH)
            texts.append(text + text[: rng.randrange(len(text))])
    return texts


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_on_generated_commits(release: str, stretches: None) -> None:
    for text in commits(release):
        assert_same(text)


def test_it_takes_commits_that_are_regular(taken: list[int]) -> None:
    style = Style()
    text = dump(commit_text.random_log(random.Random(1), 300, style, hostile=0.0), style, path=commit_text.PATH)
    assert assert_same(text) >= 300
    assert sum(taken) > 0.98 * exact_reading(text, CONTEXT).facts["offset_commits"].num_rows


def log(style: Style, names: list[bytes], value: Value | None = None) -> bytes:
    """A log with an entry of each id, between ordinary ones."""
    ordinary = Value(1, 1, (("orders", (0, 1)), ("a-b", (2,))))
    entries = [record(name, found, style) for name in names for found in (value or ordinary, ordinary)]
    around = [record(b"ordinary-%d" % number, ordinary, style) for number in range(8)]
    return dump([Batch([entry]) for entry in (*around, *entries, *around)], style, path=PATH)


@pytest.mark.parametrize("release", ["3.9", "4.3"])
@pytest.mark.parametrize(
    "name", [*HOSTILE, b"a" + FORGED_VALUE + b"\n" + FORGED_RECORD, b"a" * 5000, b"", b"~ !#$%&'()*+,-./:;<=>@[]^_`{|}"]
)
def test_ids_that_lie(name: bytes, release: str, stretches: None) -> None:
    assert assert_same(log(Style(release), [name])) == 18


TEXT_EDITS = [
    (b"producerId:7,", b"producerId:07,"),
    (b"producerId:7,", b"producerId:-7,"),
    (b"producerId:7,", b"producerId:9999999999999999,"),
    (b"producerEpoch:0,", b"producerEpoch:40000,"),
    (b"state=Ongoing", b"state=Strange"),
    (b"state=Ongoing", b"state=Ongoing1"),
    (b"[orders-0", b"[orders-00"),
    (b"[orders-0", b"[orders-1_0"),
    (b"[orders-0", b"[orders--0"),
    (b"[orders-0", b"[-0"),
    (b"[orders-0", b"[orders"),
    (b"[orders-0", b"[or/ders-0"),
    (b"[orders-0", b"[or]ders-0"),
    (b"[orders-0,", b"[orders-0,,"),
    (b"[orders-0,", b"[orders-0, "),
    (b"a-b-2]", b"a-b-2],"),
    (b"a-b-2]", b"orders-2]"),
    (b",txnTimeoutMs=60000", b",txnTimeoutMs=60000 "),
    (b",txnTimeoutMs=60000", b",txnTimeoutMs=6000000000"),
    (b" payload: producerId", b" payload:  producerId"),
    (b"keySize: 6", b"keySize: 5"),
    (b"keySize: 6", b"keySize: 7"),
    (b"keySize: 6", b"keySize: 4"),
    (b"keySize: 6", b"keySize: -1"),
    (b"keySize: 6", b"keySize: 2147483647"),
    (b"valueSize: ", b"valueSize: 1"),
    (b"valueSize: ", b"valueSize: -"),
    (b"sequence: -1", b"sequence: 5"),
    (b"headerKeys: []", b"headerKeys: [a]"),
    (b"transaction_metadata::", b""),
    (b"CreateTime", b"LogAppendTime"),
    (b"CreateTime", b"NoTimestampType"),
]
JSON_EDITS = [
    (b'"type":"0"', b'"type":"1"'),
    (b'"type":"0"', b'"type":0'),
    (b'Id":"id"', b'Id":"i\\u0064"'),
    (b'Id":"id"', b'Id":"i""'),
    (b'Id":"id"}', b'Id":"id","x":1}'),
    (b'"version":"1"', b'"version":"0"'),
    (b'"version":"1"', b'"version":"2"'),
    (b'"producerId":7', b'"producerId":7,"producerId":8'),
    (b'"producerId":7', b'"producerId":7.0'),
    (b'"producerId":7', b'"producerId":-0'),
    (b'"producerId":7', b'"previousProducerId":3,"producerId":7'),
    (b'"producerId":7', b'"producerId":7,"nextProducerId":3,"previousProducerId":3'),
    (b'"producerId":7', b'"producerId":null'),
    (b'"transactionStatus":1', b'"transactionStatus":12'),
    (b'"transactionStatus":1', b'"transactionStatus":"Ongoing"'),
    (b'"transactionStatus":1', b'"transactionStatus":"1"'),
    (b'"transactionStatus":1', b'"transactionStatus":"Odd"'),
    (b'"partitionIds":[0,1]', b'"partitionIds":[]'),
    (b'"partitionIds":[0,1]', b'"partitionIds":[0,01]'),
    (b'"partitionIds":[0,1]', b'"partitionIds":[0,,1]'),
    (b'"partitionIds":[0,1]', b'"partitionIds":[0,[1]]'),
    (b'"partitionIds":[0,1]', b'"partitionIds":[0,1],"x":[{}]'),
    (b'"topic":"orders"', b'"topic":"]}]"'),
    (b'"topic":"orders"', b'"topic":"{"'),
    (b'"topic":"orders"', b'"topic":""'),
    (b'"topic":"orders"', b'"topic":"a","topic":"b"'),
    (b'[{"topic":"orders"', b'[{},{"topic":"orders"'),
    (b'[{"topic":"orders"', b'[ {"topic":"orders"'),
    (b'"transactionPartitions":[', b'"transactionPartitions":null,"x":['),
    (b'"transactionPartitions":[', b'"transactionPartitions":[[],'),
    (b"}}\n", b'},"x":{}}\n'),
    (b"}}\n", b"}} \n"),
    (b"}}\n", b"}}\r\n"),
    (b"}} payload", b"}}  payload"),
]


COMMIT_EDITS = [
    (b'"type":"1"', b'"type":"0"'),
    (b'"type":"1"', b'"type":"2"'),
    (b'"type":"1"', b'"type":"9"'),
    (b'"group":"id"', b'"group":""'),
    (b'"group":"id"', b'"group":"i\\u0064"'),
    (b'"group":"id"', b'"group":"i"d"'),
    (b'"group":"id"', b'"group":null'),
    (b'"topic":"orders"', b'"topic":""'),
    (b'"partition":3', b'"partition":-3'),
    (b'"partition":3', b'"partition":3000000000'),
    (b'"offset":9', b'"offset":-9'),
    (b'"offset":9', b'"offset":null'),
    (b'"offset":9', b'"offset":09'),
    (b'"metadata":"m"', b'"metadata":"m?"'),
    (b'"metadata":"m"', b'"metadata":"m","metadata":"n"'),
    (b'"metadata":"m"', b'"metadata":"m"",'),
    (b'"commitTimestamp":5', b'"commitTimestamp":-1'),
    (b'"commitTimestamp":5', b'"commitTimestamp":5,"topicId":"a b"'),
    (b'"commitTimestamp":5', b'"commitTimestamp":5,"topicId":"a'),
    (b'"commitTimestamp":5', b'"commitTimestamp":5,"expireTimestamp":6'),
    (b"}}\n", b'},"x":[}}\n'),
    (b"}}\n", b"}} }\n"),
    (b"valueSize: ", b"valueSize: -"),
    (b"keySize: ", b"keySize: -"),
    (b"keySize: ", b"keySize: 9"),
    (b" payload: ", b" payload: <DELETE>\n"),
]


@pytest.mark.parametrize(("old", "new"), COMMIT_EDITS)
def test_commits_of_another_form(old: bytes, new: bytes, stretches: None) -> None:
    style = Style()
    fields: dict[str, object] = {"offset": 9, "leaderEpoch": 0, "metadata": "m", "commitTimestamp": 5}
    around = [commit_text.commit(b"g%d" % number, "orders", number, fields, style) for number in range(6)]
    for value in (fields, None):
        middle = commit_text.commit(b"id", "orders", 3, value, style)
        text = dump([Batch([one]) for one in (*around, middle, *around)], style, path=commit_text.PATH)
        begin = text.index(b"| offset: 6 ")
        line, behind = text[begin:].split(b"\n", 1)
        assert value is None or old in line + b"\n"
        assert_same(text[:begin] + (line + b"\n").replace(old, new, 1) + behind)


@pytest.mark.parametrize(("old", "new"), TEXT_EDITS)
def test_text_of_another_form(old: bytes, new: bytes, stretches: None) -> None:
    assert_edited("3.9", old, new)


@pytest.mark.parametrize(("old", "new"), [*JSON_EDITS, *TEXT_EDITS[20:29]])
def test_json_of_another_form(old: bytes, new: bytes, stretches: None) -> None:
    assert_edited("4.3", old, new)


def assert_edited(release: str, old: bytes, new: bytes) -> None:
    """One entry in the middle prints something else, then a tombstone in its place does."""
    for value in (Value(1, 1, (("orders", (0, 1)), ("a-b", (2,)))), None):
        style = Style(release)
        names = [record(b"before-%d" % number, random_value(random.Random(number)), style) for number in range(6)]
        text = dump([Batch([one]) for one in (*names, record(b"id", value, style), *names)], style, path=PATH)
        begin = text.index(b"| offset: 6 ")
        line, behind = text[begin:].split(b"\n", 1)
        if value is not None:
            assert old in line + b"\n"
        assert_same(text[:begin] + (line + b"\n").replace(old, new, 1) + behind)


# lists of partitions


@pytest.mark.parametrize("json", [True, False])
def test_partitions(json: bool) -> None:
    rng = random.Random(4)
    lists = [found for _ in range(200) if (found := random_value(rng).partitions)]
    style = Style("4.3" if json else "3.9")
    texts = []
    for found in lists:
        line = (record(b"a", Value(1, 1, found), style).decoded[-1][0]).decode()
        begin = line.index("ions") + len('ions":[' if json else "ions=[")
        texts.append(line[begin : line.index("]}]" if json else "]", begin) + (3 if json else 1)].encode())
    ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    read = read_partitions(Octets(b" ".join(texts), 0, 1 << 20), ends - [len(text) for text in texts], ends, json=json)
    assert read.ok.all() and read.topics.tolist() == [len(found) for found in lists]
    for place, found in enumerate(lists):
        some = slice(int(read.first[place]), int(read.first[place] + read.count[place]))
        names = read.names.to_pylist()
        printed = [(names[topic], number) for topic, number in zip(read.topic[some].tolist(), read.number[some].tolist(), strict=True)]
        assert printed == [(topic, number) for topic, numbers in found for number in numbers]
        assert read.size_v0[place] == Value(0, 1, found).size - 37 and read.size_v1[place] == Value(1, 1, found).size - 35


def test_no_partitions() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    for json in (True, False):
        assert len(read_partitions(Octets(b"", 0, 0), nothing, nothing, json=json).ok) == 0


def test_unsigned_varints() -> None:
    values = [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28, 2**31]
    assert unsigned_varint_sizes(np.array(values)).tolist() == [1, 1, 1, 2, 2, 3, 3, 4, 5, 5]
