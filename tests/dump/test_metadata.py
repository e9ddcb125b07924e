"""Blocks of producer ids in dumps of `__cluster_metadata`: read where the decoder printed one, and of nothing that only looks like one."""

import json
from pathlib import Path

import pytest

from eo_audit.dump.files.identity import parse_path
from eo_audit.dump.parse import FileContext, RangeResult
from tests.support.readers import read

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
PATH = "broker-1/__cluster_metadata-0/00000000000000000000.log.txt"
# As 4.3.1 printed them: three blocks, the second after a restart.
BLOCKS = ((84, 1795446930924, 15, 1000), (583, 1795447177094, 567, 2000), (632, 1795447201242, 567, 3000))


def block(broker: int, epoch: int, next_id: object) -> str:
    data = {"brokerId": broker, "brokerEpoch": epoch, "nextProducerId": next_id}
    return json.dumps({"type": "PRODUCER_IDS_RECORD", "version": 0, "data": data}, separators=(",", ":"))


def dump(*records: tuple[int, int, int, str]) -> bytes:
    """A metadata log with a batch for each record: its offset, its time, the size of its value, its text."""
    lines, position = ["Dumping /d/__cluster_metadata-0/00000000000000000000.log", "Log starting offset: 0"], 0
    for offset, time, size, text in records:
        lines.append(
            f"baseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
            "partitionLeaderEpoch: 1 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
            f"position: {position} CreateTime: {time} size: {68 + size} magic: 2 compresscodec: none crc: 1 isvalid: true"
        )
        lines.append(f"| offset: {offset} CreateTime: {time} keySize: -1 valueSize: {size} sequence: -1 headerKeys: [] payload: {text}")
        position += 68 + size
    return ("\n".join(lines) + "\n").encode()


def facts(text: bytes) -> RangeResult:
    found = read(text, FileContext("c", PATH, 1), fast=True)
    assert found.ledger.total == len(text)
    return found


def blocks(text: bytes) -> list[dict[str, object]]:
    found = facts(text)
    assert found.ledger.unread == 0
    return list(found.facts["producer_id_blocks"].to_pylist()) if "producer_id_blocks" in found.facts else []


def test_blocks_as_a_real_log_has_them() -> None:
    text = dump(*((offset, time, 24, block(1, epoch, next_id)) for offset, time, epoch, next_id in BLOCKS))
    rows = blocks(text)
    columns = ("record_offset", "batch_timestamp_ms", "broker_epoch", "next_producer_id")
    assert [tuple(row[name] for name in columns) for row in rows] == list(BLOCKS)
    # The address is the record's line.
    assert all(text[row["byte_offset"] :][: row["length"]].startswith(b"| offset: %d " % row["record_offset"]) for row in rows)  # type: ignore[index]


@pytest.mark.parametrize("folder", ["/d/__cluster_metadata-0/", "D:\\kafka\\__cluster_metadata-0\\"])
def test_a_snapshot_of_the_metadata_is_read_and_is_no_part_of_its_log(folder: str) -> None:
    record = dump((0, 5, 24, block(1, 15, 1000)))
    for name, is_of_log in ((f"{84:020d}.log", True), (f"{84:020d}-{1:010d}.checkpoint", False)):
        found = facts(record.replace(b"/d/__cluster_metadata-0/00000000000000000000.log", f"{folder}{name}".encode()))
        assert found.ledger.unread == 0 and found.facts["producer_id_blocks"].num_rows == 1
        assert [number is not None for number in found.facts["dump_sections"]["replica_log_id"].to_pylist()] == [is_of_log]


@pytest.mark.parametrize("cluster", ("clean_k39", "clean_tv2"))
def test_real_metadata_logs(cluster: str) -> None:
    (path,) = (DUMPS / cluster).rglob("__cluster_metadata-0/*.log.txt")
    (row,) = blocks(path.read_bytes())
    assert (row["broker_id"], row["next_producer_id"]) == (1, 1000)


