"""I01 pid-shared: one producer id belongs to two transactional ids.
Proves: Two producers write under one producer id: brokers take the batches of one for duplicates of the other's and drop them without a
word, and a marker of one ends the transaction of the other. By itself it does not prove that delivery was wrong.

Bad history: Empty of twin-a with producer 9018, then Empty of twin-b with producer 9018.

Legal look-alike: One id whose producer id changes (expiry, exhaustion); the same numbers in two clusters; one id in two partitions (C06);
one id that was printed in two locales.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sources import GARBLED, SOURCES
from eo_audit.words import shown, some

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

_COLUMNS = ("sharing", "entry_offset")
_OF_PRODUCER = "PARTITION BY cluster, producer_id"
# By the coordinators' clocks: who came first is only said, nothing follows from it.
_IN_TIME = "batch_timestamp_ms, coordinator_partition, entry_offset"


def shared(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Where a producer id comes to an id that is not the first one with it, in the form of a hit; the other's entry is its `previous_` "
    "one."""
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    entries = histories["coordinator_history"]
    # One row for each time that an id comes to a producer id: far fewer than entries.
    # Printed in two locales one id reads like two.
    births = entries.where(f"producer_id >= 0 AND NOT (producer_id <=> previous_pid) AND NOT {GARBLED}")
    first = f"first(struct(entry_offset, section_id, byte_offset, length)) OVER ({_OF_PRODUCER} ORDER BY {_IN_TIME}) AS first_entry"
    named = births.selectExpr(
        "*",
        first,
        f"collect_set(struct(transactional_id, coordinator_partition)) OVER ({_OF_PRODUCER}) AS those",
        f"row_number() OVER ({_OF_PRODUCER} ORDER BY batch_timestamp_ms DESC, coordinator_partition DESC, entry_offset DESC) AS from_last",
    )
    twice = named.where("size(array_distinct(transform(those, one -> one.transactional_id))) > 1 AND from_last = 1")
    rows = twice.selectExpr(
        "* EXCEPT (previous_offset, previous_section_id, previous_byte_offset, previous_length)",
        "'I01' AS rule",
        "array_sort(those) AS sharing",
        "first_entry.entry_offset AS previous_offset",
        "first_entry.section_id AS previous_section_id",
        "first_entry.byte_offset AS previous_byte_offset",
        "first_entry.length AS previous_length",
    )
    return hits(SOURCES["coordinator_history"], rows, key="producer_id", weight="0", columns=_COLUMNS)


RULE = Rule(
    code="I01",
    slug="pid-shared",
    severity="critical",
    reads=("coordinator_history",),
    subject="coordinator_entry",
    find=shared,
    found=f"transactional_id producer_id producer_epoch {' '.join(_COLUMNS)}",
    # Brokers drop in silence what they take for duplicates, and no log shows that.
    proves_delivery_wrong=False,
    cause=(
        "producer ids were given out twice: the block of ids was set back (ZooKeeper's /latest_producer_id_block deleted, or the metadata "
        "of the cluster restored from an old copy)"
    ),
    remedy=(
        "Stop the producers of all ids that share it. Set the block of producer ids above the highest one in the logs (ZooKeeper: "
        "/latest_producer_id_block; KRaft: restore the metadata log that has the newest ProducerIdsRecord). Start the producers under new "
        "transactional ids, and compare what they sent since with what is in the topics: dropped batches leave no trace."
    ),
)


def explain(case: Case, _context: "Context") -> Explanation:
    """Names the ids that share the producer id, and where each has its coordinator."""
    row = case.row
    sharing = [(one.word("transactional_id"), one.maybe("coordinator_partition")) for one in row.rows("sharing")]
    mine = row.word("transactional_id")
    names = list(dict.fromkeys(name for name, _ in sharing))
    others = some([shown(name) for name in names if name != mine], most=4)
    message = (
        f"{shown(mine)} (producer {row.maybe('producer_id')}) shares its producer id with {others} since offset "
        f"{row.maybe('entry_offset')}: "
        "brokers take the batches of one for duplicates of the other's, and a marker of one ends what the other has open"
    )
    return Explanation(
        message,
        details={"transactional_ids": names, "coordinator_partitions": sorted({place for _, place in sharing if place is not None})},
        producer_epoch=row.maybe("producer_epoch"),
    )
