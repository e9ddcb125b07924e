"""Ranges of dump files: one survey pass, then ranges read on their own and folded from the left.

A range may begin inside a payload, where a perfect forgery of a batch line may stand. So each range is read from the first line that can
be a start, under the guess that the last `Dumping` line before it is in force, and is believed only when its left neighbour ended at
that very byte in that very state. The first range begins at byte 0; by induction every accepted range begins at a true element.
A rejected range is read again from where its left neighbour truly ended.

Memory follows the size of a block, never the size of a file or a range. gzip cannot be entered in the middle: one range.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from eo_audit.dump.files.unpacked import Unpacked
from eo_audit.dump.parse import FileContext, Ledger, RangeResult, State, parse_range, probe_section
from eo_audit.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from eo_audit.dump.lines.columns import Rows

# Blocks of the digest: whatever the ranges, a file has one digest, so it must not depend on how it was cut.
LEAF_BYTES = 1 << 20
BLOCK_BYTES = 4 << 20
# An element that runs past a block is read again with twice as much ahead; max.message.bytes is 1 MiB by default, so nearly none does.
AHEAD_BYTES = 1 << 20
# Enough for the first batches of a section, which settle how its lines are printed.
HEAD_BYTES = 64 << 10
# Segments are megabytes long: where more lines look like the beginning of a section, payloads forge them.
SECTION_BYTES = 1 << 20
FEW_SECTIONS = 8
_SECTION = b"\nDumping "

Sink = Callable[[dict[str, "Rows | pa.Table"]], None]


@dataclass(frozen=True)
class Text:
    """Where the text of a dump file lies. Offsets are those of the decompressed text."""

    absolute: Path
    compression: str = "none"

    def open(self, offset: int = 0) -> BufferedReader:
        """The text from a byte on; only plain text can be entered behind its start."""
        if self.compression == "gzip":
            assert offset == 0, "gzip is read from its start"
            return BufferedReader(Unpacked(self.absolute), LEAF_BYTES)
        file: BufferedReader = BufferedReader(FileIO(self.absolute), LEAF_BYTES)
        file.seek(offset)
        return file


@dataclass(frozen=True)
class Survey:
    """What one pass over a part of a file shows: hashes of its blocks, its length, where its last `Dumping` line begins, how many there
    are, and what is wrong with a gzip file behind its last byte."""

    leaves: bytes
    length: int
    last_section: int | None
    sections: int = 0
    damage: str | None = None


@dataclass(frozen=True)
class Range:
    """A part of a file to read on its own.

    Attributes:
        start, stop: elements that begin in [start, stop).
        section: where the section seems to begin that is in force at `start`; None at byte 0.
    """

    start: int
    stop: int
    section: int | None = None


@dataclass(frozen=True)
class Reading:
    """What was read of a range: the bytes and states at both ends, the ledger and the signs of the file's encoding between them."""

    range: Range
    sync_byte: int
    state_in: State | None
    end_byte: int
    state_out: State | None
    ledger: Ledger = field(default_factory=Ledger)
    crlf: bool = False
    ascii_lossy: bool = False


def survey(text: Text, start: int = 0, stop: int | None = None) -> Survey:
    """Hash the blocks of a part of a file and find its last `Dumping` line.

    Args:
        text: the file.
        start: a multiple of LEAF_BYTES.
        stop: the same, or None for the end of the file.

    Raises:
        InputError: the file cannot be read.
    """
    # A `Dumping` line may lie across two blocks, or across two parts.
    overlap = len(_SECTION) - 1
    leaves, at, last, sections = [], start, None, 0
    with text.open(max(start - overlap, 0)) as file:
        # The first line of a file has no line end before it.
        tail = _read(file, overlap, text) if start else b"\n"
        while leaf := _read(file, LEAF_BYTES if stop is None else min(LEAF_BYTES, stop - at), text):
            leaves.append(hashlib.sha256(leaf).digest())
            last = _last_section(tail, leaf, at, last)
            sections += leaf.count(_SECTION)
            tail, at = (tail + leaf[-overlap:])[-overlap:], at + len(leaf)
        raw = getattr(file, "raw", None)
        damage = raw.damage if isinstance(raw, Unpacked) else None
    return Survey(b"".join(leaves), at - start, last, sections, damage)


def _last_section(tail: bytes, leaf: bytes, at: int, before: int | None) -> int | None:
    found = leaf.rfind(_SECTION)
    if found >= 0:
        return at + found + 1
    across = (tail + leaf[: len(_SECTION) - 1]).rfind(_SECTION)
    return at - len(tail) + across + 1 if across >= 0 else before


def digest(surveys: Sequence[Survey]) -> str:
    """Digest of a whole file, from the surveys of its parts in order: sha256 over the sha256 of its blocks, hex."""
    return hashlib.sha256(b"".join(part.leaves for part in surveys)).hexdigest()


