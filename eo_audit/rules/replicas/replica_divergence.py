"""R01 replica-divergence: two replicas of a partition, or two dumps of one, hold different batches at one offset.

Proves: What a consumer gets at these offsets depends on the broker it asks, or on when it asked: records that one replica has were lost on
the other, or records that were replicated were lost since an older dump.

Bad history: Broker 1 has one batch at offsets 2 to 4, broker 2 another one, and both say that it was replicated.

Legal look-alike: The end of a dead leader's log, above the high watermark, which it cuts off when it comes back, or keeps where the records
were deleted meanwhile (it lies below the log start then); a follower that lags; replicas of a compacted topic, each cleaned alone; other
segment boundaries; a topic that was deleted and created anew between the dumps of two brokers, where its id (partition.metadata) or what
its logs begin with tells; replicas dumped by tools before and after 2.2, as while brokers are upgraded one by one: the older ones print no
checksums. Of two dumps: what an older one holds above its high watermark, or below the log start of today; segments that the cleaner wrote
anew.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.replicas.comparison import FOUND, differences
from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, moment, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

RULE = Rule(
    code="R01",
    slug="replica-divergence",
    severity="critical",
    reads=("producer_history", "visibility", "overwritten_offsets"),
    subject="replica",
    # What stands behind a bad checksum is no history to compare.
    needs=("order", "cleaner", "checksums"),
    find=differences,
    by="",
    found=FOUND,
    cause=(
        "an unclean leader election (unclean.leader.election.enable, or min.insync.replicas below 2 when the last replica in sync died), "
        "KAFKA-18723 (a follower appended batches of a newer leader), or a disk fault; without partition.metadata of both replicas also "
        "a topic that was created anew between their dumps"
    ),
    remedy=(
        "Keep both logs first: copy this replica's directory, for nothing else has its records. List what only it holds at these offsets "
        "(kafka-dump-log.sh --print-data-log) and publish again what is still wanted. Then stop this broker, delete the directory of this "
        "partition and start it: it is fetched again from the leader. Safe while the other replica leads."
    ),
)

_WITHOUT_MAJORITY = (
    "Keep both logs first: copy both directories. These logs do not tell which of the two counts; kafka-topics.sh --describe names the "
    "leader, and a dump of a third replica would decide. List what only the other one holds at these offsets (kafka-dump-log.sh "
    "--print-data-log) and publish again what is still wanted. Then stop that broker, delete the directory of this partition and start "
    "it: it is fetched again from the leader."
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first batch that differs speaks; where no broker says that it was replicated, it may be a dead leader's end."""
    if case.row.maybe("hw_then") is not None:
        return _overwritten(case)
    settled = any(example.row.flag("settled") for example in case.examples)
    counts = context.logs.get(case.row.number("other_log"))
    batches = f"{count(case.hits, 'batch', 'batches')} ({count(case.records, 'record')}) at {offsets(case.first, case.last)}"
    message = f"{batches} of this replica{_of(case.log)} {'is' if case.hits == 1 else 'are'} not what the replica{_of(counts)} has there"
    details = {
        "batches": case.hits,
        "other_broker": counts.broker if counts else None,
        "leader_epoch": case.log.leader_epoch if case.log else None,
        "other_leader_epoch": counts.leader_epoch if counts else None,
    }
    if settled:
        # Without a newer leader or a third replica a faulty disk may be either's.
        outvoted = all(example.row.flag("outvoted") for example in case.examples)
        return Explanation(
            f"{message}: one history of the partition became two", remedy=None if outvoted else _WITHOUT_MAJORITY, details=details
        )
    return Explanation(
        f"{message}, and nothing shows that it was ever replicated: a leader that comes back cuts it off",
        severity="info",
        cause="a leader that died before its followers had fetched the end of its log (KIP-101), or the causes of a divergence",
        remedy="Nothing, if no client was told that these records are written (acks=0 or 1, or a producer that saw an error).",
        details=details,
    )


def _overwritten(case: Case) -> Explanation:
    """Of two dumps: what lay below the high watermark is no more."""
    row = case.row
    then, now, replicas = moment(row.maybe("dumped_at_ms_then")), moment(row.maybe("dumped_at_ms")), row.number("replicas", 1)
    held, where = offsets(case.first, case.last), "" if replicas == 1 else f", in {replicas} replicas"
    # Of a leader that wrote nothing yet only its epoch tells.
    is_written = case.log is None or (case.log.numbers.maybe("leo") or 0) > (case.first or 0)
    lost = f"{'was' if case.first == case.last else 'were'} lost{' and written anew' if is_written else ''}"
    return Explanation(
        f"{held[0].upper()}{held[1:]} {lost}: the dump of {then} has leader "
        f"epoch {row.number('leader_epoch_then')} there, below its high watermark {row.number('hw_then')}, the dump of {now} leader epoch "
        f"{row.number('leader_epoch')} from offset {case.first} on{where}",
        cause=(
            "an unclean leader election (unclean.leader.election.enable, or min.insync.replicas below 2 when the last replica in sync "
            "died): the new leader did not have these records; or brokers lost what was not flushed yet (power)"
        ),
        remedy=(
            "Keep the older dump: it may be all that is left of these records. List them (kafka-dump-log.sh --print-data-log on a copy of "
            "the segment, or the older text) and publish again what is still wanted: their producers were told that they are written. Then "
            "set unclean.leader.election.enable=false, min.insync.replicas=2 and acks=all."
        ),
        details={
            "high_watermark_then": row.number("hw_then"),
            "leader_epoch_then": row.number("leader_epoch_then"),
            "leader_epoch": row.number("leader_epoch"),
            "replicas": replicas,
        },
    )


def _of(log: "Log | None") -> str:
    return "" if log is None or log.broker is None else f" (broker {log.broker})"
