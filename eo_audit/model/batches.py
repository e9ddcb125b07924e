"""A record batch as a replica log holds it: the fields of its header, and of its marker."""

from dataclasses import dataclass

COMMIT, ABORT = "COMMIT", "ABORT"
NO_PRODUCER = -1


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch; a control batch with count 0 is one that the cleaner emptied."""

    base_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = -1
    last_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    marker_type: str | None = None
    coordinator_epoch: int | None = None
    count: int = 1
    partition_leader_epoch: int = 0
    max_timestamp_ms: int = 0
    crc_valid: bool = True
    segment_base_offset: int = 0

    @property
    def kind(self) -> str:
        """What the batch is to its producer: data, marker, plain (no producer) or control (any other control batch)."""
        if not self.is_control:
            return "data" if self.producer_id >= 0 else "plain"
        # Only the transaction coordinator writes control batches with a producer id; a shallow dump does not show which marker.
        is_marker = self.marker_type is not None or (self.producer_id >= 0 and self.count > 0)
        return "marker" if is_marker else "control"
