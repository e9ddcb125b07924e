"""I03 pid-unallocated: a producer id was used that was never given out.

Proves: The cluster's own record of producer ids ends below an id that stands in its logs: these lines are of another cluster or backup, or
the record was set back. By itself it does not prove that delivery was wrong.

Bad history: The newest ProducerIdsRecord says nextProducerId 1000 and the metadata log goes on for an hour; producer 4017 wrote at its
start.

Legal look-alike: A producer that got its id after the metadata log was dumped, or before a manifest's word was taken; ids of one block that
come in any order; blocks of which most ids were never used.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, moment

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="I03",
    slug="pid-unallocated",
    severity="error",
    reads=("id_allocation",),
    subject="id_user",
    needs=("allocated",),
    where="row_kind = 'user' AND is_proved",
    # All such ids of a log have one cause; the highest says how far the next block has to be set forward.
    by="",
    weight="producer_id",
    columns="first_offset next_producer_id used_by_ms known_until_ms source",
    proves_delivery_wrong=False,
    cause=(
        "segments of another cluster or of an older backup were put into this log, or the blocks of producer ids were set back: the "
        "metadata of the cluster restored from an old copy, ZooKeeper's /latest_producer_id_block deleted or written by hand"
    ),
    remedy=(
        "First see whether the dumps mix two clusters. If they are one cluster's, its next blocks will give out these ids again, and "
        "brokers may then drop new records as duplicates without a word (I01, I04): set the block forward above the highest id in the logs "
        "(ZooKeeper: /latest_producer_id_block; KRaft: restore the metadata log that has the newest ProducerIdsRecord) before new "
        "producers start."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """The highest such id speaks; brokers' clocks that lie far apart acquit it."""
    row = case.row
    used, known, cluster = row.number("used_by_ms"), row.number("known_until_ms"), case.log.cluster if case.log else ""
    if used + context.farthest_ms.get(cluster, 0) >= known:
        return None
    said = "the newest block of producer ids" if row.text("source") == "metadata" else "the manifest's word"
    more = f", and {count(case.hits - 1, 'other')} like it here," if case.hits > 1 else ""
    message = (
        f"Producer {row.maybe('producer_id')} wrote at offset {row.maybe('first_offset')} by {moment(used)}{more} though no id from "
        f"{row.maybe('next_producer_id')} on had been given out by {moment(known)} ({said})"
    )
    details = {
        "next_producer_id": row.maybe("next_producer_id"),
        "producers": case.hits,
        "known_until_ms": known,
        "source": row.text("source"),
    }
    return Explanation(message, producer_id=row.maybe("producer_id"), details=details, timestamp_ms=used)
