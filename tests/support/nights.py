"""Dumps of one broker as they would have been made on several nights: the text of a real one, cut by time, rolled, its head deleted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

CLEAN = Path(__file__).parents[2] / "examples" / "clean" / "dumps"
_GROUP = re.compile(rb"^baseOffset: .*\n(?:\| .*\n)*", re.MULTILINE)
_BASE = re.compile(rb"baseOffset: (\d+) lastOffset: (\d+)")
_CLOCK = re.compile(rb"position: (\d+) CreateTime: (\d+) size: (\d+)")
_LED = re.compile(rb"(partitionLeaderEpoch: )\d+")
_CRC = re.compile(rb"( crc: )\d+")
_ENTRY = re.compile(rb"^version: .* lastOffset: (\d+) .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Night:
    """One night's dump.

    Attributes:
        at_ms: what a broker had written by then is in it.
        bases: base offsets of the segments that a log had then, by partition (`orders-0`); the others have one from 0 on.
        says_when: the manifest says when it was made.
        listed: there is a listing.txt.
        log_start: what the log-start-offset-checkpoint says, by partition.
        without: segments that were there and were not dumped, by partition.
        hw: what the replication-offset-checkpoint says, by partition.
        led_anew_from: from this offset on another leader has written the batches, by partition.
        is_timed: dumped-at.txt says of each file when it was dumped, which was some seconds after the collection began.
        topic_id: what the partition.metadata of all partitions says.
        removed: logs that the broker had no longer, by partition.
        ends: the log had nothing from this offset on, by partition.
        cleaned: what the cleaner-offset-checkpoint says, by partition: these logs are compacted, too.
        is_anew: all topics were deleted and created anew since the real dump: other batches at the same offsets.
    """

    at_ms: int
    bases: Mapping[str, Sequence[int]]
    says_when: bool = True
    listed: bool = False
    log_start: Mapping[str, int] | None = None
    without: Mapping[str, Sequence[int]] | None = None
    hw: Mapping[str, int] | None = None
    led_anew_from: Mapping[str, int] | None = None
    is_timed: bool = False
    topic_id: str | None = None
    removed: Sequence[str] = ()
    ends: Mapping[str, int] | None = None
    cleaned: Mapping[str, int] | None = None
    is_anew: bool = False


def make(night: Night, folder: Path, *, cluster: str) -> Path:
    """Write a night's dump of the clean example's broker into a folder, and return it."""
    manifest = (CLEAN / "manifest.yaml").read_text()
    said = f"dumped_at: {night.at_ms}" if night.says_when else ""
    broker = folder / "broker-1"
    broker.mkdir(parents=True)
    for name, line in (("dumped_at", said), ("cluster", f"cluster: {cluster}")):
        manifest = re.sub(f"^{name}: .*$", line, manifest, flags=re.MULTILINE)
    (folder / "manifest.yaml").write_text(manifest)
    listing, times = ["90 /d/meta.properties"], []
    for log in sorted(path for path in (CLEAN / "broker-1").iterdir() if path.is_dir()):
        if log.name in ("__cluster_metadata-0", *night.removed):
            continue
        missing = (night.without or {}).get(log.name, ())
        for base, segment, index in _segments(log, night):
            listing += [f"{size} /d/{log.name}/{base:020}.{kind}" for kind, size in (("log", 100), ("txnindex", 3 * 34))]
            if base not in missing:
                (broker / log.name).mkdir(exist_ok=True)
                (broker / log.name / f"{base:020}.log.txt").write_bytes(segment)
                (broker / log.name / f"{base:020}.txnindex.txt").write_bytes(index)
                times += [f"{night.at_ms + 3_000} {log.name}/{base:020}.{kind}" for kind in ("log", "txnindex")]
        if night.topic_id and (broker / log.name).is_dir():
            (broker / log.name / "partition.metadata").write_text(f"version: 0\ntopic_id: {night.topic_id}\n")
    if night.listed:
        (broker / "listing.txt").write_text("".join(f"{line}\n" for line in listing))
    if night.is_timed:
        (broker / "dumped-at.txt").write_text("".join(f"{line}\n" for line in times))
    for name, told in (("log-start", night.log_start), ("replication", night.hw), ("cleaner", night.cleaned)):
        if told is not None:
            rows = [f"{log.rpartition('-')[0]} {log.rpartition('-')[2]} {offset}" for log, offset in told.items()]
            (broker / f"{name}-offset-checkpoint").write_text("\n".join(["0", str(len(rows)), *rows]) + "\n")
    return folder


def _segments(log: Path, night: Night) -> list[tuple[int, bytes, bytes]]:
    """Base offset, dump text and index text of each segment that a log had that night."""
    groups = _GROUP.findall((log / f"{0:020}.log.txt").read_bytes())
    bases = [*night.bases.get(log.name, (0,)), (night.ends or {}).get(log.name, 2**62)]
    path = log / f"{0:020}.txnindex.txt"
    entries = [(int(found[1]), found[0]) for found in _ENTRY.finditer(path.read_bytes())] if path.is_file() else []
    made = []
    for base, end in pairwise(bases):
        own = [group for group in groups if base <= _offsets(group)[0] < end and _written(group) <= night.at_ms]
        last = _offsets(own[-1])[1] if own else -1
        anew = (night.led_anew_from or {}).get(log.name, 2**62)
        own = [_LED.sub(b"\\g<1>7", group) if _offsets(group)[0] >= anew else group for group in own]
        own = [_CRC.sub(b"\\g<1>1", group, count=1) if night.is_anew else group for group in own]
        index = b"".join(line for offset, line in entries if base <= offset <= last)
        header = f"Dumping /d/{log.name}/{base:020}."
        made.append((base, f"{header}log\nLog starting offset: {base}\n".encode() + _moved(own), f"{header}txnindex\n".encode() + index))
    return made


def _offsets(group: bytes) -> tuple[int, int]:
    found = _BASE.match(group)
    assert found
    return int(found[1]), int(found[2])


def _written(group: bytes) -> int:
    found = _CLOCK.search(group)
    assert found
    return int(found[2])


def _moved(groups: Sequence[bytes]) -> bytes:
    """Batches with the positions they have in a segment of their own."""
    text, position = b"", 0
    for group in groups:
        found = _CLOCK.search(group)
        assert found
        text += group[: found.start(1)] + str(position).encode() + group[found.end(1) :]
        position += int(found[3])
    return text
