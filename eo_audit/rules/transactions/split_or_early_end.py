"""T11 split-or-early-end: the marker of a transaction that had ended came again, and ended the producer's next one too early.

Proves: A marker repeats one that stands in this log already, and data of the producer's next transaction lies between: that data ended
before its own coordinator decided, and what the next transaction wrote afterwards ended apart from it.

Bad history: Data, COMMIT of epoch 4, data of the next transaction, the same COMMIT of epoch 4 once more, data, ABORT.

Legal look-alike: A marker that was sent twice in a row (T09); an operator's ABORT (T13); under TV0/1 a transaction of which the
coordinator's log has nothing, whose own marker looks the same: there it is only likely. Times tell only where the marker stands within the
life of a transaction by more than the clocks may lie apart: a producer has one at a time.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T11",
    slug="split-or-early-end",
    severity="critical",
    reads=("producer_history",),
    subject="marker",
    needs=("order", "past", "matched"),
    # A repeat that ends nothing is T09's; one whose epoch is not that of the data it ended stands in another's place (T10, T05).
    where=(
        "row_kind = 'marker' AND marker_role = 'duplicate' AND in_open_transaction AND predecessor = 'observed' "
        "AND producer_epoch = previous_epoch"
    ),
    # Under transaction.version 2 no two transactions of a producer have markers of one epoch.
    weight="CASE instance_source WHEN 'epoch' THEN 2 WHEN 'time' THEN 1 ELSE 0 END",
    columns="base_offset marker_type marker_coordinator_epoch instance_source instance_decision previous_epoch producer_epoch span_id",
    asks=ASKS,
    cause=(
        "a delayed marker of the transaction before (its request was sent again, and the first copy arrived late: KAFKA-17754, "
        "KAFKA-19446); brokers before 4.2 accept it"
    ),
    remedy=(
        "Nothing to abort: what it ended is decided for every reader. Compare with what the coordinator decided on this transaction "
        "elsewhere (T05, T06, T15), and correct downstream by offset. transaction.version=2 on Kafka 4.2 or later refuses such markers."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Certain by the epoch under TV2, likely by times; else only the count of the decisions speaks."""
    row = case.row
    last = context.last_of_producer.get((case.log.cluster, row.number("producer_id"))) if case.log else None
    # A client that went back to TV1 keeps its epoch from transaction to transaction (KIP-890: the version is told per transaction).
    proved = row.text("instance_source") == "epoch" and (last is None or last.text("protocol") == "tv2")
    by_time = not proved and row.text("instance_source") == "time"
    how = "" if proved else ", within a transaction that was decided later" if by_time else ", by the number of its decisions"
    of_them = "" if case.hits == 1 else f" ({count(case.hits, 'such marker')})"
    began = "" if row.maybe("span_id") is None else f" from offset {row.maybe('span_id')} on"
    message = (
        f"The {row.word('marker_type')} of {who(case, context)} at offset {row.maybe('base_offset')} repeats one that stands in this log "
        f"already{how}, and ended data{began} that came behind it{of_them}"
    )
    return Explanation(
        message,
        severity="critical" if proved or by_time else "warning",
        certainty="definite" if proved else "likely",
        named=id_of(case, context),
        details={
            "markers": case.hits,
            "marker_epoch": row.maybe("producer_epoch"),
            "data_epoch": row.maybe("previous_epoch"),
            "coordinator_epoch": row.maybe("marker_coordinator_epoch"),
        },
    )
