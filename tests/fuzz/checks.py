"""What must be true of every reading of every text."""

import io
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eo_audit.dump import ranges
from eo_audit.dump.fast import reader as kernel_reader
from eo_audit.dump.files.identity import parse_path
from eo_audit.dump.lines.columns import Rows, fact_tables
from eo_audit.dump.log.state import Ledger
from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range
from tests.fuzz.coordinator import COMMITS, TRANSACTIONS
from tests.fuzz.honest import is_honest
from tests.fuzz.mutants import DATA, TOOL, Mutant

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1)
IN_RANGES = 0.4  # of the mutants are read in ranges too: that costs the most
MOST_RANGES = 8
SIZE_KNOWN = 0.5  # of the undamaged mutants are read with the size of their segment
_GENUINE = re.compile(
    rb"(?:baseO|o)ffset: [^\n]* position: (?P<position>\d+) [^\n]* size: (?P<size>\d+) magic: \d compresscodec: (?P<codec>\w+)"
)
_HEAD = re.compile(rb"(?:Dumping [^\r\n]*|(?:Log s|S)tarting offset: \d+)?\r?\n")
# In the head of a text, before its first batch line, nothing shows a record whose payload it could be.
_HEADS = {
    "dump_sections": "a path from a payload, in the head of a text",
    "tool_messages": "a message from a payload, in the head of a text",
}
OWNERS = ("batches", "records", "producer_snapshots", "aborted_transactions", "tool_messages", "unread_spans")
SAID = ("dump_sections", "batches", "records", "tool_messages", "producer_snapshots", "aborted_transactions")


@dataclass(frozen=True)
class Fault:
    """A promise that a reading broke: its kind, and where or what."""

    kind: str
    what: str


class InMemory(ranges.Text):
    """A dump file that is no file."""

    def __init__(self, text: bytes) -> None:
        super().__init__(Path("memory"))
        object.__setattr__(self, "text", text)

    def open(self, offset: int = 0) -> io.BytesIO:  # type: ignore[override]
        file = io.BytesIO(self.text)  # type: ignore[attr-defined]
        file.seek(offset)
        return file


def faults(made: Mutant, seed: int) -> Iterator[Fault]:
    """All broken promises of one mutant; sizes of blocks and ranges are drawn from the seed."""
    rng = random.Random(seed)
    known = _dumped_bytes(made) if made.undamaged and rng.random() < SIZE_KNOWN else None
    context = replace(context_of(made), dumped_bytes=known)
    with sizes(kernel_reader, LEAST_BYTES=1, STRETCH_BYTES=rng.choice((1 << 22, 3000)), AHEAD_BYTES=rng.choice((128 << 10, 700))):
        fast, exact = (_read(made.text, fast=fast, context=context) for fast in (True, False))
        yield from _ledger(made, exact)
        yield from _invented(made, exact, size_known=known is not None)
        if different := _different(fast.facts, exact.facts, ledgers=(fast.ledger, exact.ledger)):
            yield Fault("fast and careful reader differ", different)
        elif fast.state_out != exact.state_out:
            yield Fault("fast and careful reader differ", "state")
        if rng.random() > IN_RANGES:
            return
        ledger, tables = _in_ranges(made.text, rng, context)
        if different := _different(tables, exact.facts, ledgers=(ledger, exact.ledger)):
            yield Fault("facts depend on blocks", different)


def context_of(made: Mutant) -> FileContext:
    """What is known of the file: its own folders name the coordinators' topics too, so that a cut head leaves their decoders known."""
    topic = {TRANSACTIONS: "__transaction_state-3", COMMITS: "__consumer_offsets-5"}.get(made.made_by[0])
    path = f"broker-1/{topic}/00000000000000000000.log.txt"
    return CONTEXT if topic is None else FileContext("cluster", path, 1, own=parse_path(path))


def _dumped_bytes(made: Mutant) -> int | None:
    """Size of the segment that an undamaged text prints."""
    for start in reversed(made.line_starts()):
        found = _GENUINE.match(made.text, start) if made.origins[min(start, len(made.origins) - 1)] == TOOL else None
        if found:
            return int(found["position"]) + int(found["size"])
    return None


def _read(text: bytes, *, fast: bool, context: FileContext = CONTEXT) -> RangeResult:
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True, fast=fast)


def _ledger(made: Mutant, result: RangeResult) -> Iterator[Fault]:
    """Every byte has one owner."""
    size = len(made.text)
    if (result.end_byte, result.ledger.total) != (size, size):
        yield Fault("ledger", f"{result.end_byte} read, {result.ledger.total} owned, {size} bytes")
    spans = [_spans(result.facts[name]) for name in OWNERS if name in result.facts]
    if not spans:
        return
    # The line of a batch's first record may be the batch's own, as up to 2.1: the same bytes for both, which are counted once.
    owned = np.unique(np.concatenate(spans), axis=0)
    if (owned[1:, 0] < owned[:-1, 1]).any() or (owned[:, 1] < owned[:, 0]).any() or owned[-1, 1] > size:
        yield Fault("ledger", "spans overlap")
    if int((owned[:, 1] - owned[:, 0]).sum()) + result.ledger.preamble != size:
        yield Fault("ledger", "spans leave bytes out")


def _spans(table: pa.Table) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    start, length = table["byte_offset"].to_numpy(), table["length"].to_numpy()
    return np.stack([start, start + length], axis=1)


