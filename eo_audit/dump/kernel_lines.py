"""All batch and record lines of a stretch of dump text at once, as columns.

A line is a candidate for its looks: it may stand inside a payload. Which lines are the tool's own is decided elsewhere; here each is read
as if it were.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from eo_audit.dump.framing import HEADERS_SEARCHED
from eo_audit.dump.kernel_scan import Bits, Cursors, Ints, Octets

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MARKERS = ("COMMIT", "ABORT")
NO_SPAN = -1

_BOOLEANS = (b"false", b"true")
_KINDS = (b" CreateTime: ", b" LogAppendTime: ")
_BATCH_WIDTH, _RECORD_WIDTH = 512, 192  # bytes: more than the longest line of each kind that cursors can pass over, up to its header keys
_NEAR = 64  # bytes: header keys are rarely longer
_LATER_ENDS = 3  # header keys with more closing brackets than that are left to the exact reader
_B, _BAR, _D, _O = (ord(letter) for letter in "b|Do")


@dataclass(frozen=True)
class Dialect:
    """How the lines of a section are printed, where releases differ.

    `upper`: codecs in upper case and `keysize` (2.2 to 2.7). `horizon`: batch lines have a `deleteHorizonMs` (3.2 and later).
    `printed`: keys and payloads are printed. `decoder`: the topic decoder that printed them (a value of `dump_sections.decoder`), if any.
    """

    upper: bool
    horizon: bool
    printed: bool
    crlf: bool = False
    decoder: str | None = None

    @property
    def line_end(self) -> bytes:
        """What ends a line."""
        return b"\r\n" if self.crlf else b"\n"


@dataclass(frozen=True)
class Lines:
    """Where candidates start: batch lines, record lines, and others that may matter (`Dumping`, magic 0 and 1); and all lines."""

    all: Ints
    batches: Ints
    records: Ints
    others: Ints


@dataclass(frozen=True)
class BatchColumns:
    """Batch lines: the columns of `batches` in their order of print, `start` and `end` of the line, and whether it is one."""

    start: Ints
    end: Ints
    ok: Bits
    numbers: dict[str, Ints]
    transactional: Bits
    control: Bits
    horizon_given: Bits
    timestamp_type: NDArray[np.int32]
    codec: NDArray[np.int32]
    crc_valid: Bits


@dataclass
class RecordColumns:
    """Record lines: their numbers, and the reading of their text.

    `end` is behind the line end; `plain` and `marks` say whether the text has the form of a data record or of a marker. `key` and `value`
    are where their texts start (NO_SPAN: none), `headers` the length of the header keys.
    """

    start: Ints
    ok: Bits
    offset: Ints
    timestamp: Ints
    key_size: Ints
    value_size: Ints
    sequence: Ints
    headers: Ints
    key: Ints
    value: Ints
    end: Ints
    plain: Bits
    marks: Bits
    marker: NDArray[np.int32]
    epoch: Ints


def find_lines(text: Octets) -> Lines:
    """The candidates of a stretch of text that begins with a line."""
    newlines = np.flatnonzero(text.bytes[: text.size] == ord("\n"))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), newlines + 1))
    # One byte rules out most lines of a payload before eight are compared.
    first = text.byte(starts)
    others = (_starting(text, starts[first == _D], b"Dumping "), _starting(text, starts[first == _O], b"offset: "))
    return Lines(
        all=starts,
        batches=_starting(text, starts[first == _B], b"baseOffset: "),
        records=_starting(text, starts[first == _BAR], b"| offset: "),
        others=np.sort(np.concatenate(others)),
    )


def _starting(text: Octets, starts: Ints, literal: bytes) -> Ints:
    return starts[text.stands(literal, starts)]


def read_batches(text: Octets, starts: Ints, dialect: Dialect) -> BatchColumns:
    """Candidates for batch lines as batch lines of magic 2 in one dialect."""
    rows = np.arange(len(starts)) * _BATCH_WIDTH
    line = Cursors(text.beginnings(starts, _BATCH_WIDTH), rows + len("baseOffset: "))
    numbers: dict[str, Ints] = {}
    # In the order of print (`DumpLogSegments.printBatchLevel`), each with the width of its field.
    for literal, name, digits, bits in (
        (b"", "base_offset", 19, 63),
        (b" lastOffset: ", "last_offset", 19, 63),
        (b" count: ", "count", 10, 31),
        (b" baseSequence: ", "base_sequence", 10, 31),
        (b" lastSequence: ", "last_sequence", 10, 31),
        (b" producerId: ", "producer_id", 19, 63),
        (b" producerEpoch: ", "producer_epoch", 5, 15),
        (b" partitionLeaderEpoch: ", "partition_leader_epoch", 10, 31),
    ):
        if literal:
            line.literal(literal)
        numbers[name] = line.number(digits=digits, bits=bits, signed=True)
    line.literal(b" isTransactional: ")
    transactional = line.choice(_BOOLEANS)
    line.literal(b" isControl: ")
    control = line.choice(_BOOLEANS)
    horizon_given, numbers["delete_horizon_ms"] = _horizon(line) if dialect.horizon else (np.zeros(len(starts), dtype=bool), starts * 0)
    line.literal(b" position: ")
    numbers["position"] = line.number(digits=19, bits=63)
    kind = line.choice(_KINDS)
    numbers["max_timestamp_ms"] = line.number(digits=19, bits=63, signed=True)
    line.literal(b" size: ")
    numbers["size_bytes"] = line.number(digits=10, bits=31)
    line.literal(b" magic: 2 compresscodec: ")
    codec = line.choice([(name.upper() if dialect.upper else name).encode() for name in CODECS])
    line.literal(b" crc: ")
    numbers["crc"] = line.number(digits=10, bits=32)
    line.literal(b" isvalid: ")
    valid = line.choice(_BOOLEANS)
    line.literal(dialect.line_end)
    end = starts + line.at - rows
    line.ok &= _follows(numbers)
    return BatchColumns(starts, end, line.ok, numbers, transactional > 0, control > 0, horizon_given, kind, codec, valid > 0)


def _follows(numbers: dict[str, Ints]) -> Bits:
    """Whether the last sequence is the one that follows from the first (`dialects.batch_line`)."""
    first = numbers["base_sequence"]
    last = (first + numbers["last_offset"] - numbers["base_offset"]) & ((1 << 31) - 1)
    follows: Bits = numbers["last_sequence"] == np.where(first < 0, -1, last)
    return follows


def _horizon(line: Cursors) -> tuple[Bits, Ints]:
    """` deleteHorizonMs: OptionalLong.empty` or `OptionalLong[<ms>]`."""
    line.literal(b" deleteHorizonMs: OptionalLong")
    given = line.choice((b".empty", b"[")) == 1
    value = np.zeros(len(line.at), dtype=np.int64)
    if given.any():
        some = Cursors(line.text, line.at[given])
        value[given] = some.number(digits=19, bits=63, signed=True)
        some.literal(b"]")
        line.at[given] = some.at
        line.ok[given] &= some.ok
    return given, value


@dataclass(frozen=True)
class Heads:
    """Record lines up to their header keys: their numbers, whether they are such lines, and where header keys `begin`."""

    start: Ints
    ok: Bits
    offset: Ints
    timestamp: Ints
    key_size: Ints
    value_size: Ints
    sequence: Ints
    begin: Ints


def read_heads(text: Octets, starts: Ints, dialect: Dialect) -> Heads:
    """Candidates for record lines as such of magic 2 in one dialect, up to their header keys (`DumpLogSegments.dumpLog`)."""
    rows = np.arange(len(starts)) * _RECORD_WIDTH
    line = Cursors(text.beginnings(starts, _RECORD_WIDTH), rows + len("| offset: "))
    offset = line.number(digits=19, bits=63, signed=True)
    line.choice(_KINDS)
    timestamp = line.number(digits=19, bits=63, signed=True)
    line.literal(b" keysize: " if dialect.upper else b" keySize: ")
    key_size = line.number(digits=10, bits=31, signed=True)
    line.literal(b" valuesize: " if dialect.upper else b" valueSize: ")
    value_size = line.number(digits=10, bits=31, signed=True)
    line.literal(b" sequence: ")
    sequence = line.number(digits=10, bits=31, signed=True)
    line.literal(b" headerKeys: [")
    return Heads(starts, line.ok, offset, timestamp, key_size, value_size, sequence, starts + line.at - rows)


def read_records(text: Octets, starts: Ints, dialect: Dialect) -> RecordColumns:
    """Candidates for record lines as such of magic 2 in one dialect, with the first `]` taken for the end of the header keys."""
    line = read_heads(text, starts, dialect)
    begin, key_size, value_size = line.begin, line.key_size, line.value_size
    close = _header_ends(text, begin, line.ok)
    headers = close - begin - 1
    key, value, end, plain = _payloads(text, close, key_size, value_size, dialect)
    if dialect.crlf:  # a CRLF inside a payload may stand for two bytes or for one: the exact reader decides
        plain &= _line_ends(text, starts) == end
    plain &= line.ok
    # Only lines that are no data record are looked at: of millions some are markers.
    marks, marker, epoch = read_markers(text, close, line.ok & (headers == 0) & ~plain, dialect, end)
    records = RecordColumns(
        starts,
        line.ok,
        line.offset,
        line.timestamp,
        key_size,
        value_size,
        line.sequence,
        headers,
        key,
        value,
        end,
        plain,
        marks,
        marker,
        epoch,
    )
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
        near = sliding_window_view(text.bytes, _NEAR)[begin[odd]] == ord("]")
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
