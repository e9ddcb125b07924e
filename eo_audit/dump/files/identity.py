"""Which log does a text speak of? Stable ids, and what paths say of broker, topic, partition and segment.

Each of broker, topic and partition is taken on its own from the first source that names it: the nearest manifest, the path behind
`Dumping`, the dump file's own folders. A partition's folder is named as `LocalLog.parseTopicPartitionName` reads it, with the suffixes
`.<uuid>-delete`, `.<uuid>-future` and `.<uuid>-stray`.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TypeVar

_T = TypeVar("_T")

# `Topic.MAX_NAME_LENGTH` is 249; its characters are those of `Topic.LEGAL_CHARS`.
_PARTITION_DIR = re.compile(
    r"(?P<topic>[\w.-]{1,249})-(?P<partition>0|[1-9]\d{0,9})(?:\.[\w-]{8,36}-(?P<suffix>future|delete|stray))?", re.ASCII
)
_BROKER_DIR = re.compile(r"(?:broker-|kafka-log)(\d{1,10})", re.ASCII)  # kafka-log<N> is how Strimzi names a broker's log directory
# Kafka pads offsets to 20 digits; `RemoteIndexCache` does not, and adds the id of the remote segment.
_SEGMENT_FILE = re.compile(r"(?P<base>\d{1,20})(?:_[\w-]{22})?\.(?P<suffix>log|snapshot|txnindex|index|timeindex)(?![\w-])", re.ASCII)
# `Snapshots.filenameFromSnapshotId`: the state of the metadata at an offset and epoch, not a part of its log.
_METADATA_SNAPSHOT = re.compile(r"(?:.*[\\/])?\d{20}-\d{10,}\.checkpoint(?![\w-]).*", re.ASCII)
# Dumps are printed on Windows, too.
_ABSOLUTE = re.compile(r"[\\/]|[A-Za-z]:[\\/]")
_MAX_LONG = 2**63 - 1
_MAX_INT = 2**31 - 1


def _stable_id(*parts: str | int | None) -> int:
    # As JSON: joined by a separator, two lists of parts could be the same text. 63 bits, because a Delta long has a sign.
    digest = hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).digest()
    return int.from_bytes(digest[:8], "big") & _MAX_LONG


def replica_log_id(cluster: str, broker: int | None, topic: str, partition: int) -> int:
    """Id of one partition on one broker (63 bits, the same in every run)."""
    return _stable_id(cluster, broker, topic, partition)


def dump_file_id(cluster: str, path: str, digest: str) -> int:
    """Id of one dump file: its cluster, its path relative to the input, the digest of its text."""
    return _stable_id(cluster, path, digest)


def section_id(dump_file_id: int, byte_offset: int) -> int:
    """Id of the dump section that starts at a byte of a dump file."""
    return _stable_id(dump_file_id, byte_offset)


@dataclass(frozen=True)
class PathFacts:
    """What one path says; None where it says nothing.

    `dir_kind` is normal, future, delete or stray; `kind` is log, snapshot, txnindex, index, timeindex, or unknown.
    """

    broker: int | None = None
    topic: str | None = None
    partition: int | None = None
    dir_kind: str | None = None
    segment_base_offset: int | None = None
    kind: str = "unknown"


@dataclass(frozen=True)
class ManifestHint:
    """What the nearest manifest says of the files beside and below it."""

    cluster: str | None = None
    broker: int | None = None
    topic: str | None = None
    partition: int | None = None
    dumped_at_ms: int | None = None


@dataclass(frozen=True)
class Identity:
    """The log and segment a dump section speaks of, with the names of the columns of `dump_sections`."""

    cluster: str
    broker: int | None
    broker_source: str | None
    topic: str | None
    partition: int | None
    dir_kind: str | None
    segment_base_offset: int | None
    kind: str
    replica_log_id: int | None


def _bounded(digits: str, limit: int) -> int | None:
    number = int(digits)
    return number if number <= limit else None


def is_partition_folder(name: str) -> bool:
    """Could a folder of this name be a partition's?"""
    return _partition_dir(name) is not None


