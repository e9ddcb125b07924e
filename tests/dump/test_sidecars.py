"""Sidecars: lines of every release, small files whole, and a ledger that balances wherever a file was cut."""

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from eo_audit.dump.files.identity import ManifestHint, identify, parse_path, replica_log_id
from eo_audit.dump.files.sidecars import CHECKPOINT_KINDS, SidecarFacts, SidecarFile, dump_times, listed_sizes, read_sidecar
from eo_audit.dump.lines.messages import MAX_QUOTE, detail_of, message_of
from eo_audit.dump.lines.sidecars import is_index_line, snapshot_row, txnindex_row
from eo_audit.dump.parse import FileContext, State, parse_range
from eo_audit.store.schemas import schema
from tests.support.yaml_text import read_yaml

HERE = Path(__file__).parent
DUMPS = HERE.parent / "data" / "corpus" / "dumps"
INDEXED = b"version: 0 producerId: 2001 firstOffset: 2 lastOffset: 6 lastStableOffset: 0\n"
KNOWN = (
    b"producerId: 2000 producerEpoch: 4 coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 1795237418081 "
    b"firstSequence: 0 lastSequence: 1 lastOffset: 5 offsetDelta: 1 timestamp: 1795237418081\n"
)
CASES = read_yaml(HERE / "cases" / "sidecar_lines.yaml")


def read(content: bytes, kind: str, path: str = "broker-1/orders-0/leader-epoch-checkpoint") -> SidecarFacts:
    whose = identify("c", manifest=ManifestHint(), dumped_path=None, own=parse_path(path))
    facts = read_sidecar(content, SidecarFile(dump_file_id=7, kind=kind, identity=whose))
    assert sum(facts.bytes_by_owner.values()) == len(content) == facts.section["length"]
    return facts


def spans(facts: SidecarFacts) -> list[tuple[object, object, object]]:
    return [(row["byte_offset"], row["length"], row["reason"]) for row in facts.rows["unread_spans"]]


@pytest.mark.parametrize("case", CASES["snapshot"], ids=lambda case: case["name"])
def test_snapshot_lines(case: dict[str, object]) -> None:
    assert snapshot_row(str(case["line"]).encode()) == case["row"]


@pytest.mark.parametrize("case", CASES["txnindex"], ids=lambda case: case["name"])
def test_aborted_index_lines(case: dict[str, object]) -> None:
    assert txnindex_row(str(case["line"]).encode()) == case["row"]


@pytest.mark.parametrize("case", CASES["index"], ids=lambda case: f"{case['kind']} {case['line']}")
def test_index_lines(case: dict[str, object]) -> None:
    assert is_index_line(str(case["kind"]), str(case["line"]).encode()) is case["is"]


@pytest.mark.parametrize("case", CASES["messages"], ids=lambda case: case["line"][:50])
def test_messages_of_the_tool(case: dict[str, object]) -> None:
    message = message_of(str(case["line"]).encode())
    assert (message and message.text_kind) == case["kind"]
    if message:
        said = (message.severity, message.text, message.path, message.invalid_bytes)
        assert said == (case["severity"], case["line"], case.get("path"), case.get("invalid_bytes"))


def test_messages_go_on() -> None:
    assert detail_of(b"  5 is followed by 7") is not None
    assert detail_of(b"\tat kafka.tools.DumpLogSegments$.main(DumpLogSegments.scala:54)") is not None
    assert detail_of(b"5 is followed by 7") is None


def test_a_long_message_is_quoted_in_part() -> None:
    message = message_of(b'Exception in thread "main" ' + b"x" * 2000)
    assert message is not None
    assert len(message.text) == MAX_QUOTE


def test_real_sidecar_lines_of_every_release_are_understood() -> None:
    rows = 0
    for suffix, reader in ((".snapshot.txt", snapshot_row), (".txnindex.txt", txnindex_row)):
        for path in DUMPS.rglob(f"*{suffix}"):
            lines = [line for line in path.read_bytes().split(b"\n") if line and not line.startswith(b"Dumping ")]
            assert all(reader(line) is not None for line in lines), path
            rows += len(lines)
    assert rows > 1000


def kind_of(path: Path) -> str | None:
    names = {f"{kind}-checkpoint": kind for kind in CHECKPOINT_KINDS} | {"manifest.yaml": "manifest", "listing.txt": "listing"}
    return "tool_messages" if path.name.endswith(".err.txt") else names.get(path.name)


