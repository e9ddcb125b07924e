"""Small files without a `Dumping` line: checkpoints, listings, dump times, manifests, tool messages, answers of brokers. Each is one
section, read whole.

Every byte has one owner: a header is preamble, a row is a fact, and a line that is not understood an unread span. A last line without its
line end is not believed: a number that was cut is a wrong number.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from eo_audit.dump.files.broker_answers import AnswerTable, is_head
from eo_audit.dump.files.identity import Identity, parse_path, replica_log_id, section_id
from eo_audit.dump.files.manifest import read_manifest
from eo_audit.dump.lines.messages import MAX_QUOTE, Message, detail_of, message_of
from eo_audit.dump.lines.printed import INT, number, text
from eo_audit.dump.lines.sidecars import Row

# One of each in every log directory (`ReplicaManager`, `LogManager`, `LogCleanerManager`), with a row for each partition.
BROKER_WIDE = ("replication-offset", "log-start-offset", "recovery-point-offset", "cleaner-offset")
LEADER_EPOCH = "leader-epoch"
CHECKPOINT_KINDS = (*BROKER_WIDE, LEADER_EPOCH)
DUMP_TIMES = "dump_times"
ANSWERS = "broker_answers"
PARTITION_METADATA = "partition_metadata"
SIDECAR_KINDS = (*CHECKPOINT_KINDS, "manifest", "listing", DUMP_TIMES, "tool_messages", ANSWERS, PARTITION_METADATA)

# `OffsetCheckpointFile`: topic, partition, offset. `LeaderEpochCheckpointFile`: leader epoch, its first offset.
_OFFSET_ROW = re.compile(rb"(?P<topic>[\w.-]{1,249}) (?P<partition>\d{1,10}) (?P<offset>-?\d{1,19})")
_EPOCH_ROW = re.compile(rb"(?P<leader_epoch>-?\d{1,10}) (?P<offset>-?\d{1,19})")
# `PartitionMetadataFile`: the id of the topic (KIP-516), which another topic of the same name does not have.
_TOPIC_ID = re.compile(rb"topic_id: (?P<id>[\w-]{22})")
_LISTED_ROW = re.compile(rb"(?P<number>\d{1,19})[ \t]+(?P<path>\S.*)")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")


@dataclass(frozen=True)
class SidecarFile:
    """A file without `Dumping` line: its kind (one of `SIDECAR_KINDS`) and whose it is, by its own path and the manifest."""

    dump_file_id: int
    kind: str
    identity: Identity


@dataclass(frozen=True)
class Line:
    """One line: where it is, its text without its line end, and whether it has one."""

    offset: int
    length: int
    text: bytes
    whole: bool


class SidecarFacts:
    """One section: its row, its facts by table, and who owns its bytes.

    Attributes:
        section: the row of `dump_sections`, but for `ingest_id`.
        rows: rows by table, each with all columns that are not null.
        bytes_by_owner: bytes of preamble, facts, tool_messages, unread; the sum is the size of the text.
    """

    def __init__(self, file: SidecarFile, size: int) -> None:
        """An empty section of `size` bytes."""
        # Of sections there are few kinds; which checkpoint it is stands in its rows.
        kind = "checkpoint" if file.kind in CHECKPOINT_KINDS else "listing" if file.kind == DUMP_TIMES else file.kind
        self.file, self.identity = file, _whose(file)
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.bytes_by_owner = dict.fromkeys(("preamble", "facts", "tool_messages", "unread"), 0)
        self.section: Row = {
            "section_id": section_id(file.dump_file_id, 0),
            "dump_file_id": file.dump_file_id,
            "byte_offset": 0,
            "length": size,
            **vars(replace(self.identity, kind=kind)),
            "end_reason": "eof",
        }

    def own(self, owner: str, line: Line) -> None:
        """The line's bytes belong to `owner`."""
        self.bytes_by_owner[owner] += line.length

    def add(self, table: str, line: Line, row: Row) -> None:
        """A row of `table` stands on this line."""
        self.rows[table].append({"section_id": self.section["section_id"], "byte_offset": line.offset, "length": line.length, **row})

    def unread(self, line: Line, reason: str) -> None:
        """The line is nothing we know; a span goes on as long as its reason does."""
        self.own("unread", line)
        if spans := self.rows["unread_spans"]:
            last = spans[-1]
            if last["reason"] == reason and _end(last) == line.offset:
                last["length"] = line.offset + line.length - int(last["byte_offset"] or 0)
                return
        self.add("unread_spans", line, {"dump_file_id": self.file.dump_file_id, "reason": reason})


def _end(row: Row) -> int:
    return int(row["byte_offset"] or 0) + int(row["length"] or 0)


def _whose(file: SidecarFile) -> Identity:
    """A leader-epoch checkpoint and the messages beside a segment speak of one partition, the other files of a whole broker."""
    # `leader-epoch-checkpoint` lies in the partition's folder, the other checkpoints in the log directory (LogManager).
    if file.kind in (LEADER_EPOCH, PARTITION_METADATA, "tool_messages"):
        return file.identity
    # Which broker answered `describe-producers` is not printed, nor of which partition: the folder of the file may say that.
    if file.kind == ANSWERS:
        return replace(file.identity, segment_base_offset=None, replica_log_id=None)
    return replace(file.identity, topic=None, partition=None, dir_kind=None, segment_base_offset=None, replica_log_id=None)


