"""Bytes that records take in their batches, many at once (`DefaultRecord.sizeOfBodyInBytes`)."""

import numpy as np

from eo_audit.dump.fast.fields import LineColumns
from eo_audit.dump.fast.lines import RecordColumns
from eo_audit.dump.lines.scan import Ints


def varint_sizes(values: Ints) -> Ints:
    """Bytes of zig-zag varints."""
    # Seven bits a byte (Kafka `ByteUtils.sizeOfVarlong`). By shifts: a logarithm in floating point is wrong next to powers of two.
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    sizes, bits = np.ones(len(values), dtype=np.int64), 7
    while bits < 64 and (longer := zigzag >> np.uint64(bits) != 0).any():
        sizes += longer
        bits += 7
    return sizes


def least_sizes(batches: LineColumns, records: RecordColumns, index: Ints, group_of: Ints, first: Ints) -> Ints:
    """Bytes of records in their uncompressed batches, with the header keys read: the fewest that they can have.

    Args:
        batches, records: the lines.
        index: the records.
        group_of: the batch (index) of each of them.
        first: the first record (index) of each batch.
    """
    numbers = batches.numbers
    # Deltas are taken to the first timestamp of the batch, which no dump prints. It is that of the first record while none was
    # compacted away and the client set the time; else the least is one byte (attributes and header count are a byte each at least).
    base = numbers["base_offset"][group_of]
    dense = numbers["last_offset"][group_of] - base + 1 == numbers["count"][group_of]
    dense &= batches.codes("timestamp_type")[group_of] == 0
    timestamp = records.line.numbers["timestamp_ms"]
    begun = timestamp[first[group_of]]
    key, value = records.key_size[index], records.value_size[index]
    body = 2 + varint_sizes(np.where(dense, timestamp[index] - begun, 0)) + varint_sizes(records.offset[index] - base)
    body += varint_sizes(key) + varint_sizes(value) + np.maximum(key, 0) + np.maximum(value, 0)
    return body + varint_sizes(body) + records.headers[index]
