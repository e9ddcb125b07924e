"""What does a console consumer print of Kafka's own topics, with the formatters that know them? One record at a time.

Text up to 3.9 (`TransactionLog.TransactionLogMessageFormatter`, `GroupMetadataManager.OffsetsMessageFormatter` and
`GroupMetadataMessageFormatter`), JSON since 3.9 (the classes of these names in `org.apache.kafka.tools.consumer`), one object behind the
other without a line end. Ids, groups and the metadata of commits are raw in the text forms, and no size is printed: what holds a piece of
another record itself is no record here.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from eo_audit.dump.lines.decoders import Fields, partition_of, transaction_fields
from eo_audit.dump.lines.fields import Columns
from eo_audit.dump.lines.grammar import CONSOLE_COMMIT, CONSOLE_COMMIT_2_0, CONSOLE_TRANSACTION, MOST_METADATA
from eo_audit.dump.lines.json_record import Json, json_number, json_object, json_text
from eo_audit.dump.lines.offsets_decoder import offset_fields
from eo_audit.dump.lines.printed import INT, SHORT, number, text

TRANSACTIONS, OFFSETS, GROUPS, JSON = "console_transactions", "console_offsets", "console_groups", "console_json"
LONGEST_NAME = 3 * 32767  # bytes: a string of Kafka's protocol, each byte of it printed as U+FFFD

_STATE, _GROUP = b"::TransactionMetadata(transactionalId=", b"::GroupMetadata(groupId="
_PLACE = rb",(?P<topic>[\w.-]{1,249}),(?P<partition>\d{1,10})\]::(?:(?P<new>OffsetAndMetadata\()|(?P<old>\[OffsetMetadata\[)|NULL(?=\r?\n))"
_COMMIT_HEAD = re.compile(_PLACE)
_LINE_END = re.compile(rb"\r?\n")
_TOMBSTONE = re.compile(rb"([^\n]+)::NULL\r?\n")
_UNKNOWN = re.compile(rb"unknown::version=-?\d{1,5}\r?\n")
_GROUP_END = re.compile(rb", generation=-?\d{1,10}, protocolType=[^\n]*, currentState=[A-Z][A-Za-z]{2,30}, members=[^\n]*\)\r?\n")
# What stands at the beginning of a record, or at its end, and nowhere else but in somebody's words.
PIECE = re.compile(
    rb"::TransactionMetadata\(transactionalId=|, txnLastUpdateTimestamp=|::GroupMetadata\(groupId=|\]::OffsetAndMetadata\("
    rb"|, expireTimestamp=|\]::\[OffsetMetadata\[|,ExpirationTime "
)
OBJECT = b'{"key":'
# How the records of each formatter begin, on a line of their own.
HEADS: Mapping[str, bytes] = {
    TRANSACTIONS: rb"[^\n]*" + re.escape(_STATE),
    OFFSETS: rb"[^\n]*,[\w.-]{1,249},\d{1,10}\]::(?:OffsetAndMetadata\(|\[OffsetMetadata\[)|\[[^\n]*,[\w.-]{1,249},\d{1,10}\]::NULL\r?$",
    GROUPS: rb"[^\n]*" + re.escape(_GROUP),
    JSON: rb'\{"key":\{"(?:version|type)":\d{1,5},"data":(?:\{"(?:transactionalId|group|groupId)":|"unknown")',
}
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Printed:
    """One record: the offset behind its last byte, whose form it has, and its columns of `console_records`."""

    end: int
    formatter: str
    fields: Fields


def text_record(dump: bytes, at: int, formatter: str) -> Printed | None:
    """The record that begins at the beginning of a line, in a text form; None where there is none that is whole.

    Args:
        dump: the text.
        at: where the line begins.
        formatter: whose records stand before it: tombstones of ids and of groups look alike.
    """
    if found := _UNKNOWN.match(dump, at):
        return Printed(found.end(), formatter, {"record_kind": "other", "tombstone": False})
    # Most files are of one formatter: its form is tried first.
    forms = {TRANSACTIONS: _transaction, OFFSETS: _commit, GROUPS: _group}
    for read in (forms.get(formatter, _transaction), *forms.values()):
        record = read(dump, at)
        # `[g,t,0]` may be a group and a partition, or an id.
        if record is not None and (record.formatter == formatter or not record.fields["tombstone"]):
            return record
    return _tombstone(dump, at, formatter)


def _named_twice(dump: bytes, at: int, words: bytes) -> tuple[bytes, int] | None:
    """The name that stands before these words and behind them again, and the offset behind that."""
    found = dump.find(words, at, at + LONGEST_NAME + len(words))
    name, behind = dump[at:found], found + len(words)
    return (name, behind + len(name)) if found > at and dump.startswith(name + b", ", behind) else None


def _transaction(dump: bytes, at: int) -> Printed | None:
    named = _named_twice(dump, at, _STATE)
    value = CONSOLE_TRANSACTION.pattern.match(dump, named[1] + len(", ")) if named else None
    if named is None or value is None or (columns := CONSOLE_TRANSACTION.read(value)) is None:
        return None
    names = str(columns["partitions"]).partition("(")[2].removesuffix(")")
    try:
        partitions = [partition_of(name) for name in names.split(", ") if name]
    except ValueError:
        return None
    whose: Fields = {"record_kind": "transaction", "tombstone": False, "transactional_id": text(named[0])}
    return Printed(value.end(), TRANSACTIONS, {**whose, **columns, "partitions": partitions})


def _group(dump: bytes, at: int) -> Printed | None:
    named = _named_twice(dump, at, _GROUP)
    value = _GROUP_END.match(dump, named[1]) if named else None
    if named is None or value is None:
        return None
    return Printed(value.end(), GROUPS, {"record_kind": "group_metadata", "tombstone": False, "group": text(named[0])})


def _commit(dump: bytes, at: int) -> Printed | None:
    if not dump.startswith(b"[", at):
        return None
    # A bracket at the beginning of another line begins another record.
    following = dump.find(b"\n[", at, at + LONGEST_NAME)
    head = _COMMIT_HEAD.search(dump, at, at + LONGEST_NAME if following < 0 else following + 1)
    if head is None:
        return None
    value, columns = _committed(dump, head)
    # Somebody's words may hold a piece of a record; then nothing proves where this one ends.
    pieces = 0 if value is None else len(PIECE.findall(dump, at, value.end()))
    if value is None or columns is None or pieces != (2 if columns else 0):
        return None
    try:
        whose = _of_partition(head, dump[at + 1 : head.start()])
    except ValueError:
        return None
    return Printed(value.end(), OFFSETS, {**whose, "tombstone": not columns, **columns})


def _committed(dump: bytes, head: re.Match[bytes]) -> tuple[re.Match[bytes] | None, Columns | None]:
    """What stands behind the key of a commit: its end, and its columns; no columns for a tombstone, None where it cannot be read."""
    if not (head["new"] or head["old"]):
        return _LINE_END.match(dump, head.end()), {}
    form, key_end = (CONSOLE_COMMIT, b"]::OffsetAndMetadata(") if head["new"] else (CONSOLE_COMMIT_2_0, b"]::[OffsetMetadata[")
    # Up to the next key: where the end of this value is missing, nobody looks for it in what follows.
    following = dump.find(key_end, head.end(), head.end() + MOST_METADATA) + 1
    value = form.pattern.match(dump, head.end(), following or len(dump))
    return value, form.read(value) if value else None


def _of_partition(head: re.Match[bytes], group: bytes) -> Fields:
    return {"record_kind": "commit", "group": text(group), "topic": text(head["topic"]), "partition": number(head["partition"], INT)}


def _tombstone(dump: bytes, at: int, formatter: str) -> Printed | None:
    found = _TOMBSTONE.match(dump, at) if formatter in (TRANSACTIONS, GROUPS) else None
    if found is None or PIECE.search(found[1]):
        return None
    kind, column = ("transaction", "transactional_id") if formatter == TRANSACTIONS else ("group_metadata", "group")
    return Printed(found.end(), formatter, {"record_kind": kind, "tombstone": True, column: text(found[1])})


def json_record(dump: bytes, at: int, end: int) -> Printed | None:
    """The JSON object that begins at `at` and goes on up to `end` at most; None where it is none that a formatter prints whole.

    Jackson escapes quotes and line feeds inside strings, so nobody's words look like the beginning of an object.
    """
    try:
        printed = dump[at:end].decode()
        record, length = _DECODER.raw_decode(printed)
        fields = _json_fields(record["key"], record["value"])
    # A member's metadata may be any JSON, nested as deep as somebody likes.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Printed(at + len(printed[:length].encode()), JSON, fields)


def _json_fields(key: Json | None, value: Json | None) -> Fields:
    # `unknown`: the tool knows no such key, and in 3.9 it then took the value for an offset commit, whatever it was.
    if key is None or key["data"] == "unknown":
        return {"record_kind": "other", "tombstone": value is None}
    transactional_id = json_text(json_object(key, "data"), "transactionalId")
    if value is not None and value["data"] == "unknown":
        data = json_object(key, "data")
        group = json_text(data, "group") or json_text(data, "groupId")
        return {"record_kind": "other", "tombstone": False, "transactional_id": transactional_id, "group": group}
    if transactional_id is not None:
        whose: Fields = {"record_kind": "transaction", "transactional_id": transactional_id, "tombstone": value is None}
        if value is None:
            return whose
        return {**whose, "value_version": json_number(value, "version", bits=SHORT), **transaction_fields(json_object(value, "data"))}
    # 3.9 called the type of a key its version.
    return offset_fields({**key, "type": key.get("type", key.get("version"))}, value)