def _lines(content: bytes) -> Iterator[Line]:
    for found in _LINE.finditer(content):
        line = found[0]
        whole = line.endswith(b"\n")
        yield Line(found.start(), len(line), line[:-1].removesuffix(b"\r") if whole else line, whole)


def read_sidecar(content: bytes, file: SidecarFile) -> SidecarFacts:
    """Read one small file whole.

    Args:
        content: its text, decompressed.
        file: what it is and whose.
    """
    facts = SidecarFacts(file, len(content))
    if file.kind == "manifest":
        _read_manifest(content, facts)
    elif file.kind in ("listing", DUMP_TIMES):
        _read_listing(content, facts)
    elif file.kind == "tool_messages":
        _read_messages(content, facts)
    elif file.kind == ANSWERS:
        _read_answers(content, facts)
    elif file.kind == PARTITION_METADATA:
        _read_partition_metadata(content, facts)
    else:
        _read_checkpoint(content, facts)
    return facts


def _read_checkpoint(content: bytes, facts: SidecarFacts) -> None:
    """`CheckpointFile`: a line with the version (0), one with the number of rows, the rows. A broker that just started leaves it empty."""
    supported, expected = False, None
    read = _epoch_row if facts.file.kind == LEADER_EPOCH else _offset_row
    for index, line in enumerate(_lines(content)):
        if index == 0 and line.text == b"0" and line.whole:
            supported = True
            facts.own("preamble", line)
        elif index == 1 and supported and line.text.isdigit() and len(line.text) < 10 and line.whole:
            expected = int(line.text)
            facts.own("preamble", line)
        elif expected is None or not line.whole or (row := read(line.text, facts)) is None:
            facts.unread(line, "unknown_line" if line.whole else "truncated_record")
        else:
            facts.own("facts", line)
            facts.add("checkpoints", line, row)
    # CheckpointFile.read refuses such a file as well: the broker replaces it as a whole, so a copy was cut.
    if content and len(facts.rows.get("checkpoints", ())) != expected:
        facts.section["end_reason"] = "truncated"


def _offset_row(line: bytes, facts: SidecarFacts) -> Row | None:
    found = _OFFSET_ROW.fullmatch(line)
    try:
        return _checkpoint(facts, text(found["topic"]), number(found["partition"], INT), number(found["offset"])) if found else None
    except ValueError:
        return None


def _epoch_row(line: bytes, facts: SidecarFacts) -> Row | None:
    found, whose = _EPOCH_ROW.fullmatch(line), facts.identity
    if found is None:
        return None
    try:
        epoch: Row = {"leader_epoch": number(found["leader_epoch"], INT)}
        return epoch | _checkpoint(facts, whose.topic, whose.partition, number(found["offset"]))
    except ValueError:
        return None


def _checkpoint(facts: SidecarFacts, topic: str | None, partition: int | None, offset: int) -> Row:
    whose = facts.identity
    log = None if topic is None or partition is None else replica_log_id(whose.cluster, whose.broker, topic, partition)
    names: Row = {"checkpoint_kind": facts.file.kind, "cluster": whose.cluster, "broker": whose.broker}
    return names | {"topic": topic, "partition": partition, "replica_log_id": log, "offset": offset}


def _read_partition_metadata(content: bytes, facts: SidecarFacts) -> None:
    """`version: 0`, `topic_id: ...`: whose partition it is, as the other names of its section, so no fact of its own."""
    for index, line in enumerate(_lines(content)):
        # `PartitionMetadata.encode` ends its last line with nothing: the length of an id says that it is whole.
        found = _TOPIC_ID.fullmatch(line.text)
        if found is not None and index == 1:
            facts.section["topic_id"] = text(found["id"])
        if (found is not None and index == 1) or (index == 0 and line.text == b"version: 0" and line.whole):
            facts.own("preamble", line)
        else:
            facts.unread(line, "unknown_line" if line.whole else "truncated_record")


def _read_listing(content: bytes, facts: SidecarFacts) -> None:
    """`<bytes> <path>` of every file in a log directory, as `find -printf '%s %P'` writes it; `<epoch ms> <path>` of every file dumped."""
    for line in _lines(content):
        row = _listed(line.text, facts) if line.whole else None
        if row is not None:
            facts.own("facts", line)
            facts.add("listed_files", line, row)
        elif line.text.strip():
            facts.unread(line, "unknown_line" if line.whole else "truncated_record")
        else:
            facts.own("preamble", line)


