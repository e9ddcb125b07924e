"""Why was a transaction aborted, when no coordinator log was dumped? What epochs of the data partition alone can tell (KIP-360, KIP-890).

1. Marker at the data's epoch: transaction version 0 or 1, and the client (or an operator, or a timeout of 0.11.0.0) ended it.
2. Marker two above the data: the coordinator of a 4.0.0 broker fenced the producer, because of a timeout or of a new instance.
3. Marker one above the data: version 2 does so on every end, versions 0 and 1 when the coordinator fences. The next data tells more:
   at the marker's epoch the same client went on (version 2), above it an InitProducerId came between, which is what fences.
Epochs do not tell a client that aborted and restarted at once from one that was fenced, nor a timeout from either: never definite.
"""

CLIENT_ABORT, FENCED, TIMEOUT_OR_FENCE, UNKNOWN = "client_abort", "fenced_by_init", "timeout_or_fence", "unknown"
LIKELY, OPEN = "likely", "open"


def cause_from_epochs(data_epoch: int, marker_epoch: int, next_epoch: int | None) -> tuple[str, str]:
    """Cause and certainty of an abort.

    Args:
        data_epoch: epoch of the aborted data.
        marker_epoch: epoch of its ABORT marker.
        next_epoch: epoch of the producer's next data in the partition; None when there is none.
    """
    raised = marker_epoch - data_epoch
    # A fence raises the epoch (`prepareFenceProducerEpoch`; a timeout since KAFKA-6119), EndTxn of versions 0 and 1 never does.
    if raised == 0:
        return CLIENT_ABORT, LIKELY
    # InitProducerId raises it once more before the new owner may write (`prepareIncrementProducerEpoch`).
    if raised == 1 and next_epoch is not None:
        return (FENCED, OPEN) if next_epoch > marker_epoch else (CLIENT_ABORT, OPEN)
    return (TIMEOUT_OR_FENCE, OPEN) if raised == 2 else (UNKNOWN, OPEN)
