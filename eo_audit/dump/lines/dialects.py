"""The lines that `kafka-dump-log` of 2.2 to 4.3 prints for a log segment, one by one: the careful reader's side of `grammar`.

A batch line is all numbers and enums: what matches one is read, what does not is no batch line. A record line is matched up to its header
keys (magic 2) or its last number (magic 0 and 1): the text behind is somebody's data and delimited elsewhere.
"""

import re
from typing import NamedTuple

from eo_audit.dump.lines.fields import Columns
from eo_audit.dump.lines.grammar import BATCH, INT, LEGACY_BATCH, LONG, RECORD

UNSUPPORTED = "0.11-2.1"
LONGEST_LINE = 1024  # bytes: no batch line, preamble line or beginning of a record line is longer
BATCH_OVERHEAD = 61  # bytes of a batch of magic 2 without its records (`DefaultRecordBatch.RECORD_BATCH_OVERHEAD`)


# Named to the user, and not read: a tool of 2.2 or later prints the same segments.
OLD_LINE = re.compile(
    rb"baseOffset: -?\d+ lastOffset: -?\d+ (?:count: -?\d+ )?baseSequence: [^\n]{1,400} isvalid: (?:true|false) size: "
    rb"|offset: -?\d+ position: \d+ (?:CreateTime|LogAppendTime|NoTimestampType): -?\d+ isvalid: (?:true|false) (?:key)?size: "
)
"""A batch or record line of a dump tool before 2.2: `isvalid` stands before the sizes."""
CUT_LINE = re.compile(rb"(?:baseOffset: \d|\| offset: \d|(?P<old>offset: \d)(?P<log>\d* position: \d+ [CLN])?)[^\n]{0,1000}\Z")
"""What is left of a batch or record line where the text ends inside it; an offset index begins like an old one, but for its group `log`."""

# Told apart from facts, but not kept: the one word that matters is `Log`, which 3.3 put in front (`dialect`).
PREAMBLE = re.compile(
    rb"(?:(?P<log>Log )?[sS]tarting offset: %s|KRaft bootstrap snapshot|Snapshot end offset: %s, epoch: %s"
    rb"|kafka\.serializer\.\w{1,16}Decoder is deprecated\. [^\n]{1,200})\r?(?=\n|\Z)" % (LONG.pattern, LONG.pattern, INT.pattern)
)
# 4096 is PATH_MAX of Linux: what is longer was never opened, so it was never dumped. A path with the tool's own word in it is what is left
# of a line that was cut, with another dump right behind it: a broker's folders are called by partitions, which have no spaces.
# A byte order mark stands before it where files of Windows were joined.
DUMPING_BEGINS = re.compile(rb"\n(?:\xef\xbb\xbf)?Dumping ")
DUMPING = re.compile(rb"(?:\xef\xbb\xbf)?Dumping (?![^\r\n\0]*Dumping )([^\r\n\0]{1,4096})\r?(?=\n|\Z)")

CONTROL = re.compile(
    # A coordinator's epoch is its leader epoch; only an operator may give another one (`kafka-transactions.sh abort --coordinator-epoch`).
    rb" (?:endTxnMarker: (?P<marker>COMMIT(?! coordinatorEpoch: -)|ABORT) coordinatorEpoch: (?P<epoch>%s)"
    rb"|(?P<name>SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters|LeaderChange):? \{[^\n]*\}"
    rb"|controlType: (?P<type>\w{1,40})\(%s\))\r?(?=\n|\Z)" % (INT.pattern, INT.pattern)
)
# The names of `ControlRecordType`; the tool prints those of its own Java classes.
CONTROL_TYPES = {
    b"SnapshotHeader": "SNAPSHOT_HEADER",
    b"SnapshotFooter": "SNAPSHOT_FOOTER",
    b"KRaftVersion": "KRAFT_VERSION",
    b"KRaftVoters": "KRAFT_VOTERS",
    b"LeaderChange": "LEADER_CHANGE",
}


