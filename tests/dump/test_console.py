"""What console consumers print of Kafka's own topics: recognised by its text, read where it proves its records, every byte with an owner.

The texts `console-*.txt` below `cases/live` are the beginnings of what the tools of those releases printed of real brokers: ids and groups
with a comma, a blank, letters beyond ASCII and a line feed.
"""

import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from eo_audit.dump.files.console_records import read_block
from eo_audit.dump.files.discovery import look_through
from eo_audit.dump.files.recognised import printed_by
from eo_audit.dump.lines.columns import Rows, fact_tables
from eo_audit.dump.lines.console import GROUPS, HEADS, JSON, LONGEST_NAME, OFFSETS, TRANSACTIONS
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from eo_audit.dump.ranges import Range, Text, read_range

LIVE = Path(__file__).parent / "cases" / "live"
CONSOLES = sorted(path.relative_to(LIVE).as_posix() for path in LIVE.glob("*/console-*.txt"))
Row = dict[str, object]


def result_of(content: bytes, formatter: str | None = None) -> RangeResult:
    kind = formatter or printed_by(content)
    assert kind in HEADS
    context = FileContext("c", "console.txt", 7, kind_hint=str(kind))
    read = parse_range(content, context=context, base=0, start=0, stop=len(content), state=State.initial(), final=True)
    assert read.end_byte == len(content) == read.ledger.total
    for table in read.facts.values():
        table.validate(full=True)
    return read


def rows_of(content: bytes, formatter: str | None = None, table: str = "console_records") -> list[Row]:
    facts = result_of(content, formatter).facts
    return list(facts[table].to_pylist()) if table in facts else []


def told(row: Row) -> Row:
    """A row without its address and without what it does not say."""
    return {
        name: value for name, value in row.items() if value is not None and name not in ("section_id", "byte_offset", "length", "cluster")
    }


def unread(content: bytes, formatter: str | None = None) -> list[tuple[str, bytes]]:
    spans = rows_of(content, formatter, "unread_spans")
    return [(str(row["reason"]), content[row["byte_offset"] :][: row["length"]]) for row in spans]  # type: ignore[misc]


def state(name: str, status: str = "Ongoing", partitions: str = "HashSet(orders-0)", start: int = 5) -> bytes:
    """A record as `TransactionLogMessageFormatter` prints it up to 3.9."""
    return (
        f"{name}::TransactionMetadata(transactionalId={name}, producerId=7, producerEpoch=2, txnTimeoutMs=60000, state={status}, "
        f"pendingState=None, topicPartitions={partitions}, txnStartTimestamp={start}, txnLastUpdateTimestamp=9)\n"
    ).encode()


def commit(group: str, offset: int = 3, metadata: str = "", topic: str = "orders") -> bytes:
    """A record as `OffsetsMessageFormatter` prints it from 2.1 to 3.9."""
    value = f"offset={offset}, leaderEpoch=Optional[0], metadata={metadata}, commitTimestamp=8, expireTimestamp=None"
    return f"[{group},{topic},0]::OffsetAndMetadata({value})\n".encode()


def entry(name: str, status: str = "1", key: str = "type") -> bytes:
    """A record as `tools.consumer.TransactionLogMessageFormatter` prints it."""
    data = (
        f'{{"producerId":7,"producerEpoch":2,"transactionTimeoutMs":60000,"transactionStatus":{status},"transactionPartitions":'
        '[{"topic":"orders","partitionIds":[0,1]}],"transactionLastUpdateTimestampMs":9,"transactionStartTimestampMs":5}'
    )
    return f'{{"key":{{"{key}":0,"data":{{"transactionalId":"{name}"}}}},"value":{{"version":1,"data":{data}}}}}'.encode()


