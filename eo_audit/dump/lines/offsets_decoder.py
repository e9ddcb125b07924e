"""Records of `__consumer_offsets` printed with `--offsets-decoder`: three text forms up to 3.7, JSON from 3.8 on.

Group ids and commit metadata are raw in the text forms, so they are delimited by the sizes the dump states: `OffsetCommitKey` has 10
bytes beside group and topic, `GroupMetadataKey` 4 beside the group, `OffsetCommitValue` a length per version beside the metadata.
"""

import re
from collections.abc import Iterator
from itertools import islice

from eo_audit.dump.lines.decoders import UNDECODED, Decoded, Fields, varint_size
from eo_audit.dump.lines.json_record import JSON_RECORD, Json, json_number, json_object, json_text, split_json_record
from eo_audit.dump.lines.printed import INT, exact_or_lossy, longest_printed, number, text

OFFSETS_TEXT, OFFSETS_JSON = "offsets_text", "offsets_json"

# `offset::group:topic:partition` up to 2.4.0, `offset_commit::group=...,partition=...` from 2.4.1 to 3.7.
_COMMIT_PREFIX = re.compile(rb" key: (?:(?P<new>offset_commit::group=)|offset::)")
_NEW_TAIL = re.compile(rb",partition=(?P<topic>[\w.-]{1,249})-(?P<partition>\d{1,10}) payload: (?:offset=(?P<offset>-?\d{1,19}))?")
_OLD_TAIL = re.compile(rb":(?P<topic>[\w.-]{1,249}):(?P<partition>\d{1,10}) payload: (?P<offset>-?\d{1,19})?")
_METADATA = re.compile(rb",metadata=|:")
_GROUP_PREFIX = re.compile(rb" key: group_metadata::group=")
_GROUP_VALUE_START = re.compile(rb" payload: (?=<DELETE>|\{)")
# 0.11 alone: protocol type, protocol and generation, then the members with what each was assigned. What stands before the members is looked
# for once: with it in the pattern itself a line of many such beginnings and no end would be searched from each of them.
_OLDEST_GROUP_PREFIX = re.compile(rb" key: metadata::")
_OLDEST_GROUP_VALUE_START = re.compile(rb" payload: ")
_OLDEST_GROUP_VALUE = re.compile(rb"(?=[^\n]*?:-?\d{1,10}:\{)[^\n]*\}\r?\n")
_OBJECT = re.compile(rb"\{[^\n]*\}\r?\n")
_OLD_GROUP = re.compile(rb' key: (\{"metadata":[^\n]*)\n')
_DELETED = re.compile(rb"<DELETE>\r?\n")
_LINE_END = re.compile(rb"\n")
_NOTHING = re.compile(rb"\r?\n")
_LOOKAHEAD = 320  # bytes: the longest topic and partition behind a group, and the beginning of a value
_MOST_LINES = 1000  # of commit metadata, which a broker limits to 4 KiB unless told otherwise
_LONGEST_GROUP = 32_767  # bytes: `GroupMetadataKey` has it as a STRING, the length of which is an INT16
_OF_COMMITS = 1  # `OffsetCommitKey`: the highest version of its key
_OTHER: Fields = {"record_kind": "other", "tombstone": False}


def offset_records(dump: bytes, start: int, *, key_size: int, value_size: int) -> Iterator[Decoded]:
    """Readings of one `__consumer_offsets` record printed with its decoder, the most certain first.

    Arguments and meaning as in `decoders.coordinator_records`. Up to 2.4.0 a tombstone prints nothing at all: it is an `other` record.
    """
    if prefix := _COMMIT_PREFIX.match(dump, start):
        yield from _commits(dump, prefix.end(), _NEW_TAIL if prefix["new"] else _OLD_TAIL, key_size=key_size, value_size=value_size)
    elif prefix := _GROUP_PREFIX.match(dump, start):
        value = _DELETED if value_size < 0 else _OBJECT
        yield from _group_metadata(dump, prefix.end(), _GROUP_VALUE_START, value, group_size=key_size - 4, tombstone=value_size < 0)
    elif prefix := _OLDEST_GROUP_PREFIX.match(dump, start):
        value_start, value = _OLDEST_GROUP_VALUE_START, _OLDEST_GROUP_VALUE
        yield from _group_metadata(dump, prefix.end(), value_start, value, group_size=key_size - 4, tombstone=False)
    elif record := _OLD_GROUP.match(dump, start):
        yield from _old_group_metadata(record, key_size)
    elif record := JSON_RECORD.match(dump, start):
        yield from _json_records(record, value_size)
    elif undecoded := UNDECODED.match(dump, start):
        form, version = OFFSETS_TEXT if undecoded["old"] else OFFSETS_JSON, undecoded["old"] or undecoded["new"]
        # What tells of members of a group of the newer protocols has keys of its own, which older tools do not know.
        if version is not None and int(version) > _OF_COMMITS:
            yield Decoded(undecoded.end(), form, _OTHER)
        else:
            yield Decoded(undecoded.end(), form, None, undecoded.start())
    elif value_size < 0 and (nothing := _NOTHING.match(dump, start)):
        yield Decoded(nothing.end(), OFFSETS_TEXT, _OTHER | {"tombstone": True})