def _listed(line: bytes, facts: SidecarFacts) -> Row | None:
    found = _listed_file(line)
    if found is None:
        return None
    path, said = found
    folder, _, name = path.replace("\\", "/").removeprefix("./").rpartition("/")
    whose, named = facts.identity, parse_path(path)
    # A folder that waits for its deletion, or for its move between disks, is another log of the same name.
    own_log = named.topic is not None and named.partition is not None and named.dir_kind == "normal"
    log = replica_log_id(whose.cluster, whose.broker, named.topic or "", named.partition or 0) if own_log else None
    row: Row = {"cluster": whose.cluster, "broker": whose.broker, "topic": named.topic, "partition": named.partition, "replica_log_id": log}
    return row | {"folder": folder, "file_name": name, "dumped_at_ms" if facts.file.kind == DUMP_TIMES else "file_bytes": said}


def _listed_file(line: bytes) -> tuple[str, int] | None:
    # What does not fit into a long is no size of a file, and no time.
    found = _LISTED_ROW.fullmatch(line)
    if found is None or int(found["number"]) >= 1 << 63:
        return None
    return text(found["path"]), int(found["number"])


def dump_times(content: bytes) -> dict[str, int]:
    """`dumped-at.txt`: by path of the dumped file, when its dump began at the latest (ms). Of several lines the last counts: dumped again.

    Args:
        content: the text, decompressed; lines that are not understood, and a last one without its line end, say nothing.
    """
    return dict(found for line in _lines(content) if line.whole and (found := _listed_file(line.text)))


def listed_sizes(content: bytes) -> dict[str, int]:
    """Of a `listing.txt`: by path, how large what is dumped was: segments that no longer grow, all of a log but the newest, snapshots of
    producers, which are written in one go (`ProducerStateManager.writeSnapshot`), and aborted indexes, which only grow.

    Args:
        content: as for `dump_times`.
    """
    listed = dump_times(content)  # lines of the same form
    # Names have 20 digits, so by name is by offset; the last one of a folder is still written to.
    segments = sorted(path for path in listed if path.endswith(".log") and parse_path(path).kind == "log")
    rolled = {path for path, behind in pairwise(segments) if path.rpartition("/")[0] == behind.rpartition("/")[0]}
    return {path: size for path, size in listed.items() if path in rolled or path.endswith((".snapshot", ".txnindex"))}


def _read_manifest(content: bytes, facts: SidecarFacts) -> None:
    manifest = read_manifest(content)
    lines = list(_lines(content))
    if manifest.error:
        for line in lines:
            facts.unread(line, "bad_manifest")
        return
    starts, said = [line.offset for line in lines], set[int]()
    for entry in manifest.entries:
        # A value may stand on several lines, and several on one: bytes are owned by lines, so a line with any of them is a fact.
        said.update(range(bisect_right(starts, entry.start) - 1, bisect_left(starts, entry.stop)))
    for index, line in enumerate(lines):
        facts.own("facts" if index in said else "preamble", line)
    for entry in manifest.entries:
        start = content.rfind(b"\n", 0, entry.start) + 1
        stop = content.find(b"\n", entry.stop) + 1 or len(content)
        span = Line(start, stop - start, b"", whole=True)
        facts.add("manifest_entries", span, {"cluster": facts.identity.cluster, "name": entry.name, "value": entry.value})


def _read_messages(content: bytes, facts: SidecarFacts) -> None:
    """Messages of the tool, each with the lines that go on with it: its stack, its offset pairs."""
    current: Row | None = None
    for line in _lines(content):
        head = message_of(line.text)
        detail = None if head else detail_of(line.text)
        if detail and current and current["text_kind"] in (detail.text_kind, "exception"):
            current["length"] = line.offset + line.length - int(current["byte_offset"] or 0)
            current["text"] = f"{current['text']}\n{detail.text}"[:MAX_QUOTE]
            facts.own("tool_messages", line)
        elif message := head or detail:
            facts.own("tool_messages", line)
            facts.add("tool_messages", line, _message_row(message))
            current = facts.rows["tool_messages"][-1]
        else:
            current = None
            facts.own("preamble", line) if not line.text.strip() else facts.unread(line, "unknown_line")


def _message_row(message: Message) -> Row:
    return {"text_kind": message.text_kind, "severity": message.severity, "applies_to_section": None, "text": message.text}


def _read_answers(content: bytes, facts: SidecarFacts) -> None:
    """Tables of `kafka-transactions.sh`, one behind the other; before the first there may be messages of the JVM and of its tools."""
    table, whose = None, facts.identity
    for line in _lines(content):
        row = table.row(line.text) if table is not None and line.whole else None
        if row is not None:
            # `find-hanging` names partitions itself.
            place: Row = {"topic": whose.topic, "partition": whose.partition} if row["command"] == "describe-producers" else {}
            facts.own("facts", line)
            facts.add("broker_answers", line, {"cluster": whose.cluster, **place, **row})
        elif is_head(line.text) and line.whole:
            table = AnswerTable(line.text)
            facts.own("preamble", line)
        elif message := message_of(line.text):
            facts.own("tool_messages", line)
            facts.add("tool_messages", line, _message_row(message))
        elif line.text.strip():
            facts.unread(line, "unknown_line" if line.whole else "truncated_record")
        else:
            facts.own("preamble", line)
