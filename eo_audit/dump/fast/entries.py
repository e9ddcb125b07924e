"""Record lines of `__transaction_state` as its decoder prints them, all of a stretch at once.

Only lines of the very form that a tool of 2.5 or later prints for an id on one line: `decoders` reads the same of them, in one way. What
is printed in any other form is marked, and left to the exact reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eo_audit.dump.fast.decoded import INT, LONG, SHORT, TOMBSTONE, decoded_records, first_behind, line_ends, standing
from eo_audit.dump.fast.fields import Dialect, LineColumns
from eo_audit.dump.fast.lines import RecordColumns, read_heads
from eo_audit.dump.fast.partitions import Partitions, read_partitions, unsigned_varint_sizes
from eo_audit.dump.lines.decoders import STATE_NAMES, TAG_SIZES, TRANSACTION_JSON
from eo_audit.dump.lines.scan import Bits, Cursors, Ints, Octets

NO_LIST = -1
_KEY_OVERHEAD = 4  # `TransactionLogKey` version 0: version and length, 2 bytes each
_KEYS = {True: b'] key: {"type":"0","data":{"transactionalId":"', False: b"] key: transaction_metadata::transactionalId="}
_BEHIND_ID = {True: b'"}} payload: ', False: b" payload: "}
_NUMBERS_AS_STATUS = [b"%d" % number for number in range(len(STATE_NAMES))]
_NAMES_AS_STATUS = [name.encode() for name in STATE_NAMES]
_TAGS = np.array(sorted(TAG_SIZES))


@dataclass(frozen=True)
class EntryColumns:
    """Coordinator entries, one per candidate record line; a column means nothing where the line's record is not `plain`.

    Attributes:
        id_start, id_end: where the transactional id stands.
        tombstone: the value is null.
        numbers: columns of `coordinator_entries`; `given`: whether they are printed, for those that may be missing.
        status: by its number in `STATE_NAMES`.
        has_list: the value has a list of partitions, and no null.
        list_of: its list of partitions; NO_LIST where it is empty or null.
        partitions: all lists.
        size_fits: key and value sizes fit what is printed.
    """

    id_start: Ints
    id_end: Ints
    tombstone: Bits
    numbers: dict[str, Ints]
    given: dict[str, Bits]
    status: NDArray[np.int32]
    has_list: Bits
    list_of: Ints
    partitions: Partitions
    size_fits: Bits


class _Values:
    """The values of all entries, read field by field in their order of print; where one is none, what is read of it means nothing."""

    def __init__(self, text: Octets, at: Ints) -> None:
        self.line = Cursors(text, at)
        self.numbers: dict[str, Ints] = {}
        self.given: dict[str, Bits] = {}
        self.status: NDArray[np.int32] = np.zeros(len(at), dtype=np.int32)
        # A list of partitions: where it stands, without its opening bracket; whether it is null, and whether it has any.
        self.list_start, self.list_end = at, at
        self.null, self.filled = np.zeros(len(at), dtype=bool), np.zeros(len(at), dtype=bool)

    def number(self, literal: bytes, name: str, width: tuple[int, int]) -> None:
        """A number behind a literal."""
        self.line.literal(literal)
        self.numbers[name] = self.line.number(digits=width[0], bits=width[1], signed=True)

    def optional(self, literal: bytes, name: str, width: tuple[int, int]) -> None:
        """A number that is printed only where it differs from its default (a tagged field, KIP-482)."""
        self.given[name], self.numbers[name] = self.line.optional(literal, digits=width[0], bits=width[1])

    def partitions(self, kinds: Sequence[bytes], inside: int, closing: bytes) -> None:
        """A list of partitions.

        Args:
            kinds: its beginnings: where it has none, where it has some, for null.
            inside: bytes of the second one that belong to what is listed.
            closing: what ends a list that has some.
        """
        line, brackets = self.line, standing(self.line.text, b"]")
        kind = line.choice(kinds)
        ends = brackets[line.text.stands(closing, brackets)] + len(closing)
        self.filled, self.null = kind == 1, kind == 2
        end = first_behind(ends, line.at + len(closing), line.text.size)
        self.list_start, self.list_end = line.at - inside, end
        line.at = np.where(self.filled, end, line.at)


def read_entries(text: Octets, starts: Ints, dialect: Dialect) -> tuple[RecordColumns, EntryColumns]:
    """Candidates for record lines as such of the coordinator's log."""
    json, heads = dialect.decoder == TRANSACTION_JSON, read_heads(text, starts, dialect)
    line_end = line_ends(text, starts)
    id_start, id_end, at, ok = _ids(text, heads, line_end, json=json)
    tombstone = ok & (heads.numbers["value_size"] < 0) & text.stands(TOMBSTONE, at)
    values = _Values(text, at)
    (_read_json if json else _read_text)(values)
    # Whatever stands in a line, what was read of it up to here is within it.
    fits = ok & (heads.numbers["value_size"] >= 0) & values.line.ok & (values.line.at == line_end) & text.stands(b"\n", line_end)
    listed = fits & values.filled
    partitions = read_partitions(text, values.list_start[listed], values.list_end[listed], json=json)
    fits[listed] &= partitions.ok
    list_of = np.where(listed, np.cumsum(listed) - 1, NO_LIST)
    size_fits = tombstone | (_json_sizes if json else _text_sizes)(values, partitions, list_of, heads.numbers["value_size"])
    has_list = ~tombstone & ~values.null
    columns = (values.numbers, values.given, values.status, has_list, list_of, partitions, size_fits)
    records = decoded_records(text, heads, line_end, tombstone | fits, dialect, json=json)
    return records, EntryColumns(id_start, id_end, tombstone, *columns)


