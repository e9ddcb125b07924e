"""What do the dump tool's topic decoders print? Records of `__transaction_state`: as text (up to 4.0) and as JSON (4.1 and later).

Transactional ids are raw in the text form: they may contain newlines and perfect forgeries of what follows them. So a record ends where
the grammar fits *and* the key has the length the dump states (`TransactionLogKey`: 4 bytes and the id), never at a line end that merely
looks right. The sizes verify the value too: `TransactionLogValue` versions 0 and 1 have computable lengths.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from eo_audit.dump.lines.json_record import JSON_RECORD, Json, json_number, json_object, json_text, split_json_record
from eo_audit.dump.lines.printed import INT, SHORT, exact_or_lossy, longest_printed, number, text

Partition = dict[str, str | int]
Fields = dict[str, str | int | bool | list[Partition] | None]

TRANSACTION_TEXT, TRANSACTION_JSON = "transaction_text", "transaction_json"

# By their ids in TransactionState, 0 to 7.
STATE_NAMES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence")

_ID_PREFIX = re.compile(rb" key: (?:transaction_metadata::)?transactionalId=")
# An id may hold all of this itself; it is where the search looks, and the length of the key is what decides.
_VALUE_START = re.compile(rb" payload: (?=<DELETE>\r?\n|producerId:-?\d)")
_LOOKAHEAD = 32
_TOMBSTONE = re.compile(rb" payload: <DELETE>\r?\n")
# Scala printed the partitions as a Set up to 2.4, `[a-0,b-1]` since.
_VALUE = re.compile(
    rb" payload: producerId:(?P<producer_id>-?\d+),producerEpoch:(?P<producer_epoch>-?\d+),state=(?P<status>[A-Za-z]+),"
    rb"partitions=(?:\[(?P<list>[\w.,-]*)\]|(?:Hash)?Set\((?P<set>[\w., -]*)\)),"
    rb"txnLastUpdateTimestamp=(?P<last_update_ms>-?\d+),txnTimeoutMs=(?P<timeout_ms>-?\d+)\r?\n"
)
# `CoordinatorRecordMessageParser` (3.9 and later), and the parsers before it: a key of a version that the decoder does not know, or a
# record that it could not read.
UNDECODED = re.compile(
    rb" key: (?:unknown::version=(?P<old>-?\d+)|Unknown record type (?P<new>-?\d+) at offset -?\d+, skipping\.|"
    rb"Error at offset -?\d+, skipping\.[^\n]*)\r?\n"
)


@dataclass(frozen=True)
class Decoded:
    """One decoded record.

    `end` is the offset after its last byte, line end included; `form` names the decoder (a value of `dump_sections.decoder`); `fields`
    are columns of the fact row, or None where there is none; `unread_from`: where the decoder says that it could not read the record, and
    it may have been one that matters.
    """

    end: int
    form: str
    fields: Fields | None
    unread_from: int | None = None


def coordinator_records(dump: bytes, start: int, *, key_size: int, value_size: int) -> Iterator[Decoded]:
    """Readings of one `__transaction_state` record printed with its decoder, the most certain first.

    There is exactly one where the text is UTF-8; more only where printed text has lost bytes. None when this is no such record, or
    when the text ends inside it.

    Args:
        dump: text of the dump.
        start: where the key's text begins, just after `headerKeys: []`.
        key_size: the record's key size, bytes.
        value_size: the record's value size, bytes; -1 for a tombstone.
    """
    if prefix := _ID_PREFIX.match(dump, start):
        yield from _text_records(dump, prefix.end(), id_size=key_size - 4, value_size=value_size)
    elif record := JSON_RECORD.match(dump, start):
        yield from _json_records(record, key_size, value_size)
    elif unread := UNDECODED.match(dump, start):
        yield Decoded(unread.end(), TRANSACTION_TEXT if unread["old"] else TRANSACTION_JSON, None, unread.start())


def _text_records(dump: bytes, id_start: int, *, id_size: int, value_size: int) -> Iterator[Decoded]:
    for id_end in _id_ends(dump, id_start, id_size):
        value = (_TOMBSTONE if value_size < 0 else _VALUE).match(dump, id_end)
        fields = _text_fields(value, value_size) if value else None
        if value and fields is not None:
            yield Decoded(value.end(), TRANSACTION_TEXT, {"transactional_id": text(dump[id_start:id_end]), **fields})


def _id_ends(dump: bytes, id_start: int, id_size: int) -> Iterator[int]:
    """Where an id can end, the exact length first; what its text cannot stand for is left out."""
    exact = id_start + id_size
    # Any other end is possible only where printing lost bytes, so nearly always this is the one.
    if id_size >= 0 and _VALUE_START.match(dump, exact):
        yield exact
    for found in _VALUE_START.finditer(dump, id_start, id_start + longest_printed(id_size) + _LOOKAHEAD):
        if found.start() != exact and exact_or_lossy(dump[id_start : found.start()], id_size):
            yield found.start()


def _text_fields(value: re.Match[bytes], value_size: int) -> Fields | None:
    """Columns of a text value; None when a number does not fit its field. The text form prints neither version nor start."""
    if value_size < 0:
        return {"tombstone": True, "size_identity_ok": True}
    try:
        partitions = [partition_of(name) for name in re.split(", ?", text(value["list"] or value["set"] or b"")) if name]
        return {
            "tombstone": False,
            "producer_id": number(value["producer_id"]),
            "producer_epoch": number(value["producer_epoch"], SHORT),
            "timeout_ms": number(value["timeout_ms"], INT),
            "status": text(value["status"]),
            "partitions": partitions,
            "last_update_ms": number(value["last_update_ms"]),
            "size_identity_ok": value_size in _possible_sizes(partitions),
        }
    except ValueError:
        return None


def partition_of(name: str) -> Partition:
    """A partition by its printed name, `orders-0`.

    Raises:
        ValueError: it is no such name.
    """
    # A topic may hold dashes, a partition none.
    topic, _, partition = name.rpartition("-")
    return {"topic": topic, "partition": number(partition, INT)}


def varint_size(value: int) -> int:
    """Bytes of an unsigned varint, as flexible versions write lengths (one more than the length itself)."""
    return max(1, (value.bit_length() + 6) // 7)


def _size_v0(topics: Sequence[tuple[int, int]]) -> int:
    # TransactionLogValue version 0: 2 bytes of version and 35 of fields and array length; a topic has 2 bytes of length, 4 of array length,
    # 4 a partition.
    return 37 + sum(6 + name + 4 * partitions for name, partitions in topics)


def _size_v1(topics: Sequence[tuple[int, int]] | None) -> int:
    """Size without tagged fields."""
    if topics is None:
        return 35
    inner = sum(varint_size(name + 1) + name + varint_size(partitions + 1) + 4 * partitions + 1 for name, partitions in topics)
    return 34 + varint_size(len(topics) + 1) + inner


# Sizes of the tagged fields together: previous and next producer id are 10 bytes each, client version and next epoch 4.
TAG_SIZES = frozenset(sum(chosen) for chosen in product((0, 10), (0, 10), (0, 4), (0, 4)))


def _possible_sizes(partitions: list[Partition]) -> set[int]:
    """Sizes a value with these partitions can have, whatever version and tagged fields the text form does not print."""
    topics = [(len(topic), count) for topic, count in Counter(str(p["topic"]) for p in partitions).items()]
    untagged = _size_v1(topics)
    return {_size_v0(topics), *(untagged + extra for extra in TAG_SIZES)}


def _json_records(record: re.Match[bytes], key_size: int, value_size: int) -> Iterator[Decoded]:
    parts = split_json_record(record[1])
    try:
        fields = _json_fields(*parts, key_size=key_size, value_size=value_size) if parts else None
    except (ValueError, KeyError, TypeError):
        return
    if fields is not None:
        yield Decoded(record.end(), TRANSACTION_JSON, fields)


def _json_fields(key: Json, value: Json | None, *, key_size: int, value_size: int) -> Fields | None:
    transactional_id = json_text(json_object(key, "data"), "transactionalId")
    if transactional_id is None or (value is None) != (value_size < 0):
        return None
    # TransactionLogKey version 0: 2 bytes of version and 2 of length before the id.
    key_fits = exact_or_lossy(transactional_id.encode(), key_size - 4)
    if value is None:
        return {"transactional_id": transactional_id, "tombstone": True, "size_identity_ok": key_fits}
    version = number(str(value["version"]), SHORT)
    data = json_object(value, "data")
    size = _json_size(data, version)
    fits = None if size is None else key_fits and size == value_size
    whose: Fields = {"transactional_id": transactional_id, "tombstone": False, "value_version": version}
    return {**whose, **transaction_fields(data), "size_identity_ok": fits}


def transaction_fields(data: Json) -> Fields:
    """Columns of an entry out of the data of its `TransactionLogValue` as JSON.

    Raises:
        ValueError, KeyError, TypeError: they are printed otherwise.
    """
    return {
        "producer_id": json_number(data, "producerId"),
        "previous_producer_id": json_number(data, "previousProducerId"),
        "next_producer_id": json_number(data, "nextProducerId"),
        "producer_epoch": json_number(data, "producerEpoch", bits=SHORT),
        "timeout_ms": json_number(data, "transactionTimeoutMs", bits=INT),
        "status": _status(data),
        "partitions": _json_partitions(data),
        "last_update_ms": json_number(data, "transactionLastUpdateTimestampMs"),
        "start_ms": json_number(data, "transactionStartTimestampMs"),
        "client_transaction_version": json_number(data, "clientTransactionVersion", bits=SHORT),
    }


def _status(data: Json) -> str:
    """The state's name: tools up to 4.3 print its number, later ones its name."""
    # KAFKA-20712: names instead of numbers; a number that has no name is printed as text, too.
    if (name := json_text(data, "transactionStatus")) is not None and not name.lstrip("-").isdigit():
        return name
    status = number(str(data["transactionStatus"]), INT)
    return STATE_NAMES[status] if 0 <= status < len(STATE_NAMES) else f"Unknown({status})"


def _json_topics(data: Json) -> list[tuple[str, list[int]]] | None:
    topics = data["transactionPartitions"]
    if topics is None:
        return None
    if not isinstance(topics, list):
        raise ValueError("transactionPartitions is not a list")
    return [(text(topic["topic"]), [number(str(partition), INT) for partition in topic["partitionIds"]]) for topic in topics]


def _json_partitions(data: Json) -> list[Partition] | None:
    topics = _json_topics(data)
    return None if topics is None else [{"topic": topic, "partition": number} for topic, numbers in topics for number in numbers]


def _json_size(data: Json, version: int) -> int | None:
    """The size the printed value must have; None for a version whose layout is not known."""
    topics = _json_topics(data)
    lengths = None if topics is None else [(len(topic.encode()), len(numbers)) for topic, numbers in topics]
    if version == 0:
        return _size_v0(lengths or [])
    tags = {"previousProducerId": 10, "nextProducerId": 10, "clientTransactionVersion": 4, "nextProducerEpoch": 4}
    # Tagged fields (KIP-482) are written, and printed, only where they differ from their default.
    return _size_v1(lengths) + sum(size for tag, size in tags.items() if tag in data) if version == 1 else None