def is_broker_folder(name: str) -> bool:
    """Is a folder of this name a broker's (`broker-1`)?"""
    return _broker_dir(name) is not None


def _partition_dir(name: str) -> tuple[str, int, str] | None:
    match = _PARTITION_DIR.fullmatch(name)
    partition = _bounded(match["partition"], _MAX_INT) if match else None
    if match is None or partition is None:
        return None
    return match["topic"], partition, match["suffix"] or "normal"


def _broker_dir(name: str) -> int | None:
    match = _BROKER_DIR.fullmatch(name)
    return _bounded(match[1], _MAX_INT) if match else None


def _nearest_broker(folders: list[str]) -> int | None:
    return next((broker for folder in reversed(folders) if (broker := _broker_dir(folder)) is not None), None)


def _holds_segments(path: str, folders: list[str]) -> bool:
    """Is the last folder a partition's? `broker-1` is one only where it cannot be a broker's: below another, or on the broker itself."""
    return _broker_dir(folders[-1]) is None or _nearest_broker(folders[:-1]) is not None or _ABSOLUTE.match(path) is not None


def parse_path(path: str) -> PathFacts:
    """What a path says: the one behind `Dumping` as given to `--files`, or a dump file's own path relative to its input.

    Both separators are understood, whichever system printed it. Only the folder that holds the file is its partition; a broker may be
    named by any folder above (`broker-1`), the nearest wins. What follows the segment's name (`.txt`, `.err.txt`, `.gz`) is ignored.
    """
    *folders, name = re.split(r"[\\/]", path)
    segment = _SEGMENT_FILE.match(name)
    base = _bounded(segment["base"], _MAX_LONG) if segment else None
    kind = segment["suffix"] if segment and base is not None else "unknown"
    folder = _partition_dir(folders[-1]) if folders and _holds_segments(path, folders) else None
    if folder is None:
        return PathFacts(broker=_nearest_broker(folders), segment_base_offset=base, kind=kind)
    topic, partition, dir_kind = folder
    return PathFacts(_nearest_broker(folders[:-1]), topic, partition, dir_kind, base, kind)


def _broker(manifest: ManifestHint, dumped: PathFacts, own: PathFacts) -> tuple[int | None, str | None]:
    sources = ((manifest.broker, "manifest"), (dumped.broker, "path"), (own.broker, "folder"))
    return next(((broker, source) for broker, source in sources if broker is not None), (None, None))


def _first(*values: _T | None) -> _T | None:
    return next((value for value in values if value is not None), None)


def identify(cluster: str, *, manifest: ManifestHint, dumped_path: str | None, own: PathFacts, is_first: bool = False) -> Identity:
    """The identity of one dump section.

    Args:
        cluster: the cluster of the dump file.
        manifest: the nearest manifest's word.
        dumped_path: the path behind `Dumping`; None for a file without one (a checkpoint, a listing).
        own: `parse_path` of the dump file's own path.
        is_first: the file begins with it.
    """
    dumped = parse_path(dumped_path) if dumped_path is not None else PathFacts()
    broker, source = _broker(manifest, dumped, own)
    topic = _first(manifest.topic, dumped.topic, own.topic)
    partition = _first(manifest.partition, dumped.partition, own.partition)
    # Records of a snapshot of the metadata have offsets of their own: it is of no log.
    is_snapshot = _METADATA_SNAPSHOT.fullmatch(dumped_path or "") is not None
    log = None if topic is None or partition is None or is_snapshot else replica_log_id(cluster, broker, topic, partition)
    # A folder that waits to be deleted or moved says so in its own name (`LocalLog`): a manifest has no word in that.
    dir_kind = _first(dumped.dir_kind, own.dir_kind)
    # With a `Dumping` line the file's own name says nothing of the segment: one file may hold many. But of one whose line was cut, or that
    # had been renamed.
    is_nameless = is_first and dumped.kind == "unknown" and not is_snapshot
    file = own if dumped_path is None or is_nameless else dumped
    return Identity(cluster, broker, source, topic, partition, dir_kind, file.segment_base_offset, file.kind, log)
