"""I07 id-churn: most transactional ids are used once and die in their first transaction.

Proves: More than half of the ids never got beyond their first transaction, which the coordinator ended after its timeout: ids are made up
anew at each start, so a restart fences nobody, and consumers wait for the whole timeout. It does not prove that delivery was wrong.

Bad history: Ten ids app-<random>; eight of them Empty, Ongoing, PrepareAbort after the timeout, and nothing more.

Legal look-alike: Jobs with an id of their own that commit and end; a few ids that died; ids that come back after a timeout.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.words import duration, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

FEWEST = 5  # fewer ids that died say nothing of how ids are made
SHARE = 0.5
_COLUMNS = ("ids", "died", "examples", "timeout_ms")


def churned(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Clusters in which most ids died in their first transaction, in the form of a hit: the row of the last of them."""
    from pyspark.sql import functions as F  # late, for whoever reads the catalogue and needs no Spark

    from eo_audit.rules.cases import hits

    # The first transaction of an id begins behind its birth: Empty with epoch 0 (`handleInitProducerId`).
    first = histories["coordinator_history"].where("status = 'Ongoing' AND previous_status = 'Empty' AND previous_epoch = 0")
    last = histories["transaction_instances"].where("is_last")
    died = "(born IS NOT NULL AND abort_cause IN ('coordinator_timeout', 'timeout_or_fence'))"
    born = first.selectExpr("instance_id AS born").distinct()
    totals = {
        "ids": "count(1)",
        "died": f"count_if({died})",
        "examples": f"slice(array_sort(collect_list(IF({died}, transactional_id, NULL))), 1, 3)",
        "row": f"max_by(struct(*), IF({died}, struct(decided_at_ms, transactional_id), NULL))",
    }
    clusters = last.join(born, last.instance_id == born.born, "left").groupBy("cluster")
    counted = clusters.agg(*[F.expr(total).alias(name) for name, total in totals.items()])
    # An id that was initialised anew since has no last transaction, and lives.
    living = histories["coordinator_history"].where("is_last AND status = 'Empty'").groupBy("cluster").agg(F.count("*").alias("living"))
    of_all = counted.join(living, "cluster", "left").withColumn("ids", F.expr("ids + coalesce(living, 0L)"))
    found = of_all.where(f"died >= {FEWEST} AND died > {SHARE} * ids").selectExpr("row.*", "ids", "died", "examples", "'I07' AS rule")
    return hits(SOURCES["transaction_instances"], found, key="cluster", weight="died", columns=_COLUMNS)


RULE = Rule(
    code="I07",
    slug="id-churn",
    severity="warning",
    reads=("transaction_instances", "coordinator_history"),
    subject="transaction",
    find=churned,
    by="",
    found=f"cluster transactional_id producer_id {' '.join(_COLUMNS)}",
    informs=True,
    proves_delivery_wrong=False,
    cause="transactional.id is random, or holds a host name, a process id or the time: each start is a new id",
    remedy=(
        "Use ids that an instance keeps over restarts (app and input partition, or a stable instance number): initTransactions() then "
        "ends at once what a crash left open, and consumers do not wait for the timeout."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """How many of how many, with some of their names."""
    row = case.row
    died, ids = row.number("died"), row.number("ids")
    named = ", ".join(shown(name) for name in row.texts("examples")) + (" ..." if died > len(row.texts("examples")) else "")
    return Explanation(
        f"{died} of {ids} transactional ids died in their first transaction, which the coordinator ended after its timeout "
        f"({duration(row.maybe('timeout_ms'))}): {named}. A restart under another id ends nothing, so consumers wait that long each time",
        certainty="likely",
        details={"ids": ids, "died": died, "examples": row.texts("examples")},
    )
