"""What a reader of dump text is given, carries from element to element, and gives back."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from eo_audit.dump.files.discovery import DumpFile
from eo_audit.dump.files.identity import Identity, ManifestHint, PathFacts
from eo_audit.dump.lines.columns import Rows, fact_tables
from eo_audit.dump.log.least import FAR

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class FileContext:
    """What is known of a dump file before its text is read.

    Attributes:
        cluster: cluster of the file.
        path: relative to the input, with `/`.
        own: what its own path says.
        dump_file_id: `identity.dump_file_id`.
        kind_hint: `DumpFile.kind_hint`: text, or the kind of a file that has no `Dumping` line.
        manifest: the nearest manifest's word.
        salt: key of the hashes of keys and payloads, 16 bytes; never leaves the process.
        ingest_id: the run that adds the facts.
        dumped_bytes: size of the segment or snapshot that is printed, at least that of an index, where that is known.
    """

    cluster: str
    path: str
    dump_file_id: int
    kind_hint: str = "text"
    manifest: ManifestHint = field(default_factory=ManifestHint)
    salt: bytes = field(default=bytes(16), repr=False)
    ingest_id: str = ""
    own: PathFacts = field(default_factory=PathFacts)
    dumped_bytes: int | None = None

    @classmethod
    def of(cls, file: DumpFile, *, dump_file_id: int, salt: bytes, ingest_id: str) -> "FileContext":
        """What discovery found out about a file, with its id."""
        own, known = file.own, file.dumped_bytes
        return cls(file.cluster, file.path, dump_file_id, file.kind_hint, file.manifest, salt, ingest_id, own, known)


@dataclass(frozen=True)
class Section:
    """The dump section in force, with what its text has shown so far (None: not shown yet).

    `left`: why all that comes is left unread, to the end of the file; `end_at_most`: of a flat dump, whose newest batch has no size, the
    position in the segment that it does not reach beyond; `last_offset`: of a flat dump, that of the last line which was read.
    """

    section_id: int
    byte_offset: int
    dumped_path: str | None
    identity: Identity
    dialect: str | None = None
    deep: bool | None = None
    payload_printed: bool | None = None
    decoder: str | None = None
    log_starting: bool | None = None
    invalid_tail_bytes: int | None = None
    end_at_most: int | None = None
    last_offset: int | None = None
    end_reason: str | None = None
    left: str | None = None


@dataclass(frozen=True)
class Damage:
    """What is known of the damage that the reader is behind, until a line can be believed again.

    Attributes:
        base: position up to which the text before the damage has been read.
        packed: it is in a compressed batch.
        least: fewest bytes of records that the unread text since then stands for.
        covered: `least` at the furthest end of a key or value that a record line in that text announces.
        held: file offset up to which nothing is believed; None: not looked for yet.
        believed: the line there is the tool's own.
        bounded: nothing further on belongs to a batch from before the damage.
        until: file offset of the damage, where a batch before it is in doubt: the text between could be that batch's.
        sealed: it may belong to another section: only where a section begins, or the batch at this position (`NOWHERE`: none), is a line
            believed.
    """

    base: int
    packed: bool = False
    least: int = 0
    covered: int = -FAR
    held: int | None = None
    believed: bool = False
    bounded: bool = False
    until: int | None = None
    sealed: int | None = None


@dataclass(frozen=True)
class State:
    """What the text before a byte decides about the text behind it; two equal states read the same bytes alike.

    Attributes:
        section: the section in force; None before the first.
        position: what the next batch line must print as its position; None where nothing is known.
        entries: rows so far of a sidecar section.
        damage: was met, and no line has been found yet that can be believed.
        mid_line: the byte is inside a line of unread text.
        unread_from: first byte of the unread span that is still growing, with `unread_reason`.
        crlf: lines of this file end in CRLF.
    """

    section: Section | None = None
    position: int | None = None
    entries: int = 0
    damage: Damage | None = None
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
    `read` holds the tables that got rows: those that were read one by one as rows, those of which a stretch was read at once as tables.
    `crlf`, `ascii_lossy`: signs of the file's encoding seen in these bytes.
    """

    sync_byte: int
    state_in: State | None
    end_byte: int
    state_out: State | None
    read: "dict[str, Rows | pa.Table]"
    ledger: Ledger
    crlf: bool = False
    ascii_lossy: bool = False

    @cached_property
    def facts(self) -> "dict[str, pa.Table]":
        """What was read as tables, each with the columns of `schemas/<table>.json`."""
        return fact_tables(self.read)
