"""X01 int-key-marker-hazard: a compacted topic whose records have the keys of markers, on brokers whose cleaner mixes them up.

Proves: Up to Kafka 3.2.0 the cleaner takes a marker for an older record with its key, 4 bytes with the value 0 (ABORT) or 1 (COMMIT), and
removes it while its transaction is there. By itself it does not prove that delivery was wrong.

Bad history: Records with the integer keys 0 and 1 in a compacted topic that transactions write to, on Kafka 2.8.

Legal look-alike: The same keys on brokers with the repair of KAFKA-14055 (3.3, 3.2.1, 3.1.2, 3.0.2), in a topic that nobody cleans, or in
one that no transaction writes to; the text "0", which is one byte. Keys that were not printed are not known.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="X01",
    slug="int-key-marker-hazard",
    severity="warning",
    reads=("marker_keys",),
    subject="transactional_batch",
    needs=("marker_keys",),
    where="true",
    by="",
    columns="first_offset records",
    # What the cleaner did to a marker, X02 tells.
    proves_delivery_wrong=False,
    cause="integer keys 0 or 1 in a compacted topic, and brokers before the repair of KAFKA-14055",
    remedy=(
        "Upgrade the brokers to Kafka 3.3 or later (or 3.2.1, 3.1.2, 3.0.2). Until then make the topic cleanup.policy=delete, or write its "
        "keys in another form. Whether a marker was lost already X02 tells."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """A warning where the brokers are known to have the fault; where their version is not known, an info."""
    log = case.log
    if log is None or not log.subjects & {"transactional_batch", "marker"}:
        return None
    repaired = context.keeps_markers(log.cluster)
    if repaired:
        return None
    version = context.cluster(log.cluster).text("kafka_version")
    whose = "the brokers' version is not known" if version is None else f"the brokers are of Kafka {shown(version)}"
    message = (
        f"{count(case.records, 'record')} of this compacted topic have the 4-byte keys 0 or 1, the first at offset {case.first}, and "
        f"transactions write here: up to Kafka 3.2.0 the cleaner removes markers for such keys, and {whose}"
    )
    return Explanation(
        message,
        severity="info" if repaired is None else "warning",
        certainty="open" if repaired is None else "definite",
        details={"records": case.records, "kafka_version": version},
    )
