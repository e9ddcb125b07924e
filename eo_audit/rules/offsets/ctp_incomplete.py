"""O04 ctp-incomplete: a transactional id that commits output and input offsets together did only one of them in some transactions.

Proves: Some committed transactions of an id lack what nearly all others of it have: output, or offsets of a group. It does not
prove that delivery was wrong.

Bad history: Forty transactions of settlement-0 with payments and __consumer_offsets, and one with payments only: its input is read again
after a restart.

Legal look-alike: An application that filters its input, so that a batch has no output; one that writes to another sink as well; a producer
that hardly ever commits both; a transaction of which the list of partitions is not known whole.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.rules.waiting import whose
from eo_audit.words import count, partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

FEWEST = 10  # transactions with both, before the others are exceptions
SHARE = 0.1
_OFFSETS = "'__consumer_offsets'"


def incomplete(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Committed transactions that lack output or offsets where their id nearly always has both, in the form of a hit."""
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    of_id = "OVER (PARTITION BY replica_log_id, transactional_id)"
    known = histories["transaction_instances"].where("decision = 'COMMIT' AND partitions_complete AND size(partitions) > 0")
    # Ids that never commit offsets are most: the window sees only what may be told.
    told = known.selectExpr(
        "*",
        f"exists(partitions, p -> p.topic = {_OFFSETS}) AS has_offsets",
        f"exists(partitions, p -> p.topic <> {_OFFSETS}) AS has_output",
    )
    counted = told.selectExpr("*", f"count_if(has_offsets AND has_output) {of_id} AS both", f"count(1) {of_id} AS transactions")
    found = counted.where(
        f"NOT (has_offsets AND has_output) AND both >= {FEWEST} AND transactions - both <= {SHARE} * transactions"
    ).selectExpr("*", "'O04' AS rule")
    return hits(SOURCES["transaction_instances"], found, key="transactional_id", weight="0", columns=_COLUMNS)


_COLUMNS = ("partitions", "both", "transactions", "has_output", "data_epoch")
RULE = Rule(
    code="O04",
    slug="ctp-incomplete",
    severity="info",
    reads=("transaction_instances",),
    subject="transaction",
    find=incomplete,
    by="transactional_id",
    found=f"instance_id cluster transactional_id producer_id {' '.join(_COLUMNS)}",
    informs=True,
    proves_delivery_wrong=False,
    cause="the application committed without sendOffsetsToTransaction(), or had no output for this input",
    remedy=(
        "Nothing to do if the application filters its input. Else see whether every transaction calls sendOffsetsToTransaction(): without "
        "it the same input is processed again after a restart."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """What the first of them lacks, and how often the others have both."""
    row = case.row
    both, all_of_it = row.number("both"), row.number("transactions")
    lacks = "offsets of a group" if row.flag("has_output") else "output"
    listed = partitions(row.partitions())
    message = (
        f"{count(all_of_it - both, 'committed transaction')} of {whose(row.text('transactional_id'), row.maybe('producer_id'))} "
        f"{'has' if all_of_it - both == 1 else 'have'} only one of output and offsets, where {both} have both: the first lacks {lacks} "
        f"({listed})"
    )
    return Explanation(
        message,
        certainty="open",
        details={"both": both, "transactions": all_of_it, "lacks": lacks, "partitions": [f"{t}-{p}" for t, p in row.partitions()]},
        producer_epoch=row.maybe("data_epoch"),
    )
