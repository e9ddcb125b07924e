"""All batch and record lines of a stretch of dump text at once, as columns.

A line is a candidate for its looks: it may stand inside a payload. Which lines are the tool's own is decided elsewhere; here each is read
as if it were.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eo_audit.dump.fast.fields import Dialect, LineColumns, read_lines
from eo_audit.dump.lines.grammar import BATCH, LEGACY_BATCH, RECORD
from eo_audit.dump.lines.scan import Bits, Cursors, Ints, Octets
from eo_audit.dump.log.framing import HEADERS_SEARCHED

MARKERS = ("COMMIT", "ABORT")
NO_SPAN = -1

_NEAR = 64  # bytes: header keys are rarely longer
_LATER_ENDS = 3  # header keys with more closing brackets than that are left to the exact reader
_B, _BAR, _D, _O = (ord(letter) for letter in "b|Do")


@dataclass(frozen=True)
class Lines:
    """Where candidates start: batch lines, record lines, and others that may matter (`Dumping`, magic 0 and 1); and all lines."""

    all: Ints
    batches: Ints
    records: Ints
    others: Ints


@dataclass
class RecordColumns:
    """Record lines, and the reading of their text.

    Attributes:
        line: up to their header keys.
        end: behind the line end.
        plain, marks: the text has the form of a data record, or of a marker.
        key, value: where their texts start (NO_SPAN: none).
        headers: the length of the header keys.
        marker, epoch: of a marker.
    """

    line: LineColumns
    headers: Ints
    key: Ints
    value: Ints
    end: Ints
    plain: Bits
    marks: Bits
    marker: NDArray[np.int32]
    epoch: Ints

    @property
    def start(self) -> Ints:
        """Where the lines start."""
        return self.line.start

    @property
    def ok(self) -> Bits:
        """Are they record lines?"""
        return self.line.ok

    @property
    def offset(self) -> Ints:
        """Their offsets."""
        return self.line.numbers["offset"]

    @property
    def key_size(self) -> Ints:
        """Bytes of their keys, -1 for null."""
        return self.line.numbers["key_size"]

    @property
    def value_size(self) -> Ints:
        """Bytes of their values, -1 for null."""
        return self.line.numbers["value_size"]


def find_lines(text: Octets) -> Lines:
    """The candidates of a stretch of text that begins with a line."""
    newlines = np.flatnonzero(text.bytes[: text.size] == ord("\n"))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), newlines + 1))
    # One byte rules out most lines of a payload before eight are compared.
    first = text.byte(starts)
    others = (_starting(text, starts[first == _D], b"Dumping "), _starting(text, starts[first == _O], LEGACY_BATCH.beginning))
    return Lines(
        all=starts,
        batches=_starting(text, starts[first == _B], BATCH.beginning),
        records=_starting(text, starts[first == _BAR], RECORD.beginning),
        others=np.sort(np.concatenate(others)),
    )


def _starting(text: Octets, starts: Ints, literal: bytes) -> Ints:
    return starts[text.stands(literal, starts)]


def read_batches(text: Octets, starts: Ints, dialect: Dialect) -> LineColumns:
    """Candidates for batch lines as batch lines of magic 2 in one dialect."""
    lines = read_lines(text, starts, BATCH, dialect, behind=dialect.line_end)
    return replace(lines, ok=lines.ok & _follows(lines.numbers))


def _follows(numbers: dict[str, Ints]) -> Bits:
    """Whether the last sequence is the one that follows from the first (`dialects.batch_line`)."""
    first = numbers["base_sequence"]
    last = (first + numbers["last_offset"] - numbers["base_offset"]) & ((1 << 31) - 1)
    follows: Bits = numbers["last_sequence"] == np.where(first < 0, -1, last)
    return follows


def read_heads(text: Octets, starts: Ints, dialect: Dialect) -> LineColumns:
    """Candidates for record lines as such of magic 2 in one dialect, up to their header keys."""
    return read_lines(text, starts, RECORD, dialect)


def read_records(text: Octets, starts: Ints, dialect: Dialect) -> RecordColumns:
    """Candidates for record lines as such of magic 2 in one dialect, with the first `]` taken for the end of the header keys."""
    line = read_heads(text, starts, dialect)
    begin, key_size, value_size = line.end, line.numbers["key_size"], line.numbers["value_size"]
    close = _header_ends(text, begin, line.ok)
    headers = close - begin - 1
    key, value, end, plain = _payloads(text, close, key_size, value_size, dialect)
    if dialect.crlf:  # a CRLF inside a payload may stand for two bytes or for one: the exact reader decides
        plain &= _line_ends(text, starts) == end
    plain &= line.ok
    # Only lines that are no data record are looked at: of millions some are markers.
    marks, marker, epoch = read_markers(text, close, line.ok & (headers == 0) & ~plain, dialect, end)
    records = RecordColumns(line, headers, key, value, end, plain, marks, marker, epoch)
    if not dialect.crlf:
        _try_later_ends(text, records, close, dialect)
    records.plain &= records.headers <= HEADERS_SEARCHED
    # Header keys that hold what looks like a record line are left to the exact reader.
    records.plain[:-1] &= starts[1:] >= (begin + records.headers)[:-1]
    return records


def _try_later_ends(text: Octets, records: RecordColumns, close: Ints, dialect: Dialect) -> None:
    """Header keys that contain `]`: take the next few for their end, in turn, where what is behind the first does not fit."""
    for _ in range(_LATER_ENDS):
        odd = np.flatnonzero(records.ok & ~records.plain & ~records.marks & (records.end <= text.size))
        if len(odd) == 0:
            return
        begin = close[odd]
        close[odd] = _header_ends(text, begin, np.ones(len(odd), dtype=bool))
        key, value, end, fits = _payloads(text, close[odd], records.key_size[odd], records.value_size[odd], dialect)
        found = odd[fits]
        records.headers[found] += close[found] - begin[fits]
        records.key[found], records.value[found], records.end[found], records.plain[found] = key[fits], value[fits], end[fits], True
        others = odd[~fits]
        records.headers[others] += close[others] - begin[~fits]


def _line_ends(text: Octets, starts: Ints) -> Ints:
    """Behind the first line end of each line."""
    newlines = np.append(np.flatnonzero(text.bytes[: text.size] == ord("\n")), text.size)
    behind: Ints = newlines[np.searchsorted(newlines[:-1], starts)] + 1
    return behind


def _header_ends(text: Octets, begin: Ints, ok: Bits) -> Ints:
    """Behind the first `]` of each line's header keys; behind the text where there is none."""
    odd = np.flatnonzero(ok & (text.byte(begin) != ord("]")))
    close = begin + 1
    if len(odd):
        # Only of lines that have header keys at all: nearly all print `[]`.
        near = text.rows(_NEAR)[begin[odd]] == ord("]")
        close[odd] += near.argmax(axis=1)
        far = odd[~near.any(axis=1)]
        if len(far):
            # One search through the whole stretch, for lines that are rare.
            brackets = np.append(np.flatnonzero(text.bytes[: text.size] == ord("]")), text.size)
            close[far] = brackets[np.searchsorted(brackets[:-1], begin[far])] + 1
    return close


