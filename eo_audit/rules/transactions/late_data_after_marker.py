"""T02 late-data-after-marker: data of a transaction stands behind the marker that ended it.

Proves: Transactional data stands behind the marker of its own transaction, and no later transaction of the producer covers it.

Bad history: Data, ABORT, then more data of the same epoch; the coordinator's next transaction does not list the partition or never began.

Legal look-alike: The next transaction of the same producer: under TV0/1 with the same epoch, under TV2 with the epoch of the marker.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.transactions.words import DATA, UNVERIFIED
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="T02",
    slug="late-data-after-marker",
    severity="critical",
    reads=("producer_history",),
    subject="transactional_batch",
    needs=("order", "past", "assigned"),
    where=f"{DATA} AND late IN ('proved', 'suspected')",
    # A proof before a suspicion: which is which stands in `late` (history/owners).
    weight="CASE late WHEN 'proved' THEN 1 ELSE 0 END",
    columns="late instance_decision span_outcome base_offset last_offset",
    asks=ASKS,
    # Late data is committed with the next transaction (T15) or hangs (T01): that is what costs.
    caused_by=("T15", "T01"),
    cause=f"a delayed produce request (network, retries): {UNVERIFIED}",
    remedy=(
        "Look at T01 and T15 for what became of the records. Turn on transaction.partition.verification.enable (3.6 and later) or "
        "transaction.version=2. Nothing to abort here by itself."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Proved by the coordinator log, or suspected from timestamps."""
    row = case.row
    proved = any(example.row.text("late") == "proved" for example in case.examples)
    instance = context.instances.get(row.word("instance_id"))
    decision = row.text("instance_decision") or "its marker"
    stand, has = ("stands", "has") if case.records == 1 else ("stand", "have")
    suspected = case.hits > 1 and any(example.row.text("late") != "proved" for example in case.examples)
    some = "Some of " if suspected else ""
    message = (
        f"{some}{count(case.records, 'record')} of {who(case, context)} {stand} behind the marker that ended their transaction "
        f"({decision}): {offsets(case.first, case.last)}, which no transaction of the coordinator covers"
    )
    if suspected:
        message += f"; {offsets(row.maybe('base_offset'), row.maybe('last_offset'))} for certain, others only by their times"
    if not proved:
        message = (
            f"{count(case.records, 'record')} of {who(case, context)} at {offsets(case.first, case.last)} {has} a time from before the "
            f"marker below {'it' if case.records == 1 else 'them'}: late data of the transaction before, or event time. "
            "Clients set that time"
        )
        if case.log is not None and case.log.numbers.flag("compacted") and instance is not None and instance.text("decision") == "ABORT":
            message += ". The cleaner may also have taken an ABORT that stood between"
    return Explanation(
        message,
        named=id_of(case, context),
        severity="critical" if proved else "info",
        certainty="definite" if proved else "open",
        details={"batches": case.hits, "decision": row.text("instance_decision"), "closed_by": row.text("span_outcome")},
        transactional_id=instance.text("transactional_id") if instance else None,
    )
