"""One record of somebody else's tries to hide a hanging transaction: nothing is invented, and what cannot be judged says so."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eo_audit.rules.reasons import REASONS
from tests.support.together import Part, Together

DUMPS = Path(__file__).parents[1] / "data/corpus/dumps/hanging_txn_k39"
LOG = "broker-1/orders-0/00000000000000000000.log.txt"
SIZE = 1828  # bytes of that segment, as the listing has it
MS = 1795235111390


def line(offset: int, position: int, size: int, *, producer: int, control: bool, codec: str = "none") -> str:
    """A batch line of one record."""
    sequence = -1 if control else 2
    return (
        f"baseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: {sequence} lastSequence: {sequence} producerId: {producer} "
        f"producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: true isControl: {str(control).lower()} "
        f"deleteHorizonMs: OptionalLong.empty position: {position} CreateTime: {MS} size: {size} magic: 2 compresscodec: {codec} "
        "crc: 1234567 isvalid: true\n"
    )


def marker(offset: int, position: int, kind: str, *, producer: int) -> str:
    """A marker with its batch."""
    head = f"| offset: {offset} CreateTime: {MS} keySize: 4 valueSize: 6 sequence: -1 headerKeys: []"
    return line(offset, position, 78, producer=producer, control=True) + f"{head} endTxnMarker: {kind} coordinatorEpoch: 0"


def moved(lines: list[str], by: int) -> list[str]:
    """Batch lines at later positions."""
    return [re.sub(r" position: (\d+) ", lambda at: f" position: {int(at[1]) + by} ", text) for text in lines]


def hidden_by_a_value(lines: list[str]) -> tuple[list[str], int]:
    """The value of offset 12 is 400 bytes that are no text and then an ABORT of the hanging transaction, at the next position."""
    record = next(number for number, text in enumerate(lines) if text.startswith("| offset: 12 "))
    batch = max(number for number in range(record) if lines[number].startswith("baseOffset: "))
    old = int(re.findall(r"valueSize: (\d+)", lines[record])[0])
    position, size = (int(re.findall(rf" {name}: (\d+) ", lines[batch])[0]) for name in ("position", "size"))
    grow, value = 0, ""
    for _ in range(6):
        value = "\ufffd" * 400 + "\n" + marker(13, position + size + grow, "ABORT", producer=1)
        grow = len(value) - old + 2
    head = lines[record].partition(" payload: ")[0].replace(f"valueSize: {old} ", f"valueSize: {old + grow - 2} ")
    changed = [*lines[:batch], lines[batch].replace(f" size: {size} ", f" size: {size + grow} "), *lines[batch + 1 : record]]
    return [*changed, f"{head} payload: {value}", *moved(lines[record + 1 :], grow)], grow


def hidden_by_a_header_key(lines: list[str]) -> tuple[list[str], int]:
    """A header key of offset 9 holds the rest of its record, two markers, and a batch whose value swallows the genuine markers."""
    first = next(number for number, text in enumerate(lines) if text.startswith("baseOffset: 9 "))
    last = next(number for number, text in enumerate(lines) if text.startswith("baseOffset: 13 "))
    head, data = lines[first + 1].split("headerKeys: []")
    grow, key = 0, ""
    for _ in range(6):
        tail = moved(lines[first + 2 :], grow)
        position = int(re.findall(r" position: (\d+) ", tail[0])[0])
        end = int(re.findall(r" position: (\d+) ", tail[last - first - 2])[0])
        swallowed = f"]{data}\n" + "\n".join(tail[: last - first - 2])
        forged = line(12, position + 156, end - position - 156, producer=0, control=False, codec="lz4")
        forged += f"| offset: 12 CreateTime: {MS} keySize: -1 valueSize: {len(swallowed.encode())} sequence: 2 headerKeys: [] payload: "
        markers = (marker(10, position, "COMMIT", producer=2), marker(11, position + 78, "ABORT", producer=1))
        key = f"trace]{data}\n" + "\n".join(markers) + f"\n{forged}"
        grow = len(key.encode()) + 5
    size = int(re.findall(r" size: (\d+) ", lines[first])[0])
    record = [lines[first].replace(f" size: {size} ", f" size: {size + grow} "), f"{head}headerKeys: [{key}]{data}"]
    return [*lines[:first], *record, *moved(lines[first + 2 :], grow)], grow


FORGED: dict[str, Callable[[list[str]], tuple[list[str], int]]] = {
    "by-a-value": hidden_by_a_value,
    "by-a-header-key": hidden_by_a_header_key,
}


def dumps_of_tests(root: Path) -> Part:
    """The forged dumps, each a cluster of its own."""
    for cluster, hidden in FORGED.items():
        dumps = shutil.copytree(DUMPS, root / cluster)
        manifest = dumps / "manifest.yaml"
        manifest.write_text(re.sub(r"^cluster: .*$", f"cluster: {cluster}", manifest.read_text(), flags=re.MULTILINE))
        lines, grow = hidden((dumps / LOG).read_text().split("\n"))
        (dumps / LOG).write_text("\n".join(lines))
        listing = dumps / "broker-1/listing.txt"
        listing.write_text(listing.read_text().replace(f"{SIZE} orders-0/", f"{SIZE + grow} orders-0/"))
    return Part([root / cluster for cluster in FORGED])


@pytest.mark.parametrize("cluster", FORGED)
def test_no_record_hides_a_hanging_transaction(one_audit: Together, cluster: str) -> None:
    found = {
        (row["rule"], row["partition"]) for row in one_audit.results.findings if row["severity"] != "info" and row["cluster"] == cluster
    }
    assert ("T01", 1) in found
    assert {rule for rule, _ in found} <= {"T01", "T02", "T07", "L01"}
    doubted = one_audit.results.rows("coverage", cluster=cluster, reason="unread text: ambiguous")
    assert {(row["topic"], row["partition"]) for row in doubted} == {("orders", 0)}


@pytest.mark.parametrize("cluster", FORGED)
def test_what_cannot_be_judged_for_a_forgery_says_so(one_audit: Together, cluster: str) -> None:
    unknown = {(why, place) for code, why, place in one_audit.said[cluster].unknowns if code == "T01"}
    assert unknown == {("ambiguous", f"{cluster}: orders-0 (broker 1)")}
    bring = REASONS["ambiguous"].bring
    assert "again without --print-data-log" in bring and "with --print-data-log" not in bring