OF_TRANSACTION = {"record_kind": "transaction", "tombstone": False, "producer_id": 7, "producer_epoch": 2, "timeout_ms": 60000}
ORDERS = [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]
TIMES = {"start_ms": 5, "last_update_ms": 9}
OF_COMMIT = {"record_kind": "commit", "tombstone": False, "topic": "orders", "partition": 0}
COMMIT_KEY = '{"key":{"type":1,"data":{"group":"g","topic":"orders","partition":0}},"value":'
# Formatter, text, and what must be told of it: every form of every release.
FORMS: dict[str, tuple[str, bytes, list[Row]]] = {
    "transaction": (
        TRANSACTIONS,
        state("x", partitions="Set(orders-0, orders-1)"),
        [OF_TRANSACTION | TIMES | {"transactional_id": "x", "status": "Ongoing", "partitions": ORDERS}],
    ),
    "transaction none begun": (
        TRANSACTIONS,
        state("a::b, c", "Empty", "HashSet()", start=-1),
        [OF_TRANSACTION | TIMES | {"transactional_id": "a::b, c", "status": "Empty", "partitions": [], "start_ms": -1}],
    ),
    "transaction that looks like an object": (
        TRANSACTIONS,
        state(entry("x").decode(), "Empty", "Set()"),
        [OF_TRANSACTION | TIMES | {"transactional_id": entry("x").decode(), "status": "Empty", "partitions": []}],
    ),
    "transaction with a line feed": (
        TRANSACTIONS,
        state("nl\nid", "CompleteCommit", "Set()"),
        [OF_TRANSACTION | TIMES | {"transactional_id": "nl\nid", "status": "CompleteCommit", "partitions": []}],
    ),
    "tombstone of an id": (
        TRANSACTIONS,
        state("x", "CompleteAbort", "Set()") + b"[x,y,0]::NULL\n",
        [
            OF_TRANSACTION | TIMES | {"transactional_id": "x", "status": "CompleteAbort", "partitions": []},
            {"record_kind": "transaction", "tombstone": True, "transactional_id": "[x,y,0]"},
        ],
    ),
    "unknown key": (TRANSACTIONS, b"unknown::version=7\n", [{"record_kind": "other", "tombstone": False}]),
    "commit": (OFFSETS, commit("a,b]"), [OF_COMMIT | {"group": "a,b]", "committed_offset": 3, "commit_timestamp_ms": 8}]),
    "commit with metadata": (
        OFFSETS,
        commit("a\nb", metadata="1, 2]\n)"),
        [OF_COMMIT | {"group": "a\nb", "committed_offset": 3, "commit_timestamp_ms": 8}],
    ),
    "commit up to 2.0": (
        OFFSETS,
        b"[g,orders,0]::[OffsetMetadata[176955,NO_METADATA],CommitTime 1522069325297,ExpirationTime 1522155725297]\n",
        [OF_COMMIT | {"group": "g", "committed_offset": 176955, "commit_timestamp_ms": 1522069325297}],
    ),
    "tombstone of a commit": (OFFSETS, b"[g,orders,0]::NULL\n", [OF_COMMIT | {"tombstone": True, "group": "g"}]),
    "group": (
        GROUPS,
        b"g::GroupMetadata(groupId=g, generation=1, protocolType=Some(consumer), currentState=Stable, members=Map())\nh::NULL\n",
        [
            {"record_kind": "group_metadata", "tombstone": False, "group": "g"},
            {"record_kind": "group_metadata", "tombstone": True, "group": "h"},
        ],
    ),
    "json transactions": (
        JSON,
        entry("x") + entry("nl\\nid", '"PrepareAbort"'),
        [
            OF_TRANSACTION | TIMES | {"transactional_id": "x", "value_version": 1, "status": "Ongoing", "partitions": ORDERS},
            OF_TRANSACTION | TIMES | {"transactional_id": "nl\nid", "value_version": 1, "status": "PrepareAbort", "partitions": ORDERS},
        ],
    ),
    "json of 3.9": (
        JSON,
        entry("ż", key="version")
        + b'{"key":{"version":3,"data":"unknown"},"value":{"version":0,"data":{"offset":1}}}{"key":null,"value":null}',
        [
            OF_TRANSACTION | TIMES | {"transactional_id": "ż", "value_version": 1, "status": "Ongoing", "partitions": ORDERS},
            {"record_kind": "other", "tombstone": False},
            {"record_kind": "other", "tombstone": True},
        ],
    ),
    "json tombstones": (
        JSON,
        b'{"key":{"type":0,"data":{"transactionalId":"x"}},"value":null}' + f"{COMMIT_KEY}null}}".encode(),
        [{"record_kind": "transaction", "tombstone": True, "transactional_id": "x"}, OF_COMMIT | {"tombstone": True, "group": "g"}],
    ),
    "json commit": (
        JSON,
        f'{COMMIT_KEY}{{"version":4,"data":{{"offset":3,"leaderEpoch":-1,"metadata":"{{\\"key\\":","commitTimestamp":8}}}}}}'.encode(),
        [OF_COMMIT | {"group": "g", "committed_offset": 3, "commit_timestamp_ms": 8}],
    ),
    "json of a value that the tool does not know": (
        JSON,
        b'{"key":{"type":0,"data":{"transactionalId":"x"}},"value":{"version":9,"data":"unknown"}}',
        [{"record_kind": "other", "tombstone": False, "transactional_id": "x"}],
    ),
}


@pytest.mark.parametrize("line_end", (b"\n", b"\r\n"))
@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_read(name: str, line_end: bytes) -> None:
    formatter, content, rows = FORMS[name]
    # A terminal makes CRLF of all line feeds, of those in names too.
    wanted = [
        {key: value.replace("\n", line_end.decode()) if isinstance(value, str) else value for key, value in row.items()} for row in rows
    ]
    if formatter == JSON:
        wanted = rows
    content = content.replace(b"\n", line_end)
    assert [told(row) for row in rows_of(content, formatter)] == wanted and unread(content, formatter) == []


