"""T07 unregistered-partition: data of a transaction on a partition that the coordinator never heard of.

Proves: Transactional data on a partition that is in no transaction of its producer in that interval.

Bad history: A producer writes to orders-1, but the coordinator lists only orders-0.

Legal look-alike: TV2 adds the partition just before the write; a coordinator log that is compacted, so that the list is gone; late data,
whose transaction listed the partition and was ended before it came (T02).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions.words import DATA, UNVERIFIED
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T07",
    slug="unregistered-partition",
    severity="error",
    reads=("producer_history",),
    subject="transactional_batch",
    needs=("order", "past", "assigned"),
    # Data behind its own marker is T02's.
    where=f"{DATA} AND registration = 'unregistered' AND coalesce(late, 'no') = 'no'",
    # The worst fate speaks.
    weight="CASE span_outcome WHEN 'committed' THEN 1 ELSE 0 END",
    columns="span_outcome",
    asks=ASKS,
    # What became of the records is the finding that somebody must act on.
    caused_by=("T15", "T01", "T13"),
    cause=(
        "the client wrote before or without AddPartitionsToTxn, or a record landed in the wrong topic (KAFKA-19012, "
        f"clients from 2.8 on); {UNVERIFIED}"
    ),
    remedy=(
        "Upgrade the client, and let brokers from 3.6 on refuse such a write: transaction.partition.verification.enable must be "
        "true on all of them. If T01 reports the data as hanging, follow its remedy first."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Worse when another transaction's COMMIT made it visible. Acquitted where it may have ended among missing offsets: the cleaner may
    have taken the entry that registered it."""
    row = case.row
    if case.log is not None and row.text("span_outcome") == "open" and context.may_have_ended(case.log, row.number("producer_id")):
        return None
    committed = any(example.row.text("span_outcome") == "committed" for example in case.examples)
    instance = context.instances.get(row.word("instance_id"))
    fate = {"committed": "and another transaction's COMMIT closed it", "aborted": "and an ABORT closed it"}.get(
        row.word("span_outcome"), "and it is still open"
    )
    wrote = who(case, context)
    which = "the coordinator log has no entry of" if instance is None else "the coordinator never extended to this partition"
    message = (
        f"{wrote if id_of(case, context) else wrote[0].upper() + wrote[1:]} wrote {count(case.records, 'record')} at "
        f"{offsets(case.first, case.last)} in a transaction that {which}, {fate}"
    )
    return Explanation(
        message,
        named=id_of(case, context),
        severity="critical" if committed else "error",
        details={"batches": case.hits, "closed_by": row.text("span_outcome")},
        transactional_id=instance.text("transactional_id") if instance else None,
    )
