"""Who wrote what a case is about: by the name that people know, the transactional id."""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case
from eo_audit.rules.waiting import whose

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

# What a rule asks of the context to name its writers. A producer id is given to one transactional id, and never to another
# (`ProducerIdManager`), so any transaction of it tells.
ASKS = ("last_of_producer",)


def id_of(case: Case, context: "Context") -> str | None:
    """The transactional id of the producer of a case, as far as the coordinator's log tells it."""
    row = case.row.lenient
    # The row's own transaction first: it is known even where the case is of no log.
    told = context.instances.get(row.word("instance_id"))
    if told is None and case.log is not None:
        return id_of_producer(case, context, row.number("producer_id"))
    return told.text("transactional_id") if told else None


def id_of_producer(case: Case, context: "Context", producer_id: int) -> str | None:
    """The transactional id of a producer of the cluster that a case is in."""
    last = context.last_of_producer.get((case.log.cluster, producer_id)) if case.log else None
    return last.text("transactional_id") if last else None


def named(case: Case, context: "Context", epoch: int | None = None) -> str:
    """Who wrote, with its epoch where it is given: `late-writer-0 (producer 1, epoch 0)`."""
    return whose(id_of(case, context), case.row.lenient.maybe("producer_id"), epoch)


def who(case: Case, context: "Context") -> str:
    """The same, with the epoch of the most telling row."""
    return named(case, context, case.row.lenient.maybe("producer_epoch"))


def of_transactions(case: Case, context: "Context") -> str:
    """Whose transactions a case of instance_partitions is about, with their epoch where they have one in common."""
    told = [context.instances.get(example.row.lenient.word("instance_id")) for example in case.examples]
    epochs = {instance.maybe("data_epoch") if instance else None for instance in told}
    row = case.row.lenient
    # Under transaction.version 2 each transaction has its own.
    return whose(row.text("transactional_id"), row.maybe("producer_id"), epochs.pop() if len(epochs) == 1 else None)