@pytest.mark.parametrize("name", FORMS.keys() - {"unknown key"})
def test_each_form_is_recognised(name: str) -> None:
    formatter, content, _ = FORMS[name]
    for before in (
        b"",
        b"\xef\xbb\xbf",
        b"Option --consumer.config is deprecated and will be removed in a future version. Use --command-config instead.\n",
    ):
        assert printed_by(before + content) == formatter
        assert len(rows_of(before + content)) == len(rows_of(content)) and not unread(before + content)


@pytest.mark.parametrize("name", CONSOLES)
def test_real_texts_are_read_up_to_where_they_are_cut(name: str, tmp_path: Path) -> None:
    # Under the name of a segment, too: the text tells.
    file = tmp_path / "broker-1" / "orders-0" / "00000000000000000000.log.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(content := (LIVE / name).read_bytes())
    (found,) = look_through([file]).files
    kind = "transaction" if "-txn" in name else "commit" if "-offsets" in name else "group_metadata"
    rows = rows_of(content, found.kind_hint)
    assert {row["record_kind"] for row in rows} == {kind} and len(rows) >= 3
    assert [reason for reason, _ in unread(content)] == ["truncated_record"]
    (section,) = rows_of(content, None, "dump_sections")
    assert (section["kind"], section["topic"], section["end_reason"]) == ("console_records", None, "truncated")


def test_old_and_new_formatters_tell_the_same() -> None:
    forms = ("txn", "offsets")
    for old, new in ((rows_of((LIVE / "3.9.1" / f"console-{one}{form}.txt").read_bytes()) for form in ("-old", "")) for one in forms):
        both = [(told(a), told(b)) for a, b in zip(old, new, strict=False)]
        assert len(both) >= 4
        for a, b in both:
            # The text form prints no version, and an empty set where the value holds no list.
            assert {k: v for k, v in a.items() if v != []} == {k: v for k, v in b.items() if k != "value_version" and v != []}


MESSAGES = (b"Processed a total of 5 messages", b"^CProcessed a total of 5 messages", b"[2026-11-24 10:00:00,123] WARN x (org.x)")


@pytest.mark.parametrize("said", MESSAGES)
def test_what_the_tool_says_beside_its_records(said: bytes) -> None:
    for content in (state("x") + said + b"\n" + state("y") + said, entry("x") + said + b"\n" + entry("y") + said):
        assert len(rows_of(content)) == 2 and len(rows_of(content, None, "tool_messages")) == 2 and not unread(content)


def test_a_record_inside_a_name_is_not_believed() -> None:
    for forged in (state("victim", "CompleteCommit"), commit("victim", 999)):
        inner = forged.decode()
        for content in (state(f"a\n{inner}b"), commit(f"a\n{inner}b"), commit("g", metadata=f"a\n{inner}b")):
            for cut in (content, content[3:], content[: content.index(b"victim")] + content):
                rows = rows_of(state("before") + cut + state("behind"), TRANSACTIONS)
                assert "victim" not in {row[name] for row in rows for name in ("transactional_id", "group")}
                assert rows[-1]["transactional_id"] == "behind"
    escaped = entry("a" + entry("victim").decode().replace('"', '\\"') + "b")
    assert [row["transactional_id"] for row in rows_of(escaped[1:] + escaped, JSON)] != ["victim"]
    assert "victim" not in {row["transactional_id"] for row in rows_of(escaped[1:] + escaped, JSON)}


