"""S01 snapshot-mismatch: a producer snapshot says something else than the log below it.

Proves: A broker that starts from this snapshot remembers its producers wrongly: it takes duplicates, or refuses what is right.

Bad history: The log ends with sequence 7 of producer 2, the snapshot at its end says 12; a snapshot without any producer over a log with
three (the broker lost its snapshots, and started as if nobody had written); an older snapshot beside a sound one.

Legal look-alike: A producer that expired, also by a setting that was lowered while the broker ran and that no dump tells, or by
transactional.id.expiration.ms before its broker was upgraded to 3.4 or later; one that brokers up to 2.4.0 forgot, with the head of its
log or by a marker of another epoch; one whose data lies below the first offset dumped; a transaction that is open across the snapshot's
offset; a compacted log, of which the snapshot still describes batches that are gone; a marker with a new epoch, which empties what the
broker remembers; 0.11, which remembers the marker's offset; the timestamps, which meant something else before 2.4.1; a snapshot of an
older dump that the broker has removed since, as it does behind the end of a log that it cut off.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, named
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# As the snapshot calls it -> the columns of snapshot_states.
_FIELDS = {
    "epoch": "epoch",
    "lastSequence": "last_sequence",
    "lastOffset": "last_offset",
    "offsetDelta": "offset_delta",
    "coordinatorEpoch": "coordinator_epoch",
    "currentTxnFirstOffset": "open_from",
}

RULE = Rule(
    code="S01",
    slug="snapshot-mismatch",
    severity="error",
    reads=("snapshot_states",),
    subject="snapshot",
    needs=("order", "epochs", "past", "snapshot"),
    where="state IN ('mismatch', 'missing', 'extra', 'empty')",
    columns="state differences producers snapshot_offset " + " ".join(f"said_{name} replayed_{name}" for name in _FIELDS.values()),
    asks=ASKS,
    cause=(
        "the snapshot was written before the log was flushed and the machine stopped (KAFKA-9892 up to 2.7), it was copied from another "
        "replica or backup, or changed by hand"
    ),
    remedy=(
        "While another replica leads, stop this broker, delete this snapshot file only, and start it: the state is rebuilt from the older "
        "snapshot and the log. Where no older snapshot lies beside it, remove the partition's folder instead, and the replica is fetched "
        "again: a broker that was stopped cleanly takes a log without any snapshot for one without producers. Until then look for "
        "duplicates (P01, P02) behind this offset."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """What the snapshot says, and what the log says."""
    row = case.row
    at = f"The producer snapshot at offset {row.maybe('snapshot_offset')}"
    state = row.word("state")
    if state == "empty":
        return Explanation(
            f"{at} holds no producer, though the log below it has {count(row.maybe('producers'), 'producer')}: a broker that starts from "
            "it takes any of their batches a second time",
            certainty="likely",
            cause="the broker found no snapshot after a clean stop (lost, or not restored) and began as if nobody had written",
            # With nothing older to begin from it would be made as empty once more.
            remedy=(
                "Deleting this file mends nothing where no older snapshot lies beside it. While another replica leads, stop this broker, "
                "remove the partition's folder on it, and start it: the replica is fetched again, with its producers. Until then look for "
                "duplicates (P01, P02) behind this offset."
            ),
            details={"state": state, "producers": row.maybe("producers")},
        )
    writer = named(case, context)
    message = {
        "missing": f"{at} does not know {writer}, which wrote below it and had no time to expire",
        "extra": f"{at} knows {writer} with its last batch at offset {row.maybe('said_last_offset')}, where the log has nothing of it",
        "mismatch": f"{at} says of {writer} {_differences(row)}",
    }[state]
    return Explanation(
        message,
        certainty="definite" if state == "mismatch" else "likely",
        named=id_of(case, context),
        details={"state": state, "differences": row.texts("differences"), "snapshots": case.hits},
    )


def _differences(row: Row) -> str:
    return ", and ".join(
        f"{name} {_told(row, 'said', _FIELDS[name])}, the log {_told(row, 'replayed', _FIELDS[name])}" for name in row.texts("differences")
    )


def _told(row: Row, source: str, field: str) -> str:
    value = row.maybe(f"{source}_{field}")
    return "none" if value is None else str(value)
