"""One entry of the coordinator log, as the dump prints it (`TransactionLogValue`)."""

from dataclasses import dataclass

Partitions = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Entry:
    """One entry of an id: the printed fields (None where the dump does not print them), times in ms.

    `status` is Tombstone for a tombstone; `after_gap` says that a segment is missing somewhere since the id's previous entry,
    `nothing_before` that the log is whole from offset 0 up to here; `log_previous_batch_ms` and `log_previous_leader_epoch` are the append
    time and the leader epoch of the entry before it in the log, of whatever id.
    """

    offset: int
    status: str
    producer_id: int | None = None
    epoch: int | None = None
    timeout_ms: int | None = None
    partitions: Partitions = frozenset()
    last_update_ms: int | None = None
    start_ms: int | None = None
    client_version: int | None = None
    batch_ms: int | None = None
    leader_epoch: int | None = None
    log_previous_batch_ms: int | None = None
    log_previous_leader_epoch: int | None = None
    after_gap: bool = False
    nothing_before: bool = False
