"""Lists of partitions as the coordinator's decoder prints them, thousands at once: `[a-0,b-1]` as text, an array of topics as JSON.

The form is checked byte for byte: a list of any other form is marked, and left to the exact reader.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eo_audit.dump.fast.decoded import INT, first_behind, standing
from eo_audit.dump.lines.columns import slices
from eo_audit.dump.lines.scan import Bits, Cursors, Ints, Octets

_TOPIC_CHARACTERS = np.isin(np.arange(256), np.frombuffer(b"._-", dtype=np.uint8))
for _first, _last in (b"az", b"AZ", b"09"):
    _TOPIC_CHARACTERS[_first : _last + 1] = True  # `Topic.LEGAL_CHARS`


@dataclass(frozen=True)
class Topics:
    """The topics of some lists, in their order: where each stands, whose it is, its partitions."""

    ok: Bits
    list_of: Ints
    start: Ints
    end: Ints
    numbers: Ints
    topic_of: Ints


@dataclass(frozen=True)
class Partitions:
    """The partitions of some lists, in their order.

    Attributes:
        ok: the list has just the form that the decoder prints.
        first, count: of each list, the first of its partitions and how many there are.
        topic: of each partition, by number.
        number: of each partition.
        names: of topics: the name of topic `n` is element `n`.
        size_v0, size_v1: bytes of a list's topics in `TransactionLogValue`, by version; `topics`: how many it has.
    """

    ok: Bits
    first: Ints
    count: Ints
    topic: Ints
    number: Ints
    names: pa.StringArray
    size_v0: Ints
    size_v1: Ints
    topics: Ints


def read_partitions(text: Octets, starts: Ints, ends: Ints, *, json: bool) -> Partitions:
    """Lists of one partition and more.

    Args:
        text: holds them, in order, none inside another.
        starts: behind the opening bracket of each.
        ends: behind its closing bracket.
        json: as JSON prints them.
    """
    # Side by side: what is looked for in them (commas, dashes) then stands nowhere else.
    gathered = slices(text.bytes, starts, ends)
    bounds = np.concatenate(([0], np.cumsum(ends - starts)))
    content = np.frombuffer(gathered.buffers()[2] or b"", dtype=np.uint8)
    lists = Octets(content, 0, int(bounds[-1]))
    topics = _json_topics(lists, bounds) if json else _text_topics(lists, bounds)
    list_of = topics.list_of[topics.topic_of]
    first = np.searchsorted(list_of, np.arange(len(starts)))
    names = slices(content, topics.start, topics.end)
    sizes = _sizes(topics, names, len(starts), merged=not json)
    count = np.bincount(list_of, minlength=len(starts))
    return Partitions(topics.ok, first, count, topics.topic_of, topics.numbers, names, *sizes)


def _text_topics(lists: Octets, bounds: Ints) -> Topics:
    """`a-0,b-1]`: a topic for each partition (`TopicPartition.toString`)."""
    content = lists.bytes[: lists.size]
    ends = np.flatnonzero((content == ord(",")) | (content == ord("]")))
    starts = np.concatenate((np.zeros(min(len(ends), 1), dtype=np.int64), ends[:-1] + 1))
    list_of = np.searchsorted(bounds, ends, side="right") - 1
    # A topic may hold dashes, a partition none: the last one separates them.
    dashes = np.concatenate(([-1], standing(lists, b"-")))
    dash = dashes[np.searchsorted(dashes, ends) - 1]
    line = Cursors(lists, dash + 1)
    numbers = line.number(digits=INT[0], bits=INT[1])
    fits = line.ok & (line.at == ends) & (dash > starts)
    ok = np.ones(len(bounds) - 1, dtype=bool)
    ok[list_of[~fits]] = False
    strange = np.flatnonzero(~_TOPIC_CHARACTERS[content])
    strange = strange[(content[strange] != ord(",")) & (content[strange] != ord("]"))]
    ok[np.searchsorted(bounds, strange, side="right") - 1] = False
    # A topic of a list that is marked may end before it starts: nobody reads it.
    return Topics(ok, list_of, starts, np.where(fits, dash, starts), numbers, np.arange(len(starts)))


def _json_topics(lists: Octets, bounds: Ints) -> Topics:
    """`{"topic":"a","partitionIds":[0,1]},{...}]` (`TransactionLogValueJsonConverter`)."""
    opens = standing(lists, b"{")
    list_of = np.searchsorted(bounds, opens, side="right") - 1
    line = Cursors(lists, opens.copy())
    line.literal(b'{"topic":"')
    name = line.at
    name_end = first_behind(standing(lists, b'"'), name, lists.size)
    line.at = name_end.copy()
    line.literal(b'","partitionIds":[')
    begin = line.at
    close = first_behind(standing(lists, b"]"), begin, lists.size)
    # Each topic ends before the next begins, and the last one with its list: so none is read twice, and no byte lies between two.
    following, stop = np.append(opens[1:], lists.size), bounds[list_of + 1] - 1
    is_last = np.append(list_of[1:] != list_of[:-1], True)[: len(opens)]
    goes_on = lists.stands(b"]},{", close) & (close + 3 == following)
    fits = line.ok & (close > begin) & np.where(is_last, lists.stands(b"]}]", close) & (close + 2 == stop), goes_on)
    ok = np.zeros(len(bounds) - 1, dtype=bool)
    ok[list_of[opens == bounds[list_of]]] = True
    ok[list_of[~fits]] = False
    numbers, topic_of, read = _numbers(lists, begin, close, fits)
    ok[list_of[topic_of[~read]]] = False
    # Of a topic that is marked no name is read.
    return Topics(ok, list_of, np.where(fits, name, opens), np.where(fits, name_end, opens), numbers, topic_of)


def _numbers(lists: Octets, begin: Ints, close: Ints, chosen: Bits) -> tuple[Ints, Ints, Bits]:
    """The numbers in some arrays of numbers, the array of each (index), and whether it is a number."""
    commas = standing(lists, b",")
    low, high = np.searchsorted(commas, begin), np.searchsorted(commas, close)
    # Arrays that were marked have none: they may lie in one another.
    count = np.where(chosen, high - low + 1, 0)
    array_of = np.repeat(np.arange(len(begin)), count)
    place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    comma = np.append(commas, 0)
    starts = np.where(place == 0, begin[array_of], comma[low[array_of] + place - 1] + 1)
    ends = np.where(place == count[array_of] - 1, close[array_of], comma[low[array_of] + place])
    line = Cursors(lists, starts)
    numbers = line.number(digits=INT[0], bits=INT[1])
    return numbers, array_of, line.ok & (line.at == ends)


def unsigned_varint_sizes(values: Ints) -> Ints:
    """Bytes of unsigned varints of less than 2^35 (Kafka `ByteUtils.sizeOfUnsignedVarint`)."""
    sizes = np.ones(len(values), dtype=np.int64)
    for bits in (7, 14, 21, 28):
        sizes += values >> bits != 0
    return sizes


def _sizes(topics: Topics, names: pa.StringArray, lists: int, *, merged: bool) -> tuple[Ints, Ints, Ints]:
    """Bytes of the topics of each list in `TransactionLogValue`, versions 0 and 1, and how many there are; `merged`: a topic that is
    printed several times is one."""
    list_of, length = topics.list_of, topics.end - topics.start
    count = np.bincount(topics.topic_of, minlength=len(list_of))
    if merged and len(list_of):
        indices = names.dictionary_encode().indices
        code: NDArray[np.int32] = np.frombuffer(indices.buffers()[1], dtype=np.int32, count=len(indices))
        # Lists stay in their order: the topic is the lower part of the number that is sorted.
        width = int(code.max()) + 1
        both, first, count = np.unique(list_of * width + code, return_index=True, return_counts=True)
        list_of, length = both // width, length[first]
    v0 = 6 + length + 4 * count
    v1 = unsigned_varint_sizes(length + 1) + length + unsigned_varint_sizes(count + 1) + 4 * count + 1
    return _summed(v0, list_of, lists), _summed(v1, list_of, lists), np.bincount(list_of, minlength=lists)


def _summed(values: Ints, list_of: Ints, lists: int) -> Ints:
    """The sum of the values of each list; they come in the order of lists."""
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(values)))
    bounds = np.searchsorted(list_of, np.arange(lists + 1))
    summed: Ints = sums[bounds[1:]] - sums[bounds[:-1]]
    return summed
