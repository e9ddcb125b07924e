"""C17 timeout-tuning: an outage of the coordinator outlasted the timeouts of several producers.

Proves: At least three ids had their transactions aborted by timeout within a minute, and the leader of the coordinator log had changed
while they were open: the timeouts are shorter than an outage lasts. Nothing is lost: it does not prove that delivery was wrong.

Bad history: Ongoing of three ids under leader epoch 4; 90 s later PrepareAbort of all three under leader epoch 5, with a timeout of 60 s.

Legal look-alike: A producer that died, whose transaction ends after its timeout under the same leader; fewer than three ids; aborts that
share no outage; an abort by the client.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.words import count, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

FEWEST_IDS, WITHIN_MS = 3, 60_000
_COLUMNS = ("names", "longest_ms", "timeout_ms")
_OF_OUTAGE = f"PARTITION BY cluster ORDER BY decided_at_ms RANGE BETWEEN {WITHIN_MS} PRECEDING AND CURRENT ROW"


def outlasted(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Aborts by timeout across a change of the leader, where those of three ids lie within a minute, in the form of a hit."""
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    # `TransactionStateManager.timedOutTransactions`: the first scan of the new leader finds all that ran out while nobody looked.
    across = histories["coordinator_history"].where(
        "status = 'PrepareAbort' AND previous_status = 'Ongoing' AND partition_leader_epoch > previous_leader_epoch"
    )
    aborts = histories["transaction_instances"].where("abort_cause IN ('coordinator_timeout', 'timeout_or_fence')")
    together = aborts.join(across.select("instance_id").distinct(), "instance_id", "left_semi").selectExpr(
        "*", f"collect_set(transactional_id) OVER ({_OF_OUTAGE}) AS names", "decided_at_ms - start_ms AS longest_ms"
    )
    outages = together.where(f"size(names) >= {FEWEST_IDS}").selectExpr(
        "*", "'C17' AS rule", "row_number() OVER (PARTITION BY cluster ORDER BY size(names) DESC, decided_at_ms, instance_id) AS nth"
    )
    # The worst one of a cluster: it sets the timeout that would have held.
    found = outages.where("nth = 1")
    return hits(SOURCES["transaction_instances"], found, key="cluster", weight="size(names)", columns=_COLUMNS)


RULE = Rule(
    code="C17",
    slug="timeout-tuning",
    # Three clients that fell silent at the same time look the same: an info, until the silence of the coordinator itself is measured.
    severity="info",
    reads=("transaction_instances", "coordinator_history"),
    subject="abort",
    find=outlasted,
    by="",
    found=f"transactional_id producer_id {' '.join(_COLUMNS)}",
    # The transactions are aborted everywhere, as promised: their producers must write them again.
    informs=True,
    proves_delivery_wrong=False,
    cause="transaction.timeout.ms is shorter than the coordinator's log takes to get a leader again",
    remedy=(
        "Nothing to repair. Set transaction.timeout.ms above the longest outage to ride out (at most transaction.max.timeout.ms), and "
        "delivery.timeout.ms below it, so that the client gives up first; on ProducerFencedException close the producer and create a new "
        "one."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """How many ids, and how long their transactions were open when the coordinator was back."""
    row = case.row
    names = sorted(row.texts("names"))
    listed = ", ".join(shown(name) for name in names[:4]) + (" ..." if len(names) > 4 else "")
    message = (
        f"The transactions of {count(len(names), 'transactional id')} ({listed}) were aborted by timeout within a minute of each other, "
        f"right behind a change of the coordinator's leader: open for {row.number('longest_ms') // 1_000} s with a timeout "
        f"of {row.number('timeout_ms') // 1_000} s"
    )
    return Explanation(
        message,
        certainty="likely",
        details={"transactional_ids": names, "open_ms": row.maybe("longest_ms"), "timeout_ms": row.maybe("timeout_ms")},
    )