def test_real_small_files_are_understood_and_fit_their_tables() -> None:
    read_kinds: set[str] = set()
    tables: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
    for path in DUMPS.rglob("*"):
        if (kind := kind_of(path)) is None:
            continue
        facts = read(path.read_bytes(), kind, "/".join(path.relative_to(DUMPS).parts[1:]))
        assert facts.bytes_by_owner["unread"] == 0, path
        assert facts.section["end_reason"] == "eof"
        read_kinds.add(kind)
        tables["dump_sections"].append({**facts.section, "ingest_id": "i"})
        for table, rows in facts.rows.items():
            tables[table] += rows
    assert read_kinds == {*CHECKPOINT_KINDS, "manifest", "listing", "tool_messages"}
    assert sorted(tables) == ["checkpoints", "dump_sections", "listed_files", "manifest_entries", "tool_messages"]
    for table, rows in tables.items():
        pa.Table.from_pylist(rows, schema=schema(table).arrow()).validate(full=True)


SMALL_FILES = {
    "replication-offset": b"0\n2\norders 0 12\n__transaction_state 2 3\n",
    "leader-epoch": b"0\n2\n0 0\n3 17\n",
    "listing": b"12 orders-0/00000000000000000000.log\r\n10 orders-0/leader-epoch-checkpoint\r\n",
    "dump_times": b"1795234711701 orders-0/00000000000000000000.log\n1795234711702 orders-1/00000000000000000000.log\n",
    "partition_metadata": b"version: 0\ntopic_id: dNvC-0ZzTqW5ER_sg9Fl2Q",
    "manifest": b'# by hand\ncluster: "c"\ntopics: {"orders": {"cleanup.policy": "compact"}}\n\ndumped_at: 2026-11-21T05:31:00Z\n',
    "tool_messages": b'Picked up JAVA_TOOL_OPTIONS: -D\nException in thread "main" a.b.Error: x\n\tat a.b(c:1)\n\tat a.c(c:2)\nwhat?\n',
}


def test_the_id_of_a_topic_is_its_sections() -> None:
    facts = read(SMALL_FILES["partition_metadata"], "partition_metadata", "broker-1/orders-0/partition.metadata")
    assert {name: facts.section[name] for name in ("topic", "partition", "topic_id")} == {
        "topic": "orders",
        "partition": 0,
        "topic_id": "dNvC-0ZzTqW5ER_sg9Fl2Q",
    }
    assert "topic_id" not in read(b"version: 1\ntopic: x\n", "partition_metadata").section


@pytest.mark.parametrize("kind", SMALL_FILES)
def test_a_file_cut_at_any_byte_balances(kind: str) -> None:
    whole = SMALL_FILES[kind]
    for size in range(len(whole) + 1):
        facts = read(whole[:size], kind)
        ends = [int(row["byte_offset"] or 0) + int(row["length"] or 0) for row in facts.rows["unread_spans"]]
        assert facts.bytes_by_owner["unread"] == sum(int(row["length"] or 0) for row in facts.rows["unread_spans"])
        assert max(ends, default=0) <= size


@pytest.mark.parametrize("kind", SMALL_FILES)
def test_a_file_with_any_byte_changed_balances(kind: str) -> None:
    whole = SMALL_FILES[kind]
    for at in range(len(whole)):
        for byte in (0, 10, 13, 39, 255, whole[at] ^ 1):
            changed = whole[:at] + bytes([byte]) + whole[at + 1 :]
            assert sum(read(changed, kind).bytes_by_owner.values()) == len(whole)


def test_checkpoints_of_a_broker() -> None:
    facts = read(SMALL_FILES["replication-offset"], "replication-offset", "broker-1/replication-offset-checkpoint")
    assert facts.bytes_by_owner == {"preamble": 4, "facts": 36, "tool_messages": 0, "unread": 0}
    assert (facts.section["kind"], facts.section["broker"], facts.section["replica_log_id"]) == ("checkpoint", 1, None)
    assert facts.rows["checkpoints"][1] == {
        "section_id": facts.section["section_id"],
        "byte_offset": 16,
        "length": 24,
        "replica_log_id": replica_log_id("c", 1, "__transaction_state", 2),
        "checkpoint_kind": "replication-offset",
        "cluster": "c",
        "broker": 1,
        "topic": "__transaction_state",
        "partition": 2,
        "offset": 3,
    }


def test_leader_epochs_of_a_partition() -> None:
    rows = read(SMALL_FILES["leader-epoch"], "leader-epoch").rows["checkpoints"]
    assert [(row["topic"], row["partition"], row["leader_epoch"], row["offset"]) for row in rows] == [
        ("orders", 0, 0, 0),
        ("orders", 0, 3, 17),
    ]
    assert {row["replica_log_id"] for row in rows} == {replica_log_id("c", 1, "orders", 0)}


def test_a_cut_number_is_not_believed() -> None:
    facts = read(b"0\n2\norders 0 12\norders 1 34", "replication-offset")
    assert [row["offset"] for row in facts.rows["checkpoints"]] == [12]
    assert spans(facts) == [(16, 11, "truncated_record")]
    assert facts.section["end_reason"] == "truncated"


def test_rows_of_another_version_are_unread() -> None:
    facts = read(b"1\n1\norders 0 12\n", "replication-offset")
    assert not facts.rows["checkpoints"]
    assert spans(facts) == [(0, 16, "unknown_line")]


