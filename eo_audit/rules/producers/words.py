"""Sentences that several rules of this family share."""

from eo_audit.rules.rule import Case

# How long a broker remembers a producer that is silent (KIP-854 made it a setting of its own).
EXPIRATION = "producer.id.expiration.ms (before 3.4 transactional.id.expiration.ms)"
# Not the window: outside of it a broker refuses by the sequence (ProducerAppendInfo.inSequence), so a copy is only taken by one that
# remembered nothing.
STATE_LOST = (
    "the partition leader had no memory of this producer when the second copy came: a failover with a stale producer snapshot, "
    f"an unclean election, or a state that expired, by {EXPIRATION}, at once where the times of records are old"
)
WINDOW = 5  # batches a broker remembers of a producer (KAFKA-5494; `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`)


def sequences(case: Case) -> str:
    """The sequences of its most telling batch."""
    first, last = case.row.number("base_sequence"), case.row.number("last_sequence")
    return f"sequence {first}" if first == last else f"sequences {first} to {last}"


def leader_changed(before: int | None, now: int | None) -> str:
    """Whether another leader wrote between two batches; empty where nothing tells."""
    return "" if before is None or now is None or before == now else f"; the leader epoch went from {before} to {now} in between"