def test_only_names_that_hold_line_feeds_cast_doubt_and_not_far() -> None:
    many = b"".join(state(f"id-{number}") for number in range(2 * LONGEST_NAME // 200))
    broken = b"x::TransactionMetadata(transactionalId=y\n"
    assert len(rows_of(many + broken + many)) == 2 * many.count(b"\n")
    few = state("x") * 3
    assert {reason for reason, _ in unread(few + broken + few)} == {"ambiguous", "unknown_line"} and len(rows_of(few + broken + few)) == 3
    # A line that is nobody's piece, such as a prompt, costs nothing.
    assert len(rows_of(few + b"$ kafka-console-consumer.sh\n" + few)) == 6


def test_the_last_line_of_a_name_is_no_tombstone() -> None:
    assert [row["transactional_id"] for row in rows_of(state("x") + b"a\nx::NULL\n" + state("y"))] == ["x", "y"]


REFUSED = {
    "a number that no field holds": state("x").replace(b"producerEpoch=2", b"producerEpoch=40000"),
    "other names before and behind": state("x").replace(b"Id=x", b"Id=y"),
    "a partition without its number": state("x").replace(b"orders-0", b"orders"),
    "json that is none": entry("x").replace(b'"producerId":7', b'"producerId":'),
    "json of another kind": entry("x").replace(b'"producerId":7', b'"producerId":"7"'),
    "a tombstone of a piece": b"x::TransactionMetadata(transactionalId=y::NULL\n",
    "a commit without its offset": commit("g").replace(b"offset=3", b"offset="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_record_is_unread_and_the_rest_is_read(name: str) -> None:
    bad = REFUSED[name]
    good, line_end = (entry("y"), b"") if bad.startswith(b"{") else (commit("y"), b"") if bad.startswith(b"[") else (state("y"), b"")
    content = bad + line_end + good
    assert len(rows_of(content)) == 1 and unread(content) == [("unknown_line", bad)]


def test_a_dump_behind_the_records_is_of_another_tool() -> None:
    behind = b"Dumping /d/orders-0/00000000000000000000.log\nLog starting offset: 0\n"
    # A payload of it may hold anything, and a record, too.
    behind += b"| offset: 0 payload: \n" + state("victim")
    assert unread(state("x") + behind) == [("another_tool", behind)]
    # And what a dump holds is of the dump.
    assert printed_by(behind + state("x")) == "text"


def cut_everywhere(content: bytes) -> list[int]:
    return [len(rows_of(content[:size], str(printed_by(content)))) for size in range(len(content) + 1)]


@pytest.mark.parametrize("name", ("2.8.2/console-txn.txt", "4.3.1/console-txn.txt", "3.9.1/console-offsets-old.txt"))
def test_a_file_cut_at_any_byte_balances_and_tells_no_more(name: str) -> None:
    numbers = cut_everywhere((LIVE / name).read_bytes()[:900])
    assert numbers == sorted(numbers) and numbers[0] == 0 and numbers[-1] >= 2


@pytest.mark.parametrize("one", (state("pay\nments"), commit("g\nh", metadata="m"), entry("x"), entry("x") + b"\n"))
def test_blocks_tell_what_the_whole_file_tells(one: bytes) -> None:
    content = one * (600_000 // len(one))
    kind = str(printed_by(content))
    at, base, found = 0, 0, 0
    while at < len(content):
        stop = min(at + 50_000, len(content))
        window = content[at : stop + (400 << 10)]
        elements = read_block(window, 0, stop - at, final=at + len(window) == len(content), formatter=kind)
        assert elements and elements[0].at == 0
        found += sum(element.owner == "facts" for element in elements)
        at, base = at + elements[-1].end, at
        assert at > base
    assert found == len(rows_of(content)) == content.count(one)


def test_damaged_texts_balance_and_raise_nothing() -> None:
    chance = random.Random(7)
    texts = [content for _, content, _ in FORMS.values()] + [(LIVE / name).read_bytes() for name in CONSOLES]
    for _ in range(400):
        content = b"".join(chance.choice(texts) for _ in range(3))
        for _ in range(chance.randrange(4)):
            begin, length = chance.randrange(len(content)), chance.randrange(40)
            content = content[:begin] + chance.choice(texts)[: chance.randrange(90)] + content[begin + length :]
        whole = result_of(content, chance.choice(sorted(HEADS)))
        assert whole.ledger.total == len(content)


@pytest.mark.parametrize("one", (state("pay\nments"), entry("x")))
def test_large_files_are_read_in_blocks(one: bytes, tmp_path: Path) -> None:
    file, content = tmp_path / "console.txt", one * ((5 << 20) // len(one)) + b"Dumping /d\n" + one * ((4 << 20) // len(one))
    file.write_bytes(content)
    found: defaultdict[str, list[Row]] = defaultdict(list)

    def sink(facts: Mapping[str, Rows | pa.Table]) -> None:
        for name, table in fact_tables(facts).items():
            found[name] += table.to_pylist()

    context = FileContext("c", "console.txt", 7, kind_hint=str(printed_by(content)))
    read = read_range(Text(file), Range(0, len(content)), size=len(content), context=context, sink=sink)
    assert len(found["console_records"]) == (5 << 20) // len(one) and read.ledger.total == len(content) == read.end_byte
    assert [row["length"] for row in found["dump_sections"]] == [len(content)]
    assert {row["reason"] for row in found["unread_spans"]} == {"another_tool"}
    assert read.ledger.unread == content.count(one, content.index(b"Dumping")) * len(one) + len(b"Dumping /d\n")


def test_an_object_longer_than_the_text_at_hand_waits_for_more() -> None:
    content = entry("x" * 300_000)
    assert read_block(content[:290_000], 0, 10, final=False, formatter=JSON) == []
    assert [element.owner for element in read_block(content, 0, 10, final=True, formatter=JSON)] == ["facts"]
