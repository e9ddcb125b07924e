"""Records of topic decoders that were taken of a stretch, as the columns of their tables that their own text fills."""

import numpy as np
import pyarrow as pa

from eo_audit.dump.fast.commits import CommitColumns
from eo_audit.dump.fast.entries import NO_LIST, EntryColumns
from eo_audit.dump.lines.columns import arrow_schema, boolean, numeric, slices, structs, vocabulary
from eo_audit.dump.lines.decoders import STATE_NAMES
from eo_audit.dump.lines.scan import Ints, Octets

_NUMBERS = (
    "value_version", "producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "timeout_ms", "last_update_ms",
    "start_ms", "client_transaction_version",
)  # fmt: skip


def entry_columns(text: Octets, entries: EntryColumns, chosen: Ints) -> dict[str, pa.Array]:
    """The columns of the chosen entries (by index, in the order of the text) of a stretch, by name."""
    live = ~entries.tombstone[chosen]
    columns = {
        "transactional_id": slices(text.bytes, entries.id_start[chosen], entries.id_end[chosen]),
        "tombstone": boolean(~live),
        "status": vocabulary(entries.status[chosen], STATE_NAMES, live),
        "partitions": _partitions(entries, chosen),
        "size_identity_ok": boolean(entries.size_fits[chosen]),
    }
    for name in _NUMBERS:
        kind = arrow_schema("coordinator_entries").field(name).type
        printed = name in entries.numbers
        values = entries.numbers[name][chosen] if printed else np.zeros(len(chosen), dtype=np.int64)
        given = live & (entries.given[name][chosen] if name in entries.given else printed)
        columns[name] = numeric(values, kind, given)
    return columns


def commit_columns(text: Octets, commits: CommitColumns, chosen: Ints) -> dict[str, pa.Array]:
    """The columns of the chosen offset commits (by index, in the order of the text) of a stretch, by name."""
    live, count = ~commits.tombstone[chosen], len(chosen)
    return {
        "record_kind": vocabulary(np.zeros(count, dtype=np.int32), ("commit",)),
        "group": slices(text.bytes, commits.group[0][chosen], commits.group[1][chosen]),
        "topic": slices(text.bytes, commits.topic[0][chosen], commits.topic[1][chosen]),
        "partition": numeric(commits.partition[chosen], pa.int32()),
        "committed_offset": numeric(commits.offset[chosen], pa.int64(), live),
        "commit_timestamp_ms": numeric(commits.timestamp[chosen], pa.int64(), live),
        "tombstone": boolean(~live),
    }


def _partitions(entries: EntryColumns, chosen: Ints) -> pa.Array:
    lists, lists_of = entries.partitions, entries.list_of[chosen]
    kind = arrow_schema("coordinator_entries").field("partitions").type
    filled = lists_of != NO_LIST
    lengths = np.zeros(len(chosen), dtype=np.int64)
    lengths[filled] = lists.count[lists_of[filled]]
    # Partitions of one list stand one behind the other; lists between them may have been left to the exact reader.
    begins = np.cumsum(lengths) - lengths
    first = np.zeros(len(chosen), dtype=np.int64)
    first[filled] = lists.first[lists_of[filled]]
    index = np.arange(int(lengths.sum())) + np.repeat(first - begins, lengths)
    topics = lists.names.take(numeric(lists.topic[index], pa.int64()))
    return structs(lengths, kind, [topics, numeric(lists.number[index], pa.int32())], entries.has_list[chosen])
