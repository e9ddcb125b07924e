"""Record lines of `__consumer_offsets` as the JSON decoder of 3.8 and later prints them, all of a stretch at once: offset commits, their
tombstones, and markers.

What is printed in any other form (group metadata, escapes, the text of older decoders) is marked, and left to the exact reader.
"""

from dataclasses import dataclass

import numpy as np

from eo_audit.dump.fast.decoded import INT, LONG, SHORT, TOMBSTONE, decoded_records, first_behind, line_ends, standing
from eo_audit.dump.fast.fields import Dialect
from eo_audit.dump.fast.lines import RecordColumns, read_heads
from eo_audit.dump.lines.scan import Bits, Cursors, Ints, Octets

_KEYS = (b'] key: {"type":"1","data":{"group":"', b'] key: {"type":"0","data":{"group":"')  # `OffsetCommitKey`, versions 1 and 0


@dataclass(frozen=True)
class CommitColumns:
    """Offset commits, one per candidate record line; a column means nothing where the line's record is not `plain`.

    `group` and `topic` are where they start and end; `offset` and `timestamp` mean nothing where the value is null (`tombstone`).
    """

    group: tuple[Ints, Ints]
    topic: tuple[Ints, Ints]
    partition: Ints
    tombstone: Bits
    offset: Ints
    timestamp: Ints


def read_commits(text: Octets, starts: Ints, dialect: Dialect) -> tuple[RecordColumns, CommitColumns]:
    """Candidates for record lines as such of the log of offset commits."""
    heads, line_end, quotes = read_heads(text, starts, dialect), line_ends(text, starts), standing(text, b'"')
    line = Cursors(text, heads.end.copy())
    line.choice(_KEYS)
    group = _string(line, quotes)
    line.literal(b'","topic":"')
    topic = _string(line, quotes)
    line.literal(b'","partition":')
    partition = line.number(digits=INT[0], bits=INT[1])
    line.literal(b"}} payload: ")
    # A group without a name is none to the exact reader.
    ok = heads.ok & line.ok & (group[1] > group[0]) & (line.at < line_end)
    tombstone = ok & (heads.numbers["value_size"] < 0) & text.stands(TOMBSTONE, line.at)
    value = Cursors(text, np.where(ok, line.at, starts))
    offset, timestamp = _value(value, quotes)
    fits = ok & (heads.numbers["value_size"] >= 0) & value.ok & (value.at == line_end) & text.stands(b"\n", line_end)
    records = decoded_records(text, heads, line_end, tombstone | fits, dialect, json=True)
    return records, CommitColumns(group, topic, partition, tombstone, offset, timestamp)


def _string(line: Cursors, quotes: Ints) -> tuple[Ints, Ints]:
    """Pass over a string without escapes, up to its closing quote."""
    start = line.at.copy()
    end = first_behind(quotes, start, line.text.size)
    line.at = end.copy()
    return start, end


def _value(line: Cursors, quotes: Ints) -> tuple[Ints, Ints]:
    """Offset and commit time of values, in the order of `OffsetCommitValueJsonConverter`; other fields depend on the value's version."""
    line.literal(b'{"version":"')
    line.number(digits=SHORT[0], bits=SHORT[1])
    line.literal(b'","data":{"offset":')
    offset = line.number(digits=LONG[0], bits=LONG[1], signed=True)
    line.optional(b',"leaderEpoch":', digits=INT[0], bits=INT[1])
    line.literal(b',"metadata":"')
    _string(line, quotes)
    line.literal(b'","commitTimestamp":')
    timestamp = line.number(digits=LONG[0], bits=LONG[1], signed=True)
    line.optional(b',"expireTimestamp":', digits=LONG[0], bits=LONG[1])
    given = np.flatnonzero(line.text.stands(b',"topicId":"', line.at))
    if len(given):
        some = Cursors(line.text, line.at[given] + len(b',"topicId":"'))
        _string(some, quotes)
        some.literal(b'"')
        line.at[given] = some.at
        line.ok[given] &= some.ok
    line.literal(b"}}")
    return offset, timestamp
