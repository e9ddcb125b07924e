"""Sentences that several rules of this family share."""

from typing import TYPE_CHECKING

from eo_audit.rules.row import Row
from eo_audit.rules.waiting import whose

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# Leaders ask the coordinator only from 3.6 on (KIP-890, transaction.partition.verification.enable).
UNVERIFIED = "the partition leader took a transactional write without asking the coordinator (KAFKA-12671, KAFKA-14402)"
DATA = "row_kind = 'data'"


def writer(row: Row, context: "Context") -> str:
    """Who wrote a row of producer_history."""
    instance = context.instances.get(row.word("instance_id"))
    return whose(instance.text("transactional_id") if instance else None, row.maybe("producer_id"), row.maybe("producer_epoch"))
