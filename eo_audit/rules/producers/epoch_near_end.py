"""P14 epoch-near-end: a producer's epoch comes near 32767, where it ends.

Proves: A producer has used up nearly all its epochs, or one that no broker hands out for data.

Bad history: Transactional data with epoch 32767; data with epoch 32400 of a transactional id that still has this producer id.

Legal look-alike: Markers with epoch 32767 (the last fence of a producer id); an id that has gone on to a new producer id since;
transaction.version 2, where each transaction takes one epoch (KIP-890) and the producer id changes at the end by itself.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, named
from eo_audit.words import count

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

END = 32767  # Short.MAX_VALUE: the coordinator keeps it for fencing (`TransactionMetadata.isProducerEpochExhausted`)

RULE = Rule(
    code="P14",
    slug="epoch-near-end",
    severity="info",
    reads=("producer_history",),
    subject="producer_batch",
    needs=("order", "epochs"),
    # 767 epochs before the end there is time to look, at one restart a minute still half a day.
    where="row_kind = 'data' AND producer_epoch >= 32000",
    weight="producer_epoch + IF(is_transactional, 1, 0)",
    columns="base_offset is_transactional",
    asks=ASKS,
    cause="a producer that is started, or raises its epoch, again and again: a restart loop, two instances of one transactional id",
    remedy=(
        "Find out why the producer is initialised so often: `kafka-transactions.sh describe` shows its epoch now. At the end the broker "
        "gives it a new producer id, which needs no help. Before transaction.version 2 is switched on, upgrade to 4.1 or later "
        "(KAFKA-19367)."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """An error for an epoch that data cannot have; else an info: at the end the coordinator changes the producer id, and nothing breaks."""
    row = case.row
    epoch = row.number("producer_epoch")
    writer, at = named(case, context), row.maybe("base_offset")
    if epoch >= END and row.flag("is_transactional"):
        return Explanation(
            f"Transactional data of {writer} at offset {at} has epoch {epoch}, which brokers keep for fencing and give to no producer",
            named=id_of(case, context),
            severity="error",
            cause="a fault of the coordinator at the last epoch (KAFKA-19367, KAFKA-20090), or a segment that was changed by hand",
            remedy="Restart the producer: the coordinator gives its transactional id a new producer id. Upgrade brokers to 4.1 or later.",
            details={"epoch": epoch},
        )
    over = _over(case, context)
    left = f"{count(END - epoch, 'epoch')} before the last one" if epoch < END else "the last one"
    message = f"Epoch {epoch} of {writer} at offset {at} is {left}{f': {over}' if over else ''}"
    details = {"epoch": epoch, "batches": case.hits}
    return Explanation(message, named=id_of(case, context), details=details)


def _over(case: Case, context: "Context") -> str | None:
    """Why nothing is to be found out; None where the producer is still on its way to the end."""
    cluster = case.log.cluster if case.log else ""
    last = context.last_of_producer.get((cluster, case.row.number("producer_id")), Row({}))
    if not case.row.flag("is_transactional"):
        return None
    if last.text("protocol") == "tv2" or context.cluster(cluster).maybe("transaction_version") == 2:
        return "each transaction takes one under transaction.version 2, and the producer id changes at the end"
    following = last.maybe("next_producer_id")
    if following is not None and following not in (-1, case.row.number("producer_id")):
        return f"the coordinator has given its transactional id producer id {following} since"
    return None
