"""One window of one dump file to facts: what every reader of dump text calls.

A dump file is a row of elements: a `Dumping` line, a batch line with its record lines, a line of a sidecar, a message of the dump tool.
`parse_range` reads the elements that *begin* in a range, so ranges of one file can be read in parallel and then folded from the left:
a range is accepted when the byte and the state it began with are those its left neighbour ended with. Byte 0 is the one true start.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from mmap import mmap

import pyarrow as pa

from eo_audit.dump.fast.facts import in_text_order
from eo_audit.dump.files import console_records
from eo_audit.dump.files.identity import identify
from eo_audit.dump.files.sidecars import SIDECAR_KINDS, SidecarFile, read_sidecar
from eo_audit.dump.lines.columns import Rows, fact_table
from eo_audit.dump.lines.console import HEADS
from eo_audit.dump.lines.dialects import LONGEST_LINE, batch_line
from eo_audit.dump.lines.hashes import hashes_of
from eo_audit.dump.log.state import FileContext, Ledger, RangeResult, Section, State
from eo_audit.dump.log.text import Window
from eo_audit.dump.reader import Reader

__all__ = ["FileContext", "Ledger", "RangeResult", "Section", "State", "parse_range", "probe_section"]

Buffer = bytes | bytearray | memoryview | mmap

PARSER_VERSION = 16  # part of the identity of an ingest: facts of another parser are other facts

# Only a batch line can be a start: it prints its position, which the fold holds against its left neighbour's end.
_CANDIDATE = re.compile(rb"^(?:baseOffset: |offset: \d+ position: )", re.MULTILINE)


def parse_range(
    window: Buffer,
    *,
    context: FileContext,
    base: int,
    start: int,
    stop: int,
    state: State | None,
    final: bool,
    guess: State | None = None,
    fast: bool = True,
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
        fast: read regular stretches at once; the result is the same without, only later.
    """
    text = window if isinstance(window, bytes) else bytes(window)
    # Small, and without an element that could be entered in the middle.
    if context.kind_hint in SIDECAR_KINDS:
        return _whole_file(text, context, base=base, final=final)
    if context.kind_hint in HEADS:
        return _on_console(text, context, base=base, stop=stop, state=state or State.initial(), final=final)
    if state is None:
        start, state = _synchronised(text, base=base, start=start, stop=stop, guess=guess)
    if state is None:
        return RangeResult(stop, None, stop, None, {}, Ledger())
    reader = Reader(Window(text, final), context, base=base, state=state, fast=fast)
    end = base + reader.read(start - base, stop - base)
    facts = _facts(reader)
    lossy = reader.facts.ascii_lossy or (reader.fast is not None and reader.fast.ascii_lossy)
    return RangeResult(start, state, end, reader.state(), facts, reader.ledger(), reader.window.crlf_seen, lossy)


def _synchronised(text: bytes, *, base: int, start: int, stop: int, guess: State | None) -> tuple[int, State | None]:
    """The first byte of the range where reading can begin, and the state there if what stands there is genuine."""
    if guess is None or guess.section is None or guess.section.identity.kind != "log":
        return stop, None
    # The line may begin in the range and end behind it: it belongs to the range it begins in.
    for candidate in _CANDIDATE.finditer(text, start - base, min(stop - base + LONGEST_LINE, len(text))):
        at = candidate.start()
        if at >= stop - base:
            break
        if line := batch_line(text, at):
            return base + at, replace(guess, position=line.position)
    return stop, None


def _facts(reader: Reader) -> dict[str, Rows | pa.Table]:
    # All keys and values of a window in one call: `keyed_hashes` works on thousands at once.
    spans = [span for both in reader.facts.spans for span in both]
    hashes = iter(hashes_of(reader.window.text, spans, reader.context.salt))
    for row, key, value in zip(reader.facts.rows.get("records", []), hashes, hashes, strict=True):
        row["key_hash"], row["value_hash"] = key, value
    read = _filled(reader.facts.rows)
    if reader.fast is not None:
        reader.fast.finish()
        for name, taken in reader.fast.tables.items():
            if taken:
                read[name] = in_text_order([*taken, *([fact_table(name, reader.facts.rows[name])] if name in read else [])])
    return read


def _filled(rows: Mapping[str, Rows]) -> dict[str, Rows | pa.Table]:
    return {table: content for table, content in rows.items() if content}


def _whole_file(text: bytes, context: FileContext, *, base: int, final: bool) -> RangeResult:
    """A checkpoint, listing, manifest or file of messages: one section, read at once."""
    state = State.initial()
    if base > 0 or not final:
        return RangeResult(base, state, base, state, {}, Ledger())
    identity = identify(context.cluster, manifest=context.manifest, dumped_path=None, own=context.own)
    facts = read_sidecar(text, SidecarFile(context.dump_file_id, context.kind_hint, identity))
    section = [facts.section | {"ingest_id": context.ingest_id}]
    return RangeResult(0, state, len(text), state, _filled({"dump_sections": section, **facts.rows}), Ledger(**facts.bytes_by_owner))


def _on_console(text: bytes, context: FileContext, *, base: int, stop: int, state: State, final: bool) -> RangeResult:
    """Records of Kafka's own topics on a console, from the window's first byte on."""
    formatter = console_records.ANOTHER_TOOL if state.unread_reason == console_records.ANOTHER_TOOL else context.kind_hint
    elements = console_records.read_block(text, 0, stop - base, final=final, formatter=formatter)
    end, reason = (elements[-1].end, elements[-1].reason) if elements else (0, state.unread_reason)
    rows = console_records.rows_of(elements, dump_file_id=context.dump_file_id, base=base, cluster=context.cluster)
    if final and end == len(text):
        whose = identify(context.cluster, manifest=context.manifest, dumped_path=None, own=context.own)
        is_cut = reason == "truncated_record"
        section = console_records.section_of(whose, dump_file_id=context.dump_file_id, length=base + end, is_cut=is_cut)
        rows["dump_sections"] = [section | {"ingest_id": context.ingest_id}]
    ledger = Counter[str]()
    for element in elements:
        ledger[element.owner] += element.end - element.at
    behind = replace(State.initial(), unread_reason=reason or None)
    return RangeResult(base, state, base + end, behind, _filled(rows), Ledger(**ledger), crlf=b"\r\n" in text[:end])


def probe_section(head: Buffer, *, context: FileContext, base: int) -> State:
    """The state behind the first batches of the section whose `Dumping` line is at `base`: a guess for ranges that begin inside it.

    Args:
        head: file bytes from `base` on, some 64 KiB.
        context: the file.
        base: file offset of the `Dumping` line.
    """
    text = head if isinstance(head, bytes) else bytes(head)
    reader = Reader(Window(text, final=False), context, base=base, state=State.initial())
    reader.read(0, len(text))
    state = reader.state()
    # Only what the head of a section settles; positions and debts of the batches there are not those of the range.
    return State(section=state.section, crlf=state.crlf)