def _ids(text: Octets, heads: LineColumns, line_end: Ints, *, json: bool) -> tuple[Ints, Ints, Ints, Bits]:
    """Start and end of each transactional id, where the value's text begins behind it, and whether the key has its form."""
    start = heads.end + len(_KEYS[json])
    ok = heads.ok & text.stands(_KEYS[json], heads.end)
    # Only the key's size delimits an id: what it prints may be the rest of a record.
    size = heads.numbers["key_size"] - _KEY_OVERHEAD
    end = start + size
    ok &= (size > 0) & (end < line_end)
    end = np.where(ok, end, start)
    ok &= text.stands(_BEHIND_ID[json], end)
    if json:
        # A quote inside ends the string there, whatever the key's size says.
        ok &= first_behind(standing(text, b'"'), start, text.size) == end
    return start, end, end + len(_BEHIND_ID[json]), ok


def _read_text(values: _Values) -> None:
    """`TransactionLog.formatRecordValue` of 2.5 to 4.0."""
    values.number(b"producerId:", "producer_id", LONG)
    values.number(b",producerEpoch:", "producer_epoch", SHORT)
    values.line.literal(b",state=")
    values.status = values.line.choice(_NAMES_AS_STATUS)
    values.line.literal(b",partitions=")
    values.partitions((b"[]", b"["), 0, b"]")
    values.number(b",txnLastUpdateTimestamp=", "last_update_ms", LONG)
    values.number(b",txnTimeoutMs=", "timeout_ms", INT)


def _read_json(values: _Values) -> None:
    """`TransactionLogMessageParser` of 4.1 and later: `TransactionLogValueJsonConverter`, tagged fields where they are printed."""
    values.line.literal(b'{"version":"')
    values.numbers["value_version"] = values.line.choice((b"0", b"1")).astype(np.int64)
    values.number(b'","data":{"producerId":', "producer_id", LONG)
    values.optional(b',"previousProducerId":', "previous_producer_id", LONG)
    values.optional(b',"nextProducerId":', "next_producer_id", LONG)
    values.number(b',"producerEpoch":', "producer_epoch", SHORT)
    values.optional(b',"nextProducerEpoch":', "next_producer_epoch", SHORT)
    values.number(b',"transactionTimeoutMs":', "timeout_ms", INT)
    values.line.literal(b',"transactionStatus":')
    _read_status(values)
    values.line.literal(b',"transactionPartitions":')
    values.partitions((b"[]", b"[{", b"null"), len(b"{"), b"]}]")
    values.number(b',"transactionLastUpdateTimestampMs":', "last_update_ms", LONG)
    values.number(b',"transactionStartTimestampMs":', "start_ms", LONG)
    values.optional(b',"clientTransactionVersion":', "client_transaction_version", SHORT)
    values.line.literal(b"}}")


def _read_status(values: _Values) -> None:
    """The state: by number up to 4.3, by name since (KAFKA-20712)."""
    line = values.line
    named = line.text.byte(line.at) == ord('"')
    if not named.any():
        values.status = line.choice(_NUMBERS_AS_STATUS)
        return
    for names, chosen in ((_NUMBERS_AS_STATUS, ~named), ([b'"%s"' % name for name in _NAMES_AS_STATUS], named)):
        some = Cursors(line.text, line.at[chosen])
        values.status[chosen] = some.choice(names)
        line.at[chosen] = some.at
        line.ok[chosen] &= some.ok


def _topics(partitions: Partitions, list_of: Ints) -> tuple[Ints, Ints, Ints]:
    """Bytes of each value's topics in `TransactionLogValue`, versions 0 and 1, and how many topics it has."""
    sizes = np.zeros((3, len(list_of)), dtype=np.int64)
    filled = list_of >= 0
    for row, column in enumerate((partitions.size_v0, partitions.size_v1, partitions.topics)):
        sizes[row, filled] = column[list_of[filled]]
    return sizes[0], sizes[1], sizes[2]


def _text_sizes(values: _Values, partitions: Partitions, list_of: Ints, value_size: Ints) -> Bits:
    """Whether the value has one of the sizes that it can have: the text prints neither version nor tagged fields."""
    v0, v1, topics = _topics(partitions, list_of)
    tagged = value_size - (34 + unsigned_varint_sizes(topics + 1) + v1)
    fits: Bits = (value_size == 37 + v0) | np.isin(tagged, _TAGS)
    return fits


def _json_sizes(values: _Values, partitions: Partitions, list_of: Ints, value_size: Ints) -> Bits:
    """Whether the value has its size (`decoders._json_size`)."""
    v0, v1, topics = _topics(partitions, list_of)
    v1 += 34 + unsigned_varint_sizes(topics + 1)
    tags = {"previous_producer_id": 10, "next_producer_id": 10, "client_transaction_version": 4, "next_producer_epoch": 4}
    v1 += sum(values.given[name] * size for name, size in tags.items())
    fits: Bits = value_size == np.where(values.numbers["value_version"] == 0, 37 + v0, v1)
    return fits
