"""C06 wrong-tlog-partition: an id lies in another partition of the coordinator log than its hash puts it.

Proves: The log of one coordinator holds an id that clients look for at another one: two coordinators may work for the same id, and neither
fences the other's producers. By itself it does not prove that delivery was wrong.

Bad history: An id whose hash belongs in partition 0 of 3 has its entries in partition 1.

Legal look-alike: An id with a negative hash (Kafka takes the absolute value, many tools mask the sign); an id that was printed with
question marks; a log of which nothing says how many partitions it has.
"""

from typing import TYPE_CHECKING

from eo_audit.rules import commands
from eo_audit.rules.coordinator.words import ids_of
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import GARBLED

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="C06",
    slug="wrong-tlog-partition",
    severity="critical",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    needs=("placed_ids",),
    # `TransactionStateManager.partitionFor`: Utils.abs(transactionalId.hashCode) % transactionTopicPartitionCount. Asked once for each id.
    where=f"home_partition <> coordinator_partition AND NOT {GARBLED}",
    # All ids that belong in one other partition are one case: that is what a changed number of partitions leaves.
    by="home_partition",
    columns="home_partition coordinator_partition entry_offset",
    # Fencing is in danger, no record is shown to be wrong.
    proves_delivery_wrong=False,
    cause=(
        "the number of partitions of __transaction_state was changed, the segments are another cluster's, or something other than a "
        "coordinator wrote them"
    ),
    remedy="See the finding: stop the producers of these ids, and compare the number of partitions with what the brokers say.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """Names the ids, where they lie and where they belong."""
    row = case.row
    cluster = context.cluster(case.log.cluster) if case.log else context.cluster("")
    of = cluster.maybe("id_partitions")
    here, home = f"__transaction_state-{row.maybe('coordinator_partition')}", f"__transaction_state-{row.maybe('home_partition')}"
    is_told = cluster.text("coordinator_partitions_source") == "manifest"
    counted = f"{of} partitions" if is_told else f"{of} partitions, as nearly all other ids lie"
    one = case.hits == 1
    message = (
        f"{ids_of(case)} {'lies' if one else 'lie'} in {here} and "
        f"{'belongs' if one else 'belong'} in {home} ({counted}): clients ask the coordinator of {home}, which does not know "
        f"{'it' if one else 'them'} from here"
    )
    return Explanation(
        message,
        certainty="definite" if is_told else "likely",
        remedy=_remedy(here, home),
        details={"ids": case.hits, "partitions": of, "source": cluster.text("coordinator_partitions_source")},
        producer_id=row.maybe("producer_id"),
        producer_epoch=row.maybe("producer_epoch"),
    )


def _remedy(here: str, home: str) -> str:
    return (
        f"Compare the number of partitions with the brokers' own: {commands.describe_topic('__transaction_state')}. It must never be "
        f"changed while ids exist. If it was: stop the producers of these ids, let their transactions in {here} end, and start them anew: "
        f"initTransactions() then creates them in {home} under new producer ids, which fence nothing of the old ones. If it was not, find "
        f"out who may write to __transaction_state, and whether {here} was copied from another cluster."
    )