def _invented(made: Mutant, result: RangeResult, *, size_known: bool) -> Iterator[Fault]:
    """No fact begins in somebody's data, as far as a text shows it: see `_is_last`, `_is_head`, and `honest` for what nobody can know."""
    for name in SAID:
        if name not in result.facts:
            continue
        table = result.facts[name]
        starts = table["byte_offset"].to_numpy()
        wrong = np.flatnonzero(made.origins[np.minimum(starts, len(made.origins) - 1)] == DATA)
        if name == "dump_sections":  # a file has a section from its first byte on, whoever wrote that byte
            first = 3 if made.text.startswith(b"\xef\xbb\xbf") else 0
            wrong = wrong[(starts[wrong] > first) | table["dumped_path"].is_valid().to_numpy()[wrong]]
        if not len(wrong):
            continue
        where = f"{name} at {starts[wrong][:5].tolist()}"
        at = [int(start) for start in starts[wrong]]
        if not made.undamaged and all(is_honest(made, result, start) for start in at):
            yield Fault("a fact from a payload, in text that an honest tool prints", where)
        elif not size_known and all(_is_last(made, start) for start in at):
            yield Fault("a fact from a header key, behind the last line of a log", where)
        elif made.undamaged:
            yield Fault("a fact from a payload", where)
        elif name in _HEADS and all(_is_head(made, start) for start in at):
            yield Fault(_HEADS[name], where)
        elif (result.ledger.unread or "flat" in made.made_by) and not any(_goes_on(made, start) for start in at):
            # A log at whose end no size is known ends, behind damage, where its last batch line says: whoever printed that.
            yield Fault("a fact from a payload, behind damage in the last batch of a log", where)
        else:
            yield Fault("a fact from a payload, after damage", where)


def _is_head(made: Mutant, at: int) -> bool:
    """Are there only lines before a byte that name a segment? No batch stands there whose payload it could be: the text shows nothing."""
    return all(_HEAD.fullmatch(line) for line in made.text[:at].removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True))


def _is_last(made: Mutant, at: int) -> bool:
    """Is a byte in the last batch of a log, and that compressed?

    Behind the last batches of a log header keys of a compressed batch can say anything: the same text is printed where they are none and
    the batches in them are real. Where a batch line follows, it claims the position that the forged one claims.
    """
    if _goes_on(made, at):
        return False
    before = (_GENUINE.match(made.text, start) for start in reversed(made.line_starts()) if start < at and made.origins[start] == TOOL)
    last = next((found for found in before if found), None)
    forged = made.made_by[0] == "header" or "append_other" in made.made_by
    if "flat" in made.made_by:
        return forged  # no size shows how much the last batch of a flat dump holds
    return forged and last is not None and last["codec"].lower() != b"none"


def _goes_on(made: Mutant, at: int) -> bool:
    """Does a batch line of the tool's own stand behind a byte, in the same section?"""
    for start in made.line_starts():
        if at < start < len(made.text) and made.origins[start] == TOOL:
            if made.text.startswith((b"baseOffset: ", b"offset: "), start):
                return True
            if made.text.startswith(b"Dumping ", start):
                return False
    return False


def _different(facts: dict[str, pa.Table], others: dict[str, pa.Table], *, ledgers: tuple[Ledger, Ledger]) -> str:
    if ledgers[0] != ledgers[1]:
        return f"ledger {ledgers}"
    if facts.keys() != others.keys():
        return f"tables {sorted(facts.keys() ^ others.keys())}"
    return ", ".join(name for name in sorted(facts) if not _ordered(facts[name]).equals(_ordered(others[name])))


def _ordered(table: pa.Table) -> pa.Table:
    return table.sort_by([("byte_offset", "ascending"), ("length", "ascending")]).combine_chunks()


def _in_ranges(text: bytes, rng: random.Random, context: FileContext) -> tuple[Ledger, dict[str, pa.Table]]:
    """The same text in ranges and blocks of any size, folded."""
    drawn = {
        "LEAF_BYTES": rng.choice((64, 1000, 5000)),
        "BLOCK_BYTES": rng.choice((200, 700, 5000, 100_000)),
        "AHEAD_BYTES": rng.choice((10, 300, 5000)),
        "HEAD_BYTES": rng.choice((2000, 64 << 10)),
        "SECTION_BYTES": rng.choice((1 << 20, 500)),
        "FEW_SECTIONS": rng.choice((8, 1000)),
    }
    file, taken = InMemory(text), dict[int, dict[str, list[pa.Table]]]()

    def read(part: ranges.Range, state: State | None = None) -> ranges.Reading:
        got: defaultdict[str, list[pa.Table]] = defaultdict(list)

        def sink(facts: Mapping[str, Rows | pa.Table]) -> None:
            for name, table in fact_tables(facts).items():
                got[name].append(table)

        reading = ranges.read_range(file, part, size=len(text), context=context, sink=sink, state=state)
        kept.append(reading)
        taken[id(reading)] = got
        return reading

    kept: list[ranges.Reading] = []  # alive, so that their ids stay theirs
    with sizes(ranges, **drawn):
        # More than a few ranges of one text show nothing more, and each looks at the head of its section again.
        parts = ranges.parts(len(text), max(rng.choice((300, 2000, 9000, 30_000)), len(text) // MOST_RANGES))
        planned = ranges.ranges([ranges.survey(file, start, stop) for start, stop in parts])
        accepted = ranges.fold([read(part) for part in planned], read)
    tables: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for reading in accepted:
        for name, pieces in taken[id(reading)].items():
            tables[name] += pieces
    return sum((reading.ledger for reading in accepted), Ledger()), {name: pa.concat_tables(pieces) for name, pieces in tables.items()}


@contextmanager
def sizes(module: object, **values: int) -> Iterator[None]:
    """Sizes of a module, for a while."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)
