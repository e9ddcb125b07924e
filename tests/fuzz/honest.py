"""Would an honest tool print this? A proof by construction: the numbers of the facts are printed again and compared byte for byte.

A damaged text that is, as it stands, the print of an honest log tells nobody that it was damaged. To claim that, a stretch of text must be

- printed again from nothing but the numbers of its facts and the bytes of its keys, payloads and header keys, without a byte left over;
- a log that brokers write: each batch at the position where the one before ends, offsets that grow, as many records as the batch says,
  with the sequences and offsets that follow from the batch line, in no more bytes than it has; keys and payloads of the sizes that are
  printed, or all through a decoder of somebody's own, which prints what it likes;
- the whole of a section, or all of it from a line on that is the tool's own, to its end or for as far as the reader looks ahead.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from eo_audit.dump.log.ahead import HIDDEN
from eo_audit.dump.log.sections import UNKNOWN_DECODER
from eo_audit.dump.parse import RangeResult
from tests.fuzz.mutants import TOOL, Mutant
from tests.support.dump_text import varint

Row = dict[str, Any]
_SECTION = re.compile(rb"Dumping (?![^\r\n]*Dumping )(?:/[^/\r\n\0]+)+\.log\r?\n(?:Log s|S)tarting offset: \d+\r?(?:\n|\Z)")
_MARKER = re.compile(
    rb"\| offset: \d+ [^\n]*?ey[sS]ize: 4 value[sS]ize: 6[^\n]* headerKeys: \[\] endTxnMarker: (?:COMMIT|ABORT) coordinatorEpoch: \d+\r?\n?"
)
_STACK = re.compile(rb'Exception in thread "main" [\w.$]+(?:: [^\n]*)?\r?(?:\n(?:\tat [^\s()]+(?:\([^()\n]*\))?\r?(?:\n|\Z))*|\Z)')
_ANCHORS = 3  # lines of the tool's own before a fact from which its text is looked at
_OVERHEAD = {0: 26, 1: 34, 2: 61}  # bytes of a batch beside its records, of a message of magic 0 or 1


@dataclass(frozen=True)
class Element:
    """A fact, with the bytes of text it owns."""

    start: int
    end: int
    table: str
    row: Row


def is_honest(made: Mutant, result: RangeResult, at: int) -> bool:
    """Is the fact at a byte in a stretch of text that an honest tool prints?"""
    stretch = _stretch(made, result, at)
    if stretch is None:
        return False
    elements = _elements(result)
    # What stands before a line of the tool's own says nothing of what stands behind it, and may be what was damaged.
    own = [one.start for one in elements if stretch[0] < one.start <= at and one.table == "batches" and made.origins[one.start] == TOOL]
    decoded = {row["byte_offset"] for row in _rows(result, "dump_sections") if row["decoder"] == UNKNOWN_DECODER}
    return any(_Print(made.text, elements, stretch[1], decoded).holds(begin) for begin in (stretch[0], *own[-_ANCHORS:]))


def _stretch(made: Mutant, result: RangeResult, at: int) -> tuple[int, int] | None:
    """The text around a byte, from where reading began to where it stopped; None where that is too soon to tell."""
    unread = [(row["byte_offset"], row["byte_offset"] + row["length"]) for row in _rows(result, "unread_spans")]
    begin = max((end for _, end in unread if end <= at), default=0)
    stop = min((start for start, _ in unread if start > at), default=len(made.text))
    if begin and made.origins[begin] != TOOL:
        return None
    sections = sorted(row["byte_offset"] for row in _rows(result, "dump_sections"))
    behind = [start for start in sections if at < start < stop]
    if not behind and stop < len(made.text) and stop < at + HIDDEN:
        return None
    return max([begin, *(start for start in sections if start < at)]), behind[0] if behind else stop


def _rows(result: RangeResult, table: str) -> list[Row]:
    return result.facts[table].to_pylist() if table in result.facts else []


def _elements(result: RangeResult) -> list[Element]:
    found = [
        Element(row["byte_offset"], row["byte_offset"] + row["length"], table, row)
        for table in ("batches", "records", "tool_messages")
        for row in _rows(result, table)
    ]
    return sorted(found, key=lambda element: element.start)


class _Print:
    """Prints the facts of a stretch of text again, from its first byte to its last."""

    def __init__(self, text: bytes, elements: list[Element], end: int, decoded: Container[int]) -> None:
        self.text, self.end, self.decoded = text, end, decoded
        self.is_decoded = False
        self.at: dict[int, Element] = {element.start: element for element in elements}
        self.position: int | None = None
        self.offset: int | None = None
        self.deep: bool | None = None
        self.printed: bool | None = None
        self.line_end = b"\n"
        self.ascii = text.isascii()

    def holds(self, begin: int) -> bool:
        """Is all of it what an honest tool prints?"""
        at: int | None = begin
        while at is not None and at < self.end:
            at = self._element(at)
        return at == self.end

    def _element(self, at: int) -> int | None:
        """Where the element at a byte ends; None where it is not honest."""
        if found := _SECTION.match(self.text, at):
            self.position, self.offset, self.deep, self.printed = 0, None, None, None
            self.is_decoded = at in self.decoded
            return found.end()
        element = self.at.get(at)
        if element is None:
            return None
        if element.table == "tool_messages":
            return self._death(element)
        return self._batch(element) if element.table == "batches" else None

    def _death(self, element: Element) -> int | None:
        """Where the message ends with which the tool died."""
        dies = _STACK.fullmatch(self.text, element.start, element.end)
        return element.end if dies and (element.end == self.end or _SECTION.match(self.text, element.end)) else None

    def _batch(self, element: Element) -> int | None:
        row = element.row
        line_end = self.text.find(b"\n", element.start) + 1 or len(self.text)
        self.line_end = b"\r\n" if self.text.endswith(b"\r\n", 0, line_end) else b"\n"
        if self.text[element.start : line_end].rstrip(b"\r\n") not in _batch_lines(row) or not self._goes_on(row):
            return None
        self.position, self.offset = row["position"] + row["size_bytes"], row["last_offset"]
        if line_end == element.end == len(self.text):  # a file that was cut at the end of a line
            return line_end
        if row["is_control"]:
            marker = _MARKER.fullmatch(self.text, line_end, element.end)
            shown = marker is not None
            if not (shown or element.end == line_end) or self.deep is (not shown):
                return None
            self.deep = shown
            return element.end
        return self._records(row, line_end)

    def _goes_on(self, row: Row) -> bool:
        """Does the batch stand where the one before it ended, with numbers that fit each other?"""
        chained = self.position in (None, row["position"]) and (self.offset is None or row["last_offset"] > self.offset)
        if row["magic"] < 2:
            return chained
        span = row["last_offset"] - row["base_offset"] + 1
        first, last = (-1 if row[name] is None else row[name] for name in ("base_sequence", "last_sequence"))
        fits = last == (-1 if first < 0 else (first + span - 1) % 2**31) and 0 <= row["count"] <= span
        return chained and fits and (self.offset is None or row["base_offset"] > self.offset)

    def _records(self, row: Row, at: int) -> int | None:
        """Where the records behind a batch line end."""
        owed = row["count"] if row["magic"] == 2 else 1
        shown = at in self.at and self.at[at].table == "records"
        if self.deep is None and owed:
            self.deep = shown
        if not self.deep:
            return None if shown else at
        used, before = 0, -1
        for _ in range(owed):
            record = self.at.get(at)
            if record is not None and record.table == "tool_messages":  # between two records as well as between two batches
                return self._death(record)
            if record is None or record.table != "records" or not self._is_next(record.row, row, before):
                return None
            size = self._record(record, row)
            if size is None:
                return None
            used, before, at = used + size, record.row["offset"], record.end
        return at if row["codec"] != "none" or used + _OVERHEAD[row["magic"]] <= row["size_bytes"] else None

    def _is_next(self, record: Row, batch: Row, before: int) -> bool:
        if batch["magic"] < 2:
            return bool(record["offset"] == batch["last_offset"])
        dense = batch["count"] == batch["last_offset"] - batch["base_offset"] + 1
        follows = record["offset"] == (batch["base_offset"] if before < 0 else before + 1) if dense else record["offset"] > before
        first = -1 if batch["base_sequence"] is None else batch["base_sequence"]
        sequence = -1 if first < 0 else (first + record["offset"] - batch["base_offset"]) % 2**31
        return bool(follows and (-1 if record["sequence"] is None else record["sequence"]) == sequence)

    def _record(self, element: Element, batch: Row) -> int | None:
        """Bytes of a record at least; None where its text is not what the tool prints."""
        row, text = element.row, self.text[element.start : element.end].removesuffix(self.line_end)
        head = next((found for found in (re.match(one, text) for one in _record_heads(row, batch)) if found), None)
        if head is None:
            return None
        key, value = row["key_size"], row["value_size"]
        rest = text[head.end() :]
        # A release up to 2.3 prints no key beside a null value.
        forms = [(key, value), *([(-1, -1)] if self.printed is not True or value < 0 else [])]
        forms = [form for form in forms if self.printed is not False or form == (-1, -1)]
        found, shown = next(
            ((one, form != (-1, -1)) for form in forms if (one := self._headers(rest, batch, form)) is not None), (None, False)
        )
        if found is None:
            return None
        self.printed = shown if self.printed is None and value >= 0 else self.printed
        if batch["magic"] < 2:
            return max(key, 0) + max(value, 0)
        body = 3 + varint(row["offset"] - batch["base_offset"]) + varint(key) + max(key, 0) + varint(value) + max(value, 0)
        return varint(body) + body + found

    def _headers(self, rest: bytes, batch: Row, form: tuple[int, int]) -> int | None:
        """Bytes of header keys before a key and a payload of these sizes (below 0: not printed); None where the text holds no such ones."""
        ends = [found.start() for found in re.finditer(rb"\]", rest)] if batch["magic"] == 2 else [-1]
        for close in ends:
            starts = [close + 1]
            for name, size in zip((b" key: ", b" payload: "), form, strict=True):
                if size >= 0:
                    begins = [start + len(name) for start in starts if rest.startswith(name, start)]
                    last = name == b" payload: " or form[1] < 0
                    stops = [len(rest)] if last else [found.start() for found in re.finditer(b" payload: ", rest)]
                    starts = [stop for stop in stops if any(self._stands_for(rest[begin:stop], size) for begin in begins if begin <= stop)]
            if len(rest) in starts:
                return max(close, 0) - 2 * rest.count(b"\xef\xbf\xbd", 0, max(close, 0))
        return None

    def _stands_for(self, text: bytes, size: int) -> bool:
        """Is a text what so many bytes print? U+FFFD stands for one to three of them; `?` for up to four, where nothing shows UTF-8."""
        fits = len(text) - 2 * text.count(b"\xef\xbf\xbd") <= size <= len(text) + (3 * text.count(b"?") if self.ascii else 0)
        return self.is_decoded or fits


def _batch_lines(row: Row) -> set[bytes]:
    """The batch line of each release for these numbers."""
    codecs = {row["codec"], row["codec"].upper()}
    valid, kind = str(row["crc_valid"]).lower(), f"{row['timestamp_type']}: {row['max_timestamp_ms']}"
    behind = [
        f"size: {row['size_bytes']} magic: {row['magic']} compresscodec: {codec} crc: {row['crc']} isvalid: {valid}" for codec in codecs
    ]
    if row["magic"] < 2:
        return {f"offset: {row['last_offset']} position: {row['position']} {kind} {one}".encode() for one in behind}
    names = ("base_sequence", "last_sequence", "producer_id", "producer_epoch", "partition_leader_epoch")
    values = [-1 if row[name] is None else row[name] for name in names]
    front = f"baseOffset: {row['base_offset']} lastOffset: {row['last_offset']} count: {row['count']} baseSequence: {values[0]} "
    front += f"lastSequence: {values[1]} producerId: {values[2]} producerEpoch: {values[3]} partitionLeaderEpoch: {values[4]} "
    front += f"isTransactional: {str(row['is_transactional']).lower()} isControl: {str(row['is_control']).lower()} "
    horizon = row["delete_horizon_ms"]
    horizons = ("deleteHorizonMs: OptionalLong.empty ", "") if horizon is None else (f"deleteHorizonMs: OptionalLong[{horizon}] ",)
    return {f"{front}{one}position: {row['position']} {kind} {two}".encode() for one in horizons for two in behind}


def _record_heads(row: Row, batch: Row) -> list[bytes]:
    """Patterns of the record line of each release for these numbers, up to its header keys."""
    time = f"{batch['timestamp_type']}: {row['timestamp_ms']}"
    sizes = [
        f"{key}: {row['key_size']} {value}: {row['value_size']}" for key, value in (("keySize", "valueSize"), ("keysize", "valuesize"))
    ]
    sequence = -1 if row["sequence"] is None else row["sequence"]
    tail = rf" sequence: {sequence} headerKeys: \[" if batch["magic"] == 2 else r"(?: crc: \d+ isvalid: true| isValid: true crc: \d+\}?)"
    superset = (
        rf"\| offset: {row['offset']} isValid: true crc: (?:null|\d+) {sizes[0]} {time} baseOffset: [^\n]*? position: {batch['position']}"
    )
    return [head.encode() for head in (*(rf"\| offset: {row['offset']} {time} {one}{tail}" for one in sizes), superset + tail)]
