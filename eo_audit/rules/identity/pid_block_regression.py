"""I04 pid-block-regression: a block of producer ids was given out twice.

Proves: A ProducerIdsRecord does not raise the next producer id: ids that brokers had given to producers are given to others. Brokers may
take what those send for duplicates and drop it without a word, and no log shows that: by itself it does not prove that delivery was wrong.

Bad history: nextProducerId 5000 at offset 84 of __cluster_metadata-0, nextProducerId 1000 at offset 583.

Legal look-alike: Steps of more than one block; a broker that gets a new block after each restart; a snapshot of the metadata, which repeats
the last block under an offset of its own.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="I04",
    slug="pid-block-regression",
    severity="critical",
    reads=("id_allocation",),
    subject="id_block",
    needs=("order",),
    # `ProducerIdControlManager.replay` refuses a record whose id is not greater than the one before.
    where="row_kind = 'block' AND next_producer_id <= highest_before",
    by="",
    weight="highest_before - next_producer_id",
    columns="first_offset previous_offset next_producer_id highest_before broker_id",
    # Brokers drop in silence what they take for duplicates.
    proves_delivery_wrong=False,
    cause=(
        "the metadata of the cluster was put together from two histories, or restored from an old copy; or a migration from ZooKeeper took "
        "over a block that had been set back"
    ),
    remedy=(
        "Stop the producers that started since. Look for ids that two of them share (I01). Set the block forward above the highest "
        "producer id in the logs, by the metadata log that has it, and start the producers anew: dropped batches leave no trace, so "
        "compare what they sent with what is in the topics."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """The widest step back speaks."""
    row = case.row
    highest, following = row.number("highest_before"), row.number("next_producer_id")
    first = max(following - 1000, 0)  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE
    message = (
        f"The record at offset {row.maybe('first_offset')} sets the next producer id to {following}, though offset "
        f"{row.maybe('previous_offset')} had set it to {highest}: ids from {first} on were given out twice"
    )
    return Explanation(message, details={"next_producer_id": following, "highest_before": highest, "records": case.hits})