def test_listing_tells_live_folders_from_others() -> None:
    unique = "0123456789abcdef0123456789abcdef"
    text = f"12 ./orders-0/1.log\n3 orders-0.{unique}-future/1.log\n4 meta.properties\n5 E:\\data\\orders-1\\2.index\nbad\n"
    facts = read(text.encode(), "listing", "broker-1/listing.txt")
    rows = [
        tuple(row[name] for name in ("folder", "file_name", "file_bytes", "topic", "replica_log_id")) for row in facts.rows["listed_files"]
    ]
    assert rows == [
        ("orders-0", "1.log", 12, "orders", replica_log_id("c", 1, "orders", 0)),
        (f"orders-0.{unique}-future", "1.log", 3, "orders", None),
        ("", "meta.properties", 4, None, None),
        ("E:/data/orders-1", "2.index", 5, "orders", replica_log_id("c", 1, "orders", 1)),
    ]
    assert [span[2] for span in spans(facts)] == ["unknown_line"]


def test_dump_times_are_no_sizes() -> None:
    text = b"1795234711701 orders-0/00000000000000000000.log\n1795234711950 orders-0/00000000000000000000.log\n17952347"
    facts = read(text, "dump_times", "broker-1/dumped-at.txt")
    assert facts.section["kind"] == "listing"
    assert [(row["dumped_at_ms"], row.get("file_bytes"), row["replica_log_id"]) for row in facts.rows["listed_files"]] == [
        (1795234711701, None, replica_log_id("c", 1, "orders", 0)),
        (1795234711950, None, replica_log_id("c", 1, "orders", 0)),
    ]
    assert [span[2] for span in spans(facts)] == ["truncated_record"]
    assert dump_times(text) == {"orders-0/00000000000000000000.log": 1795234711950}
    pa.Table.from_pylist(facts.rows["listed_files"], schema=schema("listed_files").arrow()).validate(full=True)


def test_a_message_has_its_stack_with_it() -> None:
    facts = read(SMALL_FILES["tool_messages"], "tool_messages", "broker-1/orders-0/00000000000000000000.log.err.txt")
    assert [(row["text_kind"], row["byte_offset"], row["length"]) for row in facts.rows["tool_messages"]] == [
        ("jvm_warning", 0, 32),
        ("exception", 32, 66),
    ]
    assert spans(facts) == [(98, 6, "unknown_line")]
    assert (facts.section["topic"], facts.section["segment_base_offset"]) == ("orders", 0)


def test_a_manifest_that_is_not_understood_is_unread() -> None:
    facts = read(b"cluster: [\n", "manifest")
    assert spans(facts) == [(0, 11, "bad_manifest")]


def test_manifest_entries_point_at_their_lines() -> None:
    facts = read(SMALL_FILES["manifest"], "manifest")
    assert [(row["name"], row["value"], row["byte_offset"], row["length"]) for row in facts.rows["manifest_entries"]] == [
        ("cluster", "c", 10, 13),
        ("topics.orders.cleanup.policy", "compact", 23, 50),
        ("dumped_at", "2026-11-21T05:31:00+00:00", 74, 32),
    ]
    assert facts.bytes_by_owner == {"preamble": 11, "facts": 95, "tool_messages": 0, "unread": 0}


def test_how_large_what_is_dumped_was() -> None:
    grown = {"t-0/00000000000000000000.log": 100, "t-0/00000000000000000000.txnindex": 68, "t-0/00000000000000000009.snapshot": 56}
    growing = {"t-0/00000000000000000009.log": 50, "t-1/00000000000000000000.log": 60}
    other = {"t-0/00000000000000000000.index": 8, "t-0/leader-epoch-checkpoint": 9}
    lines = [f"{size} {path}\n" for path, size in {**growing, **other, **grown}.items()]
    assert listed_sizes("".join(lines).encode()) == grown


@pytest.mark.parametrize(("kind", "line", "head", "each"), [("txnindex", INDEXED, 0, 34), ("snapshot", KNOWN, 10, 46)])
@pytest.mark.parametrize(
    ("lines", "more_bytes", "ends"), [(2, 0, "eof"), (1, 0, "truncated"), (0, 0, "truncated"), (3, 0, "eof"), (2, 5, "eof")]
)
def test_a_text_with_fewer_entries_than_its_file_is_cut(
    kind: str, line: bytes, head: int, each: int, lines: int, more_bytes: int, ends: str
) -> None:
    """The text of a file of two entries; an index of an odd size is damaged itself."""
    text = b"Dumping /d/orders-0/00000000000000000000.%s\n" % kind.encode() + line * lines
    context = FileContext("c", f"orders-0/00000000000000000000.{kind}.txt", 1, dumped_bytes=head + 2 * each + more_bytes)
    parsed = parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True)
    (section,) = parsed.facts["dump_sections"].to_pylist()
    assert (section["kind"], section["end_reason"]) == (kind, ends)