def _commits(dump: bytes, group_start: int, tail_form: re.Pattern[bytes], *, key_size: int, value_size: int) -> Iterator[Decoded]:
    names_size = key_size - 10
    found = tail_form.finditer(dump, group_start, group_start + longest_printed(names_size) + _LOOKAHEAD)
    fitting = [tail for tail in found if exact_or_lossy(dump[group_start : tail.start()], names_size - len(tail["topic"]))]
    # Lengths that fit exactly come first; the others fit only if printing lost bytes.
    for tail in sorted(fitting, key=lambda tail: abs(tail.start() - group_start + len(tail["topic"]) - names_size)):
        fields = _commit_fields(tail, dump[group_start : tail.start()], value_size)
        for end in _commit_ends(dump, tail, value_size) if fields else []:
            yield Decoded(end, OFFSETS_TEXT, fields)


def _commit_fields(tail: re.Match[bytes], group: bytes, value_size: int) -> Fields | None:
    tombstone = value_size < 0
    if tombstone != (tail["offset"] is None):
        return None
    try:
        partition = number(tail["partition"], INT)
        committed = None if tombstone else number(tail["offset"])
    except ValueError:
        return None
    names: Fields = {"record_kind": "commit", "group": text(group), "topic": text(tail["topic"])}
    return names | {"partition": partition, "committed_offset": committed, "tombstone": tombstone}


def _commit_ends(dump: bytes, tail: re.Match[bytes], value_size: int) -> list[int]:
    """Where a commit's record may end: at once, or behind metadata of a length that some version of its value can have."""
    at = tail.end()
    if end := (_DELETED if value_size < 0 else _NOTHING).match(dump, at):
        return [end.end()]
    separator = _METADATA.match(dump, at)
    if separator is None or value_size < 0:
        return []
    sizes = _metadata_sizes(value_size)
    start, limit = separator.end(), separator.end() + longest_printed(max(sizes, default=0)) + len("\r\n")
    ends = [end.end() for end in islice(_LINE_END.finditer(dump, start, limit), _MOST_LINES)]
    # With and without a carriage return: it is part of the line end, or of the metadata.
    printed = {end: {dump[start : end - 1], dump[start : end - 1].removesuffix(b"\r")} for end in ends}
    exact = [end for end in ends if any(len(metadata) in sizes for metadata in printed[end])]
    lossy = [end for end in ends if any(exact_or_lossy(metadata, size) for metadata in printed[end] for size in sizes)]
    return exact + [end for end in lossy if end not in exact]


def _metadata_sizes(value_size: int) -> set[int]:
    """Lengths of metadata in a value of this size: 28 bytes more in version 1, 20 in 0 and 2, 24 in 3; version 4 is flexible."""
    # `OffsetCommitValue`: version (2 bytes), offset (8), length of the metadata (2), commit time (8). Version 1 has an expiry (8) besides,
    # version 3 a leader epoch (4), and version 4, since 4.1, may have a tagged topic id (18).
    fixed = {value_size - 28, value_size - 24, value_size - 20}
    flexible = {rest - prefix for rest in (value_size - 23, value_size - 41) for prefix in (1, 2, 3)}
    return {size for size in fixed if size >= 0} | {
        size for size in flexible if size >= 0 and varint_size(size + 1) + size + 23 in (value_size, value_size - 18)
    }


def _group_metadata(
    dump: bytes, group_start: int, value_start: re.Pattern[bytes], value: re.Pattern[bytes], *, group_size: int, tombstone: bool
) -> Iterator[Decoded]:
    if group_size > _LONGEST_GROUP:
        return
    for start in value_start.finditer(dump, group_start, group_start + longest_printed(group_size) + _LOOKAHEAD):
        printed = dump[group_start : start.start()]
        if exact_or_lossy(printed, group_size) and (found := value.match(dump, start.end())):
            fields: Fields = {"record_kind": "group_metadata", "group": text(printed), "tombstone": tombstone}
            yield Decoded(found.end(), OFFSETS_TEXT, fields)


def _old_group_metadata(record: re.Match[bytes], key_size: int) -> Iterator[Decoded]:
    parts = split_json_record(record[1])
    group = json_text(parts[0], "metadata") if parts and parts[1] else None
    if group is not None and exact_or_lossy(group.encode(), key_size - 4):
        yield Decoded(record.end(), OFFSETS_TEXT, {"record_kind": "group_metadata", "group": group, "tombstone": False})


def _json_records(record: re.Match[bytes], value_size: int) -> Iterator[Decoded]:
    parts = split_json_record(record[1])
    if parts is None or (parts[1] is None) != (value_size < 0):
        return
    try:
        yield Decoded(record.end(), OFFSETS_JSON, offset_fields(*parts))
    except ValueError:
        return


def offset_fields(key: Json, value: Json | None) -> Fields:
    """Columns of a record of `__consumer_offsets` out of its key and value as JSON; the value is None on a tombstone.

    Raises:
        ValueError: they are printed otherwise.
    """
    data = json_object(key, "data")
    # The keys of KIP-848 say groupId, those before it group.
    group = json_text(data, "group") or json_text(data, "groupId")
    # The version of the key says what a record is: `OffsetCommitKey` has 0 and 1, `GroupMetadataKey` 2, KIP-848 and later ones the rest.
    kind = {"0": "commit", "1": "commit", "2": "group_metadata"}.get(str(key.get("type")), "other")
    fields: Fields = {"record_kind": kind, "group": group, "tombstone": value is None}
    if kind != "commit":
        return fields
    committed = {} if value is None else json_object(value, "data")
    topic, partition, offset = json_text(data, "topic"), json_number(data, "partition", bits=INT), json_number(committed, "offset")
    if topic is None or partition is None or (offset is None) != (value is None):
        raise ValueError("not an offset commit")
    commit: Fields = {"topic": topic, "partition": partition, "committed_offset": offset}
    return fields | commit | {"commit_timestamp_ms": json_number(committed, "commitTimestamp")}
