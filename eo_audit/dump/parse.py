"""One window of one dump file to facts: what every reader of dump text calls.

A dump file is a row of elements: a `Dumping` line, a batch line with its record lines, a line of a sidecar, a message of the dump tool.
`parse_range` reads the elements that *begin* in a range, so ranges of one file can be read in parallel and then folded from the left:
a range is accepted when the byte and the state it began with are those its left neighbour ended with. Byte 0 is the one true start.
"""

from dataclasses import dataclass, field
from mmap import mmap
from typing import TYPE_CHECKING

from eo_audit.dump.identity import Identity, ManifestHint

if TYPE_CHECKING:
    import pyarrow as pa

Buffer = bytes | bytearray | memoryview | mmap

PARSER_VERSION = 1  # part of the identity of an ingest: facts of another parser are other facts


@dataclass(frozen=True)
class FileContext:
    """What is known of a dump file before its text is read.

    Attributes:
        cluster: cluster of the file.
        path: relative to the input, with `/`.
        dump_file_id: `identity.dump_file_id`.
        kind_hint: `DumpFile.kind_hint` of discovery: text, or the kind of a file that has no `Dumping` line.
        manifest: the nearest manifest's word.
        salt: key of the hashes of keys and payloads, 16 bytes; never leaves the process.
        ingest_id: the run that adds the facts.
    """

    cluster: str
    path: str
    dump_file_id: int
    kind_hint: str = "text"
    manifest: ManifestHint = ManifestHint()
    salt: bytes = field(default=bytes(16), repr=False)
    ingest_id: str = ""


@dataclass(frozen=True)
class Section:
    """The dump section in force, with what its text has shown so far (None: not shown yet)."""

    section_id: int
    byte_offset: int
    dumped_path: str | None
    identity: Identity
    dialect: str | None = None
    deep: bool | None = None
    payload_printed: bool | None = None
    decoder: str | None = None
    invalid_tail_bytes: int | None = None
    end_reason: str | None = None


@dataclass(frozen=True)
class State:
    """What the text before a byte decides about the text behind it; two equal states read the same bytes alike.

    Attributes:
        section: the section in force; None before the first.
        position: what the next batch line must print as its position; None where nothing is known.
        entries: rows so far of a sidecar section.
        lost: damage was met and no line has been found yet that can be believed.
        mid_line: the byte is inside a line of unread text.
        unread_from: first byte of the unread span that is still growing, with `unread_reason`.
        crlf: lines of this file end in CRLF.
    """

    section: Section | None = None
    position: int | None = None
    entries: int = 0
    lost: bool = False
    mid_line: bool = False
    unread_from: int | None = None
    unread_reason: str | None = None
    crlf: bool = False

    @classmethod
    def initial(cls) -> "State":
        """The state at byte 0."""
        return cls()


@dataclass(frozen=True)
class Ledger:
    """Bytes of text by owner; the sum is the length of the text read."""

    preamble: int = 0
    facts: int = 0
    tool_messages: int = 0
    unread: int = 0

    def __add__(self, other: "Ledger") -> "Ledger":
        return Ledger(
            self.preamble + other.preamble, self.facts + other.facts, self.tool_messages + other.tool_messages, self.unread + other.unread
        )

    @property
    def total(self) -> int:
        """All bytes."""
        return self.preamble + self.facts + self.tool_messages + self.unread


@dataclass(frozen=True)
class RangeResult:
    """What `parse_range` read: bytes [sync_byte, end_byte) of the file, and the states at both ends.

    `state_in` is None when nothing in the range could be a start: then sync_byte = end_byte = the range's stop, and there are no facts.
    `facts` holds the tables that got rows, each with the columns of `schemas/<table>.json`.
    `crlf`, `ascii_lossy`: signs of the file's encoding seen in these bytes.
    """

    sync_byte: int
    state_in: State | None
    end_byte: int
    state_out: State | None
    facts: "dict[str, pa.Table]"
    ledger: Ledger
    crlf: bool = False
    ascii_lossy: bool = False


def parse_range(
    window: Buffer, *, context: FileContext, base: int, start: int, stop: int, state: State | None, final: bool, guess: State | None = None
) -> RangeResult:
    """Read the elements of a dump file that begin in [start, stop).

    Args:
        window: file bytes [base, base + len(window)); decompressed text. An element that runs past the window is left for a larger one
            (end_byte < stop), unless `final`. Give at least a few hundred KiB beyond `stop`.
        context: the file.
        base: file offset of the window's first byte.
        start: first byte of the range.
        stop: first byte behind it.
        state: the state at `start`; None where it is unknown: then reading begins at the first line that can be a start.
        final: the window reaches the end of the file.
        guess: with `state=None`, the state behind the head of the section that seems to be in force (`probe_section`).
    """
    raise NotImplementedError


def probe_section(head: Buffer, *, context: FileContext, base: int) -> State:
    """The state behind the first batches of the section whose `Dumping` line is at `base`: a guess for ranges that begin inside it.

    Args:
        head: file bytes from `base` on, some 64 KiB.
        context: the file.
        base: file offset of the `Dumping` line.
    """
    raise NotImplementedError