NO_BLOCKS = {
    "a setting whose value is a block": (48, json.dumps({"type": "CONFIG_RECORD", "version": 0, "data": {"value": block(1, 2, 3)}})),
    "a value of another size": (25, block(1, 15, 1000)),
    "a number that no field can hold": (24, block(1, 15, 1 << 63)),
    "no number": (24, block(1, 15, "1000")),
    "no object": (24, '{"type":"PRODUCER_IDS_RECORD","version":0,"data":[]}'),
    "no JSON": (24, '{"type":"PRODUCER_IDS_RECORD","version":0,"data":{"brokerId":1}'),
}


@pytest.mark.parametrize("name", NO_BLOCKS)
def test_what_only_looks_like_a_block_is_a_record_and_none(name: str) -> None:
    size, text = NO_BLOCKS[name]
    content = dump((84, 1795446930924, size, text), (85, 1795446930925, 24, block(1, 15, 1000)))
    assert [row["record_offset"] for row in blocks(content)] == [85]


def test_a_file_cut_at_any_byte_balances() -> None:
    whole = dump(*((offset, time, 24, block(1, epoch, next_id)) for offset, time, epoch, next_id in BLOCKS))
    for size in range(len(whole)):
        found = facts(whole[:size])
        assert found.facts["producer_id_blocks"].num_rows < 3 if "producer_id_blocks" in found.facts else True


def a_batch(offset: int, position: int, *, control: str = "", value: str = "") -> str:
    size = 24 if value else 5
    return (
        f"baseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        f"partitionLeaderEpoch: 1 isTransactional: false isControl: {str(bool(control)).lower()} deleteHorizonMs: OptionalLong.empty "
        f"position: {position} CreateTime: 5 size: {80 + size} magic: 2 compresscodec: none crc: 1 isvalid: true\n"
        f"| offset: {offset} CreateTime: 5 keySize: {4 if control else -1} valueSize: {size} sequence: -1 headerKeys: []"
        f"{f' {control}' if control else f' payload: {value}'}\n"
    )


HEADER = 'SnapshotHeader {"version":0,"lastContainedLogTimestamp":1795447201242}'
LEADER = 'LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[{"voterId":1}]}'
WITHOUT_DUMPING = {
    "the line that only snapshots have": ("Snapshot end offset: 84, epoch: 1\n", HEADER, False),
    "that of the first one": ("KRaft bootstrap snapshot\n", "", False),
    "its first record alone": ("", HEADER, False),
    "a segment": ("Log starting offset: 0\n", LEADER, True),
    "a segment without its preamble": ("", LEADER, True),
}


@pytest.mark.parametrize("name", WITHOUT_DUMPING)
def test_a_snapshot_without_its_dumping_line_is_told_by_its_text(name: str) -> None:
    """Also where the file lies in the folder of the log and is called as anybody likes."""
    preamble, control, is_of_log = WITHOUT_DUMPING[name]
    first = a_batch(0, 0, control=control) if control else a_batch(0, 0, value=block(1, 15, 1000))
    text = (preamble + first + a_batch(1, 85 if control else 104, value=block(1, 15, 1000))).encode()
    found = read(text, FileContext("c", PATH, 1, own=parse_path(PATH)), fast=True)
    assert found.ledger.unread == 0 and found.facts["batches"].num_rows == 2
    assert [number is not None for number in found.facts["dump_sections"]["replica_log_id"].to_pylist()] == [is_of_log]
    (section,) = found.facts["dump_sections"]["section_id"].to_pylist()
    assert {number == section for number in found.facts["batches"]["replica_log_id"].to_pylist()} == {not is_of_log}


def test_a_header_of_a_snapshot_further_on_is_of_the_log() -> None:
    """Only the first batch of a file is one: behind others it is whatever it is."""
    text = (a_batch(0, 0, value=block(1, 15, 1000)) + a_batch(1, 104, control=HEADER)).encode()
    found = read(text, FileContext("c", PATH, 1, own=parse_path(PATH)), fast=True)
    assert found.facts["dump_sections"]["replica_log_id"].null_count == 0