def parts(size: int, range_bytes: int) -> list[tuple[int, int]]:
    """Starts and stops of the parts of a file of plain text."""
    # Parts end where blocks of the digest do, so each block is hashed by one task.
    step = max(range_bytes // LEAF_BYTES, 1) * LEAF_BYTES
    return [(start, min(start + step, size)) for start in range(0, max(size, 1), step)]


def ranges(surveys: Sequence[Survey]) -> list[Range]:
    """The ranges of a file: one for each part that was surveyed. The section in force is the newest, or the file's first where payloads
    forge sections."""
    planned: list[Range] = []
    length = sum(part.length for part in surveys)
    # A wrong guess costs a second reading, never a wrong fact: the fold rejects it.
    forged = sum(part.sections for part in surveys) > max(FEW_SECTIONS, length // SECTION_BYTES)
    start, section = 0, 0 if forged else None
    for part in surveys:
        planned.append(Range(start, start + part.length, section if start else None))
        start += part.length
        section = part.last_section if part.last_section is not None and not forged else section
    return planned


def read_range(text: Text, part: Range, *, size: int, context: FileContext, sink: Sink, state: State | None = None) -> Reading:
    """Read the elements that begin in a range, block by block.

    Args:
        text: the file.
        part: the range.
        size: length of the whole text.
        context: the file.
        sink: takes the facts of each block, by table.
        state: the state at the range's start where it is known; byte 0 has the initial one.

    Raises:
        InputError: the file became shorter since it was surveyed.
    """
    if part.start == 0:
        state = State.initial()
    guess = None if state is not None else _guess(text, part, context)
    reading: Reading | None = None
    with text.open(part.start) as file:
        buffer = _Buffer(file, text, part.start, size)
        for result in _blocks(buffer, part, context, state, guess):
            sink(result.read)
            reading = _joined(part, reading, result)
    assert reading is not None
    return reading


def fold(read: Sequence[Reading], reread: Callable[[Range, State], Reading]) -> list[Reading]:
    """The readings of one file that are true, from the left.

    Args:
        read: the readings of all ranges of the file, in order.
        reread: reads a range again, from a true byte and state.
    """
    accepted: list[Reading] = []
    byte, state = 0, State.initial()
    for reading in read:
        # Not at byte 0: an empty file has one empty range.
        if byte > 0 and byte >= reading.range.stop:
            continue  # an element that began further left covers it
        if (reading.sync_byte, reading.state_in) != (byte, state):
            reading = reread(Range(byte, reading.range.stop), state)
        accepted.append(reading)
        assert reading.state_out is not None, "a range read from a known state ends in a known state"
        byte, state = reading.end_byte, reading.state_out
    return accepted


class _Buffer:
    """The bytes of a file around the place that is read, never much more than asked for."""

    def __init__(self, file: BufferedReader, text: Text, start: int, size: int) -> None:
        self.bytes = b""
        self.base = start
        self.size = size
        self._file, self._text = file, text

    def cover(self, start: int, stop: int) -> None:
        """Hold bytes [start, stop) of the file, as far as it goes."""
        self.bytes = self.bytes[start - self.base :]
        self.base = start
        missing = min(stop, self.size) - (start + len(self.bytes))
        if missing > 0:
            self.bytes += _read(self._file, missing, self._text)
        if start + len(self.bytes) < min(stop, self.size):
            raise InputError(f"{self._text.absolute} became shorter while it was read")

    @property
    def final(self) -> bool:
        return self.base + len(self.bytes) >= self.size


def _blocks(buffer: _Buffer, part: Range, context: FileContext, state: State | None, guess: State | None) -> Iterator[RangeResult]:
    """Read a range block by block; a block that ends inside a long element is read again with more bytes ahead."""
    at, ahead = part.start, AHEAD_BYTES
    while True:
        stop = min(at + BLOCK_BYTES, part.stop)
        buffer.cover(at, stop + ahead)
        hint = guess if state is None else None
        result = parse_range(buffer.bytes, context=context, base=at, start=at, stop=stop, state=state, final=buffer.final, guess=hint)
        stuck = result.end_byte == at and at < stop
        assert not (stuck and buffer.final), f"{context.path}: nothing is read at byte {at}"
        if not stuck:
            yield result
            at, state = result.end_byte, result.state_out
            if at >= part.stop:
                return
        ahead = ahead * 2 if stuck else AHEAD_BYTES


def _guess(text: Text, part: Range, context: FileContext) -> State | None:
    if part.section is None:
        return None
    with text.open(part.section) as file:
        return probe_section(_read(file, HEAD_BYTES, text), context=context, base=part.section)


def _joined(part: Range, before: Reading | None, result: RangeResult) -> Reading:
    if before is None or before.state_in is None:
        return Reading(
            part, result.sync_byte, result.state_in, result.end_byte, result.state_out, result.ledger, result.crlf, result.ascii_lossy
        )
    return Reading(
        part,
        before.sync_byte,
        before.state_in,
        result.end_byte,
        result.state_out,
        before.ledger + result.ledger,
        before.crlf or result.crlf,
        before.ascii_lossy or result.ascii_lossy,
    )


def _read(file: BufferedReader, wanted: int, text: Text) -> bytes:
    """As many bytes as wanted, fewer only at the end of the file."""
    pieces, missing = [], wanted
    try:
        while missing > 0 and (piece := file.read1(missing)):
            pieces.append(piece)
            missing -= len(piece)
    except OSError as error:
        raise InputError(f"{text.absolute} cannot be read to its end: {error}") from error
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