class BatchLine(NamedTuple):
    """What the readers ask of a batch line, named as the columns of `batches`, with None where it does not print it.

    `upper`: the codec is in upper case (up to 2.8). `end` is where its text ends. `columns`: all that it prints, for the facts.
    """

    base_offset: int
    last_offset: int
    record_count: int | None
    base_sequence: int | None
    last_sequence: int | None
    producer_id: int | None
    producer_epoch: int | None
    partition_leader_epoch: int | None
    is_transactional: bool | None
    is_control: bool | None
    position: int
    timestamp_type: str
    max_timestamp_ms: int
    size_bytes: int
    magic: int
    codec: str
    upper: bool
    end: int
    columns: Columns

    @property
    def horizon_printed(self) -> bool:
        """Has it a `deleteHorizonMs` (3.2 and later), though that may be empty?"""
        return "delete_horizon_ms" in self.columns

    @property
    def is_sound(self) -> bool:
        """Is the last sequence the one that follows? Kafka DefaultRecordBatch.lastSequence computes it, as `incrementSequence` does."""
        if self.base_sequence is None or self.last_sequence is None:
            return True
        last = self.last_offset - self.base_offset
        return self.last_sequence == (-1 if self.base_sequence < 0 else (self.base_sequence + last) % 2**31)


# A tuple has a method `count`, so the field is called otherwise.
_ASKED_OF_BATCH = tuple("count" if name == "record_count" else name for name in BatchLine._fields[: BatchLine._fields.index("upper")])


def batch_with(columns: Columns, *, upper: bool, end: int) -> BatchLine:
    """A batch line that prints these columns; see `BatchLine`."""
    return BatchLine._make((*map(columns.get, _ASKED_OF_BATCH), upper, end, columns))


class RecordLine(NamedTuple):
    """What the readers ask of a record line up to its text; `sequence` is None for magic 0 and 1.

    `style` is 2.2 (`keysize`), 2.8 (the superset line) or 3.0 (`keySize`). `end` is where header keys or key would start. `columns`: all
    that it prints, for the facts.
    """

    offset: int
    timestamp_ms: int
    key_size: int
    value_size: int
    sequence: int | None
    style: str
    end: int
    columns: Columns


_ASKED_OF_RECORD = RecordLine._fields[: RecordLine._fields.index("style")]


def record_with(columns: Columns, *, style: str, end: int) -> RecordLine:
    """A record line that prints these columns; see `RecordLine`."""
    return RecordLine._make((*map(columns.get, _ASKED_OF_RECORD), style, end, columns))


_BATCH_LINES = tuple((line, line.columns.index("codec") + 1) for line in (BATCH, LEGACY_BATCH))


def batch_line(text: bytes, at: int) -> BatchLine | None:
    """The batch line that starts at `at`, or None."""
    for grammar, codec in _BATCH_LINES:
        match = grammar.pattern.match(text, at)
        columns = grammar.read(match) if match else None
        if match is not None and columns is not None:
            # The one offset of magic 0 and 1 is the last (of a compressed wrapper: `Group.base_offset`).
            columns.setdefault("base_offset", columns["last_offset"])
            line = batch_with(columns, upper=match[codec].isupper(), end=match.end())
            return line if line.is_sound else None
    return None


# Sizes stand in one of two places, by dialect.
_SUPERSET, _PLAIN = (number for number, column in enumerate(RECORD.columns, start=1) if column == "key_size")


def record_line(text: bytes, at: int) -> RecordLine | None:
    """The beginning of the record line that starts at `at`, or None."""
    match = RECORD.pattern.match(text, at)
    # In both places or in neither is no line of any release.
    if match is None or (match[_SUPERSET] is None) == (match[_PLAIN] is None):
        return None
    # The spelling of `keysize` is the one thing in which the record lines of 2.2 and 3.0 differ.
    style = "2.8" if match[_PLAIN] is None else "2.2" if match[0].find(b" keysize: ") > 0 else "3.0"
    columns = RECORD.read(match)
    return None if columns is None else record_with(columns, style=style, end=match.end())


def dialect(line: BatchLine, *, style: str | None, log_starting: bool | None) -> str:
    """Release family of the tool that printed a batch line, by the fingerprints of its line, of its records and of the preamble.

    Args:
        line: a batch line.
        style: `RecordLine.style` where a record line was seen.
        log_starting: the preamble says `Log starting offset` (3.3 and later), `Starting offset` (False), or was not seen (None).
    """
    # Codec names are printed in upper case up to 2.8 and in lower case since 3.0.
    if line.upper:
        return "2.8" if style == "2.8" else "2.2"
    if log_starting:
        return "3.3"
    return "3.2" if line.horizon_printed else "3.0"
