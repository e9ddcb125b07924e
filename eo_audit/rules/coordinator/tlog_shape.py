"""C15 tlog-shape: a batch in the coordinator log that no coordinator writes.

Proves: A client wrote to __transaction_state: a batch there has a producer id, is transactional, or is a marker. By itself it does not
prove that delivery was wrong.

Bad history: A batch of producer 4 with sequence 0 between entries of the coordinator.

Legal look-alike: Several tombstones in one batch, written when ids expire; compressed batches, where somebody gave the topic a
compression.type. An entry without a key is not read by the dump tool, and shows as text that was not understood.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.rules.writers import ASKS, id_of, named
from eo_audit.words import count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

_COLUMNS = ("row_kind", "base_offset", "is_transactional", "partition", "marker_type")


def foreign(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Batches of __transaction_state that a client or another broker's part wrote, in the form of a hit."""
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    logs = histories["visibility"].where("topic = '__transaction_state'").selectExpr("replica_log_id", "partition")
    # `TransactionLog` entries have neither producer id nor sequence, and no transaction (`MemoryRecords.withRecords`).
    odd = "judged AND (row_kind <> 'plain' OR producer_id >= 0 OR coalesce(is_transactional, false))"
    found = histories["producer_history"].where(odd).join(logs.hint("broadcast"), "replica_log_id").selectExpr("*", "'C15' AS rule")
    return hits(SOURCES["producer_history"], found, key="''", weight="0", columns=_COLUMNS)


RULE = Rule(
    code="C15",
    slug="tlog-shape",
    severity="error",
    reads=("producer_history",),
    subject="coordinator_entry",
    needs=("ordered",),
    find=foreign,
    by="",
    found=f"producer_id producer_epoch {' '.join(_COLUMNS)}",
    asks=ASKS,
    # What the coordinator made of it the other C rules tell.
    proves_delivery_wrong=False,
    cause="a client, a mirror or a restore tool wrote to __transaction_state",
    remedy=(
        "Find who may write to __transaction_state (kafka-acls.sh --bootstrap-server $BOOTSTRAP --list --topic __transaction_state) and "
        "take it away. What it wrote counts as the coordinator's own: "
        "check the ids of this partition (C03, C04), and restart their producers."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """How many, and what the first of them is."""
    row = case.row
    kind = row.word("row_kind")
    what = {
        "marker": f"a marker ({row.word('marker_type')}) of {named(case, context)}",
        "data": f"a{' transactional' if row.flag('is_transactional') else ''} batch of {named(case, context)}",
        "control": "a control batch",
    }.get(kind, "a transactional batch")
    message = (
        f"__transaction_state-{row.maybe('partition')} holds {count(case.hits, 'batch', 'batches')} that no coordinator writes; the first, "
        f"at offset {row.maybe('base_offset')}, is {what}"
    )
    details = {"batches": case.hits, "kind": kind}
    return Explanation(message, named=id_of(case, context), details=details, producer_id=row.maybe("producer_id"))