def _payloads(text: Octets, close: Ints, key_size: Ints, value_size: Ints, dialect: Dialect) -> tuple[Ints, Ints, Ints, Bits]:
    """Starts of keys and values, ends of the lines, and whether all stands where the sizes say."""
    at, fits = close, np.ones(len(close), dtype=bool)
    spans = []
    for separator, size in ((b" key: ", key_size), (b" payload: ", value_size)):
        there = (size >= 0) if dialect.printed else np.zeros(len(close), dtype=bool)
        start = at + len(separator)
        fits &= ~there | text.stands(separator, at)
        spans.append(np.where(there, start, NO_SPAN))
        # A size inside a payload may be anything: the cursor stays within the text, where the comparison fails.
        at = np.minimum(np.where(there, start + size, at), text.size)
    # The sizes must lead to a line end, or the record ended elsewhere.
    fits &= (at < text.size) & text.stands(dialect.line_end, at)
    return spans[0], spans[1], at + len(dialect.line_end), fits


def read_markers(text: Octets, close: Ints, possible: Bits, dialect: Dialect, end: Ints) -> tuple[Bits, NDArray[np.int32], Ints]:
    """Which lines end in ` endTxnMarker: ...`, with its type and coordinator epoch; `end` is set for them."""
    marks, marker, epoch = np.zeros(len(close), dtype=bool), np.full(len(close), -1, dtype=np.int32), np.zeros(len(close), dtype=np.int64)
    some = np.flatnonzero(possible)
    some = some[text.stands(b" endTxnMarker: ", close[some])]
    if len(some):
        line = Cursors(text, close[some] + len(b" endTxnMarker: "))
        marker[some] = line.choice([name.encode() for name in MARKERS])
        line.literal(b" coordinatorEpoch: ")
        epoch[some] = line.number(digits=10, bits=31, signed=True)
        line.literal(dialect.line_end)
        # No coordinator has an epoch below 0, and nobody else commits (`dialects.CONTROL`).
        end[some], marks[some] = line.at, line.ok & ((marker[some] > 0) | (epoch[some] >= 0))
    return marks, marker, epoch
